//! Bugs that generated cases have found, each as the case that showed it.

use crate::hand::bare;
use crate::worlds::{self, keeps_the_laws, plain, trims, with_seed};
use base::{Bank, BufferId, DeviceError, DriveId, Duration, Instant, Timestamp};
use chaos::adversary::{Drive, Pace};
use chaos::case::{Ending, Round};
use chaos::fault::{Applied, Fault, Kind, What};
use chaos::source::EPOCH_NS;
use chaos::{Case, World};
use format::layout::{DATA_OFFSET, SUPERBLOCK_BYTES};
use longtake_recorder::open::open_some;
use longtake_recorder::{Config, Event, Input, Output, Placement, Recorder, WhenFull};
use uuid::Uuid;

/// A drive of so many segments, MB/s and microseconds for a command, up to so many more so that commands overtake each other.
fn member(segments: u64, rate_mb: u64, latency_us: u64, jitter_us: u64, depth_max: u32) -> Drive {
    let pace = match jitter_us {
        0 => Pace::Even(latency_us),
        _ => Pace::Spread(latency_us + jitter_us),
    };
    Drive { depth_max, ..worlds::drive(segments, pace, 1_024_000 / rate_mb) }
}

fn round(length_us: u64, ending: Ending) -> Round {
    worlds::round(Duration::from_micros(length_us), ending)
}

#[test]
fn a_ring_of_two_segments_came_round_to_one_whose_index_was_under_way() {
    for (depth, seed) in (1..9).flat_map(|depth| (0..4).map(move |seed| (depth, seed))) {
        for trim_ahead in 0..2 {
            let members = vec![trims(member(2, 8, 841, 900, 3))];
            let case = plain(members, vec![round(60_000, Ending::Stop)]);
            keeps_the_laws(&with_seed(
                seed,
                Case { depth, trim_ahead, queues: 3, pages_max: 15, ..case },
            ));
        }
    }
}

#[test]
fn a_chunk_without_room_after_its_write_failed_was_both_a_gap_and_a_loss() {
    for seed in 0..40 {
        let members = vec![member(2, 25, 340, 0, 8), member(2, 40, 700, 0, 8)];
        let mut only = round(60_000, Ending::Stop);
        only.faults.push(Fault {
            drive: 0,
            from: Instant::START + Duration::from_micros(2000 + seed * 500),
            to: Instant::from_nanos(u64::MAX / 2),
            what: What::Fails {
                kind: Kind::Write,
                from: DATA_OFFSET,
                to: members[0].capacity_bytes - SUPERBLOCK_BYTES,
                error: DeviceError::Medium,
                applied: Applied::Nothing,
                left: 1,
            },
        });
        let (placement, when_full) = (Placement::Stripe, WhenFull::Stop);
        let case = Case { placement, when_full, ..plain(members, vec![only]) };
        keeps_the_laws(&with_seed(seed, case));
    }
}

#[test]
fn takes_that_left_no_chunk_shared_their_numbers() {
    for seed in 0..20 {
        let endings = [Ending::Kill, Ending::Kill, Ending::Stop];
        let rounds = endings.map(|ending| round(100, ending)).to_vec();
        keeps_the_laws(&with_seed(seed, plain(vec![member(4, 5, 0, 101, 2)], rounds)));
    }
}

#[test]
fn an_index_outlived_its_chunks_in_a_power_cut() {
    for seed in 0..60 {
        let mut members = vec![member(6, 60, 454, 350, 8), member(4, 60, 1493, 900, 8)];
        members.iter_mut().for_each(|member| member.volatile = true);
        let case = plain(members, vec![round(15_000 + seed * 100, Ending::PowerCut)]);
        let flush_interval = Duration::from_millis(20);
        keeps_the_laws(&with_seed(seed, Case { depth: 4, flush_interval, ..case }));
    }
}

#[test]
fn a_member_missing_from_the_array_was_given_chunks() {
    let case = plain(vec![member(4, 50, 0, 0, 8); 2], Vec::new());
    let world = World::new(&case, None);
    let config = Config {
        take: Uuid::from_u128(1),
        started: Timestamp::from_nanos(EPOCH_NS),
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
        flow_indexes: false,
    };
    let mut bank = world.drives.another(|drive| drive != 1);
    let image = open_some(&mut world.reader(&mut bank), true).expect("one of two is there");
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
                | Output::WriteFlowIndex { tag, .. }
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
    bank.wait(None, &mut Vec::new()).expect("nothing is under way");
}

#[test]
fn a_listing_by_time_counted_as_lost_what_a_later_segment_held() {
    // The second drive keeps its chunks waiting and then refuses one, so that all of them are placed anew on the first drive, behind
    // chunks of later packets; by then its ring has given up what was numbered next to them.
    for seed in 330..390 {
        let drives = vec![member(4, 400, 15, 1, 10), member(2, 6400, 15, 1, 21)];
        let us = |us: u64| Instant::START + Duration::from_micros(us);
        let fault = |from, to, what| Fault { drive: 1, from: us(from), to: us(to), what };
        let refuses = What::Fails {
            kind: Kind::Write,
            from: 0,
            to: drives[1].capacity_bytes,
            error: DeviceError::Medium,
            applied: Applied::Part,
            left: 1,
        };
        let mut only = round(60_940, Ending::PowerCut);
        let from = 15_000 + seed % 20 * 500;
        let until = from + 10_000 + seed / 20 * 1000;
        only.faults =
            vec![fault(from, until, What::Stalls), fault(until - 8000, 60_000_000, refuses)];
        let case = with_seed(seed, plain(drives, vec![only]));
        let case = Case {
            depth: 5,
            buffers: 17,
            burst: 3,
            pages_max: 15,
            drift_max: 131_072,
            interval: Duration::from_micros(1108),
            flush_interval: Duration::from_micros(3025),
            ..case
        };
        let mut world = World::new(&case, None);
        world.run();
        let catalog = world.judge(false);
        (0..255).for_each(|share| world.judge_span(&catalog, (share, share + 1)));
    }
}
