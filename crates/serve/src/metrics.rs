//! Metrics under the ledger's names, in OpenMetrics. A recording under way tells its own; all else is read from the array.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use axum::extract::State;
use axum::http::header;
use axum::response::{IntoResponse, Response};
use base::Timestamp;
use longtake::array::{Info, MemberInfo, Members};
use longtake::instant::now;
use longtake::{Array, TimeRange, control, json};
use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;
use serde_json::Value;
use tokio::task::spawn_blocking;

use crate::api::Shared;
use crate::arrays::{Served, Service};
use crate::failure::Failure;

/// Names and values of labels.
type Labels = Vec<(&'static str, String)>;

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
        let uuid = served.uuid();
        let running = spawn_blocking(move || control::status(uuid).ok()).await.ok().flatten();
        let look = look(&service, served, running.is_some()).await;
        metrics.enter(served.id(), look.as_deref(), running.as_ref());
    }
    let mut text = String::new();
    match encode(&mut text, &metrics.registry(&service)) {
        Ok(()) => ([(header::CONTENT_TYPE, CONTENT_TYPE)], text).into_response(),
        Err(_) => Failure::broken().into_response(),
    }
}

/// What is on an array; None if it can't be opened.
async fn look(service: &Service, array: &Served, is_running: bool) -> Option<Arc<Look>> {
    let known = service.looked(array).filter(|look| is_running && look.info.recording);
    if known.is_some() {
        return known;
    }
    look_anew(service, array).await.ok()
}

/// Reads what is on an array, and keeps it.
///
/// # Errors
/// If the array can't be opened or read.
pub async fn look_anew(service: &Service, array: &Served) -> Result<Arc<Look>, Failure> {
    let look = Arc::new(service.look(array, Look::at).await?);
    service.keep_look(array, &look);
    Ok(look)
}

/// What is exported of an array.
#[derive(Debug)]
pub struct Look {
    /// When the array was read.
    pub read: Timestamp,
    /// What it is made of.
    pub info: Info,
    /// Which members there are.
    pub members: Members,
    /// From the oldest packet to the newest; None if there is none.
    pub span: Option<TimeRange>,
    /// The newest take, as `longtake ledger --json` shows it.
    pub take: Option<Value>,
}

impl Look {
    fn at(array: &mut Array) -> longtake::Result<Self> {
        let (read, contents) = (now(), array.contents()?);
        let newest = contents.takes.last().cloned();
        let rejections = array.rejections(newest.as_slice())?;
        let take = newest.zip(rejections.first()).map(|(take, of)| json::take(&take, *of));
        let (info, members, span) = (array.info(), array.members(), contents.span());
        Ok(Self { read, info, members, span, take })
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
    member_working: Gauges,
    buffers: Gauges,
    buffers_held: Gauges,
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
#[derive(Default)]
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

fn set(gauges: &Gauges, labels: &Labels, value: f64) {
    gauges.get_or_create(labels).set(value);
}

fn flag(gauges: &Gauges, labels: &Labels, value: bool) {
    set(gauges, labels, u8::from(value).into());
}

fn seconds(at: Timestamp) -> f64 {
    at.as_nanos() as f64 / 1e9
}

impl Metrics {
    fn enter(&self, id: &str, look: Option<&Look>, running: Option<&Value>) {
        let of_array = vec![("array", id.to_owned())];
        flag(&self.up, &of_array, look.is_some());
        if let Some(look) = look {
            flag(&self.recording, &of_array, running.is_some() || look.info.recording);
            self.enter_array(&of_array, look);
        }
        if let Some(running) = running {
            self.enter_recorder(&of_array, running);
        }
        let on_media = look.and_then(|look| look.take.as_ref());
        let Some(take) = running.or(on_media) else { return };
        let mut of_take = of_array;
        of_take.push(("take", take["take"].as_str().unwrap_or_default().to_owned()));
        self.enter_ledger(&of_take, &take["ledger"]);
        if let Some(on_media) = on_media.filter(|on_media| on_media["take"] == take["take"]) {
            self.overwritten.enter(&of_take, &on_media["overwritten"]);
            self.missing.enter(&of_take, &on_media["missing"]);
        }
    }

    fn enter_array(&self, of_array: &Labels, look: &Look) {
        let Look { info, members, span, .. } = look;
        let sum = |of: fn(&MemberInfo) -> u64| info.members.iter().map(of).sum::<u64>() as f64;
        set(&self.capacity, of_array, sum(|member| member.capacity_bytes));
        set(&self.data, of_array, sum(|member| member.data_bytes));
        set(&self.used, of_array, sum(|member| member.used_bytes));
        if let Some(span) = span {
            set(&self.first_packet, of_array, seconds(span.from));
            set(&self.last_packet, of_array, seconds(span.to));
        }
        for (number, _) in (0u16..).zip(&info.members) {
            let of_member = of_member(of_array, number.into());
            flag(&self.member_up, &of_member, !members.missing.contains(&number));
            flag(&self.member_stale, &of_member, members.stale.contains(&number));
        }
    }

    fn enter_recorder(&self, of_array: &Labels, running: &Value) {
        set(&self.buffers, of_array, running["buffers"].as_f64().unwrap_or_default());
        set(&self.buffers_held, of_array, running["buffers_held"].as_f64().unwrap_or_default());
        let members = running["members"].as_array().into_iter().flatten();
        for (number, member) in members.enumerate() {
            flag(&self.member_working, &of_member(of_array, number), member["working"] == true);
        }
    }

    fn enter_ledger(&self, of_take: &Labels, ledger: &Value) {
        self.offered.enter(of_take, &ledger["offered"]);
        self.stored.enter(of_take, &ledger["stored"]);
        self.filtered.enter(of_take, &ledger["filtered"]);
        self.cut.enter(of_take, &ledger["cut"]);
        self.truncated.enter(of_take, &ledger["truncated"]);
        self.sliced.enter(of_take, &ledger["sliced"]);
        for (stage, count) in ledger["lost"].as_object().into_iter().flatten() {
            let mut of_stage = of_take.clone();
            of_stage.push(("stage", stage.clone()));
            self.lost.enter(&of_stage, count);
        }
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
        gauge(
            "member_working",
            "Whether the recording under way writes to the member",
            self.member_working,
        );
        gauge("recorder_buffers", "Chunk buffers of the recording under way", self.buffers);
        gauge("recorder_buffers_held", "Chunk buffers that hold something", self.buffers_held);
        self.offered.register(registry, "take_offered", "that the source offered");
        self.stored.register(registry, "take_stored", "that were stored");
        self.filtered.register(registry, "take_filtered", "that the filter rejected");
        self.lost.register(
            registry,
            "take_lost",
            "that were lost before they could be stored, by stage",
        );
        self.cut.register(registry, "take_cut", "that --cut left out");
        self.truncated.register(registry, "take_truncated", "that were stored truncated");
        self.sliced.register(registry, "take_sliced", "of which --slice left a part out");
        self.overwritten.register(registry, "take_overwritten", "that a ring has overwritten");
        self.missing.register(registry, "take_missing", "that the array should hold and doesn't");
        register_service(registry, service);
        all
    }
}

/// Enters what the service counts of itself.
fn register_service(registry: &mut Registry, service: &Service) {
    for (name, help, value) in [
        ("serve_reading", "Requests that read packets now", service.reading_now()),
        ("serve_event_streams", "Clients that receive events now", service.events().streams_now()),
        (
            "serve_events_polling",
            "Whether recorders are asked for events now",
            usize::from(service.events().is_polling()),
        ),
        ("serve_pcap_over_ip_streams", "Clients of PCAP-over-IP now", service.followers().now()),
        (
            "serve_tls_outdated",
            "Whether files of certificates or keys have changed and can't be used",
            usize::from(service.has_outdated_tls()),
        ),
    ] {
        let gauge: Gauge = Gauge::default();
        gauge.set(i64::try_from(value).unwrap_or(i64::MAX));
        registry.register(name, help, gauge);
    }
    let counts = service.counts();
    for (name, help, count) in [
        ("serve_refused", "Requests answered with 503", &counts.refused),
        ("serve_cut", "Streams of packets cut because they could not be completed", &counts.cut),
        (
            "serve_pcap_over_ip_refused",
            "Connections of PCAP-over-IP closed because there were too many",
            &service.followers().refused,
        ),
        (
            "serve_pcap_over_ip_lost_packets",
            "Packets that clients of PCAP-over-IP were too slow for",
            &service.followers().lost_packets,
        ),
        ("serve_left", "Requests whose client left before the end", &counts.left),
    ] {
        let counter: Counter = Counter::default();
        counter.inc_by(count.load(Ordering::Relaxed));
        registry.register(name, help, counter);
    }
}

/// The labels of a member.
fn of_member(of_array: &Labels, number: usize) -> Labels {
    let mut labels = of_array.clone();
    labels.push(("member", number.to_string()));
    labels
}
