//! The addresses that are answered, and the document that describes them.

use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use axum::extract::{DefaultBodyLimit, State};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::{Json, Router, middleware};
use base::ByteSize;
use longtake::array::{self, READ_RATE_DURING_RECORDING};
use longtake::instant::utc;
use longtake::{Array, Rate, Selection, json};
use serde::Serialize;
use serde_json::Value;
use tokio::task::spawn_blocking;
use utoipa::openapi::OpenApi as Document;
use utoipa::openapi::security::{Http, HttpAuthScheme, SecurityScheme};
use utoipa::{Modify, OpenApi, ToSchema};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;
use uuid::Uuid;

use crate::Limits;
use crate::access::{Access, Caller};
use crate::arrays::{Served, Service};
use crate::completeness::Completeness;
use crate::enter::{admit, enter};
use crate::failure::Failure;
use crate::guard::guard;
use crate::query::{FlowQuery, Names, Parameters};
use crate::{dashboard, events, metrics, packets, protected, steno};

/// What all requests share.
pub type Shared = State<Arc<Service>>;

/// Buffers of a request that reads packets: as many chunks as are read ahead, and two more.
pub const READING_MEMORY: ByteSize = ByteSize(40 << 20);

/// The rest of the document that describes the addresses.
#[derive(OpenApi)]
#[openapi(info(
    title = "Longtake",
    description = "What was recorded. Unknown addresses are answered with 404, and methods that an address does not have with 405. \
                   A service on a loopback address answers requests whose Host header names no such address with 421. Where a \
                   service requires tokens, requests without a valid one, and without a valid client certificate, are answered with 401. If the audit log can't be written, \
                   requests are answered with 500. Each of these has a body as other failures do.",
), modifiers(&Proofs), security((), ("token" = []), ("certificate" = [])))]
struct Api;

/// How clients prove who they are.
struct Proofs;

impl Modify for Proofs {
    fn modify(&self, document: &mut Document) {
        let token = SecurityScheme::Http(Http::new(HttpAuthScheme::Bearer));
        let description =
            Some("A client certificate allows what a token of the scope `read` does.".to_owned());
        let certificate =
            SecurityScheme::MutualTls { description, deprecated: None, extensions: None };
        let components = document.components.get_or_insert_default();
        components.add_security_scheme("token", token);
        components.add_security_scheme("certificate", certificate);
    }
}

/// The addresses and the document that describes them.
fn routes() -> (Router<Arc<Service>>, Document) {
    OpenApiRouter::with_openapi(Api::openapi())
        .routes(routes!(arrays))
        .routes(routes!(array))
        .routes(routes!(takes))
        .routes(routes!(ledger))
        .routes(routes!(flows))
        .routes(routes!(packets::packets))
        .routes(routes!(events::events))
        .routes(routes!(protected::protect, protected::release))
        .routes(routes!(steno::query))
        .routes(routes!(document))
        .routes(routes!(metrics::metrics))
        .split_for_parts()
}

/// Answers every request.
pub fn router(service: Arc<Service>, access: Arc<Access>) -> Router {
    let (router, _) = routes();
    router
        .fallback(async || {
            let remedy = "/api/v1/openapi.json lists the addresses that there are";
            Failure::new(StatusCode::NOT_FOUND, "there is nothing at this address", remedy)
        })
        .method_not_allowed_fallback(not_allowed)
        // Bodies are read, and limited, where requests are entered.
        .layer(DefaultBodyLimit::disable())
        .layer(middleware::from_fn(admit))
        // What follows needs no token: it shows nothing of what was recorded.
        .merge(dashboard::routes())
        .method_not_allowed_fallback(not_allowed)
        .layer(middleware::from_fn_with_state(access, enter))
        .layer(middleware::from_fn(guard))
        .with_state(service)
}

async fn not_allowed() -> Failure {
    let error = "this address does not have this method";
    let remedy = "/api/v1/openapi.json lists the methods of each address";
    Failure::new(StatusCode::METHOD_NOT_ALLOWED, error, remedy)
}

/// How fast each of the requests that may run at the same time reads beside a recording: together as fast as one command.
pub fn share(limits: &Limits) -> Rate {
    Rate(READ_RATE_DURING_RECORDING.0 / limits.reading_max.max(1) as f64)
}

/// The arrays that are served.
#[derive(Serialize, ToSchema)]
struct ArrayList {
    arrays: Vec<ArraySummary>,
}

/// An array in a list.
#[derive(Default, Serialize, ToSchema)]
struct ArraySummary {
    /// As it is called in addresses: its name, or its UUID if several arrays have that name.
    id: String,
    /// The name that it was given when it was created.
    name: String,
    uuid: Uuid,
    /// Why it can't be opened; null if it can. Then what follows holds.
    error: Option<String>,
    /// Whether somebody is recording on it.
    recording: bool,
    /// Number of members if none is missing.
    members: usize,
    missing_members: Vec<u16>,
    stale_members: Vec<u16>,
    /// Parity chunks for each group of chunks: as many members may be lost.
    parity: u8,
    /// Bytes of all members.
    capacity_bytes: u64,
    /// Bytes of all segments.
    data_bytes: u64,
    /// Bytes of the segments in use.
    used_bytes: u64,
    /// Number of takes.
    takes: usize,
    /// Time of the oldest packet.
    first_packet: Option<String>,
    /// Time of the newest packet.
    last_packet: Option<String>,
}

impl ArraySummary {
    fn new(served: &Served) -> Self {
        let (id, name, uuid) = (served.id().to_owned(), served.name().to_owned(), served.uuid());
        Self { id, name, uuid, ..Self::default() }
    }

    fn of(served: &Served, array: &mut Array) -> longtake::Result<Self> {
        let contents = array.contents()?;
        let info = array.info();
        let members = array.members();
        let sum = |of: fn(&longtake::array::MemberInfo) -> u64| info.members.iter().map(of).sum();
        let span = contents.span();
        Ok(Self {
            recording: info.recording,
            members: info.members.len(),
            missing_members: members.missing,
            stale_members: members.stale,
            parity: info.parity,
            capacity_bytes: sum(|member| member.capacity_bytes),
            data_bytes: sum(|member| member.data_bytes),
            used_bytes: sum(|member| member.used_bytes),
            takes: contents.takes.len(),
            first_packet: span.map(|span| utc(span.from)),
            last_packet: span.map(|span| utc(span.to)),
            ..Self::new(served)
        })
    }
}

/// List the arrays.
#[utoipa::path(get, path = "/api/v1/arrays", responses((status = 200, body = ArrayList)))]
async fn arrays(State(service): Shared) -> Json<ArrayList> {
    let mut arrays = Vec::new();
    for served in service.arrays() {
        let of = served.clone();
        let looked = service.look(served, move |array| ArraySummary::of(&of, array)).await;
        arrays.push(looked.unwrap_or_else(|failure| ArraySummary {
            error: Some(failure.to_string()),
            ..ArraySummary::new(served)
        }));
    }
    Json(ArrayList { arrays })
}

/// Describe an array: members with their drives' health, takes with their rates and interfaces, protected spans.
///
/// The answer is that of `longtake array info --json`, with `completeness`.
#[utoipa::path(
    get, path = "/api/v1/arrays/{array}",
    params(("array" = String, Path, description = "Id or UUID of an array")),
    responses((status = 200, body = Object), (status = 404, body = Failure), (status = 500, body = Failure)),
)]
async fn array(State(service): Shared, Names(id): Names<String>) -> Result<Json<Value>, Failure> {
    let described = |array: &mut Array| {
        let described = array.describe()?;
        let takes = &described.contents.takes;
        let completeness = array.completeness(takes);
        Ok(with(json::described(&described), &completeness))
    };
    service.look(&service.array(&id)?, described).await.map(Json)
}

/// The takes of an array.
#[derive(Serialize, ToSchema)]
struct TakeList {
    /// Each as `longtake takes --json` lists it.
    #[schema(value_type = Vec<Object>)]
    takes: Vec<Value>,
    /// Whether somebody is recording on the array: then the last take goes on.
    recording: bool,
    completeness: Completeness,
}

/// List the takes of an array, with their ledgers.
#[utoipa::path(
    get, path = "/api/v1/arrays/{array}/takes",
    params(("array" = String, Path, description = "Id or UUID of an array")),
    responses((status = 200, body = TakeList), (status = 404, body = Failure), (status = 500, body = Failure)),
)]
async fn takes(
    State(service): Shared,
    Names(id): Names<String>,
) -> Result<Json<TakeList>, Failure> {
    let listed = |array: &mut Array| {
        let takes = array.takes()?;
        let rejections = array.rejections(&takes)?;
        let completeness = (&array.completeness(&takes)).into();
        let takes = takes.iter().zip(rejections).map(|(take, of)| json::take(take, of)).collect();
        Ok(TakeList { takes, recording: array.is_recording(), completeness })
    };
    service.look(&service.array(&id)?, listed).await.map(Json)
}

/// The ledger of a take: offered = stored + filtered + each kind of loss.
///
/// The answer is that of `longtake ledger --json`, with `completeness`.
#[utoipa::path(
    get, path = "/api/v1/arrays/{array}/takes/{take}/ledger",
    params(
        ("array" = String, Path, description = "Id or UUID of an array"),
        ("take" = String, Path, description = "UUID of a take, the beginning of the UUID, or `last`"),
    ),
    responses(
        (status = 200, body = Object), (status = 400, body = Failure),
        (status = 404, body = Failure), (status = 500, body = Failure),
    ),
)]
async fn ledger(
    State(service): Shared,
    Names((id, take)): Names<(String, String)>,
) -> Result<Json<Value>, Failure> {
    let found = move |array: &mut Array| {
        let take = array.ledger(&take)?;
        let take = std::slice::from_ref(&take);
        let rejections = array.rejections(take)?[0];
        let completeness = array.completeness(take);
        Ok(with(json::take(&take[0], rejections), &completeness))
    };
    service.look(&service.array(&id)?, found).await.map(Json)
}

/// Count packets by flow, host or port.
///
/// The answer is that of `longtake flows --community-id --json`.
#[utoipa::path(
    get, path = "/api/v1/arrays/{array}/flows",
    params(("array" = String, Path, description = "Id or UUID of an array"), FlowQuery),
    responses(
        (status = 200, body = Object), (status = 400, body = Failure), (status = 404, body = Failure),
        (status = 500, body = Failure), (status = 503, body = Failure, description = "Too many requests read packets"),
    ),
)]
async fn flows(
    State(service): Shared,
    Names(id): Names<String>,
    Parameters(query): Parameters<FlowQuery>,
    caller: Caller,
) -> Result<Json<Value>, Failure> {
    let (served, limits) = (service.array(&id)?, *service.limits());
    let (selection, options) = (query.selection()?, query.options(&limits)?);
    let permit = service.may_read(&caller)?;
    let left = Left::default();
    let has_left = Arc::clone(&left.0);
    let counting = spawn_blocking(move || {
        let _permit = permit;
        let mut array = served.open(READING_MEMORY)?;
        let selection = Selection { read_rate_beside: Some(share(&limits)), ..selection };
        let selected = array.select(&selection).map_err(Failure::of)?;
        let counted = selected.flows(&options, |_| match has_left.load(Ordering::Relaxed) {
            true => ControlFlow::Break(()),
            false => ControlFlow::Continue(()),
        });
        let counted = counted.map_err(Failure::of)?;
        if counted.stopped {
            service.counts().left.fetch_add(1, Ordering::Relaxed);
        }
        Ok(Json(json::flows(&counted, true)))
    });
    counting.await.unwrap_or_else(|_| Err(Failure::broken()))
}

/// A flag that is set when the client has left.
#[derive(Default)]
struct Left(Arc<AtomicBool>);

impl Drop for Left {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// This document.
#[utoipa::path(get, path = "/api/v1/openapi.json", responses((status = 200, body = Object)))]
async fn document() -> Response {
    let (_, document) = routes();
    match document.to_json() {
        Ok(text) => ([(header::CONTENT_TYPE, "application/json")], text).into_response(),
        Err(_) => Failure::broken().into_response(),
    }
}

/// What the library shows, and how complete it is.
fn with(mut shown: Value, completeness: &array::Completeness) -> Value {
    shown["completeness"] = json::completeness(completeness);
    shown
}
