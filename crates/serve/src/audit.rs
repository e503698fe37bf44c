//! The audit log: who asked for what, and what was sent. Each request has a line before it is carried out, and another one when
//! its answer has ended.
//!
//! The log is opened for each line, so that it may be renamed at any time. A request whose first line can't be written is refused.

use std::fs::File;
use std::io::{self, Read, Write};
use std::net::SocketAddr;
use std::os::unix::fs::OpenOptionsExt;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use axum::http::StatusCode;
use longtake::instant::{now, utc};
use nix::libc::O_NONBLOCK;
use serde_json::{Value, json};

use crate::tokens::redacted;

/// A file that lines are added to.
#[derive(Debug)]
pub struct AuditLog {
    path: PathBuf,
    /// One line after another.
    writing: Mutex<()>,
    /// Requests so far.
    requests: AtomicU64,
}

impl AuditLog {
    /// The log at this place. The file is created if it doesn't exist.
    ///
    /// # Errors
    /// If the file can't be written, is no regular file, or holds something else.
    pub fn open(path: PathBuf) -> io::Result<Self> {
        let log = Self { path, writing: Mutex::default(), requests: AtomicU64::default() };
        log.file()?;
        let mut first = [0];
        match File::open(&log.path)?.read(&mut first)? {
            1 if first != *b"{" => {
                Err(io::Error::other("it holds something else: name another file"))
            }
            _ => Ok(log),
        }
    }

    fn file(&self) -> io::Result<File> {
        let mut options = File::options();
        let file = options.append(true).create(true).mode(0o600).custom_flags(O_NONBLOCK);
        let file = file.open(&self.path)?;
        match file.metadata()?.is_file() {
            true => Ok(file),
            false => Err(io::Error::other("it is not a regular file: name a file")),
        }
    }

    /// Adds a line whole, or nothing.
    fn write(&self, line: &Value) -> io::Result<()> {
        let _writing = self.writing.lock().unwrap_or_else(PoisonError::into_inner);
        let mut file = self.file()?;
        let length = file.metadata()?.len();
        let written = file.write_all(format!("{line}\n").as_bytes());
        if written.is_err() {
            // What is left of the line would spoil the next one.
            file.set_len(length).ok();
        }
        written
    }

    /// Enters a request that is about to be carried out.
    ///
    /// # Errors
    /// If the line can't be written.
    pub fn begin(self: &Arc<Self>, request: &Asked<'_>) -> io::Result<Entry> {
        let number = self.requests.fetch_add(1, Ordering::Relaxed) + 1;
        let mut line = json!({
            "time": utc(now()), "event": "request", "request": number, "token": request.token,
            "certificate": request.certificate, "peer": request.peer.map(|peer| peer.to_string()),
            "method": request.method, "path": redacted(request.path),
        });
        if !request.body.is_empty() {
            line["body"] = json!(redacted(request.body));
        }
        self.write(&line)?;
        let log = Some(Arc::clone(self));
        Ok(Entry { log, line, started: Instant::now(), status: None, bytes: 0 })
    }
}

/// What is asked, and by whom.
#[derive(Clone, Debug)]
pub struct Asked<'r> {
    /// The name of the token, or that no token was needed; None without a valid token where one was needed.
    pub token: Option<&'r str>,
    /// The certificate of the client, if it has shown one.
    pub certificate: Option<Value>,
    /// The client's address.
    pub peer: Option<SocketAddr>,
    /// The method of HTTP.
    pub method: &'r str,
    /// The path with its parameters.
    pub path: &'r str,
    /// The body, empty if there is none.
    pub body: &'r str,
}

/// A request whose answer has not ended. If it is dropped, its client has left.
#[derive(Debug)]
pub struct Entry {
    /// None once the last line is written.
    log: Option<Arc<AuditLog>>,
    line: Value,
    started: Instant,
    status: Option<StatusCode>,
    bytes: u64,
}

impl Entry {
    /// The answer begins.
    pub fn answered(&mut self, status: StatusCode) {
        self.status = Some(status);
    }

    /// So many bytes of its body are sent.
    pub fn sent(&mut self, bytes: usize) {
        self.bytes += bytes as u64;
    }

    /// Enters the end of the answer, once.
    ///
    /// # Errors
    /// If the line can't be written.
    pub fn end(&mut self, complete: bool) -> io::Result<()> {
        let Some(log) = self.log.take() else { return Ok(()) };
        let mut line = self.line.take();
        line["event"] = json!("answer");
        line["status"] = json!(self.status.map(|status| status.as_u16()));
        line["bytes"] = json!(self.bytes);
        line["seconds"] = json!(self.started.elapsed().as_secs_f64());
        line["complete"] = json!(complete);
        log.write(&line)
    }
}

impl Drop for Entry {
    fn drop(&mut self) {
        // The request itself is in the log.
        self.end(false).ok();
    }
}
