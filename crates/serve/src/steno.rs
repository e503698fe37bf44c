//! What Stenographer's clients ask for: packets by a query of its language, as pcap.

use std::sync::Arc;

use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::response::Response;
use base::Timestamp;
use longtake::Selection;
use longtake::instant::now;
use serde::Deserialize;
use utoipa::IntoParams;

use crate::access::Caller;
use crate::api::Shared;
use crate::arrays::{Served, Service};
use crate::failure::Failure;
use crate::packets::Extraction;
use crate::query::{Format, Parameters, Text};
use crate::steno_query::{QueryError, parse};

/// The answer ends after so many packets.
const LIMIT_PACKETS: &str = "steno-limit-packets";

/// The answer ends once it has so many bytes.
const LIMIT_BYTES: &str = "steno-limit-bytes";

/// Bytes of a pcap file before its first packet.
const PCAP_HEAD_BYTES: u64 = 24;

/// Parameters of a query.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct StenographerQuery {
    /// Id or UUID of the array to search. Without it, the service must serve only one array.
    array: Option<String>,
}

/// Extract packets by a query in Stenographer's language.
///
/// The body is the query, such as `host 10.0.0.1 and port 53 and after 3h ago`. The answer is a pcap file with nanoseconds. A limit
/// of 0 is none.
#[utoipa::path(
    post, path = "/query",
    params(
        StenographerQuery,
        ("Steno-Limit-Packets" = Option<u64>, Header, description = "The answer ends after so many packets."),
        ("Steno-Limit-Bytes" = Option<u64>, Header, description = "The answer ends after the packet with which it has so many bytes."),
    ),
    request_body(content = String, content_type = "text/plain"),
    responses(
        (status = 200, body = String, content_type = "application/vnd.tcpdump.pcap"),
        (status = 400, body = Failure), (status = 404, body = Failure), (status = 500, body = Failure),
        (status = 503, body = Failure, description = "Too many requests read packets"),
    ),
)]
pub async fn query(
    State(service): Shared,
    Parameters(asked): Parameters<StenographerQuery>,
    caller: Caller,
    headers: HeaderMap,
    Text(query): Text,
) -> Result<Response, Failure> {
    let array = array(&service, asked.array.as_deref())?;
    let selection = Selection {
        packets_max: limit(&headers, LIMIT_PACKETS)?,
        bytes_max: limit(&headers, LIMIT_BYTES)?.map(|max| max.saturating_sub(PCAP_HEAD_BYTES)),
        ..selection(&query, now())?
    };
    Extraction { array, format: Format::Pcap, selection }.answer(service, &caller).await
}

/// The array that is asked for. Clients that can't name one need a service of one.
fn array(service: &Arc<Service>, id: Option<&str>) -> Result<Served, Failure> {
    match (id, service.arrays()) {
        (Some(id), _) => service.array(id),
        (None, [array]) => Ok(array.clone()),
        (None, arrays) => {
            let error =
                format!("this service serves {} arrays, and the query names none", arrays.len());
            let remedy =
                "ask for /query?array=ID, or start a service of one array for clients that can't";
            Err(Failure::new(StatusCode::BAD_REQUEST, error, remedy))
        }
    }
}

/// What a query selects.
fn selection(query: &str, now: Timestamp) -> Result<Selection, Failure> {
    let test = parse(query, now).map_err(|why: QueryError| {
        let error = format!("the query is not understood: {why}");
        let remedy = "use the words host, net, port, ip proto, icmp, tcp, udp, vlan, mpls, before, after, and, or";
        Failure::new(StatusCode::BAD_REQUEST, error, remedy)
    })?;
    let Some((from, to)) = test.span() else {
        let error = "no time is before and after the times in the query";
        let remedy = "exchange the times of before and after, or join them with or";
        return Err(Failure::new(StatusCode::BAD_REQUEST, error, remedy));
    };
    Ok(Selection {
        since: (from > Timestamp::MIN).then_some(from),
        until: (to < Timestamp::MAX).then_some(to),
        test: Some(test),
        ..Selection::default()
    })
}

/// The value of a header that sets a limit; None if there is none, or 0.
fn limit(headers: &HeaderMap, name: &str) -> Result<Option<u64>, Failure> {
    let Some(value) = headers.get(name) else { return Ok(None) };
    let number = value.to_str().ok().and_then(|text| text.trim().parse::<u64>().ok());
    match number {
        Some(0) => Ok(None),
        Some(number) => Ok(Some(number)),
        None => {
            let error = format!("the header {name} is no number");
            Err(Failure::new(
                StatusCode::BAD_REQUEST,
                error,
                "give a number, or leave the header out",
            ))
        }
    }
}
