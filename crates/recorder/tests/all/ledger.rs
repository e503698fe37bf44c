//! The ledger always balances: while recording, on the media, after accidents; and it agrees with
//! the source's and the drives' own counts.

use crate::worlds::keep_the_laws;
use chaos::Wanted;
use chaos::case::{Ending, Faults};

#[test]
fn the_ledger_balances_without_accidents() {
    let endings = vec![Ending::Stop];
    keep_the_laws(400, &Wanted { endings, faults: Faults::None, ..Wanted::default() });
}

#[test]
fn the_ledger_balances_whatever_fails() {
    keep_the_laws(400, &Wanted { endings: vec![Ending::Stop], ..Wanted::default() });
}

#[test]
fn the_ledger_balances_after_crashes() {
    let endings = vec![Ending::Stop, Ending::Kill];
    keep_the_laws(400, &Wanted { endings, ..Wanted::default() });
}
