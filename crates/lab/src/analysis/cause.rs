//! Why a rate changed: what temperature, throttling and link said at that time.
//!
//! Only what a sample shows counts as evidence; without any the cause is not known, and says so.

use std::fmt;

use base::Duration;
use serde::{Deserialize, Serialize};

use super::changes::Change;

/// A PCIe link as it was running.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Link {
    /// Transfers a second on each lane, in 10^9: 2.5, 5, 8, 16, 32 or 64.
    pub gigatransfers: f64,
    /// Lanes in use.
    pub lanes: u8,
}

impl Link {
    /// What the link carries one way before packet overhead, in bytes a second. Up to 5 GT/s a byte
    /// takes ten bits on the wire, up to 32 GT/s 128 bits take 130 (PCI Express Base Specification,
    /// 4.2), at 64 GT/s 242 of 256 bytes are payload (flits of revision 6).
    pub fn bytes_a_second(&self) -> f64 {
        let carried = match self.gigatransfers {
            g if g <= 5.0 => 8.0 / 10.0,
            g if g <= 32.0 => 128.0 / 130.0,
            _ => 242.0 / 256.0,
        };
        self.gigatransfers * 1e9 / 8.0 * carried * f64::from(self.lanes)
    }
}

impl fmt::Display for Link {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} GT/s x{}", self.gigatransfers, self.lanes)
    }
}

/// What a drive and its link said at an instant of the run's clock. None: not asked, or not told.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Sample {
    /// When, in nanoseconds of the run's clock.
    pub at_ns: u64,
    /// Composite temperature in degrees Celsius.
    pub temperature_celsius: Option<f64>,
    /// Whether the drive was limiting itself because of heat.
    pub throttled: Option<bool>,
    /// The SMART log's critical warning byte; bit 1 is temperature (NVMe Base Specification).
    pub critical_warning: Option<u8>,
    /// The link.
    pub link: Option<Link>,
}

/// The likely cause of a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Cause {
    /// The drive limited itself because of heat, or stopped doing so.
    Heat,
    /// The link ran slower or faster.
    Link,
    /// The cache was full.
    CacheFull,
    /// The drive shrank its cache as it filled up.
    CacheShrunk,
    /// Stale data was being overwritten.
    Overwriting,
    /// Nothing says.
    NotKnown,
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Heat => "heat",
            Self::Link => "the link",
            Self::CacheFull => "the cache was full",
            Self::CacheShrunk => "the cache shrank",
            Self::Overwriting => "overwriting stale data",
            Self::NotKnown => "not known",
        })
    }
}

/// A cause and what speaks for it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Attribution {
    /// The likely cause.
    pub cause: Cause,
    /// What was seen, for people.
    pub evidence: String,
}

/// SMART critical warning: the temperature is beyond a threshold.
const WARNING_TEMPERATURE: u8 = 1 << 1;
/// Samples this near to a change belong to it, at least.
const NEAR_MIN_NS: u64 = 2_000_000_000;

/// The samples of a run, in order of time.
#[derive(Clone, Debug)]
pub struct Samples<'s> {
    samples: Vec<&'s Sample>,
    /// From this temperature on the drive is hot, if it says so itself.
    warning_celsius: Option<f64>,
    near_ns: u64,
}

impl<'s> Samples<'s> {
    /// Samples in any order, and the drive's own warning temperature in degrees Celsius if known.
    pub fn new(samples: &'s [Sample], warning_celsius: Option<f64>) -> Self {
        let mut samples: Vec<&Sample> = samples.iter().collect();
        samples.sort_by_key(|s| s.at_ns);
        let mut gaps: Vec<u64> = samples.windows(2).map(|p| p[1].at_ns - p[0].at_ns).collect();
        gaps.sort_unstable();
        let gap = gaps.get(gaps.len() / 2).copied().unwrap_or(0);
        Self { samples, warning_celsius, near_ns: NEAR_MIN_NS.max(gap.saturating_mul(2)) }
    }

    /// Heat or link, if samples show that it began (or ended, where the rate rose) with the change.
    /// `start_ns` is when the run began, for the text.
    pub fn attribute(&self, change: &Change, start_ns: u64) -> Option<Attribution> {
        let (before, near) = self.around(change)?;
        let seconds = |ns: u64| Duration::from_nanos(ns.saturating_sub(start_ns));
        let link = before.link.and_then(|old| {
            near.iter().find_map(|sample| {
                let new = sample.link?;
                let (was, is) = (old.bytes_a_second(), new.bytes_a_second());
                let fits = if change.is_drop() { is < was } else { is > was };
                fits.then(|| Attribution {
                    cause: Cause::Link,
                    evidence: format!(
                        "the link went from {old} to {new} at about {}",
                        seconds(sample.at_ns)
                    ),
                })
            })
        });
        link.or_else(|| {
            let was = self.is_hot(before)?;
            let turned =
                near.iter().find(|s| was != change.is_drop() && self.is_hot(s) == Some(!was))?;
            let what = if was { "ended" } else { "began" };
            let at = seconds(turned.at_ns);
            Some(Attribution {
                cause: Cause::Heat,
                evidence: format!(
                    "{} {what} at about {at}{}",
                    self.sign(if was { before } else { turned }),
                    temperatures(before, turned)
                ),
            })
        })
    }

    /// What can be said when neither heat nor link explains a change.
    pub fn nothing_seen(&self, change: &Change) -> &'static str {
        match self.around(change) {
            None => "neither temperature nor link was sampled then",
            Some(_) => "neither heat nor a change of the link was seen then",
        }
    }

    /// The last sample before a change, and those near it; None unless there are both.
    fn around(&self, change: &Change) -> Option<(&'s Sample, &[&'s Sample])> {
        let (from, to) = (
            change.ns_range.0.saturating_sub(self.near_ns),
            change.ns_range.1.saturating_add(self.near_ns),
        );
        let first = self.samples.partition_point(|s| s.at_ns < from);
        let end = self.samples.partition_point(|s| s.at_ns <= to);
        let near = &self.samples[first..end];
        // Without a sample well before, the first one near it must do.
        match first.checked_sub(1) {
            Some(last) if !near.is_empty() => Some((self.samples[last], near)),
            _ if near.len() >= 2 => Some((near[0], &near[1..])),
            _ => None,
        }
    }

    fn is_hot(&self, sample: &Sample) -> Option<bool> {
        let warm = sample.temperature_celsius.zip(self.warning_celsius).map(|(t, w)| t >= w);
        let warned = sample.critical_warning.map(|bits| bits & WARNING_TEMPERATURE != 0);
        [sample.throttled, warned, warm].into_iter().flatten().reduce(|a, b| a || b)
    }

    fn sign(&self, sample: &Sample) -> &'static str {
        if sample.throttled == Some(true) {
            "throttling"
        } else if sample.critical_warning.is_some_and(|bits| bits & WARNING_TEMPERATURE != 0) {
            "the drive's temperature warning"
        } else {
            "running above the drive's warning temperature"
        }
    }
}

fn temperatures(before: &Sample, after: &Sample) -> String {
    match (before.temperature_celsius, after.temperature_celsius) {
        (Some(old), Some(new)) => format!(", at {new:.0} °C after {old:.0} °C before"),
        (None, Some(new)) => format!(", at {new:.0} °C"),
        _ => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND_NS: u64 = 1_000_000_000;

    fn change(before: f64, after: f64) -> Change {
        Change {
            index: 100,
            index_range: (99, 101),
            bytes: 100,
            bytes_range: (99, 101),
            at_ns: 100 * SECOND_NS,
            ns_range: (99 * SECOND_NS, 101 * SECOND_NS),
            before,
            after,
            confidence: 0.999,
        }
    }

    fn samples(make: impl Fn(u64) -> Sample) -> Vec<Sample> {
        (0..200).map(|s| Sample { at_ns: s * SECOND_NS, ..make(s) }).collect()
    }

    #[test]
    fn throttling_that_begins_with_a_drop_is_its_cause_and_ends_with_a_rise() {
        let made = samples(|s| Sample {
            throttled: Some(s >= 100),
            temperature_celsius: Some(if s < 100 { 70.0 } else { 84.0 }),
            ..Sample::default()
        });
        let samples = Samples::new(&made, None);
        let found = samples.attribute(&change(2.0, 1.0), 0).unwrap();
        assert_eq!(found.cause, Cause::Heat);
        assert!(found.evidence.contains("84 °C after 70 °C"), "{}", found.evidence);
        assert!(found.evidence.contains("1m 40s"), "{}", found.evidence);
        // A rise is not explained by throttling that begins.
        assert_eq!(samples.attribute(&change(1.0, 2.0), 0), None);
        let cooled: Vec<Sample> =
            made.iter().map(|s| Sample { throttled: s.throttled.map(|t| !t), ..*s }).collect();
        let found = Samples::new(&cooled, None).attribute(&change(1.0, 2.0), 0).unwrap();
        assert!(found.evidence.contains("throttling ended"), "{}", found.evidence);
    }

    #[test]
    fn the_warning_bit_and_the_warning_temperature_are_heat_too() {
        let warned = samples(|s| Sample {
            critical_warning: Some(if s < 100 { 1 } else { 3 }),
            ..Sample::default()
        });
        let found = Samples::new(&warned, None).attribute(&change(2.0, 1.0), 0).unwrap();
        assert!(found.evidence.contains("temperature warning"), "{}", found.evidence);
        let warm = samples(|s| Sample {
            temperature_celsius: Some(60.0 + s as f64 / 10.0),
            ..Sample::default()
        });
        assert_eq!(Samples::new(&warm, None).attribute(&change(2.0, 1.0), 0), None);
        let found = Samples::new(&warm, Some(70.0)).attribute(&change(2.0, 1.0), 0).unwrap();
        assert_eq!(found.cause, Cause::Heat);
    }

    #[test]
    fn a_link_that_slows_down_is_the_cause_and_one_slow_all_along_is_not() {
        let full = Link { gigatransfers: 16.0, lanes: 4 };
        let half = Link { gigatransfers: 8.0, lanes: 4 };
        let made = samples(|s| Sample {
            link: Some(if s < 101 { full } else { half }),
            ..Sample::default()
        });
        let found = Samples::new(&made, None).attribute(&change(2.0, 1.0), 0).unwrap();
        assert_eq!(found.cause, Cause::Link);
        assert!(found.evidence.contains("16 GT/s x4 to 8 GT/s x4"), "{}", found.evidence);
        let slow = samples(|_| Sample { link: Some(half), ..Sample::default() });
        let slow = Samples::new(&slow, None);
        assert_eq!(slow.attribute(&change(2.0, 1.0), 0), None);
        assert!(slow.nothing_seen(&change(2.0, 1.0)).contains("neither heat nor"));
    }

    #[test]
    fn what_happened_at_another_time_is_no_evidence() {
        let made = samples(|s| Sample { throttled: Some(s >= 150), ..Sample::default() });
        assert_eq!(Samples::new(&made, None).attribute(&change(2.0, 1.0), 0), None);
        let none = Samples::new(&[], None);
        assert_eq!(none.attribute(&change(2.0, 1.0), 0), None);
        assert!(none.nothing_seen(&change(2.0, 1.0)).contains("sampled"));
    }

    #[test]
    fn links_carry_what_their_coding_leaves() {
        let carry = |gigatransfers, lanes| Link { gigatransfers, lanes }.bytes_a_second();
        assert_eq!(carry(2.5, 1), 250e6);
        assert_eq!(carry(2.5, 4), carry(5.0, 2));
        assert!((carry(8.0, 4) / 3.938e9 - 1.0).abs() < 1e-3);
    }
}
