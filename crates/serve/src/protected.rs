//! Protected spans of time: the only thing that a client can change.

use axum::Json;
use axum::extract::State;
use base::Timestamp;
use longtake::TimeRange;
use longtake::instant::{now, utc};
use longtake::names;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::access::Protector;
use crate::api::Shared;
use crate::failure::Failure;
use crate::query::{Given, Names, time};

/// A span of time that is to be protected, both ends included.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct SpanToProtect {
    /// Start of the span: RFC 3339, `-10m` (ago), `now`, or seconds since 1970.
    since: String,
    /// End of the span, in the same forms.
    until: String,
    /// Label shown in listings, at most 40 bytes.
    #[serde(default)]
    label: String,
}

/// A span of time. Every protected span that touches it is released.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct SpanToRelease {
    /// Start of the span: RFC 3339, `-10m` (ago), `now`, or seconds since 1970.
    since: String,
    /// End of the span, in the same forms.
    until: String,
}

/// What was protected or released, as `longtake protect --json` shows it.
#[derive(Debug, Serialize, ToSchema)]
pub struct SpanChanged {
    from: String,
    to: String,
    /// Number of spans that are protected now.
    protected_ranges: usize,
}

/// Protect a span of time from being overwritten by a ring.
///
/// It needs a token of the scope `protect`, also on a loopback address, and the header `Content-Type: application/json`. On an array
/// that is not being recorded, the service needs write access to the members.
#[utoipa::path(
    post, path = "/api/v1/arrays/{array}/protected",
    params(("array" = String, Path, description = "Id or UUID of an array")),
    request_body = SpanToProtect,
    responses(
        (status = 200, body = SpanChanged), (status = 400, body = Failure), (status = 401, body = Failure),
        (status = 403, body = Failure), (status = 404, body = Failure), (status = 409, body = Failure),
        (status = 415, body = Failure), (status = 500, body = Failure),
    ),
    security(("token" = [])),
)]
pub async fn protect(
    _: Protector,
    State(service): Shared,
    Names(id): Names<String>,
    Given(asked): Given<SpanToProtect>,
) -> Result<Json<SpanChanged>, Failure> {
    let span = span(&asked.since, &asked.until)?;
    let label = names::label(&asked.label)
        .map_err(|why| Failure::parameter(format!("label={}: {why}", asked.label)))?;
    let protected = move |array: &mut longtake::Array| array.protect(span, &label);
    let count = service.look(&service.array(&id)?, protected).await?;
    Ok(changed(span, count))
}

/// Release every protected span of time that touches a span.
///
/// It needs what protecting needs. 409 says that no protected span touches this one.
#[utoipa::path(
    delete, path = "/api/v1/arrays/{array}/protected",
    params(("array" = String, Path, description = "Id or UUID of an array")),
    request_body = SpanToRelease,
    responses(
        (status = 200, body = SpanChanged), (status = 400, body = Failure), (status = 401, body = Failure),
        (status = 403, body = Failure), (status = 404, body = Failure), (status = 409, body = Failure),
        (status = 415, body = Failure), (status = 500, body = Failure),
    ),
    security(("token" = [])),
)]
pub async fn release(
    _: Protector,
    State(service): Shared,
    Names(id): Names<String>,
    Given(asked): Given<SpanToRelease>,
) -> Result<Json<SpanChanged>, Failure> {
    let span = span(&asked.since, &asked.until)?;
    let count = service.look(&service.array(&id)?, move |array| array.unprotect(span)).await?;
    Ok(changed(span, count))
}

fn span(since: &str, until: &str) -> Result<TimeRange, Failure> {
    let now: Timestamp = now();
    let span = TimeRange { from: time("since", since, now)?, to: time("until", until, now)? };
    if span.from > span.to {
        return Err(Failure::not_ordered(span.from, span.to));
    }
    Ok(span)
}

fn changed(span: TimeRange, protected_ranges: usize) -> Json<SpanChanged> {
    Json(SpanChanged { from: utc(span.from), to: utc(span.to), protected_ranges })
}
