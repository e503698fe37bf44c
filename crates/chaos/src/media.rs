//! What one hostile drive keeps: pages, what each was before as long as the power may bring that back, an older
//! state of the whole, and the damage that lies beside the pristine data.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::rc::Rc;

use base::Random;

/// Bytes that are kept together. Power cuts tear it at the drive's block size.
pub const PAGE_BYTES: usize = 4096;

/// The smallest block that a drive may have.
const BLOCK_BYTES_MIN: usize = 512;

/// A page; None reads as zeros.
type Page = Option<Rc<[u8; PAGE_BYTES]>>;

/// What a trimmed range reads as.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trimmed {
    /// Zeros, and the drive says so.
    Zeros,
    /// Anything.
    Junk,
    /// What was there before.
    Old,
}

/// A drive's contents.
#[derive(Debug)]
pub struct Media {
    /// What reads see, but for `rotten`.
    pages: Vec<Page>,
    /// What a power cut may bring back; empty without a volatile cache.
    unflushed: BTreeMap<usize, Unflushed>,
    /// Changes so far; names them in `Unflushed`.
    changes: u64,
    volatile: bool,
    /// Pages that read back wrong until they are written again. Their data is still in `pages`.
    rotten: BTreeSet<usize>,
    /// An older state of the drive.
    older: Option<Vec<Page>>,
}

/// The states of a page since the last flush.
#[derive(Debug)]
struct Unflushed {
    durable: Page,
    /// With the number of the change that made it, in order.
    since: Vec<(u64, Page)>,
}

/// What a power cut did to a drive's cache.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cut {
    /// Pages that went back to an older state, whole or in part.
    pub lost: u32,
    /// Pages of which some blocks are new and some old.
    pub torn: u32,
}

impl Media {
    /// An empty drive.
    pub fn new(capacity_bytes: u64, volatile: bool) -> Self {
        Self {
            pages: vec![None; capacity_bytes.div_ceil(PAGE_BYTES as u64) as usize],
            unflushed: BTreeMap::new(),
            changes: 0,
            volatile,
            rotten: BTreeSet::new(),
            older: None,
        }
    }

    /// Changes so far: a flush that is submitted now covers these.
    pub fn changes(&self) -> u64 {
        self.changes
    }

    /// Reads. Returns whether rot was met.
    pub fn read(&self, offset: u64, bytes: &mut [u8]) -> bool {
        let mut rotten = false;
        for (page, within, part) in pieces(offset, bytes.len()) {
            let bytes = &mut bytes[part];
            match &self.pages[page] {
                Some(kept) => bytes.copy_from_slice(&kept[within]),
                None => bytes.fill(0),
            }
            if self.rotten.contains(&page) {
                rotten = true;
                let middle = bytes.len() / 2;
                bytes[middle] ^= 0x10;
            }
        }
        rotten
    }

    /// Writes those blocks of `block_bytes` of the range that `keep` says, each by its offset.
    pub fn write(
        &mut self,
        offset: u64,
        bytes: &[u8],
        block_bytes: u32,
        keep: &mut dyn FnMut(u64) -> bool,
    ) {
        self.changes += 1;
        let block_bytes = block_bytes as usize;
        for (page, within, part) in pieces(offset, bytes.len()) {
            let start = offset + part.start as u64;
            let mut kept = [false; PAGE_BYTES / BLOCK_BYTES_MIN];
            assert!(within.len().is_multiple_of(block_bytes), "whole blocks are written");
            let kept = &mut kept[..within.len() / block_bytes];
            for (at, kept) in kept.iter_mut().enumerate() {
                *kept = keep(start + (at * block_bytes) as u64);
            }
            if !kept.contains(&true) {
                continue;
            }
            let new = match <&[u8; PAGE_BYTES]>::try_from(&bytes[part.clone()]) {
                Ok(whole) if !kept.contains(&false) => Rc::new(*whole),
                _ => {
                    let mut page = self.pages[page].clone().unwrap_or_else(zeros);
                    let changed = Rc::make_mut(&mut page);
                    let blocks = within.step_by(block_bytes).zip(part.step_by(block_bytes));
                    for ((to, from), _) in blocks.zip(kept).filter(|(_, kept)| **kept) {
                        changed[to..to + block_bytes]
                            .copy_from_slice(&bytes[from..from + block_bytes]);
                    }
                    page
                }
            };
            self.rotten.remove(&page);
            self.set(page, Some(new));
        }
    }

    /// Trims those pages of the range that `keep` says. A page that is trimmed in part keeps its contents.
    pub fn trim(
        &mut self,
        offset: u64,
        length: u64,
        to: Trimmed,
        random: &mut Random,
        keep: &mut dyn FnMut(u64) -> bool,
    ) {
        self.changes += 1;
        let page_bytes = PAGE_BYTES as u64;
        for page in offset.div_ceil(page_bytes)..(offset + length) / page_bytes {
            let at = page as usize;
            // What was never written stays zeros: there is nothing to give up.
            if self.pages[at].is_none() || !keep(page * page_bytes) {
                continue;
            }
            match to {
                Trimmed::Zeros => {
                    self.rotten.remove(&at);
                    self.set(at, None);
                }
                Trimmed::Junk => self.set(at, Some(Rc::new([random.bits() as u8; PAGE_BYTES]))),
                Trimmed::Old => {}
            }
        }
    }

    /// Makes durable what had been done after so many changes.
    pub fn flush(&mut self, changes: u64) {
        self.unflushed.retain(|_, page| {
            let done = page.since.partition_point(|&(number, _)| number <= changes);
            if let Some((_, state)) = page.since.drain(..done).next_back() {
                page.durable = state;
            }
            !page.since.is_empty()
        });
    }

    /// Makes a range durable as it is now: whatever state a page may go back to, it has these bytes.
    pub fn force(&mut self, offset: u64, length: u64) {
        for (page, within, _) in pieces(offset, length as usize) {
            let Some(states) = self.unflushed.get_mut(&page) else { continue };
            let now = self.pages[page].clone().unwrap_or_else(zeros);
            let earlier = states.since.iter_mut().map(|(_, state)| state);
            for state in earlier.chain([&mut states.durable]) {
                let state = state.get_or_insert_with(zeros);
                Rc::make_mut(state)[within.clone()].copy_from_slice(&now[within.clone()]);
            }
        }
    }

    /// The power fails: each block that was not flushed is in any of the states that it had since.
    pub fn lose_cache(&mut self, block_bytes: u32, random: &mut Random) -> Cut {
        let mut cut = Cut::default();
        // Half of all caches are lost as a whole, or not at all: both are the common case.
        let manner = random.below(4);
        for (page, states) in std::mem::take(&mut self.unflushed) {
            let newest = states.since.len() as u64;
            let mut draw = || match manner {
                0 => 0,
                1 => newest,
                _ => random.below(newest + 1),
            };
            let state = |at: u64| match at {
                0 => &states.durable,
                at => &states.since[at as usize - 1].1,
            };
            let blocks = PAGE_BYTES / block_bytes as usize;
            let whole = draw();
            // Most pages are of one state, as most writes are; some are torn at the block.
            let tear = blocks > 1 && manner == 3;
            let drawn: Vec<u64> = (0..blocks).map(|_| if tear { draw() } else { whole }).collect();
            cut.lost += u32::from(drawn.iter().any(|&at| at < newest));
            if drawn.iter().all(|&at| at == drawn[0]) {
                self.pages[page] = state(drawn[0]).clone();
                continue;
            }
            cut.torn += 1;
            let mut mixed = [0; PAGE_BYTES];
            for (block, at) in drawn.into_iter().enumerate() {
                let bytes = block * block_bytes as usize..(block + 1) * block_bytes as usize;
                if let Some(kept) = state(at) {
                    mixed[bytes.clone()].copy_from_slice(&kept[bytes]);
                }
            }
            self.pages[page] = Some(Rc::new(mixed));
        }
        cut
    }

    /// Remembers this state of the drive.
    pub fn remember(&mut self) {
        self.older = Some(self.pages.clone());
    }

    /// Forgets the remembered state: this is another drive now, or will be.
    pub fn forget(&mut self) {
        self.older = None;
    }

    /// Goes back to the remembered state. Returns whether there was one.
    pub fn come_back_stale(&mut self) -> bool {
        let Some(older) = self.older.take() else { return false };
        self.pages = older;
        self.unflushed.clear();
        true
    }

    /// From now on pages of the range read back wrong, until they are written again. Only pages that were
    /// written can rot. Returns whether any was.
    pub fn rot(&mut self, offset: u64, length: u64) -> bool {
        let pages = offset / PAGE_BYTES as u64..(offset + length).div_ceil(PAGE_BYTES as u64);
        let before = self.rotten.len();
        let written = pages.map(|page| page as usize).filter(|&page| self.pages[page].is_some());
        self.rotten.extend(written);
        self.rotten.len() > before
    }

    fn set(&mut self, page: usize, new: Page) {
        if self.volatile {
            let before = &self.pages[page];
            let states = self
                .unflushed
                .entry(page)
                .or_insert_with(|| Unflushed { durable: before.clone(), since: Vec::new() });
            states.since.push((self.changes, new.clone()));
        }
        self.pages[page] = new;
    }
}

fn zeros() -> Rc<[u8; PAGE_BYTES]> {
    Rc::new([0; PAGE_BYTES])
}

/// A range as pages: number, place within the page, place within the range.
fn pieces(offset: u64, length: usize) -> impl Iterator<Item = (usize, Range<usize>, Range<usize>)> {
    let end = offset as usize + length;
    let mut at = offset as usize;
    std::iter::from_fn(move || {
        (at < end).then(|| {
            let (page, within) = (at / PAGE_BYTES, at % PAGE_BYTES);
            let bytes = (PAGE_BYTES - within).min(end - at);
            let from = at - offset as usize;
            at += bytes;
            (page, within..within + bytes, from..from + bytes)
        })
    })
}
