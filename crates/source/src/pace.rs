//! When to send each packet of a replay: the recorded distances, scaled, or no waiting at all.
//! Pure: it is told the packets' time stamps and answers with offsets from the start.

use std::fmt;

use base::{Duration, Timestamp};

/// How fast to replay.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Pace {
    /// With the recorded distances between packets, divided by `speed`: 2.0 is twice as fast.
    Recorded {
        /// A finite number above 0.
        speed: f64,
    },
    /// Each packet as soon as the one before is gone.
    Fastest,
}

impl Pace {
    /// The recorded distances divided by `speed`.
    ///
    /// # Errors
    /// [`SpeedError`] unless `speed` is a finite number above 0.
    pub fn recorded(speed: f64) -> Result<Self, SpeedError> {
        if speed.is_finite() && speed > 0.0 {
            Ok(Self::Recorded { speed })
        } else {
            Err(SpeedError { speed })
        }
    }
}

/// A speed that nothing can be replayed at.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SpeedError {
    speed: f64,
}

impl fmt::Display for SpeedError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "can't replay at {} times the recorded speed: give a number above 0, as in 0.5 or 2",
            self.speed
        )
    }
}

impl std::error::Error for SpeedError {}

/// Turns the time stamps of one replay into offsets from its start.
#[derive(Clone, Debug)]
pub struct Schedule {
    pace: Pace,
    first: Option<Timestamp>,
}

impl Schedule {
    /// A schedule whose start is its first packet.
    pub const fn new(pace: Pace) -> Self {
        Self { pace, first: None }
    }

    /// When to send the packet captured at `timestamp`, counted from the start of the replay. The
    /// first packet starts it, at zero; one that was captured before the first is due at zero too.
    pub fn due(&mut self, timestamp: Timestamp) -> Duration {
        let first = *self.first.get_or_insert(timestamp);
        match self.pace {
            Pace::Fastest => Duration::ZERO,
            // Exact: a float has no more than 53 bits, nanoseconds of a long take need more.
            Pace::Recorded { speed: 1.0 } => timestamp.since(first),
            Pace::Recorded { speed } => {
                Duration::from_nanos((timestamp.since(first).as_nanos() as f64 / speed) as u64)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const fn at(ns: u64) -> Timestamp {
        Timestamp::from_nanos(1_700_000_000_000_000_000 + ns)
    }

    #[test]
    fn recorded_distances_are_divided_by_the_speed() {
        for (speed, due_ns) in [(1.0, 3_000), (2.0, 1_500), (0.5, 6_000)] {
            let mut schedule = Schedule::new(Pace::recorded(speed).unwrap());
            assert_eq!(schedule.due(at(500)), Duration::ZERO);
            assert_eq!(schedule.due(at(3_500)), Duration::from_nanos(due_ns));
        }
    }

    #[test]
    fn as_fast_as_possible_means_due_at_once() {
        let mut schedule = Schedule::new(Pace::Fastest);
        assert_eq!(schedule.due(at(0)), Duration::ZERO);
        assert_eq!(schedule.due(at(9_000_000_000)), Duration::ZERO);
    }

    #[test]
    fn a_packet_older_than_the_first_is_due_at_once() {
        let mut schedule = Schedule::new(Pace::recorded(1.0).unwrap());
        schedule.due(at(1_000));
        assert_eq!(schedule.due(at(10)), Duration::ZERO);
        assert_eq!(schedule.due(at(1_010)), Duration::from_nanos(10));
    }

    #[test]
    fn a_speed_that_is_no_positive_number_is_refused_with_an_example() {
        for speed in [0.0, -1.0, f64::NAN, f64::INFINITY] {
            let message = Pace::recorded(speed).unwrap_err().to_string();
            assert!(message.contains("0.5 or 2"), "{message}");
        }
    }

    proptest! {
        #[test]
        fn at_recorded_speed_every_distance_is_exact(
            offsets in prop::collection::vec(0..u64::MAX / 4, 1..50),
        ) {
            let mut schedule = Schedule::new(Pace::recorded(1.0).unwrap());
            for &ns in &offsets {
                let expected = ns.saturating_sub(offsets[0]);
                prop_assert_eq!(schedule.due(at(ns)).as_nanos(), expected);
            }
        }

        #[test]
        fn packets_in_order_are_due_in_order_at_any_speed(
            mut offsets in prop::collection::vec(0..u64::MAX / 4, 1..50),
            speed in 0.001f64..1000.0,
        ) {
            offsets.sort_unstable();
            let mut schedule = Schedule::new(Pace::recorded(speed).unwrap());
            let due: Vec<Duration> = offsets.iter().map(|&ns| schedule.due(at(ns))).collect();
            prop_assert!(due.is_sorted());
        }
    }
}
