//! Grids of points over block size and one other quality: as heat maps that share their colours over runs, and as ratios to
//! the first run.

use super::found::Found;
use super::quantity::Quantity;
use crate::axis::{Axis, Scale};
use crate::picture::{Heat, Kind, Picture};

/// What a grid shows, and how it is read out of a result.
pub(super) struct Grid<'a, R> {
    /// The picture's title.
    pub title: &'a str,
    /// What to see in it.
    pub caption: &'a str,
    /// What the columns vary.
    pub columns: &'a str,
    /// The columns: a name and a key.
    pub column_keys: Vec<(String, u32)>,
    /// Block sizes in bytes.
    pub blocks: Vec<u64>,
    /// What a value is.
    pub value: &'a str,
    /// What values count.
    pub unit: lab::Unit,
    /// How colours follow values.
    pub scale: Scale,
    /// The value at a block size and column.
    pub at: fn(&R, u64, u32) -> Option<f64>,
}

impl<R> Grid<'_, R> {
    /// A heat map for each run, and for every run after the first one of its ratios to it.
    pub fn pictures(&self, found: &[Found<'_, R>]) -> Vec<Picture> {
        let all = || found.iter().flat_map(|run| self.values(run.result)).flatten().flatten();
        let known = || all().filter(|value| self.scale.place(*value).is_some());
        let Some(greatest) = known().reduce(f64::max) else { return Vec::new() };
        let least = known().fold(greatest, f64::min);
        let quantity = Quantity::of(self.unit, all());
        // With one run the colours are its own; with several the same colour is the same value.
        let shared = |value: f64| (found.len() > 1).then(|| quantity.show(value));
        let value = Axis {
            scale: self.scale,
            minimum: shared(least),
            maximum: shared(greatest),
            ..quantity.axis(self.value)
        };
        let picture = |run: &Found<'_, R>| {
            let show = |value: Option<f64>| value.map(|value| quantity.show(value));
            let rows = self.values(run.result);
            let values = rows.into_iter().map(|row| row.into_iter().map(show).collect()).collect();
            Picture::new(
                run.title(found, self.title),
                self.caption,
                self.heat(values, value.clone()),
            )
        };
        let mut pictures: Vec<Picture> = found.iter().map(picture).collect();
        if let Some((first, others)) = found.split_first() {
            pictures.extend(others.iter().filter_map(|run| self.ratio(first, run)));
        }
        pictures
    }

    fn ratio(&self, first: &Found<'_, R>, run: &Found<'_, R>) -> Option<Picture> {
        let ratio = |(before, after): (Option<f64>, Option<f64>)| {
            Some(after? / before.filter(|before| *before > 0.0)?)
        };
        let rows = self.values(first.result).into_iter().zip(self.values(run.result));
        let values: Vec<Vec<Option<f64>>> =
            rows.map(|(a, b)| a.into_iter().zip(b).map(ratio).collect()).collect();
        if values.iter().flatten().all(Option::is_none) {
            return None;
        }
        let title = format!("{}: {} over {}", self.title, run.label, first.label);
        let caption = format!(
            "Each value of {} divided by that of {}: above 1, {} did more.",
            run.label, first.label, run.label
        );
        Some(Picture::new(title, caption, self.heat(values, Axis::linear("Ratio", ""))))
    }

    fn values(&self, result: &R) -> Vec<Vec<Option<f64>>> {
        let row = |block: &u64| {
            self.column_keys.iter().map(|(_, key)| (self.at)(result, *block, *key)).collect()
        };
        self.blocks.iter().map(row).collect()
    }

    fn heat(&self, values: Vec<Vec<Option<f64>>>, value: Axis) -> Kind {
        Kind::Heat(Heat {
            x_title: self.columns.to_owned(),
            x: self.column_keys.iter().map(|(name, _)| name.clone()).collect(),
            y_title: "Block size".to_owned(),
            y: self.blocks.iter().map(|block| block_words(*block)).collect(),
            values,
            value,
        })
    }
}

/// A block size as people say it: `4 KiB`, `512 B`.
pub(super) fn block_words(bytes: u64) -> String {
    match bytes {
        b if b != 0 && b.is_multiple_of(1 << 20) => format!("{} MiB", b >> 20),
        b if b != 0 && b.is_multiple_of(1 << 10) => format!("{} KiB", b >> 10),
        b => format!("{b} B"),
    }
}

/// A block size in KiB, as axes have it.
pub(super) fn kib(bytes: u64) -> f64 {
    bytes as f64 / 1024.0
}
