//! Logs of runs in virtual time, whole, cut off and damaged.

use base::{Duration, Latencies};
use hdrhistogram::serialization::interval_log::{IntervalLogIterator, LogEntry};
use load::hdr_log::{HdrLog, HdrLogError, Logged, Stamps, Tag, read};
use load::{Interval, StreamInterval, Verb, Workload};
use longtake_load as load;
use proptest::prelude::*;

const TEXT: &str = "[[stream]]\nname = 'two words'\nread = 1\n[[stream]]\nname = 'w'\nwrite = 1";

fn latencies(first_ns: u64, count: u64) -> Latencies {
    let mut latencies = Latencies::default();
    (0..count).for_each(|k| latencies.record(Duration::from_nanos(first_ns + 1_003 * k * k)));
    latencies
}

fn intervals() -> Vec<Interval> {
    (0..4)
        .map(|index| {
            let start = Duration::from_nanos(123 + index * 1_000_000_000);
            let mut interval = Interval::new(index, start, index == 0);
            interval.length =
                Duration::from_nanos(if index == 3 { 123_456_789 } else { 1_000_000_000 });
            let stream = |count| StreamInterval {
                service: latencies(80_001 + index, count),
                response: latencies(90_001 + index, count),
                ..StreamInterval::default()
            };
            interval.streams.insert((0, Verb::Read), stream(300));
            interval.streams.insert((1, Verb::Write), stream(10 * index));
            interval
        })
        .collect()
}

fn log() -> Vec<u8> {
    let mut bytes = Vec::new();
    let workload = Workload::from_toml(TEXT).unwrap();
    let mut log = HdrLog::new(&mut bytes, 1_795_000_000_250_000_000, &workload).unwrap();
    intervals().iter().for_each(|interval| log.write(interval).unwrap());
    bytes
}

fn whole(bytes: &[u8]) -> Vec<Logged> {
    read(bytes).collect::<Result<_, _>>().unwrap()
}

#[test]
fn everything_comes_back_exactly() {
    let bytes = log();
    let mut reader = read(bytes.as_slice());
    let found: Vec<Logged> = reader.by_ref().map(Result::unwrap).collect();
    assert_eq!(reader.start_utc(), Some(Duration::from_nanos(1_795_000_000_250_000_000)));
    assert!(!reader.cut_off());
    let mut found = found.into_iter();
    for interval in intervals() {
        for ((stream, operation), counted) in &interval.streams {
            for (stamps, latencies) in
                [(Stamps::Service, &counted.service), (Stamps::Response, &counted.response)]
            {
                let logged = found.next().unwrap();
                let name = ["two words", "w"][usize::from(*stream)].to_owned();
                assert_eq!(
                    logged.tag.parse(),
                    Ok(Tag { stream: name, operation: *operation, stamps })
                );
                assert_eq!(logged.start.as_nanos(), interval.start.as_nanos());
                assert_eq!(logged.length, interval.length);
                assert_eq!(&logged.latencies, latencies);
            }
        }
    }
    assert_eq!(found.next(), None);
}

#[test]
fn other_readers_of_the_format_find_every_interval() {
    let bytes = log();
    let entries: Vec<LogEntry<'_>> = IntervalLogIterator::new(&bytes).map(Result::unwrap).collect();
    let tags: Vec<&str> = entries
        .iter()
        .filter_map(|entry| match entry {
            LogEntry::Interval(interval) => Some(interval.tag().unwrap().as_str()),
            _ => None,
        })
        .collect();
    assert_eq!(tags.len(), 16);
    assert_eq!(
        tags[..3],
        ["two%20words/read/service", "two%20words/read/response", "w/write/service"]
    );
}

#[test]
fn a_log_without_our_comments_reads_with_the_formats_own_precision() {
    let text = String::from_utf8(log()).unwrap();
    let foreign: String =
        text.split_inclusive('\n').filter(|line| !line.starts_with("#[Exact")).collect();
    let (ours, foreign) = (whole(text.as_bytes()), whole(foreign.as_bytes()));
    assert_eq!(ours.len(), foreign.len());
    for (own, other) in ours.iter().zip(&foreign) {
        assert_eq!((&own.tag, own.latencies.count()), (&other.tag, other.latencies.count()));
        assert!(own.length.as_nanos().abs_diff(other.length.as_nanos()) <= 500_000);
        assert_eq!(own.latencies.at(50.0), other.latencies.at(50.0));
        if let (Some(exact), Some(rounded)) = (own.latencies.mean_ns(), other.latencies.mean_ns()) {
            assert!((exact / rounded - 1.0).abs() < 1e-3, "{exact} {rounded}");
        }
    }
}

#[test]
fn a_log_cut_off_anywhere_loses_one_line_at_most() {
    let bytes = log();
    let all = whole(&bytes);
    let lines = |bytes: &[u8]| {
        let text = String::from_utf8_lossy(bytes).into_owned();
        text.split_inclusive('\n').filter(|l| !l.starts_with('#') && l.ends_with('\n')).count()
    };
    // Every place near the end, and a sample of those before.
    for cut in (0..bytes.len()).filter(|cut| cut % 11 == 0 || bytes.len() - cut < 1000) {
        let mut reader = read(&bytes[..cut]);
        let found: Vec<Logged> = reader.by_ref().map(Result::unwrap).collect();
        let written = lines(&bytes[..cut]);
        // A last line that lacks no more than its end is whole.
        assert!((written..=written + 1).contains(&found.len()), "{cut}");
        assert_eq!(found, all[..found.len()], "{cut}");
        let between = cut == 0 || bytes[cut - 1] == b'\n' || found.len() > written;
        assert_eq!(reader.cut_off(), !between, "{cut}");
    }
}

#[test]
fn a_damaged_line_is_named_and_the_others_are_read() {
    let text = String::from_utf8(log()).unwrap();
    let all = whole(text.as_bytes());
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    let damaged = lines.iter().position(|line| line.starts_with("Tag=")).unwrap();
    for replacement in
        ["Tag=x,0.0,1.0", "nonsense", "Tag=x,0.0,1.0,5.0,@@@@", "Tag=x,0.0,1.0,5.0,AAAA"]
    {
        lines[damaged] = replacement.to_owned();
        let text = lines.join("\n") + "\n";
        let found: Vec<Result<Logged, HdrLogError>> = read(text.as_bytes()).collect();
        let message = found[0].as_ref().unwrap_err().to_string();
        assert!(message.contains(&format!("line {}", damaged + 1)), "{replacement}: {message}");
        let rest: Vec<&Logged> = found[1..].iter().map(|line| line.as_ref().unwrap()).collect();
        assert_eq!(rest, all[1..].iter().collect::<Vec<_>>(), "{replacement}");
    }
}

#[test]
fn a_histogram_that_its_comment_does_not_describe_is_refused() {
    let text = String::from_utf8(log()).unwrap().replacen("count=300 ", "count=301 ", 1);
    let first = read(text.as_bytes()).next().unwrap().unwrap_err().to_string();
    assert!(first.contains("comment before it"), "{first}");
}

proptest! {
    #[test]
    fn whatever_bytes_change_nothing_breaks(at in any::<proptest::sample::Index>(), byte: u8) {
        let mut bytes = log();
        let at = at.index(bytes.len());
        bytes[at] = byte;
        let good = read(bytes.as_slice()).filter(Result::is_ok).count();
        // A line break in the middle of a line makes two of it, and a changed comment costs the line behind it.
        prop_assert!((15..=17).contains(&good), "{}", good);
    }
}
