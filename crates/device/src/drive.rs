//! A drive of a bank, and how long what is put to it in one piece may be.

use std::fs::File;
use std::os::fd::AsRawFd;
use std::sync::Arc;

use base::Buffers;

use crate::passthrough::{self, Namespace};
use crate::pool::Pool;
use crate::ring::{Needs, OpenError, RING_ENTRIES_MAX};
use crate::target::{OpenTarget, TargetKind};
use crate::warning::Warning;

/// Pieces of one command that are under way at once.
pub(crate) const PIECES_MAX: u16 = 8;

/// Longest piece for a polled block device in bytes: what one `bio` of Linux carries in any pages
/// (`BIO_MAX_VECS` of 4 KiB).
const POLLED_BYTES_MAX: u64 = 1 << 20;

pub(crate) struct Drive {
    pub(crate) target: OpenTarget,
    /// It is trimmed by the thread, which uses this descriptor, instead of through the ring.
    pub(crate) trim_by_thread: Option<Arc<File>>,
    pub(crate) polled: bool,
    /// Its commands name registered memory, where there is any.
    pub(crate) registers: bool,
    pub(crate) under_way: u32,
    /// Longest read or write, and longest trim, that is one entry, in bytes.
    pub(crate) piece_max_bytes: u64,
    pub(crate) trim_piece_max_bytes: u64,
}

impl Drive {
    pub(crate) fn new(
        target: OpenTarget,
        trim_by_thread: Option<Arc<File>>,
        polled: bool,
        pool: &Pool,
    ) -> Self {
        leave_access_times(&target.file);
        let piece_max_bytes = piece_max_bytes(&target, polled, pool);
        let trim_piece_max_bytes =
            target.namespace.as_ref().map_or(u64::MAX, Namespace::trim_piece_max_bytes);
        Self {
            target,
            trim_by_thread,
            polled,
            registers: true,
            under_way: 0,
            piece_max_bytes,
            trim_piece_max_bytes,
        }
    }

    /// Whether the kernel takes registered memory in commands to it.
    pub(crate) fn can_register(&self) -> bool {
        let target = &self.target;
        let takes = |namespace| passthrough::takes_registered(&target.file, namespace);
        target.namespace.as_ref().is_none_or(takes)
    }
}

/// Has the kernel leave the time of the file's last reading as it is, so that it need not look at each read whether to
/// note it. Only the file's owner and root may ask for that; with others nothing changes.
fn leave_access_times(file: &File) {
    let descriptor = file.as_raw_fd();
    // SAFETY: the calls read and set flags of a descriptor that is open, and name no memory.
    unsafe {
        let flags = libc::fcntl(descriptor, libc::F_GETFL);
        if flags != -1 {
            libc::fcntl(descriptor, libc::F_SETFL, flags | libc::O_NOATIME);
        }
    }
}

/// Longest read or write that is one entry, in bytes. File systems and the block layer cut them as they
/// need, but what the block layer has split can't be polled for; some kernels never finish it.
fn piece_max_bytes(target: &OpenTarget, polled: bool, pool: &Pool) -> u64 {
    let block_bytes = target.geometry.block_bytes;
    match (&target.namespace, &target.unsplit) {
        (Some(namespace), _) => namespace.piece_max_bytes(pool.pages()),
        (None, Some(unsplit)) if polled => {
            unsplit.longest_bytes(pool.pages(), block_bytes).min(POLLED_BYTES_MAX)
        }
        _ => u64::MAX,
    }
}

/// What the rings for these targets must have.
pub(crate) fn needs(
    targets: &[OpenTarget],
    polled: &[bool],
    pool: &Pool,
    depth_max: u32,
) -> Result<Needs, OpenError> {
    let entries_a_depth: u64 = targets
        .iter()
        .zip(polled)
        .map(|(target, &polled)| {
            let longest = u64::from(target.geometry.transfer_max_bytes).min(pool.size() as u64);
            longest.div_ceil(piece_max_bytes(target, polled, pool)).clamp(1, u64::from(PIECES_MAX))
        })
        .sum();
    let entries = entries_a_depth * u64::from(depth_max);
    // Rings have powers of two of them.
    let entries_max = u64::from(RING_ENTRIES_MAX / 2);
    if entries == 0 || entries > entries_max {
        let possible = entries_max / entries_a_depth;
        return Err(OpenError::Depth { depth_max, drives: targets.len(), possible });
    }
    Ok(Needs {
        // And one for the waker's poll.
        entries: entries as u32 + 1,
        wide: targets.iter().any(|target| target.namespace.is_some()),
        polled: false,
    })
}

/// Whether a target that is to be polled can be; if not, that is worth a warning.
pub(crate) fn polls(target: &OpenTarget, warnings: &mut Vec<Warning>) -> bool {
    if !target.polls {
        let name = target.geometry.name.clone();
        warnings.push(Warning::NotPolled { name, file: target.kind == TargetKind::File });
    }
    target.polls
}
