//! Reading stands back while a recording is short of buffers: what is read takes drives and processors from it.

use std::thread::sleep;
use std::time::{Duration, Instant};

use ::target::AnyBank;
use base::Rate;
use format::pcapng::{Block, ReadPacket};
use format::{ChunkRecord, Interface};
use recorder::extract::{Unreadable, Visitor};
use recorder::takes::Entry;
use serde_json::Value;
use uuid::Uuid;

use super::open::Opened;
use crate::control;

/// How long reading goes on before the recorder is asked again.
const ASKED_EVERY: Duration = Duration::from_millis(30);
/// How long reading stands back before the recorder is asked again.
const PAUSE: Duration = Duration::from_millis(20);
/// So often at most before each chunk: a recording that is always short of buffers slows reading down and does not end it.
const PAUSES_MAX: u32 = 50;
/// A recorder that does not answer, as one that waits for a drive, is asked again after this time: its array may have to be read.
const UNANSWERED: Duration = Duration::from_secs(60);

/// Asks whether somebody records on an array, and how the recorder does.
#[derive(Debug)]
pub(super) struct Courtesy {
    array: Uuid,
    /// How long the recorder may take to answer.
    patience: Duration,
    /// When the recorder is asked.
    next: Instant,
    /// Whether somebody was recording when it was asked last.
    recording: bool,
    /// How long a chunk has to take during a recording, unless something else holds reading to a rate.
    chunk_time: Option<Duration>,
    /// When the next chunk may be read, during a recording.
    due: Instant,
}

impl Courtesy {
    /// In reading an array, at this rate at most during a recording unless something else holds reading to a rate. None on simulated
    /// drives, which have no other users.
    pub(super) fn in_reading(opened: &Opened, rate: Option<Rate>) -> Option<Self> {
        let chunk_bytes = u64::from(opened.image.superblock.layout.chunk_max);
        let chunk_time = rate.map(|rate| rate.time_for(chunk_bytes).into());
        let is_real = !matches!(opened.bank, AnyBank::Simulated(_));
        is_real.then(|| Self::to(opened.image.uuid, chunk_time))
    }

    /// Towards whoever records on this array. A chunk takes this time at least during a recording.
    fn to(array: Uuid, chunk_time: Option<Duration>) -> Self {
        let now = Instant::now();
        Self {
            array,
            patience: control::READER_PATIENCE,
            next: now,
            recording: false,
            chunk_time,
            due: now,
        }
    }

    /// Waits while the recorder is short of buffers, and until a chunk is due. A recorder that can't be asked,
    /// as it belongs to another user, is not waited for.
    pub(super) fn stand_back(&mut self) {
        if Instant::now() >= self.next {
            let next = self.wait_for_buffers();
            self.next = Instant::now() + next;
        }
        if let Some(chunk_time) = self.chunk_time.filter(|_| self.recording) {
            sleep(self.due.saturating_duration_since(Instant::now()));
            self.due = Instant::now() + chunk_time;
        }
    }

    /// Returns after which time the recorder is asked again.
    fn wait_for_buffers(&mut self) -> Duration {
        for _ in 0..PAUSES_MAX {
            match control::status_within(self.array, self.patience) {
                Ok(Some(status)) => {
                    self.recording = true;
                    if !is_short(&status) {
                        break;
                    }
                    sleep(PAUSE);
                }
                Ok(None) => return UNANSWERED,
                Err(_) => {
                    self.recording = false;
                    break;
                }
            }
        }
        ASKED_EVERY
    }
}

/// Whether a recorder's members don't take what comes: more than a thirty-second of its buffers wait for one, or more than a third
/// are in use.
fn is_short(status: &Value) -> bool {
    let number = |name: &str| status[name].as_u64().unwrap_or(0);
    let buffers = number("buffers");
    number("buffers_waiting") * 32 > buffers || number("buffers_held") * 3 > buffers
}

/// A visitor of packets that stands back before each chunk.
pub(super) struct Courteous<'a, V> {
    pub(super) visitor: &'a mut V,
    pub(super) courtesy: Courtesy,
}

impl<V: Visitor> Visitor for Courteous<'_, V> {
    type Error = V::Error;

    fn packet(
        &mut self,
        interface: &Interface,
        packet: &ReadPacket<'_>,
        block: &Block<'_>,
        record: &ChunkRecord,
    ) -> Result<(), V::Error> {
        self.visitor.packet(interface, packet, block, record)
    }

    fn blocks(
        &mut self,
        interfaces: &[Interface],
        blocks: &[u8],
        record: &ChunkRecord,
    ) -> Result<bool, V::Error> {
        self.visitor.blocks(interfaces, blocks, record)
    }

    fn recovered(&mut self, entry: &Entry, why: &Unreadable) -> Result<(), V::Error> {
        self.visitor.recovered(entry, why)
    }

    fn lost(&mut self, entry: &Entry, why: &Unreadable) -> Result<(), V::Error> {
        self.visitor.lost(entry, why)
    }

    fn progress(&mut self, done: u64, of: u64) -> Result<(), V::Error> {
        self.courtesy.stand_back();
        self.visitor.progress(done, of)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::control::{Asked, Control, Reply, Request};
    use serde_json::json;

    /// Stands for one buffer that waits, of those in use.
    const WAITING: u64 = 100;

    /// A recorder that has so many of nine buffers in use, one number for each time it is asked. Returns how often it was.
    fn asked_by(
        held: &'static [u64],
        chunk_time: Option<Duration>,
        act: impl FnOnce(&mut Courtesy),
    ) -> usize {
        let array = Uuid::new_v4();
        let waker = device::Waker::new().unwrap();
        let (asked, serving) = Control::bind(array).unwrap().serve(waker).unwrap();
        let answering = std::thread::spawn(move || {
            let mut held = held.iter();
            let mut times = 0;
            while let Ok(Asked { request, answer, .. }) = asked.recv() {
                assert!(matches!(request, Request::Status));
                times += 1;
                let held = held.next().unwrap_or(&0);
                let waiting = if *held == WAITING { 1 } else { 0 };
                let status = json!({"buffers": 9, "buffers_held": held % WAITING, "buffers_waiting": waiting});
                answer.send(Ok(Reply::Status(status))).unwrap();
            }
            times
        });
        let mut courtesy = Courtesy::to(array, chunk_time);
        courtesy.patience = Duration::from_secs(60);
        act(&mut courtesy);
        drop(serving);
        answering.join().unwrap()
    }

    #[test]
    fn reading_waits_until_no_more_than_a_third_of_the_recorders_buffers_are_in_use() {
        assert_eq!(asked_by(&[8, 4, 7, 3, 8], None, Courtesy::stand_back), 4);
        assert_eq!(asked_by(&[3, 8], None, Courtesy::stand_back), 1);
    }

    #[test]
    fn reading_waits_while_the_recorders_members_dont_take_what_comes() {
        assert_eq!(asked_by(&[WAITING, WAITING, 3, 8], None, Courtesy::stand_back), 3);
    }

    #[test]
    fn a_recording_that_is_always_short_of_buffers_does_not_end_reading() {
        assert_eq!(asked_by(&[8; 1000], None, Courtesy::stand_back), PAUSES_MAX as usize);
    }

    #[test]
    fn a_recorder_that_does_not_answer_is_left_alone_for_a_while() {
        let array = Uuid::new_v4();
        let (asked, _serving) =
            Control::bind(array).unwrap().serve(device::Waker::new().unwrap()).unwrap();
        let mut courtesy = Courtesy::to(array, None);
        (0..100).for_each(|_| courtesy.stand_back());
        // The first question lies there; the others were not asked.
        drop(asked.recv().unwrap());
        assert!(asked.try_recv().is_err());
    }

    #[test]
    fn during_a_recording_a_chunk_takes_the_time_that_it_has_to() {
        const TIME: Duration = Duration::from_millis(20);
        let began = Instant::now();
        asked_by(&[], Some(TIME), |courtesy| (0..4).for_each(|_| courtesy.stand_back()));
        assert!(began.elapsed() >= 3 * TIME);
    }

    #[test]
    fn without_a_recording_nothing_is_waited_for() {
        let mut courtesy = Courtesy::to(Uuid::new_v4(), Some(Duration::from_secs(1 << 30)));
        (0..3).for_each(|_| courtesy.stand_back());
        assert!(!courtesy.recording);
    }
}
