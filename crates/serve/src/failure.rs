//! Why a request is not answered: a status code, what is wrong, and what to do.

use std::fmt;

use axum::Json;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use longtake::array::{FilterError, MixedLinkTypes, TakeError};
use serde::Serialize;
use utoipa::ToSchema;

/// Seconds after which a client that was refused may try again.
const RETRY_AFTER_S: u64 = 2;

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

    /// So many requests read packets already.
    pub fn busy(reading: usize) -> Self {
        let error = format!("{reading} requests read packets already");
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
        if status == StatusCode::SERVICE_UNAVAILABLE {
            response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from(RETRY_AFTER_S));
        }
        response
    }
}
