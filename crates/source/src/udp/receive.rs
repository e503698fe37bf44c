//! Many datagrams by one system call, each into its own place, with room for headers in front.

use std::io;
use std::mem;
use std::net::SocketAddr;

use base::Timestamp;
use libc::{c_int, c_void};

use super::headers::{self, HEADROOM};
use super::{Framing, UdpOptions};
use crate::socket::{self, BATCH_MAX, Socket};

/// Longest UDP payload with IPv6 (65,535 bytes of IP payload), rounded up.
const PAYLOAD_MAX: usize = 65_535;

/// Control data of one datagram, aligned as its headers want: a time stamp, a drop count, a
/// destination address are 32, 24 and 40 bytes.
type Control = [u64; 16];

/// Buffers for [`BATCH_MAX`] datagrams.
pub(super) struct ReceiveBatch {
    framing: Framing,
    snap_length: usize,
    payload_max: usize,
    stride: usize,
    buffers: Vec<u8>,
    vectors: Vec<libc::iovec>,
    messages: Vec<libc::mmsghdr>,
    controls: Vec<Control>,
    sources: Vec<libc::sockaddr_storage>,
}

/// What the kernel told about one datagram beside its bytes.
pub(super) struct Datagram {
    /// When it arrived.
    pub(super) timestamp: Option<Timestamp>,
    /// The socket's drop counter when this one was queued; None while it is zero.
    pub(super) drops: Option<u32>,
    /// The address it was sent to, if asked for.
    destination: Option<std::net::IpAddr>,
    /// Payload bytes that were sent.
    length: usize,
}

impl ReceiveBatch {
    pub(super) fn new(options: &UdpOptions) -> Self {
        let snap_length = match options.snap_length {
            0 => usize::MAX,
            length => length as usize,
        };
        let payload_max = snap_length.min(PAYLOAD_MAX);
        // Cache lines are not shared between datagrams.
        let stride = (HEADROOM + payload_max).next_multiple_of(64);
        // SAFETY: all zero is a valid mmsghdr: no address, no vectors, no control data.
        let empty: libc::mmsghdr = unsafe { mem::zeroed() };
        Self {
            framing: options.framing,
            snap_length,
            payload_max,
            stride,
            buffers: vec![0; stride * BATCH_MAX],
            vectors: vec![libc::iovec { iov_base: std::ptr::null_mut(), iov_len: 0 }; BATCH_MAX],
            messages: vec![empty; BATCH_MAX],
            controls: vec![[0; 16]; BATCH_MAX],
            sources: vec![socket::zeroed(); BATCH_MAX],
        }
    }

    /// Receives and returns how many datagrams came; 0 when none did in time.
    pub(super) fn receive(&mut self, socket: &Socket, flags: c_int) -> io::Result<usize> {
        let places = self.buffers.chunks_exact_mut(self.stride);
        let parts = self.vectors.iter_mut().zip(&mut self.controls).zip(&mut self.sources);
        for ((message, place), ((vector, control), source)) in
            self.messages.iter_mut().zip(places).zip(parts)
        {
            vector.iov_base = place[HEADROOM..].as_mut_ptr().cast::<c_void>();
            vector.iov_len = self.payload_max;
            let header = &mut message.msg_hdr;
            header.msg_iov = vector;
            header.msg_iovlen = 1;
            header.msg_control = control.as_mut_ptr().cast();
            header.msg_controllen = mem::size_of::<Control>() as _;
            if self.framing == Framing::Headers {
                header.msg_name = std::ptr::from_mut(source).cast();
                header.msg_namelen = mem::size_of_val(source) as libc::socklen_t;
            }
        }
        // SAFETY: each message points at its own vector, buffer, control data and address, with
        // their lengths; all of them are owned by `self` and outlive the call.
        let count = unsafe {
            libc::recvmmsg(
                socket.fd(),
                self.messages.as_mut_ptr(),
                BATCH_MAX as u32,
                (flags | libc::MSG_TRUNC) as _,
                std::ptr::null_mut(),
            )
        };
        if count >= 0 {
            return Ok(count as usize);
        }
        let error = io::Error::last_os_error();
        match error.kind() {
            io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted => Ok(0),
            _ => Err(error),
        }
    }

    /// What is known about the datagram at `index` of those received last.
    pub(super) fn datagram(&self, index: usize) -> Datagram {
        let message = &self.messages[index];
        let mut datagram = Datagram {
            timestamp: None,
            drops: None,
            destination: None,
            length: message.msg_len as usize,
        };
        let header = &raw const message.msg_hdr;
        // SAFETY: the kernel filled the control data that `header` points at, which is alive in
        // `self.controls`, and set its length.
        let mut control = unsafe { libc::CMSG_FIRSTHDR(header) };
        while !control.is_null() {
            // SAFETY: CMSG_FIRSTHDR and CMSG_NXTHDR return whole headers inside the control data.
            let (level, kind) = unsafe { ((*control).cmsg_level, (*control).cmsg_type) };
            // SAFETY: as above; the data of each kind is as long as its type, `read_unaligned`
            // wants no alignment.
            unsafe {
                let data = libc::CMSG_DATA(control);
                match (level, kind) {
                    (libc::SOL_SOCKET, libc::SCM_TIMESTAMPNS) => {
                        let time = data.cast::<libc::timespec>().read_unaligned();
                        let ns = time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64;
                        datagram.timestamp = Some(Timestamp::from_nanos(ns));
                    }
                    (libc::SOL_SOCKET, libc::SO_RXQ_OVFL) => {
                        datagram.drops = Some(data.cast::<u32>().read_unaligned());
                    }
                    (libc::IPPROTO_IP, libc::IP_PKTINFO) => {
                        let info = data.cast::<libc::in_pktinfo>().read_unaligned();
                        let octets = info.ipi_addr.s_addr.to_ne_bytes();
                        datagram.destination = Some(octets.into());
                    }
                    (libc::IPPROTO_IPV6, libc::IPV6_PKTINFO) => {
                        let info = data.cast::<libc::in6_pktinfo>().read_unaligned();
                        datagram.destination = Some(info.ipi6_addr.s6_addr.into());
                    }
                    _ => {}
                }
                control = libc::CMSG_NXTHDR(header, control);
            }
        }
        datagram
    }

    /// The bytes to record of a datagram, and how many there were; `local` is where it was received.
    pub(super) fn frame(
        &mut self,
        index: usize,
        datagram: &Datagram,
        local: SocketAddr,
    ) -> (&[u8], u32) {
        let kept = datagram.length.min(self.payload_max);
        let start = index * self.stride;
        let place = &mut self.buffers[start..start + HEADROOM + kept];
        let header = match self.framing {
            Framing::Payload => 0,
            Framing::Headers => {
                let destination = datagram.destination.unwrap_or(local.ip());
                let destination = SocketAddr::new(destination, local.port());
                let source = socket::from_storage(&self.sources[index]).unwrap_or(local);
                headers::write(place, datagram.length, source, destination)
            }
        };
        let frame = &place[HEADROOM - header..];
        let frame = &frame[..frame.len().min(self.snap_length)];
        (frame, (header + datagram.length) as u32)
    }
}
