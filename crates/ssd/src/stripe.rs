//! How a superblock's places lie on dies. A superblock is one block of every plane of every die of a set. Consecutive places fill a
//! cell (one page of each plane of a die), then the next die's cell; after all dies the next page. A die programs a wordline (so
//! many pages of each plane at once) when its last page is full.

use crate::divisor::Divisor;
use crate::spec::{Flash, Mapping};

/// The shape of a set's superblocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stripe {
    /// Dies.
    dies: Divisor,
    /// Units of a cell.
    cell_units: Divisor,
    /// Pages of a wordline when all bits of a cell are used.
    pages: Divisor,
    /// Wordlines of a block.
    wordlines: u32,
}

/// Where a place lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Spot {
    /// The die, from 0 in its set.
    pub die: u32,
    /// The wordline, from 0 in its block.
    pub wordline: u32,
    /// Places from this one to the end of its cell, this one included.
    pub left: u32,
}

impl Stripe {
    /// The shape on `dies` dies.
    pub const fn of(flash: &Flash, mapping: &Mapping, dies: u32) -> Self {
        Self::new(
            dies,
            flash.planes * flash.page_bytes / mapping.unit_bytes,
            flash.pages_per_program,
            flash.pages_per_block / flash.pages_per_program,
        )
    }

    /// The shape on `dies` dies with cells of so many units, so many pages of a wordline and so many wordlines of a block.
    pub const fn new(dies: u32, cell_units: u32, pages: u32, wordlines: u32) -> Self {
        Self {
            dies: Divisor::new(dies),
            cell_units: Divisor::new(cell_units),
            pages: Divisor::new(pages),
            wordlines,
        }
    }

    /// Dies.
    pub const fn dies(&self) -> u32 {
        self.dies.get()
    }

    /// Units of a cell.
    pub const fn cell_units(&self) -> u32 {
        self.cell_units.get()
    }

    /// Pages of a wordline in use: one when cells hold one bit.
    const fn pages_in(&self, slc: bool) -> u32 {
        if slc { 1 } else { self.pages.get() }
    }

    /// Places of a superblock.
    pub const fn units(&self, slc: bool) -> u32 {
        self.wordlines * self.wordline_units(slc)
    }

    /// Places of a wordline on all dies.
    pub const fn wordline_units(&self, slc: bool) -> u32 {
        self.dies.get() * self.program_units(slc)
    }

    /// Places that one program of one die fills.
    pub const fn program_units(&self, slc: bool) -> u32 {
        self.pages_in(slc) * self.cell_units.get()
    }

    /// Where a place lies.
    #[inline]
    pub const fn spot(&self, place: u32, slc: bool) -> Spot {
        let (cell, within) = self.cell_units.split(place);
        let (row, die) = self.dies.split(cell);
        Spot {
            die,
            wordline: if slc { row } else { self.pages.quotient(row) },
            left: self.cell_units.get() - within,
        }
    }

    /// The programs (die and wordline) that become full when places up to `to` are filled after those up to `from` were.
    #[inline]
    pub fn programs(&self, from: u32, to: u32, slc: bool, mut full: impl FnMut(u32, u32)) {
        let pages = self.pages_in(slc);
        for cell in self.cell_units.quotient(from)..self.cell_units.quotient(to) {
            let (row, die) = self.dies.split(cell);
            if row % pages == pages - 1 {
                full(die, row / pages);
            }
        }
    }

    /// The places of a wordline on one die, as ranges of places.
    pub fn places(&self, die: u32, wordline: u32, slc: bool) -> impl Iterator<Item = (u32, u32)> {
        let pages = self.pages_in(slc);
        let (dies, cell) = (self.dies.get(), self.cell_units.get());
        (0..pages).map(move |page| {
            let start = ((wordline * pages + page) * dies + die) * cell;
            (start, start + cell)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_place_is_programmed_once_by_its_own_die_and_wordline() {
        for (slc, pages) in [(false, 3), (true, 1)] {
            let stripe = Stripe::new(5, 4, 3, 2);
            let mut programmed = vec![0; stripe.units(slc) as usize];
            let mut from = 0;
            for to in (0..stripe.units(slc)).step_by(7).chain([stripe.units(slc)]) {
                stripe.programs(from, to, slc, |die, wordline| {
                    for (start, end) in stripe.places(die, wordline, slc) {
                        assert!(end <= to, "a program waits for its last page");
                        for place in start..end {
                            let spot = stripe.spot(place, slc);
                            assert_eq!((spot.die, spot.wordline), (die, wordline));
                            assert_eq!(spot.left, end - place);
                            programmed[place as usize] += 1;
                        }
                    }
                });
                from = to;
            }
            assert!(programmed.iter().all(|&times| times == 1), "{pages}: {programmed:?}");
        }
    }
}
