//! Groups of an array with parity, as the core forms them on members of any speed that fail at any time: no two chunks of a group
//! share a member, all is acknowledged, and only what all of its group stands behind.

use std::collections::{BTreeMap, BTreeSet};

use crate::hand::bare;
use base::{BufferId, DeviceError, DriveId, Duration, Instant, Random, Timestamp};
use format::parity::Table;
use format::superblock::Member;
use format::{Layout, Superblock};
use longtake_recorder::open::{MemberImage, Segment};
use longtake_recorder::{
    ArrayImage, Config, Event, Input, Output, ParityMeans, Placement, ReadyChunk, Recorder,
    WhenFull,
};
use proptest::prelude::*;
use uuid::Uuid;

const CHUNK: u32 = 60 << 10;

/// An array, how it is recorded on, and what goes wrong.
#[derive(Clone, Debug)]
struct Case {
    parity: u8,
    /// Microseconds that each member takes for a page.
    speeds: Vec<u64>,
    /// Members that fail once so many of their writes were done.
    failing: Vec<(usize, u32)>,
    placement: Placement,
    depth: u32,
    buffers: u32,
    /// Groups that find buffers for their parities at a time.
    groups: u32,
    chunks: u32,
    /// A chunk comes so often; zero for as fast as buffers come free.
    every: Duration,
    /// A completion is reaped at the next multiple of this, with the others that wait there; zero for at once.
    reaped: Duration,
    /// A write takes up to so many times what its member's speed says, each another time.
    uneven: u64,
    /// All members stand still together: so often, and for so long.
    pauses: Option<(Duration, Duration)>,
    /// How long a group waits for further chunks.
    wait: Duration,
}

/// What came of it.
#[derive(Debug, Default)]
struct Outcome {
    acknowledged: u32,
    durable: u32,
    reduced: Vec<u8>,
    parities: u32,
    data: u32,
    short: u64,
    /// Bytes of parity.
    parity_bytes: u64,
    took: Duration,
}

impl Case {
    fn even(parity: u8, members: usize) -> Self {
        Self {
            parity,
            speeds: vec![10; members],
            failing: Vec::new(),
            placement: Placement::Adaptive,
            depth: 4,
            buffers: 64,
            groups: 8,
            chunks: 400,
            every: Duration::ZERO,
            reaped: Duration::ZERO,
            uneven: 1,
            pauses: None,
            wait: Duration::from_millis(2),
        }
    }

    /// When the chunk of this number comes.
    fn comes(&self, number: u32) -> Instant {
        Instant::from_nanos(self.every.as_nanos() * u64::from(number))
    }

    /// When a write that would be done now is, as all members may stand still.
    fn paused(&self, done: Instant) -> Instant {
        let Some((every, pause)) = self.pauses else { return done };
        let begun = Instant::from_nanos(done.as_nanos() / every.as_nanos() * every.as_nanos());
        done.max(begun + pause)
    }

    /// When a completion is reaped.
    fn reaped_at(&self, done: Instant) -> Instant {
        let grid = self.reaped.as_nanos().max(1);
        Instant::from_nanos(done.as_nanos().next_multiple_of(grid))
    }

    fn image(&self) -> ArrayImage {
        let capacity_bytes = 1 << 30;
        let layout = Layout::new(capacity_bytes, 1 << 20, 64 << 10).expect("lengths that fit");
        let members = (0..self.speeds.len()).map(|at| MemberImage {
            drive: DriveId(at as u16),
            layout,
            segments: vec![Segment::Empty; layout.segments as usize],
            head: None,
            unindexed: Vec::new(),
            trims: false,
            lost_segment: false,
            untimed: Vec::new(),
        });
        let rows = self.speeds.iter().map(|_| Member {
            capacity_bytes,
            identity: String::new(),
            joined_ns: 0,
        });
        ArrayImage {
            uuid: Uuid::from_u128(1),
            superblock: Superblock {
                array: Uuid::from_u128(1),
                name: String::new(),
                member: 0,
                members: rows.collect(),
                layout,
                created: Timestamp::MIN,
                generation: 1,
                protected: Vec::new(),
                parity: self.parity,
            },
            members: members.collect(),
            next_sequence: 0,
            protected: Vec::new(),
            superblocks_differ: false,
            first_copies_bad: Vec::new(),
            remarks: Vec::new(),
            written: None,
        }
    }

    fn core(&self) -> Recorder {
        let config = Config {
            take: Uuid::from_u128(2),
            started: Timestamp::MIN,
            placement: self.placement,
            when_full: WhenFull::Stop,
            depth: self.depth,
            buffers: self.buffers,
            drift_max: 1 << 30,
            flush_interval: Duration::from_millis(5),
            trim_ahead: 0,
            trim_interval: Duration::ZERO,
            rest: 0,
            rest_turn: Duration::ZERO,
            flow_indexes: false,
        };
        let parities = self.groups * u32::from(self.parity);
        let buffers = (self.buffers..self.buffers + parities).map(BufferId).collect();
        let means = ParityMeans { buffers, wait: self.wait };
        Recorder::with_parity(config, self.image(), means)
    }

    /// Records so many chunks as fast as buffers come free, and holds every step to the rules.
    fn run(&self) -> Outcome {
        let mut core = self.core();
        let mut now = Instant::START;
        let mut outcome = Outcome::default();
        let mut free: Vec<BufferId> = (0..self.buffers).map(BufferId).collect();
        let mut under_way: Vec<(Instant, u64, usize, u64)> = Vec::new();
        let mut busy_until = vec![now; self.speeds.len()];
        let mut writes = vec![0u32; self.speeds.len()];
        let mut place: BTreeMap<u64, u16> = BTreeMap::new();
        let mut tables: BTreeMap<u64, Table> = BTreeMap::new();
        let mut written: BTreeSet<u64> = BTreeSet::new();
        let mut ended = false;
        let mut random = Random::new(1);
        loop {
            let comes = self.comes(outcome.data);
            if outcome.data < self.chunks
                && comes <= now
                && let Some(buffer) = free.pop()
            {
                outcome.data += 1;
                core.handle(now, Input::Chunk(bare(buffer, CHUNK, 1)));
            } else if outcome.data == self.chunks && !ended {
                ended = true;
                core.handle(now, Input::Stop);
            }
            while let Some(output) = core.poll_output() {
                let (member, tag, sequence, pages) = match output {
                    Output::WriteChunk { place: there, record, fold, tag, .. } => {
                        place.insert(record.sequence, there.member);
                        let its = |u: &&(Instant, u64, usize, u64)| {
                            u.2 == usize::from(there.member) && u.3 != u64::MAX
                        };
                        let writes = under_way.iter().filter(its).count();
                        assert!(writes < self.depth as usize, "{writes} writes under way");
                        if let Some(part) = record.parity {
                            outcome.parities += 1;
                            let table = &tables[&part.group];
                            let own = table.rows.iter().any(|row| row.member == there.member);
                            assert!(!own, "a parity on a member of its group");
                            assert_eq!(fold.parities, [None, None], "parity is of data");
                        }
                        let pages = u64::from(record.summary.length) / 4096;
                        (there.member, tag, record.sequence, pages)
                    }
                    Output::Seal { group, table, .. } => {
                        let mut members: Vec<u16> = table.rows.iter().map(|r| r.member).collect();
                        members.sort_unstable();
                        members.dedup();
                        assert_eq!(members.len(), table.rows.len(), "two chunks on a member");
                        assert!(table.rows.iter().all(|r| place[&r.sequence] == r.member));
                        let (place, length) = (table.part.place, table.longest() + 4096);
                        tables.insert(table.part.group, table);
                        core.handle(now, Input::Sealed { group, place, length, body_crc: 0 });
                        continue;
                    }
                    Output::WriteIndex { place, tag, .. } => (place.member, tag, u64::MAX, 1),
                    Output::WriteFlowIndex { .. } => unreachable!("no flow index was made"),
                    Output::Flush { member, tag } | Output::Trim { member, tag, .. } => {
                        (member, tag, u64::MAX, 1)
                    }
                    Output::Release { buffer } => {
                        free.push(buffer);
                        continue;
                    }
                    Output::WantEnd => {
                        let buffer = free.pop().expect("all buffers are back");
                        core.handle(now, Input::Chunk(end(buffer)));
                        continue;
                    }
                    Output::Event(event) => {
                        match event {
                            Event::Acknowledged { sequence, .. } => {
                                outcome.acknowledged += 1;
                                assert!(written.contains(&sequence), "{sequence} is written");
                                let guards = tables.values().filter(|table| {
                                    table.rows.iter().any(|row| row.sequence == sequence)
                                });
                                for row in guards.flat_map(|table| &table.rows) {
                                    assert!(written.contains(&row.sequence), "all of its group is");
                                }
                            }
                            Event::DurableChunk { .. } => outcome.durable += 1,
                            Event::ParityReduced { parities, .. } => outcome.reduced.push(parities),
                            _ => {}
                        }
                        continue;
                    }
                };
                let at = usize::from(member);
                let times = 1 + random.below(self.uneven);
                let time = Duration::from_micros(self.speeds[at] * pages * times);
                busy_until[at] = self.paused(busy_until[at].max(now) + time);
                under_way.push((self.reaped_at(busy_until[at]), tag, at, sequence));
            }
            if core.finished() {
                break;
            }
            let more = outcome.data < self.chunks && !free.is_empty();
            let comes = self.comes(outcome.data);
            if more && comes <= now {
                continue;
            }
            under_way.sort_unstable();
            let done = under_way.first().map(|u| u.0);
            let next =
                [done, core.poll_timeout(), more.then_some(comes)].into_iter().flatten().min();
            let Some(next) = next else {
                assert!(!ended, "progress: nothing is under way");
                continue;
            };
            now = now.max(next);
            if under_way.first().is_none_or(|u| u.0 > now) {
                core.handle(now, Input::Tick);
                continue;
            }
            let (_, tag, at, sequence) = under_way.remove(0);
            writes[at] += 1;
            let failed =
                self.failing.iter().any(|&(member, after)| member == at && writes[at] > after);
            let done = if failed { Err(DeviceError::Medium) } else { Ok(()) };
            if done.is_ok() {
                written.insert(sequence);
            }
            core.handle(now, Input::Done { tag, outcome: done });
        }
        outcome.took = now.since(Instant::START);
        let parity = core.parity().unwrap_or_default();
        (outcome.short, outcome.parity_bytes) = (parity.chunks_short, parity.bytes);
        outcome
    }
}

/// The chunk that ends the take.
fn end(buffer: BufferId) -> ReadyChunk {
    let mut chunk = bare(buffer, 4096, 0);
    chunk.summary.end = true;
    chunk
}

fn cases() -> impl Strategy<Value = Case> {
    let array = (1u8..3, 0usize..6, any::<bool>(), any::<u64>());
    let how = (1u32..6, 2u32..40, 1u32..5, 1u32..200);
    let completions = (0u64..300, 1u64..5);
    let failing = proptest::collection::vec((any::<usize>(), 0u32..40), 0..3);
    (array, how, completions, failing).prop_map(
        |((parity, more, stripe, seed), how, (reaped_us, uneven), failing)| {
            let (depth, buffers, groups, chunks) = how;
            let members = usize::from(parity) + 1 + more;
            let speed = |at: usize| 1 + (seed >> (at * 5) & 31) * (1 + (seed >> 60 & 3));
            Case {
                parity,
                speeds: (0..members).map(speed).collect(),
                // One member stays.
                failing: failing.into_iter().map(|(at, n)| (at % (members - 1), n)).collect(),
                placement: if stripe { Placement::Stripe } else { Placement::Adaptive },
                depth,
                buffers,
                groups,
                chunks,
                every: Duration::ZERO,
                reaped: Duration::from_micros(reaped_us),
                uneven,
                pauses: None,
                wait: Duration::from_millis(2),
            }
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn everything_is_acknowledged_with_its_group_whoever_fails(case in cases()) {
        let outcome = case.run();
        prop_assert_eq!(outcome.acknowledged, case.chunks + 1);
        let members: BTreeSet<usize> = case.failing.iter().map(|f| f.0).collect();
        let left = case.speeds.len() - members.len();
        if left > usize::from(case.parity) {
            prop_assert_eq!(outcome.reduced, Vec::<u8>::new());
            prop_assert_eq!(outcome.short, 0);
        }
        if members.is_empty() {
            prop_assert_eq!(outcome.durable, case.chunks + 1);
        }
    }
}

#[test]
fn groups_of_even_members_are_as_long_as_they_can_be() {
    for placement in [Placement::Adaptive, Placement::Stripe] {
        for (parity, members, most) in [(1, 4, 3), (2, 6, 4), (1, 2, 1)] {
            let outcome = Case { placement, ..Case::even(parity, members) }.run();
            // The last groups may be short.
            let least = outcome.data.div_ceil(most) * u32::from(parity);
            let (made, slack) = (outcome.parities, least / 20 + 3 * u32::from(parity));
            assert!(made <= least + slack, "{placement}: {made} parities, {least} suffice");
        }
    }
}

/// Six equal members with this much parity record at their full rate and at a tenth of it. Parity may cost a quarter more than ideally.
fn costs_little(case: &Case) {
    let (members, pages) = (case.speeds.len() as u64, u64::from(CHUNK / 4096) + 1);
    let data = members - u64::from(case.parity);
    let write_us = case.speeds[0] * pages * (1 + case.uneven) / 2;
    for every_us in [0, 10 * write_us / data] {
        let case = Case {
            chunks: 4000,
            every: Duration::from_micros(every_us),
            // As long for a chunk's time as a group of 4 MiB chunks waits on members of 400 MB/s.
            wait: Duration::from_micros(50 * write_us),
            ..case.clone()
        };
        let outcome = case.run();
        let data_bytes = u64::from(outcome.data) * u64::from(CHUNK);
        let ratio = outcome.parity_bytes as f64 / data_bytes as f64;
        let ideal = f64::from(case.parity) / data as f64;
        assert!(ratio <= 1.25 * ideal, "{ratio:.3} of parity, ideally {ideal:.3}: {case:?}");
    }
}

#[test]
fn parity_of_equal_members_costs_little_however_their_completions_are_reaped() {
    for (parity, placement) in [1, 2]
        .into_iter()
        .flat_map(|parity| [Placement::Adaptive, Placement::Stripe].map(|p| (parity, p)))
    {
        // One by one, several of a member's together, and all that is under way at once.
        for reaped in [0, 1000, 3000].map(Duration::from_micros) {
            for uneven in [1, 2, 8] {
                costs_little(&Case { placement, reaped, uneven, ..Case::even(parity, 6) });
            }
        }
    }
}

#[test]
fn parity_of_equal_members_costs_little_though_all_of_them_stand_still_now_and_then() {
    for parity in [1, 2] {
        for pause in [2, 5] {
            let pauses = Some((Duration::from_millis(20), Duration::from_millis(pause)));
            costs_little(&Case { pauses, ..Case::even(parity, 6) });
        }
    }
}

#[test]
fn a_slow_member_makes_groups_smaller_and_does_not_slow_the_rest() {
    // The faster of these writes a chunk within what a group may wait.
    for (page_us, wait_ms) in [(400, 2), (40, 2), (40, 15)] {
        let (chunks, wait) = (4000, Duration::from_millis(wait_ms));
        let speeds = vec![10, 10, 10, 10, page_us];
        let slow = Case { speeds, chunks, wait, ..Case::even(1, 5) }.run();
        let without = Case { chunks, wait, ..Case::even(1, 4) }.run();
        let (slow, without) = (slow.took.as_secs_f64(), without.took.as_secs_f64());
        assert!(slow < 1.3 * without, "{slow} s with a slow member more, {without} s without it");
    }
}

#[test]
fn with_too_few_members_left_recording_goes_on_without_parity_and_says_so() {
    let outcome = Case { failing: vec![(0, 20), (1, 40)], ..Case::even(2, 3) }.run();
    assert_eq!(outcome.reduced, [1, 0]);
    assert_eq!(outcome.acknowledged, 401);
    assert!(outcome.short > 300, "{} chunks were short", outcome.short);
}
