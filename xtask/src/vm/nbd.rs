//! A medium served to the emulator over a socket, as a network block device
//! (the NBD protocol: <https://github.com/NetworkBlockDevice/nbd/blob/master/doc/proto.md>, fixed newstyle handshake,
//! simple replies).
//!
//! The medium outlives the emulator: what one machine wrote is there for the next, as far as it was flushed.

use std::io::{self, BufReader, ErrorKind, Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use anyhow::{Context, Result};

use tempfile::TempDir;

use super::disk::Disk;
use super::drives::{self, Backing, Drive, Namespace};

const OPTION_MAGIC: u64 = 0x4948_4156_454f_5054;
const REPLY_MAGIC: u64 = 0x0003_e889_0455_65a9;
const REQUEST_MAGIC: u32 = 0x2560_9513;
const ANSWER_MAGIC: u32 = 0x6744_6698;
/// Fixed newstyle, without zeros behind the export.
const HANDSHAKE_FLAGS: u16 = 0b11;
/// Has flags, can flush, can trim.
const EXPORT_FLAGS: u16 = 1 | 1 << 2 | 1 << 5;
/// The longest request that clients send without having asked.
const REQUEST_BYTES_MAX: u32 = 32 << 20;
const LOOK_EVERY: Duration = Duration::from_millis(5);

/// The media of all namespaces of some drives, each served at a socket of its own.
#[derive(Debug)]
pub struct Media {
    /// By namespace.
    pub served: Vec<Served>,
    /// The sockets' folder: their paths must be short, wherever the media lie.
    _sockets: TempDir,
}

impl Media {
    /// New and empty ones, their files in `dir`, for an array with segments of that length.
    ///
    /// # Errors
    /// If files or sockets can't be made.
    pub fn create(drives: &[Drive], dir: &Path, segment_bytes: u64) -> Result<Self> {
        let sockets = tempfile::Builder::new().prefix("longtake-nbd").tempdir()?;
        let mut served = Vec::new();
        for (n, drive) in drives.iter().enumerate() {
            for (m, namespace) in (1..).zip(&drive.namespaces) {
                let path = drives::file(dir, n, m);
                let Namespace { size_bytes, block_bytes, .. } = *namespace;
                let disk = Disk::create(&path, size_bytes, block_bytes, segment_bytes)
                    .with_context(|| format!("making {}", path.display()))?;
                served.push(Served::start(disk, &sockets.path().join(format!("{n}-{m}")))?);
            }
        }
        Ok(Self { served, _sockets: sockets })
    }

    /// For a machine to use.
    pub fn backing(&self) -> Backing {
        Backing::Served(self.served.iter().map(|served| served.socket.clone()).collect())
    }
}

/// A medium and the thread that serves it.
#[derive(Debug)]
pub struct Served {
    disk: Arc<Mutex<Disk>>,
    socket: PathBuf,
    busy: Arc<AtomicBool>,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Served {
    /// Serves a medium at a socket, one emulator at a time.
    ///
    /// # Errors
    /// If the socket can't be made.
    pub fn start(disk: Disk, socket: &Path) -> Result<Self> {
        let listener = UnixListener::bind(socket)
            .with_context(|| format!("making the socket {}", socket.display()))?;
        let disk = Arc::new(Mutex::new(disk));
        let (busy, stop) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicBool::new(false)));
        let (shared, at_work, stopping) = (Arc::clone(&disk), Arc::clone(&busy), Arc::clone(&stop));
        let thread = thread::spawn(move || {
            while let Ok((stream, _)) = listener.accept() {
                if stopping.load(Ordering::Acquire) {
                    return;
                }
                at_work.store(true, Ordering::Release);
                // An emulator that is killed hangs up in the middle of a word, which is what it is for.
                Client { stream: BufReader::new(stream), disk: &shared }.serve().ok();
                at_work.store(false, Ordering::Release);
            }
        });
        Ok(Self { disk, socket: socket.to_owned(), busy, stop, thread: Some(thread) })
    }

    /// The medium.
    pub fn disk(&self) -> MutexGuard<'_, Disk> {
        self.disk.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The medium, once everything that a killed emulator had sent is taken in.
    pub fn disk_settled(&self) -> MutexGuard<'_, Disk> {
        while self.busy.load(Ordering::Acquire) {
            thread::sleep(LOOK_EVERY);
        }
        self.disk()
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Release);
        // Wakes the thread, if it waits for somebody.
        if UnixStream::connect(&self.socket).is_ok()
            && let Some(thread) = self.thread.take()
        {
            thread.join().ok();
        }
    }
}

struct Client<'a> {
    stream: BufReader<UnixStream>,
    disk: &'a Mutex<Disk>,
}

impl Client<'_> {
    fn serve(&mut self) -> io::Result<()> {
        self.send(&[b"NBDMAGIC", &OPTION_MAGIC.to_be_bytes(), &HANDSHAKE_FLAGS.to_be_bytes()])?;
        let _flags: [u8; 4] = self.take()?;
        while !self.option()? {}
        while self.request()? {}
        Ok(())
    }

    /// Answers one option of the handshake. True once the client has what it came for.
    fn option(&mut self) -> io::Result<bool> {
        const EXPORT_NAME: u32 = 1;
        const ABORT: u32 = 2;
        const GO: u32 = 7;
        const ACK: u32 = 1;
        const INFO: u32 = 3;
        const UNSUPPORTED: u32 = 1 << 31 | 1;
        if u64::from_be_bytes(self.take()?) != OPTION_MAGIC {
            return Err(ErrorKind::InvalidData.into());
        }
        let option = u32::from_be_bytes(self.take()?);
        let length = u32::from_be_bytes(self.take()?);
        self.payload(length)?;
        let size = self.disk().size_bytes().to_be_bytes();
        let flags = EXPORT_FLAGS.to_be_bytes();
        match option {
            EXPORT_NAME => self.send(&[&size, &flags]).map(|()| true),
            ABORT => {
                self.reply(option, ACK, &[])?;
                Err(ErrorKind::ConnectionAborted.into())
            }
            GO => {
                let kind = 0u16.to_be_bytes();
                self.reply(option, INFO, &[&kind[..], &size, &flags].concat())?;
                self.reply(option, ACK, &[]).map(|()| true)
            }
            _ => self.reply(option, UNSUPPORTED, &[]).map(|()| false),
        }
    }

    fn reply(&mut self, option: u32, kind: u32, data: &[u8]) -> io::Result<()> {
        let length = (data.len() as u32).to_be_bytes();
        let (option, kind) = (option.to_be_bytes(), kind.to_be_bytes());
        self.send(&[&REPLY_MAGIC.to_be_bytes(), &option, &kind, &length, data])
    }

    /// Carries out one request. False if the client takes its leave.
    fn request(&mut self) -> io::Result<bool> {
        const READ: u16 = 0;
        const WRITE: u16 = 1;
        const LEAVE: u16 = 2;
        const FLUSH: u16 = 3;
        const TRIM: u16 = 4;
        if u32::from_be_bytes(self.take()?) != REQUEST_MAGIC {
            return Err(ErrorKind::InvalidData.into());
        }
        let _flags: [u8; 2] = self.take()?;
        let kind = u16::from_be_bytes(self.take()?);
        let handle: [u8; 8] = self.take()?;
        let offset = u64::from_be_bytes(self.take()?);
        let length = u32::from_be_bytes(self.take()?);
        let mut data = Vec::new();
        let outcome = match kind {
            READ if length <= REQUEST_BYTES_MAX => {
                data.resize(length as usize, 0);
                self.disk().read(offset, &mut data)
            }
            WRITE => {
                let bytes = self.payload(length)?;
                self.disk().write(offset, &bytes)
            }
            LEAVE => return Ok(false),
            FLUSH => {
                self.disk().flush();
                Ok(())
            }
            TRIM => self.disk().trim(offset, length.into()),
            _ => Err(io::Error::from_raw_os_error(nix::libc::EINVAL)),
        };
        let error = outcome.err().map_or(0, |error| {
            data.clear();
            error.raw_os_error().unwrap_or(nix::libc::EIO)
        });
        self.send(&[&ANSWER_MAGIC.to_be_bytes(), &error.to_be_bytes(), &handle, &data])?;
        Ok(true)
    }

    fn disk(&self) -> MutexGuard<'_, Disk> {
        self.disk.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn take<const N: usize>(&mut self) -> io::Result<[u8; N]> {
        let mut bytes = [0; N];
        self.stream.read_exact(&mut bytes)?;
        Ok(bytes)
    }

    fn payload(&mut self, length: u32) -> io::Result<Vec<u8>> {
        if length > REQUEST_BYTES_MAX {
            return Err(ErrorKind::InvalidData.into());
        }
        let mut bytes = vec![0; length as usize];
        self.stream.read_exact(&mut bytes)?;
        Ok(bytes)
    }

    fn send(&mut self, parts: &[&[u8]]) -> io::Result<()> {
        self.stream.get_mut().write_all(&parts.concat())
    }
}
