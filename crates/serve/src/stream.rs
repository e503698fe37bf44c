//! The body of an answer that is handed on in parts, by a thread or a task that waits while the client is slower.
//!
//! A stream that can't be completed ends with its connection, without the end that HTTP requires, so that no client takes it for
//! whole.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::{Context, Poll, ready};

use axum::body::{Bytes, HttpBody};
use hyper::body::Frame;
use tokio::sync::mpsc::Receiver;

use crate::arrays::Service;
use crate::failure::Failure;

/// What is handed on.
#[derive(Debug)]
pub enum Part {
    /// Bytes of the body.
    Piece(Bytes),
    /// The body can't be completed.
    Failed(Failure),
    /// The body is complete.
    End,
}

/// A body whose parts come through a channel.
pub struct StreamedBody {
    /// The part that was received already.
    first: Option<Part>,
    receiver: Receiver<Part>,
    service: Arc<Service>,
}

impl StreamedBody {
    /// The parts of a channel, after this one.
    pub fn new(first: Option<Part>, receiver: Receiver<Part>, service: Arc<Service>) -> Self {
        Self { first, receiver, service }
    }
}

impl HttpBody for StreamedBody {
    type Data = Bytes;
    type Error = Failure;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Failure>>> {
        let part = match self.first.take() {
            Some(part) => Some(part),
            None => ready!(self.receiver.poll_recv(context)),
        };
        let failure = match part {
            Some(Part::Piece(piece)) => return Poll::Ready(Some(Ok(Frame::data(piece)))),
            Some(Part::End) => return Poll::Ready(None),
            Some(Part::Failed(failure)) => failure,
            None => Failure::broken(),
        };
        self.service.counts().cut.fetch_add(1, Ordering::Relaxed);
        Poll::Ready(Some(Err(failure)))
    }
}
