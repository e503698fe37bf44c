//! What a command that reads packets could not read, and what parity recovered: a line for each.

use base::Timestamp;
use base::units::counted;
use format::Count;

use crate::array::{Gap, OverwrittenPackets, ReadAccount, RecoveredChunks, UnreadablePackets};
use crate::instant::utc;

/// What could not be read, and what was recovered; empty if everything was read as it was recorded.
pub fn unread(account: &ReadAccount) -> Vec<String> {
    let mut lines = recovered_chunks(&account.recovered);
    lines.extend(overwritten(&account.overwritten));
    lines.extend(unreadable(&account.unreadable));
    lines.extend(holes(&account.holes));
    lines
}

/// What is missing from the takes.
pub fn missing(missing: Count) -> Option<String> {
    (missing.packets > 0).then(|| {
        format!(
            "missing from the takes in this span: {}; `longtake ledger` names the gaps",
            counted(missing.packets, "packet")
        )
    })
}

/// What parity recovered.
pub fn recovered_chunks(recovered: &RecoveredChunks) -> Vec<String> {
    let line = || {
        format!(
            "recovered from parity: {}, {}, {}",
            counted(recovered.chunks, "chunk"),
            counted(recovered.bytes, "byte"),
            counted(recovered.count.packets, "packet")
        )
    };
    (recovered.chunks > 0).then(line).into_iter().collect()
}

fn overwritten(overwritten: &OverwrittenPackets) -> Option<String> {
    let (from, to) = overwritten.span?;
    Some(format!(
        "longtake: warning: the ring overwrote {} from {} to {} before that span was read; \
         --hold keeps a span while it is read",
        counted(overwritten.count.packets, "packet"),
        utc(from),
        utc(to)
    ))
}

fn unreadable(unreadable: &UnreadablePackets) -> Vec<String> {
    let reasons = unreadable.reasons.iter();
    let mut lines: Vec<String> =
        reasons.map(|reason| format!("longtake: unreadable: {reason}")).collect();
    if unreadable.count.packets > 0 {
        lines.push(format!("{} could not be read", counted(unreadable.count.packets, "packet")));
    }
    lines
}

fn holes(holes: &[Gap]) -> Option<String> {
    let (mut count, mut to_ns) = (Count::ZERO, 0);
    for hole in holes {
        count += hole.count;
        to_ns = to_ns.max(hole.to_ns);
    }
    let packets = counted(count.packets, "packet");
    if count.is_zero() {
        return None;
    }
    if to_ns == u64::MAX {
        return Some(format!(
            "longtake: note: the ring has overwritten {packets}; until when is not known"
        ));
    }
    Some(format!(
        "longtake: note: the ring has overwritten {packets}, the last before {}; --since that time selects \
         what is complete",
        utc(Timestamp::from_nanos(to_ns))
    ))
}
