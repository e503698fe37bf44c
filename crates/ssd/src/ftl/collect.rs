//! Winning space back: which superblock is emptied next, and how fast.

use crate::ftl::{Flash, Ftl, Open, Pace, Program, State, Stream, Superblock};
use crate::map::NOWHERE;
use crate::spec::{Collector, Placement};
use crate::stripe::Stripe;

/// Units that are copied at a time, so that the table's cache misses overlap; few enough to keep the host's wait short.
const BATCH_UNITS: u32 = 64;

/// A superblock that is being emptied.
#[derive(Clone, Copy, Debug)]
pub(super) struct Victim {
    pub(super) superblock: u32,
    /// The next place to look at, and the end of its places.
    next: u32,
    end: u32,
    /// Units copied so far.
    copied: u64,
    /// Units that the host wrote meanwhile.
    host: u64,
    /// So many units are to be copied for so many of the host's.
    copies: u64,
    writes: u64,
}

impl Ftl {
    /// Copies as much as `count` units from the host call for.
    #[inline]
    pub(super) fn keep_pace(&mut self, count: u32, flash: &mut impl Flash) {
        if self.still {
            if !self.is_short() {
                return;
            }
            self.still = false;
        }
        if self.victim.is_none() {
            if !self.is_short() && !self.must_shrink() {
                return;
            }
            self.choose();
        }
        if let Some(victim) = &mut self.victim {
            victim.host += u64::from(count);
        }
        while let Some(victim) = self.victim {
            if victim.copied * victim.writes >= victim.host * victim.copies
                && victim.next < victim.end
            {
                return;
            }
            self.copy_batch(flash);
            if self.victim.is_none() && self.is_short() {
                self.choose();
            }
        }
    }

    /// Whether the next superblock to be opened would be one of those that are kept free.
    #[inline]
    fn is_short(&self) -> bool {
        self.free.len() <= self.setup.reserve + self.kept
    }

    /// Whether nothing has been collected or folded since a deterministic window began.
    #[inline]
    pub const fn is_still(&self) -> bool {
        self.still
    }

    /// Keeps so many superblocks free in addition to the reserve, and collects until they are free. If `still`, nothing is collected or
    /// folded until a write leaves no choice.
    #[cold]
    pub fn keep_for_window(&mut self, kept: u32, still: bool, flash: &mut impl Flash) {
        (self.kept, self.still) = (kept, still);
        if self.kept == 0 {
            return;
        }
        // What a random choice empties may have been full.
        for _ in 0..self.superblocks.len() {
            if !self.is_short() || !self.superblocks.iter().any(|one| one.state == State::Closed) {
                return;
            }
            self.collect_one(flash);
        }
    }

    /// Empties one superblock to the end.
    #[cold]
    pub(super) fn collect_one(&mut self, flash: &mut impl Flash) {
        if self.victim.is_none() {
            self.choose();
        }
        assert!(
            self.victim.is_some(),
            "no superblock can be emptied: over-provisioning is too small"
        );
        while self.victim.is_some() {
            self.copy_batch(flash);
        }
    }

    /// Begins with the next victim, if there is one.
    pub(super) fn choose(&mut self) {
        let chosen = if self.is_short() { self.choose_by_policy() } else { self.oldest_cached() };
        if let Some(index) = chosen {
            self.begin(index);
        }
    }

    /// Begins to empty a superblock, at a pace that frees as much as the host writes meanwhile.
    pub(super) fn begin(&mut self, index: u32) {
        let superblock = &self.superblocks[index as usize];
        let gain = self.superblock_units.get() - superblock.valid;
        let (copies, writes) = if self.is_short() {
            (u64::from(superblock.valid), u64::from(gain))
        } else {
            self.shrinking_pace()
        };
        self.victim = Some(Victim {
            superblock: index,
            next: 0,
            end: superblock.used,
            copied: 0,
            host: 0,
            copies,
            writes,
        });
    }

    fn choose_by_policy(&mut self) -> Option<u32> {
        let now = self.clock;
        let closed = || {
            let all = self.superblocks.iter().enumerate();
            all.filter(|(_, one)| one.state == State::Closed)
        };
        let found = match self.setup.collector {
            Collector::Greedy => closed().min_by_key(|(_, one)| one.valid),
            Collector::Fifo => closed().min_by_key(|(_, one)| one.closed),
            Collector::CostBenefit => {
                // Share won x age / cost of reading all and writing what is valid.
                let worth = |valid: u32, closed: u64| {
                    let used = f64::from(valid) / f64::from(self.superblock_units.get());
                    (1.0 - used) * (now - closed + 1) as f64 / (1.0 + used)
                };
                closed().max_by(|(_, a), (_, b)| {
                    worth(a.valid, a.closed).total_cmp(&worth(b.valid, b.closed))
                })
            }
            Collector::Choices(choices) => return self.choose_of(choices),
            Collector::Random => return self.choose_of(1),
        };
        found.map(|(index, _)| index as u32)
    }

    /// The best of so many closed superblocks, drawn with replacement.
    fn choose_of(&mut self, choices: u32) -> Option<u32> {
        let all = self.superblocks.len() as u64;
        if !self.superblocks.iter().any(|one| one.state == State::Closed) {
            return None;
        }
        let mut best: Option<(u32, u32)> = None;
        let mut drawn = 0;
        while drawn < choices.max(1) {
            let index = self.random.below(all) as u32;
            let one = &self.superblocks[index as usize];
            if one.state == State::Closed {
                drawn += 1;
                if best.is_none_or(|(valid, _)| one.valid < valid) {
                    best = Some((one.valid, index));
                }
            }
        }
        best.map(|(_, index)| index)
    }

    /// Copies the next few units of the victim, and frees it after the last.
    pub(super) fn copy_batch(&mut self, flash: &mut impl Flash) {
        let Some(mut victim) = self.victim else { return };
        let index = victim.superblock as usize;
        let to = (victim.next + BATCH_UNITS).min(victim.end);
        let mut units = std::mem::take(&mut self.scratch);
        if self.superblocks[index].valid == 0 {
            victim.next = victim.end;
            units.clear();
        } else {
            self.read_valid(&victim, to, &mut units, flash);
            victim.next = to;
        }
        victim.copied += units.len() as u64;
        self.done.copied += units.len() as u64;
        let mut left = &units[..];
        while !left.is_empty() {
            left = &left[self.append_copies(index, left, flash)..];
        }
        self.scratch = units;
        if victim.next == victim.end {
            self.victim = None;
            self.release(victim.superblock);
        } else {
            self.victim = Some(victim);
        }
    }

    /// Has the flash read each cell that holds something valid of the victim's places up to `to`. What is valid is in `units` then.
    fn read_valid(&self, victim: &Victim, to: u32, units: &mut Vec<u32>, flash: &mut impl Flash) {
        units.clear();
        let Superblock { slc, reverse, .. } = &self.superblocks[victim.superblock as usize];
        let first_place = victim.superblock * self.superblock_units.get();
        let mut cells = Cells { stripe: &self.setup.stripe, slc: *slc, end: 0, die: 0, valid: 0 };
        let in_runs = reverse.runs(victim.next, to, |mut place, mut unit, count| {
            if unit == NOWHERE {
                return;
            }
            // What lies elsewhere by now is stale.
            self.map.runs(unit, count, |lies_at, length| {
                if lies_at == first_place + place {
                    units.extend(unit..unit + length);
                    cells.read(place, length, flash);
                }
                place += length;
                unit += length;
            });
        });
        cells.finish(flash);
        if !in_runs {
            reverse.read(victim.next, to, units);
            self.read_cells(victim, units, flash);
        }
    }

    /// As [`Ftl::read_valid`] of units that lie one by one: keeps what is valid of them.
    fn read_cells(&self, victim: &Victim, units: &mut Vec<u32>, flash: &mut impl Flash) {
        let Superblock { slc, reverse, .. } = &self.superblocks[victim.superblock as usize];
        let slc = *slc;
        // Of the next batch, one is looked up with each of this one's: all at once would be more than memory can answer at a time.
        let to = victim.next + units.len() as u32;
        let ahead = reverse.look_ahead(to, (to + BATCH_UNITS).min(victim.end));
        let first_place = victim.superblock * self.superblock_units.get() + victim.next;
        let (mut at, mut kept) = (0, 0);
        while at < units.len() {
            let spot = self.setup.stripe.spot(victim.next + at as u32, slc);
            let end = (at + spot.left as usize).min(units.len());
            let before = kept;
            for at in at..end {
                let unit = units[at];
                // What lies elsewhere by now is stale. Which does can't be foreseen: without a branch for it.
                let valid = unit != NOWHERE && self.map.get(unit) == first_place + at as u32;
                units[kept] = unit;
                kept += usize::from(valid);
                if let Some(&unit) = ahead.get(at) {
                    self.map.expect(unit);
                }
            }
            if kept > before {
                flash.copy(spot.die, slc, (kept - before) as u32);
            }
            at = end;
        }
        units.truncate(kept);
    }

    /// Appends units that lie in a superblock to what was copied before; returns how many it took. Opens and closes superblocks.
    fn append_copies(&mut self, from: usize, units: &[u32], flash: &mut impl Flash) -> usize {
        let together = Placement::copied_streams(self.setup.placement) == 1;
        let handle = if together { 0 } else { self.superblocks[from].handle };
        let at = Stream::Copied.of(handle);
        let Open { superblock, next } = match self.open[at] {
            Some(open) => open,
            None => self.open_superblock((Stream::Copied, handle), flash),
        };
        let capacity = self.superblock_units.get();
        let count = units.len().min((capacity - next) as usize);
        let Self { map, superblocks, spare, .. } = self;
        superblocks[from].valid -= count as u32;
        let pace = if superblocks[from].slc { Pace::Folding } else { Pace::Usual };
        let to = &mut superblocks[superblock as usize];
        to.valid += count as u32;
        let mut place = next;
        for run in units[..count].chunk_by(|unit, next| unit + 1 == *next) {
            let length = run.len() as u32;
            map.change(run[0], length, superblock * capacity + place);
            to.reverse.append(place, run[0], length, capacity, spare);
            place += length;
        }
        self.setup.stripe.programs(next, place, false, |die, wordline| {
            flash.program(die, Program { superblock, wordline, slc: false, host_units: 0, pace });
        });
        let open = Open { superblock, next: place };
        if place == capacity {
            self.close(at, open);
        } else {
            self.open[at] = Some(open);
        }
        count
    }
}

/// Cells of a superblock that are read one after the other, each once for all that is valid in it.
struct Cells<'a> {
    stripe: &'a Stripe,
    slc: bool,
    /// Of the cell that is being looked at: the place that ends it, its die, and its valid units.
    end: u32,
    die: u32,
    valid: u32,
}

impl Cells<'_> {
    /// So many valid units from a place on, which is none in front of those before.
    #[inline]
    fn read(&mut self, mut place: u32, mut count: u32, flash: &mut impl Flash) {
        while count > 0 {
            if place >= self.end {
                self.finish(flash);
                let spot = self.stripe.spot(place, self.slc);
                (self.end, self.die) = (place + spot.left, spot.die);
            }
            let here = count.min(self.end - place);
            self.valid += here;
            place += here;
            count -= here;
        }
    }

    /// Has the flash read the last cell.
    #[inline]
    fn finish(&mut self, flash: &mut impl Flash) {
        if self.valid > 0 {
            flash.copy(self.die, self.slc, self.valid);
            self.valid = 0;
        }
    }
}
