//! The control socket of a recording: other commands ask the recorder to protect spans of time, or where it is.
//!
//! Each array has a directory for its socket, which only the recorder's user can enter: `control.sock` in
//! `/run/longtake/ARRAY` for root and for the user that a recorder of root's becomes, in `$XDG_RUNTIME_DIR/longtake/ARRAY` or
//! `/tmp/longtake-UID/ARRAY` for others. Both sides verify who is at the other end. One request, one answer, each a line of JSON.

mod directory;

use std::io::{BufRead, BufReader, Read, Write};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anyhow::{Context, Result, anyhow, bail};
use crossbeam_channel::{Receiver, Sender, bounded};
use device::Waker;
use nix::fcntl::{AtFlags, OFlag, openat};
use nix::sys::socket::{Shutdown, getsockopt, shutdown, sockopt::PeerCredentials};
use nix::sys::stat::{Mode, SFlag, fstat};
use nix::unistd::{Uid, UnlinkatFlags, User, fchown, fchownat, unlinkat};
use recorder::TimeRange;
use recorder::open::Written;
use search::Condition;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use uuid::Uuid;

use crate::array::protect::ChangeRefused;
use directory::{PrivateDirectory, called};

/// The socket's name in its directory.
const SOCKET: &str = "control.sock";

/// The user that has no rights, and that services without a user of their own run as.
const NOBODY: &str = "nobody";

/// How long the recorder waits for a request, once somebody has connected.
const REQUEST_PATIENCE: Duration = Duration::from_secs(2);

/// How long the recording may take to carry out a request.
const ANSWER_PATIENCE: Duration = Duration::from_secs(10);

/// How long whoever asks waits for the answer.
const ASK_PATIENCE: Duration = Duration::from_secs(15);

/// How long a reader waits for the recorder, which may wait for a drive: it can read without an answer.
pub(crate) const READER_PATIENCE: Duration = Duration::from_millis(500);

/// What an answer is that fits no request.
const OTHER_QUESTION: &str = "the recorder's answer belongs to another question";

/// Longest request or answer in bytes: every protected range there can be, with room to spare.
pub(crate) const LINE_BYTES_MAX: u64 = 1 << 20;

/// What is asked.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum Request {
    /// Protect a span, ns since 1970, both ends included.
    Protect {
        /// Start.
        from_ns: u64,
        /// End.
        to_ns: u64,
        /// Label shown in listings.
        label: String,
    },
    /// Overwrite a span last for as long as the connection stands: it is being read.
    Hold {
        /// Start.
        from_ns: u64,
        /// End.
        to_ns: u64,
    },
    /// Give up every protected span that touches this one.
    Unprotect {
        /// Start.
        from_ns: u64,
        /// End.
        to_ns: u64,
    },
    /// Tell where the recording is. Nothing changes.
    Status,
    /// Tell which chunks hold no packet that meets a condition, of those whose keys are in memory. Nothing changes.
    Excluded(Condition),
}

/// What is known of chunks whose segments have no flow index yet: sequence numbers.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct InMemory {
    /// The take that is being recorded.
    pub take: Uuid,
    /// Chunks whose keys are known.
    pub known: Vec<u64>,
    /// Chunks, of those, that hold no packet that meets the condition.
    pub excluded: Vec<u64>,
}

/// What a recording says to a request that it has carried out.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Reply {
    /// So many spans are protected now, or held.
    Spans(usize),
    /// Which chunks hold nothing that is looked for.
    Excluded(InMemory),
    /// Where the recording is, as [`json::status`](crate::json::status) has it.
    Status(Value),
}

/// The answer: a reply, or why it could not be done.
pub type Answer = Result<Reply, String>;

/// A request and where its answer goes.
#[derive(Debug)]
pub struct Asked {
    /// The request.
    pub request: Request,
    /// The way back to whoever asked.
    pub answer: Sender<Answer>,
    /// Set once whoever asked has gone, which ends a hold.
    pub left: Arc<AtomicBool>,
}

/// Connections that may hold spans at a time.
const HOLDS_MAX: usize = 16;

/// The directory of root's recorders.
const BASE_OF_ROOT: &str = "/run/longtake";

/// The directory that holds a directory for each array.
fn base() -> PathBuf {
    match (Uid::effective().is_root(), std::env::var_os("XDG_RUNTIME_DIR")) {
        (true, _) => PathBuf::from(BASE_OF_ROOT),
        (false, Some(runtime)) if !runtime.is_empty() => PathBuf::from(runtime).join("longtake"),
        (false, _) => std::env::temp_dir().join(format!("longtake-{}", Uid::effective())),
    }
}

/// A control socket that listens.
#[derive(Debug)]
pub struct Control {
    listener: UnixListener,
    place: Place,
    /// Who may ask, beside root.
    owner: Uid,
}

/// A control socket that answers. It ends with this, and its file is removed.
#[derive(Debug)]
pub struct Serving {
    listener: Arc<UnixListener>,
    ended: Arc<AtomicBool>,
    _place: Place,
}

impl Drop for Serving {
    fn drop(&mut self) {
        self.ended.store(true, Ordering::Relaxed);
        // Wakes the thread that waits for connections.
        shutdown(self.listener.as_raw_fd(), Shutdown::Both).ok();
    }
}

/// Where a control socket is. The socket is removed with this.
#[derive(Debug)]
struct Place {
    base: PrivateDirectory,
    directory: PrivateDirectory,
    name: String,
}

impl Control {
    /// Listens for requests about an array whose lock is the caller's.
    ///
    /// # Errors
    /// If another user could reach the socket's directory, or the socket can't be created.
    pub fn bind(array: Uuid) -> Result<Self> {
        let base = PrivateDirectory::open(&base(), true).context("preparing the control socket")?;
        if Uid::effective().is_root() {
            // The users that recorders become pass through it, each into directories of its own.
            base.let_pass().context("preparing the control socket")?;
        }
        let name = array.to_string();
        let directory = base.open_in(&name, true).context("preparing the control socket")?;
        let place = Place { base, directory, name };
        // The array's lock is ours, so that a socket that stands there is a leftover.
        place.remove_socket();
        // The credentials that a client sees are those of this moment.
        let listener = UnixListener::bind(place.directory.address(SOCKET)).with_context(|| {
            format!("listening on {}", place.directory.path().join(SOCKET).display())
        })?;
        Ok(Self { listener, place, owner: Uid::effective() })
    }

    /// Gives the socket to the user that the recorder is about to become, so that this user can remove it at the end and send
    /// requests. `nobody` can remove it, but may send none: other services run as that user, too.
    ///
    /// # Errors
    /// If the system refuses.
    pub fn give_to(&mut self, user: &User) -> Result<()> {
        let directory = &self.place.directory;
        let (owner, group) = (Some(user.uid), Some(user.gid));
        let context = || format!("giving {} to {}", directory.path().display(), called(user.uid));
        fchown(directory, owner, group).with_context(context)?;
        if user.name != NOBODY {
            fchownat(directory, SOCKET, owner, group, AtFlags::AT_SYMLINK_NOFOLLOW)
                .with_context(context)?;
            self.owner = user.uid;
        }
        Ok(())
    }

    /// The directory from which a file is removed at the end, and the one from which a directory is.
    pub fn directories(&self) -> (BorrowedFd<'_>, BorrowedFd<'_>) {
        (self.place.directory.as_fd(), self.place.base.as_fd())
    }

    /// Starts to answer; requests come out of the channel for as long as the second value is kept.
    ///
    /// # Errors
    /// If the system gives no thread.
    pub fn serve(self, waker: Waker) -> Result<(Receiver<Asked>, Serving)> {
        let Self { listener, place, owner } = self;
        let (sender, receiver) = bounded(16);
        let listener = Arc::new(listener);
        let ended = Arc::new(AtomicBool::new(false));
        let serving =
            Serving { listener: Arc::clone(&listener), ended: Arc::clone(&ended), _place: place };
        let answer_all = move || {
            let mut holds: Vec<Arc<AtomicBool>> = Vec::new();
            for stream in listener.incoming() {
                if ended.load(Ordering::Relaxed) {
                    return;
                }
                // What keeps one connection from being accepted is that connection's trouble.
                let Ok(stream) = stream else { continue };
                holds.retain(|left| !left.load(Ordering::Relaxed));
                // Whoever breaks off in the middle has only itself to answer to.
                let held = serve(&stream, owner, holds.len(), &sender, &waker);
                if let Ok(Some(left)) = held {
                    holds.push(Arc::clone(&left));
                    let waker = waker.clone();
                    watch(stream, left, waker).ok();
                }
            }
        };
        std::thread::Builder::new()
            .name("control".to_owned())
            .spawn(answer_all)
            .context("starting the thread of the control socket")?;
        Ok((receiver, serving))
    }
}

impl Place {
    fn remove_socket(&self) {
        // What can't be removed is in the way of binding, which says why.
        unlinkat(&self.directory, SOCKET, UnlinkatFlags::NoRemoveDir).ok();
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.remove_socket();
        // A recorder that gave up root leaves the empty directory in root's.
        unlinkat(&self.base, self.name.as_str(), UnlinkatFlags::RemoveDir).ok();
    }
}

/// Answers one request. Returns the mark of a hold that was granted.
fn serve(
    stream: &UnixStream,
    owner: Uid,
    holds: usize,
    sender: &Sender<Asked>,
    waker: &Waker,
) -> Result<Option<Arc<AtomicBool>>> {
    stream.set_read_timeout(Some(REQUEST_PATIENCE))?;
    stream.set_write_timeout(Some(REQUEST_PATIENCE))?;
    let left = Arc::new(AtomicBool::new(false));
    let (answer, hold) = match peer(stream)? {
        user if user.is_root() || user == owner => match request(stream)? {
            Ok(Request::Hold { .. }) if holds >= HOLDS_MAX => {
                (Err(format!("{HOLDS_MAX} readers hold spans already: try again later")), false)
            }
            Ok(request) => {
                let hold = matches!(request, Request::Hold { .. });
                (answer(request, &left, sender, waker)?, hold)
            }
            Err(why) => (Err(why), false),
        },
        user => {
            (Err(format!("{} may not change what {} records", called(user), called(owner))), false)
        }
    };
    let mut stream = stream;
    let told = writeln!(stream, "{}", serde_json::to_string(&answer)?);
    // Also a hold whose answer came too late ends with its connection.
    left.store(told.is_err() || answer.is_err(), Ordering::Relaxed);
    told?;
    Ok((hold && answer.is_ok()).then_some(left))
}

fn request(stream: &UnixStream) -> Result<Result<Request, String>> {
    let mut line = String::new();
    BufReader::new(stream.take(LINE_BYTES_MAX)).read_line(&mut line)?;
    Ok(serde_json::from_str(&line).map_err(|error| format!("not understood: {error}")))
}

fn answer(
    request: Request,
    left: &Arc<AtomicBool>,
    sender: &Sender<Asked>,
    waker: &Waker,
) -> Result<Answer> {
    let (answer, answered) = bounded(1);
    // The indexing thread may be slow, and requests that come after this one wait for its answer.
    let patience = match request {
        Request::Excluded(_) => READER_PATIENCE,
        _ => ANSWER_PATIENCE,
    };
    sender.send(Asked { request, answer, left: Arc::clone(left) })?;
    waker.wake();
    let late = || format!("the recording did not answer in {} s", patience.as_secs_f64());
    Ok(answered.recv_timeout(patience).unwrap_or_else(|_| Err(late())))
}

/// Waits in a thread of its own until a reader that holds a span closes its connection.
fn watch(stream: UnixStream, left: Arc<AtomicBool>, waker: Waker) -> Result<()> {
    stream.set_read_timeout(None)?;
    let wait = move || {
        // A reader says nothing more: whatever comes, it is the end.
        (&stream).read_exact(&mut [0]).ok();
        left.store(true, Ordering::Relaxed);
        waker.wake();
    };
    std::thread::Builder::new()
        .name("hold".to_owned())
        .spawn(wait)
        .context("starting the thread of a hold")?;
    Ok(())
}

/// The user at the other end: the one that connected, or the one that began to listen.
fn peer(stream: &UnixStream) -> Result<Uid> {
    let credentials =
        getsockopt(stream, PeerCredentials).context("asking who is at the other end")?;
    Ok(Uid::from_raw(credentials.uid()))
}

/// Asks the recording that has the array open.
///
/// # Errors
/// If it can't be reached, is another user's, or says no.
pub fn ask(array: Uuid, request: &Request) -> Result<usize> {
    match converse(array, request)? {
        (Reply::Spans(count), _) => Ok(count),
        _ => bail!(OTHER_QUESTION),
    }
}

/// Asks the recording that has the array open where it is, as [`json::status`](crate::json::status) has it. No drive is read.
///
/// # Errors
/// If the array is not being recorded, or its recorder belongs to another user or refuses to answer.
pub fn status(array: Uuid) -> crate::Result<Value> {
    match converse(array, &Request::Status)? {
        (Reply::Status(status), _) => Ok(status),
        _ => Err(anyhow!(OTHER_QUESTION).into()),
    }
}

/// [`status`], waiting for the answer no longer than `patience`; None if none has come by then.
///
/// # Errors
/// As [`status`].
pub(crate) fn status_within(array: Uuid, patience: Duration) -> Result<Option<Value>> {
    match converse_within(array, &Request::Status, patience) {
        Ok((Reply::Status(status), _)) => Ok(Some(status)),
        Ok(_) => bail!(OTHER_QUESTION),
        Err(error) => {
            let is_late = error.chain().any(|cause| {
                let cause: Option<&std::io::Error> = cause.downcast_ref();
                cause.is_some_and(|cause| cause.kind() == std::io::ErrorKind::WouldBlock)
            });
            if is_late { Ok(None) } else { Err(error) }
        }
    }
}

/// How far a recorder has written, for whoever is about to read; None if it can't be asked, or does not answer soon.
pub(crate) fn written(array: Uuid) -> Option<Written> {
    let status = status_within(array, READER_PATIENCE).ok().flatten()?;
    let list = |value: &'_ Value| value.as_array().cloned();
    let (under_way, members) = (list(&status["under_way"])?, list(&status["members"])?);
    Some(Written {
        take: status["take"].as_str()?.parse().ok()?,
        through: status["written_through"].as_u64()?,
        under_way: under_way.iter().map(Value::as_u64).collect::<Option<_>>()?,
        working: members.iter().map(|member| member["working"].as_bool()).collect::<Option<_>>()?,
    })
}

/// Which chunks hold no packet that meets a condition, of those that the recorder has in memory; None if it can't be asked, or does
/// not answer soon.
pub(crate) fn excluded(array: Uuid, condition: Condition) -> Option<InMemory> {
    match converse_within(array, &Request::Excluded(condition), READER_PATIENCE).ok()? {
        (Reply::Excluded(known), _) => Some(known),
        _ => None,
    }
}

/// A span that the recorder overwrites last, until this is dropped.
#[derive(Debug)]
pub struct Hold {
    _connection: UnixStream,
}

/// Asks the recording that has the array open to overwrite a span last, while it is read.
///
/// # Errors
/// As [`ask`].
pub fn hold(array: Uuid, span: TimeRange) -> Result<Hold> {
    let request = Request::Hold { from_ns: span.from.as_nanos(), to_ns: span.to.as_nanos() };
    converse(array, &request).map(|(_, connection)| Hold { _connection: connection })
}

fn converse(array: Uuid, request: &Request) -> Result<(Reply, UnixStream)> {
    converse_within(array, request, ASK_PATIENCE)
}

fn converse_within(
    array: Uuid,
    request: &Request,
    patience: Duration,
) -> Result<(Reply, UnixStream)> {
    let mut stream = connect(array, patience).context(
        "the array is being recorded, but its recorder can't be reached; run this command as the user who started the recording",
    )?;
    writeln!(stream, "{}", serde_json::to_string(request)?)?;
    let mut line = String::new();
    BufReader::new((&stream).take(LINE_BYTES_MAX)).read_line(&mut line)?;
    match serde_json::from_str::<Answer>(&line).context("reading the recorder's answer")? {
        Ok(reply) => Ok((reply, stream)),
        Err(why) => bail!(ChangeRefused(format!("the recorder refused: {why}"))),
    }
}

/// The directory of an array's recorder: among those of the calling user, or a recorder of root's that became this user.
fn directory_of(array: Uuid) -> Result<PrivateDirectory> {
    let name = array.to_string();
    let own = PrivateDirectory::open(&base(), false).and_then(|base| base.open_in(&name, false));
    own.or_else(|why| {
        let base = PrivateDirectory::of_root(Path::new(BASE_OF_ROOT));
        base.and_then(|base| base.open_in(&name, false)).map_err(|_| why)
    })
}

/// Connects to the recorder of the calling user or of root, and to nobody else's. Each read and write on the connection waits for
/// `patience` at most.
fn connect(array: Uuid, patience: Duration) -> Result<UnixStream> {
    let directory = directory_of(array)?;
    let path = directory.path().join(SOCKET);
    let flags = OFlag::O_PATH | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC;
    let socket = openat(&directory, SOCKET, flags, Mode::empty())
        .with_context(|| format!("opening {}", path.display()))?;
    let kind = SFlag::from_bits_truncate(fstat(&socket)?.st_mode) & SFlag::S_IFMT;
    if kind != SFlag::S_IFSOCK {
        bail!("{} is not a socket: remove it", path.display());
    }
    let stream = UnixStream::connect(format!("/proc/self/fd/{}", socket.as_raw_fd()))
        .with_context(|| format!("connecting to {}", path.display()))?;
    let user = peer(&stream)?;
    if !user.is_root() && user != Uid::effective() {
        bail!(
            "{} listens on {}, and only a recorder of yours or of root is trusted: remove the socket",
            called(user),
            path.display()
        );
    }
    stream.set_read_timeout(Some(patience))?;
    stream.set_write_timeout(Some(patience))?;
    Ok(stream)
}
