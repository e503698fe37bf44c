//! Invariants of the analysis, whatever the series.

use crate::synthetic::{Noise, levels, noisy, seconds};
use base::Random;
use longtake_lab::analysis::{
    ChangeOptions, DipOptions, Point, Segmentation, Series, changes, dips,
};
use proptest::prelude::*;

/// Intervals of any length and bytes, with pauses.
fn any_series() -> impl Strategy<Value = Series> {
    let interval = (1u64..3_000_000_000, prop_oneof![3 => Just(0u64), 1 => 0u64..1_000_000_000]);
    let bytes = prop_oneof![1 => Just(0u64), 6 => 0u64..5_000_000_000];
    proptest::collection::vec((interval, bytes), 1..200).prop_map(|intervals| {
        let mut at = 17;
        let points = intervals.into_iter().map(|((duration_ns, pause_ns), bytes)| {
            let start_ns = at + pause_ns;
            at = start_ns + duration_ns;
            Point { start_ns, duration_ns, bytes }
        });
        Series::new(points.collect()).unwrap()
    })
}

/// A series with up to three steps and noise.
fn stepped_series() -> impl Strategy<Value = Series> {
    let steps = proptest::collection::vec((10usize..290, 2u64..40), 0..4);
    (steps, 0u64..10_000, 0.0f64..0.08, 0.0f64..0.6).prop_map(|(mut steps, seed, sd, memory)| {
        steps.sort_unstable();
        let mut plan = vec![(0, 20e6)];
        plan.extend(steps.into_iter().map(|(at, level)| (at, level as f64 * 1e6)));
        let noise = Noise::Autoregressive(sd, memory);
        seconds(&noisy(&levels(300, &plan), noise, &mut Random::new(seed)))
    })
}

fn find(series: &Series) -> Segmentation {
    changes::find(series, &ChangeOptions::default())
}

fn places(found: &Segmentation) -> Vec<(usize, (usize, usize))> {
    found.changes.iter().map(|c| (c.index, c.index_range)).collect()
}

fn mapped(series: &Series, change: impl Fn(&Point) -> Point) -> Series {
    Series::new(series.points().iter().map(change).collect()).unwrap()
}

proptest! {
    #[test]
    fn cutting_by_bytes_conserves_bytes_and_span(series in any_series(), cells in 1usize..300) {
        let cut = series.by_equal_bytes(cells);
        prop_assert_eq!(cut.total_bytes(), series.total_bytes());
        prop_assert!(cut.len() <= cells);
        prop_assert!(Series::new(cut.points().to_vec()).is_ok());
        if !cut.is_empty() {
            prop_assert_eq!((cut.start_ns(), cut.end_ns()), (series.start_ns(), series.end_ns()));
            let fair = series.total_bytes() / cells as u64;
            // Pieces without a length of their own are the only ones that may be joined.
            if cut.len() == cells {
                prop_assert!(cut.points().iter().all(|p| p.bytes.abs_diff(fair) <= 1));
            }
        }
    }

    #[test]
    fn cutting_by_time_conserves_bytes_and_span(series in any_series(), cells in 1u64..300) {
        let cell_ns = ((series.end_ns() - series.start_ns()) / cells).max(1);
        let cut = series.by_equal_time(cell_ns);
        prop_assert_eq!(cut.total_bytes(), series.total_bytes());
        prop_assert_eq!((cut.start_ns(), cut.end_ns()), (series.start_ns(), series.end_ns()));
        let (_, whole) = cut.points().split_last().unwrap();
        prop_assert!(whole.iter().all(|p| p.duration_ns == cell_ns));
        prop_assert!(Series::new(cut.points().to_vec()).is_ok());
    }

    #[test]
    fn the_worst_window_moves_no_more_than_any(series in any_series(), length in 1u64..5_000_000_000, at in 0.0f64..1.0) {
        if let Some(worst) = series.worst_window(length) {
            let room = series.end_ns() - series.start_ns() - length;
            let from = series.start_ns() + (room as f64 * at) as u64;
            let moved: f64 = series.points().iter().map(|p| {
                let inside = p.end_ns().min(from + length).saturating_sub(p.start_ns.max(from));
                p.bytes as f64 * (inside as f64 / p.duration_ns as f64)
            }).sum();
            prop_assert!(worst.rate * length as f64 / 1e9 <= moved + 1.0 + moved * 1e-9);
        }
    }

    #[test]
    fn segments_cover_the_series_in_order_and_keep_its_bytes(series in any_series()) {
        let found = find(&series);
        prop_assert_eq!(found.segments.len(), found.changes.len() + 1);
        prop_assert_eq!(found.segments[0].first, 0);
        prop_assert_eq!(found.segments.last().unwrap().end, series.len());
        let bytes: u64 = found.segments.iter().map(|s| s.bytes.1 - s.bytes.0).sum();
        prop_assert_eq!(bytes, series.total_bytes());
        for (pair, change) in found.segments.windows(2).zip(&found.changes) {
            prop_assert_eq!(pair[0].end, pair[1].first);
            prop_assert_eq!(change.index, pair[1].first);
            prop_assert_eq!((change.before, change.after), (pair[0].level, pair[1].level));
            prop_assert!(change.index_range.0 < change.index && change.index <= change.index_range.1);
            prop_assert!(change.bytes_range.0 <= change.bytes && change.bytes <= change.bytes_range.1);
            prop_assert!(change.ns_range.0 < change.at_ns && change.at_ns <= change.ns_range.1);
            prop_assert!((0.0..=1.0).contains(&change.confidence));
        }
    }

    #[test]
    fn dips_lie_in_order_below_their_level_and_apart(series in any_series()) {
        let found = dips::find(&series, &find(&series), &DipOptions::default());
        for dip in &found.dips {
            prop_assert!(dip.first < dip.end && dip.end <= series.len());
            prop_assert!(dip.lowest_share < found.summary.threshold.max(0.8));
        }
        for pair in found.dips.windows(2) {
            prop_assert!(pair[0].end < pair[1].first);
        }
        prop_assert!((0.0..=1.0).contains(&found.summary.threshold));
    }

    #[test]
    fn a_drive_that_is_so_many_times_as_fast_changes_at_the_same_places(
        series in stepped_series(), factor in 2u64..1_000,
    ) {
        let faster = mapped(&series, |p| Point { bytes: p.bytes * factor, ..*p });
        let (slow, fast) = (find(&series), find(&faster));
        prop_assert_eq!(places(&slow), places(&fast));
        for (a, b) in slow.segments.iter().zip(&fast.segments) {
            prop_assert!((b.level / a.level / factor as f64 - 1.0).abs() < 1e-9);
        }
        let count = |series: &Series, found: &Segmentation| {
            let options = DipOptions::default();
            dips::find(series, found, &options).dips.iter().map(|d| (d.first, d.end)).collect::<Vec<_>>()
        };
        prop_assert_eq!(count(&series, &slow), count(&faster, &fast));
    }

    #[test]
    fn a_run_at_another_time_has_the_same_changes_at_that_time(
        series in stepped_series(), shift in 1u64..1_000_000_000_000,
    ) {
        let later = mapped(&series, |p| Point { start_ns: p.start_ns + shift, ..*p });
        let (now, then) = (find(&series), find(&later));
        prop_assert_eq!(places(&now), places(&then));
        for (a, b) in now.changes.iter().zip(&then.changes) {
            prop_assert_eq!(a.at_ns + shift, b.at_ns);
            prop_assert_eq!((a.confidence, a.bytes_range), (b.confidence, b.bytes_range));
        }
    }
}
