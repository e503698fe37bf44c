//! Bugs that generated cases have found, each as the case that showed it.

use crate::world::case::{Case, Ending, Fault, MemberCase, RoundCase};
use crate::world::feed::bare;
use crate::world::watch::Kind;
use crate::world::{self, World};
use base::{Bank, BufferId, DriveId, Duration, Instant, Timestamp};
use longtake_recorder::{Config, Event, Input, Output, Placement, Recorder, WhenFull};
use uuid::Uuid;

fn member(
    segments: u64,
    rate_mb: u64,
    latency_us: u64,
    jitter_us: u64,
    depth_max: u32,
) -> MemberCase {
    MemberCase { segments, rate_mb, latency_us, jitter_us, depth_max, trims: false }
}

fn round(length_us: u64, ending: Ending) -> RoundCase {
    RoundCase { length_us, ending, steps_more: 0, faults: Vec::new(), protections: Vec::new() }
}

fn case(members: Vec<MemberCase>, rounds: Vec<RoundCase>) -> Case {
    Case {
        members,
        segment_kib: 256,
        volatile: false,
        placement: Placement::Adaptive,
        when_full: WhenFull::Wrap,
        depth: 2,
        buffers: 8,
        drift_kib: 0,
        flush_us: 2000,
        trim_ahead: 0,
        trim_interval_us: 0,
        rest: 0,
        rest_turn_us: 0,
        queues: 1,
        interval_us: 50,
        rounds,
        seed: 0,
    }
}

#[test]
fn a_ring_of_two_segments_came_round_to_one_whose_index_was_under_way() {
    for (depth, seed) in (1..9).flat_map(|depth| (0..4).map(move |seed| (depth, seed))) {
        for trim_ahead in 0..2 {
            let members = vec![MemberCase { trims: true, ..member(2, 8, 841, 900, 3) }];
            let rounds = vec![round(60_000, Ending::Stop)];
            World::run(Case { depth, seed, trim_ahead, queues: 3, ..case(members, rounds) });
        }
    }
}

#[test]
fn a_chunk_without_room_after_its_write_failed_was_both_a_gap_and_a_loss() {
    for seed in 0..40 {
        let members = vec![member(2, 25, 340, 0, 8), member(2, 40, 700, 0, 8)];
        let mut only = round(60_000, Ending::Stop);
        let kind = Kind::Chunk;
        only.faults = vec![(0, 2000 + seed * 500, Fault::Once { kind, applied: false })];
        let case = case(members, vec![only]);
        World::run(Case { seed, placement: Placement::Stripe, when_full: WhenFull::Stop, ..case });
    }
}

#[test]
fn takes_that_left_no_chunk_shared_their_numbers() {
    let rounds =
        vec![round(100, Ending::Crash), round(100, Ending::Crash), round(100, Ending::Stop)];
    for seed in 0..20 {
        World::run(Case { seed, ..case(vec![member(4, 5, 0, 101, 2)], rounds.clone()) });
    }
}

#[test]
fn an_index_outlived_its_chunks_in_a_power_cut() {
    for seed in 0..60 {
        let members = vec![member(6, 60, 454, 350, 8), member(4, 60, 1493, 900, 8)];
        let case = case(members, vec![round(15_000 + seed * 100, Ending::PowerCut)]);
        World::run(Case { seed, volatile: true, depth: 4, flush_us: 20_000, ..case });
    }
}

#[test]
fn a_member_missing_from_the_array_was_given_chunks() {
    let mut world = World::new(case(vec![member(4, 50, 0, 0, 8); 2], Vec::new()));
    let config = Config {
        take: Uuid::from_u128(1),
        started: Timestamp::from_nanos(world::feed::EPOCH_NS),
        placement: Placement::Stripe,
        when_full: WhenFull::Wrap,
        depth: 1,
        buffers: 4,
        drift_max: 0,
        flush_interval: Duration::from_millis(1),
        trim_ahead: 1,
        trim_interval: Duration::ZERO,
        rest: 0,
        rest_turn: Duration::ZERO,
    };
    let image = world.open(&[1]);
    assert_eq!(image.members[1].drive, DriveId(u16::MAX));
    let mut core = Recorder::new(config, image);
    let mut written = 0;
    for buffer in 0..200 {
        core.handle(Instant::START, Input::Chunk(bare(BufferId(buffer), 8192, 1)));
        while let Some(output) = core.poll_output() {
            let tag = match output {
                Output::WriteChunk { place, tag, .. } => {
                    assert_eq!(place.member, 0);
                    written += 1;
                    tag
                }
                Output::WriteIndex { tag, .. }
                | Output::Trim { tag, .. }
                | Output::Flush { tag, .. } => tag,
                Output::Event(Event::MemberFailed { .. }) => panic!("it was not there to fail"),
                Output::Release { .. }
                | Output::Seal { .. }
                | Output::WantEnd
                | Output::Event(_) => continue,
            };
            core.handle(Instant::START, Input::Done { tag, outcome: Ok(()) });
        }
    }
    assert_eq!(written, 200);
    world.bank.wait(None, &mut Vec::new()).expect("nothing is under way");
}
