//! Receives datagrams in batches and counts what the kernel dropped. A UDP socket can't wait: when
//! its buffer is full the kernel drops, and the count of that enters the ledger where it happened.
//!
//! Coalescing (UDP_GRO) is left off: the kernel counts the drop of a merged buffer as one, and the
//! ledger would no longer balance.

use std::fmt;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::time::{Duration, Instant};

use base::ByteSize;
use format::{Interface, LinkType, Packet};
use libc::c_int;

use crate::clock;
use crate::filter::Instruction;
use crate::sink::{Ended, Loss, Sink};
use crate::socket::{self, Socket};
pub use headers::{HEADERS_MADE, has_made_headers, past_made_headers};
use receive::ReceiveBatch;

mod headers;
mod receive;

/// Longest wait for a datagram before [`Sink::tick`] is called.
const TICK: Duration = Duration::from_millis(20);

/// `SO_MEMINFO` of `asm-generic/socket.h`: the socket's memory counters, drops among them.
const SO_MEMINFO: c_int = 55;

/// What each packet of the recording holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Framing {
    /// The payload alone, as a raw sensor block ([`LinkType::USER0`]).
    #[default]
    Payload,
    /// The payload behind IP and UDP headers made from its addresses ([`LinkType::RAW_IP`]), so that
    /// Wireshark decodes it. The headers are a likeness: identification, hop limit, and options of
    /// the real ones are not known to a socket.
    Headers,
}

/// A multicast group to join.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Group {
    /// Its address, of the same family as the socket's.
    pub address: IpAddr,
    /// The interface to join it on, by name; the routing table decides otherwise.
    pub interface: Option<String>,
}

/// What to receive, and how.
#[derive(Clone, Debug)]
pub struct UdpOptions {
    /// Where to listen. Port 0 lets the kernel choose; see [`UdpSource::address`].
    pub address: SocketAddr,
    /// The kernel's buffer for each socket in bytes; 0 leaves its default. Each datagram takes up
    /// to twice its length or 768 bytes of it, whichever is more.
    pub recv_buffer_bytes: usize,
    /// A group to join.
    pub group: Option<Group>,
    /// Sockets that share the address (`SO_REUSEPORT`), each for a thread of its own. The kernel
    /// gives all datagrams of one sender (address and port) to the same one.
    pub queues: u16,
    /// What to record of each datagram.
    pub framing: Framing,
    /// Bytes of each packet to keep, headers of [`Framing::Headers`] included; 0 keeps all.
    pub snap_length: u32,
}

impl UdpOptions {
    /// Whole payloads from one socket with the kernel's default buffer.
    pub const fn new(address: SocketAddr) -> Self {
        Self {
            address,
            recv_buffer_bytes: 0,
            group: None,
            queues: 1,
            framing: Framing::Payload,
            snap_length: 0,
        }
    }
}

/// Something that was asked for and not fully granted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum UdpWarning {
    /// The kernel gives less buffer than asked.
    SmallBuffer {
        /// Bytes asked for.
        asked: u64,
        /// Bytes given.
        given: u64,
    },
}

impl fmt::Display for UdpWarning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self::SmallBuffer { asked, given } = *self;
        write!(
            f,
            "the kernel gives the UDP socket a buffer of {} instead of {}: bursts may be dropped; \
             run 'sysctl -w net.core.rmem_max={asked}' or give the program CAP_NET_ADMIN",
            ByteSize(given),
            ByteSize(asked),
        )
    }
}

/// Why UDP could not be received.
#[derive(Debug)]
pub enum UdpError {
    /// Options that contradict each other or the address.
    Invalid {
        /// The address.
        address: SocketAddr,
        /// What is wrong, and what to do.
        reason: &'static str,
    },
    /// No interface of that name to join the group on.
    NoSuchInterface {
        /// The name.
        name: String,
        /// The group.
        group: IpAddr,
    },
    /// Somebody listens there already.
    AddressInUse {
        /// The address.
        address: SocketAddr,
    },
    /// A system call failed.
    System {
        /// What was tried.
        attempted: &'static str,
        /// The address.
        address: SocketAddr,
        /// Why it failed.
        error: io::Error,
    },
}

impl fmt::Display for UdpError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Invalid { address, reason } => {
                write!(f, "can't receive UDP on {address}: {reason}")
            }
            Self::NoSuchInterface { name, group } => write!(
                f,
                "can't join {group} on interface '{name}': it doesn't exist; list interfaces with 'ip link show'"
            ),
            Self::AddressInUse { address } => write!(
                f,
                "can't receive UDP on {address}: another program listens there; find it with \
                 'ss -ulnp', or choose another port"
            ),
            Self::System { attempted, address, error } => {
                write!(f, "can't receive UDP on {address}: {attempted} failed: {error}")?;
                if error.raw_os_error() == Some(libc::EADDRNOTAVAIL) {
                    f.write_str("; no interface here has that address: see 'ip address'")?;
                }
                Ok(())
            }
        }
    }
}

impl std::error::Error for UdpError {}

/// The balanced account of one socket: `received` = `delivered` + `refused`, and all that was sent
/// to it is `received` + `kernel_drops`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct UdpSummary {
    /// Datagrams read from the socket.
    pub received: u64,
    /// Given to the sink, which took them.
    pub delivered: u64,
    /// Read, but the sink had ended.
    pub refused: u64,
    /// Dropped by the kernel: no room in the socket's buffer, or a wrong checksum.
    pub kernel_drops: u64,
    /// Of the delivered: kept only in part.
    pub truncated: u64,
}

/// One socket, to be run by one thread.
#[derive(Debug)]
pub struct UdpSource {
    socket: Socket,
    options: UdpOptions,
    address: SocketAddr,
    queue: u16,
}

/// What [`UdpSource::bind`] opened.
#[derive(Debug)]
pub struct Bound {
    /// The sockets, [`UdpOptions::queues`] of them.
    pub sources: Vec<UdpSource>,
    /// What was not fully granted.
    pub warnings: Vec<UdpWarning>,
}

impl UdpSource {
    /// Opens all sockets. They receive from here on, into the kernel's buffer.
    ///
    /// # Errors
    /// [`UdpError`].
    pub fn bind(options: &UdpOptions) -> Result<Bound, UdpError> {
        options.check()?;
        let mut bound = Bound { sources: Vec::new(), warnings: Vec::new() };
        let mut address = options.address;
        for queue in 0..options.queues {
            let (socket, warning) = open(options, address)?;
            // All queues share the port that the kernel chose for the first.
            address = local_address(&socket, options.address)?;
            bound.sources.push(Self { socket, options: options.clone(), address, queue });
            if queue == 0 {
                bound.warnings.extend(warning);
            }
        }
        Ok(bound)
    }

    /// Where it listens; with the port that the kernel chose.
    pub const fn address(&self) -> SocketAddr {
        self.address
    }

    /// Whether its sender can be held back. UDP can't.
    pub const fn can_wait(&self) -> bool {
        false
    }

    /// What it declares to its sink.
    pub fn interface(&self) -> Interface {
        let name = match &self.options.group {
            Some(group) => format!("udp://{}", SocketAddr::new(group.address, self.address.port())),
            None => format!("udp://{}", self.address),
        };
        let mut description = match self.options.framing {
            Framing::Payload => String::new(),
            Framing::Headers => HEADERS_MADE.to_owned(),
        };
        if self.options.queues > 1 {
            let comma = if description.is_empty() { "" } else { ", " };
            description += &format!("{comma}socket {} of {}", self.queue + 1, self.options.queues);
        }
        Interface {
            name,
            description,
            link_type: match self.options.framing {
                Framing::Payload => LinkType::USER0,
                Framing::Headers => LinkType::RAW_IP,
            },
            snap_length: self.options.snap_length,
            filter: String::new(),
            speed_bits: 0,
        }
    }

    /// Receives until the sink ends; then gives it what had arrived by then, as long as it takes it.
    /// Calls [`Sink::tick`] at least every 25 ms.
    ///
    /// # Errors
    /// [`UdpError::System`].
    pub fn run(self, sink: &mut impl Sink) -> Result<UdpSummary, UdpError> {
        let interface = sink.interface(&self.interface());
        let mut run = Run {
            source: &self,
            sink,
            interface,
            drops: 0,
            sink_takes: true,
            summary: UdpSummary::default(),
        };
        let mut batch = ReceiveBatch::new(&self.options);
        let mut ticked = Instant::now();
        loop {
            let received = run.receive(&mut batch, libc::MSG_WAITFORONE, None)?;
            if received == 0 || ticked.elapsed() >= TICK {
                ticked = Instant::now();
                if received == 0 {
                    // Nothing waits in the socket, so these drops lie before what comes next.
                    run.count_all_drops()?;
                }
                if run.sink.tick(clock::now()).is_err() {
                    break;
                }
            }
            if !run.sink_takes {
                break;
            }
        }
        // The moment of the stop: what was dropped until now counts. From here on the kernel lets
        // nothing in, and counts what it turns away as drops, which are none of this recording's.
        let drops = self.drops()?;
        const TURN_AWAY: [Instruction; 1] =
            [Instruction { code: (libc::BPF_RET | libc::BPF_K) as u16, jt: 0, jf: 0, k: 0 }];
        self.socket
            .attach_filter(&TURN_AWAY)
            .map_err(|error| self.failed("turning new datagrams away", error))?;
        while run.receive(&mut batch, libc::MSG_DONTWAIT, Some(drops))? > 0 {}
        run.count_drops(drops);
        Ok(run.summary)
    }

    /// Datagrams that the kernel dropped since the socket was opened; wraps.
    fn drops(&self) -> Result<u32, UdpError> {
        let info: [u32; 9] = self
            .socket
            .get(libc::SOL_SOCKET, SO_MEMINFO)
            .map_err(|error| self.failed("reading the drop counter (SO_MEMINFO)", error))?;
        Ok(info[libc::SK_MEMINFO_DROPS as usize])
    }

    fn failed(&self, attempted: &'static str, error: io::Error) -> UdpError {
        UdpError::System { attempted, address: self.address, error }
    }
}

impl UdpOptions {
    fn check(&self) -> Result<(), UdpError> {
        let invalid = |reason| Err(UdpError::Invalid { address: self.address, reason });
        if self.queues == 0 {
            return invalid("no queues: give at least 1");
        }
        if let Some(group) = &self.group {
            if !group.address.is_multicast() {
                return invalid(
                    "the group's address is no multicast address (224.0.0.0/4, ff00::/8)",
                );
            }
            if group.address.is_ipv4() != self.address.is_ipv4() {
                return invalid("the group is of the other IP version: give both as IPv4 or IPv6");
            }
            if self.queues > 1 {
                return invalid(
                    "each of several sockets would receive every datagram of the group: give 1 queue",
                );
            }
        }
        Ok(())
    }
}

/// Opens and binds one socket.
fn open(
    options: &UdpOptions,
    address: SocketAddr,
) -> Result<(Socket, Option<UdpWarning>), UdpError> {
    let failed = |attempted| move |error| UdpError::System { attempted, address, error };
    let on = 1i32;
    let v4 = address.is_ipv4();
    let socket = Socket::open(socket::family(address.ip()), libc::SOCK_DGRAM, 0)
        .map_err(failed("opening a UDP socket"))?;
    let set = |option| socket.set(libc::SOL_SOCKET, option, &on);
    set(libc::SO_TIMESTAMPNS).map_err(failed("asking for arrival times"))?;
    set(libc::SO_RXQ_OVFL).map_err(failed("asking for drop counts"))?;
    if options.queues > 1 {
        set(libc::SO_REUSEPORT).map_err(failed("sharing the port"))?;
    }
    if options.group.is_some() {
        // Others may listen to the same group on this machine; each gets every datagram.
        set(libc::SO_REUSEADDR).map_err(failed("sharing the address"))?;
    }
    if options.framing == Framing::Headers {
        let (level, option) = if v4 {
            (libc::IPPROTO_IP, libc::IP_PKTINFO)
        } else {
            (libc::IPPROTO_IPV6, libc::IPV6_RECVPKTINFO)
        };
        socket.set(level, option, &on).map_err(failed("asking for destination addresses"))?;
    }
    let timeout = libc::timeval { tv_sec: 0, tv_usec: TICK.as_micros() as _ };
    socket
        .set(libc::SOL_SOCKET, libc::SO_RCVTIMEO, &timeout)
        .map_err(failed("limiting the wait for a datagram"))?;
    let warning = size_buffer(&socket, options.recv_buffer_bytes)
        .map_err(failed("sizing the receive buffer"))?;
    socket.bind(&socket::to_storage(address)).map_err(|error| {
        if error.kind() == io::ErrorKind::AddrInUse {
            UdpError::AddressInUse { address }
        } else {
            failed("binding")(error)
        }
    })?;
    if let Some(group) = &options.group {
        join(&socket, group, address)?;
    }
    Ok((socket, warning))
}

/// Asks for a buffer past the system's limit, which takes `CAP_NET_ADMIN`, then up to it.
fn size_buffer(socket: &Socket, bytes: usize) -> io::Result<Option<UdpWarning>> {
    if bytes == 0 {
        return Ok(None);
    }
    // The kernel doubles the number, for its own bookkeeping, in an int.
    let value = c_int::try_from(bytes).unwrap_or(c_int::MAX).min(c_int::MAX / 2);
    if socket.set(libc::SOL_SOCKET, libc::SO_RCVBUFFORCE, &value).is_err() {
        socket.set(libc::SOL_SOCKET, libc::SO_RCVBUF, &value)?;
    }
    let doubled: c_int = socket.get(libc::SOL_SOCKET, libc::SO_RCVBUF)?;
    let (asked, given) = (bytes as u64, doubled as u64 / 2);
    Ok((given < asked).then_some(UdpWarning::SmallBuffer { asked, given }))
}

fn join(socket: &Socket, group: &Group, address: SocketAddr) -> Result<(), UdpError> {
    let index = match &group.interface {
        None => 0,
        Some(name) => socket::interface_index(name)
            .map_err(|_| UdpError::NoSuchInterface { name: name.clone(), group: group.address })?,
    };
    let joined = match group.address {
        IpAddr::V4(ip) => {
            let request = libc::ip_mreqn {
                imr_multiaddr: socket::to_in_addr(ip),
                imr_address: libc::in_addr { s_addr: 0 },
                imr_ifindex: index as c_int,
            };
            // Only what this socket joined, not what any program on this machine did.
            socket
                .set(libc::IPPROTO_IP, libc::IP_MULTICAST_ALL, &0i32)
                .and_then(|()| socket.set(libc::IPPROTO_IP, libc::IP_ADD_MEMBERSHIP, &request))
        }
        IpAddr::V6(ip) => {
            let request = libc::ipv6_mreq {
                ipv6mr_multiaddr: libc::in6_addr { s6_addr: ip.octets() },
                ipv6mr_interface: index,
            };
            socket
                .set(libc::IPPROTO_IPV6, libc::IPV6_MULTICAST_ALL, &0i32)
                .and_then(|()| socket.set(libc::IPPROTO_IPV6, libc::IPV6_ADD_MEMBERSHIP, &request))
        }
    };
    joined.map_err(|error| UdpError::System {
        attempted: "joining the multicast group",
        address,
        error,
    })
}

fn local_address(socket: &Socket, asked: SocketAddr) -> Result<SocketAddr, UdpError> {
    let storage: libc::sockaddr_storage = socket.name().map_err(|error| UdpError::System {
        attempted: "asking for the port",
        address: asked,
        error,
    })?;
    Ok(socket::from_storage(&storage).unwrap_or(asked))
}

/// The state of one socket's run.
struct Run<'r, S> {
    source: &'r UdpSource,
    sink: &'r mut S,
    interface: u32,
    /// The kernel's drop counter as far as it was entered; wraps.
    drops: u32,
    sink_takes: bool,
    summary: UdpSummary,
}

impl<S: Sink> Run<'_, S> {
    /// Receives a batch and gives it to the sink, with the drops before each datagram, but none past
    /// the counter's value `limit`. Returns how many datagrams came.
    fn receive(
        &mut self,
        batch: &mut ReceiveBatch,
        flags: c_int,
        limit: Option<u32>,
    ) -> Result<usize, UdpError> {
        let count = batch
            .receive(&self.source.socket, flags)
            .map_err(|error| self.source.failed("receiving", error))?;
        for i in 0..count {
            self.deliver(batch, i, limit);
        }
        Ok(count)
    }

    fn deliver(&mut self, batch: &mut ReceiveBatch, i: usize, limit: Option<u32>) {
        let datagram = batch.datagram(i);
        self.summary.received += 1;
        if let Some(drops) = datagram.drops {
            self.count_drops(match limit {
                Some(limit) if drops.wrapping_sub(limit) <= u32::MAX / 2 => limit,
                _ => drops,
            });
        }
        let (data, original_length) = batch.frame(i, &datagram, self.source.address);
        let packet = Packet {
            interface: self.interface,
            timestamp: datagram.timestamp.unwrap_or_else(clock::now),
            original_length,
            data,
            options: &[],
        };
        if self.sink_takes && self.sink.packet(&packet) == Err(Ended) {
            self.sink_takes = false;
        }
        if self.sink_takes {
            self.summary.delivered += 1;
            self.summary.truncated += u64::from((data.len() as u64) < u64::from(original_length));
        } else {
            self.summary.refused += 1;
        }
    }

    fn count_all_drops(&mut self) -> Result<(), UdpError> {
        let drops = self.source.drops()?;
        self.count_drops(drops);
        Ok(())
    }

    /// Enters the drops up to the counter's value `drops`, unless they have been.
    fn count_drops(&mut self, drops: u32) {
        // The counter wraps, and a datagram's is older than one just read from the socket.
        let new = drops.wrapping_sub(self.drops);
        if new == 0 || new > u32::MAX / 2 {
            return;
        }
        self.drops = drops;
        self.summary.kernel_drops += u64::from(new);
        self.sink.lost(self.interface, Loss::KernelRing, u64::from(new), 0);
    }
}
