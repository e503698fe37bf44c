//! Extraction gives exactly the packets of the chunks that are there, in the range, in time order,
//! each once, while the recording goes on.

use std::collections::BTreeSet;

use crate::world::case::{Ending, Wanted, cases, config};
use crate::world::{self, Live, World};
use base::Timestamp;
use format::pcapng::{Block, Blocks, ReadPacket, read_packet};
use format::{ChunkRecord, Interface};
use longtake_recorder::extract::{self, Unreadable, Visitor};
use longtake_recorder::takes::{Catalog, Entry};
use longtake_recorder::{ArrayImage, Event, TimeRange};
use proptest::prelude::*;

/// Takes what comes, and lets the recording go on meanwhile.
struct Collector<'w, 'l> {
    /// Number and time, in the order they came.
    packets: Vec<(u64, u64)>,
    lost: Vec<(u64, Unreadable)>,
    /// Runs of blocks are taken whole.
    whole: bool,
    recording: Option<(&'w mut Live<'l>, &'w mut Vec<Event>)>,
}

impl Collector<'_, '_> {
    fn take(&mut self, packet: &ReadPacket<'_>) {
        let number = |at: usize| {
            let bytes = packet.data[at..at + 8].try_into().expect("eight bytes");
            u64::from_le_bytes(bytes)
        };
        assert_eq!(number(0), !number(8), "a packet as it was offered");
        self.packets.push((number(0), packet.time));
    }
}

impl Visitor for Collector<'_, '_> {
    type Error = ();

    fn packet(&mut self, i: &Interface, packet: &ReadPacket<'_>, _: &Block<'_>) -> Result<(), ()> {
        assert!(i.name.starts_with("queue"), "{}", i.name);
        self.take(packet);
        Ok(())
    }

    fn blocks(&mut self, _: &[Interface], blocks: &[u8], _: &ChunkRecord) -> Result<bool, ()> {
        if self.whole {
            for block in Blocks::new(blocks) {
                let block = block.expect("whole blocks");
                self.take(&read_packet(&block).expect("packets alone"));
            }
        }
        Ok(self.whole)
    }

    fn lost(&mut self, entry: &Entry, why: &Unreadable) -> Result<(), ()> {
        self.lost.push((entry.record.sequence, why.clone()));
        Ok(())
    }

    fn progress(&mut self, _: u64, _: u64) -> Result<(), ()> {
        if let Some((recording, events)) = &mut self.recording {
            let until = recording.now();
            recording.step(until, events).expect("the bank works");
        }
        Ok(())
    }
}

/// Packets that must have come, and what came, of one take.
struct Extracted {
    due: Vec<(u64, BTreeSet<u64>)>,
    lost: Vec<(u64, Unreadable)>,
}

/// Extracts a range of every take and holds it against the chunks that are listed.
fn extract_all(
    world: &World,
    image: &ArrayImage,
    catalog: &Catalog,
    range: TimeRange,
    whole: bool,
    mut recording: Option<(&mut Live<'_>, &mut Vec<Event>)>,
) -> Vec<Extracted> {
    let mut all = Vec::new();
    for take in catalog.takes() {
        let entries: Vec<Entry> =
            catalog.entries.iter().filter(|e| e.record.take == take.id).copied().collect();
        let mut bank = world.bank.another(|_| true);
        let mut reader = world.reader(&mut bank);
        let mut collector = Collector {
            packets: Vec::new(),
            lost: Vec::new(),
            whole,
            recording: recording.as_mut().map(|(live, events)| (&mut **live, &mut **events)),
        };
        extract::extract(&mut reader, image, &entries, range, None, &mut collector)
            .expect("nothing ends it early");
        let Collector { packets, lost, .. } = collector;
        let in_order = packets.windows(2).all(|pair| pair[0].1 <= pair[1].1);
        assert!(in_order, "in order of time, over all queues");
        let inside = |ns: u64| range.from.as_nanos() <= ns && ns <= range.to.as_nanos();
        let came: BTreeSet<u64> = packets.iter().map(|p| p.0).collect();
        assert_eq!(came.len(), packets.len(), "each once");
        assert!(packets.iter().all(|p| inside(p.1)), "in the range");
        let mut expected = BTreeSet::new();
        let mut due = Vec::new();
        world.bank.watch(|w| {
            for entry in &entries {
                let sequence = entry.record.sequence;
                let packets = &w.chunks[&sequence].contents.packets;
                let here: BTreeSet<u64> =
                    packets.iter().filter(|p| inside(p.1)).map(|p| p.0).collect();
                if lost.iter().all(|(lost, _)| *lost != sequence) {
                    assert!(here.is_subset(&came), "chunk {sequence}: all its packets came");
                    expected.extend(&here);
                }
                due.push((sequence, here));
            }
        });
        assert_eq!(came, expected, "and no others");
        all.push(Extracted { due, lost });
    }
    all
}

fn range(world: &World, now_ns: u64, (one, other): (u16, u16)) -> TimeRange {
    let span = now_ns - world::feed::EPOCH_NS;
    let at = |share: u16| {
        Timestamp::from_nanos(world::feed::EPOCH_NS + span / 65_535 * u64::from(share))
    };
    let _ = world;
    TimeRange { from: at(one.min(other)), to: at(one.max(other)) }
}

proptest! {
    #![proptest_config(config(250))]

    #[test]
    fn a_range_gives_exactly_its_packets(
        case in cases(Wanted::default()),
        shares in any::<(u16, u16)>(),
        whole in any::<bool>(),
    ) {
        let world = World::run(case);
        let now = base::Bank::now(&world.bank);
        let image = world.open(&[]);
        let mut bank = world.bank.another(|_| true);
        let catalog = Catalog::load(&mut world.reader(&mut bank), &image, TimeRange::ALL).unwrap();
        for range in [range(&world, world::feed::time(now).as_nanos(), shares), TimeRange::ALL] {
            for take in extract_all(&world, &image, &catalog, range, whole, None) {
                for (sequence, why) in take.lost {
                    let given_up = world.bank.watch(|w| w.chunks[&sequence].given_up);
                    prop_assert!(given_up, "chunk {} is lost: {}", sequence, why);
                }
            }
        }
        // A catalog of the range alone gives the same.
        let range = range(&world, world::feed::time(now).as_nanos(), shares);
        let mut part = Catalog::load(&mut world.reader(&mut bank), &image, range).unwrap();
        let inside = |e: &Entry| e.record.summary.overlaps(range.from.as_nanos(), range.to.as_nanos());
        part.entries.retain(inside);
        let mut of_all = catalog.entries.clone();
        of_all.retain(inside);
        prop_assert_eq!(part.entries, of_all);
    }

    #[test]
    fn a_range_gives_its_packets_while_recording_goes_on(
        case in cases(Wanted { endings: vec![Ending::Stop, Ending::Crash], ..Wanted::default() }),
        shares in any::<(u16, u16)>(),
        every in 20u32..200,
    ) {
        let mut world = World::new(case);
        for round in world.case.rounds.clone() {
            let mut steps = 0;
            let mut pending: Vec<(BTreeSet<u64>, Vec<Extracted>)> = Vec::new();
            let report = world.round(&round, |world, live, events| {
                steps += 1;
                // A member that is gone can't be read: that is another test.
                let dead = live.core().members().any(|m| !m.working);
                let dies = round.faults.iter().any(|f| matches!(f.2, world::case::Fault::Die));
                if steps % every != 0 || dead || dies {
                    return;
                }
                let acknowledged: BTreeSet<u64> = world.bank.watch(|w| {
                    let held = |c: &&world::watch::Written| c.acknowledged && !c.given_up && !c.cut;
                    w.chunks.values().filter(held).map(|c| c.record.sequence).collect()
                });
                let image = world.open(&[]);
                let mut bank = world.bank.another(|_| true);
                let mut reader = world.reader(&mut bank);
                let catalog = Catalog::load(&mut reader, &image, TimeRange::ALL).unwrap();
                let now = world::feed::time(live.now()).as_nanos();
                let range = range(world, now, shares);
                let took =
                    extract_all(world, &image, &catalog, range, true, Some((live, events)));
                pending.push((acknowledged, took));
            });
            drop(report);
            // By now it is known what the ring gave up meanwhile.
            for (acknowledged, takes) in pending {
                let listed: BTreeSet<u64> =
                    takes.iter().flat_map(|t| t.due.iter().map(|d| d.0)).collect();
                world.bank.watch(|w| {
                    for sequence in acknowledged.difference(&listed) {
                        assert!(w.chunks[sequence].given_up, "chunk {sequence} was not listed");
                    }
                    for (sequence, why) in takes.iter().flat_map(|t| &t.lost) {
                        let chunk = &w.chunks[sequence];
                        let excused = chunk.given_up || !chunk.acknowledged;
                        assert!(excused, "chunk {sequence} could not be had: {why}");
                    }
                });
            }
            world.bank.revive();
            world.judge(&[], false);
        }
    }
}
