//! What was lost on the way to the capture ring: by the kernel for want of room in the ring, and by the
//! interface before the kernel's capture saw it.

use std::io;

use crate::socket::{self, Socket};

/// A capture socket's own counters, added up over their readings (each resets them).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct RingCounts {
    /// Packets that the kernel placed in the ring.
    pub placed: u64,
    /// Packets that it dropped because the ring was full.
    pub drops: u64,
    /// Times that the ring ran full.
    pub freezes: u64,
}

impl RingCounts {
    /// Reads the kernel's counters. `consumed` is how many packets were read from the ring so far:
    /// the counters have 32 bits, and this tells how often they wrapped.
    pub(super) fn read(&mut self, socket: &Socket, consumed: u64) -> io::Result<()> {
        let new: libc::tpacket_stats_v3 = socket.get(libc::SOL_PACKET, libc::PACKET_STATISTICS)?;
        self.add(&new, consumed);
        Ok(())
    }

    fn add(&mut self, new: &libc::tpacket_stats_v3, consumed: u64) {
        // The kernel's tp_packets counts the dropped ones too.
        self.placed += u64::from(new.tp_packets.wrapping_sub(new.tp_drops));
        while self.placed < consumed {
            self.placed += 1 << 32;
        }
        self.drops += u64::from(new.tp_drops);
        self.freezes += u64::from(new.tp_freeze_q_cnt);
    }
}

/// Reads an interface's drop counters, by netlink rather than from `/sys`: the socket stays in the
/// network namespace it was opened in, and needs no file system mounted nor any privilege.
#[derive(Debug)]
pub(super) struct InterfaceCounters {
    socket: Socket,
    index: u32,
    sequence: u32,
    answer: Vec<u8>,
}

/// `IFLA_STATS64` of `linux/if_link.h`: a `struct rtnl_link_stats64`.
const IFLA_STATS64: u16 = 23;

/// The places of counters in `struct rtnl_link_stats64`, all of 64 bits.
const RX_DROPPED: usize = 6;
const RX_FIFO_ERRORS: usize = 14;
const RX_MISSED_ERRORS: usize = 15;

const NETLINK_HEADER: usize = 16;
const INTERFACE_INFO: usize = 16;

/// Counters of packets that were lost before the kernel's capture could see them, and of others.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct InterfaceDrops {
    missed: u64,
    fifo: u64,
    dropped: u64,
    /// Of all interfaces: packets for which the kernel's backlog had no room.
    backlog: u64,
}

impl InterfaceDrops {
    /// Packets lost since `earlier`.
    ///
    /// - `rx_missed_errors`: the card found no free buffer. Some drivers count these as
    ///   `rx_fifo_errors` instead, or as well, so the greater of the two is taken.
    /// - `rx_dropped`: the kernel's backlog had no room (software interfaces, and receive packet
    ///   steering). But the kernel counts there also what captures have seen and nobody else wanted,
    ///   such as frames of a VLAN that isn't set up. So no more are taken than the backlog, which is
    ///   shared by all interfaces, dropped in the same time.
    /// - `rx_over_errors` (events rather than packets) and `rx_nohandler` (captures have seen those)
    ///   are not taken.
    pub(super) fn since(&self, earlier: &Self) -> u64 {
        let missed = self.missed.saturating_sub(earlier.missed);
        let fifo = self.fifo.saturating_sub(earlier.fifo);
        let dropped = self.dropped.saturating_sub(earlier.dropped);
        let backlog = self.backlog.saturating_sub(earlier.backlog);
        missed.max(fifo) + dropped.min(backlog)
    }
}

impl InterfaceCounters {
    /// For the interface with this number, in the calling thread's network namespace.
    pub(super) fn open(index: u32) -> io::Result<Self> {
        let socket = Socket::open(libc::AF_NETLINK, libc::SOCK_RAW, libc::NETLINK_ROUTE)?;
        let mut address: libc::sockaddr_nl = socket::zeroed();
        address.nl_family = libc::AF_NETLINK as u16;
        socket.bind(&address)?;
        // The kernel answers at once; a limit all the same, so that a capture can't hang here.
        let timeout = libc::timeval { tv_sec: 1, tv_usec: 0 };
        socket.set(libc::SOL_SOCKET, libc::SO_RCVTIMEO, &timeout)?;
        Ok(Self { socket, index, sequence: 0, answer: vec![0; 32 << 10] })
    }

    /// The counters now. `ENODEV` if the interface is gone.
    pub(super) fn read(&mut self) -> io::Result<InterfaceDrops> {
        self.sequence += 1;
        self.socket.send(&self.request())?;
        loop {
            let length = self.socket.receive(&mut self.answer)?;
            // None: the late answer to a question that timed out.
            if let Some(drops) = parse(&self.answer[..length], self.sequence)? {
                return Ok(InterfaceDrops { backlog: backlog_drops(), ..drops });
            }
        }
    }

    /// `RTM_GETLINK` for one interface: a `struct nlmsghdr` and a `struct ifinfomsg`.
    fn request(&self) -> [u8; NETLINK_HEADER + INTERFACE_INFO] {
        let mut request = [0; NETLINK_HEADER + INTERFACE_INFO];
        let length = request.len() as u32;
        request[0..4].copy_from_slice(&length.to_ne_bytes());
        request[4..6].copy_from_slice(&libc::RTM_GETLINK.to_ne_bytes());
        request[6..8].copy_from_slice(&(libc::NLM_F_REQUEST as u16).to_ne_bytes());
        request[8..12].copy_from_slice(&self.sequence.to_ne_bytes());
        request[20..24].copy_from_slice(&self.index.to_ne_bytes());
        request
    }
}

/// The counters in an answer; None if it answers an earlier question.
fn parse(answer: &[u8], sequence: u32) -> io::Result<Option<InterfaceDrops>> {
    let strange = || io::Error::new(io::ErrorKind::InvalidData, "netlink answer too short");
    let u16_at =
        |at: usize| answer.get(at..at + 2).and_then(|b| b.try_into().ok()).map(u16::from_ne_bytes);
    let u32_at =
        |at: usize| answer.get(at..at + 4).and_then(|b| b.try_into().ok()).map(u32::from_ne_bytes);
    if u32_at(8).ok_or_else(strange)? != sequence {
        return Ok(None);
    }
    if u16_at(4).ok_or_else(strange)? == libc::NLMSG_ERROR as u16 {
        let number = u32_at(NETLINK_HEADER).ok_or_else(strange)? as i32;
        return Err(io::Error::from_raw_os_error(-number));
    }
    // Attributes: length with this header, type, value, padded to four bytes.
    let mut at = NETLINK_HEADER + INTERFACE_INFO;
    while let (Some(length), Some(kind)) = (u16_at(at), u16_at(at + 2)) {
        if kind == IFLA_STATS64 {
            let counter = |place: usize| {
                let at = at + 4 + place * 8;
                let bytes = answer.get(at..at + 8).and_then(|b| b.try_into().ok());
                bytes.map(u64::from_ne_bytes).ok_or_else(strange)
            };
            return Ok(Some(InterfaceDrops {
                dropped: counter(RX_DROPPED)?,
                missed: counter(RX_MISSED_ERRORS)?,
                fifo: counter(RX_FIFO_ERRORS)?,
                backlog: 0,
            }));
        }
        if length < 4 {
            break;
        }
        at += usize::from(length).next_multiple_of(4);
    }
    Err(io::Error::new(io::ErrorKind::InvalidData, "netlink answer without counters"))
}

/// Packets that no processor's backlog had room for, since the system started. Where `/proc` is not
/// mounted that isn't known, and none are counted.
fn backlog_drops() -> u64 {
    std::fs::read_to_string("/proc/net/softnet_stat").map_or(0, |text| sum_backlog_drops(&text))
}

/// A line for each processor, hexadecimal columns; the second counts drops, in 32 bits.
fn sum_backlog_drops(softnet_stat: &str) -> u64 {
    let drops = |line: &str| u64::from_str_radix(line.split_whitespace().nth(1)?, 16).ok();
    softnet_stat.lines().filter_map(drops).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counts(packets: u32, drops: u32) -> libc::tpacket_stats_v3 {
        libc::tpacket_stats_v3 { tp_packets: packets, tp_drops: drops, tp_freeze_q_cnt: 1 }
    }

    #[test]
    fn placed_packets_are_the_kernels_count_less_its_drops() {
        let mut ring = RingCounts::default();
        ring.add(&counts(10, 3), 5);
        ring.add(&counts(4, 0), 11);
        assert_eq!(ring, RingCounts { placed: 11, drops: 3, freezes: 2 });
    }

    #[test]
    fn a_counter_that_wrapped_between_two_readings_is_put_right() {
        let mut ring = RingCounts::default();
        ring.add(&counts(50, 0), (1 << 32) + 20);
        assert_eq!(ring.placed, (1 << 32) + 50);
    }

    #[test]
    fn missed_packets_that_a_driver_counts_twice_are_lost_once() {
        let start = InterfaceDrops { missed: 5, fifo: 5, dropped: 1, backlog: 7 };
        let end = InterfaceDrops { missed: 9, fifo: 9, dropped: 3, backlog: 10 };
        assert_eq!(end.since(&start), 4 + 2);
        let fifo_only = InterfaceDrops { fifo: 11, ..start };
        assert_eq!(fifo_only.since(&start), 6);
    }

    #[test]
    fn packets_that_nobody_else_wanted_are_not_lost() {
        let start = InterfaceDrops::default();
        let unwanted = InterfaceDrops { dropped: 1000, ..start };
        assert_eq!(unwanted.since(&start), 0);
        let overrun = InterfaceDrops { dropped: 1000, backlog: 30, ..start };
        assert_eq!(overrun.since(&start), 30);
    }

    #[test]
    fn backlog_drops_are_added_up_over_processors() {
        let text = "0000beef 0000000a 00000001 0\n00000001 00000010 00000000 0\n\n";
        assert_eq!(sum_backlog_drops(text), 26);
    }

    #[test]
    fn the_loopback_interface_has_counters_and_a_missing_one_is_enodev() {
        let index = socket::interface_index("lo").unwrap();
        let mut counters = InterfaceCounters::open(index).unwrap();
        let first = counters.read().unwrap();
        assert_eq!(counters.read().unwrap().since(&first), 0);
        let mut missing = InterfaceCounters::open(0x7fff_0000).unwrap();
        assert_eq!(missing.read().unwrap_err().raw_os_error(), Some(libc::ENODEV));
    }

    #[test]
    fn an_answer_cut_anywhere_is_an_error_and_not_a_panic() {
        let mut answer = vec![0u8; 32];
        answer[8..12].copy_from_slice(&7u32.to_ne_bytes());
        answer.extend([8, 0, 3, 0, b'l', b'o', 0, 0]);
        answer.extend((4 + 24 * 8u16).to_ne_bytes());
        answer.extend(IFLA_STATS64.to_ne_bytes());
        for place in 0..24u64 {
            answer.extend(place.to_ne_bytes());
        }
        let whole = InterfaceDrops { missed: 15, fifo: 14, dropped: 6, backlog: 0 };
        assert_eq!(parse(&answer, 7).unwrap(), Some(whole));
        assert_eq!(parse(&answer, 8).unwrap(), None);
        for length in 0..40 + 4 + 16 * 8 {
            assert!(parse(&answer[..length], 7).is_err(), "{length}");
        }
    }
}
