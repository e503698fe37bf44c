//! Curves of a design: how they come out depends on one number at a time.

use serde::Serialize;

use crate::limits::Case;

/// Points of pictures, as pairs.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Series {
    /// What the array can write over what it has to, against seconds since the start with empty drives: a step at each phase.
    pub headroom_by_s: Vec<(f64, f64)>,
    /// Drives in all against the rate in bytes a second; None where no number will do.
    pub drives_by_rate: Vec<(f64, Option<u32>)>,
    /// Bytes of buffers against drives for data; None where no buffer will do.
    pub buffer_by_drives: Vec<(u32, Option<f64>)>,
}

/// Rates from a tenth of what is required to twice as much.
const RATES: u32 = 20;
/// Points of a curve over drives, at most.
const COUNTS: u32 = 64;

impl Series {
    /// Of a case with so many drives for data.
    pub fn of(case: &Case<'_>, data: u32) -> Self {
        Self {
            headroom_by_s: headroom(case, data),
            drives_by_rate: (1..=RATES).map(|step| by_rate(case, f64::from(step) / 10.0)).collect(),
            buffer_by_drives: by_drives(case, data),
        }
    }
}

fn headroom(case: &Case<'_>, data: u32) -> Vec<(f64, f64)> {
    let offered = case.load.offered_bytes_per_s;
    let count = f64::from(data);
    let mut points = Vec::new();
    let mut start_s = 0.0;
    for phase in case.subject.phases.reached(case.fill(data)) {
        let ratio = phase.mean_bytes_per_s * count * case.left(data) / offered;
        points.push((start_s, ratio));
        let capacity = case.subject.candidate.profile.capacity_bytes as f64;
        // A ring that goes round is shown for as long again as it took to fill.
        let end = phase.ends_at_bytes.unwrap_or(2.0 * capacity).min(case.fill(data));
        let end_s = (end * count / offered).max(start_s);
        points.push((end_s, ratio));
        start_s = end_s;
    }
    points
}

fn by_rate(case: &Case<'_>, share: f64) -> (f64, Option<u32>) {
    let mut requirement = case.requirement.clone();
    requirement.rate.0 *= share;
    let more = requirement.parity + requirement.spare;
    let sizing = Case::new(&requirement, case.subject).size(requirement.placement);
    (requirement.rate.0, sizing.answer.map(|(data, _)| data + more))
}

fn by_drives(case: &Case<'_>, data: u32) -> Vec<(u32, Option<f64>)> {
    let most = data.saturating_mul(2).max(4);
    let step = most.div_ceil(COUNTS);
    (1..=most)
        .step_by(step as usize)
        .map(|drives| {
            let buffer = case.buffer_bytes(drives, case.requirement.placement);
            let sustained = case.sustains(drives, case.requirement.placement);
            (drives, (buffer.is_finite() && sustained).then_some(buffer))
        })
        .collect()
}
