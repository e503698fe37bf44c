//! Prints what a command that reads packets could not read, and what parity recovered.

use base::Timestamp;
use format::Count;
use longtake::array::{OverwrittenPackets, ReadAccount, RecoveredChunks, UnreadablePackets};
use longtake::instant::utc;
use recorder::takes::Gap;

use crate::printer;

/// Prints what could not be read, and what was recovered, on standard error.
pub fn print(account: &ReadAccount) {
    print_recovered(&account.recovered);
    print_overwritten(&account.overwritten);
    print_unreadable(&account.unreadable);
    print_holes(&account.holes);
}

/// Prints what parity recovered on standard error.
pub fn print_recovered(recovered: &RecoveredChunks) {
    if recovered.chunks > 0 {
        printer::tell(&format!(
            "recovered from parity: {}, {}, {}",
            printer::counted(recovered.chunks, "chunk"),
            printer::counted(recovered.bytes, "byte"),
            printer::counted(recovered.count.packets, "packet")
        ));
    }
}

fn print_overwritten(overwritten: &OverwrittenPackets) {
    if let Some((from, to)) = overwritten.span {
        printer::tell(&format!(
            "longtake: warning: the ring overwrote {} from {} to {} before that span was read; \
             --hold keeps a span while it is read",
            printer::counted(overwritten.count.packets, "packet"),
            utc(from),
            utc(to)
        ));
    }
}

fn print_unreadable(unreadable: &UnreadablePackets) {
    for reason in &unreadable.reasons {
        printer::tell(&format!("longtake: unreadable: {reason}"));
    }
    if unreadable.count.packets > 0 {
        printer::tell(&format!(
            "{} could not be read",
            printer::counted(unreadable.count.packets, "packet")
        ));
    }
}

fn print_holes(holes: &[Gap]) {
    let (mut count, mut to_ns) = (Count::ZERO, 0);
    for hole in holes {
        count += hole.count;
        to_ns = to_ns.max(hole.to_ns);
    }
    if !count.is_zero() && to_ns == u64::MAX {
        printer::tell(&format!(
            "longtake: note: the ring has overwritten {}; until when is not known",
            printer::counted(count.packets, "packet")
        ));
    } else if !count.is_zero() {
        printer::tell(&format!(
            "longtake: note: the ring has overwritten {}, the last before {}; --since that time extracts \
             what is complete",
            printer::counted(count.packets, "packet"),
            utc(Timestamp::from_nanos(to_ns))
        ));
    }
}
