//! How an array is opened.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use ::target::array::resolve;
use ::target::authorize;
use anyhow::bail;
use base::ByteSize;
use device::safety::Purpose;
use device::target::{Access, is_locked};
use recorder::ArrayImage;

use super::Array;
use super::open::{self, READ_MEMORY_BYTES, Tell};
use crate::{Remark, Result};

/// How to open an array.
///
/// The default opens it for reading with 128 MiB of buffers at most, fails if a member is missing, and drops remarks.
#[derive(Default)]
pub struct ArrayOptions {
    degraded: bool,
    memory: Option<ByteSize>,
    without: Option<PathBuf>,
    repair: bool,
    seen: Option<Seen>,
    tell: Option<Tell>,
}

/// What an array held when it was looked at.
#[derive(Clone, Debug)]
pub struct Seen(pub(super) Arc<ArrayImage>);

impl ArrayOptions {
    /// Opens the array even if members are missing or unusable. Parity recovers what they held, as far as there is any.
    #[must_use]
    pub fn degraded(mut self, degraded: bool) -> Self {
        self.degraded = degraded;
        self
    }

    /// Memory for chunks that are read ahead, at most: a reader takes what keeps the array's drives busy.
    #[must_use]
    pub fn memory(mut self, memory: ByteSize) -> Self {
        self.memory = Some(memory);
        self
    }

    /// Leaves out this target, whatever it holds: a member is to be rebuilt onto it.
    #[must_use]
    pub fn without(mut self, target: &Path) -> Self {
        self.without = Some(target.to_owned());
        self
    }

    /// Opens the array for writing, so that [`Array::scrub`] may repair it. Nobody may be recording on it, and nobody can until it
    /// is dropped.
    #[must_use]
    pub fn repair(mut self, repair: bool) -> Self {
        self.repair = repair;
        self
    }

    /// Does not read again what an earlier look at the array has found, where that still stands. Without it, the segments that are
    /// being filled are read whole.
    #[must_use]
    pub fn seen(mut self, seen: Option<Seen>) -> Self {
        self.seen = seen;
        self
    }

    /// Hands remarks to this function as they come up: a member is out of date, a target was left out.
    #[must_use]
    pub fn on_remark(mut self, tell: impl FnMut(Remark) + Send + 'static) -> Self {
        self.tell = Some(Box::new(tell));
        self
    }

    /// Opens the array of this name.
    ///
    /// # Errors
    /// If nothing of that name is found, a member can't be opened, or one is missing.
    pub fn open(self, name: &str) -> Result<Array> {
        let targets = resolve(name).map_err(anyhow::Error::from)?;
        Ok(self.open_targets(targets, name.to_owned())?)
    }

    /// Opens the array with these members.
    ///
    /// # Errors
    /// If a member can't be opened, or one is missing.
    pub fn open_members(self, targets: &[PathBuf]) -> Result<Array> {
        let names: Vec<String> = targets.iter().map(|path| path.display().to_string()).collect();
        Ok(self.open_targets(targets.to_vec(), names.join(","))?)
    }

    fn open_targets(self, mut targets: Vec<PathBuf>, name: String) -> anyhow::Result<Array> {
        let Self { degraded, memory, without, repair, seen, tell } = self;
        if let Some(without) = &without {
            targets.retain(|target| !is_same(target, without));
        }
        let memory_bytes = memory.map_or(READ_MEMORY_BYTES, |memory| memory.0);
        let repair = repair.then(|| claim(&targets)).transpose()?;
        let access = access(repair.is_some());
        let tell = tell.unwrap_or_else(|| Box::new(|_| ()));
        let seen = seen.as_ref().map(|seen| &*seen.0);
        let opened = open::open_seen(&targets, access, (memory_bytes, 0), degraded, seen, tell)?;
        Ok(Array { opened, name, targets, degraded, memory_bytes, repair })
    }
}

impl Array {
    /// Sees what has changed since the array was opened.
    pub(super) fn reopen(&mut self) -> anyhow::Result<()> {
        if self.repair.is_some() || self.is_simulated() {
            // Its members are this array's own: they can't be opened again, and nobody else has changed them.
            return self.opened.read_again();
        }
        self.open_again(Access::Read)
    }

    pub(super) fn reopen_for_repair(&mut self) -> anyhow::Result<()> {
        if self.is_simulated() {
            return Ok(());
        }
        self.repair = Some(claim(&self.targets)?);
        self.open_again(access(true))
    }

    /// Ends the claim to the members that a repair needs.
    pub(super) fn reopen_to_read(&mut self) -> anyhow::Result<()> {
        match self.repair.take() {
            Some(_) => self.open_again(Access::Read),
            None => Ok(()),
        }
    }

    fn open_again(&mut self, access: Access) -> anyhow::Result<()> {
        let tell = self.opened.take_tell();
        // Whoever writes looks for itself.
        let seen = (access == Access::Read).then(|| self.opened.image.clone());
        let buffers = (self.memory_bytes, 0);
        let Self { targets, degraded, .. } = self;
        self.opened = open::open_seen(targets, access, buffers, *degraded, seen.as_ref(), tell)?;
        Ok(())
    }
}

/// How an array's members are opened: what is to be repaired is claimed already.
fn access(repair: bool) -> Access {
    if repair { Access::Write { exclusive: false } } else { Access::Read }
}

/// Claims the members of an array that is to be repaired, unless somebody records on it.
fn claim(targets: &[PathBuf]) -> anyhow::Result<Vec<Option<device::safety::Authorized>>> {
    for target in targets {
        if is_locked(target)? {
            bail!(
                "{}: the array is being recorded on, and nothing was written: try again after the recording (a scrub without --repair need not wait)",
                target.display()
            );
        }
    }
    Ok(authorize(targets, &[], Purpose::Continue, false)?)
}

/// The same file or device, as far as paths tell.
pub(super) fn is_same(one: &Path, other: &Path) -> bool {
    match (one.canonicalize(), other.canonicalize()) {
        (Ok(one), Ok(other)) => one == other,
        _ => one == other,
    }
}
