//! Raw byte streams cut into blocks: TCP, a pipe, a file, standard input.
//!
//! A block is a packet of LINKTYPE_USER0, stamped when its last byte arrived. Bytes are kept in order and
//! all of them, also a last block that isn't full; a sender is held back when the sink has no room.

mod error;

use std::io;
use std::net::{IpAddr, TcpListener, TcpStream, ToSocketAddrs};
use std::os::fd::{AsFd, BorrowedFd};
use std::path::{Path, PathBuf};

use base::{Duration, Timestamp};
use format::{Interface, LinkType, Packet};

pub use error::StreamError;

use crate::clock;
use crate::readable::{Readable, TICK, ready};
use crate::sink::{Ended, Sink};

/// The block size unless another is asked for.
pub const BLOCK_BYTES_DEFAULT: u32 = 64 << 10;

/// The largest block: 1 MiB, so that several fit in a chunk.
pub const BLOCK_BYTES_MAX: u32 = 1 << 20;

/// The most connections that one listener takes.
pub const CONNECTIONS_MAX: u16 = 1024;

/// How long connecting to each address of a host may take.
const CONNECT_PATIENCE: std::time::Duration = std::time::Duration::from_secs(10);

/// Where a stream comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Endpoint {
    /// Connect to `HOST:PORT`.
    Connect(String),
    /// Listen at `ADDRESS:PORT` until so many connections have come and gone.
    Listen {
        /// `ADDRESS:PORT`.
        address: String,
        /// 1 to [`CONNECTIONS_MAX`].
        connections: u16,
    },
    /// Listen at `ADDRESS:PORT` for as long as the sink takes something: whenever a sender has gone, the next may come.
    /// [`CONNECTIONS_MAX`] may be there at once. Connections from one host, one after the other, are one interface.
    ListenOn {
        /// `ADDRESS:PORT`.
        address: String,
    },
    /// A fifo, a character device, or a file.
    Path(PathBuf),
    /// Standard input.
    Stdin,
}

/// How a stream is cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// Bytes in a block, 1 to [`BLOCK_BYTES_MAX`].
    pub block_bytes: u32,
    /// A block that isn't full is delivered when its first byte is older than this.
    pub flush_interval: Duration,
}

impl Default for Options {
    /// Blocks of 64 KiB, delivered after a second at the latest.
    fn default() -> Self {
        Self { block_bytes: BLOCK_BYTES_DEFAULT, flush_interval: Duration::from_secs(1) }
    }
}

/// What was received.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StreamSummary {
    /// Connections (or files) that were read.
    pub connections: u64,
    /// Blocks delivered.
    pub blocks: u64,
    /// Bytes in them.
    pub bytes: u64,
    /// Connections that failed although others may follow them ([`Endpoint::ListenOn`]).
    pub broken: u64,
    /// Whether every connection ended by itself; else the sink ended first.
    pub complete: bool,
}

/// A stream, open for reading.
#[derive(Debug)]
pub struct Stream {
    listener: Option<Listener>,
    connections: Vec<Connection>,
    options: Options,
    summary: StreamSummary,
    /// The first connection that failed; the others are read on.
    failed: Option<StreamError>,
    /// Interfaces of hosts whose connection has ended, to be used again when they reconnect.
    unused: Vec<(IpAddr, u32)>,
}

#[derive(Debug)]
struct Listener {
    socket: TcpListener,
    address: String,
    /// Connections that it still takes; None if there is no end to them.
    still: Option<u16>,
}

/// One sender, and the block that is being filled from it.
#[derive(Debug)]
struct Connection {
    name: String,
    /// The host that may connect again.
    host: Option<IpAddr>,
    readable: Readable,
    /// The sink's number, once it is declared.
    interface: Option<u32>,
    block: Vec<u8>,
    filled: usize,
    first_at: Timestamp,
    last_at: Timestamp,
    received: u64,
}

/// What reading from a connection came to.
enum Read {
    More,
    Nothing,
    End,
}

/// Reads from one connection before the others, and the clock, have their turn.
const READS_AT_ONCE: usize = 16;

impl Stream {
    /// Opens, connects, or starts listening.
    ///
    /// # Errors
    /// [`StreamError`] if that fails or an option is out of range.
    pub fn open(endpoint: &Endpoint, options: Options) -> Result<Self, StreamError> {
        if !(1..=BLOCK_BYTES_MAX).contains(&options.block_bytes) {
            return Err(StreamError::BlockSize { bytes: options.block_bytes });
        }
        let mut stream = Self {
            listener: None,
            connections: Vec::new(),
            options,
            summary: StreamSummary::default(),
            failed: None,
            unused: Vec::new(),
        };
        match endpoint {
            Endpoint::Listen { address, connections } => {
                stream.listener = Some(listen(address, Some(*connections))?);
            }
            Endpoint::ListenOn { address } => stream.listener = Some(listen(address, None)?),
            Endpoint::Connect(address) => {
                stream.add(format!("tcp:{address}"), connect(address)?);
            }
            Endpoint::Path(path) => {
                stream.add(format!("pipe:{}", path.display()), open(path)?);
            }
            Endpoint::Stdin => {
                let name = "standard input".to_owned();
                let stdin = Readable::stdin();
                let stdin =
                    stdin.map_err(|reason| StreamError::Open { name: name.clone(), reason });
                stream.add(name, stdin?);
            }
        }
        Ok(stream)
    }

    /// A stream waits for a full sink, and its sender with it; nothing is lost.
    pub const fn can_wait(&self) -> bool {
        true
    }

    /// Where it listens, which tells the port when it was given as 0. `None` if it doesn't.
    pub fn local_address(&self) -> Option<std::net::SocketAddr> {
        self.listener.as_ref()?.socket.local_addr().ok()
    }

    /// Delivers blocks until every connection has ended or the sink has. Each connection is an
    /// interface of its own.
    ///
    /// # Errors
    /// [`StreamError`] of the first connection that failed, after the others have ended too. What had
    /// arrived was delivered.
    pub fn run(mut self, sink: &mut impl Sink) -> Result<StreamSummary, StreamError> {
        for connection in &mut self.connections {
            connection.declare(sink);
        }
        self.run_on(sink)
    }

    /// The same for connections that are declared.
    fn run_on(mut self, sink: &mut impl Sink) -> Result<StreamSummary, StreamError> {
        match self.receive(sink) {
            Err(Ended) => Ok(self.summary),
            Ok(()) => match self.failed {
                Some(error) => Err(error),
                None => Ok(StreamSummary { complete: true, ..self.summary }),
            },
        }
    }

    fn receive(&mut self, sink: &mut impl Sink) -> Result<(), Ended> {
        let mut heard = Timestamp::MIN;
        while self.listener.is_some() || !self.connections.is_empty() {
            let waiting: Vec<BorrowedFd<'_>> = self
                .connections
                .iter()
                .map(|connection| connection.readable.as_fd())
                .chain(self.accepting().map(|listener| listener.socket.as_fd()))
                .collect();
            let ready = match ready(&waiting, TICK) {
                Ok(ready) => ready,
                Err(reason) => {
                    let name = self.connections.first().map_or("the stream", |c| c.name.as_str());
                    let error = StreamError::Read { name: name.to_owned(), received: 0, reason };
                    self.failed.get_or_insert(error);
                    return Ok(());
                }
            };
            let listener_is_ready = self.accepting().is_some() && ready[ready.len() - 1];
            // From the end, so that one that has ended can be taken out.
            for at in (0..self.connections.len()).rev() {
                if ready[at] {
                    self.read(at, sink)?;
                }
            }
            if listener_is_ready {
                self.accept(sink);
            }
            let now = clock::now();
            if now.since(heard) >= TICK || now < heard {
                for connection in &mut self.connections {
                    connection.flush_older(
                        self.options.flush_interval,
                        now,
                        sink,
                        &mut self.summary,
                    )?;
                }
                sink.tick(now)?;
                heard = now;
            }
        }
        Ok(())
    }

    /// Reads from a connection that is ready, and takes it out when it has ended.
    fn read(&mut self, at: usize, sink: &mut impl Sink) -> Result<(), Ended> {
        let connection = &mut self.connections[at];
        let mut reads = 1;
        let ended = loop {
            match connection.read(sink, &mut self.summary)? {
                Ok(Read::More) if reads < READS_AT_ONCE && connection.readable.is_nonblocking() => {
                    reads += 1;
                }
                Ok(Read::More | Read::Nothing) => return Ok(()),
                Ok(Read::End) => break None,
                Err(reason) => {
                    let name = connection.name.clone();
                    let received = connection.received;
                    break Some(StreamError::Read { name, received, reason });
                }
            }
        };
        let mut connection = self.connections.swap_remove(at);
        connection.flush(sink, &mut self.summary)?;
        if let (Some(host), Some(interface)) = (connection.host, connection.interface) {
            self.unused.push((host, interface));
            self.summary.broken += u64::from(ended.is_some());
        } else if let (None, Some(error)) = (&self.failed, ended) {
            self.failed = Some(error);
        }
        Ok(())
    }

    /// The listener, unless all the connections are there that it may take at once.
    fn accepting(&self) -> Option<&Listener> {
        let room = self.connections.len() < usize::from(CONNECTIONS_MAX);
        self.listener.as_ref().filter(|_| room)
    }

    fn accept(&mut self, sink: &mut impl Sink) {
        let Some(listener) = &mut self.listener else { return };
        let accepted = listener.socket.accept();
        match accepted.and_then(|(socket, peer)| Ok((Readable::socket(socket)?, peer))) {
            Ok((readable, peer)) => {
                let Some(still) = &mut listener.still else {
                    return self.add_host(peer.ip(), readable, sink);
                };
                *still -= 1;
                if *still == 0 {
                    self.listener = None;
                }
                self.add(format!("tcp:{peer}"), readable).declare(sink);
            }
            // It went away before it was accepted.
            Err(error)
                if matches!(
                    error.kind(),
                    io::ErrorKind::WouldBlock
                        | io::ErrorKind::Interrupted
                        | io::ErrorKind::ConnectionAborted
                        | io::ErrorKind::ConnectionReset
                ) => {}
            Err(reason) => {
                let address = listener.address.clone();
                self.failed.get_or_insert(StreamError::Accept { address, reason });
                self.listener = None;
            }
        }
    }

    /// Adds a connection from a host that may have had one before. Its port is another one each time.
    fn add_host(&mut self, host: IpAddr, readable: Readable, sink: &mut impl Sink) {
        let before = self.unused.iter().position(|&(of, _)| of == host);
        let interface = before.map(|at| self.unused.swap_remove(at).1);
        let connection = self.add(format!("tcp:{host}"), readable);
        (connection.host, connection.interface) = (Some(host), interface);
        if interface.is_none() {
            connection.declare(sink);
        }
    }

    fn add(&mut self, name: String, readable: Readable) -> &mut Connection {
        self.summary.connections += 1;
        let at = self.connections.len();
        self.connections.push(Connection {
            name,
            host: None,
            readable,
            interface: None,
            block: vec![0; self.options.block_bytes as usize],
            filled: 0,
            first_at: Timestamp::MIN,
            last_at: Timestamp::MIN,
            received: 0,
        });
        &mut self.connections[at]
    }
}

impl Connection {
    fn declare(&mut self, sink: &mut impl Sink) {
        self.interface = Some(sink.interface(&Interface {
            name: self.name.clone(),
            description: format!("raw bytes in blocks of up to {} bytes", self.block.len()),
            link_type: LinkType::USER0,
            snap_length: 0,
            filter: String::new(),
            speed_bits: 0,
        }));
    }

    /// Reads what is there, up to a block, and delivers the block if that fills it.
    fn read(
        &mut self,
        sink: &mut impl Sink,
        summary: &mut StreamSummary,
    ) -> Result<io::Result<Read>, Ended> {
        match self.readable.read_now(&mut self.block[self.filled..]) {
            Ok(None) => return Ok(Ok(Read::Nothing)),
            Ok(Some(0)) => return Ok(Ok(Read::End)),
            Ok(Some(count)) => {
                self.last_at = clock::now();
                if self.filled == 0 {
                    self.first_at = self.last_at;
                }
                self.filled += count;
                self.received += count as u64;
                if self.filled == self.block.len() {
                    self.flush(sink, summary)?;
                }
            }
            Err(reason) => return Ok(Err(reason)),
        }
        Ok(Ok(Read::More))
    }

    fn flush_older(
        &mut self,
        than: Duration,
        now: Timestamp,
        sink: &mut impl Sink,
        summary: &mut StreamSummary,
    ) -> Result<(), Ended> {
        // A clock set back must not hold a block for as long.
        let due = now.since(self.first_at) >= than || now < self.first_at;
        if self.filled > 0 && due { self.flush(sink, summary) } else { Ok(()) }
    }

    /// Delivers what the block holds.
    fn flush(&mut self, sink: &mut impl Sink, summary: &mut StreamSummary) -> Result<(), Ended> {
        let (Some(interface), 1..) = (self.interface, self.filled) else { return Ok(()) };
        let data = &self.block[..self.filled];
        sink.packet(&Packet {
            interface,
            timestamp: self.last_at,
            original_length: data.len() as u32,
            data,
            options: &[],
        })?;
        summary.blocks += 1;
        summary.bytes += self.filled as u64;
        self.filled = 0;
        Ok(())
    }
}

fn open(path: &Path) -> Result<Readable, StreamError> {
    Readable::open(path)
        .map_err(|reason| StreamError::Open { name: path.display().to_string(), reason })
}

fn listen(address: &str, connections: Option<u16>) -> Result<Listener, StreamError> {
    if let Some(connections) = connections.filter(|n| !(1..=CONNECTIONS_MAX).contains(n)) {
        return Err(StreamError::Connections { connections });
    }
    let bind = || {
        let socket = TcpListener::bind(address)?;
        // Who was ready may be gone when accepted; that must not block.
        socket.set_nonblocking(true)?;
        Ok(socket)
    };
    match bind() {
        Ok(socket) => Ok(Listener { socket, address: address.to_owned(), still: connections }),
        Err(reason) => Err(StreamError::Listen { address: address.to_owned(), reason }),
    }
}

/// Tries each address of the host in turn.
fn connect(address: &str) -> Result<Readable, StreamError> {
    let failed = |reason| StreamError::Connect { address: address.to_owned(), reason };
    let mut last = io::Error::new(io::ErrorKind::NotFound, "the host has no address");
    for one in address.to_socket_addrs().map_err(failed)? {
        match TcpStream::connect_timeout(&one, CONNECT_PATIENCE) {
            Ok(socket) => return Readable::socket(socket).map_err(failed),
            Err(reason) => last = reason,
        }
    }
    Err(failed(last))
}

#[cfg(test)]
mod tests;
