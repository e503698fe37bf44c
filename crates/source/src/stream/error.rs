//! Why a stream could not be opened, or ended too early.

use std::fmt;
use std::io;

use base::ByteSize;

use super::{BLOCK_BYTES_MAX, CONNECTIONS_MAX};

/// Why a stream could not be opened, or ended too early. What had arrived was delivered.
#[derive(Debug)]
pub enum StreamError {
    /// A fifo, file or standard input can't be opened.
    Open {
        /// Name of it.
        name: String,
        /// The kernel's reason.
        reason: io::Error,
    },
    /// Nobody answers there.
    Connect {
        /// `HOST:PORT`.
        address: String,
        /// The kernel's reason.
        reason: io::Error,
    },
    /// The address can't be listened at.
    Listen {
        /// `ADDRESS:PORT`.
        address: String,
        /// The kernel's reason.
        reason: io::Error,
    },
    /// The listener failed.
    Accept {
        /// `ADDRESS:PORT`.
        address: String,
        /// The kernel's reason.
        reason: io::Error,
    },
    /// A connection broke: a peer that reset it, for one.
    Read {
        /// Whom it was with.
        name: String,
        /// Bytes received from it before.
        received: u64,
        /// The kernel's reason.
        reason: io::Error,
    },
    /// The block size is out of range.
    BlockSize {
        /// In bytes.
        bytes: u32,
    },
    /// The number of connections is out of range.
    Connections {
        /// Number of connections.
        connections: u16,
    },
}

impl fmt::Display for StreamError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Open { name, reason } => {
                write!(f, "can't open {name} to read a stream: {reason}")
            }
            Self::Connect { address, reason } => write!(
                f,
                "can't connect to {address}: {reason}; check that the sender listens there, or let it \
                 connect here with tcp-listen:ADDRESS:PORT"
            ),
            Self::Listen { address, reason } => write!(
                f,
                "can't listen at {address}: {reason}; give an address of this machine (0.0.0.0 for all) \
                 and a free port"
            ),
            Self::Accept { address, reason } => {
                write!(f, "accepting connections at {address} failed: {reason}")
            }
            Self::Read { name, received, reason } => write!(
                f,
                "{name} broke off: {reason}; the {} received from it before were delivered ({received} \
                 bytes)",
                ByteSize(*received)
            ),
            Self::BlockSize { bytes } => {
                write!(f, "a block can't be {bytes} bytes long: give 1 to {BLOCK_BYTES_MAX}")
            }
            Self::Connections { connections } => write!(
                f,
                "a listener can't take {connections} connections: give 1 to {CONNECTIONS_MAX}"
            ),
        }
    }
}

impl std::error::Error for StreamError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Open { reason, .. }
            | Self::Connect { reason, .. }
            | Self::Listen { reason, .. }
            | Self::Accept { reason, .. }
            | Self::Read { reason, .. } => Some(reason),
            Self::BlockSize { .. } | Self::Connections { .. } => None,
        }
    }
}
