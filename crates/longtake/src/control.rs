//! The line to a recording under way: other commands ask it to protect spans of time.
//!
//! A socket for each array, in a directory that only its owner can enter. One request, one answer,
//! each a line of JSON.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use crossbeam_channel::{Receiver, Sender, bounded};
use device::Waker;
use nix::unistd::Uid;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

/// Longest request or answer in bytes: every protected range there can be, with room to spare.
const LINE_BYTES_MAX: u64 = 1 << 20;

/// What is asked.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum Request {
    /// Protect a span, ns since 1970, both ends included.
    Protect {
        /// Start.
        from_ns: u64,
        /// End.
        to_ns: u64,
        /// A word for it.
        label: String,
    },
    /// Give up every protected span that touches this one.
    Unprotect {
        /// Start.
        from_ns: u64,
        /// End.
        to_ns: u64,
    },
}

/// The answer: how many spans are protected now, or why it could not be done.
pub type Answer = Result<usize, String>;

/// A request and where its answer goes.
#[derive(Debug)]
pub struct Asked {
    /// What.
    pub request: Request,
    /// Where to.
    pub answer: Sender<Answer>,
}

/// Where the socket of an array is.
fn socket(array: Uuid) -> PathBuf {
    let directory = match (Uid::effective().is_root(), std::env::var_os("XDG_RUNTIME_DIR")) {
        (true, _) => PathBuf::from("/run/longtake"),
        (false, Some(runtime)) => PathBuf::from(runtime).join("longtake"),
        (false, None) => std::env::temp_dir().join(format!("longtake-{}", Uid::effective())),
    };
    directory.join(format!("{array}.sock"))
}

/// Starts to listen; requests come out of the channel until the process ends.
///
/// # Errors
/// If the socket can't be made.
pub fn listen(array: Uuid, waker: Waker) -> Result<Receiver<Asked>> {
    let path = socket(array);
    if let Some(directory) = path.parent() {
        fs::DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(directory)
            .with_context(|| format!("making {}", directory.display()))?;
    }
    // The array's lock is ours, so that whatever stands there is a leftover.
    drop(fs::remove_file(&path));
    let listener =
        UnixListener::bind(&path).with_context(|| format!("listening on {}", path.display()))?;
    fs::set_permissions(&path, fs::Permissions::from_mode(0o600))?;
    let (sender, receiver) = bounded(16);
    std::thread::Builder::new().name("control".to_owned()).spawn(move || {
        for stream in listener.incoming().flatten() {
            // Whoever breaks off in the middle has only itself to answer to.
            serve(&stream, &sender, &waker).ok();
        }
    })?;
    Ok(receiver)
}

fn serve(stream: &UnixStream, sender: &Sender<Asked>, waker: &Waker) -> Result<()> {
    stream.set_read_timeout(Some(Duration::from_secs(2)))?;
    stream.set_write_timeout(Some(Duration::from_secs(2)))?;
    let mut line = String::new();
    BufReader::new(stream.take(LINE_BYTES_MAX)).read_line(&mut line)?;
    let answer = match serde_json::from_str(&line) {
        Ok(request) => {
            let (answer, answered) = bounded(1);
            sender.send(Asked { request, answer })?;
            waker.wake();
            answered
                .recv_timeout(Duration::from_secs(10))
                .unwrap_or_else(|_| Err("the recording did not answer in 10 s".to_owned()))
        }
        Err(error) => Err(format!("not understood: {error}")),
    };
    let mut stream = stream;
    writeln!(stream, "{}", serde_json::to_string(&answer)?)?;
    Ok(())
}

/// Asks the recording that has the array open.
///
/// # Errors
/// If it can't be reached, or says no.
pub fn ask(array: Uuid, request: &Request) -> Result<usize> {
    let path = socket(array);
    let mut stream = UnixStream::connect(&path).with_context(|| {
        format!(
            "the array is being recorded, but its recorder can't be reached at {} (started by another user?)",
            path.display()
        )
    })?;
    writeln!(stream, "{}", serde_json::to_string(request)?)?;
    let mut line = String::new();
    BufReader::new(stream.take(LINE_BYTES_MAX)).read_line(&mut line)?;
    match serde_json::from_str::<Answer>(&line).context("reading the recorder's answer")? {
        Ok(count) => Ok(count),
        Err(why) => bail!("the recorder refused: {why}"),
    }
}
