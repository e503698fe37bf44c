//! Packets that the recording program makes itself: whoever holds a [`Producer`] writes them straight into chunks, from any thread.

use std::fmt;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use base::Timestamp;
use format::{Interface, LinkType, Packet};

use crate::clock;
use crate::filtering::Filtering;
use crate::packer::Packer;
use crate::readable::TICK;
use crate::sink::Sink;

/// Writes packets, or blocks of a sensor, into a recording. Clones write into the same one.
#[derive(Clone, Debug)]
pub struct Producer {
    interface: Arc<Interface>,
    shared: Arc<Shared>,
}

#[derive(Debug, Default)]
struct Shared {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    /// The recording's sink and the interface's number there, while it records.
    open: Option<(Filtering<Packer>, u32)>,
    /// Nothing is taken any more.
    over: bool,
}

/// The recording is over, and took nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Over;

impl fmt::Display for Over {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the recording is over")
    }
}

impl std::error::Error for Over {}

impl PartialEq for Producer {
    /// Whether they write into the same recording.
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.shared, &other.shared)
    }
}

impl Producer {
    /// A producer of packets with this link type, [`LinkType::USER0`] for blocks that are no packets. `name` is the interface's in the
    /// recording.
    pub fn new(name: &str, link_type: LinkType) -> Self {
        let interface = Interface {
            name: name.to_owned(),
            description: "written by the recording program".to_owned(),
            link_type,
            snap_length: 0,
            filter: String::new(),
            speed_bits: 0,
        };
        Self { interface: Arc::new(interface), shared: Arc::default() }
    }

    /// What the packets are, as the recording describes it.
    pub fn interface(&self) -> &Interface {
        &self.interface
    }

    /// Writes a packet: copies it into the current chunk, and returns. Waits while all buffers are full, and until the recording has
    /// started. A packet longer than a chunk is truncated, which the ledger counts. None is the time now.
    ///
    /// # Errors
    /// [`Over`] if the recording has ended.
    pub fn write(&self, data: &[u8], time: Option<Timestamp>) -> Result<(), Over> {
        let mut state = self.state();
        while state.open.is_none() && !state.over {
            state = self.shared.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        let (sink, interface) = state.open.as_mut().ok_or(Over)?;
        let packet = Packet {
            interface: *interface,
            timestamp: time.unwrap_or_else(clock::now),
            original_length: u32::try_from(data.len()).unwrap_or(u32::MAX),
            data,
            options: &[],
        };
        let written = sink.packet(&packet);
        written.map_err(|_| {
            state.over = true;
            Over
        })
    }

    /// Ends the stream, and with it the recording. What was written is recorded.
    pub fn close(&self) {
        self.state().over = true;
        self.shared.changed.notify_all();
    }

    /// Runs the source: takes what is written until the producer is closed or the recording ends, and gives the sink back.
    pub fn run(&self, mut sink: Filtering<Packer>) -> Filtering<Packer> {
        let interface = sink.interface(&self.interface);
        let mut state = self.state();
        state.open = Some((sink, interface));
        self.shared.changed.notify_all();
        loop {
            let waited = self.shared.changed.wait_timeout(state, TICK.into());
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
            let over = state.over;
            let Some((sink, _)) = &mut state.open else { unreachable!("only this takes it") };
            if over || sink.tick(clock::now()).is_err() {
                break;
            }
        }
        state.over = true;
        let open = state.open.take();
        drop(state);
        self.shared.changed.notify_all();
        open.expect("only this takes it").0
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.shared.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
