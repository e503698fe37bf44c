//! Events in the order of their times, first in, first out.

use crate::earliest::NEVER;

/// Events of which each is at the same time as the one before it, or later.
#[derive(Clone, Debug)]
pub struct Queue<T> {
    /// A ring; its length is a power of two. What lies behind the last one is at [`NEVER`].
    ring: Vec<(u64, T)>,
    head: usize,
    length: usize,
    /// The first one's time.
    first: u64,
}

impl<T: Copy> Queue<T> {
    /// None.
    pub const fn new() -> Self {
        Self { ring: Vec::new(), head: 0, length: 0, first: NEVER }
    }

    /// When the first is, in nanoseconds; [`NEVER`] without any.
    #[inline]
    pub const fn next(&self) -> u64 {
        self.first
    }

    /// Whether there is none.
    #[inline]
    pub const fn is_empty(&self) -> bool {
        self.length == 0
    }

    /// Adds one behind all others that are not later, which is nearly always the end.
    #[inline]
    pub fn push(&mut self, time: u64, event: T) {
        self.make_room((NEVER, event));
        let mask = self.ring.len() - 1;
        let mut at = self.head + self.length;
        while at > self.head && self.ring[(at - 1) & mask].0 > time {
            self.ring[at & mask] = self.ring[(at - 1) & mask];
            at -= 1;
        }
        self.put(at, time, event);
    }

    /// Adds one that is not earlier than any other.
    #[inline]
    pub fn push_last(&mut self, time: u64, event: T) {
        self.make_room((NEVER, event));
        let at = self.head + self.length;
        debug_assert!(self.is_empty() || self.ring[(at - 1) & (self.ring.len() - 1)].0 <= time);
        self.put(at, time, event);
    }

    #[inline]
    fn put(&mut self, at: usize, time: u64, event: T) {
        let mask = self.ring.len() - 1;
        self.ring[at & mask] = (time, event);
        self.length += 1;
        self.ring[(self.head + self.length) & mask].0 = NEVER;
        self.first = self.first.min(time);
    }

    /// Takes the first, if it is at this time.
    #[inline]
    pub fn pop_at(&mut self, time: u64) -> Option<T> {
        (self.first == time && self.length > 0).then(|| self.pop().1)
    }

    /// Takes the first, if it is at this time or earlier; with its time.
    #[inline]
    pub fn pop_until(&mut self, time: u64) -> Option<(u64, T)> {
        (self.first <= time && self.length > 0).then(|| self.pop())
    }

    /// Takes the first of some.
    #[inline]
    fn pop(&mut self) -> (u64, T) {
        let mask = self.ring.len() - 1;
        let event = self.ring[self.head & mask];
        self.head = (self.head + 1) & mask;
        self.length -= 1;
        self.first = self.ring[self.head].0;
        event
    }

    /// Takes all.
    pub fn clear(&mut self) {
        *self = Self::new();
    }

    #[inline]
    fn make_room(&mut self, filler: (u64, T)) {
        if self.length + 1 >= self.ring.len() {
            self.grow(filler);
        }
    }

    #[cold]
    fn grow(&mut self, filler: (u64, T)) {
        self.ring.rotate_left(self.head);
        self.head = 0;
        let length = (2 * self.ring.len()).max(16);
        self.ring.resize(length, filler);
    }
}

#[cfg(test)]
mod tests {
    use base::random::Random;

    use super::*;

    #[test]
    fn events_come_out_in_the_order_of_their_times_and_then_of_their_coming() {
        let mut queue = Queue::new();
        let mut model: Vec<(u64, u32)> = Vec::new();
        let mut random = Random::new(2);
        let mut now = 0;
        for number in 0..20_000 {
            if random.below(100) < 52 {
                let time = now + random.below(20);
                queue.push(time, number);
                let at = model.partition_point(|event| event.0 <= time);
                model.insert(at, (time, number));
            } else if let Some(&(time, expected)) = model.first() {
                now = time;
                assert_eq!(queue.next(), time);
                assert_eq!(queue.pop_until(time - time.min(1)).is_some(), time == 0);
                assert_eq!(queue.pop_at(time), Some(expected));
                model.remove(0);
            }
            assert_eq!(queue.is_empty(), model.is_empty());
            assert_eq!(queue.next(), model.first().map_or(NEVER, |event| event.0));
        }
    }
}
