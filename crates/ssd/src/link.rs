//! What moves bytes one transfer after the other: channels between controller and dies, links between drive and host.

/// One direction of a link, or a link that has only one at a time: first come, first served.
#[derive(Clone, Copy, Debug)]
pub struct Wire {
    step: Step,
    until: u64,
}

impl Wire {
    /// At so many bytes a second.
    pub fn new(bytes_per_s: f64) -> Self {
        Self { step: Step::new(bytes_per_s), until: 0 }
    }

    /// Moves bytes that are there at `at`; returns when they are through. Times in nanoseconds.
    #[inline]
    pub fn transfer(&mut self, at: u64, bytes: u32) -> u64 {
        self.until = self.until.max(at) + self.step.time(bytes);
        self.until
    }

    /// From now on at so many bytes a second. What it has begun to move comes at the rate from before.
    pub fn set_rate(&mut self, bytes_per_s: f64) {
        self.step = Step::new(bytes_per_s);
    }

    /// Lets nothing through before this time.
    pub fn hold(&mut self, until: u64) {
        self.until = self.until.max(until);
    }
}

/// Time that a byte takes: nanoseconds in 2^24 parts, which is exact to a millionth at 64 GB/s and holds at 1 MB/s.
#[derive(Clone, Copy, Debug)]
struct Step(u64);

impl Step {
    const BITS: u32 = 24;

    fn new(bytes_per_s: f64) -> Self {
        Self((1e9 / bytes_per_s * f64::from(1 << Self::BITS)).round() as u64)
    }

    #[inline]
    const fn time(self, bytes: u32) -> u64 {
        (bytes as u64 * self.0 + (1 << (Self::BITS - 1))) >> Self::BITS
    }
}

/// A channel: what reads need goes before what is programmed, from one page to the next.
#[derive(Clone, Copy, Debug)]
pub struct Channel {
    step: Step,
    /// Time of one page's transfer, which is not interrupted.
    piece: u64,
    urgent_until: u64,
    /// When everything is through, urgent or not.
    until: u64,
}

impl Channel {
    /// At so many bytes a second, in pieces of a page.
    pub fn new(bytes_per_s: f64, page_bytes: u32) -> Self {
        let step = Step::new(bytes_per_s);
        Self { step, piece: step.time(page_bytes).max(1), urgent_until: 0, until: 0 }
    }

    /// Moves what the host waits for; returns when it is through.
    #[inline]
    pub fn urgent(&mut self, at: u64, bytes: u32) -> u64 {
        let mut start = at.max(self.urgent_until);
        let length = self.step.time(bytes);
        if self.until > start {
            // Pieces lie back to back up to the end, so this is what is left of the one that is moving.
            start += (self.until - start) % self.piece;
            self.until += length;
        }
        self.urgent_until = start + length;
        self.until = self.until.max(self.urgent_until);
        self.urgent_until
    }

    /// Moves the rest; returns when it is through.
    #[inline]
    pub fn patient(&mut self, at: u64, bytes: u32) -> u64 {
        self.until = self.until.max(at) + self.step.time(bytes);
        self.until
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wire_serves_in_order_at_its_rate() {
        let mut wire = Wire::new(1e9);
        assert_eq!(wire.transfer(100, 4_096), 4_196);
        assert_eq!(wire.transfer(200, 1_000), 5_196);
        assert_eq!(wire.transfer(9_000, 1_000), 10_000);
    }

    #[test]
    fn what_is_urgent_waits_for_one_piece_at_most_and_delays_the_rest() {
        let mut channel = Channel::new(1e9, 16_000);
        assert_eq!(channel.patient(0, 96_000), 96_000);
        // 6,000 of the second piece are left.
        assert_eq!(channel.urgent(26_000, 4_000), 36_000);
        assert_eq!(channel.patient(0, 1_000), 101_000);
    }

    #[test]
    fn what_is_urgent_alone_is_first_come_first_served() {
        let mut channel = Channel::new(1e9, 16_000);
        assert_eq!(channel.urgent(0, 4_000), 4_000);
        assert_eq!(channel.urgent(1_000, 4_000), 8_000);
        assert_eq!(channel.urgent(20_000, 4_000), 24_000);
    }
}
