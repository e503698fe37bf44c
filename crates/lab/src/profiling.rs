//! Profiling: what experiments found of one drive, as the profile that planning and simulating read.

use load::Measurement;
use profile::{FillCurve, Known, Profile, Source, SourceKind};

use crate::analysis::Series;
use crate::answer::{Figure, Unit};
use crate::fitting::trials::point_name;

/// What a drive is, as a profile says it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity<'a> {
    /// What the profile is called; what can't be in a file's name becomes `-`. Empty: the model's name.
    pub name: &'a str,
    /// The model as the drive tells it.
    pub model: &'a str,
    /// What kind of drive: `nvme`, `sata`, `file`, `simulated`.
    pub kind: &'a str,
    /// Bytes that can be addressed.
    pub capacity_bytes: u64,
    /// Unit of offsets and lengths of reads and writes.
    pub block_bytes: u32,
    /// Unit of trims, if it can trim.
    pub trim_bytes: Option<u32>,
    /// Bytes that the maker guarantees can be written in its life, if known.
    pub endurance_bytes: Option<u64>,
}

/// The profile of one drive from the figures of all its results. `when` is the day as `2026-11-21`, `place` the machine it
/// was measured on.
pub fn profile(figures: &[Figure], drive: &Identity<'_>, when: &str, place: &str) -> Profile {
    let name = if drive.name.is_empty() { drive.model } else { drive.name };
    let mut profile = Profile::new(&file_name(name), drive.model, drive.kind, drive.capacity_bytes);
    let source = |kind, origin| Source { kind, origin, when: Some(when.to_owned()) };
    add(&mut profile, figures, &measured(when, place));
    let told = [
        (profile::name::BLOCK_UNIT, Some(u64::from(drive.block_bytes))),
        (profile::name::TRIM_UNIT, drive.trim_bytes.map(u64::from)),
        (profile::name::ENDURANCE, drive.endurance_bytes),
    ];
    for (name, value) in told {
        let Some(value) = value else { continue };
        profile.figures.insert(
            name.to_owned(),
            Known {
                value: value as f64,
                unit: Unit::Bytes,
                range: None,
                confidence: None,
                note: String::new(),
                source: source(SourceKind::Published, format!("the drive itself, on {place}")),
            },
        );
    }
    profile
}

/// Longtake itself as a source, on a day as `2026-11-21` and on this machine.
pub fn measured(when: &str, place: &str) -> Source {
    let origin = format!("longtake on {place}");
    Source { kind: SourceKind::Measured, origin, when: Some(when.to_owned()) }
}

/// Adds figures from one source. Those without a value are left out, and so are those below zero: they are differences
/// between workloads, not properties of a drive. A figure that the profile has already stays as it is.
pub fn add(profile: &mut Profile, figures: &[Figure], source: &Source) {
    for figure in figures {
        let Some(value) = figure.value.filter(|value| value.is_finite() && *value >= 0.0) else {
            continue;
        };
        let finite = |(low, high): &(f64, f64)| low.is_finite() && high.is_finite() && low <= high;
        profile.figures.entry(figure.name.clone()).or_insert_with(|| Known {
            value,
            unit: figure.unit,
            range: figure.range.filter(finite),
            confidence: figure.confidence.filter(|c| (0.0..=1.0).contains(c)),
            note: figure.note.clone(),
            source: source.clone(),
        });
    }
}

/// Steps that a profile keeps of a fill curve, at most; neighbours whose rates differ by less than this share are one.
const STEPS_MAX: usize = 200;
const SAME_SHARE: f64 = 0.02;

/// The curve of a pass over an empty drive, in few steps; None if nothing was written.
pub fn fill_curve(pass: &Series, source: &Source) -> Option<FillCurve> {
    let steps = fill_steps(pass);
    (!steps.is_empty()).then(|| FillCurve { steps, source: source.clone() })
}

/// Its steps: bytes written when each ends, and its rate in bytes a second.
pub(crate) fn fill_steps(pass: &Series) -> Vec<(u64, f64)> {
    let mut steps: Vec<(u64, f64)> = Vec::new();
    let (mut written, mut begun, mut spent_s) = (0, 0, 0.0);
    for point in pass.by_equal_bytes(STEPS_MAX).points() {
        let (rate, seconds) = (point.rate(), point.duration_ns as f64 / 1e9);
        let same = |last: f64| (rate / last - 1.0).abs() < SAME_SHARE;
        match steps.last_mut().filter(|last| same(last.1)) {
            None => (begun, spent_s) = (written, seconds),
            Some(_) => {
                steps.pop();
                spent_s += seconds;
            }
        }
        written += point.bytes;
        steps.push((written, (written - begun) as f64 / spent_s));
    }
    steps
}

/// What a single workload tells of a drive: rates and latencies of sequential streams and of random reads, each running alone. A
/// mix tells nothing of either.
pub fn workload_figures(measurement: &Measurement) -> Vec<Figure> {
    let [stream] = measurement.workload.streams.as_slice() else { return Vec::new() };
    let Some((name, verb)) = point_name(stream) else { return Vec::new() };
    let Some(result) = measurement.result(&stream.name, verb) else { return Vec::new() };
    // What was asked for at a rate tells the rate that was asked for.
    let rate = stream.rate.is_none().then_some(result.bytes_per_s);
    let mut figures = vec![Figure::new(&name, "rate", rate, Unit::BytesPerSecond)];
    for percent in [50.0, 99.0, 99.9, 99.99] {
        let value = result.response.percentile(percent).map(|ns| ns as f64);
        let name = format!("{name}.p{percent}");
        figures.push(Figure::new(&name, "latency", value, Unit::Nanoseconds));
    }
    figures
}

/// A name that can be a file's and a profile's.
pub fn file_name(text: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    let name: String = text.trim().chars().map(|c| if plain(c) { c } else { '-' }).collect();
    let name = name.trim_matches(['-', '.']).to_ascii_lowercase();
    if name.is_empty() { "drive".to_owned() } else { name }
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::{ByteSize, Rate};

    fn identity<'a>() -> Identity<'a> {
        Identity {
            name: "",
            model: "Samsung SSD 970 EVO/Plus 1TB ",
            kind: "nvme",
            capacity_bytes: 1_000_204_886_016,
            block_bytes: 512,
            trim_bytes: Some(4096),
            endurance_bytes: Some(600_000_000_000_000),
        }
    }

    #[test]
    fn measured_figures_become_a_profile_that_reads_back() {
        let rate = Unit::BytesPerSecond;
        let native = Figure {
            range: Some((1.59e9, 1.61e9)),
            ..Figure::new("write.native", "native", 1.6e9, rate)
        };
        let cache = Figure {
            confidence: Some(0.9999),
            ..Figure::new("write.cache_bytes", "cache", 42e9, Unit::Bytes)
        };
        let figures = [
            native,
            cache,
            Figure::new("write.shrink_bytes", "shrink", None, Unit::Bytes).noted("not seen"),
            Figure::new("write.native", "told twice", 9e9, rate),
            Figure::new("mix.change", "a difference", -3.0, Unit::Percent),
        ];
        let profile = profile(&figures, &identity(), "2026-11-21", "host");
        assert_eq!(profile.name, "samsung-ssd-970-evo-plus-1tb");
        assert_eq!(profile.native_write(), Some(Rate(1.6e9)));
        assert_eq!(profile.cache(), Some(ByteSize(42_000_000_000)));
        assert_eq!(profile.shrink(), None);
        assert_eq!(profile.known("mix.change"), None);
        assert_eq!(profile.endurance(), Some(ByteSize(600_000_000_000_000)));
        let known = profile.known("write.native").unwrap();
        assert_eq!(known.range, Some((1.59e9, 1.61e9)));
        assert_eq!(known.source.origin, "longtake on host");
        let text = profile.to_toml().unwrap();
        assert_eq!(Profile::from_toml(&text).unwrap(), profile);
    }

    #[test]
    fn a_name_that_could_leave_the_folder_does_not() {
        for (name, expected) in [("../../etc/x", "etc-x"), ("", "drive"), ("A B", "a-b")] {
            assert_eq!(file_name(name), expected);
        }
    }
}
