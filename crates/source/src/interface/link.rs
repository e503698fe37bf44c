//! Whether an interface's link is up, asked from time to time while a capture goes on.

use std::io;

use super::InterfaceError;
use crate::socket::{self, Socket};

/// What can be received through an interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LinkState {
    /// Packets can come.
    Up,
    /// The interface is up, but it has no carrier: a cable is unplugged, or the other end is off.
    NoCarrier,
    /// The interface was taken down.
    Down,
}

impl LinkState {
    /// As a key in JSON.
    pub const fn key(self) -> &'static str {
        match self {
            Self::Up => "up",
            Self::NoCarrier => "no_carrier",
            Self::Down => "down",
        }
    }
}

/// Answers whether a link is up. Asking needs no privileges and no files.
#[derive(Debug)]
pub struct Link {
    socket: Socket,
    name: String,
}

impl Link {
    /// For an interface by its name, as `ip link` shows it.
    ///
    /// # Errors
    /// [`InterfaceError::System`] if the system gives no socket.
    pub fn open(name: &str) -> Result<Self, InterfaceError> {
        let opened = Socket::open(libc::AF_INET, libc::SOCK_DGRAM, 0);
        let socket = opened.map_err(|error| InterfaceError::System {
            attempted: "opening a socket that asks for the link's state",
            name: name.to_owned(),
            error,
        })?;
        Ok(Self { socket, name: name.to_owned() })
    }

    /// The interface's name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The link's state now; None if there is no interface of that name any more.
    pub fn state(&self) -> Option<LinkState> {
        let flags = flags(&self.socket, &self.name).ok()?;
        let has = |flag: libc::c_int| flags & flag as i16 != 0;
        Some(match (has(libc::IFF_UP), has(libc::IFF_RUNNING)) {
            (false, _) => LinkState::Down,
            (true, false) => LinkState::NoCarrier,
            (true, true) => LinkState::Up,
        })
    }
}

/// An interface's flags (`SIOCGIFFLAGS`), asked through any socket.
pub(super) fn flags(socket: &Socket, name: &str) -> io::Result<i16> {
    let mut request = socket::interface_request(name)?;
    // SAFETY: SIOCGIFFLAGS writes `ifru_flags` and follows no pointer.
    unsafe { socket.ioctl_interface(libc::SIOCGIFFLAGS as libc::Ioctl, &mut request) }?;
    // SAFETY: the call filled in `ifru_flags`.
    Ok(unsafe { request.ifr_ifru.ifru_flags })
}
