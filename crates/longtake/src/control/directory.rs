//! Directories that only their owner can enter. What is checked is the open directory, and everything in it is reached
//! through its descriptor, so that nobody can exchange it between the check and the use.

use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use nix::errno::Errno;
use nix::fcntl::{AT_FDCWD, OFlag, openat};
use nix::sys::stat::{FileStat, Mode, fchmod, fstat, mkdirat};
use nix::unistd::{Uid, User};

/// A directory that was checked when it was opened.
#[derive(Debug)]
pub struct PrivateDirectory {
    descriptor: OwnedFd,
    path: PathBuf,
}

impl PrivateDirectory {
    /// Opens a directory of the calling user; creates it first if `create` is set.
    ///
    /// # Errors
    /// If it is missing or can't be created, is a symbolic link, belongs to somebody else, or lets others in.
    pub fn open(path: &Path, create: bool) -> Result<Self> {
        Self::enter(AT_FDCWD, path, path.to_owned(), create, Some(Uid::effective()))
    }

    /// Opens a directory of root's that others may pass through, and can't change.
    ///
    /// # Errors
    /// If it is missing, is a symbolic link, or belongs to somebody else.
    pub fn of_root(path: &Path) -> Result<Self> {
        // Who may pass through it need not be allowed to list it.
        let flags = OFlag::O_PATH | OFlag::O_DIRECTORY | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC;
        let descriptor = openat(AT_FDCWD, path, flags, Mode::empty())
            .with_context(|| format!("opening {}", path.display()))?;
        let directory = Self { descriptor, path: path.to_owned() };
        let found = directory.found()?;
        if found.st_uid != 0 || found.st_mode & 0o022 != 0 {
            bail!("{} is not root's alone", path.display());
        }
        Ok(directory)
    }

    /// Lets others pass through this directory of root's, into directories of their own.
    ///
    /// # Errors
    /// If the system refuses.
    pub fn let_pass(&self) -> Result<()> {
        fchmod(&self.descriptor, Mode::from_bits_truncate(PASSABLE))
            .with_context(|| format!("setting the mode of {}", self.path.display()))
    }

    /// The same for a directory in this one. Root's may belong to anybody: only root can have given it away, to the user
    /// that a recorder of root's became.
    ///
    /// # Errors
    /// As [`PrivateDirectory::open`].
    pub fn open_in(&self, name: &str, create: bool) -> Result<Self> {
        let owner = Some(Uid::effective()).filter(|user| !user.is_root());
        Self::enter(self.as_fd(), Path::new(name), self.path.join(name), create, owner)
    }

    /// Where it was found, for messages.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// A path to `name` in this very directory, short enough for a socket's address.
    pub fn address(&self, name: &str) -> PathBuf {
        PathBuf::from(format!("/proc/self/fd/{}/{name}", self.descriptor.as_raw_fd()))
    }

    fn enter(
        at: BorrowedFd<'_>,
        name: &Path,
        path: PathBuf,
        create: bool,
        owner: Option<Uid>,
    ) -> Result<Self> {
        let mut created = false;
        if create {
            created = match mkdirat(at, name, Mode::S_IRWXU) {
                Ok(()) => true,
                Err(Errno::EEXIST) => false,
                Err(reason) => {
                    return Err(reason).with_context(|| format!("creating {}", path.display()));
                }
            };
        }
        let flags = OFlag::O_DIRECTORY | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC;
        let descriptor =
            openat(at, name, flags, Mode::empty()).map_err(|reason| refused(&path, reason))?;
        if created {
            // The umask may have taken the owner's own rights.
            fchmod(&descriptor, Mode::S_IRWXU)
                .with_context(|| format!("setting the mode of {}", path.display()))?;
        }
        let directory = Self { descriptor, path };
        directory.check(owner)?;
        Ok(directory)
    }

    fn found(&self) -> Result<FileStat> {
        fstat(&self.descriptor).with_context(|| format!("looking at {}", self.path.display()))
    }

    fn check(&self, owner: Option<Uid>) -> Result<()> {
        let found = self.found()?;
        let owned_by = Uid::from_raw(found.st_uid);
        if owner.is_some_and(|owner| owner != owned_by) {
            bail!(foreign(&self.path, owned_by));
        }
        let mode = found.st_mode & 0o7777;
        let is_passable = owned_by.is_root() && mode & 0o777 == PASSABLE;
        if mode & 0o777 != 0o700 && !is_passable {
            bail!(
                "{0} has mode {mode:04o}, so other users could replace the recorder's socket in it: run `chmod 700 {0}`",
                self.path.display()
            );
        }
        Ok(())
    }
}

/// The mode of root's directory, which others pass through.
const PASSABLE: u32 = 0o711;

impl AsFd for PrivateDirectory {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.descriptor.as_fd()
    }
}

/// Why a directory could not be opened, and what to do.
fn refused(path: &Path, reason: Errno) -> anyhow::Error {
    use std::os::unix::fs::MetadataExt;
    let Ok(found) = path.symlink_metadata() else {
        return anyhow::Error::new(reason).context(format!("opening {}", path.display()));
    };
    if found.is_symlink() {
        return anyhow::anyhow!(
            "{} is a symbolic link, and another user may choose where it leads: remove it",
            path.display()
        );
    }
    if !found.is_dir() {
        return anyhow::anyhow!("{} is not a directory: remove it", path.display());
    }
    let owner = Uid::from_raw(found.uid());
    if owner != Uid::effective() {
        return anyhow::Error::msg(foreign(path, owner));
    }
    anyhow::Error::new(reason).context(format!("opening {}", path.display()))
}

fn foreign(path: &Path, owner: Uid) -> String {
    format!(
        "{} belongs to {}, who could answer in the recorder's place: remove it, or set XDG_RUNTIME_DIR to a directory of your own",
        path.display(),
        called(owner)
    )
}

/// A user by name and number.
pub fn called(user: Uid) -> String {
    match User::from_uid(user) {
        Ok(Some(known)) => format!("user {} ({user})", known.name),
        _ => format!("user {user}"),
    }
}
