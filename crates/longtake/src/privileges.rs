//! Giving up root once everything is open, and with it all that a recorder has no more use for.

use std::ffi::CString;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, anyhow, bail};
use caps::CapSet;
use device::target::{self, TargetKind};
use landlock::{
    ABI, Access, AccessFs, AccessNet, PathBeneath, PathFd, Ruleset, RulesetAttr,
    RulesetCreatedAttr, RulesetStatus, Scope, path_beneath_rules,
};
use nix::errno::Errno;
use nix::fcntl::{AT_FDCWD, AtFlags};
use nix::sys::prctl;
use nix::sys::resource::{Resource, setrlimit};
use nix::unistd::{
    AccessFlags, Uid, User, faccessat, initgroups, setfsgid, setfsuid, setgid, setuid,
};

use crate::control::Control;

/// The user that a recorder becomes if there is one of this name.
const DEDICATED_USER: &str = "longtake";

/// The version of Landlock that the rules are written for (Linux 6.12). Older kernels enforce what they know of them.
const LANDLOCK: ABI = ABI::V6;

/// What the C library reads when a filter expression names a host, a port or a protocol.
const NAME_SERVICE: [&str; 7] = ["/etc", "/lib", "/lib64", "/run", "/usr", "/var/lib", "/var/run"];

/// Whether these targets can be used without root once they are open.
///
/// # Errors
/// If one can't, and root would be given up.
pub fn can_be_given_up(targets: &[PathBuf]) -> Result<()> {
    let passthrough = |path: &&PathBuf| target::kind(path).ok() == Some(TargetKind::Passthrough);
    if Uid::effective().is_root()
        && let Some(path) = targets.iter().find(passthrough)
    {
        // Linux 6.2 and later let others pass, if the drive tells what its commands do.
        bail!(
            "{}: kernels ask for root again at every NVMe passthrough command; give --keep-privileges, or name the block device of the same namespace",
            path.display()
        );
    }
    Ok(())
}

/// The user that a recorder becomes if root has started it: `wanted`, else whoever used sudo, else `longtake` if there is such
/// a user, else `nobody`. None if it was not started by root.
///
/// # Errors
/// If there is no such user, or it is root, or only root could become it.
pub fn successor(wanted: Option<&str>) -> Result<Option<User>> {
    if !Uid::effective().is_root() {
        return match wanted {
            Some(user) => bail!("--user {user}: only root can become another user"),
            None => Ok(None),
        };
    }
    let look_up = |name: &str| match User::from_name(name) {
        // Where there is no list of users there is no such user.
        Err(Errno::ENOENT | Errno::ESRCH) => Ok(None),
        user => user.with_context(|| format!("looking up user {name}")),
    };
    let sudo = std::env::var("SUDO_USER").ok().filter(|user| user != "root");
    let name = match wanted.map(str::to_owned).or(sudo) {
        Some(name) => name,
        None if look_up(DEDICATED_USER)?.is_some() => DEDICATED_USER.to_owned(),
        None => "nobody".to_owned(),
    };
    let user = look_up(&name)?.with_context(|| {
        format!("there is no user {name}: name another with --user, or give --keep-privileges")
    })?;
    if user.uid.is_root() {
        bail!("--user {name} is root: give --keep-privileges to stay root");
    }
    Ok(Some(user))
}

/// Becomes another user for good, without any capability. To be called before threads are started: capabilities belong to
/// each thread.
///
/// # Errors
/// If the system refuses, or root could be had back.
pub fn become_user(user: &User) -> Result<()> {
    let name = &user.name;
    // Only a thread with CAP_SETPCAP can empty its bounding set, so this comes first. A container's root may lack it, and then
    // no_new_privs alone keeps capabilities away.
    caps::clear(None, CapSet::Bounding).ok();
    let context = || format!("giving up root for user {name}");
    initgroups(&CString::new(name.as_str())?, user.gid).with_context(context)?;
    setgid(user.gid).with_context(context)?;
    setuid(user.uid).with_context(context)?;
    if setuid(Uid::from_raw(0)).is_ok() {
        bail!("giving up root for user {name} did not last; not recording as root unasked");
    }
    for set in [CapSet::Ambient, CapSet::Inheritable] {
        caps::clear(None, set).with_context(context)?;
    }
    Ok(())
}

/// Who a recorder that makes files is once its source is open.
#[derive(Debug)]
pub enum FileMaker {
    /// Whoever started it.
    Same,
    /// The user that root becomes.
    User(User),
    /// Root without any capability, because the user that it would become can't make files there.
    Root {
        /// That user.
        instead_of: String,
    },
}

impl FileMaker {
    /// The one for files in a folder. `wanted` is the user that was asked for.
    ///
    /// # Errors
    /// As [`successor`], or if `wanted` can't make files there.
    pub fn find(wanted: Option<&str>, folder: &Path) -> Result<Self> {
        let Some(user) = successor(wanted)? else { return Ok(Self::Same) };
        if can_make_files(Some(&user), folder)? {
            return Ok(Self::User(user));
        }
        if let Some(name) = wanted {
            bail!(
                "--user {name}: that user can't make files in {}: name another folder or user, or give --keep-privileges",
                folder.display()
            );
        }
        Ok(Self::Root { instead_of: user.name })
    }

    /// The user that root becomes, if it becomes one.
    pub const fn user(&self) -> Option<&User> {
        match self {
            Self::User(user) => Some(user),
            Self::Same | Self::Root { .. } => None,
        }
    }

    /// Becomes it, for good.
    ///
    /// # Errors
    /// If the system refuses.
    pub fn become_it(&self) -> Result<()> {
        match self {
            Self::Same => Ok(()),
            Self::User(user) => become_user(user),
            Self::Root { .. } => {
                // As for another user, a container's root may not be allowed to empty this one.
                caps::clear(None, CapSet::Bounding).ok();
                for set in
                    [CapSet::Ambient, CapSet::Inheritable, CapSet::Effective, CapSet::Permitted]
                {
                    caps::clear(None, set).context("giving up root's capabilities")?;
                }
                Ok(())
            }
        }
    }

    /// What the user may want to know of it.
    pub fn remark(&self, folder: &Path) -> Option<String> {
        match self {
            Self::Same => None,
            Self::User(user) => {
                Some(format!("everything is open; continuing as user {}", user.name))
            }
            Self::Root { instead_of } => Some(format!(
                "user {instead_of} can't make files in {}: continuing as root without capabilities; --user names another user",
                folder.display()
            )),
        }
    }
}

/// Whether a user may make files in a folder; None asks for this process. Root's other groups count as the user's own.
pub(crate) fn can_make_files(user: Option<&User>, folder: &Path) -> Result<bool> {
    // In a thread of its own: the user for access to files belongs to each thread.
    let asked = std::thread::scope(|scope| {
        let ask = || {
            if let Some(user) = user {
                setfsgid(user.gid);
                setfsuid(user.uid);
            }
            let access = AccessFlags::W_OK | AccessFlags::X_OK;
            faccessat(AT_FDCWD, folder, access, AtFlags::AT_EACCESS)
        };
        scope.spawn(ask).join()
    });
    match asked.map_err(|_| anyhow!("the thread that tries a folder panicked"))? {
        Ok(()) => Ok(true),
        Err(Errno::EACCES | Errno::EPERM | Errno::EROFS) => Ok(false),
        Err(reason) => Err(reason).with_context(|| format!("trying {}", folder.display())),
    }
}

/// Confines the process to what it has open: no new privileges, no core dumps, no files but those named here and those in `folders`, no
/// TCP connections. To be called before threads are started, because each thread is confined by itself.
///
/// # Errors
/// If the system refuses. A kernel without Landlock confines what it can; the status tells what Landlock enforces.
pub fn confine(
    control: Option<&Control>,
    folders: &[&Path],
    looks_up_names: bool,
) -> Result<RulesetStatus> {
    // A core dump would hold packets.
    setrlimit(Resource::RLIMIT_CORE, 0, 0).context("ruling out core dumps")?;
    prctl::set_dumpable(false).context("ruling out core dumps")?;
    prctl::set_no_new_privs().context("ruling out new privileges")?;
    restrict(control, folders, looks_up_names).context("confining the recorder with Landlock")
}

/// Landlock's part. What is open stays usable: drives, capture sockets, standard output.
fn restrict(
    control: Option<&Control>,
    folders: &[&Path],
    looks_up_names: bool,
) -> Result<RulesetStatus> {
    let reading = AccessFs::ReadFile | AccessFs::ReadDir;
    // The kernel's counts of dropped packets are read from `/proc/net` time and again.
    let mut readable = vec!["/proc"];
    if looks_up_names {
        readable.extend(NAME_SERVICE);
    }
    if !folders.is_empty() {
        // Who uses a file that is to be replaced.
        readable.push("/sys");
    }
    let mut ruleset = Ruleset::default()
        .handle_access(AccessFs::from_all(LANDLOCK))?
        .handle_access(AccessNet::from_all(LANDLOCK))?
        .scope(Scope::from_all(LANDLOCK))?
        .create()?
        .add_rules(path_beneath_rules(readable, reading))?;
    if let Some((directory, base)) = control.map(Control::directories) {
        ruleset = ruleset
            .add_rule(PathBeneath::new(directory, AccessFs::RemoveFile))?
            .add_rule(PathBeneath::new(base, AccessFs::RemoveDir))?;
    }
    for &folder in folders {
        let writing =
            AccessFs::WriteFile | AccessFs::MakeReg | AccessFs::RemoveFile | AccessFs::Truncate;
        ruleset = ruleset.add_rule(PathBeneath::new(PathFd::new(folder)?, reading | writing))?;
    }
    Ok(ruleset.restrict_self()?.ruleset)
}

#[cfg(test)]
mod tests {
    use std::fs::{self, File};
    use std::io::ErrorKind::PermissionDenied;
    use std::net::{TcpListener, TcpStream};
    use std::path::Path;
    use std::process::Command;

    use nix::errno::Errno;
    use nix::fcntl::AtFlags;
    use nix::sys::stat::fstatat;

    use super::*;

    /// What the confined thread of a recorder may and may not do.
    fn try_everything(control: Control, folder: &Path, looks_up_names: bool) {
        let (old, new) = (folder.join("old"), folder.join("new"));
        fs::write(&old, "precious").unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        if confine(Some(&control), &[], looks_up_names).unwrap() == RulesetStatus::NotEnforced {
            // A kernel without Landlock: there is nothing to try.
            return;
        }
        let denied = |tried: std::io::Result<()>| {
            assert_eq!(tried.unwrap_err().kind(), PermissionDenied);
        };
        denied(File::create(&new).map(drop));
        denied(File::options().write(true).open(&old).map(drop));
        denied(File::open(&old).map(drop));
        denied(fs::remove_file(&old));
        denied(fs::create_dir(&new));
        denied(Command::new("/bin/true").status().map(drop));
        denied(TcpStream::connect(listener.local_addr().unwrap()).map(drop));
        denied(TcpListener::bind("127.0.0.1:0").map(drop));
        File::open("/proc/net/softnet_stat").unwrap();
        assert_eq!(File::open("/etc/passwd").is_ok(), looks_up_names);
        // Its own socket it can remove.
        let (directory, _) = control.directories();
        let directory = directory.try_clone_to_owned().unwrap();
        fstatat(&directory, "control.sock", AtFlags::empty()).unwrap();
        drop(control);
        assert_eq!(
            fstatat(&directory, "control.sock", AtFlags::empty()).map(drop),
            Err(Errno::ENOENT)
        );
    }

    #[test]
    fn a_confined_thread_opens_no_files_starts_no_programs_and_makes_no_connections() {
        // Both before the process may no longer look at itself.
        let bind = |names| (names, Control::bind(uuid::Uuid::new_v4()).unwrap());
        for (looks_up_names, control) in [false, true].map(bind) {
            let folder = tempfile::tempdir().unwrap();
            std::thread::scope(|scope| {
                scope
                    .spawn(|| try_everything(control, folder.path(), looks_up_names))
                    .join()
                    .unwrap();
            });
        }
    }
}
