//! Packets as a stream: a thread reads them, and waits while the client is slower.
//!
//! A stream that ends as it should says how complete it is.

use std::io::{self, Write};
use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::http::header;
use axum::response::{IntoResponse, Response};
use format::pcapng::section_header;
use longtake::array::Completeness;
use longtake::{FileFormat, Selection, json as shown};
use serde_json::json;
use tokio::sync::mpsc::{Sender, channel};
use tokio::sync::oneshot;
use tokio::task::spawn_blocking;

use crate::Limits;
use crate::access::Caller;
use crate::api::{READING_MEMORY, Shared, share};
use crate::arrays::{Served, Service};
use crate::failure::Failure;
use crate::query::{Format, Names, PacketQuery, Parameters};
use crate::stream::{Part, StreamedBody};

/// Bytes that are handed on at a time.
const PIECE_BYTES: usize = 256 << 10;

/// Pieces that wait for a client, at most.
const PIECES_MAX: usize = 4;

/// Says whether everything that was asked for was there when the answer began.
const COMPLETE: &str = "longtake-complete";

impl Format {
    fn file(self) -> FileFormat {
        match self {
            Self::Pcapng => FileFormat::Pcapng,
            Self::Pcap => FileFormat::Pcap,
            Self::Jsonl => FileFormat::Jsonl,
        }
    }

    fn content_type(self) -> &'static str {
        match self {
            Self::Pcapng => "application/x-pcapng",
            Self::Pcap => "application/vnd.tcpdump.pcap",
            Self::Jsonl => "application/jsonl",
        }
    }

    /// What says at the end of a stream how complete it is; None if the format has no room for it.
    fn statement(self, completeness: &Completeness) -> Option<Vec<u8>> {
        let stated = json!({ "completeness": shown::completeness(completeness) }).to_string();
        match self {
            Self::Pcapng => {
                Some(section_header(concat!("longtake ", env!("CARGO_PKG_VERSION")), &stated))
            }
            Self::Pcap => None,
            Self::Jsonl => Some(format!("{stated}\n").into_bytes()),
        }
    }
}

/// Extract packets.
///
/// The header `longtake-complete` says whether everything that was asked for was there when the answer began. pcapng and JSON lines
/// state at their end how complete they are. The connection is closed early if the answer can't be completed, and for pcap, which has
/// no room for a statement, also if packets could not be read.
#[utoipa::path(
    get, path = "/api/v1/arrays/{array}/packets",
    params(("array" = String, Path, description = "Id or UUID of an array"), PacketQuery),
    responses(
        (status = 200, content(
            (String = "application/x-pcapng"), (String = "application/vnd.tcpdump.pcap"), (String = "application/jsonl"),
        )),
        (status = 400, body = Failure), (status = 404, body = Failure), (status = 500, body = Failure),
        (status = 503, body = Failure, description = "Too many requests read packets"),
    ),
)]
pub async fn packets(
    State(service): Shared,
    Names(id): Names<String>,
    Parameters(query): Parameters<PacketQuery>,
    caller: Caller,
) -> Result<Response, Failure> {
    let (array, format) = (service.array(&id)?, query.format);
    Extraction { array, format, selection: query.selection()? }.answer(service, &caller).await
}

/// What is extracted, and as what.
pub struct Extraction {
    /// Of which array.
    pub array: Served,
    /// As what.
    pub format: Format,
    /// Which packets.
    pub selection: Selection,
}

impl Extraction {
    /// Answers with the packets, once the first of them were read.
    ///
    /// # Errors
    /// If the caller may read no more, the array can't be opened, or the selection is wrong.
    pub async fn answer(self, service: Arc<Service>, caller: &Caller) -> Result<Response, Failure> {
        let format = self.format;
        let permit = service.may_read(caller)?;
        let (sender, mut receiver) = channel(PIECES_MAX);
        let (tell, known) = oneshot::channel();
        let (counted, limits) = (Arc::clone(&service), *service.limits());
        spawn_blocking(move || {
            let _permit = permit;
            let last = self.run(&limits, tell, &sender).map_or_else(Part::Failed, |()| Part::End);
            if sender.blocking_send(last).is_err() {
                counted.counts().left.fetch_add(1, Ordering::Relaxed);
            }
        });
        // What can't be opened or is wrong with a filter shows at the latest when the first packet is read.
        let complete = known.await.is_ok_and(|known: Completeness| known.complete);
        let first = match receiver.recv().await {
            Some(Part::Failed(failure)) => return Err(failure),
            None => return Err(Failure::broken()),
            first => first,
        };
        let headers = [
            (header::CONTENT_TYPE.as_str(), format.content_type()),
            (COMPLETE, if complete { "true" } else { "false" }),
        ];
        let body = StreamedBody::new(first, receiver, service);
        Ok((headers, Body::new(body)).into_response())
    }

    /// Reads packets until all are sent or the client has left. Before that, it sends how complete they can be.
    fn run(
        self,
        limits: &Limits,
        tell: oneshot::Sender<Completeness>,
        sender: &Sender<Part>,
    ) -> Result<(), Failure> {
        let mut array = self.array.open(READING_MEMORY)?;
        let selection = Selection { read_rate_beside: Some(share(limits)), ..self.selection };
        let selected = array.select(&selection).map_err(Failure::of)?;
        let known = selected.completeness();
        tell.send(known).map_err(|_| Failure::broken())?;
        let mut out = Pieces(sender);
        let extracted = selected.write_to(self.format.file(), &mut out, |_| {
            if sender.is_closed() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        });
        let read = extracted.map_err(Failure::of)?.read;
        let completeness = Completeness::of_packets(&read);
        match self.format.statement(&completeness) {
            Some(statement) => out.write_all(&statement).map_err(|_| Failure::broken()),
            None if read.unreadable.count.is_zero() && read.overwritten.count.is_zero() => Ok(()),
            None => Err(Failure::broken()),
        }
    }
}

/// Hands bytes on in pieces.
struct Pieces<'s>(&'s Sender<Part>);

impl Write for Pieces<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let piece = &bytes[..bytes.len().min(PIECE_BYTES)];
        let sent = self.0.blocking_send(Part::Piece(Bytes::copy_from_slice(piece)));
        sent.map(|()| piece.len()).map_err(|_| io::ErrorKind::BrokenPipe.into())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
