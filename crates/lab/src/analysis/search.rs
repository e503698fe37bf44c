//! The greatest number for which a condition holds, when each trial is expensive and its result noisy.
//!
//! The search doubles the number until the condition fails, then halves the gap. Each number is tried
//! until `passes` of at most `tries` trials have passed, or no longer can. The search is a state
//! machine that can be saved and continued.

use std::fmt;

use serde::{Deserialize, Serialize};

/// What to search and how often to ask.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SearchOptions {
    /// The first number tried, at least 1.
    pub start: u64,
    /// The greatest number tried.
    pub limit: u64,
    /// Successes that confirm a number, at least 1.
    pub passes: u32,
    /// Tries of a number, at most.
    pub tries: u32,
}

/// One answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Trial {
    /// The number tried.
    pub n: u64,
    /// Whether it held.
    pub holds: bool,
}

/// What was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SearchOutcome {
    /// The greatest number confirmed; 0 if none was.
    pub greatest: u64,
    /// The number above it that was refused; None if the limit held.
    pub refused: Option<u64>,
}

/// A search under way.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Search {
    options: SearchOptions,
    confirmed: u64,
    refused: Option<u64>,
    held: u32,
    failed: u32,
    trials: Vec<Trial>,
}

/// Why a search can't begin, or an answer can't be taken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SearchError {
    /// The options ask for nothing that can be done.
    Options(SearchOptions),
    /// The answer is about another number than the one asked for.
    NotAsked {
        /// The number reported.
        reported: u64,
        /// The number asked for; None when the search is over.
        asked: Option<u64>,
    },
}

impl fmt::Display for SearchError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Options(o) => write!(
                f,
                "can't search from {} to {} with {} of {} tries: give 1 <= start <= limit and \
                 1 <= passes <= tries",
                o.start, o.limit, o.passes, o.tries
            ),
            Self::NotAsked { reported, asked: Some(asked) } => write!(
                f,
                "an answer for {reported} came while {asked} was asked for: report the number \
                 that the search gave"
            ),
            Self::NotAsked { reported, asked: None } => write!(
                f,
                "an answer for {reported} came after the search was over: take its outcome"
            ),
        }
    }
}

impl std::error::Error for SearchError {}

impl Search {
    /// A search that has asked nothing yet.
    ///
    /// # Errors
    /// [`SearchError::Options`] unless 1 <= start <= limit and 1 <= passes <= tries.
    pub fn new(options: SearchOptions) -> Result<Self, SearchError> {
        let SearchOptions { start, limit, passes, tries } = options;
        if start == 0 || start > limit || passes == 0 || passes > tries {
            return Err(SearchError::Options(options));
        }
        Ok(Self { options, confirmed: 0, refused: None, held: 0, failed: 0, trials: Vec::new() })
    }

    /// The number to try; None when the search is over.
    pub fn next(&self) -> Option<u64> {
        match self.refused {
            Some(refused) if refused - self.confirmed <= 1 => None,
            Some(refused) => Some(self.confirmed + (refused - self.confirmed) / 2),
            None if self.confirmed >= self.options.limit => None,
            None if self.confirmed == 0 => Some(self.options.start),
            None => Some(self.confirmed.saturating_mul(2).min(self.options.limit)),
        }
    }

    /// Takes the answer for the number that [`Search::next`] gave.
    ///
    /// # Errors
    /// [`SearchError::NotAsked`] if it is about another; nothing changes.
    pub fn report(&mut self, n: u64, holds: bool) -> Result<(), SearchError> {
        let asked = self.next();
        if asked != Some(n) {
            return Err(SearchError::NotAsked { reported: n, asked });
        }
        self.trials.push(Trial { n, holds });
        if holds {
            self.held += 1;
        } else {
            self.failed += 1;
        }
        if self.held >= self.options.passes {
            self.confirmed = n;
        } else if self.failed > self.options.tries - self.options.passes {
            self.refused = Some(n);
        } else {
            return Ok(());
        }
        (self.held, self.failed) = (0, 0);
        Ok(())
    }

    /// What was found; None while the search goes on.
    pub fn outcome(&self) -> Option<SearchOutcome> {
        self.next()
            .is_none()
            .then_some(SearchOutcome { greatest: self.confirmed, refused: self.refused })
    }

    /// Every answer so far, in order.
    pub fn trials(&self) -> &[Trial] {
        &self.trials
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::Random;
    use proptest::prelude::*;

    fn options(start: u64, limit: u64, passes: u32, tries: u32) -> SearchOptions {
        SearchOptions { start, limit, passes, tries }
    }

    fn run(mut search: Search, mut holds: impl FnMut(u64) -> bool) -> (SearchOutcome, usize) {
        while let Some(n) = search.next() {
            search.report(n, holds(n)).unwrap();
        }
        (search.outcome().unwrap(), search.trials().len())
    }

    proptest! {
        #[test]
        fn the_greatest_number_is_found_in_a_logarithm_of_tries(
            start in 1u64..50, limit in 50u64..100_000, truth in 0u64..120_000,
        ) {
            let search = Search::new(options(start, limit, 1, 1)).unwrap();
            let (outcome, trials) = run(search, |n| n <= truth);
            let greatest = truth.min(limit);
            prop_assert_eq!(outcome.greatest, greatest);
            prop_assert_eq!(outcome.refused, (truth < limit).then_some(greatest + 1));
            prop_assert!(trials <= 2 * 18, "{} tries", trials);
        }

        #[test]
        fn a_search_written_down_and_taken_up_again_goes_on_where_it_was(
            truth in 0u64..1_000, pause in 0usize..30,
        ) {
            let mut search = Search::new(options(4, 600, 2, 3)).unwrap();
            for _ in 0..pause {
                let Some(n) = search.next() else { break };
                search.report(n, n <= truth).unwrap();
            }
            let written = serde_json::to_string(&search).unwrap();
            let again: Search = serde_json::from_str(&written).unwrap();
            prop_assert_eq!(run(again, |n| n <= truth), run(search, |n| n <= truth));
        }
    }

    #[test]
    fn a_noisy_answer_is_outvoted() {
        let mut right = 0;
        for seed in 0..100 {
            let mut random = Random::new(seed);
            let search = Search::new(options(1, 4_096, 4, 7)).unwrap();
            let (outcome, _) = run(search, |n| (n <= 300) != random.one_in(20));
            right += usize::from(outcome.greatest == 300);
        }
        assert!(right >= 98, "{right} of 100");
    }

    #[test]
    fn a_number_is_decided_as_soon_as_more_answers_could_not_change_it() {
        let mut search = Search::new(options(8, 8, 2, 3)).unwrap();
        for holds in [true, false, true] {
            assert_eq!(search.outcome(), None);
            search.report(8, holds).unwrap();
        }
        assert_eq!(search.outcome(), Some(SearchOutcome { greatest: 8, refused: None }));
    }

    #[test]
    fn senseless_options_and_answers_are_refused_with_what_to_do() {
        for bad in
            [options(0, 9, 1, 1), options(9, 8, 1, 1), options(1, 9, 0, 1), options(1, 9, 3, 2)]
        {
            let error = Search::new(bad).unwrap_err();
            assert!(error.to_string().contains("give 1 <= start"), "{error}");
        }
        let mut search = Search::new(options(5, 5, 1, 1)).unwrap();
        let before = search.clone();
        assert!(search.report(6, true).unwrap_err().to_string().contains("5 was asked for"));
        assert_eq!(search, before);
        search.report(5, true).unwrap();
        assert!(search.report(5, true).unwrap_err().to_string().contains("over"));
    }
}
