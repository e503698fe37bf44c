//! Reading stands back while a recording is short of buffers: what is read takes drives and processors from it.

use std::thread::sleep;
use std::time::{Duration, Instant};

use format::pcapng::{Block, ReadPacket};
use format::{ChunkRecord, Interface};
use recorder::extract::{Unreadable, Visitor};
use recorder::takes::Entry;
use serde_json::Value;
use uuid::Uuid;

use crate::control;

/// How long reading goes on before the recorder is asked again.
const ASKED_EVERY: Duration = Duration::from_millis(100);
/// How long reading stands back before the recorder is asked again.
const PAUSE: Duration = Duration::from_millis(20);
/// So often at most before each chunk: a recording that is always short of buffers slows reading down and does not end it.
const PAUSES_MAX: u32 = 50;

/// Asks a recorder how it does.
#[derive(Debug)]
pub(super) struct Courtesy {
    array: Uuid,
    /// None before the first time, and from then on if the recorder can't be asked.
    next: Option<Instant>,
}

impl Courtesy {
    /// Towards the recorder of this array.
    pub(super) fn to(array: Uuid) -> Self {
        Self { array, next: Some(Instant::now()) }
    }

    /// Waits while more than half of the recorder's buffers are in use. A recorder that can't be asked, as it belongs to another
    /// user or has ended, is not waited for.
    pub(super) fn stand_back(&mut self) {
        if self.next.is_none_or(|next| Instant::now() < next) {
            return;
        }
        for _ in 0..PAUSES_MAX {
            let Ok(status) = control::status(self.array) else {
                self.next = None;
                return;
            };
            if !is_short(&status) {
                break;
            }
            sleep(PAUSE);
        }
        self.next = Some(Instant::now() + ASKED_EVERY);
    }
}

/// Whether more than half of a recorder's buffers are in use.
fn is_short(status: &Value) -> bool {
    let number = |name: &str| status[name].as_u64().unwrap_or(0);
    number("buffers_held") * 2 > number("buffers")
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
    ) -> Result<(), V::Error> {
        self.visitor.packet(interface, packet, block)
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

    /// A recorder that has so many of eight buffers in use, one number for each time it is asked. Returns how often it was.
    fn asked_by(held: &'static [u64], act: impl FnOnce(&mut Courtesy)) -> usize {
        let array = Uuid::new_v4();
        let waker = device::Waker::new().unwrap();
        let (asked, serving) = Control::bind(array).unwrap().serve(waker).unwrap();
        let answering = std::thread::spawn(move || {
            let mut held = held.iter();
            let mut times = 0;
            while let Ok(Asked { request, answer, .. }) = asked.recv() {
                assert!(matches!(request, Request::Status));
                times += 1;
                let status = json!({"buffers": 8, "buffers_held": held.next().unwrap_or(&0)});
                answer.send(Ok(Reply::Status(status))).unwrap();
            }
            times
        });
        let mut courtesy = Courtesy::to(array);
        act(&mut courtesy);
        drop(serving);
        answering.join().unwrap()
    }

    #[test]
    fn reading_waits_until_no_more_than_half_of_the_recorders_buffers_are_in_use() {
        assert_eq!(asked_by(&[8, 5, 7, 4, 8], Courtesy::stand_back), 4);
        assert_eq!(asked_by(&[4, 8], Courtesy::stand_back), 1);
    }

    #[test]
    fn a_recording_that_is_always_short_of_buffers_does_not_end_reading() {
        assert_eq!(asked_by(&[8; 1000], Courtesy::stand_back), PAUSES_MAX as usize);
    }

    #[test]
    fn a_recorder_that_cannot_be_asked_is_not_asked_again() {
        let mut courtesy = Courtesy::to(Uuid::new_v4());
        courtesy.stand_back();
        assert_eq!(courtesy.next, None);
        courtesy.stand_back();
    }
}
