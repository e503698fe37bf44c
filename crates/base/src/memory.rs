//! A bank in memory and virtual time, for tests of everything that stands on the seam: it can be as
//! slow, as small and as forgetful as a test needs, and does the same again for the same commands.

mod buffers;
mod media;

use std::collections::BTreeMap;

use crate::random::Random;
use crate::{
    Bank, BankError, Buffers, Command, Completion, DeviceError, DriveId, Duration, Full, Geometry,
    Instant, Operation, Rate,
};

pub use buffers::MemoryBuffers;
use media::Media;

/// What a memory drive is like. The default is a perfect one of 1 GiB that takes no time.
#[derive(Clone, Debug, PartialEq)]
pub struct MemoryDrive {
    /// Bytes; only what is written takes memory.
    pub capacity_bytes: u64,
    /// Unit of offsets and lengths in bytes.
    pub block_bytes: u32,
    /// Longest read or write in bytes.
    pub transfer_max_bytes: u32,
    /// Commands that it takes at once.
    pub depth_max: u32,
    /// Unit of trims in bytes, or None for a drive that can't.
    pub trim_unit_bytes: Option<u32>,
    /// Whether a trimmed range reads as zeros; it reads as garbage otherwise.
    pub trim_reads_zeros: bool,
    /// Whether it may be written.
    pub writable: bool,
    /// Time that each command takes beside its transfer; those of several commands overlap.
    pub latency: Duration,
    /// Bytes a second for all its reads and writes together; None for no limit.
    pub rate: Option<Rate>,
    /// Whether [`MemoryBank::power_cut`] may lose what was not flushed.
    pub volatile_cache: bool,
    /// Keep no data: reads give zeros. For runs that are about time alone.
    pub discard: bool,
}

impl Default for MemoryDrive {
    fn default() -> Self {
        Self {
            capacity_bytes: 1 << 30,
            block_bytes: 4096,
            transfer_max_bytes: 16 << 20,
            depth_max: 32,
            trim_unit_bytes: Some(4096),
            trim_reads_zeros: true,
            writable: true,
            latency: Duration::ZERO,
            rate: None,
            volatile_cache: false,
            discard: false,
        }
    }
}

/// Drives in memory. The time is virtual: waiting is what moves it.
#[derive(Debug)]
pub struct MemoryBank {
    geometry: Vec<Geometry>,
    drives: Vec<Drive>,
    buffers: Option<MemoryBuffers>,
    now: Instant,
    /// Commands by the time they will be done, then by the order they came in.
    under_way: BTreeMap<(Instant, u64), UnderWay>,
    submitted: u64,
}

#[derive(Debug)]
struct Drive {
    options: MemoryDrive,
    media: Media,
    under_way: u32,
    /// When the last transfer it has taken will be over.
    busy_until: Instant,
    failing: Option<(Instant, DeviceError)>,
    stalls: Vec<(Instant, Instant)>,
}

#[derive(Debug)]
struct UnderWay {
    command: Command,
    refused: Option<DeviceError>,
    /// Changes of the drive's media when it was submitted, for a flush.
    changes: u64,
}

impl MemoryBank {
    /// Drives that move data between themselves and `buffers`.
    ///
    /// # Panics
    /// If a drive's sizes don't fit together as [`Geometry`] says.
    pub fn new(drives: Vec<MemoryDrive>, buffers: MemoryBuffers) -> Self {
        Self::build(drives, Some(buffers))
    }

    /// Drives that keep time and no data, and look at no buffers. The names in commands mean nothing.
    ///
    /// # Panics
    /// As [`MemoryBank::new`].
    pub fn without_data(mut drives: Vec<MemoryDrive>) -> Self {
        for drive in &mut drives {
            drive.discard = true;
        }
        Self::build(drives, None)
    }

    /// From `at` on, every command fails that is submitted or would have been done after it.
    pub fn fail_from(&mut self, drive: DriveId, at: Instant, error: DeviceError) {
        self.drives[drive.index()].failing = Some((at, error));
    }

    /// Between `from` and `to`, nothing gets done on the drive.
    pub fn stall(&mut self, drive: DriveId, from: Instant, to: Instant) {
        self.drives[drive.index()].stalls.push((from, to));
    }

    /// Ends the world around the drives: of each command under way, all, some or nothing has
    /// happened, as the seed says; then they are forgotten, and no completion comes.
    pub fn crash(&mut self, seed: u64) {
        let mut random = Random::new(seed);
        let mut lost: Vec<_> = std::mem::take(&mut self.under_way).into_iter().collect();
        lost.sort_by_key(|((_, order), _)| *order);
        for (_, UnderWay { command, refused, changes }) in lost {
            if refused.is_none() && self.failure(command.drive, self.now).is_none() {
                self.apply_partly(&command, changes, &mut random);
            }
            self.forget(&command);
        }
        for drive in &mut self.drives {
            drive.busy_until = self.now;
        }
    }

    /// A [`MemoryBank::crash`] that also takes the power from the drives: those with a volatile cache
    /// lose any of the pages written since their last flush.
    pub fn power_cut(&mut self, seed: u64) {
        self.crash(seed);
        // Any number that differs from the seed, so that both draw independently.
        let mut random = Random::new(!seed);
        for drive in &mut self.drives {
            drive.media.lose_cache(&mut random);
        }
    }

    /// What lies on a drive, past the bank: for tests to look at.
    pub fn peek(&self, drive: DriveId, offset: u64, length: usize) -> Vec<u8> {
        let mut bytes = vec![0; length];
        self.drives[drive.index()].media.read(offset, &mut bytes);
        bytes
    }

    /// Changes what lies on a drive, past the bank and for good: for tests to damage it.
    pub fn poke(&mut self, drive: DriveId, offset: u64, bytes: &[u8]) {
        let media = &mut self.drives[drive.index()].media;
        media.write(offset, bytes, |_| true);
        media.flush(media.changes());
    }

    fn build(drives: Vec<MemoryDrive>, buffers: Option<MemoryBuffers>) -> Self {
        let geometry = drives.iter().enumerate().map(|(i, drive)| geometry(i, drive)).collect();
        let drives = drives
            .into_iter()
            .map(|options| Drive {
                media: Media::new(options.volatile_cache),
                options,
                under_way: 0,
                busy_until: Instant::START,
                failing: None,
                stalls: Vec::new(),
            })
            .collect();
        Self {
            geometry,
            drives,
            buffers,
            now: Instant::START,
            under_way: BTreeMap::new(),
            submitted: 0,
        }
    }

    fn refusal(&self, command: &Command) -> Option<DeviceError> {
        let buffer_bytes = self.buffers.as_ref().map_or(u64::MAX, |b| b.size() as u64);
        let geometry = &self.geometry[command.drive.index()];
        geometry.check(&command.operation, buffer_bytes).err().map(DeviceError::from)
    }

    /// When a command that is submitted now will be done.
    fn due(&mut self, command: &Command) -> Instant {
        let drive = &mut self.drives[command.drive.index()];
        let length = match command.operation {
            Operation::Read { length, .. } | Operation::Write { length, .. } => u64::from(length),
            // They wait for their turn too, but move nothing.
            Operation::Trim { .. } | Operation::Flush => 0,
        };
        let transfer = drive.options.rate.map_or(Duration::ZERO, |rate| rate.time_for(length));
        let start = drive.after_stalls(drive.busy_until.max(self.now));
        drive.busy_until = start + transfer;
        drive.busy_until + drive.options.latency
    }

    fn failure(&self, drive: DriveId, at: Instant) -> Option<DeviceError> {
        let (from, error) = self.drives[drive.index()].failing.as_ref()?;
        (at >= *from).then(|| error.clone())
    }

    fn complete(&mut self, under_way: UnderWay) -> Completion {
        let UnderWay { command, refused, changes } = under_way;
        let outcome = match refused.or_else(|| self.failure(command.drive, self.now)) {
            Some(error) => Err(error),
            None => {
                self.apply(&command, changes, &mut |_| true);
                if let Operation::Write { offset, length, fua: true, .. } = command.operation {
                    self.drives[command.drive.index()].media.force(offset, length.into());
                }
                Ok(())
            }
        };
        self.forget(&command);
        Completion { drive: command.drive, tag: command.tag, outcome, reaped: self.now }
    }

    /// Does what a command asks, on those pages that `keep` says.
    fn apply(&mut self, command: &Command, changes: u64, keep: &mut dyn FnMut(u64) -> bool) {
        let Drive { media, options, .. } = &mut self.drives[command.drive.index()];
        let bytes = |buffer| self.buffers.as_ref().map(|buffers| buffers.lock(buffer));
        match command.operation {
            Operation::Read { offset, length, buffer } => {
                if let Some(mut bytes) = bytes(buffer) {
                    media.read(offset, &mut bytes[..length as usize]);
                }
            }
            Operation::Write { .. } | Operation::Trim { .. } if options.discard => {}
            Operation::Write { offset, length, buffer, .. } => {
                if let Some(bytes) = bytes(buffer) {
                    media.write(offset, &bytes[..length as usize], keep);
                }
            }
            Operation::Trim { offset, length } => {
                media.trim(offset, length, options.trim_reads_zeros, keep);
            }
            Operation::Flush => media.flush(changes),
        }
    }

    /// Does all, a prefix, a part or nothing of what a command asks.
    fn apply_partly(&mut self, command: &Command, changes: u64, random: &mut Random) {
        let (offset, length) = match command.operation {
            // Whoever asked is gone.
            Operation::Read { .. } => return,
            Operation::Write { offset, length, .. } => (offset, u64::from(length)),
            Operation::Trim { offset, length } => (offset, length),
            // Either it was done, or its writes may be lost.
            Operation::Flush => (0, 0),
        };
        let page_bytes = media::PAGE_BYTES as u64;
        let (first, past) = (offset / page_bytes, (offset + length).div_ceil(page_bytes));
        match random.below(4) {
            0 => {}
            1 => self.apply(command, changes, &mut |_| true),
            _ if command.operation == Operation::Flush => {}
            2 => {
                let end = first + random.below(past - first + 1);
                self.apply(command, changes, &mut |page| page < end);
            }
            _ => self.apply(command, changes, &mut |_| random.one_in(2)),
        }
    }

    fn forget(&mut self, command: &Command) {
        self.drives[command.drive.index()].under_way -= 1;
        if let (Some(buffers), Some(buffer)) = (&self.buffers, command.operation.buffer()) {
            buffers.end_flight(buffer);
        }
    }

    /// The next command's time. Stalls that have come up since it was submitted count too.
    fn next_due(&mut self) -> Option<Instant> {
        loop {
            let (&(due, order), under_way) = self.under_way.first_key_value()?;
            let later = match under_way.refused {
                Some(_) => due,
                None => self.drives[under_way.command.drive.index()].after_stalls(due),
            };
            if later == due {
                return Some(due);
            }
            let under_way = self.under_way.remove(&(due, order))?;
            self.under_way.insert((later, order), under_way);
        }
    }
}

impl Drive {
    /// `at`, or the end of the stalls that it falls into.
    fn after_stalls(&self, at: Instant) -> Instant {
        let mut at = at;
        while let Some((_, to)) = self.stalls.iter().find(|(from, to)| (*from..*to).contains(&at)) {
            at = *to;
        }
        at
    }
}

impl Bank for MemoryBank {
    fn drives(&self) -> &[Geometry] {
        &self.geometry
    }

    fn now(&self) -> Instant {
        self.now
    }

    fn submit(&mut self, command: Command) -> Result<(), Full> {
        let index = command.drive.index();
        assert!(
            index < self.drives.len(),
            "can't submit a {} to drive {index}: the bank has {} drives",
            command.operation.describe(),
            self.drives.len()
        );
        if self.drives[index].under_way >= self.geometry[index].depth_max {
            return Err(Full);
        }
        if let (Some(buffers), Some(buffer)) = (&self.buffers, command.operation.buffer()) {
            buffers.begin_flight(buffer);
        }
        let refused = self.refusal(&command);
        let due = if refused.is_some() { self.now } else { self.due(&command) };
        let drive = &mut self.drives[index];
        drive.under_way += 1;
        let changes = drive.media.changes();
        self.under_way.insert((due, self.submitted), UnderWay { command, refused, changes });
        self.submitted += 1;
        Ok(())
    }

    fn wait(
        &mut self,
        until: Option<Instant>,
        done: &mut Vec<Completion>,
    ) -> Result<(), BankError> {
        let Some(due) = self.next_due().map(|due| due.max(self.now)) else {
            self.now = until.map_or(self.now, |until| until.max(self.now));
            return Ok(());
        };
        if let Some(until) = until
            && until.max(self.now) < due
        {
            self.now = until.max(self.now);
            return Ok(());
        }
        self.now = due;
        while self.next_due().is_some_and(|due| due <= self.now) {
            if let Some((_, under_way)) = self.under_way.pop_first() {
                let completion = self.complete(under_way);
                done.push(completion);
            }
        }
        Ok(())
    }
}

fn geometry(index: usize, drive: &MemoryDrive) -> Geometry {
    let &MemoryDrive { capacity_bytes, block_bytes, transfer_max_bytes, depth_max, .. } = drive;
    let name = format!("memory{index}");
    assert!(block_bytes.is_power_of_two() && block_bytes >= 512, "{name}: block size");
    assert!(capacity_bytes.is_multiple_of(u64::from(block_bytes)), "{name}: capacity");
    assert!(transfer_max_bytes.is_multiple_of(block_bytes), "{name}: longest transfer");
    assert!(depth_max > 0, "{name}: queue depth");
    assert!(drive.trim_unit_bytes != Some(0), "{name}: trim unit");
    Geometry {
        name,
        capacity_bytes,
        block_bytes,
        transfer_max_bytes,
        depth_max,
        trim_unit_bytes: drive.trim_unit_bytes,
        trim_reads_zeros: drive.trim_reads_zeros && drive.trim_unit_bytes.is_some(),
        writable: drive.writable,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::BufferId;

    const PAGE: usize = 4096;
    const DRIVE: DriveId = DriveId(0);

    fn bank(drive: MemoryDrive) -> (MemoryBank, MemoryBuffers) {
        let buffers = MemoryBuffers::new(4, 8 * PAGE);
        (MemoryBank::new(vec![drive], buffers.clone()), buffers)
    }

    fn write(bank: &mut MemoryBank, buffers: &MemoryBuffers, buffer: u32, offset: u64, byte: u8) {
        let buffer = BufferId(buffer);
        buffers.with(buffer, &mut |bytes| bytes.fill(byte));
        let operation = Operation::Write { offset, length: 8 * PAGE as u32, buffer, fua: false };
        bank.submit(Command { drive: DRIVE, operation, tag: u64::from(byte) }).unwrap();
    }

    fn flush(bank: &mut MemoryBank) {
        bank.submit(Command { drive: DRIVE, operation: Operation::Flush, tag: 0 }).unwrap();
    }

    fn finish(bank: &mut MemoryBank) -> Vec<Completion> {
        let mut done = Vec::new();
        while !bank.under_way.is_empty() {
            bank.wait(None, &mut done).unwrap();
        }
        done
    }

    #[test]
    fn transfers_share_the_rate_and_latencies_overlap() {
        let (mut bank, buffers) = bank(MemoryDrive {
            latency: Duration::from_micros(100),
            rate: Some(Rate(8.0 * PAGE as f64 * 1000.0)),
            ..MemoryDrive::default()
        });
        write(&mut bank, &buffers, 0, 0, 1);
        write(&mut bank, &buffers, 1, 8 * PAGE as u64, 2);
        let times: Vec<_> = finish(&mut bank).iter().map(|c| c.reaped.as_nanos()).collect();
        assert_eq!(times, [1_100_000, 2_100_000]);
    }

    #[test]
    fn nothing_gets_done_in_a_stall() {
        let ms = |ms| Instant::START + Duration::from_millis(ms);
        let (mut bank, buffers) =
            bank(MemoryDrive { latency: Duration::from_millis(2), ..MemoryDrive::default() });
        write(&mut bank, &buffers, 0, 0, 1);
        bank.stall(DRIVE, ms(1), ms(10));
        bank.wait(Some(ms(5)), &mut Vec::new()).unwrap();
        write(&mut bank, &buffers, 1, 0, 2);
        let done = finish(&mut bank);
        assert_eq!(
            done.iter().map(|c| (c.tag, c.reaped)).collect::<Vec<_>>(),
            [(1, ms(10)), (2, ms(12))]
        );
    }

    #[test]
    fn a_drive_fails_what_is_done_after_its_end() {
        let (mut bank, buffers) =
            bank(MemoryDrive { latency: Duration::from_millis(2), ..MemoryDrive::default() });
        bank.fail_from(DRIVE, Instant::START + Duration::from_millis(3), DeviceError::Gone);
        write(&mut bank, &buffers, 0, 0, 1);
        finish(&mut bank);
        write(&mut bank, &buffers, 0, 0, 2);
        let done = finish(&mut bank);
        assert_eq!(done[0].outcome, Err(DeviceError::Gone));
        assert_eq!(bank.peek(DRIVE, 0, PAGE), [1; PAGE]);
    }

    #[test]
    fn a_crash_leaves_any_pages_of_what_was_under_way_and_the_same_ones_for_the_same_seed() {
        let after = |seed| {
            let (mut bank, buffers) = bank(MemoryDrive::default());
            write(&mut bank, &buffers, 0, 0, 1);
            finish(&mut bank);
            write(&mut bank, &buffers, 0, 0, 2);
            bank.crash(seed);
            assert_eq!(finish(&mut bank), [], "no completion comes");
            buffers.with(BufferId(0), &mut |_| {});
            let bytes = bank.peek(DRIVE, 0, 8 * PAGE);
            bytes.chunks(PAGE).map(|page| page[0]).collect::<Vec<_>>()
        };
        let outcomes: std::collections::BTreeSet<_> = (0..200).map(after).collect();
        assert!(outcomes.contains(&vec![1; 8]) && outcomes.contains(&vec![2; 8]));
        assert!(outcomes.contains(&vec![2, 2, 2, 1, 1, 1, 1, 1]), "a prefix");
        assert!(outcomes.len() > 20, "and many others");
        assert_eq!(after(7), after(7));
    }

    #[test]
    fn a_power_cut_takes_nothing_that_was_flushed() {
        let mut lost_something = false;
        for seed in 0..50 {
            let (mut bank, buffers) =
                bank(MemoryDrive { volatile_cache: true, ..MemoryDrive::default() });
            write(&mut bank, &buffers, 0, 0, 1);
            finish(&mut bank);
            flush(&mut bank);
            finish(&mut bank);
            write(&mut bank, &buffers, 0, 8 * PAGE as u64, 2);
            finish(&mut bank);
            bank.power_cut(seed);
            assert_eq!(bank.peek(DRIVE, 0, 8 * PAGE), vec![1; 8 * PAGE]);
            lost_something |= bank.peek(DRIVE, 8 * PAGE as u64, 8 * PAGE).contains(&0);
        }
        assert!(lost_something);
    }

    #[test]
    fn a_power_cut_takes_nothing_that_a_fua_write_brought_and_may_take_what_lies_beside_it() {
        let mut lost_something = false;
        for seed in 0..50 {
            let (mut bank, buffers) = bank(MemoryDrive {
                volatile_cache: true,
                block_bytes: 512,
                ..MemoryDrive::default()
            });
            write(&mut bank, &buffers, 0, 0, 1);
            finish(&mut bank);
            let buffer = BufferId(1);
            buffers.with(buffer, &mut |bytes| bytes.fill(2));
            let (offset, length) = (PAGE as u64 / 2, 2 * PAGE as u32);
            let operation = Operation::Write { offset, length, buffer, fua: true };
            bank.submit(Command { drive: DRIVE, operation, tag: 1 }).unwrap();
            finish(&mut bank);
            bank.power_cut(seed);
            assert!(
                bank.peek(DRIVE, offset, 2 * PAGE).iter().all(|&byte| byte == 2),
                "seed {seed}"
            );
            lost_something |= bank.peek(DRIVE, 0, PAGE / 2).contains(&0);
        }
        assert!(lost_something, "the first write was neither flushed nor forced");
    }

    #[test]
    fn a_flush_covers_what_was_done_when_it_was_submitted_and_no_more() {
        let mut lost_something = false;
        for seed in 0..20 {
            let (mut bank, buffers) = bank(MemoryDrive {
                volatile_cache: true,
                latency: Duration::from_millis(1),
                ..MemoryDrive::default()
            });
            write(&mut bank, &buffers, 0, 0, 1);
            flush(&mut bank);
            finish(&mut bank);
            bank.power_cut(seed);
            lost_something |= bank.peek(DRIVE, 0, 8 * PAGE).contains(&0);
        }
        assert!(lost_something, "the write was not done yet when the flush came");
    }

    #[test]
    fn without_data_only_time_passes() {
        let mut bank = MemoryBank::without_data(vec![MemoryDrive {
            capacity_bytes: 1 << 50,
            rate: Some(Rate(1e9)),
            ..MemoryDrive::default()
        }]);
        let length = 4 << 20;
        for tag in 0..32 {
            let operation = Operation::Write {
                offset: tag << 40,
                length,
                buffer: BufferId(u32::MAX),
                fua: false,
            };
            bank.submit(Command { drive: DRIVE, operation, tag }).unwrap();
        }
        let done = finish(&mut bank);
        assert!(done.len() == 32 && done.iter().all(|completion| completion.outcome.is_ok()));
        let expected = Rate(1e9).time_for(u64::from(length)).as_nanos() * 32;
        assert_eq!(bank.now().as_nanos(), expected);
        assert_eq!(bank.drives[0].media.changes(), 0);
    }
}
