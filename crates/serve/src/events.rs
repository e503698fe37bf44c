//! Live events: how each array and the recording on it are, for every client that listens.
//!
//! One task asks all recorders once a second, however many clients listen, and only while one does. It reads no drive for that. What
//! only the array tells is read as for a scrape of metrics. A client that is slow misses states, and finds the newest one.

use std::collections::VecDeque;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use base::Timestamp;
use longtake::array::MemberInfo;
use longtake::control;
use longtake::instant::utc;
use serde::Serialize;
use serde_json::Value;
use tokio::sync::mpsc::{Sender, channel};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};
use tokio::task::spawn_blocking;
use tokio::time::{MissedTickBehavior, interval, timeout};
use utoipa::ToSchema;

use crate::Limits;
use crate::api::Shared;
use crate::arrays::{Served, Service};
use crate::failure::Failure;
use crate::metrics::{Look, look_anew};
use crate::stream::{Part, StreamedBody};

/// Time between two questions to a recorder.
const PERIOD: Duration = Duration::from_secs(1);

/// Questions that a rate is taken over, the first and the last included.
const SAMPLES_MAX: usize = 4;

/// Looks at an array that waits for its lock to be released, once its recorder answers no more.
const SETTLING_MAX: u32 = 10;

/// Sent after a long silence, so that each side notices when the other one has gone.
const KEEP_ALIVE: Bytes = Bytes::from_static(b": nothing new\n\n");

/// The state of an array and of the recording on it.
#[derive(Clone, Debug, PartialEq, Serialize, ToSchema)]
pub struct ArrayEvent {
    /// Id of the array, as in addresses.
    array: String,
    /// Why the array can't be opened; null if it can.
    error: Option<String>,
    /// Whether somebody is recording on the array.
    recording: bool,
    /// Take, ledger, buffers and members, as the recorder reports them. Null without a recording, or if the recorder belongs to another user.
    #[schema(value_type = Option<Object>)]
    status: Option<Value>,
    /// How fast the recording goes on; null until that is known.
    rate: Option<RecordingRate>,
    /// What was read from the array; null if it can't be opened.
    gauges: Option<ArrayGauges>,
    /// The newest take on the array, as `longtake ledger --json` shows it; null if there is none.
    #[schema(value_type = Option<Object>)]
    take: Option<Value>,
}

/// Rates over the last three seconds, in bytes on the wire a second.
#[derive(Clone, Debug, PartialEq, Serialize, ToSchema)]
pub struct RecordingRate {
    /// What the source offered.
    offered: f64,
    /// What was stored.
    stored: f64,
}

/// What is read from an array: up to a minute old.
#[derive(Clone, Debug, PartialEq, Serialize, ToSchema)]
pub struct ArrayGauges {
    /// When it was read.
    read: String,
    /// Bytes of all segments.
    data_bytes: u64,
    /// Bytes of the segments in use.
    used_bytes: u64,
    /// Time of the oldest packet; during a recording without those that the ring has overwritten since.
    first_packet: Option<String>,
    /// Time of the newest packet.
    last_packet: Option<String>,
    /// Numbers of members that can't be opened.
    missing_members: Vec<u16>,
    /// Numbers of members that are out of date.
    stale_members: Vec<u16>,
}

impl ArrayGauges {
    fn of(look: &Look, status: Option<&Value>) -> Self {
        let sum = |of: fn(&MemberInfo) -> u64| look.info.members.iter().map(of).sum();
        let reused_to = status.and_then(|status| status["reused_to_ns"].as_u64()).unwrap_or(0);
        let first = look.span.map(|span| span.from.max(Timestamp::from_nanos(reused_to)));
        Self {
            read: utc(look.read),
            data_bytes: sum(|member| member.data_bytes),
            used_bytes: sum(|member| member.used_bytes),
            first_packet: first.map(utc),
            last_packet: look.span.map(|span| utc(span.to)),
            missing_members: look.members.missing.clone(),
            stale_members: look.members.stale.clone(),
        }
    }
}

impl ArrayEvent {
    /// Whether it tells the same, the time aside.
    fn tells_the_same(&self, other: &Self) -> bool {
        let timeless = |event: &Self| {
            let mut event = event.clone();
            if let Some(status) = &mut event.status {
                status["after_s"].take();
            }
            event
        };
        timeless(self) == timeless(other)
    }

    fn frame(&self, number: u64) -> Bytes {
        // A structure of texts and numbers can be written, and its text has no line ends.
        let data = serde_json::to_string(self).unwrap_or_default();
        Bytes::from(format!("event: array\nid: {number}\ndata: {data}\n\n"))
    }
}

/// The state of an array that clients are sent.
#[derive(Clone, Debug)]
struct Published {
    /// Larger than those of all earlier ones.
    number: u64,
    event: ArrayEvent,
    frame: Bytes,
}

/// What is published, and who listens.
#[derive(Debug)]
pub struct Events {
    /// By array; None for one that was not looked at yet.
    published: watch::Sender<Vec<Option<Published>>>,
    pollers: Vec<Arc<tokio::sync::Mutex<Poller>>>,
    running: Mutex<Running>,
    places: Arc<Semaphore>,
    places_max: usize,
}

/// Whether recorders are asked, and the number of the last state that was published.
#[derive(Debug, Default)]
struct Running {
    is_polling: bool,
    last: u64,
}

impl Events {
    /// Of these arrays.
    pub fn new(arrays: &[Served], limits: &Limits) -> Self {
        let pollers = arrays.iter().enumerate().map(|(at, array)| Poller::new(at, array.clone()));
        Self {
            published: watch::Sender::new(vec![None; arrays.len()]),
            pollers: pollers.map(|poller| Arc::new(tokio::sync::Mutex::new(poller))).collect(),
            running: Mutex::default(),
            places: Arc::new(Semaphore::new(limits.events_max)),
            places_max: limits.events_max,
        }
    }

    /// Streams of events now.
    pub fn streams_now(&self) -> usize {
        self.places_max - self.places.available_permits()
    }

    /// Whether recorders are being asked.
    pub fn is_polling(&self) -> bool {
        self.running.lock().unwrap_or_else(PoisonError::into_inner).is_polling
    }

    fn may_listen(&self) -> Result<OwnedSemaphorePermit, Failure> {
        Arc::clone(&self.places).try_acquire_owned().map_err(|_| {
            let error = format!("{} clients receive events already", self.places_max);
            let remedy = "try again when one of them has left";
            Failure::new(StatusCode::SERVICE_UNAVAILABLE, error, remedy)
        })
    }

    /// Listens. The first who does has recorders asked.
    fn listen(&self, service: &Arc<Service>) -> watch::Receiver<Vec<Option<Published>>> {
        let mut running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        let listener = self.published.subscribe();
        if !running.is_polling {
            running.is_polling = true;
            tokio::spawn(poll_all(Arc::clone(service)));
        }
        listener
    }

    /// Stops asking once the last client has left, and forgets what was published: it would be old for the next client.
    fn ends(&self) -> bool {
        let mut running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        if self.published.receiver_count() == 0 {
            running.is_polling = false;
            self.published.send_modify(|published| published.fill(None));
        }
        !running.is_polling
    }

    /// Publishes a state of an array, unless it tells what the last one did.
    fn publish(&self, at: usize, event: ArrayEvent) {
        let mut running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        if !running.is_polling {
            return;
        }
        self.published.send_if_modified(|published| {
            let known = published[at].as_ref();
            if known.is_some_and(|known| known.event.tells_the_same(&event)) {
                return false;
            }
            running.last += 1;
            let frame = event.frame(running.last);
            published[at] = Some(Published { number: running.last, event, frame });
            true
        });
    }
}

/// Asks the recorders of all arrays until the last client leaves. A slow recorder does not delay the others.
async fn poll_all(service: Arc<Service>) {
    let mut ticks = interval(PERIOD);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        if service.events().ends() {
            return;
        }
        for poller in &service.events().pollers {
            let service = Arc::clone(&service);
            if let Ok(mut poller) = Arc::clone(poller).try_lock_owned() {
                tokio::spawn(async move { poller.poll(&service).await });
            }
        }
    }
}

/// What is remembered of an array from one question to the next.
#[derive(Debug)]
struct Poller {
    at: usize,
    array: Served,
    samples: VecDeque<Sample>,
    /// Looks that may still find the array locked by a recorder that has ended.
    settling: u32,
}

/// How far a recording was.
#[derive(Clone, Debug)]
struct Sample {
    take: Value,
    after_s: f64,
    offered: f64,
    stored: f64,
}

impl Poller {
    fn new(at: usize, array: Served) -> Self {
        Self { at, array, samples: VecDeque::new(), settling: 0 }
    }

    async fn poll(&mut self, service: &Arc<Service>) {
        let uuid = self.array.uuid();
        let mut status = spawn_blocking(move || control::status(uuid).ok()).await.ok().flatten();
        // Distributions are for metrics: nobody needs them every second.
        if let Some(Value::Object(status)) = &mut status {
            status.remove("writes");
        }
        let look = self.look(service, status.is_some()).await;
        let rate = self.rate(status.as_ref());
        let found = look.as_deref().ok();
        let event = ArrayEvent {
            array: self.array.id().to_owned(),
            error: look.as_ref().err().map(Failure::to_string),
            recording: status.is_some() || found.is_some_and(|look| look.info.recording),
            rate,
            gauges: found.map(|look| ArrayGauges::of(look, status.as_ref())),
            take: found.and_then(|look| look.take.clone()),
            status,
        };
        service.events().publish(self.at, event);
    }

    /// What is on the array. It is read when a recording begins or ends, and otherwise when what is known is old.
    async fn look(&mut self, service: &Service, is_running: bool) -> Result<Arc<Look>, Failure> {
        let settles = !is_running && self.settling > 0;
        let is_current = |look: &Arc<Look>| match look.info.recording {
            true => !settles,
            false => !is_running,
        };
        if let Some(known) = service.looked(&self.array).filter(is_current) {
            self.settling = if is_running { SETTLING_MAX } else { 0 };
            return Ok(known);
        }
        let look = look_anew(service, &self.array).await;
        let is_locked = look.as_ref().is_ok_and(|look| look.info.recording);
        self.settling = match (is_running, is_locked) {
            (true, _) => SETTLING_MAX,
            (false, true) => self.settling.saturating_sub(1),
            (false, false) => 0,
        };
        look
    }

    /// How fast the recording goes on.
    fn rate(&mut self, status: Option<&Value>) -> Option<RecordingRate> {
        let Some(sample) = status.map(Sample::of) else {
            self.samples.clear();
            return None;
        };
        if self.samples.back().is_some_and(|last| !last.precedes(&sample)) {
            self.samples.clear();
        }
        self.samples.push_back(sample);
        if self.samples.len() > SAMPLES_MAX {
            self.samples.pop_front();
        }
        let (first, last) = (self.samples.front()?, self.samples.back()?);
        let seconds = last.after_s - first.after_s;
        let rate = |of: fn(&Sample) -> f64| (of(last) - of(first)) / seconds;
        (seconds > 0.0).then(|| RecordingRate {
            offered: rate(|sample| sample.offered),
            stored: rate(|sample| sample.stored),
        })
    }
}

impl Sample {
    fn of(status: &Value) -> Self {
        let bytes = |name: &str| status["ledger"][name]["bytes"].as_f64().unwrap_or(0.0);
        Self {
            take: status["take"].clone(),
            after_s: status["after_s"].as_f64().unwrap_or(0.0),
            offered: bytes("offered"),
            stored: bytes("stored"),
        }
    }

    /// Whether the other comes later in the same take.
    fn precedes(&self, other: &Self) -> bool {
        self.take == other.take && self.after_s < other.after_s
    }
}

/// Live events of all arrays, as server-sent events.
///
/// The stream begins with the state of each array. Further events follow when a state changes, once a second for each array. Each
/// has the name `array`, and its data are JSON. A comment is sent when nothing has happened for 15 seconds.
#[utoipa::path(
    get, path = "/api/v1/events",
    responses(
        (status = 200, body = ArrayEvent, content_type = "text/event-stream"),
        (status = 503, body = Failure, description = "Too many clients receive events"),
    ),
)]
pub async fn events(State(service): Shared) -> Result<Response, Failure> {
    let place = service.events().may_listen().inspect_err(|_| {
        service.counts().refused.fetch_add(1, Ordering::Relaxed);
    })?;
    let (sender, receiver) = channel(1);
    tokio::spawn(send(Arc::clone(&service), sender, place));
    let headers = [(header::CONTENT_TYPE, "text/event-stream")];
    Ok((headers, Body::new(StreamedBody::new(None, receiver, service))).into_response())
}

/// Sends what is published to a client, until it leaves.
async fn send(service: Arc<Service>, sender: Sender<Part>, _place: OwnedSemaphorePermit) {
    let mut listener = service.events().listen(&service);
    let mut sent = 0;
    let mut frames = Vec::new();
    loop {
        for published in listener.borrow_and_update().iter().flatten() {
            if published.number > sent {
                frames.push((published.number, published.frame.clone()));
            }
        }
        for (number, frame) in frames.drain(..) {
            sent = sent.max(number);
            if sender.send(Part::Piece(frame)).await.is_err() {
                return;
            }
        }
        let changed = timeout(service.limits().quiet_max, listener.changed());
        let has_changed = tokio::select! {
            () = sender.closed() => return,
            changed = changed => changed.is_ok(),
        };
        if !has_changed && sender.send(Part::Piece(KEEP_ALIVE)).await.is_err() {
            return;
        }
    }
}
