//! Who may ask for what: tokens and their scopes, and certificates of clients, which allow reading.
//!
//! On a loopback address neither is needed, unless the service requires one or something would be changed.

use std::sync::Arc;
use std::time::Duration;

use axum::extract::{FromRequestParts, Request};
use axum::http::request::Parts;
use axum::http::{HeaderMap, StatusCode, header};

use crate::audit::AuditLog;
use crate::client_certificate::ClientCertificate;
use crate::failure::Failure;
use crate::guard::is_called_rightly;
use crate::tls::Tls;
use crate::tokens::{CurrentTokens, LOOPBACK, Scope, Token};

/// Who may ask.
#[derive(Debug)]
pub struct Access {
    /// The tokens that there are.
    pub tokens: CurrentTokens,
    /// Knows the certificates of clients, if they may have any.
    pub tls: Option<Arc<Tls>>,
    /// Whether each request needs a token or a certificate.
    pub requires_token: bool,
    /// Whether the service may be called by loopback names alone.
    pub is_loopback: bool,
    /// How long the body of a request may take to arrive.
    pub body_max: Duration,
    /// Where requests are entered.
    pub audit: Option<Arc<AuditLog>>,
}

/// Who asks: the holder of a token or of a certificate, or a program on this machine that needs neither.
#[derive(Clone, Debug, Default)]
pub struct Caller(Proof);

#[derive(Clone, Debug, Default)]
enum Proof {
    #[default]
    None,
    Token(Token),
    Certificate(ClientCertificate),
}

impl Caller {
    /// Whether it is a program on this machine that needs no proof.
    pub fn is_anyone(&self) -> bool {
        matches!(self.0, Proof::None)
    }

    /// The name of the token in the audit log; None with a certificate.
    pub fn token_entered(&self) -> Option<&str> {
        match &self.0 {
            Proof::None => Some(LOOPBACK),
            Proof::Token(token) => Some(token.name()),
            Proof::Certificate(_) => None,
        }
    }

    /// What limits to one token or certificate are counted by, and what it is; None for anyone.
    pub fn limited_by(&self) -> Option<(String, &'static str)> {
        match &self.0 {
            Proof::None => None,
            Proof::Token(token) => Some((format!("token {}", token.name()), " with this token")),
            Proof::Certificate(certificate) => {
                Some((format!("certificate {}", certificate.sha256()), " with this certificate"))
            }
        }
    }

    /// Refuses whoever has no token of this scope.
    fn needs(&self, scope: Scope) -> Result<(), Failure> {
        match &self.0 {
            Proof::Token(token) if token.scope() >= scope => Ok(()),
            Proof::Token(token) => {
                let (name, own) = (token.name(), token.scope());
                let error =
                    format!("the token '{name}' has the scope {own}, and this needs {scope}");
                Err(Failure::new(StatusCode::FORBIDDEN, error, "use a token with that scope"))
            }
            Proof::Certificate(_) => {
                let error = format!(
                    "a client certificate has the scope {}, and this needs {scope}",
                    Scope::Read
                );
                Err(Failure::new(StatusCode::FORBIDDEN, error, "send a token with that scope"))
            }
            Proof::None => Err(Failure::no_token("this request needs a token")),
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

impl Access {
    /// Who asks, by the token that the request has, or else by the certificate that its connection has.
    ///
    /// # Errors
    /// If neither is valid, or there is none and the request needs one.
    pub fn identify(
        &self,
        headers: &HeaderMap,
        certificate: Option<&ClientCertificate>,
    ) -> Result<Caller, Failure> {
        let mut given = headers.get_all(header::AUTHORIZATION).iter();
        let Some(credentials) = given.next() else { return self.without_token(certificate) };
        let credentials = credentials.to_str().unwrap_or_default().split_once(' ');
        let secret = match (credentials, given.next()) {
            (Some((scheme, secret)), None) if scheme.eq_ignore_ascii_case("bearer") => secret,
            _ => return Err(Failure::no_token("the Authorization header has no bearer token")),
        };
        match self.tokens.find(secret.trim()) {
            Ok(Some(token)) if token.is_expired() => {
                Err(Failure::wrong_token(&format!("the token '{}' has expired", token.name())))
            }
            Ok(Some(token)) => Ok(Caller(Proof::Token(token))),
            Ok(None) => Err(Failure::wrong_token("the token is unknown")),
            Err(_) => {
                let error = "the service can't read its tokens";
                let remedy = "run `longtake token list` where the service runs";
                Err(Failure::new(StatusCode::INTERNAL_SERVER_ERROR, error, remedy))
            }
        }
    }

    fn without_token(&self, certificate: Option<&ClientCertificate>) -> Result<Caller, Failure> {
        if let Some(certificate) = certificate {
            let caller = Caller(Proof::Certificate(certificate.clone()));
            return match self.still_admits(&caller) {
                true => Ok(caller),
                false => Err(Failure::wrong_certificate()),
            };
        }
        let knows_clients = self.tls.as_ref().is_some_and(|tls| tls.knows_clients());
        match (self.requires_token, knows_clients) {
            (false, _) => Ok(Caller::default()),
            (true, false) => {
                Err(Failure::no_token("this service answers only requests with a token"))
            }
            (true, true) => {
                let error =
                    "this service answers only requests with a token or a client certificate";
                Err(Failure::no_token(error))
            }
        }
    }

    /// Whether a page of another site may have made the request.
    pub fn is_called_wrongly(&self, request: &Request) -> bool {
        self.is_loopback && !is_called_rightly(request.uri(), request.headers())
    }

    /// Whether a caller may ask, or be sent, something now.
    pub fn still_admits(&self, Caller(proof): &Caller) -> bool {
        match proof {
            Proof::None => true,
            Proof::Token(token) => self.tokens.is_valid(token),
            Proof::Certificate(certificate) => {
                self.tls.as_ref().is_some_and(|tls| certificate.is_valid(tls))
            }
        }
    }
}
