//! The laws of what stays of takes: once a take is over, and any member that got its record is there, its account is the same for good.

use std::collections::{BTreeMap, BTreeSet};

use format::TakeRecord;
use recorder::takes::Catalog;
use uuid::Uuid;

/// The records that members hold for certain.
#[derive(Debug, Default)]
pub struct Records {
    kept: BTreeMap<Uuid, (TakeRecord, BTreeSet<u16>)>,
}

impl Records {
    /// These members hold a take's record from now on.
    pub fn keep(&mut self, record: TakeRecord, members: impl Iterator<Item = u16>) {
        let members: BTreeSet<u16> = members.collect();
        if members.is_empty() {
            return;
        }
        let tells = |record: &TakeRecord| (record.ended, record.last_sequence);
        let (kept, holders) =
            self.kept.entry(record.take.uuid).or_insert_with(|| (record, BTreeSet::new()));
        if tells(kept) < tells(&record) || holders.is_empty() {
            (*kept, *holders) = (record, members);
        } else if tells(kept) == tells(&record) {
            holders.extend(members);
        }
    }

    /// A member has come back in an older state.
    pub fn lose(&mut self, member: u16) {
        for (_, holders) in self.kept.values_mut() {
            holders.remove(&member);
        }
    }

    /// Compares the takes that were found with the records of those that have ended. `there` tells whether a member is present.
    ///
    /// # Panics
    /// If an account has changed, or a take is not listed.
    pub fn judge(&self, catalog: &Catalog, there: impl Fn(&u16) -> bool) {
        let takes: BTreeMap<Uuid, _> =
            catalog.takes().into_iter().map(|take| (take.id.uuid, take)).collect();
        for (record, holders) in self.kept.values() {
            if !holders.iter().any(&there) {
                continue;
            }
            let Some(take) = takes.get(&record.take.uuid) else {
                panic!("records: a take that is over is not listed: {record:?}")
            };
            assert_eq!(take.id, record.take, "records: the take is another one");
            if record.ended {
                assert!(take.ended, "records: the take was ended: {take:?}");
                assert_eq!(take.ledger, record.ledger, "records: the account of {:?}", record.take);
                let last = take.last_sequence;
                assert!(last >= record.last_sequence, "records: {last} ends {:?}", record.take);
            } else {
                let known = take.ledger.offered.packets >= record.ledger.offered.packets;
                assert!(known, "records: {:?} once told more: {record:?}", take.ledger);
            }
        }
    }
}
