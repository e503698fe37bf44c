//! A fill that was measured elsewhere: the same judgement of its series as of our own.

use super::{Emptied, FillResult, Rests, sustained, worst};
use crate::analysis::{self, FillInput, Series};
use crate::experiment::curve;
use crate::profiling;

/// Seconds are told apart if intervals are about as short.
const SECOND_NS: u64 = 1_000_000_000;
const SECOND_MAX_NS: u64 = 1_100_000_000;

impl FillResult {
    /// What writing an empty drive and writing over it show. `block_bytes` is the length of writes, 0 if it isn't known; either
    /// series may be empty.
    pub fn of_series(
        drive: &str,
        capacity_bytes: u64,
        block_bytes: u64,
        empty: &Series,
        overwrite: &Series,
    ) -> Self {
        let empty = curve::resolved(empty, block_bytes);
        let over = curve::resolved(overwrite, block_bytes);
        let fill = analysis::fill::judge(&FillInput {
            overwrite: (!over.is_empty()).then_some(&over),
            ..FillInput::new(capacity_bytes, &empty)
        });
        let passes = [&empty, &over];
        let lengths = passes.iter().flat_map(|series| series.points()).map(|p| p.duration_ns);
        let seconds = {
            let mut lengths: Vec<u64> = lengths.collect();
            lengths.sort_unstable();
            lengths.get(lengths.len() / 2).is_some_and(|typical| *typical <= SECOND_MAX_NS)
        };
        let shares = vec![empty.total_bytes()];
        Self {
            drives: vec![drive.to_owned()],
            block_bytes,
            region_bytes: capacity_bytes,
            cut_to_ns: None,
            emptied: Emptied::AsFound("it was measured elsewhere".to_owned()),
            sustained: sustained(&passes),
            worst_second: if seconds { worst(&passes, SECOND_NS) } else { None },
            rests: Rests {
                recovery: None,
                bursts: Vec::new(),
                left_out: Some("rests were not measured".to_owned()),
            },
            empty: curve::thinned(&empty),
            overwrite: curve::thinned(&over),
            steps: profiling::fill_steps(&empty),
            fill,
            shares,
            held: Vec::new(),
            notes: Vec::new(),
        }
    }
}
