//! The way in, which every request takes: who asks is identified, the body is read, and the request is entered in the audit log with
//! it before anything is carried out.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::body::{Body, Bytes, HttpBody, to_bytes};
use axum::extract::{Request, State};
use axum::http::{Method, StatusCode};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use tokio::time::timeout;

use crate::access::{Access, Caller};
use crate::audit::{Asked, Entry};
use crate::client_certificate::ClientCertificate;
use crate::failure::Failure;
use crate::watched::Watched;

/// Longest body of a request in bytes.
const BODY_BYTES_MAX: usize = 16 << 10;

/// The address of a client, which each connection adds to its requests.
#[derive(Clone, Copy, Debug)]
pub struct Peer(pub SocketAddr);

/// Who asks, or why the token was not accepted.
#[derive(Clone)]
struct Identified(Result<Caller, Failure>);

/// Identifies who asks, and enters each request in the audit log.
pub async fn enter(State(access): State<Arc<Access>>, request: Request, next: Next) -> Response {
    let certificate = request.extensions().get::<ClientCertificate>().cloned();
    let identified = access.identify(request.headers(), certificate.as_ref());
    let called =
        if access.is_called_wrongly(&request) { Err(Failure::misdirected()) } else { Ok(()) };
    let (mut request, body) = match (&identified, called) {
        (Ok(_), Ok(())) => with_body(request, access.body_max).await,
        (_, Err(failure)) => (request, Err(failure)),
        (Err(_), Ok(())) => (request, Ok(Bytes::new())),
    };
    let said = body.as_deref().unwrap_or_default();
    let mut entry = match begin(&access, &request, &identified, certificate.as_ref(), said) {
        Ok(entry) => entry,
        Err(failure) => return failure.into_response(),
    };
    let has_body = request.method() != Method::HEAD;
    let caller = identified.as_ref().ok().filter(|caller| !caller.is_anyone()).cloned();
    let response = match body {
        Err(failure) => failure.into_response(),
        Ok(_) => {
            request.extensions_mut().insert(Identified(identified));
            next.run(request).await
        }
    };
    if let Some(entry) = &mut entry {
        entry.answered(response.status());
        if (!has_body || response.body().is_end_stream()) && entry.end(true).is_err() {
            return Failure::not_entered().into_response();
        }
    }
    match (&caller, &entry) {
        (None, None) => response,
        _ => response.map(|body| Body::new(Watched { body, caller, entry, access })),
    }
}

/// Refuses requests that need a token or a certificate and have no valid one.
pub async fn admit(mut request: Request, next: Next) -> Response {
    match request.extensions_mut().remove() {
        Some(Identified(Ok(caller))) => {
            request.extensions_mut().insert(caller);
            next.run(request).await
        }
        Some(Identified(Err(failure))) => failure.into_response(),
        None => Failure::broken().into_response(),
    }
}

/// Reads the body of a request that may have one. It has to come as quickly as the head.
async fn with_body(request: Request, body_max: Duration) -> (Request, Result<Bytes, Failure>) {
    if matches!(*request.method(), Method::GET | Method::HEAD) {
        return (request, Ok(Bytes::new()));
    }
    let (head, body) = request.into_parts();
    let is_too_long = body.size_hint().lower() > BODY_BYTES_MAX as u64;
    let read = match timeout(body_max, to_bytes(body, BODY_BYTES_MAX)).await {
        Ok(Ok(bytes)) => Ok(bytes),
        Ok(Err(_)) if is_too_long => {
            let error = format!("the body of the request is longer than {BODY_BYTES_MAX} bytes");
            Err(Failure::parameter(error))
        }
        Ok(Err(reason)) => Err(Failure::parameter(format!("the body of the request: {reason}"))),
        Err(_) => {
            let error = "the body of the request has not come in time";
            Err(Failure::new(StatusCode::REQUEST_TIMEOUT, error, "send it at once"))
        }
    };
    let body = read.clone().map_or_else(|_| Body::empty(), Body::from);
    (Request::from_parts(head, body), read)
}

/// Enters a request in the audit log, if there is one.
fn begin(
    access: &Access,
    request: &Request,
    identified: &Result<Caller, Failure>,
    certificate: Option<&ClientCertificate>,
    body: &[u8],
) -> Result<Option<Entry>, Failure> {
    let Some(audit) = &access.audit else { return Ok(None) };
    let peer = request.extensions().get().map(|Peer(address)| *address);
    let asked = Asked {
        token: identified.as_ref().ok().and_then(Caller::token_entered),
        certificate: certificate.map(ClientCertificate::shown),
        peer,
        method: request.method().as_str(),
        path: &request.uri().to_string(),
        body: &String::from_utf8_lossy(body),
    };
    audit.begin(&asked).map(Some).map_err(|_| Failure::not_entered())
}
