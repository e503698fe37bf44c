//! Latency summaries as columns for files.

use load::measurement::{LatencySummary, PERCENTILES};

use crate::series::Columns;

/// Adds count, mean, extremes and percentiles, all in nanoseconds, to `columns`; names begin with `prefix`. A row without a
/// summary has none of them.
pub(super) fn columns<'a>(
    columns: Columns,
    prefix: &str,
    summaries: impl Iterator<Item = Option<&'a LatencySummary>>,
) -> Columns {
    let summaries: Vec<_> = summaries.collect();
    let all = || summaries.iter().copied();
    let name = |what: &str| format!("{prefix}{what}");
    let columns = columns
        .integers(&name("count"), "", all().map(|s| s.map(|s| s.count)))
        .floats(&name("mean"), "ns", all().map(|s| s.and_then(|s| s.mean_ns)))
        .integers(&name("min"), "ns", all().map(|s| s.and_then(|s| s.min_ns)));
    let columns = PERCENTILES.into_iter().fold(columns, |columns, percent| {
        let value = |s: Option<&LatencySummary>| s.and_then(|s| s.percentile(percent));
        columns.integers(&name(&format!("p{percent}")), "ns", all().map(value))
    });
    columns.integers(&name("max"), "ns", all().map(|s| s.and_then(|s| s.max_ns)))
}
