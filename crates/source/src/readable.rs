//! Reading without sleeping through a stop: pipes, terminals and sockets are polled with a time-out
//! before they are read, plain files are read straight away.

use std::fs::{File, OpenOptions};
use std::io::{self, Read};
use std::net::TcpStream;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::{FileTypeExt, OpenOptionsExt};
use std::path::Path;

use base::Duration;

/// How long a source may sleep before it calls its sink's `tick` again: [`crate::Sink::tick`] wants
/// to hear from it every 50 ms.
pub const TICK: Duration = Duration::from_millis(50);

/// A descriptor that bytes are read from.
#[derive(Debug)]
pub struct Readable {
    file: File,
    /// A plain file is always ready, so asking would be a wasted system call.
    plain: bool,
    /// Reading when nothing is there returns at once.
    nonblocking: bool,
}

impl Readable {
    /// Opens a path for reading. A fifo is opened whether or not somebody writes to it yet.
    ///
    /// # Errors
    /// The operating system's, if it can't be opened.
    pub fn open(path: &Path) -> io::Result<Self> {
        let mut options = OpenOptions::new();
        options.read(true);
        let fifo = std::fs::metadata(path)?.file_type().is_fifo();
        if fifo {
            // Else opening sleeps until a writer comes, deaf to a stop.
            options.custom_flags(libc::O_NONBLOCK);
        }
        Self::from_file(options.open(path)?, fifo)
    }

    /// The program's standard input, beneath Rust's own buffer: nobody else may read it.
    ///
    /// # Errors
    /// The operating system's, if standard input is closed.
    pub fn stdin() -> io::Result<Self> {
        // Others may share it, so it isn't made non-blocking.
        Self::from_file(File::from(io::stdin().as_fd().try_clone_to_owned()?), false)
    }

    /// A connected socket.
    ///
    /// # Errors
    /// The operating system's, if it can't be made non-blocking.
    pub fn socket(socket: TcpStream) -> io::Result<Self> {
        socket.set_nonblocking(true)?;
        Ok(Self { file: File::from(OwnedFd::from(socket)), plain: false, nonblocking: true })
    }

    fn from_file(file: File, nonblocking: bool) -> io::Result<Self> {
        let plain = file.metadata()?.is_file();
        Ok(Self { file, plain, nonblocking: nonblocking || plain })
    }

    /// Whether [`Readable::read_now`] returns at once whatever is there.
    pub fn is_nonblocking(&self) -> bool {
        self.nonblocking
    }

    /// Whether reading never has to wait for somebody to write.
    pub fn is_plain_file(&self) -> bool {
        self.plain
    }

    /// Reads what is there, waiting for at most `patience`. `None` when nothing came in that time,
    /// `Some(0)` at the end.
    ///
    /// # Errors
    /// The operating system's; an interrupted call counts as nothing.
    pub fn read(&mut self, buffer: &mut [u8], patience: Duration) -> io::Result<Option<usize>> {
        if !self.plain && !ready(&[self.as_fd()], patience)?[0] {
            return Ok(None);
        }
        self.read_now(buffer)
    }

    /// Reads without asking first whether anything is there.
    ///
    /// # Errors
    /// As [`Readable::read`].
    pub fn read_now(&mut self, buffer: &mut [u8]) -> io::Result<Option<usize>> {
        match self.file.read(buffer) {
            Ok(count) => Ok(Some(count)),
            Err(error)
                if matches!(
                    error.kind(),
                    io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted
                ) =>
            {
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }
}

impl AsFd for Readable {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}

/// Waits until one of the descriptors can be read (or has ended or failed, which reading tells), for
/// at most `patience`. Says which; all false after the time-out or an interruption.
///
/// # Errors
/// The operating system's.
pub fn ready(descriptors: &[BorrowedFd<'_>], patience: Duration) -> io::Result<Vec<bool>> {
    let mut polled: Vec<libc::pollfd> = descriptors
        .iter()
        .map(|fd| libc::pollfd { fd: fd.as_raw_fd(), events: libc::POLLIN, revents: 0 })
        .collect();
    let patience_ms = i32::try_from(patience.as_nanos() / 1_000_000).unwrap_or(i32::MAX);
    // SAFETY: the pointer and the count describe `polled`, which lives through the call.
    let count =
        unsafe { libc::poll(polled.as_mut_ptr(), polled.len() as libc::nfds_t, patience_ms) };
    if count < 0 {
        let error = io::Error::last_os_error();
        if error.kind() != io::ErrorKind::Interrupted {
            return Err(error);
        }
    }
    Ok(polled.iter().map(|entry| count > 0 && entry.revents != 0).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    #[test]
    fn a_silent_pipe_gives_nothing_and_a_closed_one_its_end() {
        let (reader, mut writer) = io::pipe().unwrap();
        let mut readable = Readable::from_file(File::from(OwnedFd::from(reader)), false).unwrap();
        let mut buffer = [0; 16];
        let patience = Duration::from_millis(1);
        assert_eq!(readable.read(&mut buffer, patience).unwrap(), None);
        writer.write_all(b"abc").unwrap();
        assert_eq!(readable.read(&mut buffer, patience).unwrap(), Some(3));
        drop(writer);
        assert_eq!(readable.read(&mut buffer, patience).unwrap(), Some(0));
    }
}
