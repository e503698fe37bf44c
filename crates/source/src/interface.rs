//! Captures from a network interface through the kernel's capture ring, with one queue or several.
//!
//! Opening needs privileges and running doesn't: [`Capture::open`] opens every socket, then each
//! [`Queue`] runs on a thread of its own. What arrives once all is open waits in the kernel's rings for the
//! queues to run; until then the kernel's filter turns everything away.

mod link;
mod open;
mod queue;
mod ring;
mod statistics;

use std::fmt;
use std::io;

use base::{ByteSize, Timestamp};

pub use link::{Link, LinkState};
pub use open::Capture;
pub use queue::Queue;

use crate::filter::FilterError;

/// How packets are shared out among queues (`PACKET_FANOUT`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Fanout {
    /// By flow: all packets of a connection go to one queue.
    #[default]
    Hash,
    /// In turn: the most even, and packets of a connection are spread.
    LoadBalance,
    /// By the processor that the packet arrived on.
    Cpu,
    /// By the card's own receive queue.
    QueueMapping,
}

/// What to capture, and how.
#[derive(Clone, Debug)]
pub struct InterfaceOptions {
    /// The interface's name, as `ip link` shows it.
    pub name: String,
    /// Sockets that share the packets, each for a thread of its own.
    pub queues: u16,
    /// How they share them.
    pub fanout: Fanout,
    /// The kernel's ring for each queue in bytes: what it buffers while the reader is late.
    pub ring_bytes: usize,
    /// The unit in which the ring changes hands, in bytes; a multiple of the page size.
    pub block_bytes: usize,
    /// Bytes of each packet to keep; 0 keeps all.
    pub snap_length: u32,
    /// Capture also what is addressed to other stations.
    pub promiscuous: bool,
    /// A filter in tcpdump's language, or empty. It runs in the kernel, so what it refuses costs
    /// nothing and is not counted; if it deals with VLAN tags, which the kernel takes out of frames, it
    /// runs here and what it refuses is counted.
    pub filter: String,
    /// Capture only what comes in, not what this machine sends.
    pub ignore_outgoing: bool,
    /// Time stamps by the card's clock, as that clock is set (a PTP clock may count TAI).
    pub hardware_timestamps: bool,
}

impl InterfaceOptions {
    /// Everything that passes the interface, whole, through one ring of 64 MiB.
    pub fn new(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            queues: 1,
            fanout: Fanout::Hash,
            ring_bytes: 64 << 20,
            block_bytes: 1 << 20,
            snap_length: 0,
            promiscuous: false,
            filter: String::new(),
            ignore_outgoing: false,
            hardware_timestamps: false,
        }
    }
}

/// Something that was asked for and not granted, or that the user should know.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum InterfaceWarning {
    /// The card doesn't stamp packets; the kernel does.
    NoHardwareTimestamps {
        /// The interface.
        name: String,
        /// The reason.
        reason: String,
    },
    /// The filter runs here instead of in the kernel.
    FilterInUserSpace {
        /// The filter.
        filter: String,
    },
}

impl fmt::Display for InterfaceWarning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoHardwareTimestamps { name, reason } => write!(
                f,
                "no hardware time stamps on '{name}' ({reason}): the kernel's are used; see \
                 'ethtool -T {name}'"
            ),
            Self::FilterInUserSpace { filter } => write!(
                f,
                "the filter '{filter}' deals with VLAN tags, which the kernel takes out of frames: it \
                 runs in Longtake instead of the kernel and costs more"
            ),
        }
    }
}

/// Something that happened while capturing and did not end it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LinkEvent {
    /// The interface was taken down; the capture goes on waiting.
    WentDown {
        /// When it was noticed.
        at: Timestamp,
    },
    /// It was brought up again.
    CameBack {
        /// When it was noticed.
        at: Timestamp,
    },
}

/// The balanced account of one queue: `received_by_kernel` = `delivered` + `filtered` + `refused` +
/// `kernel_drops`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct InterfaceSummary {
    /// Packets that the kernel's filter accepted for this queue.
    pub received_by_kernel: u64,
    /// Given to the sink, which took them.
    pub delivered: u64,
    /// Refused by the filter, where it runs here.
    pub filtered: u64,
    /// In the ring when the sink had ended: they came after the recording's end.
    pub refused: u64,
    /// Dropped by the kernel because the ring was full.
    pub kernel_drops: u64,
    /// Times that the ring ran full.
    pub ring_full: u64,
    /// Lost before the kernel's capture saw them; counted for the whole interface, by queue 0.
    pub interface_drops: u64,
    /// The interface's ups and downs, the first [`EVENTS_MAX`] of them.
    pub events: Vec<LinkEvent>,
}

/// How many ups and downs a summary keeps.
pub const EVENTS_MAX: usize = 100;

impl InterfaceSummary {
    /// Whether every packet that the kernel received is accounted for.
    pub const fn balances(&self) -> bool {
        self.received_by_kernel == self.delivered + self.filtered + self.refused + self.kernel_drops
    }
}

/// Why an interface could not be captured from (any more).
#[derive(Debug)]
pub enum InterfaceError {
    /// Options that can't be.
    Invalid {
        /// The interface.
        name: String,
        /// What is wrong, and what to do.
        reason: String,
    },
    /// No interface of that name.
    NoSuchInterface {
        /// The name.
        name: String,
    },
    /// It is there but not up.
    Down {
        /// The interface.
        name: String,
    },
    /// Capturing takes a privilege.
    NoPermission {
        /// The interface.
        name: String,
        /// What was tried.
        attempted: &'static str,
    },
    /// Its frames are of a kind that Longtake has no link type for.
    HardwareType {
        /// The interface.
        name: String,
        /// Its ARPHRD number (`linux/if_arp.h`).
        hardware: u16,
    },
    /// The filter doesn't compile.
    Filter(FilterError),
    /// The kernel has too little memory for the ring.
    NoMemory {
        /// The interface.
        name: String,
        /// The ring's size in bytes.
        ring_bytes: usize,
    },
    /// A system call failed.
    System {
        /// What was tried.
        attempted: &'static str,
        /// The interface.
        name: String,
        /// Why it failed.
        error: io::Error,
    },
    /// The interface was deleted (or moved away) during the capture. All that was received before
    /// has been delivered.
    Gone {
        /// The interface.
        name: String,
        /// What was captured until then.
        summary: Box<InterfaceSummary>,
    },
    /// The kernel counted packets that never turned up in the ring (or the other way round): the
    /// account can't be trusted.
    Unbalanced {
        /// The interface.
        name: String,
        /// What was captured.
        summary: Box<InterfaceSummary>,
    },
}

impl fmt::Display for InterfaceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Invalid { name, reason } => write!(f, "can't capture from '{name}': {reason}"),
            Self::NoSuchInterface { name } => {
                write!(f, "can't capture from '{name}': no such interface; see 'ip link show'")
            }
            Self::Down { name } => write!(
                f,
                "can't capture from '{name}': the interface is down; bring it up with \
                 'ip link set {name} up'"
            ),
            Self::NoPermission { name, attempted } => write!(
                f,
                "can't capture from '{name}': {attempted} is not permitted; run as root or give the \
                 program CAP_NET_RAW (setcap cap_net_raw+ep)"
            ),
            Self::HardwareType { name, hardware } => write!(
                f,
                "can't capture from '{name}': its hardware type {hardware} is neither Ethernet nor raw \
                 IP; choose another interface"
            ),
            Self::Filter(error) => error.fmt(f),
            Self::NoMemory { name, ring_bytes } => write!(
                f,
                "can't capture from '{name}': the kernel has no memory for a ring of {}; choose a \
                 smaller ring or fewer queues",
                ByteSize(*ring_bytes as u64)
            ),
            Self::System { attempted, name, error } => {
                write!(f, "can't capture from '{name}': {attempted} failed: {error}")
            }
            Self::Gone { name, summary } => write!(
                f,
                "interface '{name}' was deleted during the capture; the {} packets received before are \
                 kept. Start a new recording when it is back",
                summary.delivered
            ),
            Self::Unbalanced { name, summary } => write!(
                f,
                "the account of '{name}' does not balance: the kernel received {} packets, and {} \
                 delivered, {} filtered, {} refused and {} dropped are not as many. Please report this \
                 with the kernel's version",
                summary.received_by_kernel,
                summary.delivered,
                summary.filtered,
                summary.refused,
                summary.kernel_drops
            ),
        }
    }
}

impl std::error::Error for InterfaceError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Filter(error) => Some(error),
            Self::System { error, .. } => Some(error),
            _ => None,
        }
    }
}
