//! The body of an answer as it is sent: it ends early if whoever receives it may ask no more, and its end is in the audit log.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use axum::body::{Body, Bytes, HttpBody};
use hyper::body::{Frame, SizeHint};

use crate::access::{Access, Caller};
use crate::audit::Entry;

/// The body of an answer, for as long as its caller may ask. Its end is in the audit log before its last bytes are sent.
pub struct Watched {
    /// What is sent.
    pub body: Body,
    /// Who asked; None if that was refused.
    pub caller: Option<Caller>,
    /// The request in the audit log.
    pub entry: Option<Entry>,
    /// Who may ask.
    pub access: Arc<Access>,
}

impl Watched {
    fn end(&mut self, complete: bool) -> Result<(), axum::Error> {
        self.entry.as_mut().map_or(Ok(()), |entry| entry.end(complete)).map_err(axum::Error::new)
    }
}

impl HttpBody for Watched {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        let frame = ready!(Pin::new(&mut self.body).poll_frame(context));
        if !self.caller.as_ref().is_none_or(|caller| self.access.still_admits(caller)) {
            let ended = io::Error::other("the token or the certificate is not valid any more");
            return Poll::Ready(Some(Err(axum::Error::new(ended))));
        }
        let ended = match &frame {
            Some(Ok(frame)) => {
                let bytes = frame.data_ref().map_or(0, Bytes::len);
                self.entry.iter_mut().for_each(|entry| entry.sent(bytes));
                self.body.is_end_stream()
            }
            Some(Err(_)) => false,
            None => true,
        };
        Poll::Ready(match ended.then(|| self.end(true)) {
            Some(Err(reason)) => Some(Err(reason)),
            _ => frame,
        })
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
