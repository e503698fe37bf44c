//! The certificate that a client has shown, and what it is called.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use ring::digest::{SHA256, digest};
use serde_json::{Value, json};
use tokio_rustls::rustls::pki_types::CertificateDer;
use x509_parser::parse_x509_certificate;

use crate::tls::Tls;

/// A certificate that was valid so recently has not expired.
const CURRENT: Duration = Duration::from_secs(1);

/// A certificate that was valid when its connection was made.
#[derive(Clone, Debug)]
pub struct ClientCertificate(Arc<Shown>);

#[derive(Debug)]
struct Shown {
    /// The client's own, followed by those of its issuers.
    chain: Vec<CertificateDer<'static>>,
    subject: Option<String>,
    sha256: String,
    /// When it was last valid, and by which configuration.
    valid: Mutex<Option<(u64, Instant)>>,
}

impl ClientCertificate {
    /// The first of a chain; None if there is none.
    pub fn new(chain: &[CertificateDer<'_>]) -> Option<Self> {
        let own = chain.first()?;
        let subject = parse_x509_certificate(own).ok().map(|(_, own)| own.subject().to_string());
        let digest = digest(&SHA256, own);
        let sha256 = digest.as_ref().iter().map(|byte| format!("{byte:02x}")).collect();
        let chain = chain.iter().map(|one| one.clone().into_owned()).collect();
        Some(Self(Arc::new(Shown { chain, subject, sha256, valid: Mutex::default() })))
    }

    /// SHA-256 of the certificate in hexadecimal.
    pub fn sha256(&self) -> &str {
        &self.0.sha256
    }

    /// As JSON, for the audit log.
    pub fn shown(&self) -> Value {
        json!({ "subject": self.0.subject, "sha256": self.0.sha256 })
    }

    /// Whether it is still valid: neither expired nor revoked since.
    pub fn is_valid(&self, tls: &Tls) -> bool {
        let now = tls.now();
        let mut valid = self.0.valid.lock().unwrap_or_else(PoisonError::into_inner);
        if valid.is_some_and(|(number, at)| number == now.number && at.elapsed() < CURRENT) {
            return true;
        }
        *valid = now.admits(&self.0.chain).then(|| (now.number, Instant::now()));
        valid.is_some()
    }
}
