//! What was recorded, over HTTP: arrays, takes, ledgers, flows, packets and metrics. Other machines need TLS and a token.
//!
//! A service is a process of its own. It opens an array for each request, as the program's commands do, so that recorders neither
//! wait for it nor know of it. Requests that read packets are limited in number, and together they read no faster beside a
//! recording than one `longtake extract` does.
//!
//! ```no_run
//! use longtake_serve::{Options, ServeError, Server};
//!
//! let options = Options { arrays: vec!["radar".to_owned()], ..Options::default() };
//! let server = Server::bind(&options)?;
//! println!("listening on {}", server.url());
//! server.run_until_signal(None)?;
//! # Ok::<(), ServeError>(())
//! ```

#![forbid(unsafe_code)]

mod access;
mod api;
mod arrays;
mod audit;
mod client_certificate;
mod completeness;
mod connections;
mod dashboard;
mod enter;
mod events;
mod failure;
mod file_stamp;
mod guard;
mod metrics;
mod packets;
mod pcap_over_ip;
mod protected;
mod query;
mod steno;
mod steno_query;
mod stream;
mod tls;
mod tokens;
mod watched;

use std::convert::Infallible;
use std::fmt;
use std::future::Future;
use std::io;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use longtake::service_manager::ServiceManager;
use rustix::process::setpriority_process;
use tokio::signal::unix::{SignalKind, signal};

use access::Access;
use arrays::{Served, Service};
use audit::AuditLog;
pub use tls::TlsFiles;
use tls::{Tls, TlsError};
use tokens::CurrentTokens;
pub use tokens::{Scope, Token, TokenError, TokenStore, token_table};

/// Default address and port of a service.
pub const LISTEN: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::LOCALHOST), 7878);

/// The lowest priority that a thread can have (setpriority(2)).
const LOWEST_PRIORITY: i32 = 19;

/// A command that makes a self-signed certificate.
const CERTIFICATE: &str = "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 365 -subj /CN=HOST \
                           -addext subjectAltName=DNS:HOST -keyout key.pem -out cert.pem";

/// How to make a token.
const TOKEN: &str = "longtake token create --name NAME --scope read";

/// What to serve, and where.
#[derive(Clone, Debug)]
pub struct Options {
    /// Arrays, named as on the command line. Empty for those on the drives of this machine.
    pub arrays: Vec<String>,
    /// Port 0 for any free one. An address that other machines can reach needs TLS and a token.
    pub listen: SocketAddr,
    /// A loopback address where the packets of the only array are sent as PCAP-over-IP; None for nowhere.
    pub pcap_over_ip: Option<SocketAddr>,
    /// Encrypts connections. Others are then refused.
    pub tls: Option<TlsFiles>,
    /// The file of tokens. None for the user's own.
    pub tokens: Option<PathBuf>,
    /// Whether each request needs a token or a client certificate, also on a loopback address.
    pub require_token: bool,
    /// The file that each request is entered in.
    pub audit: Option<PathBuf>,
    /// Limits on what clients may use.
    pub limits: Limits,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            arrays: Vec::new(),
            listen: LISTEN,
            pcap_over_ip: None,
            tls: None,
            tokens: None,
            require_token: false,
            audit: None,
            limits: Limits::default(),
        }
    }
}

/// Limits on what clients may use together.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Requests that read packets and run at the same time. Further ones are answered with 503.
    pub reading_max: usize,
    /// Those with the same token or client certificate.
    pub reading_of_token_max: usize,
    /// Requests that list and run at the same time. Further ones wait.
    pub listing_max: usize,
    /// Connections. Further ones wait.
    pub connections_max: usize,
    /// How long the head of a request may take to arrive; also its body, and the handshake of TLS.
    pub head_max: Duration,
    /// How long a client may accept nothing before its connection is closed.
    pub stalled_max: Duration,
    /// Beside a recording that tells where it is, a scrape of metrics reads the array again after this time. The indexes of large
    /// arrays are large.
    pub scraped_age_max: Duration,
    /// Clients that may receive events at the same time. Further ones are answered with 503.
    pub events_max: usize,
    /// A client that receives events is sent a comment when nothing has happened for so long.
    pub quiet_max: Duration,
    /// Clients of PCAP-over-IP at the same time. Further ones lose their connection at once.
    pub followers_max: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            reading_max: 4,
            reading_of_token_max: 2,
            listing_max: 4,
            connections_max: 64,
            head_max: Duration::from_secs(10),
            stalled_max: Duration::from_secs(60),
            scraped_age_max: Duration::from_secs(60),
            events_max: 16,
            quiet_max: Duration::from_secs(15),
            followers_max: 4,
        }
    }
}

/// Why a service could not start or go on.
#[derive(Debug)]
pub enum ServeError {
    /// Other machines could reach the address, and TLS was not asked for.
    NoTls(SocketAddr),
    /// A certificate or its key can't be used.
    Tls(TlsError),
    /// Each request needs a token, and none is valid. The path is that of the store.
    NoToken(PathBuf),
    /// Tokens can't be read.
    Tokens(TokenError),
    /// The audit log can't be written.
    Audit(PathBuf, io::Error),
    /// Other machines could reach the address of PCAP-over-IP.
    PcapOverIpNotLoopback(SocketAddr),
    /// Requests need a token or are entered in an audit log, and PCAP-over-IP has neither.
    PcapOverIpUnchecked,
    /// So many arrays were found, and PCAP-over-IP sends the packets of one.
    SeveralArrays(usize),
    /// Nothing was named, and no array was found.
    NoArray,
    /// An array can't be opened.
    Array {
        /// Its name.
        name: String,
        /// Why.
        reason: longtake::Error,
    },
    /// The drives of this machine can't be looked at.
    Drives(longtake::Error),
    /// The address can't be listened on.
    Listen(SocketAddr, io::Error),
    /// The system gives no threads, or signals can't be caught.
    System(io::Error),
}

impl fmt::Display for ServeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoTls(address) => write!(
                f,
                "--listen {address}: other machines can reach this address, so TLS and a token are required; make a certificate \
                 with `{CERTIFICATE}` and add --tls-cert cert.pem --tls-key key.pem; make a token with `{TOKEN}`; or listen on \
                 127.0.0.1:{} and use an SSH tunnel",
                address.port()
            ),
            Self::PcapOverIpNotLoopback(address) => write!(
                f,
                "--pcap-over-ip {address}: PCAP-over-IP has neither encryption nor passwords; use 127.0.0.1:{0} or [::1]:{0}, \
                 and reach it from elsewhere through an SSH tunnel",
                address.port()
            ),
            Self::PcapOverIpUnchecked => write!(
                f,
                "--pcap-over-ip sends packets without asking for a token or writing to an audit log: leave it out, or listen on a \
                 loopback address without --require-token and --audit"
            ),
            Self::SeveralArrays(count) => write!(
                f,
                "--pcap-over-ip sends the packets of one array, and {count} would be served: name one with --array"
            ),
            Self::Tls(reason) if reason.is_of_clients => write!(
                f,
                "{reason}; --tls-client-ca needs certificates in PEM, and --tls-client-crl the revocation list of each of \
                 their owners"
            ),
            Self::Tls(reason) => write!(
                f,
                "{reason}; --tls-cert and --tls-key need a certificate and its key in PEM, for example from `{CERTIFICATE}`"
            ),
            Self::NoToken(path) => write!(
                f,
                "no valid token is in {}, and each request needs one: make one with `{TOKEN}`, or name another file with --tokens",
                path.display()
            ),
            Self::Tokens(reason) => write!(f, "reading tokens: {reason}"),
            Self::Audit(path, reason) => write!(
                f,
                "--audit {}: {reason}; without its audit log the service does not start",
                path.display()
            ),
            Self::NoArray => write!(
                f,
                "no array was found on the drives of this machine: name one with --array, for example a directory of member files"
            ),
            Self::Array { name, reason } => write!(f, "opening array '{name}': {reason:#}"),
            Self::Drives(reason) => write!(f, "looking for arrays: {reason:#}"),
            Self::Listen(address, reason) => write!(
                f,
                "listening on {address}: {reason}; if another program has the port, choose another one with --listen"
            ),
            Self::System(reason) => write!(f, "starting the service: {reason}"),
        }
    }
}

impl std::error::Error for ServeError {}

impl ServeError {
    /// Whether an option has a value that it can't have, whatever the machine.
    pub fn is_usage(&self) -> bool {
        matches!(self, Self::NoTls(_) | Self::PcapOverIpNotLoopback(_) | Self::PcapOverIpUnchecked)
    }
}

/// A service that listens, and answers once it runs.
#[derive(Debug)]
pub struct Server {
    service: Arc<Service>,
    access: Arc<Access>,
    tls: Option<Arc<Tls>>,
    listener: TcpListener,
    address: SocketAddr,
    followed: Option<(TcpListener, SocketAddr)>,
    limits: Limits,
}

impl Server {
    /// Opens each array once, and listens.
    ///
    /// # Errors
    /// If the address can't be listened on, an array can't be opened, or TLS or a token lacks where it is required.
    pub fn bind(options: &Options) -> Result<Self, ServeError> {
        let Options { arrays, listen, pcap_over_ip, limits, .. } = options;
        if !listen.ip().is_loopback() && options.tls.is_none() {
            return Err(ServeError::NoTls(*listen));
        }
        if let Some(address) = pcap_over_ip.filter(|address| !address.ip().is_loopback()) {
            return Err(ServeError::PcapOverIpNotLoopback(address));
        }
        let tls = options.tls.clone().map(Tls::new).transpose().map_err(ServeError::Tls)?;
        let tls = tls.map(Arc::new);
        let mut access = access(options, tls.clone())?;
        if pcap_over_ip.is_some() && (access.requires_token || options.audit.is_some()) {
            return Err(ServeError::PcapOverIpUnchecked);
        }
        let service = Arc::new(Service::new(Served::find(arrays)?, limits, tls.clone()));
        if pcap_over_ip.is_some() && service.arrays().len() > 1 {
            return Err(ServeError::SeveralArrays(service.arrays().len()));
        }
        let (listener, address) = listening(*listen)?;
        let followed = pcap_over_ip.map(listening).transpose()?;
        // Last, because this may make a file, and a start that fails leaves none.
        access.audit = audit_log(options.audit.as_deref())?;
        let access = Arc::new(access);
        Ok(Self { service, access, tls, listener, address, followed, limits: *limits })
    }

    /// The address that it listens on, with the port that it was given.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The URL of the service.
    pub fn url(&self) -> String {
        format!("{}://{}/", if self.tls.is_some() { "https" } else { "http" }, self.address)
    }

    /// The address where it sends packets as PCAP-over-IP.
    pub fn pcap_over_ip(&self) -> Option<SocketAddr> {
        self.followed.as_ref().map(|(_, address)| *address)
    }

    /// The arrays that it serves, as they are named in addresses.
    pub fn arrays(&self) -> impl Iterator<Item = &str> {
        self.service.arrays().iter().map(Served::id)
    }

    /// What is served and where, as a sentence.
    pub fn ready_text(&self) -> String {
        let names: Vec<&str> = self.arrays().collect();
        let text = format!("serving {} on {}", names.join(", "), self.url());
        match self.pcap_over_ip() {
            Some(address) => format!("{text}, packets on TCP@{address}"),
            None => text,
        }
    }

    /// The same as JSON.
    pub fn ready_json(&self) -> serde_json::Value {
        serde_json::json!({
            "event": "ready", "arrays": self.arrays().collect::<Vec<_>>(),
            "url": self.url(),
            "pcap_over_ip": self.pcap_over_ip().map(|address| format!("TCP@{address}")),
        })
    }

    /// Answers until SIGINT or SIGTERM, and tells the service manager so, if there is one.
    ///
    /// # Errors
    /// If the system gives no threads, or signals can't be caught.
    pub fn run_until_signal(self, mut manager: Option<ServiceManager>) -> Result<(), ServeError> {
        self.run(async move {
            let (mut interrupted, mut ended) =
                (signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?);
            tokio::select! {
                _ = interrupted.recv() => {}
                _ = ended.recv() => {}
                never = tell(manager.as_mut()) => match never {},
            }
            Ok(())
        })
    }

    /// Answers until `stop` is ready. Answers that are under way then are cut.
    ///
    /// # Errors
    /// If the system gives no threads, or `stop` fails.
    pub fn run(self, stop: impl Future<Output = io::Result<()>>) -> Result<(), ServeError> {
        let Self { service, access, tls, listener, followed, limits, .. } = self;
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(2)
            .thread_name("serve")
            .on_thread_start(come_last)
            .enable_all()
            .build()
            .map_err(ServeError::System)?;
        let served = runtime.block_on(async {
            let listener = tokio::net::TcpListener::from_std(listener)?;
            let followed =
                followed.map(|(listener, _)| tokio::net::TcpListener::from_std(listener));
            let followed = pcap_over_ip::serve(followed.transpose()?, Arc::clone(&service));
            let router = api::router(service, access);
            tokio::select! {
                never = followed => match never {},
                never = connections::serve(listener, tls, router, &limits) => match never {},
                stopped = stop => stopped,
            }
        });
        // Whoever still reads packets finds nobody left to send them to, and ends.
        runtime.shutdown_background();
        served.map_err(ServeError::System)
    }
}

/// Gives the calling thread the lowest priority: recorders on this machine come first. Its reads come last with it, by `ioprio_set(2)`.
fn come_last() {
    // Where that is forbidden, a service manager decides.
    setpriority_process(None, LOWEST_PRIORITY).ok();
}

/// Tells the service manager that the service is ready, and from then on that it is alive.
async fn tell(manager: Option<&mut ServiceManager>) -> Infallible {
    let Some(manager) = manager else { return std::future::pending().await };
    manager.ready();
    let Some(every) = manager.alive_every() else { return std::future::pending().await };
    // A queue that was full is tried again before the next is due.
    let mut ticks = tokio::time::interval(every / 4);
    loop {
        ticks.tick().await;
        manager.alive();
    }
}

/// Listens on an address. The second value has the port that was given.
fn listening(address: SocketAddr) -> Result<(TcpListener, SocketAddr), ServeError> {
    let failed = |reason| ServeError::Listen(address, reason);
    let listener = TcpListener::bind(address).map_err(failed)?;
    listener.set_nonblocking(true).map_err(failed)?;
    let given = listener.local_addr().map_err(failed)?;
    Ok((listener, given))
}

/// Who may ask a service. Nothing is logged yet.
fn access(options: &Options, tls: Option<Arc<Tls>>) -> Result<Access, ServeError> {
    let is_loopback = options.listen.ip().is_loopback();
    let requires_token = options.require_token || !is_loopback;
    let store = match TokenStore::new(options.tokens.as_deref()) {
        // Whoever has no folder for configuration has no tokens.
        Err(TokenError::NoFolder) if !requires_token => None,
        store => Some(store.map_err(ServeError::Tokens)?),
    };
    let path = store.as_ref().map(|store| store.path().to_owned());
    let tokens = CurrentTokens::new(store);
    let knows_clients = tls.as_ref().is_some_and(|tls| tls.knows_clients());
    if requires_token && !knows_clients && !tokens.has_valid().map_err(ServeError::Tokens)? {
        return Err(ServeError::NoToken(path.unwrap_or_default()));
    }
    let body_max = options.limits.head_max;
    Ok(Access { tokens, tls, requires_token, is_loopback, body_max, audit: None })
}

/// The log of requests at this place, if one is kept.
fn audit_log(path: Option<&Path>) -> Result<Option<Arc<AuditLog>>, ServeError> {
    let Some(path) = path else { return Ok(None) };
    let log = AuditLog::open(path.to_owned());
    log.map(|log| Some(Arc::new(log))).map_err(|reason| ServeError::Audit(path.to_owned(), reason))
}
