//! What was recorded, over HTTP: arrays, takes, ledgers, flows, packets and metrics, read-only and on this machine alone.
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
//! println!("listening on http://{}/", server.address());
//! server.run_until_signal()?;
//! # Ok::<(), ServeError>(())
//! ```

#![forbid(unsafe_code)]

mod api;
mod arrays;
mod completeness;
mod connections;
mod dashboard;
mod events;
mod failure;
mod guard;
mod metrics;
mod packets;
mod pcap_over_ip;
mod query;

use std::fmt;
use std::future::Future;
use std::io;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::sync::Arc;
use std::time::Duration;

use tokio::signal::unix::{SignalKind, signal};

use arrays::{Served, Service};

/// Default address and port of a service.
pub const LISTEN: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::LOCALHOST), 7878);

/// What to serve, and where.
#[derive(Clone, Debug)]
pub struct Options {
    /// Arrays, named as on the command line. Empty for those on the drives of this machine.
    pub arrays: Vec<String>,
    /// A loopback address; port 0 for any free one.
    pub listen: SocketAddr,
    /// A loopback address where the packets of the only array are sent as PCAP-over-IP; None for nowhere.
    pub pcap_over_ip: Option<SocketAddr>,
    /// Limits on what clients may use.
    pub limits: Limits,
}

impl Default for Options {
    fn default() -> Self {
        Self { arrays: Vec::new(), listen: LISTEN, pcap_over_ip: None, limits: Limits::default() }
    }
}

/// Limits on what clients may use together.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Requests that read packets and run at the same time. Further ones are answered with 503.
    pub reading_max: usize,
    /// Requests that list and run at the same time. Further ones wait.
    pub listing_max: usize,
    /// Connections. Further ones wait.
    pub connections_max: usize,
    /// How long the head of a request may take to arrive.
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
    /// Other machines could reach the address.
    NotLoopback(SocketAddr),
    /// Other machines could reach the address of PCAP-over-IP.
    PcapOverIpNotLoopback(SocketAddr),
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
            Self::NotLoopback(address) => write!(
                f,
                "--listen {address}: other machines could reach this address, and TLS and authentication are not available; \
                 listen on 127.0.0.1:{0} or [::1]:{0}, and reach it from elsewhere through an SSH tunnel",
                address.port()
            ),
            Self::PcapOverIpNotLoopback(address) => write!(
                f,
                "--pcap-over-ip {address}: PCAP-over-IP has neither encryption nor passwords; use 127.0.0.1:{0} or [::1]:{0}, \
                 and reach it from elsewhere through an SSH tunnel",
                address.port()
            ),
            Self::SeveralArrays(count) => write!(
                f,
                "--pcap-over-ip sends the packets of one array, and {count} would be served: name one with --array"
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
        matches!(self, Self::NotLoopback(_) | Self::PcapOverIpNotLoopback(_))
    }
}

/// A service that listens, and answers once it runs.
#[derive(Debug)]
pub struct Server {
    service: Arc<Service>,
    listener: TcpListener,
    address: SocketAddr,
    followed: Option<(TcpListener, SocketAddr)>,
    limits: Limits,
}

impl Server {
    /// Opens each array once, and listens.
    ///
    /// # Errors
    /// If the address is not a loopback address or can't be listened on, or an array can't be opened.
    pub fn bind(options: &Options) -> Result<Self, ServeError> {
        let Options { arrays, listen, pcap_over_ip, limits } = options;
        if !listen.ip().is_loopback() {
            return Err(ServeError::NotLoopback(*listen));
        }
        if let Some(address) = pcap_over_ip.filter(|address| !address.ip().is_loopback()) {
            return Err(ServeError::PcapOverIpNotLoopback(address));
        }
        let service = Arc::new(Service::new(Served::find(arrays)?, limits));
        if pcap_over_ip.is_some() && service.arrays().len() > 1 {
            return Err(ServeError::SeveralArrays(service.arrays().len()));
        }
        let (listener, address) = listening(*listen)?;
        let followed = pcap_over_ip.map(listening).transpose()?;
        Ok(Self { service, listener, address, followed, limits: *limits })
    }

    /// The address that it listens on, with the port that it was given.
    pub fn address(&self) -> SocketAddr {
        self.address
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
        let text = format!("serving {} on http://{}/", names.join(", "), self.address);
        match self.pcap_over_ip() {
            Some(address) => format!("{text}, packets on TCP@{address}"),
            None => text,
        }
    }

    /// The same as JSON.
    pub fn ready_json(&self) -> serde_json::Value {
        serde_json::json!({
            "event": "ready", "arrays": self.arrays().collect::<Vec<_>>(),
            "url": format!("http://{}/", self.address),
            "pcap_over_ip": self.pcap_over_ip().map(|address| format!("TCP@{address}")),
        })
    }

    /// Answers until SIGINT or SIGTERM.
    ///
    /// # Errors
    /// If the system gives no threads, or signals can't be caught.
    pub fn run_until_signal(self) -> Result<(), ServeError> {
        self.run(async {
            let (mut interrupted, mut ended) =
                (signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?);
            tokio::select! {
                _ = interrupted.recv() => {}
                _ = ended.recv() => {}
            }
            Ok(())
        })
    }

    /// Answers until `stop` is ready. Answers that are under way then are cut.
    ///
    /// # Errors
    /// If the system gives no threads, or `stop` fails.
    pub fn run(self, stop: impl Future<Output = io::Result<()>>) -> Result<(), ServeError> {
        let Self { service, listener, followed, limits, .. } = self;
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(2)
            .thread_name("serve")
            .enable_all()
            .build()
            .map_err(ServeError::System)?;
        let served = runtime.block_on(async {
            let listener = tokio::net::TcpListener::from_std(listener)?;
            let followed =
                followed.map(|(listener, _)| tokio::net::TcpListener::from_std(listener));
            let followed = pcap_over_ip::serve(followed.transpose()?, Arc::clone(&service));
            let router = api::router(service);
            tokio::select! {
                never = followed => match never {},
                never = connections::serve(listener, router, &limits) => match never {},
                stopped = stop => stopped,
            }
        });
        // Whoever still reads packets finds nobody left to send them to, and ends.
        runtime.shutdown_background();
        served.map_err(ServeError::System)
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
