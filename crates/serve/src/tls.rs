//! TLS: the certificate and the key of the service, for connections from other machines.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tokio_rustls::rustls::crypto::ring::default_provider;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::rustls::{self, ServerConfig};

/// Where the certificate and its key are, in PEM.
#[derive(Clone, Debug)]
pub struct TlsFiles {
    /// The certificate, followed by those that its issuer is known by, if there are any.
    pub certificate: PathBuf,
    /// The key that belongs to the certificate.
    pub key: PathBuf,
}

/// Why TLS can't be used.
#[derive(Debug)]
pub struct TlsError {
    path: PathBuf,
    reason: String,
}

impl TlsError {
    fn new(path: &Path, reason: impl fmt::Display) -> Self {
        Self { path: path.to_owned(), reason: reason.to_string() }
    }
}

impl fmt::Display for TlsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.path.display(), self.reason)
    }
}

impl std::error::Error for TlsError {}

/// How connections are encrypted: TLS 1.2 and 1.3, for HTTP/1.1 alone.
///
/// # Errors
/// If a file can't be read, holds something else, or the two don't belong together.
pub fn config(files: &TlsFiles) -> Result<Arc<ServerConfig>, TlsError> {
    let TlsFiles { certificate, key } = files;
    let of_certificate = |reason: &dyn fmt::Display| TlsError::new(certificate, reason);
    let chain = CertificateDer::pem_file_iter(certificate)
        .and_then(Iterator::collect::<Result<Vec<_>, _>>)
        .map_err(|reason| of_certificate(&reason))?;
    if chain.is_empty() {
        return Err(of_certificate(&"there is no certificate in PEM in this file"));
    }
    let private = PrivateKeyDer::from_pem_file(key).map_err(|reason| TlsError::new(key, reason))?;
    let configured = ServerConfig::builder_with_provider(Arc::new(default_provider()))
        .with_safe_default_protocol_versions()
        .and_then(|config| config.with_no_client_auth().with_single_cert(chain, private));
    let mut config = configured.map_err(|reason| match reason {
        rustls::Error::InconsistentKeys(_) => {
            TlsError::new(key, format!("this is not the key of {}", certificate.display()))
        }
        reason => of_certificate(&reason),
    })?;
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(Arc::new(config))
}
