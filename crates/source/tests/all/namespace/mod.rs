//! Network namespaces for tests: each test works in one of its own, which is gone with its thread.

// Every test file is a program of its own and uses a part of this.

use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{PoisonError, RwLock};
use std::time::Duration;

use base::Timestamp;
use format::{Interface, Packet};
use longtake_source::transmit::{
    Batch, InterfaceSender, InterfaceSenderOptions, SendError, Sender,
};
use longtake_source::{Ended, Loss, Sink};

/// Processors take packets in for all namespaces together: a test that floods one must be alone.
static ALONE: RwLock<()> = RwLock::new(());

/// [`in_new_namespace`], beside others.
pub fn in_namespace<T: Send>(body: impl FnOnce() -> T + Send) -> T {
    let _beside = ALONE.read().unwrap_or_else(PoisonError::into_inner);
    in_new_namespace(body)
}

/// [`in_new_namespace`], while no other test of this program is in one.
pub fn in_namespace_alone<T: Send>(body: impl FnOnce() -> T + Send) -> T {
    let _alone = ALONE.write().unwrap_or_else(PoisonError::into_inner);
    in_new_namespace(body)
}

/// Runs `body` on a thread in a new network namespace with the loopback interface up. Threads and
/// commands that it starts are in there too. The kernel removes the namespace, and every interface
/// in it, when the last of them is gone, however they end.
fn in_new_namespace<T: Send>(body: impl FnOnce() -> T + Send) -> T {
    std::thread::scope(|scope| {
        let thread = scope.spawn(|| {
            // SAFETY: takes and returns integers.
            let made = unsafe { libc::unshare(libc::CLONE_NEWNET) };
            assert_eq!(made, 0, "unshare: {} (run as root)", std::io::Error::last_os_error());
            // No neighbour discovery: only what a test sends is to be seen.
            std::fs::write("/proc/sys/net/ipv6/conf/default/disable_ipv6", "1").unwrap();
            ip("link set lo up");
            body()
        });
        match thread.join() {
            Ok(value) => value,
            Err(panic) => std::panic::resume_unwind(panic),
        }
    })
}

/// `ip` with these arguments; returns what it printed.
pub fn ip(arguments: &str) -> String {
    let output = Command::new("ip").args(arguments.split(' ')).output().unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "ip {arguments}: {errors}");
    String::from_utf8(output.stdout).unwrap()
}

/// Makes the interfaces `near` and `far`, joined like the two ends of a cable, both up. The near one, from which
/// tests send, comes last: it has its carrier at once, and not when the kernel comes to it.
pub fn cable() {
    ip("link add near type veth peer name far");
    for end in ["far", "near"] {
        ip(&format!("link set {end} arp off up"));
    }
}

/// The experimental EtherType that test frames carry.
pub const ETHERTYPE: u16 = 0x88b5;

/// A frame of `length` bytes (60 at least, with the number) with tags between addresses and type.
pub fn frame(number: u64, length: usize, tags: &[[u8; 4]]) -> Vec<u8> {
    let mut frame = vec![0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 2, 0, 0, 0, 0, 1];
    frame.extend(tags.as_flattened());
    frame.extend(ETHERTYPE.to_be_bytes());
    frame.extend(number.to_be_bytes());
    frame.resize(length.max(60), 0xa5);
    frame
}

/// The number in a frame without tags.
pub fn number(frame: &[u8]) -> u64 {
    assert_eq!(frame[12..14], ETHERTYPE.to_be_bytes());
    u64::from_be_bytes(frame[14..22].try_into().unwrap())
}

/// Sends everything, waiting while the kernel has no room.
pub fn send_all(sender: &mut impl Sender, packets: impl IntoIterator<Item = Vec<u8>>) -> u64 {
    let mut batch = Batch::new();
    let mut sent = 0;
    for packet in packets {
        batch.push(&packet);
        if batch.len() == Batch::PACKETS_MAX {
            sent += send_batch(sender, &mut batch);
        }
    }
    sent + send_batch(sender, &mut batch)
}

fn send_batch(sender: &mut impl Sender, batch: &mut Batch) -> u64 {
    let mut from = 0;
    while from < batch.len() {
        match sender.send(batch, from) {
            Ok(sent) => from += sent,
            Err(SendError::Busy) => std::thread::sleep(Duration::from_micros(50)),
            Err(error) => panic!("{error}"),
        }
    }
    batch.clear();
    from as u64
}

/// A sender to an interface.
pub fn sender(name: &str) -> InterfaceSender {
    let options = InterfaceSenderOptions { name: name.to_owned(), bypass_qdisc: false };
    InterfaceSender::open(&options).unwrap()
}

/// What a sink was told, in order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Told {
    Packet { timestamp: Timestamp, original_length: u32, data: Vec<u8> },
    Lost(Loss, u64),
}

impl Told {
    /// A packet's bytes.
    pub fn data(&self) -> Option<&[u8]> {
        match self {
            Self::Packet { data, .. } => Some(data),
            Self::Lost(..) => None,
        }
    }
}

/// A sink that keeps everything (of each packet the first bytes) and ends when told to.
pub struct Recording<'s> {
    pub interfaces: Vec<Interface>,
    pub told: Vec<Told>,
    pub stop: &'s AtomicBool,
    pub ticked: &'s AtomicBool,
    /// How long it takes over each packet.
    pub pause: Duration,
    /// Bytes kept of each packet.
    pub keep: usize,
    /// Packets after which it takes no more.
    pub packets_max: u64,
    pub packets: u64,
}

impl<'s> Recording<'s> {
    /// Ends at the first tick after `stop` is set; sets `ticked` at its first tick.
    pub fn new(stop: &'s AtomicBool, ticked: &'s AtomicBool) -> Self {
        Self {
            interfaces: vec![],
            told: vec![],
            stop,
            ticked,
            pause: Duration::ZERO,
            keep: usize::MAX,
            packets_max: u64::MAX,
            packets: 0,
        }
    }

    pub fn lost(&self, stage: Loss) -> u64 {
        let lost = |told: &Told| match told {
            Told::Lost(at, packets) if *at == stage => *packets,
            _ => 0,
        };
        self.told.iter().map(lost).sum()
    }

    pub fn datas(&self) -> impl Iterator<Item = &[u8]> {
        self.told.iter().filter_map(Told::data)
    }

    pub fn timestamps(&self) -> Vec<Timestamp> {
        let timestamp = |told: &Told| match told {
            Told::Packet { timestamp, .. } => Some(*timestamp),
            Told::Lost(..) => None,
        };
        self.told.iter().filter_map(timestamp).collect()
    }

    /// Checks that the numbers ascend, and that every number that is missing before a packet was
    /// reported lost before it too; `anywhere` losses may be reported anywhere.
    pub fn assert_no_loss_is_told_late(&self, number: impl Fn(&[u8]) -> u64, anywhere: u64) {
        let (mut next, mut missing, mut lost) = (0, 0, 0);
        for told in &self.told {
            match told {
                Told::Lost(_, packets) => lost += packets,
                Told::Packet { data, .. } => {
                    let number = number(data);
                    assert!(number >= next, "packet {number} after {next}");
                    missing += number - next;
                    next = number + 1;
                    assert!(missing <= lost + anywhere, "packet {number}: {missing} > {lost}");
                }
            }
        }
    }
}

impl Sink for Recording<'_> {
    fn interface(&mut self, interface: &Interface) -> u32 {
        self.interfaces.push(interface.clone());
        self.interfaces.len() as u32 - 1
    }

    fn packet(&mut self, packet: &Packet<'_>) -> Result<(), Ended> {
        assert!((packet.interface as usize) < self.interfaces.len());
        assert!(packet.original_length as usize >= packet.data.len());
        if self.packets == self.packets_max {
            return Err(Ended);
        }
        self.packets += 1;
        self.told.push(Told::Packet {
            timestamp: packet.timestamp,
            original_length: packet.original_length,
            data: packet.data[..packet.data.len().min(self.keep)].to_vec(),
        });
        if !self.pause.is_zero() {
            std::thread::sleep(self.pause);
        }
        Ok(())
    }

    fn lost(&mut self, interface: u32, stage: Loss, packets: u64, _bytes: u64) {
        assert!((interface as usize) < self.interfaces.len());
        self.told.push(Told::Lost(stage, packets));
    }

    fn tick(&mut self, _now: Timestamp) -> Result<(), Ended> {
        self.ticked.store(true, Ordering::Release);
        if self.stop.load(Ordering::Acquire) { Err(Ended) } else { Ok(()) }
    }
}

/// Waits for a flag that another thread sets.
pub fn wait_for(flag: &AtomicBool) {
    for _ in 0..120_000 {
        if flag.load(Ordering::Acquire) {
            return;
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    panic!("waited 120 s in vain");
}
