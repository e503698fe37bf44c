//! Metrics under the ledger's names, in OpenMetrics. A recording under way tells its own; all else is read from the array.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use axum::extract::State;
use axum::http::header;
use axum::response::{IntoResponse, Response};
use base::Timestamp;
use longtake::array::{Health, Info, Members};
use longtake::instant::now;
use longtake::metrics::Metrics;
use longtake::{Array, TimeRange, control, json};
use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;
use serde_json::Value;
use tokio::task::spawn_blocking;

use crate::api::Shared;
use crate::arrays::{Served, Service};
use crate::failure::Failure;

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
        enter(&metrics, served.id(), look.as_deref(), running.as_ref());
    }
    let mut text = String::new();
    let mut registry = metrics.registry();
    register_service(&mut registry, &service);
    match encode(&mut text, &registry) {
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
    /// What their drives report of their health.
    pub health: Vec<Option<Health>>,
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
        let health = info.health();
        Ok(Self { read, info, members, health, span, take })
    }
}

/// Enters an array, the recording on it, and its newest take.
fn enter(metrics: &Metrics, id: &str, look: Option<&Look>, running: Option<&Value>) {
    let of_array = vec![("array", id.to_owned())];
    metrics.enter_up(&of_array, look.is_some());
    if let Some(look) = look {
        metrics.enter_recording(&of_array, running.is_some() || look.info.recording);
        metrics.enter_array(&of_array, &look.info, &look.members, look.span);
        metrics.enter_health(&of_array, &look.health);
    }
    if let Some(running) = running {
        metrics.enter_recorder(&of_array, running);
    }
    let on_media = look.and_then(|look| look.take.as_ref());
    let Some(take) = running.or(on_media) else { return };
    let mut of_take = of_array;
    of_take.push(("take", take["take"].as_str().unwrap_or_default().to_owned()));
    metrics.enter_ledger(&of_take, &take["ledger"]);
    if let Some(on_media) = on_media.filter(|on_media| on_media["take"] == take["take"]) {
        metrics.enter_gone(&of_take, on_media);
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
