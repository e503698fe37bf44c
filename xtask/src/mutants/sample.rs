//! Which mutants are tested, and in which order: drawn by a seed, in batches of one package each.

use anyhow::{Context, Result};
use base::Random;
use serde_json::Value;

/// One possible change to the code.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mutant {
    pub package: String,
    /// File, line, column and what is changed: no two are the same.
    pub name: String,
}

/// Mutants that are tested in one run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Batch {
    pub package: String,
    pub mutants: Vec<Mutant>,
}

impl Batch {
    /// Regular expressions that find these mutants and no others.
    pub fn names(&self) -> impl Iterator<Item = String> + '_ {
        self.mutants.iter().map(|mutant| format!("^{}$", literal(&mutant.name)))
    }
}

/// A regular expression that finds this text alone.
fn literal(text: &str) -> String {
    let mut pattern = String::with_capacity(text.len() * 2);
    for letter in text.chars() {
        if r"\.+*?()|[]{}^$#&-~".contains(letter) {
            pattern.push('\\');
        }
        pattern.push(letter);
    }
    pattern
}

/// The mutants in what `cargo mutants --list --json` prints.
///
/// # Errors
/// If it is another form of list than cargo-mutants 27 prints.
pub fn mutants(list: &Value) -> Result<Vec<Mutant>> {
    let wanted = "the list of mutants is of a form that is not known: try cargo-mutants 27";
    let text = |mutant: &Value, key| mutant[key].as_str().map(str::to_owned).context(wanted);
    let mutants = list.as_array().context(wanted)?.iter();
    mutants.map(|m| Ok(Mutant { package: text(m, "package")?, name: text(m, "name")? })).collect()
}

/// All mutants in an order that the seed draws, in batches of up to `size` of one package. The packages' batches come
/// as their mutants were drawn, so that a sample of any length has a share of each.
pub fn batches(mut mutants: Vec<Mutant>, seed: u64, size: usize) -> Vec<Batch> {
    let mut random = Random::new(seed);
    for last in (1..mutants.len()).rev() {
        mutants.swap(last, random.below(last as u64 + 1) as usize);
    }
    let mut full = Vec::new();
    let mut open: Vec<Batch> = Vec::new();
    for mutant in mutants {
        let at = open.iter().position(|batch| batch.package == mutant.package);
        let at = at.unwrap_or_else(|| {
            open.push(Batch { package: mutant.package.clone(), mutants: Vec::new() });
            open.len() - 1
        });
        open[at].mutants.push(mutant);
        if open[at].mutants.len() == size {
            full.push(open.remove(at));
        }
    }
    full.extend(open);
    full
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn many() -> Vec<Mutant> {
        let of = |package: &'static str| {
            (0..50).map(move |n| Mutant { package: package.into(), name: format!("{package} {n}") })
        };
        of("a").chain(of("b")).collect()
    }

    #[test]
    fn a_seed_draws_the_same_sample_each_time_and_another_seed_another_one() {
        assert_eq!(batches(many(), 7, 12), batches(many(), 7, 12));
        assert_ne!(batches(many(), 7, 12), batches(many(), 8, 12));
    }

    #[test]
    fn batches_are_of_one_package_and_hold_every_mutant_once() {
        let batches = batches(many(), 3, 12);
        let mut names = Vec::new();
        for batch in &batches {
            assert!((1..=12).contains(&batch.mutants.len()));
            assert!(batch.mutants.iter().all(|mutant| mutant.package == batch.package));
            names.extend(batch.mutants.iter().map(|mutant| mutant.name.clone()));
        }
        names.sort();
        let mut all: Vec<_> = many().into_iter().map(|mutant| mutant.name).collect();
        all.sort();
        assert_eq!(names, all);
        // No package waits until another one is done.
        let first: Vec<_> = batches.iter().take(4).map(|batch| batch.package.as_str()).collect();
        assert!(first.contains(&"a") && first.contains(&"b"), "{first:?}");
    }

    #[test]
    fn a_batch_names_its_mutants_literally() {
        let name = "src/a.rs:1:2: replace f -> Vec<(u8, &'a [u8])> with vec![(0, x?)]";
        let mutants = vec![Mutant { package: "a".into(), name: name.into() }];
        let batch = Batch { package: "a".into(), mutants };
        let pattern = batch.names().next().unwrap();
        assert_eq!(
            pattern,
            r"^src/a\.rs:1:2: replace f \-> Vec<\(u8, \&'a \[u8\]\)> with vec!\[\(0, x\?\)\]$"
        );
    }

    #[test]
    fn a_list_is_read_and_one_of_another_form_is_refused() {
        let list = json!([{ "package": "p", "name": "n", "genre": "FnValue" }]);
        assert_eq!(mutants(&list).unwrap(), [Mutant { package: "p".into(), name: "n".into() }]);
        assert!(mutants(&json!([{ "name": "n" }])).is_err());
        assert!(mutants(&json!({})).is_err());
    }
}
