//! Who may ask for what: tokens, their scopes, and the audit log.
//!
//! On a loopback address no token is needed, unless the service requires one or something would be changed. An answer ends early
//! if its token is revoked or expires meanwhile.

use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use axum::body::{Body, Bytes, HttpBody};
use axum::extract::{FromRequestParts, Request, State};
use axum::http::request::Parts;
use axum::http::{HeaderMap, Method, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use hyper::body::{Frame, SizeHint};

use crate::audit::{Asked, AuditLog, Entry};
use crate::failure::Failure;
use crate::guard::is_called_rightly;
use crate::tokens::{CurrentTokens, LOOPBACK, Scope, Token};

/// The address of a client, which each connection adds to its requests.
#[derive(Clone, Copy, Debug)]
pub struct Peer(pub SocketAddr);

/// Who may ask.
#[derive(Debug)]
pub struct Access {
    /// The tokens that there are.
    pub tokens: CurrentTokens,
    /// Whether each request needs one.
    pub requires_token: bool,
    /// Whether the service may be called by loopback names alone.
    pub is_loopback: bool,
    /// Where requests are entered.
    pub audit: Option<Arc<AuditLog>>,
}

/// Who asks: the holder of a token, or a program on this machine that needs none.
#[derive(Clone, Debug, Default)]
pub struct Caller {
    token: Option<Token>,
}

impl Caller {
    /// The name of the token.
    pub fn token_name(&self) -> Option<&str> {
        self.token.as_ref().map(Token::name)
    }

    /// Refuses whoever has no token of this scope.
    fn needs(&self, scope: Scope) -> Result<(), Failure> {
        match &self.token {
            Some(token) if token.scope() >= scope => Ok(()),
            Some(token) => {
                let (name, own) = (token.name(), token.scope());
                let error =
                    format!("the token '{name}' has the scope {own}, and this needs {scope}");
                Err(Failure::new(StatusCode::FORBIDDEN, error, "use a token with that scope"))
            }
            None => Err(Failure::no_token("this request needs a token")),
        }
    }
}

impl<S: Send + Sync> FromRequestParts<S> for Caller {
    type Rejection = Failure;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Failure> {
        parts.extensions.get().cloned().ok_or_else(Failure::broken)
    }
}

/// A caller who may protect and release spans of time.
pub struct Protector;

impl<S: Send + Sync> FromRequestParts<S> for Protector {
    type Rejection = Failure;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Failure> {
        let caller = Caller::from_request_parts(parts, state).await?;
        caller.needs(Scope::Protect).map(|()| Self)
    }
}

/// Who asks, or why the token was not accepted.
#[derive(Clone)]
struct Identified(Result<Caller, Failure>);

/// Identifies who asks, and enters each request in the audit log.
pub async fn enter(
    State(access): State<Arc<Access>>,
    mut request: Request,
    next: Next,
) -> Response {
    let identified = access.identify(request.headers());
    let mut entry = match access.begin(&request, &identified) {
        Ok(entry) => entry,
        Err(failure) => return failure.into_response(),
    };
    let has_body = request.method() != Method::HEAD;
    let token = identified.as_ref().ok().and_then(|caller| caller.token.clone());
    let response = if access.is_called_wrongly(&request) {
        Failure::misdirected().into_response()
    } else {
        request.extensions_mut().insert(Identified(identified));
        next.run(request).await
    };
    if let Some(entry) = &mut entry {
        entry.answered(response.status());
        if (!has_body || response.body().is_end_stream()) && entry.end(true).is_err() {
            return Failure::not_entered().into_response();
        }
    }
    match (&token, &entry) {
        (None, None) => response,
        _ => response.map(|body| Body::new(Watched { body, token, entry, access })),
    }
}

/// Refuses requests that need a token and have no valid one.
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

impl Access {
    /// Who asks, by the token that the request has.
    fn identify(&self, headers: &HeaderMap) -> Result<Caller, Failure> {
        let mut given = headers.get_all(header::AUTHORIZATION).iter();
        let Some(credentials) = given.next() else {
            return match self.requires_token {
                true => Err(Failure::no_token("this service answers only requests with a token")),
                false => Ok(Caller::default()),
            };
        };
        let credentials = credentials.to_str().unwrap_or_default().split_once(' ');
        let secret = match (credentials, given.next()) {
            (Some((scheme, secret)), None) if scheme.eq_ignore_ascii_case("bearer") => secret,
            _ => return Err(Failure::no_token("the Authorization header has no bearer token")),
        };
        match self.tokens.find(secret.trim()) {
            Ok(Some(token)) if token.is_expired() => {
                Err(Failure::wrong_token(&format!("the token '{}' has expired", token.name())))
            }
            Ok(Some(token)) => Ok(Caller { token: Some(token) }),
            Ok(None) => Err(Failure::wrong_token("the token is unknown")),
            Err(_) => {
                let error = "the service can't read its tokens";
                let remedy = "run `longtake token list` where the service runs";
                Err(Failure::new(StatusCode::INTERNAL_SERVER_ERROR, error, remedy))
            }
        }
    }

    /// Enters a request in the audit log, if there is one.
    fn begin(
        &self,
        request: &Request,
        identified: &Result<Caller, Failure>,
    ) -> Result<Option<Entry>, Failure> {
        let Some(audit) = &self.audit else { return Ok(None) };
        let who = identified.as_ref().ok().map(|caller| caller.token_name().unwrap_or(LOOPBACK));
        let peer = request.extensions().get().map(|Peer(address)| *address);
        let path = request.uri().to_string();
        let asked = Asked { who, peer, method: request.method().as_str(), path: &path };
        audit.begin(&asked).map(Some).map_err(|_| Failure::not_entered())
    }

    /// Whether a page of another site may have made the request.
    fn is_called_wrongly(&self, request: &Request) -> bool {
        self.is_loopback && !is_called_rightly(request.uri(), request.headers())
    }

    fn still_admits(&self, token: Option<&Token>) -> bool {
        token.is_none_or(|token| self.tokens.is_valid(token))
    }
}

/// The body of an answer, for as long as its token is valid. Its end is in the audit log before its last bytes are sent.
struct Watched {
    body: Body,
    token: Option<Token>,
    entry: Option<Entry>,
    access: Arc<Access>,
}

impl Watched {
    fn end(&mut self, complete: bool) -> Result<(), axum::Error> {
        self.entry.as_mut().map_or(Ok(()), |entry| entry.end(complete)).map_err(axum::Error::new)
    }
}

impl HttpBody for Watched {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        let frame = ready!(Pin::new(&mut self.body).poll_frame(context));
        if !self.access.still_admits(self.token.as_ref()) {
            let ended = io::Error::other("the token is not valid any more");
            return Poll::Ready(Some(Err(axum::Error::new(ended))));
        }
        let ended = match &frame {
            Some(Ok(frame)) => {
                let bytes = frame.data_ref().map_or(0, Bytes::len);
                self.entry.iter_mut().for_each(|entry| entry.sent(bytes));
                self.body.is_end_stream()
            }
            Some(Err(_)) => false,
            None => true,
        };
        Poll::Ready(match ended.then(|| self.end(true)) {
            Some(Err(reason)) => Some(Err(reason)),
            _ => frame,
        })
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
