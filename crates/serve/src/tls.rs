//! TLS: the certificate and the key of the service, and whose certificates clients may show, for connections from other machines.
//! Files that change are read again for the next connection.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use tokio_rustls::rustls::crypto::CryptoProvider;
use tokio_rustls::rustls::crypto::ring::default_provider;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{
    CertificateDer, CertificateRevocationListDer, PrivateKeyDer, UnixTime,
};
use tokio_rustls::rustls::server::WebPkiClientVerifier;
use tokio_rustls::rustls::server::danger::ClientCertVerifier;
use tokio_rustls::rustls::{self, RootCertStore, ServerConfig};

use crate::file_stamp::FileStamp;

/// Where certificates and keys are, in PEM.
#[derive(Clone, Debug)]
pub struct TlsFiles {
    /// The certificate of the service, followed by those that its issuer is known by, if there are any.
    pub certificate: PathBuf,
    /// The key that belongs to the certificate.
    pub key: PathBuf,
    /// Certificates of those who sign the certificates of clients; None if clients have none.
    pub client_ca: Option<PathBuf>,
    /// What they have revoked; None if nothing is. Then there is a list of each of them.
    pub client_crl: Option<PathBuf>,
}

impl TlsFiles {
    /// The certificate, the key, `client_ca` and `client_crl`, as far as they are named; None without a certificate and its key.
    pub fn of([certificate, key, client_ca, client_crl]: [Option<PathBuf>; 4]) -> Option<Self> {
        let (certificate, key) = certificate.zip(key)?;
        Some(Self { certificate, key, client_ca, client_crl })
    }
}

/// Why TLS can't be used.
#[derive(Debug)]
pub struct TlsError {
    path: PathBuf,
    reason: String,
    /// Whether it is about the certificates of clients.
    pub is_of_clients: bool,
}

impl fmt::Display for TlsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.path.display(), self.reason)
    }
}

impl std::error::Error for TlsError {}

/// How connections are encrypted, and which certificates of clients are valid.
#[derive(Clone, Debug)]
pub struct Configured {
    /// TLS 1.2 and 1.3, for HTTP/1.1 alone.
    pub config: Arc<ServerConfig>,
    /// Verifies certificates of clients; None if they have none.
    clients: Option<Arc<dyn ClientCertVerifier>>,
    /// Larger than those of all earlier ones.
    pub number: u64,
}

/// TLS as its files have it.
#[derive(Debug)]
pub struct Tls {
    files: TlsFiles,
    current: Mutex<Current>,
    is_outdated: AtomicBool,
}

/// What was read, and of which files.
#[derive(Debug)]
struct Current {
    /// None if the files may have changed since.
    stamps: Option<Vec<FileStamp>>,
    configured: Configured,
}

impl Tls {
    /// Reads the files.
    ///
    /// # Errors
    /// If a file can't be read, holds something else, or the certificate and the key don't belong together.
    pub fn new(files: TlsFiles) -> Result<Self, TlsError> {
        let stamps = stamps(&files);
        let current = Mutex::new(Current { stamps, configured: configured(&files, 0)? });
        Ok(Self { files, current, is_outdated: AtomicBool::default() })
    }

    /// Whether clients may have certificates.
    pub fn knows_clients(&self) -> bool {
        self.files.client_ca.is_some()
    }

    /// What holds now. Files that have changed and can't be used change nothing.
    pub fn now(&self) -> Configured {
        let mut current = self.current.lock().unwrap_or_else(PoisonError::into_inner);
        let stamps = stamps(&self.files);
        if stamps.is_none() || stamps != current.stamps {
            let read = configured(&self.files, current.configured.number + 1);
            self.is_outdated.store(read.is_err(), Ordering::Relaxed);
            if let Ok(configured) = read {
                *current = Current { stamps, configured };
            }
        }
        current.configured.clone()
    }

    /// Whether the files have changed since they were last read, and can't be used.
    pub fn is_outdated(&self) -> bool {
        self.now();
        self.is_outdated.load(Ordering::Relaxed)
    }
}

impl Configured {
    /// Whether the certificate of a client is valid, the first of a chain.
    pub fn admits(&self, chain: &[CertificateDer<'static>]) -> bool {
        let (Some(clients), Some((own, issuers))) = (&self.clients, chain.split_first()) else {
            return false;
        };
        clients.verify_client_cert(own, issuers, UnixTime::now()).is_ok()
    }
}

/// Those of all files; None if one is not there or may change without another stamp.
fn stamps(files: &TlsFiles) -> Option<Vec<FileStamp>> {
    let TlsFiles { certificate, key, client_ca, client_crl } = files;
    let paths = [Some(certificate), Some(key), client_ca.as_ref(), client_crl.as_ref()];
    let stamp = |path: &PathBuf| FileStamp::of(path).filter(FileStamp::is_settled);
    paths.into_iter().flatten().map(stamp).collect()
}

fn configured(files: &TlsFiles, number: u64) -> Result<Configured, TlsError> {
    let TlsFiles { certificate, key, .. } = files;
    let error = |path: &Path, reason: &dyn fmt::Display| TlsError {
        path: path.to_owned(),
        reason: reason.to_string(),
        is_of_clients: false,
    };
    let chain = certificates(certificate).map_err(|reason| error(certificate, &reason))?;
    let private = PrivateKeyDer::from_pem_file(key).map_err(|reason| error(key, &reason))?;
    let provider = Arc::new(default_provider());
    let clients = clients(files, &provider)?;
    let builder = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|reason| error(certificate, &reason))?;
    let builder = match &clients {
        Some(verifier) => builder.with_client_cert_verifier(Arc::clone(verifier)),
        None => builder.with_no_client_auth(),
    };
    let mut config = builder.with_single_cert(chain, private).map_err(|reason| match reason {
        rustls::Error::InconsistentKeys(_) => {
            error(key, &format!("this is not the key of {}", certificate.display()))
        }
        reason if reason.to_string().contains("UnsupportedCertVersion") => {
            error(certificate, &"this certificate is older than X.509 version 3: sign it again")
        }
        reason => error(certificate, &reason),
    })?;
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(Configured { config: Arc::new(config), clients, number })
}

/// What verifies the certificates of clients. They need none, so that those with tokens are answered as well.
fn clients(
    files: &TlsFiles,
    provider: &Arc<CryptoProvider>,
) -> Result<Option<Arc<dyn ClientCertVerifier>>, TlsError> {
    let Some(client_ca) = &files.client_ca else { return Ok(None) };
    let error = |path: &Path, reason: &dyn fmt::Display| TlsError {
        path: path.to_owned(),
        reason: reason.to_string(),
        is_of_clients: true,
    };
    let mut roots = RootCertStore::empty();
    for root in certificates(client_ca).map_err(|reason| error(client_ca, &reason))? {
        roots.add(root).map_err(|reason| error(client_ca, &reason))?;
    }
    let mut revoked = Vec::new();
    if let Some(client_crl) = &files.client_crl {
        revoked = CertificateRevocationListDer::pem_file_iter(client_crl)
            .and_then(Iterator::collect::<Result<Vec<_>, _>>)
            .map_err(|reason| error(client_crl, &reason))?;
        if revoked.is_empty() {
            return Err(error(client_crl, &"there is no revocation list in PEM in this file"));
        }
    }
    let verifier =
        WebPkiClientVerifier::builder_with_provider(Arc::new(roots), Arc::clone(provider))
            .with_crls(revoked)
            .allow_unauthenticated()
            .build()
            .map_err(|reason| error(files.client_crl.as_ref().unwrap_or(client_ca), &reason))?;
    Ok(Some(verifier))
}

/// The certificates in a file.
fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, String> {
    let found = CertificateDer::pem_file_iter(path)
        .and_then(Iterator::collect::<Result<Vec<_>, _>>)
        .map_err(|reason| reason.to_string())?;
    match found.is_empty() {
        true => Err("there is no certificate in PEM in this file".to_owned()),
        false => Ok(found),
    }
}
