//! Metrics of arrays and recordings for Prometheus, under the ledger's names.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::atomic::AtomicU64;
use std::sync::{Mutex, PoisonError};

use base::Timestamp;
use prometheus_client::encoding::text::encode;
use prometheus_client::encoding::{EncodeMetric, MetricEncoder, NoLabelSet};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::{MetricType, TypedMetric};
use prometheus_client::registry::Registry;
use recorder::TimeRange;
use serde::Deserialize;
use serde_json::Value;

use crate::array::{Health, Info, MemberInfo, Members};
use crate::recording::Distribution;

/// Names and values of labels.
pub type Labels = Vec<(&'static str, String)>;

/// Gauges of the same name.
type Gauges = Family<Labels, Gauge<f64, AtomicU64>>;

/// Counters of the same name.
type Counters = Family<Labels, Counter>;

/// Histograms of the same name.
type Histograms = Family<Labels, Histogram>;

/// All metrics of a moment.
#[derive(Debug, Default)]
pub struct Metrics {
    array: OfArray,
    member: OfMember,
    recorder: OfRecorder,
    take: OfTake,
}

#[derive(Debug, Default)]
struct OfArray {
    up: Gauges,
    recording: Gauges,
    capacity: Gauges,
    data: Gauges,
    used: Gauges,
    first_packet: Gauges,
    last_packet: Gauges,
}

#[derive(Debug, Default)]
struct OfMember {
    up: Gauges,
    stale: Gauges,
    temperature: Gauges,
    worn: Gauges,
    spare: Gauges,
    warning: Gauges,
    working: Gauges,
    written: Counters,
    latency: Histograms,
    rate: Histograms,
}

#[derive(Debug, Default)]
struct OfRecorder {
    buffers: Gauges,
    buffers_held: Gauges,
    to_index: Gauges,
    link_up: Gauges,
}

#[derive(Debug, Default)]
struct OfTake {
    offered: Both,
    stored: Both,
    filtered: Both,
    cut: Both,
    lost: Both,
    truncated: Both,
    sliced: Both,
    overwritten: Both,
    missing: Both,
}

/// Packets and their bytes.
#[derive(Debug, Default)]
struct Both {
    packets: Counters,
    bytes: Counters,
}

impl Both {
    /// Enters a count as the library shows it; null if nobody has counted.
    fn enter(&self, labels: &Labels, count: &Value) {
        for (counters, unit) in [(&self.packets, "packets"), (&self.bytes, "bytes")] {
            if let Some(count) = count[unit].as_u64() {
                counters.get_or_create(labels).inc_by(count);
            }
        }
    }

    fn register(self, registry: &mut Registry, name: &str, what: &str) {
        registry.register(format!("{name}_packets"), format!("Packets {what}"), self.packets);
        let what = format!("Bytes on the wire of packets {what}");
        registry.register(format!("{name}_bytes"), what, self.bytes);
    }
}

/// A histogram whose values were counted elsewhere.
#[derive(Debug, Default)]
struct Histogram(Mutex<Option<Distribution>>);

impl TypedMetric for Histogram {
    const TYPE: MetricType = MetricType::Histogram;
}

impl EncodeMetric for Histogram {
    fn encode(&self, mut encoder: MetricEncoder) -> fmt::Result {
        let distribution = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(distribution) = &*distribution else { return Ok(()) };
        // The encoder's word for a range without an upper bound.
        let bounds = distribution.bounds.iter().copied().chain([f64::MAX]);
        let ranges: Vec<(f64, u64)> = bounds.zip(distribution.counts.iter().copied()).collect();
        let count = distribution.counts.iter().sum();
        encoder.encode_histogram::<NoLabelSet>(distribution.sum, count, &ranges, None)
    }

    fn metric_type(&self) -> MetricType {
        MetricType::Histogram
    }
}

fn set(gauges: &Gauges, labels: &Labels, value: f64) {
    gauges.get_or_create(labels).set(value);
}

fn flag(gauges: &Gauges, labels: &Labels, value: bool) {
    set(gauges, labels, u8::from(value).into());
}

fn seconds(at: Timestamp) -> f64 {
    at.as_nanos() as f64 / 1e9
}

/// The labels of a member.
fn of_member(of_array: &Labels, number: usize) -> Labels {
    let mut labels = of_array.clone();
    labels.push(("member", number.to_string()));
    labels
}

impl Metrics {
    /// Enters whether an array can be opened.
    pub fn enter_up(&self, of_array: &Labels, up: bool) {
        flag(&self.array.up, of_array, up);
    }

    /// Enters whether somebody is recording on it.
    pub fn enter_recording(&self, of_array: &Labels, recording: bool) {
        flag(&self.array.recording, of_array, recording);
    }

    /// Enters what an array is made of, and which members there are. `span` is from the oldest packet to the newest.
    pub fn enter_array(
        &self,
        of_array: &Labels,
        info: &Info,
        members: &Members,
        span: Option<TimeRange>,
    ) {
        let sum = |of: fn(&MemberInfo) -> u64| info.members.iter().map(of).sum::<u64>() as f64;
        set(&self.array.capacity, of_array, sum(|member| member.capacity_bytes));
        set(&self.array.data, of_array, sum(|member| member.data_bytes));
        set(&self.array.used, of_array, sum(|member| member.used_bytes));
        if let Some(span) = span {
            set(&self.array.first_packet, of_array, seconds(span.from));
            set(&self.array.last_packet, of_array, seconds(span.to));
        }
        for (number, _) in (0u16..).zip(&info.members) {
            let of_member = of_member(of_array, number.into());
            flag(&self.member.up, &of_member, !members.missing.contains(&number));
            flag(&self.member.stale, &of_member, members.stale.contains(&number));
        }
    }

    /// Enters what the members' drives report of their health, in the array's order.
    pub fn enter_health(&self, of_array: &Labels, drives: &[Option<Health>]) {
        for (number, health) in drives.iter().enumerate() {
            let Some(health) = health else { continue };
            let of_member = of_member(of_array, number);
            if let Some(celsius) = health.temperature_celsius {
                set(&self.member.temperature, &of_member, celsius.into());
            }
            set(&self.member.worn, &of_member, f64::from(health.percent_used) / 100.0);
            set(&self.member.spare, &of_member, f64::from(health.spare_percent) / 100.0);
            set(&self.member.warning, &of_member, health.critical_warning.into());
        }
    }

    /// Enters where a recording is, as [`json::status`](crate::json::status) has it.
    pub fn enter_recorder(&self, of_array: &Labels, status: &Value) {
        let number = |value: &Value| value.as_f64().unwrap_or_default();
        set(&self.recorder.buffers, of_array, number(&status["buffers"]));
        set(&self.recorder.buffers_held, of_array, number(&status["buffers_held"]));
        set(&self.recorder.to_index, of_array, number(&status["segments_to_index"]));
        if let Some(link) = status["link"].as_str() {
            flag(&self.recorder.link_up, of_array, link == "up");
        }
        let members = status["members"].as_array().into_iter().flatten();
        for (number, member) in members.enumerate() {
            let of_member = of_member(of_array, number);
            flag(&self.member.working, &of_member, member["working"] == true);
            let written = member["written"].as_u64().unwrap_or_default();
            self.member.written.get_or_create(&of_member).inc_by(written);
        }
        for (number, writes) in status["writes"].as_array().into_iter().flatten().enumerate() {
            let of_member = of_member(of_array, number);
            for (histograms, key) in
                [(&self.member.latency, "latency"), (&self.member.rate, "rate")]
            {
                let Ok(distribution) = Distribution::deserialize(&writes[key]) else { continue };
                let histogram = histograms.get_or_create(&of_member);
                *histogram.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(distribution);
            }
        }
    }

    /// Enters a take's ledger as the library shows it.
    pub fn enter_ledger(&self, of_take: &Labels, ledger: &Value) {
        let take = &self.take;
        for (both, name) in [
            (&take.offered, "offered"),
            (&take.stored, "stored"),
            (&take.filtered, "filtered"),
            (&take.cut, "cut"),
            (&take.truncated, "truncated"),
            (&take.sliced, "sliced"),
        ] {
            both.enter(of_take, &ledger[name]);
        }
        for (stage, count) in ledger["lost"].as_object().into_iter().flatten() {
            let mut of_stage = of_take.clone();
            of_stage.push(("stage", stage.clone()));
            take.lost.enter(&of_stage, count);
        }
    }

    /// Enters what of a take is no longer on the array, as the library shows it.
    pub fn enter_gone(&self, of_take: &Labels, take: &Value) {
        self.take.overwritten.enter(of_take, &take["overwritten"]);
        self.take.missing.enter(of_take, &take["missing"]);
    }

    /// All of them in a registry, for others to be added.
    pub fn registry(self) -> Registry {
        let mut all = Registry::with_prefix("longtake");
        self.array.register(&mut all);
        self.member.register(&mut all);
        self.recorder.register(&mut all);
        self.take.register(&mut all);
        all
    }

    /// As text in the format that node-exporter's textfile collector reads.
    ///
    /// # Errors
    /// None that is known: memory takes any text.
    pub fn textfile(self) -> Result<String, fmt::Error> {
        let mut text = String::new();
        encode(&mut text, &self.registry())?;
        Ok(textfile(&text))
    }
}

impl OfArray {
    fn register(self, registry: &mut Registry) {
        let mut gauge = |name: &str, help: &str, gauges| registry.register(name, help, gauges);
        gauge("array_up", "Whether the array can be opened", self.up);
        gauge("array_recording", "Whether somebody is recording on the array", self.recording);
        gauge("array_capacity_bytes", "Bytes of all members", self.capacity);
        gauge("array_data_bytes", "Bytes of all segments", self.data);
        gauge("array_used_bytes", "Bytes of the segments in use", self.used);
        let (first, last) =
            ("Time of the oldest packet since 1970", "Time of the newest packet since 1970");
        gauge("array_first_packet_seconds", first, self.first_packet);
        gauge("array_last_packet_seconds", last, self.last_packet);
    }
}

impl OfMember {
    fn register(self, registry: &mut Registry) {
        let mut gauge = |name: &str, help: &str, gauges| registry.register(name, help, gauges);
        gauge("member_up", "Whether the member can be opened", self.up);
        gauge("member_stale", "Whether the member is out of date", self.stale);
        gauge("member_temperature_celsius", "Temperature of the member's drive", self.temperature);
        gauge(
            "member_worn_ratio",
            "Share of its life that the member's drive has used, as the maker estimates it",
            self.worn,
        );
        gauge(
            "member_spare_ratio",
            "Share of its spare blocks that the drive has left",
            self.spare,
        );
        gauge(
            "member_critical_warning",
            "Critical warnings of the member's drive, as bits that NVMe defines; 0 is good",
            self.warning,
        );
        gauge(
            "member_working",
            "Whether the recording under way writes to the member",
            self.working,
        );
        registry.register(
            "member_written_bytes",
            "Bytes that the recording under way has written to the member",
            self.written,
        );
        registry.register(
            "member_write_latency_seconds",
            "Time that the member took for a write",
            self.latency,
        );
        registry.register(
            "member_write_rate_bytes_per_second",
            "Rate of writing to the member in each second",
            self.rate,
        );
    }
}

impl OfRecorder {
    fn register(self, registry: &mut Registry) {
        let mut gauge = |name: &str, help: &str, gauges| registry.register(name, help, gauges);
        gauge("recorder_buffers", "Chunk buffers of the recording under way", self.buffers);
        gauge("recorder_buffers_held", "Chunk buffers that hold something", self.buffers_held);
        gauge(
            "recorder_segments_to_index",
            "Segments that are filled and have no flow index yet",
            self.to_index,
        );
        gauge(
            "recorder_link_up",
            "Whether the link of the interface that is recorded is up",
            self.link_up,
        );
    }
}

impl OfTake {
    fn register(self, registry: &mut Registry) {
        for (both, name, what) in [
            (self.offered, "offered", "that the source offered"),
            (self.stored, "stored", "that were stored"),
            (self.filtered, "filtered", "that the filter rejected"),
            (self.lost, "lost", "that were lost before they could be stored, by stage"),
            (self.cut, "cut", "that --cut left out"),
            (self.truncated, "truncated", "that were stored truncated"),
            (self.sliced, "sliced", "of which --slice left a part out"),
            (self.overwritten, "overwritten", "that a ring has overwritten"),
            (self.missing, "missing", "that the array should hold and doesn't"),
        ] {
            both.register(registry, &format!("take_{name}"), what);
        }
    }
}

/// OpenMetrics in the older text format of Prometheus: a counter's name has the suffix of its samples, and there are neither units
/// nor a mark at the end.
fn textfile(open: &str) -> String {
    let described = |line: &str| {
        let (kind, rest) = line.strip_prefix("# ")?.split_once(' ')?;
        let (name, text) = rest.split_once(' ')?;
        Some((kind.to_owned(), name.to_owned(), text.to_owned()))
    };
    let types: BTreeMap<String, String> = open
        .lines()
        .filter_map(described)
        .filter(|(kind, ..)| kind == "TYPE")
        .map(|(_, name, of)| (name, of))
        .collect();
    let mut text = String::with_capacity(open.len());
    for line in open.lines() {
        match described(line) {
            Some((kind, name, rest)) if kind == "HELP" || kind == "TYPE" => {
                let of_counter = types.get(&name).is_some_and(|of| of == "counter");
                let suffix = if of_counter { "_total" } else { "" };
                text += &format!("# {kind} {name}{suffix} {rest}\n");
            }
            _ if line.starts_with('#') => {}
            _ => {
                text += line;
                text.push('\n');
            }
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_older_format_has_the_suffix_in_a_counter_s_name_and_no_end() {
        let open = "# HELP longtake_a A.\n# TYPE longtake_a counter\n# UNIT longtake_a bytes\nlongtake_a_total{x=\"# y\"} 7\n\
                    # HELP longtake_b B b.\n# TYPE longtake_b gauge\nlongtake_b 1.5\n# EOF\n";
        let expected = "# HELP longtake_a_total A.\n# TYPE longtake_a_total counter\nlongtake_a_total{x=\"# y\"} 7\n\
                        # HELP longtake_b B b.\n# TYPE longtake_b gauge\nlongtake_b 1.5\n";
        assert_eq!(textfile(open), expected);
    }
}
