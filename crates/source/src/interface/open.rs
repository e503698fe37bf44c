//! Opening a capture: sockets, rings and filters for every queue, while privileges last.

use std::io;
use std::mem;

use format::{Interface, LinkType};

use super::queue::{Queue, RETIRE_MS};
use super::ring::{Layout, Ring};
use super::statistics::InterfaceCounters;
use super::{Fanout, InterfaceError, InterfaceOptions, InterfaceWarning};
use crate::filter::{Instruction, Program};
use crate::socket::{self, Socket};
use crate::transmit::link_type_of;

/// The longest frame that is expected where nothing limits it: a merged segment of 64 KiB (GRO, TSO)
/// with its headers. The kernel cuts a frame that doesn't fit in a block.
const FRAME_BYTES_MAX: usize = 65_536 + 256;

/// What a block and a frame's header in it take beside the frame.
const BLOCK_OVERHEAD: usize = 256;

/// The most sockets in a fanout group (`PACKET_FANOUT_MAX` of older kernels).
const QUEUES_MAX: u16 = 256;

/// An opened capture.
#[derive(Debug)]
pub struct Capture {
    /// One for each thread, [`InterfaceOptions::queues`] of them. They share out the packets, so all
    /// have to run.
    pub queues: Vec<Queue>,
    /// What was not granted.
    pub warnings: Vec<InterfaceWarning>,
}

impl Capture {
    /// Opens everything that takes privileges (`CAP_NET_RAW`; for hardware time stamps
    /// `CAP_NET_ADMIN`); they may be dropped afterwards. The last it does is to let packets in.
    ///
    /// # Errors
    /// [`InterfaceError`]; nothing stays open.
    pub fn open(options: &InterfaceOptions) -> Result<Self, InterfaceError> {
        check(options)?;
        let index = socket::interface_index(&options.name)
            .map_err(|_| InterfaceError::NoSuchInterface { name: options.name.clone() })?;
        let opening = Opening { options, index };
        let mut warnings = Vec::new();
        let mut sockets = Vec::new();
        let mut group = None;
        for _ in 0..options.queues {
            let (socket, ring) = opening.socket()?;
            if options.queues > 1 {
                group = Some(opening.join(&socket, group)?);
            }
            sockets.push((socket, ring));
        }
        let first = &sockets[0].0;
        let link_type = opening.link_type(first)?;
        let filter = opening.filter(link_type, &mut warnings)?;
        if options.hardware_timestamps
            && let Err(error) = enable_hardware_timestamps(first, &options.name)
        {
            warnings.push(InterfaceWarning::NoHardwareTimestamps {
                name: options.name.clone(),
                reason: error.to_string(),
            });
        }
        let speed_bits = speed_bits(first, &options.name);
        let mut counters = InterfaceCounters::open(index)
            .map_err(|error| opening.failed("opening a netlink socket", error))?;
        let counters_start =
            counters.read().map_err(|error| opening.failed("reading drop counters", error))?;
        let mut counters = Some(counters);
        let queues = (0..).zip(sockets).map(|(number, (socket, ring))| Queue {
            socket,
            ring,
            index,
            filter: filter.clone(),
            snap_length: if options.snap_length == 0 { u32::MAX } else { options.snap_length },
            interface: Interface {
                name: options.name.clone(),
                description: match options.queues {
                    1 => String::new(),
                    queues => format!("queue {} of {queues}", number + 1),
                },
                link_type,
                snap_length: options.snap_length,
                filter: options.filter.trim().to_owned(),
                speed_bits,
            },
            number,
            counters: counters.take(),
            counters_start,
        });
        let queues: Vec<Queue> = queues.collect();
        for queue in &queues {
            queue
                .socket
                .attach_filter(&queue.filter.in_kernel)
                .map_err(|error| opening.failed("attaching the filter", error))?;
        }
        Ok(Self { queues, warnings })
    }
}

/// The filter's two halves: what the kernel runs, and what is run here on what the kernel passes.
#[derive(Clone, Debug)]
pub(super) struct Filter {
    pub(super) in_kernel: Vec<Instruction>,
    pub(super) here: Option<Program>,
}

/// A program that keeps `bytes` of every packet; 0 refuses all.
pub(super) const fn keep(bytes: u32) -> [Instruction; 1] {
    [Instruction { code: (libc::BPF_RET | libc::BPF_K) as u16, jt: 0, jf: 0, k: bytes }]
}

fn check(options: &InterfaceOptions) -> Result<(), InterfaceError> {
    let invalid =
        |reason: String| Err(InterfaceError::Invalid { name: options.name.clone(), reason });
    if options.name == "any" {
        return invalid(
            "capturing from all interfaces at once is not supported, because their frames differ in \
             kind; name one, or give several sources"
                .to_owned(),
        );
    }
    if options.queues == 0 || options.queues > QUEUES_MAX {
        return invalid(format!("{} queues: give 1 to {QUEUES_MAX}", options.queues));
    }
    let page = page_bytes();
    let frame = match options.snap_length {
        0 => FRAME_BYTES_MAX,
        snap_length => FRAME_BYTES_MAX.min(snap_length as usize),
    };
    let block_min = (frame + BLOCK_OVERHEAD).next_multiple_of(page);
    if !options.block_bytes.is_multiple_of(page) || options.block_bytes < block_min {
        return invalid(format!(
            "blocks of {} bytes: give a multiple of {page} from {block_min} up",
            options.block_bytes
        ));
    }
    // The kernel keeps the ring's size in an unsigned int.
    let blocks = options.ring_bytes / options.block_bytes;
    if blocks < 2 || options.ring_bytes > u32::MAX as usize {
        return invalid(format!(
            "a ring of {} bytes: give at least two blocks of {} and less than 4 GiB",
            options.ring_bytes, options.block_bytes
        ));
    }
    Ok(())
}

fn page_bytes() -> usize {
    // SAFETY: takes and returns integers.
    let bytes = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
    usize::try_from(bytes).unwrap_or(4096)
}

struct Opening<'o> {
    options: &'o InterfaceOptions,
    index: u32,
}

impl Opening<'_> {
    /// A socket with its ring, bound, that turns everything away.
    fn socket(&self) -> Result<(Socket, Ring), InterfaceError> {
        let options = self.options;
        // Protocol 0 until it is bound: nothing comes in before the ring and the filter are there.
        let socket = Socket::open(libc::AF_PACKET, libc::SOCK_RAW, 0)
            .map_err(|error| self.failed("opening a packet socket", error))?;
        let layout = Layout {
            block_bytes: options.block_bytes as u32,
            blocks: (options.ring_bytes / options.block_bytes) as u32,
            retire_ms: RETIRE_MS,
        };
        let ring = Ring::set_up(&socket, layout).map_err(|error| match error.raw_os_error() {
            Some(libc::ENOMEM) => InterfaceError::NoMemory {
                name: options.name.clone(),
                ring_bytes: options.ring_bytes,
            },
            _ => self.failed("setting up the capture ring", error),
        })?;
        socket.attach_filter(&keep(0)).map_err(|error| self.failed("attaching a filter", error))?;
        if self.ignores_outgoing() && options.queues == 1 {
            socket
                .set(libc::SOL_PACKET, libc::PACKET_IGNORE_OUTGOING, &1i32)
                .map_err(|error| self.failed("ignoring outgoing packets", error))?;
        }
        if options.hardware_timestamps {
            // Without the card's help the kernel falls back to its own.
            let source = libc::SOF_TIMESTAMPING_RAW_HARDWARE;
            socket
                .set(libc::SOL_PACKET, libc::PACKET_TIMESTAMP, &source)
                .map_err(|error| self.failed("choosing the card's time stamps", error))?;
        }
        let mut address: libc::sockaddr_ll = socket::zeroed();
        address.sll_family = libc::AF_PACKET as u16;
        address.sll_protocol = (libc::ETH_P_ALL as u16).to_be();
        address.sll_ifindex = self.index as i32;
        socket.bind(&address).map_err(|error| self.failed("binding", error))?;
        match socket.take_error() {
            Ok(None) => {}
            Ok(Some(error)) | Err(error) => return Err(self.failed("binding", error)),
        }
        if options.promiscuous {
            let mut request: libc::packet_mreq = socket::zeroed();
            request.mr_ifindex = self.index as i32;
            request.mr_type = libc::PACKET_MR_PROMISC as u16;
            socket
                .set(libc::SOL_PACKET, libc::PACKET_ADD_MEMBERSHIP, &request)
                .map_err(|error| self.failed("switching to promiscuous mode", error))?;
        }
        Ok((socket, ring))
    }

    /// Joins the fanout group, or founds it with a number that nobody has, and returns the number.
    fn join(&self, socket: &Socket, group: Option<u16>) -> Result<u16, InterfaceError> {
        let failed = |error| self.failed("sharing packets among queues (PACKET_FANOUT)", error);
        let mode = match self.options.fanout {
            Fanout::Hash => libc::PACKET_FANOUT_HASH,
            Fanout::LoadBalance => libc::PACKET_FANOUT_LB,
            Fanout::Cpu => libc::PACKET_FANOUT_CPU,
            Fanout::QueueMapping => libc::PACKET_FANOUT_QM,
        };
        let mut flags = mode;
        if self.ignores_outgoing() {
            flags |= libc::PACKET_FANOUT_FLAG_IGNORE_OUTGOING;
        }
        if group.is_none() {
            flags |= libc::PACKET_FANOUT_FLAG_UNIQUEID;
        }
        let arguments = u32::from(group.unwrap_or(0)) | flags << 16;
        socket.set(libc::SOL_PACKET, libc::PACKET_FANOUT, &arguments).map_err(failed)?;
        let joined: u32 = socket.get(libc::SOL_PACKET, libc::PACKET_FANOUT).map_err(failed)?;
        Ok(joined as u16)
    }

    /// On the loopback interface every packet comes by twice, going out and coming in.
    fn ignores_outgoing(&self) -> bool {
        self.options.ignore_outgoing || self.options.name == "lo"
    }

    fn link_type(&self, socket: &Socket) -> Result<LinkType, InterfaceError> {
        let bound: libc::sockaddr_ll =
            socket.name().map_err(|error| self.failed("asking for the hardware type", error))?;
        link_type_of(bound.sll_hatype).ok_or_else(|| InterfaceError::HardwareType {
            name: self.options.name.clone(),
            hardware: bound.sll_hatype,
        })
    }

    fn filter(
        &self,
        link_type: LinkType,
        warnings: &mut Vec<InterfaceWarning>,
    ) -> Result<Filter, InterfaceError> {
        let options = self.options;
        let expression = options.filter.trim();
        let snap = if options.snap_length == 0 { u32::MAX } else { options.snap_length };
        if expression.is_empty() {
            return Ok(Filter { in_kernel: keep(snap).to_vec(), here: None });
        }
        let program = Program::compile(expression, link_type, options.snap_length)
            .map_err(InterfaceError::Filter)?;
        if !deals_with_vlan(program.instructions()) {
            return Ok(Filter { in_kernel: program.instructions().to_vec(), here: None });
        }
        warnings.push(InterfaceWarning::FilterInUserSpace { filter: expression.to_owned() });
        // The program may look anywhere in the packet, so the kernel passes it whole.
        Ok(Filter { in_kernel: keep(u32::MAX).to_vec(), here: Some(program) })
    }

    fn failed(&self, attempted: &'static str, error: io::Error) -> InterfaceError {
        let name = self.options.name.clone();
        match error.raw_os_error() {
            Some(libc::EPERM | libc::EACCES) => InterfaceError::NoPermission { name, attempted },
            Some(libc::ENODEV | libc::ENXIO) => InterfaceError::NoSuchInterface { name },
            Some(libc::ENETDOWN) => InterfaceError::Down { name },
            _ => InterfaceError::System { attempted, name, error },
        }
    }
}

/// Whether a program compares anything with the EtherType of a VLAN tag: in the kernel it would not
/// find one, because the kernel takes the outer tag out before filters run.
fn deals_with_vlan(program: &[Instruction]) -> bool {
    const EQUALS: u16 = (libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K) as u16;
    program.iter().any(|i| i.code == EQUALS && matches!(i.k, 0x8100 | 0x88a8 | 0x9100))
}

/// Makes the card stamp every packet it receives.
fn enable_hardware_timestamps(socket: &Socket, name: &str) -> io::Result<()> {
    /// `struct hwtstamp_config` of `linux/net_tstamp.h`.
    #[repr(C)]
    struct Config {
        flags: i32,
        transmit: i32,
        receive: i32,
    }
    /// `HWTSTAMP_FILTER_ALL`.
    const ALL: i32 = 1;
    let mut config = Config { flags: 0, transmit: 0, receive: ALL };
    let mut request = socket::interface_request(name)?;
    request.ifr_ifru.ifru_data = (&raw mut config).cast();
    // SAFETY: SIOCSHWTSTAMP follows `ifru_data` to a hwtstamp_config, which `config` is.
    unsafe { socket.ioctl_interface(libc::SIOCSHWTSTAMP as libc::Ioctl, &mut request) }
}

/// The interface's nominal speed in bits a second; 0 where it doesn't say.
fn speed_bits(socket: &Socket, name: &str) -> u64 {
    /// `ETHTOOL_GSET` of `linux/ethtool.h`.
    const GET_SETTINGS: u32 = 1;
    /// `struct ethtool_cmd`, as 32-bit words.
    const WORDS: usize = 11;
    const SPEED: usize = 12;
    const SPEED_HIGH: usize = 28;
    let mut settings = [0u32; WORDS];
    settings[0] = GET_SETTINGS;
    let Ok(mut request) = socket::interface_request(name) else { return 0 };
    request.ifr_ifru.ifru_data = settings.as_mut_ptr().cast();
    // SAFETY: SIOCETHTOOL with ETHTOOL_GSET follows `ifru_data` to an ethtool_cmd, which `settings`
    // is as long as.
    let asked = unsafe { socket.ioctl_interface(libc::SIOCETHTOOL as libc::Ioctl, &mut request) };
    if asked.is_err() {
        return 0;
    }
    let half = |at: usize| {
        let word = settings[at / mem::size_of::<u32>()].to_ne_bytes();
        u32::from(u16::from_ne_bytes([word[0], word[1]]))
    };
    match half(SPEED) | half(SPEED_HIGH) << 16 {
        0 | u32::MAX => 0,
        megabits => u64::from(megabits) * 1_000_000,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(change: impl FnOnce(&mut InterfaceOptions)) -> String {
        let mut options = InterfaceOptions::new("nonesuch0");
        change(&mut options);
        Capture::open(&options).unwrap_err().to_string()
    }

    #[test]
    fn options_that_cannot_be_are_refused_with_what_to_give() {
        assert!(refused(|_| ()).contains("ip link show"));
        assert!(refused(|o| o.name = "any".into()).contains("name one"));
        assert!(refused(|o| o.queues = 0).contains("1 to 256"));
        assert!(refused(|o| o.block_bytes = 4096).contains("multiple of"));
        assert!(refused(|o| o.block_bytes += 1).contains("multiple of"));
        assert!(refused(|o| o.ring_bytes = o.block_bytes).contains("two blocks"));
        assert!(refused(|o| o.ring_bytes = 8 << 30).contains("4 GiB"));
    }

    #[test]
    fn a_short_snap_length_makes_small_blocks_possible() {
        let text = refused(|o| {
            (o.block_bytes, o.ring_bytes, o.snap_length) = (4096, 8192, 1500);
        });
        assert!(text.contains("no such interface"), "{text}");
    }

    #[test]
    fn filters_that_deal_with_vlan_tags_are_told_from_those_that_do_not() {
        let deals = |expression| {
            let program = Program::compile(expression, LinkType::ETHERNET, 0).unwrap();
            deals_with_vlan(program.instructions())
        };
        for expression in ["vlan", "vlan 5 and tcp", "ether proto 0x8100", "not vlan"] {
            assert!(deals(expression), "{expression}");
        }
        for expression in ["tcp", "udp port 5000", "host 10.0.0.1", "arp"] {
            assert!(!deals(expression), "{expression}");
        }
    }
}
