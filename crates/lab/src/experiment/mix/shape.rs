//! The shapes that a grid of block sizes and mixes is known to have on arrays of flash drives, looked for in a result.

use base::Rate;

use super::{MixResult, binary};
use crate::answer::Unit;
use crate::experiment::trouble::iops;
use crate::finding::{Finding, FindingKind, Quantity};

/// A shape that drives are known to have or not to have.
#[derive(Clone, Debug, PartialEq)]
pub struct Shape {
    /// Its name among the figures.
    pub name: &'static str,
    /// What it says.
    pub claim: &'static str,
    /// Whether these drives have it; None if the points for it are missing.
    pub found: Option<bool>,
    /// The figures that decide it.
    pub detail: String,
}

/// From here up blocks count as large: the link or the flash's bandwidth is the limit, not the number of commands.
const LARGE_BYTES: u64 = 32 << 10;
/// Differences below this share are noise.
const SAME_SHARE: f64 = 0.05;
/// A rate counts as level if its extremes lie within this share of the greatest.
const LEVEL_SHARE: f64 = 0.15;

impl Shape {
    /// Whether it is there, and the figures that say so.
    pub(super) fn finding(&self) -> Finding {
        let verdict = match self.found {
            Some(true) => "Found here",
            Some(false) => "Not found here",
            None => "Not known here",
        };
        let found = self.found.map(|found| {
            let figure = format!("mix.shape.{}", self.name);
            Quantity::of(&figure, f64::from(u8::from(found)), Unit::Count)
        });
        let sentence = format!("{verdict}: {} ({}).", self.claim, self.detail);
        Finding::new("mix.shape", FindingKind::States, found.into_iter().collect(), &sentence)
    }
}

impl MixResult {
    /// The shapes that arrays of flash drives are reported to have, each looked for in these points.
    pub fn shapes(&self) -> Vec<Shape> {
        vec![
            self.recovers(
                512,
                "small_blocks_fall_and_recover",
                "512 B falls from pure reads into the mixes and recovers as writes take over",
            ),
            self.recovers(
                4096,
                "four_kib_recovers",
                "4 KiB falls gently from pure reads and recovers where it is mostly writes",
            ),
            self.level_reads(),
            self.middle_carries_more(),
            self.writes_are_lowest(),
        ]
    }

    fn recovers(&self, block: u64, name: &'static str, claim: &'static str) -> Shape {
        let iops_at = |read| self.at(block, read).map(|point| point.iops);
        let middle: Vec<(u32, f64)> =
            [95, 65, 50, 35].into_iter().filter_map(|r| Some((r, iops_at(r)?))).collect();
        let lowest = middle.iter().copied().min_by(|a, b| a.1.total_cmp(&b.1));
        let end = iops_at(5).into_iter().chain(iops_at(0)).reduce(f64::max);
        let (Some(first), Some((at, lowest)), Some(end)) = (iops_at(100), lowest, end) else {
            return Shape {
                name,
                claim,
                found: None,
                detail: "these points are missing".to_owned(),
            };
        };
        let falls = lowest < first * (1.0 - SAME_SHARE);
        let rises = end > lowest * (1.0 + SAME_SHARE);
        let detail = format!(
            "{} IOPS of pure reads, {} with {at} % reads and {} % writes, {} at best with 95 % writes or more",
            iops(first),
            iops(lowest),
            100 - at,
            iops(end)
        );
        Shape { name, claim, found: Some(falls && rises), detail }
    }

    fn large(&self) -> Vec<u64> {
        let mut blocks: Vec<u64> =
            self.points.iter().map(|p| p.block_bytes).filter(|&b| b >= LARGE_BYTES).collect();
        blocks.dedup();
        blocks
    }

    fn level_reads(&self) -> Shape {
        let name = "large_reads_are_level";
        let claim =
            "from 32 KiB up reads run at one rate, that of a link or of the flash as a whole";
        let rates: Vec<f64> =
            self.large().iter().filter_map(|&b| Some(self.at(b, 100)?.bytes_per_s)).collect();
        let least = rates.iter().copied().reduce(f64::min);
        let most = rates.iter().copied().reduce(f64::max);
        let (Some(least), Some(most), true) = (least, most, rates.len() > 1) else {
            return Shape {
                name,
                claim,
                found: None,
                detail: "these points are missing".to_owned(),
            };
        };
        let found = Some(least >= most * (1.0 - LEVEL_SHARE));
        Shape { name, claim, found, detail: format!("{} to {}", Rate(least), Rate(most)) }
    }

    fn middle_carries_more(&self) -> Shape {
        let name = "middle_mixes_carry_more";
        let claim = "from 32 KiB up the middle mixes carry more than either end, as a link in both directions does";
        let mut gains = Vec::new();
        for block in self.large() {
            let rate = |read| self.at(block, read).map(|point| point.bytes_per_s);
            let middle = [65, 50, 35].into_iter().filter_map(rate).reduce(f64::max);
            if let (Some(middle), Some(reads), Some(writes)) = (middle, rate(100), rate(0)) {
                gains.push(middle / reads.max(writes).max(f64::MIN_POSITIVE));
            }
        }
        let Some(least) = gains.iter().copied().reduce(f64::min) else {
            return Shape {
                name,
                claim,
                found: None,
                detail: "these points are missing".to_owned(),
            };
        };
        let most = gains.iter().copied().fold(least, f64::max);
        let detail = format!("the best middle mix is {least:.2} to {most:.2} times the better end");
        Shape { name, claim, found: Some(least > 1.0 + SAME_SHARE), detail }
    }

    fn writes_are_lowest(&self) -> Shape {
        let name = "pure_writes_are_lowest";
        let claim = "pure writes are the slowest mix at every block size";
        let mut blocks: Vec<u64> = self.points.iter().map(|p| p.block_bytes).collect();
        blocks.dedup();
        let (mut lowest, mut judged, mut others) = (0, 0, Vec::new());
        for block in blocks {
            let of_block = || self.points.iter().filter(|p| p.block_bytes == block);
            let Some(writes) = self.at(block, 0) else { continue };
            if of_block().count() < 2 {
                continue;
            }
            judged += 1;
            let least = of_block().map(|p| p.bytes_per_s).fold(f64::INFINITY, f64::min);
            if writes.bytes_per_s <= least * (1.0 + SAME_SHARE) {
                lowest += 1;
            } else {
                others.push(binary(block));
            }
        }
        if judged == 0 {
            return Shape {
                name,
                claim,
                found: None,
                detail: "these points are missing".to_owned(),
            };
        }
        let but = if others.is_empty() {
            String::new()
        } else {
            format!(", not at {}", others.join(", "))
        };
        let detail = format!("so at {lowest} of {judged} block sizes{but}");
        Shape { name, claim, found: Some(lowest == judged), detail }
    }
}
