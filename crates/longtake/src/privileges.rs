//! Giving up root once everything is open, and with it all that a recorder has no more use for.

use std::ffi::CString;
use std::path::PathBuf;

use anyhow::{Context, Result, bail};
use caps::CapSet;
use device::target::{self, TargetKind};
use landlock::{
    ABI, Access, AccessFs, AccessNet, PathBeneath, Ruleset, RulesetAttr, RulesetCreatedAttr,
    RulesetStatus, Scope, path_beneath_rules,
};
use nix::errno::Errno;
use nix::sys::prctl;
use nix::sys::resource::{Resource, setrlimit};
use nix::unistd::{Uid, User, initgroups, setgid, setuid};

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

/// Confines the process to what it has open: no new privileges, no core dumps, no files but those named here, no TCP connections.
/// To be called before threads are started, because each thread is confined by itself.
///
/// # Errors
/// If the system refuses. A kernel without Landlock confines what it can; the status tells what Landlock enforces.
pub fn confine(control: &Control, looks_up_names: bool) -> Result<RulesetStatus> {
    // A core dump would hold packets.
    setrlimit(Resource::RLIMIT_CORE, 0, 0).context("ruling out core dumps")?;
    prctl::set_dumpable(false).context("ruling out core dumps")?;
    prctl::set_no_new_privs().context("ruling out new privileges")?;
    restrict(control, looks_up_names).context("confining the recorder with Landlock")
}

/// Landlock's part. What is open stays usable: drives, capture sockets, standard output.
fn restrict(control: &Control, looks_up_names: bool) -> Result<RulesetStatus> {
    let reading = AccessFs::ReadFile | AccessFs::ReadDir;
    let (directory, base) = control.directories();
    // The kernel's counts of dropped packets are read from `/proc/net` time and again.
    let mut readable = vec!["/proc"];
    if looks_up_names {
        readable.extend(NAME_SERVICE);
    }
    let status = Ruleset::default()
        .handle_access(AccessFs::from_all(LANDLOCK))?
        .handle_access(AccessNet::from_all(LANDLOCK))?
        .scope(Scope::from_all(LANDLOCK))?
        .create()?
        .add_rules(path_beneath_rules(readable, reading))?
        .add_rule(PathBeneath::new(directory, AccessFs::RemoveFile))?
        .add_rule(PathBeneath::new(base, AccessFs::RemoveDir))?
        .restrict_self()?;
    Ok(status.ruleset)
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
        if confine(&control, looks_up_names).unwrap() == RulesetStatus::NotEnforced {
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
