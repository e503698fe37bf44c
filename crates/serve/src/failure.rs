//! Why a request is not answered: a status code, what is wrong, and what to do.

use std::fmt;

use axum::Json;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use base::Timestamp;
use longtake::array::protect::ChangeRefused;
use longtake::array::{FilterError, MixedLinkTypes, TakeError};
use longtake::instant::utc;
use serde::Serialize;
use utoipa::ToSchema;

/// Seconds after which a client that was refused may try again.
const RETRY_AFTER_S: u64 = 2;

/// How a client proves who it is.
const CHALLENGE: &str = "Bearer realm=\"longtake\"";

/// The answer to a request that failed.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct Failure {
    #[serde(skip)]
    status: StatusCode,
    /// What is wrong.
    error: String,
    /// What to do.
    remedy: String,
}

impl Failure {
    /// With this status code.
    pub fn new(status: StatusCode, error: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self { status, error: error.into(), remedy: remedy.into() }
    }

    /// A parameter has a value that it can't have.
    pub fn parameter(error: impl Into<String>) -> Self {
        let remedy = "correct the parameter; /api/v1/openapi.json describes it";
        Self::new(StatusCode::BAD_REQUEST, error, remedy)
    }

    /// A span ends before it begins.
    pub fn not_ordered(since: Timestamp, until: Timestamp) -> Self {
        Self::parameter(format!("since {} lies after until {}", utc(since), utc(until)))
    }

    /// A request names another host.
    pub fn misdirected() -> Self {
        let error = "the Host header names neither localhost nor a loopback address";
        let remedy = "use localhost or 127.0.0.1 with the service's port";
        Self::new(StatusCode::MISDIRECTED_REQUEST, error, remedy)
    }

    /// A request has no token.
    pub fn no_token(error: &str) -> Self {
        let remedy =
            "send the header 'Authorization: Bearer TOKEN'; `longtake token create` creates tokens";
        Self::new(StatusCode::UNAUTHORIZED, error, remedy)
    }

    /// A request has a token that is not valid.
    pub fn wrong_token(error: &str) -> Self {
        let remedy = "create a token with `longtake token create`";
        Self::new(StatusCode::UNAUTHORIZED, error, remedy)
    }

    /// The certificate of a client is valid no more.
    pub fn wrong_certificate() -> Self {
        let error = "the client certificate has expired, or was revoked";
        Self::new(StatusCode::UNAUTHORIZED, error, "connect with another certificate")
    }

    /// The audit log can't be written.
    pub fn not_entered() -> Self {
        let error = "the service can't write its audit log, and answers nothing without it";
        let remedy = "make room for the log, or check who may write it";
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, error, remedy)
    }

    /// No array of this id is served.
    pub fn no_array(id: &str) -> Self {
        let remedy = "/api/v1/arrays lists the arrays by id";
        Self::new(StatusCode::NOT_FOUND, format!("no array '{id}' is served"), remedy)
    }

    /// Another array is where the one of this id was.
    pub fn replaced(id: &str) -> Self {
        let error = format!("another array has taken the place of '{id}'");
        Self::new(StatusCode::NOT_FOUND, error, "restart the service to serve the new array")
    }

    /// So many requests read packets already, of `whom`.
    pub fn busy(reading: usize, whom: &str) -> Self {
        let error = format!("{reading} requests{whom} read packets already");
        let remedy = "try again when one of them has ended";
        Self::new(StatusCode::SERVICE_UNAVAILABLE, error, remedy)
    }

    /// The service itself has failed.
    pub fn broken() -> Self {
        let remedy = "run the command of the same name, which shows more";
        Self::new(
            StatusCode::INTERNAL_SERVER_ERROR,
            "the request failed inside the service",
            remedy,
        )
    }

    /// What the library says.
    pub fn of(error: longtake::Error) -> Self {
        let text = format!("{error:#}");
        if let Some(take) = error.downcast_ref::<TakeError>() {
            let status = match take {
                TakeError::Unknown(_) | TakeError::NotInSpan(_) => StatusCode::NOT_FOUND,
                TakeError::Ambiguous(_) => StatusCode::BAD_REQUEST,
            };
            return Self::new(status, text, "name a take that the array's /takes lists");
        }
        if error.downcast_ref::<ChangeRefused>().is_some() {
            let remedy = "/api/v1/arrays/ID shows the spans that are protected";
            return Self::new(StatusCode::CONFLICT, text, remedy);
        }
        match error.downcast_ref::<FilterError>() {
            Some(FilterError::LibraryMissing { .. }) => {
                let remedy = "install libpcap where the service runs";
                return Self::new(StatusCode::INTERNAL_SERVER_ERROR, text, remedy);
            }
            Some(_) => return Self::parameter(text),
            None => {}
        }
        if error.downcast_ref::<MixedLinkTypes>().is_some() {
            let remedy = "use format=pcapng, or a filter that selects one link type";
            return Self::new(StatusCode::BAD_REQUEST, text, remedy);
        }
        let remedy = "check the array's drives with `longtake array info`";
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, text, remedy)
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.error)
    }
}

impl std::error::Error for Failure {}

impl IntoResponse for Failure {
    fn into_response(self) -> Response {
        let status = self.status;
        let mut response = (status, Json(self)).into_response();
        let headers = response.headers_mut();
        match status {
            StatusCode::SERVICE_UNAVAILABLE => {
                headers.insert(header::RETRY_AFTER, HeaderValue::from(RETRY_AFTER_S));
            }
            StatusCode::UNAUTHORIZED => {
                headers.insert(header::WWW_AUTHENTICATE, HeaderValue::from_static(CHALLENGE));
                // Whoever may not ask keeps no connection.
                headers.insert(header::CONNECTION, HeaderValue::from_static("close"));
            }
            _ => {}
        }
        response
    }
}
