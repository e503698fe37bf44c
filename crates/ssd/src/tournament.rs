//! The earliest of a few times, whose it is, and the second earliest: each pair's earlier one goes on to the next round.

use crate::earliest::NEVER;

/// Times by index. Of equal ones the first index is the earliest.
#[derive(Clone, Debug)]
pub struct Tournament {
    /// Rounds from the last one, whose winner is at 1, to the first, which has all times: the winner of two neighbors is at half their
    /// place.
    rounds: Vec<u64>,
}

/// Who comes first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Winner {
    /// When.
    pub time: u64,
    /// Whose time it is.
    pub index: usize,
    /// The earliest time of all others.
    pub another: u64,
}

impl Tournament {
    /// Of these times.
    pub fn new(times: &[u64]) -> Self {
        let first_round = times.len().next_power_of_two();
        let mut tournament = Self { rounds: vec![NEVER; 2 * first_round] };
        for (index, &time) in times.iter().enumerate() {
            tournament.set(index, time);
        }
        tournament
    }

    const fn first_round(&self) -> usize {
        self.rounds.len() / 2
    }

    /// The time of this index.
    #[inline]
    pub fn get(&self, index: usize) -> u64 {
        self.rounds[self.first_round() + index]
    }

    /// Changes the time of this index.
    #[inline]
    pub fn set(&mut self, index: usize, time: u64) {
        let mut at = self.first_round() + index;
        self.rounds[at] = time;
        while at > 1 {
            let winner = self.rounds[at].min(self.rounds[at ^ 1]);
            at /= 2;
            self.rounds[at] = winner;
        }
    }

    /// Who comes first.
    #[inline]
    pub fn winner(&self) -> Winner {
        let (mut at, mut another) = (1, NEVER);
        // Which of two is earlier can't be foreseen: without a branch for it.
        while at < self.first_round() {
            let (left, right) = (self.rounds[2 * at], self.rounds[2 * at + 1]);
            another = another.min(left.max(right));
            at = 2 * at + usize::from(right < left);
        }
        Winner { time: self.rounds[at], index: at - self.first_round(), another }
    }
}

#[cfg(test)]
mod tests {
    use base::random::Random;

    use super::*;

    #[test]
    fn the_winner_is_what_a_search_finds() {
        for entries in [1, 2, 3, 12, 16, 33] {
            let mut random = Random::new(1);
            let mut model: Vec<u64> = (0..entries).map(|_| random.below(50)).collect();
            let mut tournament = Tournament::new(&model);
            for _ in 0..2_000 {
                let time = *model.iter().min().unwrap();
                let index = model.iter().position(|&t| t == time).unwrap();
                let others = model.iter().enumerate().filter(|&(at, _)| at != index);
                let another = others.map(|(_, &time)| time).min().unwrap_or(NEVER);
                assert_eq!(tournament.winner(), Winner { time, index, another });
                let changed = random.below(entries as u64) as usize;
                model[changed] = if random.one_in(4) { NEVER } else { random.below(50) };
                tournament.set(changed, model[changed]);
                assert_eq!(tournament.get(changed), model[changed]);
            }
        }
    }
}
