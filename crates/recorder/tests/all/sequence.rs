//! Sequence numbers are given out once in an array's whole life, whatever ends its recordings. The book
//! sees every number and refuses one that it knows.

use crate::worlds::keep_the_laws;
use chaos::Wanted;
use chaos::case::Ending;

#[test]
fn numbers_never_repeat_across_crashes() {
    let endings = vec![Ending::Kill];
    keep_the_laws(300, &Wanted { rounds: 6, endings, ..Wanted::default() });
}

#[test]
fn numbers_never_repeat_across_power_cuts() {
    let endings = vec![Ending::Stop, Ending::PowerCut];
    keep_the_laws(300, &Wanted { rounds: 6, endings, volatile: true, ..Wanted::default() });
}
