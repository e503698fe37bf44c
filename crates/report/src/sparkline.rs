//! A series in one line of a terminal, by block characters.

use crate::axis::short;

const BLOCKS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

/// A series as blocks in at most `width` characters, from its least value (lowest block) to its greatest.
/// A character that stands for several values shows the one farthest from the median, so that a dip or
/// peak of a single value is seen. What isn't known is a space.
pub fn sparkline(values: &[Option<f64>], width: usize) -> String {
    let Some(extent) = Extent::of(values) else {
        return " ".repeat(values.len().min(width));
    };
    let buckets = values.len().min(width);
    (0..buckets)
        .map(|n| {
            let bucket = &values[n * values.len() / buckets..(n + 1) * values.len() / buckets];
            known(bucket)
                .max_by(|a, b| (a - extent.median).abs().total_cmp(&(b - extent.median).abs()))
                .map_or(' ', |value| extent.block(value))
        })
        .collect()
}

/// The same between its least and greatest value, in at most `width` characters altogether:
/// `0.41 ▇▇▇▇▃▃▁▃ 6.8 GB/s`. The blocks go first when there is no room for all.
pub fn labelled_sparkline(values: &[Option<f64>], unit: &str, width: usize) -> String {
    let Some(extent) = Extent::of(values) else {
        return "not known".chars().take(width).collect();
    };
    let low = short(extent.low);
    let high =
        if unit.is_empty() { short(extent.high) } else { format!("{} {unit}", short(extent.high)) };
    let room = width.saturating_sub(low.chars().count() + high.chars().count() + 2);
    if room == 0 {
        return format!("{low}–{high}").chars().take(width).collect();
    }
    format!("{low} {} {high}", sparkline(values, room))
}

struct Extent {
    low: f64,
    median: f64,
    high: f64,
}

impl Extent {
    /// None if nothing is known.
    fn of(values: &[Option<f64>]) -> Option<Self> {
        let mut sorted: Vec<f64> = known(values).collect();
        sorted.sort_unstable_by(f64::total_cmp);
        let (low, high) = (*sorted.first()?, *sorted.last()?);
        Some(Self { low, median: sorted[sorted.len() / 2], high })
    }

    fn block(&self, value: f64) -> char {
        if self.high <= self.low {
            // Flat is neither low nor high.
            return BLOCKS[BLOCKS.len() / 2 - 1];
        }
        let share = (value - self.low) / (self.high - self.low);
        BLOCKS[((share * BLOCKS.len() as f64) as usize).min(BLOCKS.len() - 1)]
    }
}

fn known(values: &[Option<f64>]) -> impl Iterator<Item = f64> + '_ {
    values.iter().flatten().copied().filter(|v| v.is_finite())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(values: impl IntoIterator<Item = f64>) -> Vec<Option<f64>> {
        values.into_iter().map(Some).collect()
    }

    #[test]
    fn values_become_blocks_from_least_to_greatest() {
        assert_eq!(sparkline(&all((0..8).map(f64::from)), 80), "▁▂▃▄▅▆▇█");
        assert_eq!(sparkline(&all([3.0, 3.0, 3.0]), 80), "▄▄▄");
        assert_eq!(sparkline(&[Some(1.0), None, Some(f64::NAN), Some(2.0)], 80), "▁  █");
        assert_eq!(sparkline(&[None, None], 80), "  ");
        assert_eq!(sparkline(&[], 80), "");
    }

    #[test]
    fn a_single_dip_or_peak_is_seen_at_any_width() {
        for (odd, block) in [(0.0, '▁'), (9.0, '█')] {
            let mut values = all(vec![5.0; 10_000]);
            values[6_543] = Some(odd);
            for width in [1, 7, 80] {
                let line = sparkline(&values, width);
                assert_eq!(line.chars().count(), width);
                assert!(line.contains(block), "{line}");
            }
        }
    }

    #[test]
    fn a_labelled_line_keeps_within_its_width() {
        let values = all((0..500).map(|i| f64::from(i % 50) / 7.0));
        for width in 0..100 {
            let line = labelled_sparkline(&values, "GB/s", width);
            assert!(line.chars().count() <= width, "{width}: {line}");
        }
        assert_eq!(labelled_sparkline(&all([0.41, 6.8]), "GB/s", 40), "0.41 ▁█ 6.8 GB/s");
        assert_eq!(labelled_sparkline(&[None], "GB/s", 40), "not known");
    }
}
