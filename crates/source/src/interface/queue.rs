//! One queue of a capture at work: blocks from the ring to the sink, the account of what the kernel
//! dropped, and an end at which the two sides of that account agree.

use std::io;
use std::time::{Duration, Instant};

use format::{Interface, Packet};

use super::link;
use super::open::{Filter, keep};
use super::ring::{Frame, Ring};
use super::statistics::{InterfaceCounters, InterfaceDrops, RingCounts};
use super::{EVENTS_MAX, InterfaceError, InterfaceSummary, LinkEvent};
use crate::clock;
use crate::sink::{Ended, Loss, Sink};
use crate::socket::Socket;

/// After how long the kernel hands over a block that is not full, in milliseconds: the longest that a
/// packet waits on a quiet interface.
pub(super) const RETIRE_MS: u32 = 20;

/// How often the sink is told the time.
const TICK: Duration = Duration::from_millis(20);

/// How often the interface is asked for its drops; the question takes a lock that configuration
/// changes take too.
const INTERFACE_EVERY: Duration = Duration::from_secs(1);

/// How long the last blocks are waited for before the account is given up. The kernel hands them
/// over within two retirements.
const DRAIN_MAX: Duration = Duration::from_secs(5);

/// And how often is looked for them at least, by a thread that got no processor for seconds.
const DRAIN_LOOKS: u32 = 200;

/// `MEMBARRIER_CMD_GLOBAL` of `linux/membarrier.h`.
const MEMBARRIER_GLOBAL: libc::c_int = 1;

/// One queue, to be run by one thread.
#[derive(Debug)]
pub struct Queue {
    pub(super) socket: Socket,
    pub(super) ring: Ring,
    pub(super) index: u32,
    pub(super) filter: Filter,
    pub(super) snap_length: u32,
    pub(super) interface: Interface,
    pub(super) number: u16,
    /// The first queue's: drops before the capture belong to no queue.
    pub(super) counters: Option<InterfaceCounters>,
    /// What the interface had dropped before.
    pub(super) counters_start: InterfaceDrops,
}

impl Queue {
    /// Which of the capture's queues it is, from 0.
    pub const fn number(&self) -> u16 {
        self.number
    }

    /// What it declares to its sink.
    pub const fn interface(&self) -> &Interface {
        &self.interface
    }

    /// Whether its sender can be held back. A network can't.
    pub const fn can_wait(&self) -> bool {
        false
    }

    /// Captures until the sink ends; then comes to rest and gives the sink what had arrived by then, as
    /// long as it takes it ([`Sink::lost`] is called to the last). Calls [`Sink::tick`] about every
    /// 20 ms.
    ///
    /// # Errors
    /// [`InterfaceError`]: `Gone`, `Unbalanced` or `System`.
    pub fn run(self, sink: &mut impl Sink) -> Result<InterfaceSummary, InterfaceError> {
        let interface = sink.interface(&self.interface);
        let mut run = Run {
            queue: &self.interface.name,
            socket: &self.socket,
            index: self.index,
            filter: &self.filter,
            snap_length: self.snap_length as usize,
            counters: self.counters,
            counters_start: self.counters_start,
            counters_read: Instant::now(),
            sink,
            interface,
            sink_takes: true,
            down: false,
            consumed: 0,
            kernel: RingCounts::default(),
            filtered: Refused::default(),
            summary: InterfaceSummary::default(),
        };
        let mut ring = self.ring;
        let end = run.capture(&mut ring);
        run.finish(&mut ring, end)
    }
}

/// Why a capture came to its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    Sink,
    Gone,
}

/// What the filter refused and the sink was not told of yet.
#[derive(Debug, Default)]
struct Refused {
    packets: u64,
    bytes: u64,
}

struct Run<'r, S> {
    queue: &'r str,
    socket: &'r Socket,
    index: u32,
    filter: &'r Filter,
    snap_length: usize,
    counters: Option<InterfaceCounters>,
    counters_start: InterfaceDrops,
    counters_read: Instant,
    sink: &'r mut S,
    interface: u32,
    sink_takes: bool,
    down: bool,
    /// Frames read from the ring.
    consumed: u64,
    kernel: RingCounts,
    filtered: Refused,
    summary: InterfaceSummary,
}

impl<S: Sink> Run<'_, S> {
    fn capture(&mut self, ring: &mut Ring) -> Result<End, InterfaceError> {
        let mut ticked = Instant::now();
        loop {
            let busy = self.take_ready(ring, ticked)?;
            if ticked.elapsed() >= TICK {
                ticked = Instant::now();
                if !busy {
                    // Nothing waits in the ring, so these drops lie before what comes next.
                    self.count_kernel_drops()?;
                }
                self.report_filtered();
                if self.counters_read.elapsed() >= INTERFACE_EVERY {
                    self.count_interface_drops();
                }
                if self.down && self.look_after_down()? {
                    return Ok(End::Gone);
                }
                if self.sink.tick(clock::now()).is_err() {
                    return Ok(End::Sink);
                }
            }
            if !self.sink_takes {
                return Ok(End::Sink);
            }
            if !busy {
                let left = TICK.saturating_sub(ticked.elapsed()).as_millis() as u32 + 1;
                let events = self.poll(left)?;
                if events & libc::POLLERR != 0 && self.went_down()? {
                    return Ok(End::Gone);
                }
            }
        }
    }

    /// Comes to rest, takes what is left in the ring, and closes the account.
    fn finish(
        mut self,
        ring: &mut Ring,
        end: Result<End, InterfaceError>,
    ) -> Result<InterfaceSummary, InterfaceError> {
        let end = end?;
        self.socket
            .attach_filter(&keep(0))
            .map_err(|error| self.failed("turning new packets away", error))?;
        wait_for_packets_under_way();
        let start = Instant::now();
        let mut looks = 0;
        let balanced = loop {
            self.take_ready(ring, Instant::now())?;
            self.count_kernel_drops()?;
            if self.consumed == self.kernel.placed {
                break true;
            }
            looks += 1;
            if start.elapsed() > DRAIN_MAX && looks > DRAIN_LOOKS {
                break false;
            }
            self.poll(5)?;
        };
        self.report_filtered();
        self.count_interface_drops();
        self.summary.received_by_kernel = self.kernel.placed + self.kernel.drops;
        self.summary.kernel_drops = self.kernel.drops;
        self.summary.ring_full = self.kernel.freezes;
        let name = self.queue.to_owned();
        let summary = self.summary;
        match end {
            _ if !balanced || !summary.balances() => {
                Err(InterfaceError::Unbalanced { name, summary: Box::new(summary) })
            }
            End::Gone => Err(InterfaceError::Gone { name, summary: Box::new(summary) }),
            End::Sink => Ok(summary),
        }
    }

    /// Takes the blocks that are there, but returns for a tick. Returns whether it took any.
    fn take_ready(&mut self, ring: &mut Ring, ticked: Instant) -> Result<bool, InterfaceError> {
        let mut any = false;
        while let Some(mut block) = ring.ready() {
            any = true;
            if block.losing() {
                self.count_kernel_drops()?;
            }
            while let Some(frame) = block.next() {
                self.consumed += 1;
                self.deliver(&frame);
            }
            drop(block);
            if ticked.elapsed() >= TICK {
                break;
            }
        }
        Ok(any)
    }

    #[inline]
    fn deliver(&mut self, frame: &Frame<'_>) {
        let mut keep = self.snap_length;
        if let Some(program) = &self.filter.here {
            keep = keep.min(program.accept_length(frame.data, frame.original_length) as usize);
            if keep == 0 {
                self.summary.filtered += 1;
                self.filtered.packets += 1;
                self.filtered.bytes += u64::from(frame.original_length);
                return;
            }
            self.report_filtered();
        }
        let packet = Packet {
            interface: self.interface,
            timestamp: frame.timestamp,
            original_length: frame.original_length,
            data: &frame.data[..frame.data.len().min(keep)],
            options: &[],
        };
        if self.sink_takes && self.sink.packet(&packet) == Err(Ended) {
            self.sink_takes = false;
        }
        if self.sink_takes {
            self.summary.delivered += 1;
        } else {
            self.summary.refused += 1;
        }
    }

    fn report_filtered(&mut self) {
        if self.filtered.packets > 0 {
            let Refused { packets, bytes } = std::mem::take(&mut self.filtered);
            self.sink.lost(self.interface, Loss::Filtered, packets, bytes);
        }
    }

    fn count_kernel_drops(&mut self) -> Result<(), InterfaceError> {
        let before = self.kernel.drops;
        self.kernel
            .read(self.socket, self.consumed)
            .map_err(|error| self.failed("reading the ring's counters", error))?;
        let new = self.kernel.drops - before;
        if new > 0 {
            self.sink.lost(self.interface, Loss::KernelRing, new, 0);
        }
        Ok(())
    }

    fn count_interface_drops(&mut self) {
        let Some(counters) = &mut self.counters else { return };
        self.counters_read = Instant::now();
        // An interface that is gone can't be asked; what it had told until then stands.
        let Ok(now) = counters.read() else { return };
        let total = now.since(&self.counters_start);
        let new = total.saturating_sub(self.summary.interface_drops);
        if new > 0 {
            self.summary.interface_drops = total;
            self.sink.lost(self.interface, Loss::Interface, new, 0);
        }
    }

    /// Handles the error on the socket. Returns whether the interface is gone for good.
    fn went_down(&mut self) -> Result<bool, InterfaceError> {
        match self.socket.take_error() {
            Ok(None) => Ok(false),
            Ok(Some(error)) if error.raw_os_error() == Some(libc::ENETDOWN) => {
                self.down = true;
                self.note(LinkEvent::WentDown { at: clock::now() });
                self.is_gone()
            }
            Ok(Some(error)) | Err(error) => Err(self.failed("capturing", error)),
        }
    }

    /// While the interface is down: whether it is gone for good.
    fn look_after_down(&mut self) -> Result<bool, InterfaceError> {
        if self.is_gone()? {
            return Ok(true);
        }
        if is_up(self.socket, self.queue) {
            // The kernel has hooked the socket up again by itself.
            self.down = false;
            self.note(LinkEvent::CameBack { at: clock::now() });
        }
        Ok(false)
    }

    /// The kernel forgets the interface's number on a socket when the interface is deleted.
    fn is_gone(&self) -> Result<bool, InterfaceError> {
        let bound: libc::sockaddr_ll = self
            .socket
            .name()
            .map_err(|error| self.failed("asking whether the interface is there", error))?;
        Ok(bound.sll_ifindex != self.index as i32)
    }

    fn note(&mut self, event: LinkEvent) {
        if self.summary.events.len() < EVENTS_MAX {
            self.summary.events.push(event);
        }
    }

    fn poll(&self, timeout_ms: u32) -> Result<i16, InterfaceError> {
        self.socket
            .poll(libc::POLLIN | libc::POLLERR, timeout_ms)
            .map_err(|error| self.failed("waiting for packets", error))
    }

    fn failed(&self, attempted: &'static str, error: io::Error) -> InterfaceError {
        InterfaceError::System { attempted, name: self.queue.to_owned(), error }
    }
}

/// Returns when no packet is still on its way into the ring past a filter that has been replaced: the
/// kernel lets readers of the old one finish before this barrier does.
fn wait_for_packets_under_way() {
    // SAFETY: takes and returns integers.
    let done = unsafe { libc::syscall(libc::SYS_membarrier, MEMBARRIER_GLOBAL, 0, 0) };
    if done != 0 {
        // Not on this kernel: a packet takes microseconds, so this is as good.
        std::thread::sleep(Duration::from_millis(RETIRE_MS.into()));
    }
}

/// Whether the interface is there and up.
fn is_up(socket: &Socket, name: &str) -> bool {
    link::flags(socket, name).is_ok_and(|flags| flags & libc::IFF_UP as i16 != 0)
}
