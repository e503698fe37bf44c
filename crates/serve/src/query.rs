//! Parameters of requests, in the words of the command line.

use std::fmt::Display;
use std::str::FromStr;

use axum::Json;
use axum::extract::rejection::{JsonRejection, QueryRejection};
use axum::extract::{FromRequest, FromRequestParts, Query, Request};
use axum::http::StatusCode;
use axum::http::request::Parts;
use base::Timestamp;
use longtake::Selection;
use longtake::array::{FLOWS_MAX, FlowOptions};
use longtake::instant::{When, now};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use utoipa::IntoParams;

use crate::Limits;
use crate::failure::Failure;

/// Rows of flows, unless the client asks for another number.
const TOP: usize = 100;

/// Rows of flows at most.
const TOP_MAX: usize = 10_000;

/// Parameters of a request that is answered with packets.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct PacketQuery {
    /// Time of the first packet: RFC 3339, `-10m` (ago), `now`, or seconds since 1970. Default: the oldest packet.
    since: Option<String>,
    /// Time of the last packet, in the same forms. Default: the newest packet.
    until: Option<String>,
    /// Only packets of this take: its UUID, the beginning of the UUID, or `last`.
    take: Option<String>,
    /// Only packets that this libpcap expression accepts.
    #[serde(default)]
    filter: String,
    /// Only packets of these flows, in both directions: Community IDs with commas between them.
    #[serde(default)]
    community_id: String,
    /// Format of the answer.
    #[serde(default)]
    #[param(inline)]
    pub format: Format,
}

/// Formats of packets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum Format {
    /// pcapng, which ends with a section whose comment states how complete the answer is.
    #[default]
    Pcapng,
    /// pcap with nanoseconds; a single link type.
    Pcap,
    /// A JSON object a line for each packet, and a last one with `completeness`.
    Jsonl,
}

/// Parameters of a request that counts packets.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct FlowQuery {
    /// Time of the first packet: RFC 3339, `-10m` (ago), `now`, or seconds since 1970. Default: the oldest packet.
    since: Option<String>,
    /// Time of the last packet, in the same forms. Default: the newest packet.
    until: Option<String>,
    /// Only packets of this take: its UUID, the beginning of the UUID, or `last`.
    take: Option<String>,
    /// Only packets that this libpcap expression accepts.
    #[serde(default)]
    filter: String,
    /// Count by `flows` (the default), `hosts` or `ports`.
    group: Option<String>,
    /// Sort by `bytes` (the default) or `packets`, most first.
    by: Option<String>,
    /// Number of rows, 10000 at most. Default: 100.
    top: Option<usize>,
}

impl PacketQuery {
    /// The packets that are asked for.
    ///
    /// # Errors
    /// If a parameter has a value that it can't have.
    pub fn selection(&self) -> Result<Selection, Failure> {
        let ids = self.community_id.split(',').filter(|id| !id.is_empty());
        let ids = ids.map(|id| parsed("community_id", id)).collect::<Result<_, _>>()?;
        let selection = selection(&self.since, &self.until, &self.take, &self.filter)?;
        Ok(Selection { community_ids: ids, ..selection })
    }
}

impl FlowQuery {
    /// The packets that are counted.
    ///
    /// # Errors
    /// If a parameter has a value that it can't have.
    pub fn selection(&self) -> Result<Selection, Failure> {
        selection(&self.since, &self.until, &self.take, &self.filter)
    }

    /// How they are counted. Requests that may run at the same time share the memory of one command.
    ///
    /// # Errors
    /// If a parameter has a value that it can't have.
    pub fn options(&self, limits: &Limits) -> Result<FlowOptions, Failure> {
        let top = self.top.unwrap_or(TOP);
        if top > TOP_MAX {
            return Err(Failure::parameter(format!("top={top}: {TOP_MAX} rows are the most")));
        }
        let default = FlowOptions::default();
        Ok(FlowOptions {
            group: optional("group", &self.group)?.unwrap_or(default.group),
            order: optional("by", &self.by)?.unwrap_or(default.order),
            top: Some(top),
            rows_max: FLOWS_MAX / limits.reading_max.max(1),
        })
    }
}

fn selection(
    since: &Option<String>,
    until: &Option<String>,
    take: &Option<String>,
    filter: &str,
) -> Result<Selection, Failure> {
    let now = now();
    let at =
        |name, text: &Option<String>| text.as_deref().map(|text| time(name, text, now)).transpose();
    let (since, until) = (at("since", since)?, at("until", until)?);
    if let (Some(since), Some(until)) = (since, until)
        && since > until
    {
        return Err(Failure::not_ordered(since, until));
    }
    Ok(Selection {
        since,
        until,
        take: take.clone(),
        filter: filter.to_owned(),
        ..Selection::default()
    })
}

/// A point in time.
///
/// # Errors
/// If the text is none.
pub fn time(name: &str, text: &str, now: Timestamp) -> Result<Timestamp, Failure> {
    parsed::<When>(name, text).map(|when| when.at(now))
}

fn optional<T: FromStr<Err: Display>>(
    name: &str,
    text: &Option<String>,
) -> Result<Option<T>, Failure> {
    text.as_deref().map(|text| parsed(name, text)).transpose()
}

fn parsed<T: FromStr<Err: Display>>(name: &str, text: &str) -> Result<T, Failure> {
    text.parse().map_err(|why| Failure::parameter(format!("{name}={text}: {why}")))
}

/// The parameters of a request. Wrong ones get an answer as other failures do.
pub struct Parameters<T>(pub T);

impl<T: DeserializeOwned, S: Send + Sync> FromRequestParts<S> for Parameters<T> {
    type Rejection = Failure;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Failure> {
        let parsed: Result<Query<T>, QueryRejection> =
            Query::from_request_parts(parts, state).await;
        parsed.map(|Query(found)| Self(found)).map_err(|why| Failure::parameter(why.body_text()))
    }
}

/// The parts of an address that are names. Those that are no text get an answer as other failures do.
pub struct Names<T>(pub T);

impl<T: DeserializeOwned + Send, S: Send + Sync> FromRequestParts<S> for Names<T> {
    type Rejection = Failure;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Failure> {
        let found = axum::extract::Path::from_request_parts(parts, state).await;
        found
            .map(|axum::extract::Path(names)| Self(names))
            .map_err(|why| Failure::parameter(why.body_text()))
    }
}

/// The body of a request, as JSON. It has to be called that. Wrong ones get an answer as other failures do.
pub struct Given<T>(pub T);

impl<T: DeserializeOwned, S: Send + Sync> FromRequest<S> for Given<T> {
    type Rejection = Failure;

    async fn from_request(request: Request, state: &S) -> Result<Self, Failure> {
        let given = Json::<T>::from_request(request, state).await;
        given.map(|Json(given)| Self(given)).map_err(|why| match why {
            JsonRejection::MissingJsonContentType(_) => {
                let error = "the body of the request is not called JSON";
                let remedy = "add the header 'Content-Type: application/json'";
                Failure::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, error, remedy)
            }
            why => Failure::parameter(why.body_text()),
        })
    }
}

/// The body of a request, as text of whatever kind. Others get an answer as other failures do.
pub struct Text(pub String);

impl<S: Send + Sync> FromRequest<S> for Text {
    type Rejection = Failure;

    async fn from_request(request: Request, state: &S) -> Result<Self, Failure> {
        let text = String::from_request(request, state).await;
        text.map(Self).map_err(|why| Failure::parameter(why.body_text()))
    }
}
