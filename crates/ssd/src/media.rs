//! What drives hold, where data is kept: only what is written takes memory. What still waits in an unprotected buffer can be lost.

use std::collections::HashMap;

/// Bytes that are kept as one.
const PAGE_BYTES: u64 = 4096;

type Page = Box<[u8; PAGE_BYTES as usize]>;

/// The contents of one drive.
#[derive(Clone, Debug, Default)]
pub struct Media {
    pages: HashMap<u64, Page>,
    /// What lay at a range before each write that is not on flash yet, oldest first: flash place, offset, bytes.
    unsaved: HashMap<u64, Vec<Unsaved>>,
    /// The range whose write is to lie at a place.
    places: HashMap<Place, u64>,
}

/// A place on flash: set and physical unit.
pub type Place = (u16, u32);

#[derive(Clone, Debug)]
struct Unsaved {
    place: Place,
    before: Vec<u8>,
}

impl Media {
    /// Copies what lies at `offset` into `bytes`; zeros where nothing was written.
    pub fn read(&self, offset: u64, bytes: &mut [u8]) {
        for_pages(offset, bytes.len(), |page, within, range| match self.pages.get(&page) {
            Some(held) => {
                let length = range.len();
                bytes[range].copy_from_slice(&held[within..within + length]);
            }
            None => bytes[range].fill(0),
        });
    }

    /// Keeps bytes at `offset`.
    pub fn write(&mut self, offset: u64, bytes: &[u8]) {
        for_pages(offset, bytes.len(), |page, within, range| {
            let held = self.pages.entry(page).or_insert_with(|| Box::new([0; PAGE_BYTES as usize]));
            held[within..within + range.len()].copy_from_slice(&bytes[range]);
        });
    }

    /// Forgets a range; it reads as zeros.
    pub fn trim(&mut self, offset: u64, length: u64) {
        let (first, past) = (offset.div_ceil(PAGE_BYTES), (offset + length) / PAGE_BYTES);
        if past > first && past - first > self.pages.len() as u64 {
            self.pages.retain(|page, _| !(first..past).contains(page));
        } else {
            for page in first..past {
                self.pages.remove(&page);
            }
        }
        let zeros = |media: &mut Self, from: u64, to: u64| {
            if from < to && media.pages.contains_key(&(from / PAGE_BYTES)) {
                media.write(from, &vec![0; (to - from) as usize]);
            }
        };
        let end = offset + length;
        zeros(self, offset, end.min(first * PAGE_BYTES));
        if past >= first {
            zeros(self, past * PAGE_BYTES, end);
        }
    }

    /// Remembers what lies at a range of `length` bytes, before a write that will lie at `place` once it is programmed.
    pub fn remember(&mut self, offset: u64, length: usize, place: Place) {
        let mut before = vec![0; length];
        self.read(offset, &mut before);
        self.unsaved.entry(offset).or_default().push(Unsaved { place, before });
        self.places.insert(place, offset);
    }

    /// What is to lie at a place has been programmed: it is safe, and so is everything older.
    pub fn save(&mut self, place: Place) {
        let Some(offset) = self.places.remove(&place) else { return };
        let Some(writes) = self.unsaved.get_mut(&offset) else { return };
        if let Some(index) = writes.iter().position(|write| write.place == place) {
            writes.drain(..=index);
        }
        if writes.is_empty() {
            self.unsaved.remove(&offset);
        }
    }

    /// Loses everything that was not programmed; returns how many ranges changed.
    pub fn lose(&mut self) -> usize {
        self.places.clear();
        let lost: Vec<(u64, Vec<Unsaved>)> = self.unsaved.drain().collect();
        let count = lost.len();
        for (offset, writes) in lost {
            if let Some(oldest) = writes.first() {
                self.write(offset, &oldest.before);
            }
        }
        count
    }
}

/// Splits a range into pages: page, offset in it, range of the bytes.
fn for_pages(offset: u64, length: usize, mut each: impl FnMut(u64, usize, std::ops::Range<usize>)) {
    let mut at = 0;
    while at < length {
        let here = offset + at as u64;
        let within = (here % PAGE_BYTES) as usize;
        let piece = (PAGE_BYTES as usize - within).min(length - at);
        each(here / PAGE_BYTES, within, at..at + piece);
        at += piece;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(media: &Media, offset: u64) -> u8 {
        let mut byte = [0];
        media.read(offset, &mut byte);
        byte[0]
    }

    #[test]
    fn what_was_not_programmed_is_lost_and_what_was_is_not() {
        let mut media = Media::default();
        for (value, place) in [(1, (0, 10)), (2, (0, 20)), (3, (0, 30))] {
            media.remember(8192, 4096, place);
            media.write(8192, &[value; 4096]);
        }
        media.save((0, 20));
        assert_eq!(media.lose(), 1);
        assert_eq!(at(&media, 8192), 2, "the second was programmed, the third was not");
        media.remember(0, 4096, (0, 40));
        media.write(0, &[9; 4096]);
        media.save((0, 40));
        assert_eq!(media.lose(), 0);
        assert_eq!(at(&media, 0), 9);
    }

    #[test]
    fn a_trim_takes_its_range_and_no_more() {
        let mut media = Media::default();
        media.write(0, &[7; 5 * 4096]);
        media.trim(1024, 4 * 4096);
        let held: Vec<u8> = [0, 1023, 1024, 4096, 3 * 4096, 4 * 4096 + 1023, 4 * 4096 + 1024]
            .map(|offset| at(&media, offset))
            .to_vec();
        assert_eq!(held, [7, 7, 0, 0, 0, 0, 7]);
        media.trim(1100, 100);
        media.trim(512, 100);
        assert_eq!((at(&media, 511), at(&media, 512), at(&media, 612)), (7, 0, 7));
    }
}
