//! Whether a translation layer's books agree: the table, what each superblock says it holds, and which superblocks are free. For tests;
//! it looks at every unit.

use super::{Ftl, State, Stream};
use crate::map::NOWHERE;

impl Ftl {
    /// Compares all books with each other.
    ///
    /// # Errors
    /// The first two that disagree, in words.
    pub fn audit(&self) -> Result<(), String> {
        self.audit_states()?;
        self.audit_places()
    }

    /// Every superblock is free, open or closed, and listed as what it is.
    fn audit_states(&self) -> Result<(), String> {
        let mut listed = vec![State::Closed; self.superblocks.len()];
        let open = self.open.iter().flatten().map(|open| (open.superblock, State::Open));
        for (index, state) in self.free.iter().map(|index| (index, State::Free)).chain(open) {
            let before = std::mem::replace(&mut listed[index as usize], state);
            ensure(before == State::Closed, || format!("superblock {index} is listed twice"))?;
        }
        for (index, (one, &listed)) in self.superblocks.iter().zip(&listed).enumerate() {
            ensure(one.state == listed, || {
                format!("superblock {index} is {:?}, and listed as {listed:?}", one.state)
            })?;
            ensure(listed != State::Free || (one.valid == 0 && !one.slc), || {
                format!("superblock {index} is free, and has {} valid units", one.valid)
            })?;
        }
        for (stream, open) in self.open.iter().enumerate() {
            let cached = stream == Stream::Cached.of(0);
            ensure(
                open.is_none_or(|open| self.superblocks[open.superblock as usize].slc == cached),
                || format!("{open:?} has not the bits a cell of stream {stream}"),
            )?;
        }
        let cached = self.superblocks.iter().filter(|one| one.slc).count();
        ensure(cached == self.cache.superblocks as usize, || {
            format!("{cached} superblocks are the cache, which counts {}", self.cache.superblocks)
        })?;
        let erases = self.superblocks.iter().map(|one| one.erases);
        let all = (erases.clone().map(u64::from).sum(), erases.max().unwrap_or(0));
        ensure(all == self.erases, || format!("{all:?} erases, counted as {:?}", self.erases))?;
        let victim = self.victim.map(|victim| victim.superblock);
        let state = victim.map(|victim| self.superblocks[victim as usize].state);
        ensure(matches!(state, None | Some(State::Closed)), || {
            format!("{victim:?} is being emptied, and is {state:?}")
        })
    }

    /// Every unit lies at a place of its own that was filled with it, and each superblock counts those that lie in it.
    fn audit_places(&self) -> Result<(), String> {
        // Places that were filled, and the unit that lies at each.
        let mut held: Vec<Vec<u32>> = vec![Vec::new(); self.superblocks.len()];
        for (held, one) in held.iter_mut().zip(&self.superblocks) {
            let filled = if one.state == State::Closed { one.used } else { 0 };
            held.resize(filled as usize, NOWHERE);
        }
        for open in self.open.iter().flatten() {
            held[open.superblock as usize].resize(open.next as usize, NOWHERE);
        }
        let mut mapped = 0;
        for unit in 0..self.setup.units {
            let place = self.place(unit);
            if place == NOWHERE {
                continue;
            }
            mapped += 1;
            let (superblock, within) = self.superblock_units.split(place);
            let entry =
                held.get_mut(superblock as usize).and_then(|one| one.get_mut(within as usize));
            let Some(entry) = entry else {
                return Err(format!("unit {unit} lies at {place}, where nothing was written"));
            };
            ensure(*entry == NOWHERE, || format!("units {entry} and {unit} lie at {place}"))?;
            *entry = unit;
        }
        ensure(mapped == self.mapped, || {
            format!("{mapped} units lie somewhere, not {}", self.mapped)
        })?;
        let mut noted = Vec::new();
        for (index, (one, held)) in self.superblocks.iter().zip(&held).enumerate() {
            let valid = held.iter().filter(|&&unit| unit != NOWHERE).count();
            ensure(valid == one.valid as usize, || {
                format!("superblock {index} holds {valid} valid units, and counts {}", one.valid)
            })?;
            one.reverse.read(0, held.len() as u32, &mut noted);
            let differ =
                held.iter().zip(&noted).position(|(&is, &said)| is != NOWHERE && is != said);
            ensure(differ.is_none() && noted.len() == held.len(), || {
                format!("superblock {index} has not noted what lies in it: {differ:?}")
            })?;
        }
        Ok(())
    }
}

fn ensure(good: bool, problem: impl FnOnce() -> String) -> Result<(), String> {
    if good { Ok(()) } else { Err(problem()) }
}
