//! The system calls that capture and sending make on sockets: options, addresses, classic BPF,
//! batches. Their unsafety is settled here, so that the files above speak of packets only.

use std::io;
use std::mem;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV4, SocketAddrV6};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};

use libc::{c_int, c_void};

use crate::filter::Instruction;

/// Packets that go through one `sendmmsg` or `recvmmsg`. Enough to make the cost of the call small
/// against that of the packets; the kernel takes 1,024 at most (`UIO_MAXIOV`).
pub(crate) const BATCH_MAX: usize = 64;

/// How the kernel takes lengths of options and addresses.
type Length = libc::socklen_t;

/// A type that the kernel reads and writes as bytes.
///
/// # Safety
/// All bit patterns of the type must be valid.
pub(crate) unsafe trait Plain: Copy {}

macro_rules! plain {
    ($($type:ty),* $(,)?) => {
        $(
            // SAFETY: integers, and C structs and arrays of integers.
            unsafe impl Plain for $type {}
        )*
    };
}

plain!(
    u32,
    c_int,
    [u32; 9],
    libc::timeval,
    libc::sockaddr_ll,
    libc::sockaddr_nl,
    libc::sockaddr_storage,
    libc::packet_mreq,
    libc::ip_mreqn,
    libc::ipv6_mreq,
    libc::tpacket_req3,
    libc::tpacket_stats_v3,
    libc::fanout_args,
);

/// A socket, closed when dropped.
#[derive(Debug)]
pub(crate) struct Socket(OwnedFd);

impl Socket {
    /// Opens a socket that is closed on exec.
    pub(crate) fn open(domain: c_int, kind: c_int, protocol: c_int) -> io::Result<Self> {
        // SAFETY: takes and returns integers.
        let fd = unsafe { libc::socket(domain, kind | libc::SOCK_CLOEXEC, protocol) };
        if fd < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the descriptor is open, and nobody else has it.
        Ok(Self(unsafe { OwnedFd::from_raw_fd(fd) }))
    }

    /// The descriptor, for `mmap` and `ioctl`.
    pub(crate) fn fd(&self) -> RawFd {
        self.0.as_raw_fd()
    }

    /// Sets an option.
    pub(crate) fn set<T: Plain>(&self, level: c_int, option: c_int, value: &T) -> io::Result<()> {
        let (value, length) = (std::ptr::from_ref(value).cast(), mem::size_of::<T>() as Length);
        // SAFETY: `value` points at `length` readable bytes for the length of the call.
        checked(unsafe { libc::setsockopt(self.fd(), level, option, value, length) })?;
        Ok(())
    }

    /// Reads an option; what the kernel doesn't fill stays zero.
    pub(crate) fn get<T: Plain>(&self, level: c_int, option: c_int) -> io::Result<T> {
        let mut value = zeroed::<T>();
        let mut length = mem::size_of::<T>() as Length;
        let target = (&raw mut value).cast();
        // SAFETY: `target` points at `length` writable bytes for the length of the call.
        checked(unsafe { libc::getsockopt(self.fd(), level, option, target, &raw mut length) })?;
        Ok(value)
    }

    /// Takes the error that the kernel left on the socket, such as `ENETDOWN`.
    pub(crate) fn take_error(&self) -> io::Result<Option<io::Error>> {
        let number: c_int = self.get(libc::SOL_SOCKET, libc::SO_ERROR)?;
        Ok((number != 0).then(|| io::Error::from_raw_os_error(number)))
    }

    /// Binds to an address of its family.
    pub(crate) fn bind<A: Plain>(&self, address: &A) -> io::Result<()> {
        let (address, length) = (std::ptr::from_ref(address).cast(), mem::size_of::<A>() as Length);
        // SAFETY: `address` points at `length` readable bytes for the length of the call.
        checked(unsafe { libc::bind(self.fd(), address, length) })?;
        Ok(())
    }

    /// Connects to an Internet address, so that sending needs none.
    pub(crate) fn connect(&self, address: SocketAddr) -> io::Result<()> {
        let address = to_storage(address);
        let pointer = (&raw const address).cast();
        let length = mem::size_of_val(&address) as Length;
        // SAFETY: `pointer` points at `length` readable bytes for the length of the call.
        checked(unsafe { libc::connect(self.fd(), pointer, length) })?;
        Ok(())
    }

    /// The address it is bound to.
    pub(crate) fn name<A: Plain>(&self) -> io::Result<A> {
        let mut address = zeroed::<A>();
        let mut length = mem::size_of::<A>() as Length;
        let target = (&raw mut address).cast();
        // SAFETY: `target` points at `length` writable bytes for the length of the call.
        checked(unsafe { libc::getsockname(self.fd(), target, &raw mut length) })?;
        Ok(address)
    }

    /// Waits for `events` for up to `timeout_ms` and returns those that came, or 0. An interrupted
    /// wait is a short one.
    pub(crate) fn poll(&self, events: i16, timeout_ms: u32) -> io::Result<i16> {
        let mut entry = libc::pollfd { fd: self.fd(), events, revents: 0 };
        let timeout = c_int::try_from(timeout_ms).unwrap_or(c_int::MAX);
        // SAFETY: `entry` is one pollfd, writable for the length of the call.
        match checked(unsafe { libc::poll(&raw mut entry, 1, timeout) }) {
            Ok(_) => Ok(entry.revents),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => Ok(0),
            Err(error) => Err(error),
        }
    }

    /// Makes the kernel pass only what the program lets through, from now on; a program that is
    /// there already is replaced at once.
    pub(crate) fn attach_filter(&self, program: &[Instruction]) -> io::Result<()> {
        let mut instructions: Vec<libc::sock_filter> = program
            .iter()
            .map(|i| libc::sock_filter { code: i.code, jt: i.jt, jf: i.jf, k: i.k })
            .collect();
        let len = u16::try_from(instructions.len())
            .map_err(|_| io::Error::from_raw_os_error(libc::EINVAL))?;
        let program = libc::sock_fprog { len, filter: instructions.as_mut_ptr() };
        // SAFETY: the kernel copies the `len` instructions behind `filter`, which outlive the call.
        checked(unsafe {
            libc::setsockopt(
                self.fd(),
                libc::SOL_SOCKET,
                libc::SO_ATTACH_FILTER,
                (&raw const program).cast(),
                mem::size_of_val(&program) as Length,
            )
        })?;
        Ok(())
    }

    /// An `ioctl` about an interface. `request` must be one that takes a `struct ifreq`.
    ///
    /// # Safety
    /// If the request follows `ifru_data`, that must point at what it wants.
    pub(crate) unsafe fn ioctl_interface(
        &self,
        request: libc::Ioctl,
        argument: &mut libc::ifreq,
    ) -> io::Result<()> {
        // SAFETY: `argument` is an ifreq, writable for the length of the call; the rest is the
        // caller's promise.
        checked(unsafe { libc::ioctl(self.fd(), request, std::ptr::from_mut(argument)) })?;
        Ok(())
    }

    /// Sends one message.
    pub(crate) fn send(&self, message: &[u8]) -> io::Result<()> {
        let (data, length) = (message.as_ptr().cast(), message.len());
        // SAFETY: `data` points at `length` readable bytes for the length of the call.
        let sent = unsafe { libc::send(self.fd(), data, length, 0) };
        if sent < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
    }

    /// Receives one message and returns its length; what doesn't fit is cut off.
    pub(crate) fn receive(&self, buffer: &mut [u8]) -> io::Result<usize> {
        let (data, length) = (buffer.as_mut_ptr().cast(), buffer.len());
        // SAFETY: `data` points at `length` writable bytes for the length of the call.
        let received = unsafe { libc::recv(self.fd(), data, length, 0) };
        usize::try_from(received).map_err(|_| io::Error::last_os_error())
    }

    /// Sends up to [`BATCH_MAX`] packets with one system call and returns how many went. It is an
    /// error only if the first didn't go.
    pub(crate) fn send_batch<'p>(
        &self,
        packets: impl Iterator<Item = &'p [u8]>,
    ) -> io::Result<usize> {
        let mut vectors = [libc::iovec { iov_base: std::ptr::null_mut(), iov_len: 0 }; BATCH_MAX];
        // SAFETY: all zero is a valid mmsghdr: no address, no vectors, no control data.
        let mut messages: [libc::mmsghdr; BATCH_MAX] = unsafe { mem::zeroed() };
        let mut count = 0;
        for (packet, (vector, message)) in packets.zip(vectors.iter_mut().zip(messages.iter_mut()))
        {
            vector.iov_base = packet.as_ptr().cast_mut().cast::<c_void>();
            vector.iov_len = packet.len();
            message.msg_hdr.msg_iov = std::ptr::from_mut(vector);
            message.msg_hdr.msg_iovlen = 1;
            count += 1;
        }
        if count == 0 {
            return Ok(0);
        }
        // SAFETY: `count` messages, each with one vector of a packet that outlives the call;
        // sending only reads through them.
        let sent = unsafe {
            libc::sendmmsg(self.fd(), messages.as_mut_ptr(), count, libc::MSG_DONTWAIT as _)
        };
        Ok(checked(sent)? as usize)
    }
}

/// A value of all zero bytes.
pub(crate) fn zeroed<T: Plain>() -> T {
    // SAFETY: `Plain` promises that any bit pattern is valid.
    unsafe { mem::zeroed() }
}

/// The system call's result, or the error it left.
fn checked(result: c_int) -> io::Result<c_int> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result) }
}

/// An interface's number, or the error that it isn't there (`ENODEV`).
pub(crate) fn interface_index(name: &str) -> io::Result<u32> {
    let name = std::ffi::CString::new(name)?;
    // SAFETY: `name` ends with a zero byte and outlives the call.
    match unsafe { libc::if_nametoindex(name.as_ptr()) } {
        0 => Err(io::Error::last_os_error()),
        index => Ok(index),
    }
}

/// An `ifreq` about the interface named, or `EINVAL` if the name is longer than any can be.
pub(crate) fn interface_request(name: &str) -> io::Result<libc::ifreq> {
    // SAFETY: all zero is a valid ifreq.
    let mut request: libc::ifreq = unsafe { mem::zeroed() };
    if name.len() >= request.ifr_name.len() {
        return Err(io::Error::from_raw_os_error(libc::EINVAL));
    }
    for (to, from) in request.ifr_name.iter_mut().zip(name.bytes()) {
        *to = from as libc::c_char;
    }
    Ok(request)
}

/// An Internet address as the kernel takes it.
pub(crate) fn to_storage(address: SocketAddr) -> libc::sockaddr_storage {
    let mut storage: libc::sockaddr_storage = zeroed();
    let target = &raw mut storage;
    match address {
        SocketAddr::V4(a) => {
            let value = libc::sockaddr_in {
                sin_family: libc::AF_INET as libc::sa_family_t,
                sin_port: a.port().to_be(),
                sin_addr: to_in_addr(*a.ip()),
                sin_zero: [0; 8],
            };
            // SAFETY: a sockaddr_storage is at least as long and as aligned as any address.
            unsafe { target.cast::<libc::sockaddr_in>().write(value) };
        }
        SocketAddr::V6(a) => {
            let value = libc::sockaddr_in6 {
                sin6_family: libc::AF_INET6 as libc::sa_family_t,
                sin6_port: a.port().to_be(),
                sin6_flowinfo: a.flowinfo(),
                sin6_addr: libc::in6_addr { s6_addr: a.ip().octets() },
                sin6_scope_id: a.scope_id(),
            };
            // SAFETY: as above.
            unsafe { target.cast::<libc::sockaddr_in6>().write(value) };
        }
    }
    storage
}

/// An Internet address as the kernel gave it; None if it is of another family.
pub(crate) fn from_storage(storage: &libc::sockaddr_storage) -> Option<SocketAddr> {
    let source = std::ptr::from_ref(storage);
    match c_int::from(storage.ss_family) {
        libc::AF_INET => {
            // SAFETY: the storage is long and aligned enough, and any bits are a sockaddr_in.
            let a = unsafe { source.cast::<libc::sockaddr_in>().read() };
            let ip = Ipv4Addr::from(a.sin_addr.s_addr.to_ne_bytes());
            Some(SocketAddrV4::new(ip, u16::from_be(a.sin_port)).into())
        }
        libc::AF_INET6 => {
            // SAFETY: as above.
            let a = unsafe { source.cast::<libc::sockaddr_in6>().read() };
            let ip = Ipv6Addr::from(a.sin6_addr.s6_addr);
            let port = u16::from_be(a.sin6_port);
            Some(SocketAddrV6::new(ip, port, a.sin6_flowinfo, a.sin6_scope_id).into())
        }
        _ => None,
    }
}

/// An IPv4 address as the kernel takes it.
pub(crate) fn to_in_addr(address: Ipv4Addr) -> libc::in_addr {
    libc::in_addr { s_addr: u32::from_ne_bytes(address.octets()) }
}

/// The address family of an Internet address.
pub(crate) fn family(address: IpAddr) -> c_int {
    if address.is_ipv4() { libc::AF_INET } else { libc::AF_INET6 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn internet_addresses_survive_the_way_to_the_kernels_form_and_back() {
        for text in ["127.0.0.1:5000", "[fe80::1%7]:65535", "[::]:0", "239.1.2.3:9"] {
            let address: SocketAddr = text.parse().unwrap();
            assert_eq!(from_storage(&to_storage(address)), Some(address), "{text}");
        }
        assert_eq!(from_storage(&zeroed()), None);
    }

    #[test]
    fn an_interface_that_is_not_there_is_enodev() {
        let error = interface_index("nonesuch0").unwrap_err();
        assert_eq!(error.raw_os_error(), Some(libc::ENODEV));
        assert!(interface_index("a\0b").is_err());
        assert!(interface_request("a-name-of-sixteen").is_err());
    }
}
