//! The core alone, told by a test what its members did and when: how soon it flushes them, and what it does with one that failed.

use crate::hand::bare;
use crate::worlds::config;
use crate::writes::roomy;
use base::{BufferId, DeviceError, Duration, Instant, Timestamp};
use chaos::source::EPOCH_NS;
use longtake_recorder::{Config, Event, Input, Output, Placement, Recorder, WhenFull};
use proptest::prelude::*;
use uuid::Uuid;

const FLUSH: Duration = Duration::from_micros(50);

proptest! {
    #![proptest_config(config(200))]

    #[test]
    fn every_member_is_flushed_within_the_interval_after_what_it_acknowledged(
        members in 1usize..5,
        interval_us in 500u64..5000,
        gaps_us in proptest::collection::vec(0u64..3000, 20..80),
        write_us in 10u64..400,
    ) {
        let interval = Duration::from_micros(interval_us);
        let mut alone = Alone::new(members, interval, Duration::from_micros(write_us), None);
        alone.run(&gaps_us);
        prop_assert!(alone.flushes > 0);
    }

    #[test]
    fn a_member_that_fails_gets_nothing_more_and_the_others_take_over_what_was_on_its_way(
        members in 2usize..5,
        dead in any::<u16>(),
        dies_us in 1u64..200,
        gaps_us in proptest::collection::vec(0u64..20, 60..120),
        write_us in 50u64..400,
    ) {
        let dies = (dead % members as u16, Instant::START + Duration::from_micros(dies_us));
        let interval = Duration::from_millis(1);
        let mut alone = Alone::new(members, interval, Duration::from_micros(write_us), Some(dies));
        alone.run(&gaps_us);
        prop_assert_eq!(alone.failed, Some(dies.0));
        prop_assert!(alone.after_the_failure > 10, "the take goes on");
    }
}

/// A command that a member was given: when it is done, and by what name.
struct UnderWay {
    done: Instant,
    tag: u64,
    member: u16,
}

/// The core, and what its members are doing.
struct Alone {
    core: Recorder,
    now: Instant,
    interval: Duration,
    write: Duration,
    dies: Option<(u16, Instant)>,
    under_way: Vec<UnderWay>,
    /// Since when each member has acknowledged something that no flush covers.
    unflushed: Vec<Option<Instant>>,
    flushes: usize,
    acknowledged: usize,
    failed: Option<u16>,
    /// Chunks that were acknowledged after the failure.
    after_the_failure: usize,
}

impl Alone {
    fn new(
        members: usize,
        interval: Duration,
        write: Duration,
        dies: Option<(u16, Instant)>,
    ) -> Self {
        let config = Config {
            take: Uuid::from_u128(1),
            started: Timestamp::from_nanos(EPOCH_NS),
            placement: Placement::Adaptive,
            when_full: WhenFull::Stop,
            depth: 2,
            buffers: 16,
            drift_max: 1 << 20,
            flush_interval: interval,
            trim_ahead: 0,
            trim_interval: Duration::ZERO,
            rest: 0,
            rest_turn: Duration::ZERO,
            flow_indexes: false,
        };
        Self {
            core: Recorder::new(config, roomy(members)),
            now: Instant::START,
            interval,
            write,
            dies,
            under_way: Vec::new(),
            unflushed: vec![None; members],
            flushes: 0,
            acknowledged: 0,
            failed: None,
            after_the_failure: 0,
        }
    }

    /// Hands over a chunk after each gap, and lets time pass until all are acknowledged and flushed.
    fn run(&mut self, gaps_us: &[u64]) {
        let mut arrives = self.now;
        for (number, gap) in (0..).zip(gaps_us) {
            arrives = arrives.max(self.now) + Duration::from_micros(*gap);
            while self.now < arrives || self.core.buffers_held() >= 8 {
                let room = self.core.buffers_held() < 8;
                self.step(room.then_some(arrives));
            }
            self.core.handle(self.now, Input::Chunk(bare(BufferId(number), 4096, 1)));
            self.look();
        }
        while self.acknowledged < gaps_us.len() || self.unflushed.iter().any(Option::is_some) {
            self.step(None);
        }
    }

    /// To the next event: a command is done, the core wants to be called, or `until`.
    fn step(&mut self, until: Option<Instant>) {
        self.under_way.sort_by_key(|command| (command.done, command.tag));
        let done = self.under_way.first().map(|command| command.done);
        let next = [until, done, self.core.poll_timeout()].into_iter().flatten().min();
        self.now = self.now.max(next.expect("something is to come"));
        if done.is_some_and(|done| done <= self.now) {
            let UnderWay { tag, member, .. } = self.under_way.remove(0);
            let dead = self.dies.is_some_and(|(dead, at)| dead == member && at <= self.now);
            let outcome = if dead { Err(DeviceError::Gone) } else { Ok(()) };
            self.core.handle(self.now, Input::Done { tag, outcome });
        } else {
            self.core.handle(self.now, Input::Tick);
        }
        self.look();
        for since in self.unflushed.iter().flatten() {
            let late = self.now.since(*since);
            assert!(
                late <= self.interval + FLUSH,
                "not flushed for {late:?} of {:?}",
                self.interval
            );
        }
    }

    /// Takes what the core puts out. Commands come first, though they were decided on after what the events tell.
    fn look(&mut self) {
        let outputs: Vec<Output> = std::iter::from_fn(|| self.core.poll_output()).collect();
        let (events, commands): (Vec<_>, Vec<_>) =
            outputs.into_iter().partition(|output| matches!(output, Output::Event(_)));
        for output in events.into_iter().chain(commands) {
            match output {
                Output::WriteChunk { place, tag, .. } | Output::WriteIndex { place, tag, .. } => {
                    self.give(place.member, tag, self.write);
                }
                Output::WriteFlowIndex { part, tag } => self.give(part.member, tag, self.write),
                Output::Trim { member, tag, .. } => self.give(member, tag, self.write),
                Output::Flush { member, tag } => {
                    self.flushes += 1;
                    self.unflushed[usize::from(member)] = None;
                    self.give(member, tag, FLUSH);
                }
                Output::Event(event) => self.event(&event),
                Output::Release { .. } | Output::Seal { .. } | Output::WantEnd => {}
            }
        }
    }

    fn give(&mut self, member: u16, tag: u64, takes: Duration) {
        assert_ne!(self.failed, Some(member), "a member that failed was given something");
        self.under_way.push(UnderWay { done: self.now + takes, tag, member });
    }

    fn event(&mut self, event: &Event) {
        match event {
            Event::Acknowledged { member, .. } => {
                assert_ne!(self.failed, Some(*member));
                self.acknowledged += 1;
                self.after_the_failure += usize::from(self.failed.is_some());
                self.unflushed[usize::from(*member)].get_or_insert(self.now);
            }
            Event::MemberFailed { member, .. } => {
                self.failed = Some(*member);
                self.unflushed[usize::from(*member)] = None;
            }
            Event::NoMemberLeft | Event::ArrayFull { .. } => panic!("{event}"),
            _ => {}
        }
    }
}
