//! What lies in a superblock: the logical unit at each place, as runs while there are few, one by one otherwise.

use crate::map::{NOWHERE, ahead};

/// The logical unit at each place of one superblock.
#[derive(Clone, Debug)]
pub enum Reverse {
    /// Places from which runs of units begin: place and logical unit.
    Runs(Vec<(u32, u32)>),
    /// The unit at each place.
    Flat(Vec<u32>),
}

/// Tables of emptied superblocks, for the next that need one.
#[derive(Clone, Debug, Default)]
pub struct Spare(Vec<Vec<u32>>);

impl Reverse {
    /// Nothing.
    pub const fn new() -> Self {
        Self::Runs(Vec::new())
    }

    /// Memory of the table, if there is one.
    pub fn table_bytes(&self) -> u64 {
        match self {
            Self::Runs(_) => 0,
            Self::Flat(units) => units.len() as u64 * 4,
        }
    }

    /// Forgets everything.
    pub fn clear(&mut self, spare: &mut Spare) {
        match self {
            Self::Runs(runs) => runs.clear(),
            Self::Flat(units) => {
                spare.0.push(std::mem::take(units));
                *self = Self::new();
            }
        }
    }

    /// Puts a run of `count` units at `place`, which is the first free one. [`NOWHERE`] is padding.
    #[inline]
    pub fn append(&mut self, place: u32, unit: u32, count: u32, capacity: u32, spare: &mut Spare) {
        match self {
            Self::Flat(units) => {
                let places = place as usize..(place + count) as usize;
                if unit == NOWHERE {
                    units[places].fill(NOWHERE);
                } else {
                    for (entry, unit) in units[places].iter_mut().zip(unit..) {
                        *entry = unit;
                    }
                }
            }
            Self::Runs(runs) => {
                if let Some(&(start, first)) = runs.last()
                    && unit != NOWHERE
                    && first != NOWHERE
                    && unit.wrapping_sub(first) == place - start
                {
                    return;
                }
                runs.push((place, unit));
                // A run takes as much memory as two units.
                if runs.len() as u32 > capacity / 4 && runs.len() > 8 {
                    self.flatten(place + count, capacity, spare);
                }
            }
        }
    }

    #[cold]
    fn flatten(&mut self, used: u32, capacity: u32, spare: &mut Spare) {
        let Self::Runs(runs) = self else { return };
        let mut units = spare.0.pop().unwrap_or_else(|| vec![NOWHERE; capacity as usize]);
        for (index, &(place, unit)) in runs.iter().enumerate() {
            let end = runs.get(index + 1).map_or(used, |next| next.0);
            for (at, entry) in (0..).zip(&mut units[place as usize..end as usize]) {
                *entry = if unit == NOWHERE { NOWHERE } else { unit + at };
            }
        }
        *self = Self::Flat(units);
    }

    /// The units of the places from `from` to `to`, where it costs nothing to know them.
    #[inline]
    pub fn look_ahead(&self, from: u32, to: u32) -> &[u32] {
        match self {
            Self::Flat(all) => &all[from as usize..to as usize],
            Self::Runs(_) => &[],
        }
    }

    /// Copies the units of the places from `from` to `to` into `units`, which is emptied first. Places that nothing was put into
    /// count as padding only if they are flat; ask for none of them.
    pub fn read(&self, from: u32, to: u32, units: &mut Vec<u32>) {
        units.clear();
        match self {
            Self::Flat(all) => units.extend_from_slice(&all[from as usize..to as usize]),
            Self::Runs(_) => {
                self.runs(from, to, |_, unit, count| {
                    units.extend((0..count).map(|at| ahead(unit, at)));
                });
            }
        }
    }

    /// Tells the runs of units of the places from `from` to `to`: place, unit and length. [`NOWHERE`] is padding. Returns false, and
    /// tells nothing, if they are kept one by one.
    #[inline]
    pub fn runs(&self, from: u32, to: u32, mut tell: impl FnMut(u32, u32, u32)) -> bool {
        let Self::Runs(runs) = self else { return false };
        let first = runs.partition_point(|run| run.0 <= from).saturating_sub(1);
        for (index, &(start, unit)) in runs.iter().enumerate().skip(first) {
            let place = start.max(from);
            if place >= to {
                break;
            }
            let end = runs.get(index + 1).map_or(to, |next| next.0.min(to));
            tell(place, ahead(unit, place - start), end - place);
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use base::random::Random;

    use super::*;

    #[test]
    fn what_was_appended_is_read_back_as_runs_and_flat() {
        for longest in [1, 2, 40] {
            let mut random = Random::new(longest);
            let mut spare = Spare::default();
            let mut reverse = Reverse::new();
            for _ in 0..3 {
                let mut model = Vec::new();
                while model.len() < 900 {
                    let count = 1 + random.below(longest) as u32;
                    let unit =
                        if random.one_in(9) { NOWHERE } else { random.below(1 << 20) as u32 };
                    reverse.append(model.len() as u32, unit, count, 1_000, &mut spare);
                    model.extend((0..count).map(
                        |i| {
                            if unit == NOWHERE { NOWHERE } else { unit + i }
                        },
                    ));
                }
                let mut read = Vec::new();
                for from in 0..model.len() {
                    let to = (from + 1 + random.below(90) as usize).min(model.len());
                    reverse.read(from as u32, to as u32, &mut read);
                    assert_eq!(read, &model[from..to]);
                }
                reverse.clear(&mut spare);
            }
        }
    }
}
