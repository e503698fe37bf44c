//! Giving up root once everything is open.

use std::path::PathBuf;

use anyhow::{Context, Result, bail};
use device::target::{self, TargetKind};
use nix::unistd::{Gid, Uid, User, initgroups, setgid, setuid};

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

/// Becomes another user if started by root: `wanted`, else whoever used sudo, else nobody.
/// Returns who.
///
/// # Errors
/// If there is no such user, or the system refuses.
pub fn drop(wanted: Option<&str>) -> Result<Option<String>> {
    if !Uid::effective().is_root() {
        return match wanted {
            Some(user) => bail!("--user {user}: only root can become another user"),
            None => Ok(None),
        };
    }
    let name = wanted
        .map(str::to_owned)
        .or_else(|| std::env::var("SUDO_USER").ok().filter(|user| user != "root"))
        .unwrap_or_else(|| "nobody".to_owned());
    let user = User::from_name(&name)
        .with_context(|| format!("looking up user {name}"))?
        .with_context(|| {
            format!("there is no user {name}: name another with --user, or give --keep-privileges")
        })?;
    if user.uid.is_root() {
        bail!("--user {name} is root: give --keep-privileges to stay root");
    }
    become_user(&name, user.uid, user.gid)
        .with_context(|| format!("giving up root for user {name}"))?;
    if setuid(Uid::from_raw(0)).is_ok() {
        bail!("giving up root for user {name} did not last; not recording as root unasked");
    }
    Ok(Some(name))
}

fn become_user(name: &str, uid: Uid, gid: Gid) -> Result<()> {
    let name = std::ffi::CString::new(name)?;
    initgroups(&name, gid)?;
    setgid(gid)?;
    setuid(uid)?;
    Ok(())
}
