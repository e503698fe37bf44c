//! Packets in batches: read in a thread of their own, a bounded number of batches ahead of whoever takes them.

use std::ops::ControlFlow;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use crossbeam_channel::{Receiver, Sender, bounded};
use longtake::array::columns::Batch;
use longtake::array::{PacketRef, Seen};
use longtake::{Array, ByteSize, Interface, Selection, json};
use serde_json::Value;

/// Batches that wait to be taken at most.
const AHEAD: usize = 2;
/// Buffers for chunks that are read ahead.
const READ_MEMORY: ByteSize = ByteSize(64 << 20);

/// What to read.
#[derive(Clone, Debug)]
pub struct Request {
    /// The array, as on the command line.
    pub array: String,
    /// Whether it is opened even if members are missing.
    pub degraded: bool,
    /// What an earlier look at it has found.
    pub seen: Seen,
    /// Which packets.
    pub selection: Selection,
    /// Whether the IP and UDP headers that Longtake made for UDP sources are left out.
    pub payload: bool,
    /// Packets of a batch at most.
    pub batch_size: usize,
}

/// What came of reading, as `longtake extract --json` states it. Null until every packet was read.
pub type Account = Arc<Mutex<Value>>;

/// Batches, in order. An error is the last.
pub type Batches = Receiver<Result<Batch, String>>;

/// Starts to read. Reading ends early if the batches are dropped.
///
/// # Errors
/// If the system gives no thread.
pub fn read(request: Request, account: Account) -> std::io::Result<Batches> {
    let (sender, batches) = bounded(AHEAD);
    let reading = move || {
        if let Err(error) = read_all(&request, &account, &sender) {
            // A reader that has left is not told.
            sender.send(Err(format!("{error:#}"))).ok();
        }
    };
    thread::Builder::new().name("packets".to_owned()).spawn(reading)?;
    Ok(batches)
}

fn read_all(
    request: &Request,
    account: &Account,
    sender: &Sender<Result<Batch, String>>,
) -> longtake::Result<()> {
    let options = Array::options().degraded(request.degraded).memory(READ_MEMORY);
    let mut array = options.seen(Some(request.seen.clone())).open(&request.array)?;
    let mut gathering = Gathering { batch: Batch::default(), payload: request.payload };
    let extracted = array.extract(&request.selection, |packet| {
        gathering.add(packet);
        let is_full =
            gathering.batch.is_full() || gathering.batch.times.len() >= request.batch_size;
        match is_full && sender.send(Ok(gathering.batch.take())).is_err() {
            true => ControlFlow::Break(()),
            false => ControlFlow::Continue(()),
        }
    })?;
    if !extracted.stopped {
        *account.lock().unwrap_or_else(PoisonError::into_inner) = json::extracted(&extracted);
        let last = gathering.batch.take();
        if !last.times.is_empty() {
            sender.send(Ok(last)).ok();
        }
    }
    Ok(())
}

/// A batch being filled.
struct Gathering {
    batch: Batch,
    payload: bool,
}

impl Gathering {
    fn add(&mut self, packet: PacketRef<'_>) {
        let interface = self.number(&packet);
        let data = if self.payload { packet.payload() } else { packet.data };
        let (time, length) = (packet.timestamp.as_nanos(), packet.original_length);
        self.batch.push(interface, time, length, packet.chunk_sequence, data);
    }

    /// The number of a packet's interface: several may have the same name and link type, and are one here.
    fn number(&mut self, packet: &PacketRef<'_>) -> u32 {
        let of = packet.interface;
        let is_it = |known: &Interface| (&known.name, known.link_type) == (&of.name, of.link_type);
        let batch = &mut self.batch;
        let last = batch.interfaces.last().copied();
        if let Some(last) = last.filter(|&last| is_it(&batch.known[last as usize])) {
            return last;
        }
        let number = batch.known.iter().position(is_it).unwrap_or_else(|| {
            let known = Arc::make_mut(&mut batch.known);
            known.push(of.clone());
            known.len() - 1
        });
        number as u32
    }
}
