//! PCAP-over-IP: whoever connects is sent the array's packets as pcapng, from now on, as `tshark -i TCP@ADDR:PORT` reads them.
//!
//! Packets are read from the array, so that no client holds up the recorder. One that is slower than the recording gets older and
//! older packets, until the ring overtakes it. What it loses by that is counted in statistics blocks of the stream.

use std::convert::Infallible;
use std::io::{self, Write};
use std::net::TcpStream as BlockingStream;
use std::os::fd::AsRawFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use format::pcapng::{InterfaceTotals, statistics_block};
use longtake::array::{Followed, READ_RATE_DURING_RECORDING};
use longtake::instant::now;
use longtake::{FileFormat, Rate, Selection};
use nix::errno::Errno;
use nix::sys::socket::sockopt::TcpUserTimeout;
use nix::sys::socket::{MsgFlags, recv, setsockopt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::spawn_blocking;

use crate::Limits;
use crate::api::READING_MEMORY;
use crate::arrays::{Served, Service};
use crate::connections::PAUSE;

/// What PCAP-over-IP counts, and how many clients there may be.
#[derive(Debug)]
pub struct Followers {
    places: Arc<Semaphore>,
    places_max: usize,
    /// Connections that were closed because there were as many as may be.
    pub refused: AtomicU64,
    /// Packets that clients were too slow for, or that could not be read for them.
    pub lost_packets: AtomicU64,
}

impl Followers {
    /// Within these limits.
    pub fn new(limits: &Limits) -> Self {
        Self {
            places: Arc::new(Semaphore::new(limits.followers_max)),
            places_max: limits.followers_max,
            refused: AtomicU64::new(0),
            lost_packets: AtomicU64::new(0),
        }
    }

    /// Clients now.
    pub fn now(&self) -> usize {
        self.places_max - self.places.available_permits()
    }
}

/// Set when the service ends, so that threads which send packets end, too.
#[derive(Default)]
struct Ended(Arc<AtomicBool>);

impl Drop for Ended {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Serves the packets of the first array for ever, if there is a listener.
pub async fn serve(listener: Option<TcpListener>, service: Arc<Service>) -> Infallible {
    let (Some(listener), Some(array)) = (listener, service.arrays().first()) else {
        return std::future::pending().await;
    };
    let (followers, limits) = (service.followers(), service.limits());
    let ended = Ended::default();
    loop {
        let Ok((stream, _)) = listener.accept().await else {
            tokio::time::sleep(PAUSE).await;
            continue;
        };
        let Ok(place) = Arc::clone(&followers.places).try_acquire_owned() else {
            followers.refused.fetch_add(1, Ordering::Relaxed);
            continue;
        };
        let Ok(stream) = blocking(stream, limits) else { continue };
        let share = READ_RATE_DURING_RECORDING.0 / limits.followers_max.max(1) as f64;
        let follower = Follower {
            stream,
            array: array.clone(),
            followers: Arc::clone(followers),
            ended: Arc::clone(&ended.0),
            read_rate: Rate(share),
            _place: place,
        };
        spawn_blocking(move || follower.run());
    }
}

/// A connection that a thread writes to, which the kernel closes if its client accepts nothing for long.
fn blocking(stream: TcpStream, limits: &Limits) -> io::Result<BlockingStream> {
    let stalled = u32::try_from(limits.stalled_max.as_millis()).unwrap_or(u32::MAX);
    setsockopt(&stream, TcpUserTimeout, &stalled)?;
    let stream = stream.into_std()?;
    stream.set_nonblocking(false)?;
    Ok(stream)
}

/// A client.
struct Follower {
    stream: BlockingStream,
    array: Served,
    followers: Arc<Followers>,
    ended: Arc<AtomicBool>,
    read_rate: Rate,
    _place: OwnedSemaphorePermit,
}

impl Follower {
    /// Sends packets until the take ends, the client leaves or the service ends. What keeps a client from being served closes its
    /// connection.
    fn run(self) {
        let Ok(mut array) = self.array.open(READING_MEMORY) else { return };
        let selection = Selection { read_rate: Some(self.read_rate), ..Selection::default() };
        let began_ns = now().as_nanos();
        let mut told = 0;
        let looked = |followed: Followed| {
            if has_left(&self.stream)? {
                return Err(io::ErrorKind::BrokenPipe.into());
            }
            // Statistics are those of an interface, and the first packet comes with one.
            if followed.lost_packets > told && followed.packets > 0 {
                let more = followed.lost_packets - told;
                self.followers.lost_packets.fetch_add(more, Ordering::Relaxed);
                told = followed.lost_packets;
                (&self.stream).write_all(&statistics(followed, began_ns))?;
            }
            Ok(())
        };
        let stop = || self.ended.load(Ordering::Relaxed);
        array.follow_with(&selection, FileFormat::Pcapng, &self.stream, stop, looked).ok();
    }
}

/// What a client has lost so far, as a block.
fn statistics(followed: Followed, began_ns: u64) -> Vec<u8> {
    let Followed { packets, lost_packets } = followed;
    let totals = InterfaceTotals {
        start_ns: began_ns,
        end_ns: now().as_nanos(),
        received: packets + lost_packets,
        dropped_by_interface: 0,
        dropped_by_system: lost_packets,
        delivered: packets,
        comment: format!(
            "longtake serve: {lost_packets} packets were overwritten or could not be read before this client accepted them"
        ),
    };
    statistics_block(0, &totals)
}

/// Whether the client has closed the connection. What it sends is of no interest.
fn has_left(stream: &BlockingStream) -> io::Result<bool> {
    let mut ignored = [0; 1024];
    match recv(stream.as_raw_fd(), &mut ignored, MsgFlags::MSG_DONTWAIT) {
        Ok(received) => Ok(received == 0),
        Err(Errno::EAGAIN) => Ok(false),
        Err(why) => Err(why.into()),
    }
}
