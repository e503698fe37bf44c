//! What fits: how much room an array has, how long it lasts at the source's rate, and what a recording of a given length needs.

use std::fmt;

use anyhow::{Result, bail};
use base::{ByteSize, Duration, Rate};
use recorder::open::HeadImage;
use recorder::{ArrayImage, Segment, WhenFull};
use source::spec::SourceSpec;

use super::options::Options;

/// Bytes that a packet takes besides its own: the head and tail of an enhanced packet block (pcapng).
const PACKET_OVERHEAD_BYTES: u64 = 32;

/// Bytes that a block is padded with on average, to a multiple of 4 (pcapng): half of the most.
const PADDING_MEAN_BYTES: u64 = 2;

/// Packets over which the mean length of synthetic ones is taken: a round of the mix.
const SIZES_ROUND: u64 = 12;

/// How much a recording may write.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Capacity {
    /// Bytes of all members' segments.
    pub total_bytes: u64,
    /// Bytes of those that were empty at the start, and of what was left of those that were begun.
    pub free_bytes: u64,
}

impl Capacity {
    pub(super) fn of(image: &ArrayImage) -> Self {
        let mut capacity = Self::default();
        for member in &image.members {
            let bytes = |segments: usize| segments as u64 * member.layout.segment_bytes;
            let empty = member.segments.iter().filter(|s| matches!(s, Segment::Empty)).count();
            capacity.total_bytes += bytes(member.segments.len());
            capacity.free_bytes += bytes(empty);
            // Recording goes on in a segment that was begun.
            let begun = member.head.as_ref().filter(|head| !head.closed && head.used > 0);
            let left = |head: &HeadImage| member.layout.segment_bytes.saturating_sub(head.used);
            capacity.free_bytes += begun.map_or(0, left);
        }
        capacity
    }

    /// Bytes left once so many were written.
    pub fn left(&self, written: u64) -> u64 {
        self.free_bytes.saturating_sub(written)
    }

    /// The share that is in use once so many bytes were written, at most 1.
    pub fn fill(&self, written: u64) -> f64 {
        1.0 - self.left(written) as f64 / self.total_bytes.max(1) as f64
    }
}

/// The rate at which a source delivers.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Offered {
    /// Bytes of packets a second.
    rate: Rate,
    /// Bytes on the media for a byte of packets, without parity.
    growth: f64,
    /// What this is only the most of, in words; empty if it is what will be written.
    at_most: &'static str,
}

/// Why the speed of a link is only the most that comes.
const LINE_RATE: &str = "line rate, ";

/// Why a source's rate is only the most that is stored.
const BEFORE_RETENTION: &str = "before --slice and --cut, ";

impl Offered {
    /// The rate of a source, where it is known: a generated one has one, and an interface the speed of its link. It is only the most
    /// if what is kept depends on the packets.
    pub(super) fn of(spec: &SourceSpec, how: &Options) -> Option<Self> {
        let slice = how.kept_at_most().unwrap_or(u32::MAX);
        let at_most = if how.keeps_by_content() { BEFORE_RETENTION } else { "" };
        match spec {
            SourceSpec::Synthetic(options) => {
                let rate = options.pace.rate()?;
                let length = |n| u64::from(options.sizes.of(n));
                let kept = |n| length(n).min(slice.into());
                let stored = |n| kept(n).next_multiple_of(4) + PACKET_OVERHEAD_BYTES;
                let bytes: u64 = (0..SIZES_ROUND).map(length).sum();
                let media: u64 = (0..SIZES_ROUND).map(stored).sum();
                Some(Self { rate, growth: media as f64 / bytes as f64, at_most })
            }
            SourceSpec::Traffic(options) => {
                let rate = options.pace.rate()?;
                let packet = f64::from(options.mean_bytes());
                let growth = 1.0 + (PACKET_OVERHEAD_BYTES + PADDING_MEAN_BYTES) as f64 / packet;
                // How long its packets are is known only on average.
                let at_most = if slice < u32::MAX { BEFORE_RETENTION } else { at_most };
                Some(Self { rate, growth, at_most })
            }
            SourceSpec::Interface(interface) => {
                let file = format!("/sys/class/net/{}/speed", interface.name);
                let megabits: i64 = std::fs::read_to_string(file).ok()?.trim().parse().ok()?;
                let megabits = u64::try_from(megabits).ok().filter(|&megabits| megabits > 0)?;
                Some(Self::of_link(Rate(megabits as f64 * 125_000.0)))
            }
            _ => None,
        }
    }

    /// What comes over a link of this speed at most.
    pub(super) fn of_link(rate: Rate) -> Self {
        Self { rate, growth: 1.0, at_most: LINE_RATE }
    }
}

/// What fits on an array.
#[derive(Clone, Debug, PartialEq)]
pub struct Fits {
    when_full: WhenFull,
    room_bytes: u64,
    offered: Option<Offered>,
    /// How long the room lasts, where the rate is known.
    pub holds: Option<Duration>,
    duration: Option<Duration>,
    /// Bytes that the recording writes in its time, where that and the rate are known.
    pub needs_bytes: Option<u64>,
}

impl Fits {
    /// For so much room on so many members, `parity` of which hold parity.
    pub(super) fn new(
        (when_full, duration): (WhenFull, Option<Duration>),
        room_bytes: u64,
        (members, parity): (usize, u8),
        offered: Option<Offered>,
    ) -> Self {
        let data = members.saturating_sub(usize::from(parity)).max(1) as f64;
        let share = members.max(1) as f64 / data;
        let media = offered.map(|offered| offered.rate.0 * offered.growth * share);
        Self {
            when_full,
            room_bytes,
            offered,
            holds: media.map(|rate| Duration::from_secs_f64(room_bytes as f64 / rate.max(1.0))),
            duration,
            needs_bytes: media.zip(duration).map(|(rate, time)| (rate * time.as_secs_f64()) as u64),
        }
    }

    /// Refuses a recording that falls short, if it is to be strict.
    ///
    /// # Errors
    /// If it falls short.
    pub(super) fn suits(&self, strict: bool) -> Result<()> {
        if strict && self.falls_short() {
            bail!(
                "{self}: --strict refuses to start; use more or larger members (--members, --member-size), a shorter --for, \
                 or --when-full wrap"
            );
        }
        Ok(())
    }

    /// Whether the source's rate is known, and not only the most that it can deliver.
    pub fn is_certain(&self) -> bool {
        self.offered.is_some_and(|offered| offered.at_most.is_empty())
    }

    /// Whether the recording will not fit. A ring overwrites instead, and the speed of a link is no promise to use it.
    pub fn falls_short(&self) -> bool {
        let stops = self.when_full == WhenFull::Stop;
        self.is_certain() && stops && self.needs_bytes > Some(self.room_bytes)
    }
}

impl fmt::Display for Fits {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ring = self.when_full == WhenFull::Wrap;
        write!(f, "the {} has {}", if ring { "ring" } else { "array" }, ByteSize(self.room_bytes))?;
        f.write_str(if ring { "" } else { " free" })?;
        let (Some(holds), Some(offered)) = (self.holds, self.offered) else { return Ok(()) };
        let rate = ByteSize(offered.rate.0 as u64);
        let line = offered.at_most;
        if ring {
            return write!(f, " and reaches {holds} back at {line}{rate}/s");
        }
        write!(f, " and holds {holds} at {line}{rate}/s")?;
        match (self.duration, self.needs_bytes) {
            (Some(time), Some(needs)) => write!(f, "; --for {time} needs {}", ByteSize(needs)),
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fits(source: &str, when_full: WhenFull, seconds: u64, parity: u8) -> Fits {
        kept(source, when_full, seconds, parity, &Options::default())
    }

    fn kept(
        source: &str,
        when_full: WhenFull,
        seconds: u64,
        parity: u8,
        options: &Options,
    ) -> Fits {
        let offered = Offered::of(&source.parse().unwrap(), options);
        let duration = Some(Duration::from_secs(seconds));
        Fits::new((when_full, duration), 8_000_000_000, (4, parity), offered)
    }

    #[test]
    fn slices_of_known_length_make_the_room_last_and_others_are_a_limit_alone() {
        let sliced = Options { slice: "128".parse().ok(), ..Options::default() };
        let fits = kept("synthetic:1GB/s,size=1500", WhenFull::Stop, 60, 0, &sliced);
        // A block of 160 bytes for 1500: 75 s.
        assert!((fits.holds.unwrap().as_secs_f64() - 75.0).abs() < 0.1);
        assert!(!fits.falls_short() && fits.is_certain());
        for options in [
            Options { slice: "headers".parse().ok(), ..Options::default() },
            Options { cut: Some(ByteSize(10_000)), ..Options::default() },
        ] {
            let fits = kept("synthetic:1GB/s", WhenFull::Stop, 3600, 0, &options);
            assert!(!fits.falls_short() && !fits.is_certain());
            assert!(fits.to_string().contains("before --slice and --cut, 1.00 GB/s"), "{fits}");
        }
        let traffic = kept("traffic:1GB/s", WhenFull::Stop, 3600, 0, &sliced);
        assert!(!traffic.is_certain());
    }

    #[test]
    fn a_recording_that_needs_more_than_there_is_falls_short_and_says_by_how_much() {
        let fits = fits("synthetic:1GB/s", WhenFull::Stop, 3600, 0);
        assert!(fits.falls_short());
        assert_eq!(
            fits.to_string(),
            "the array has 8.00 GB free and holds 7.83 s at 1.00 GB/s; --for 1h 00m 00s needs 3.68 TB"
        );
    }

    #[test]
    fn parity_shortens_what_an_array_holds_by_its_share() {
        let [without, with] =
            [0, 1].map(|parity| fits("synthetic:1GB/s", WhenFull::Stop, 7, parity));
        assert!(!without.falls_short());
        assert!(with.falls_short());
        let (without, with) = (without.holds.unwrap(), with.holds.unwrap());
        assert!((with.as_secs_f64() / without.as_secs_f64() - 0.75).abs() < 1e-6);
    }

    #[test]
    fn a_ring_says_how_far_back_it_reaches_and_never_falls_short() {
        let fits = fits("synthetic:1GB/s", WhenFull::Wrap, 3600, 0);
        assert!(!fits.falls_short());
        assert_eq!(fits.to_string(), "the ring has 8.00 GB and reaches 7.83 s back at 1.00 GB/s");
    }

    #[test]
    fn without_a_rate_only_the_room_is_known() {
        let fits = fits("udp:127.0.0.1:5000", WhenFull::Stop, 3600, 0);
        assert!(!fits.falls_short());
        assert_eq!(fits.to_string(), "the array has 8.00 GB free");
    }
}
