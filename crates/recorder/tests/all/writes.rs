//! Writing keeps to its rules: chunks don't overlap or cross a segment, no write meets another or a
//! trim, no member is given more at once than its depth, and fill drifts no further than allowed.

use crate::hand::{self, bare, image};
use crate::worlds::{config, keep_the_laws};
use base::{BufferId, Duration, Instant, Timestamp};
use chaos::Wanted;
use chaos::source::EPOCH_NS;
use longtake_recorder::open::Live;
use longtake_recorder::{ArrayImage, Config, Event, Input, Output, Recorder};
use proptest::prelude::*;
use std::collections::HashSet;
use std::ops::Range;

#[test]
fn writes_keep_to_their_rules_whatever_happens() {
    // The book holds each command to them.
    keep_the_laws(300, &Wanted { volatile: true, ..Wanted::default() });
}

proptest! {
    #![proptest_config(config(300))]

    #[test]
    fn fill_drifts_no_further_than_allowed_while_few_chunks_wait(writers in writers(2..6)) {
        writers.write(64, writers.speeds.len() as u32);
    }

    #[test]
    fn no_member_stands_still_while_many_chunks_wait(writers in writers(2..6)) {
        writers.write(64, 64);
    }

    #[test]
    fn no_chunk_waits_for_balance_while_half_the_buffers_are_filled(writers in writers(9..16)) {
        writers.write(8, 8);
    }
}

/// Many segments, so that nothing but speed and drift matters.
pub fn roomy(members: usize) -> ArrayImage {
    let empty: &[Live] = &[];
    image(0, 200, &vec![empty; members])
}

/// Members with nothing but the core before them, and the chunks that they are to take.
#[derive(Debug)]
struct Writers {
    /// Microseconds that a page takes, by member.
    speeds: Vec<u64>,
    depth: u32,
    drift_max: u64,
    /// Pages of each chunk.
    lengths: Vec<u32>,
}

fn writers(members: Range<usize>) -> impl Strategy<Value = Writers> {
    let speeds = proptest::collection::vec(1u64..40, members);
    let lengths = proptest::collection::vec(1u32..16, 200..400);
    (speeds, 1u32..6, 0u64..512, lengths).prop_map(|(speeds, depth, drift_kib, lengths)| Writers {
        speeds,
        depth,
        drift_max: drift_kib << 10,
        lengths,
    })
}

impl Writers {
    fn config(&self, buffers: u32) -> Config {
        Config {
            started: Timestamp::from_nanos(EPOCH_NS),
            depth: self.depth,
            buffers,
            drift_max: self.drift_max,
            flush_interval: Duration::from_millis(1),
            ..hand::config()
        }
    }

    /// Drives the core alone, with so many buffers and a source that keeps so many of them filled.
    fn write(&self, buffers: u32, filled: u32) {
        let Self { speeds, drift_max, lengths, .. } = self;
        let mut core = Recorder::new(self.config(buffers), roomy(speeds.len()));
        let balance_yields =
            |waiting: u32, held: u32| waiting > speeds.len() as u32 || held > buffers / 2;
        let mut now = Instant::START;
        // What is under way, by when it is done: tag and member; each member does one at a time.
        let mut under_way: Vec<(Instant, u64, usize)> = Vec::new();
        let mut chunks = HashSet::new();
        let mut busy_until = vec![now; speeds.len()];
        let mut written = vec![0u64; speeds.len()];
        let (mut next, mut placed, mut acknowledged) = (0, 0, 0);
        while acknowledged < lengths.len() {
            while next < lengths.len() && core.buffers_held() < filled {
                let chunk = bare(BufferId(next as u32), lengths[next] * 4096, 1);
                next += 1;
                core.handle(now, Input::Chunk(chunk));
            }
            while let Some(output) = core.poll_output() {
                let (member, tag, us) = match output {
                    Output::WriteChunk { place, record, tag, .. } => {
                        let member = usize::from(place.member);
                        placed += 1;
                        let least = written.iter().copied().min().expect("there are members");
                        let drift = written[member] - least;
                        assert!(
                            drift <= *drift_max || balance_yields(filled, filled),
                            "drift: {drift} of {drift_max} before a chunk"
                        );
                        chunks.insert(tag);
                        written[member] += u64::from(record.summary.length);
                        (member, tag, u64::from(record.summary.length) / 4096 * speeds[member])
                    }
                    Output::WriteIndex { place, tag, .. } => (usize::from(place.member), tag, 1),
                    Output::WriteFlowIndex { part, tag } => (usize::from(part.member), tag, 1),
                    Output::Trim { member, tag, .. } | Output::Flush { member, tag } => {
                        (usize::from(member), tag, 1)
                    }
                    Output::Event(Event::Acknowledged { .. }) => {
                        acknowledged += 1;
                        continue;
                    }
                    Output::Release { .. }
                    | Output::Seal { .. }
                    | Output::WantEnd
                    | Output::Event(_) => continue,
                };
                busy_until[member] = busy_until[member].max(now) + Duration::from_micros(us);
                under_way.push((busy_until[member], tag, member));
            }
            let held = core.buffers_held();
            let waiting = held - chunks.len() as u32;
            let still =
                (0..speeds.len()).find(|at| under_way.iter().all(|(_, _, member)| member != at));
            assert!(
                waiting == 0 || still.is_none() || !balance_yields(waiting, held),
                "member {still:?} has nothing to do while {waiting} chunks wait"
            );
            under_way.sort_unstable();
            assert!(
                !under_way.is_empty() || placed == acknowledged,
                "progress: something is under way"
            );
            if under_way.is_empty() {
                continue;
            }
            let (done, tag, _) = under_way.remove(0);
            now = now.max(done);
            chunks.remove(&tag);
            core.handle(now, Input::Done { tag, outcome: Ok(()) });
        }
    }
}
