//! Metrics under the ledger's names, in OpenMetrics.

use std::sync::atomic::{AtomicU64, Ordering};

use axum::extract::State;
use axum::http::header;
use axum::response::{IntoResponse, Response};
use base::Timestamp;
use format::{Count, Stage};
use longtake::Array;
use longtake::array::{Info, Take};
use longtake::recording::Rejections;
use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;

use crate::api::Shared;
use crate::arrays::Service;
use crate::completeness::Members;
use crate::failure::Failure;

/// Names and values of labels.
type Labels = Vec<(String, String)>;

/// Gauges of the same name.
type Gauges = Family<Labels, Gauge<f64, AtomicU64>>;

/// Counters of the same name.
type Counters = Family<Labels, Counter>;

const CONTENT_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// Metrics in OpenMetrics: of each array, of its newest take, and of the service itself.
#[utoipa::path(
    get, path = "/metrics",
    responses((status = 200, body = String, content_type = "application/openmetrics-text")),
)]
pub async fn metrics(State(service): Shared) -> Response {
    let metrics = Metrics::default();
    for served in service.arrays() {
        let looked = service.look(served, Look::at).await;
        metrics.enter(served.id(), looked.ok().as_ref());
    }
    let mut text = String::new();
    match encode(&mut text, &metrics.registry(&service)) {
        Ok(()) => ([(header::CONTENT_TYPE, CONTENT_TYPE)], text).into_response(),
        Err(_) => Failure::broken().into_response(),
    }
}

/// What is exported of an array.
struct Look {
    info: Info,
    members: Members,
    span: Option<(Timestamp, Timestamp)>,
    /// The newest take, and what is known of the packets that its filter rejected.
    take: Option<(Take, Rejections)>,
}

impl Look {
    fn at(array: &mut Array) -> longtake::Result<Self> {
        let contents = array.contents()?;
        let span = contents.span().map(|span| (span.from, span.to));
        let newest = contents.takes.last().cloned();
        let rejections = array.rejections(newest.as_slice())?;
        let take = newest.zip(rejections.first().copied());
        Ok(Self { info: array.info(), members: Members::of(array), span, take })
    }
}

/// All metrics of a scrape.
#[derive(Default)]
struct Metrics {
    up: Gauges,
    recording: Gauges,
    capacity: Gauges,
    data: Gauges,
    used: Gauges,
    first_packet: Gauges,
    last_packet: Gauges,
    member_up: Gauges,
    member_stale: Gauges,
    take_started: Gauges,
    offered: Both,
    stored: Both,
    filtered: Both,
    lost: Both,
    truncated: Both,
    overwritten: Both,
    missing: Both,
}

/// Packets and their bytes.
#[derive(Default)]
struct Both {
    packets: Counters,
    bytes: Counters,
}

impl Both {
    fn enter(&self, labels: &Labels, count: Count) {
        self.packets.get_or_create(labels).inc_by(count.packets);
        self.bytes.get_or_create(labels).inc_by(count.bytes);
    }

    fn register(self, registry: &mut Registry, name: &str, what: &str) {
        let Self { packets, bytes } = self;
        registry.register(format!("{name}_packets"), format!("Packets {what}"), packets);
        let what = format!("Bytes on the wire of packets {what}");
        registry.register(format!("{name}_bytes"), what, bytes);
    }
}

fn labels<const N: usize>(labels: [(&str, &str); N]) -> Labels {
    labels.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
}

fn seconds(at: Timestamp) -> f64 {
    at.as_nanos() as f64 / 1e9
}

impl Metrics {
    fn enter(&self, id: &str, look: Option<&Look>) {
        let of_array = labels([("array", id)]);
        let set = |gauges: &Gauges, value: f64| {
            gauges.get_or_create(&of_array).set(value);
        };
        set(&self.up, f64::from(u8::from(look.is_some())));
        let Some(Look { info, members, span, take }) = look else { return };
        let sum = |of: fn(&longtake::array::MemberInfo) -> u64| {
            info.members.iter().map(of).sum::<u64>() as f64
        };
        set(&self.recording, f64::from(u8::from(info.recording)));
        set(&self.capacity, sum(|member| member.capacity_bytes));
        set(&self.data, sum(|member| member.data_bytes));
        set(&self.used, sum(|member| member.used_bytes));
        if let Some((first, last)) = span {
            set(&self.first_packet, seconds(*first));
            set(&self.last_packet, seconds(*last));
        }
        for (number, _) in (0u16..).zip(&info.members) {
            let of_member = labels([("array", id), ("member", &number.to_string())]);
            let is_in = |numbers: &[u16]| f64::from(u8::from(numbers.contains(&number)));
            self.member_up.get_or_create(&of_member).set(1.0 - is_in(&members.missing));
            self.member_stale.get_or_create(&of_member).set(is_in(&members.stale));
        }
        if let Some((take, rejections)) = take {
            self.enter_take(id, take, *rejections);
        }
    }

    fn enter_take(&self, id: &str, take: &Take, rejections: Rejections) {
        let uuid = take.id.uuid.to_string();
        let of_take = labels([("array", id), ("take", &uuid)]);
        self.take_started.get_or_create(&of_take).set(seconds(take.id.started));
        self.offered.enter(&of_take, take.ledger.offered);
        self.stored.enter(&of_take, take.ledger.stored);
        if rejections != Rejections::NotCounted {
            self.filtered.enter(&of_take, take.ledger.lost(Stage::Filtered));
        }
        for stage in Stage::ALL.into_iter().filter(|stage| *stage != Stage::Filtered) {
            let of_stage = labels([("array", id), ("take", &uuid), ("stage", stage.key())]);
            self.lost.enter(&of_stage, take.ledger.lost(stage));
        }
        self.truncated.enter(&of_take, take.ledger.truncated);
        self.overwritten.enter(&of_take, take.overwritten);
        self.missing.enter(&of_take, take.missing());
    }

    fn registry(self, service: &Service) -> Registry {
        let mut all = Registry::with_prefix("longtake");
        let registry = &mut all;
        let mut gauge = |name: &str, help: &str, gauges| registry.register(name, help, gauges);
        gauge("array_up", "Whether the array can be opened", self.up);
        gauge("array_recording", "Whether somebody is recording on the array", self.recording);
        gauge("array_capacity_bytes", "Bytes of all members", self.capacity);
        gauge("array_data_bytes", "Bytes of all segments", self.data);
        gauge("array_used_bytes", "Bytes of the segments in use", self.used);
        gauge(
            "array_first_packet_seconds",
            "Time of the oldest packet since 1970",
            self.first_packet,
        );
        gauge(
            "array_last_packet_seconds",
            "Time of the newest packet since 1970",
            self.last_packet,
        );
        gauge("member_up", "Whether the member can be opened", self.member_up);
        gauge("member_stale", "Whether the member is out of date", self.member_stale);
        gauge("take_started_seconds", "Start of the newest take since 1970", self.take_started);
        self.offered.register(registry, "take_offered", "that the source offered");
        self.stored.register(registry, "take_stored", "that were stored");
        self.filtered.register(registry, "take_filtered", "that the filter rejected");
        self.lost.register(
            registry,
            "take_lost",
            "that were lost before they could be stored, by stage",
        );
        self.truncated.register(registry, "take_truncated", "that were stored truncated");
        self.overwritten.register(registry, "take_overwritten", "that a ring has overwritten");
        self.missing.register(registry, "take_missing", "that the array should hold and doesn't");
        let reading: Gauge = Gauge::default();
        reading.set(i64::try_from(service.reading_now()).unwrap_or(i64::MAX));
        registry.register("serve_reading", "Requests that read packets now", reading);
        for (name, help, count) in [
            ("serve_refused", "Requests answered with 503", &service.counts().refused),
            (
                "serve_cut",
                "Streams of packets cut because they could not be completed",
                &service.counts().cut,
            ),
        ] {
            let counter: Counter = Counter::default();
            counter.inc_by(count.load(Ordering::Relaxed));
            registry.register(name, help, counter);
        }
        all
    }
}
