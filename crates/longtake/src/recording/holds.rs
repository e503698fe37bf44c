//! The spans that readers of a recording under way hold: the ring overwrites them last.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use base::{Bank, Buffers, Timestamp};
use recorder::TimeRange;
use recorder::run::{Feed, Recording};

use crate::control::{Asked, Reply, Request};

/// The spans that are held now.
#[derive(Debug, Default)]
pub struct Holds {
    held: Vec<(TimeRange, Arc<AtomicBool>)>,
}

impl Holds {
    /// Grants a request to hold a span at once; gives any other request back.
    pub fn grant<B: Bank, M: Buffers, F: Feed>(
        &mut self,
        asked: Asked,
        recording: &mut Recording<'_, B, M, F>,
    ) -> Option<Asked> {
        let Request::Hold { from_ns, to_ns } = asked.request else { return Some(asked) };
        let [from, to] = [from_ns, to_ns].map(Timestamp::from_nanos);
        self.held.push((TimeRange { from, to }, asked.left));
        recording.hold(self.spans());
        asked.answer.send(Ok(Reply::Spans(self.held.len()))).ok();
        None
    }

    /// Lets go of the spans whose readers have left.
    pub fn let_go<B: Bank, M: Buffers, F: Feed>(&mut self, recording: &mut Recording<'_, B, M, F>) {
        let before = self.held.len();
        self.held.retain(|(_, left)| !left.load(Ordering::Relaxed));
        if self.held.len() < before {
            recording.hold(self.spans());
        }
    }

    fn spans(&self) -> Vec<TimeRange> {
        self.held.iter().map(|&(span, _)| span).collect()
    }
}
