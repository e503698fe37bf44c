//! What an account says beside its ledger: parity, flow indexes, and what a ring has overwritten.

use base::units::{counted, grouped};
use base::{ByteSize, Timestamp};
use recorder::ParityProgress;

use crate::instant::utc;
use crate::recording::{Account, IndexCounts};

/// What came of a recording besides what its ledger says, in lines.
pub fn recorded_besides(account: &Account) -> Vec<String> {
    let ring = (account.reused_to_ns > 0).then(|| {
        let since = utc(Timestamp::from_nanos(account.reused_to_ns));
        format!("the ring has wrapped: nothing is missing since {since}")
    });
    let parity = account.parity.as_ref().map(parity);
    let index = account.index.as_ref().and_then(indexed);
    parity.into_iter().chain(index).chain(ring).collect()
}

fn parity(progress: &ParityProgress) -> String {
    let short = match progress.chunks_short {
        0 => String::new(),
        short => format!("; LESS OR NONE in {}", counted(short, "chunk")),
    };
    format!(
        "parity {}: {}, {} of parity{short}",
        progress.parity,
        counted(progress.groups, "group"),
        ByteSize(progress.bytes)
    )
}

/// What a recording's flow indexes lack; None if nothing.
fn indexed(counts: &IndexCounts) -> Option<String> {
    let IndexCounts { filled, indexed, chunks_left_out, .. } = *counts;
    (chunks_left_out > 0).then(|| {
        format!(
            "flow indexes: {} of {} have one; {} left out for want of time, which `longtake array index` adds",
            grouped(indexed),
            counted(filled, "full segment"),
            counted(chunks_left_out, "chunk"),
        )
    })
}
