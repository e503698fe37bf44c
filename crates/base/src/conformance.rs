//! The suite that every [`Bank`] must pass: one check for each promise that the seam makes.
//!
//! An implementation says how to make one ([`Fixture`]) and gets a test for each check from
//! [`conformance_tests!`](crate::conformance_tests). Checks write to the drives.

mod mixed;
mod refusals;
mod rounds;
mod waiting;

use crate::random::Random;
use crate::{
    Bank, BufferId, Buffers, Command, Completion, DeviceError, DriveId, Full, Geometry, Operation,
};

/// A bank to check. Each drive has at least [`CAPACITY_BYTES_MIN`]; there are at least
/// [`BUFFERS_MIN`] buffers of at least [`BUFFER_BYTES_MIN`]; one drive at least is writable.
pub trait Fixture {
    /// The bank that is checked.
    type Bank: Bank;
    /// The memory that its commands name.
    type Memory: Buffers;

    /// The bank. It is made for one check and has nothing under way.
    fn bank(&mut self) -> &mut Self::Bank;
    /// The memory.
    fn buffers(&self) -> &Self::Memory;
    /// The names of the buffers.
    fn buffer_ids(&self) -> Vec<BufferId>;

    /// Takes the power from all drives and gives it back, while nothing is under way. Returns false for a bank
    /// that can't.
    fn power_cut(&mut self) -> bool {
        false
    }
}

/// Bytes that each drive of a [`Fixture`] must have.
pub const CAPACITY_BYTES_MIN: u64 = 16 << 20;
/// Buffers that a [`Fixture`] must have.
pub const BUFFERS_MIN: usize = 6;
/// Bytes that each buffer of a [`Fixture`] must have.
pub const BUFFER_BYTES_MIN: usize = 128 << 10;

/// One check: it panics if the bank breaks its promise.
pub type Check<F> = fn(&mut F);

/// Runs every check, each on a bank of its own.
///
/// # Panics
/// If the bank breaks a promise.
pub fn all<F: Fixture>(make: impl Fn() -> F) {
    for (_, check) in checks() {
        check(&mut make());
    }
}

macro_rules! define_checks {
    ($dollar:tt $($module:ident::$name:ident,)*) => {
        $(
            #[doc = concat!("Checks that ", stringify!($name), " (underscores are spaces).")]
            ///
            /// # Panics
            /// If it is not so.
            pub fn $name<F: Fixture>(fixture: &mut F) {
                expect_fit(fixture);
                $module::$name(fixture);
            }
        )*

        /// All checks with their names.
        pub fn checks<F: Fixture>() -> Vec<(&'static str, Check<F>)> {
            vec![$((stringify!($name), $name::<F> as Check<F>),)*]
        }

        /// Makes a `#[test]` of every check, each on a bank of its own that the expression makes (a
        /// [`Fixture`](crate::conformance::Fixture)).
        #[macro_export]
        macro_rules! conformance_tests {
            ($dollar make:expr) => {
                $(
                    #[test]
                    fn $name() {
                        $dollar crate::conformance::$name(&mut $dollar make);
                    }
                )*
            };
        }
    };
}

define_checks! { $
    rounds::every_command_completes_once_with_its_own_tag_and_drive,
    rounds::a_read_sees_every_write_that_completed_before_it,
    rounds::drives_keep_what_is_theirs,
    rounds::the_longest_transfer_moves_every_byte,
    rounds::the_first_and_last_blocks_can_be_written,
    rounds::commands_of_no_bytes_complete_and_do_nothing,
    rounds::a_trim_gives_up_its_range_and_no_more,
    rounds::a_flush_completes_and_keeps_data,
    rounds::a_forced_write_moves_its_data_like_any_other,
    rounds::a_forced_write_survives_a_loss_of_power,
    rounds::buffers_are_not_to_be_touched_while_in_flight,
    refusals::commands_out_of_bounds_fail_and_change_nothing,
    refusals::misaligned_commands_fail_and_change_nothing,
    refusals::commands_longer_than_the_longest_transfer_or_buffer_fail,
    refusals::drives_that_are_not_writable_refuse_all_but_reads,
    refusals::a_full_drive_takes_nothing_and_loses_nothing,
    refusals::a_full_drive_does_not_stop_the_others,
    waiting::now_never_goes_backward_and_stamps_lie_within,
    waiting::waiting_for_nothing_returns_at_once,
    waiting::a_time_that_has_passed_polls,
    waiting::waiting_reaches_its_time_when_nothing_is_done,
    waiting::waiting_ends_when_something_is_done,
    waiting::waiting_appends_to_what_is_there,
    mixed::random_commands_do_what_a_model_does,
    mixed::random_commands_one_at_a_time_do_what_a_model_does,
}

fn expect_fit<F: Fixture>(fixture: &mut F) {
    assert!(fixture.buffer_ids().len() >= BUFFERS_MIN, "the fixture has too few buffers");
    assert!(fixture.buffers().size() >= BUFFER_BYTES_MIN, "the fixture's buffers are too small");
    let drives = fixture.bank().drives();
    assert!(drives.iter().any(|drive| drive.writable), "no drive of the fixture is writable");
    for drive in drives {
        let block = u64::from(drive.block_bytes);
        assert!(block.is_power_of_two() && block >= 512, "{drive:?}");
        assert!(drive.capacity_bytes >= CAPACITY_BYTES_MIN, "{drive:?}");
        assert!(drive.capacity_bytes.is_multiple_of(block), "{drive:?}");
        assert!(drive.transfer_max_bytes >= drive.block_bytes, "{drive:?}");
        assert!(drive.transfer_max_bytes.is_multiple_of(drive.block_bytes), "{drive:?}");
        assert!(drive.depth_max > 0, "{drive:?}");
        assert!(drive.trim_unit_bytes != Some(0), "{drive:?}");
        assert!(drive.trim_unit_bytes.is_some() || !drive.trim_reads_zeros, "{drive:?}");
    }
}

/// A fixture, and what checks do with it again and again.
struct Bench<'f, F: Fixture> {
    fixture: &'f mut F,
    buffers: Vec<BufferId>,
    tag: u64,
}

impl<'f, F: Fixture> Bench<'f, F> {
    fn new(fixture: &'f mut F) -> Self {
        let buffers = fixture.buffer_ids();
        // Tags are the caller's, so they start anywhere.
        Self { fixture, buffers, tag: u64::MAX - 7 }
    }

    fn bank(&mut self) -> &mut F::Bank {
        self.fixture.bank()
    }

    fn geometry(&mut self, drive: DriveId) -> Geometry {
        self.bank().drives()[drive.index()].clone()
    }

    fn drives(&mut self) -> Vec<DriveId> {
        (0..self.bank().drives().len() as u16).map(DriveId).collect()
    }

    fn writable_drives(&mut self) -> Vec<DriveId> {
        let drives = self.drives();
        drives.into_iter().filter(|&drive| self.geometry(drive).writable).collect()
    }

    /// The longest read or write that a buffer and a drive take, in bytes.
    fn longest(&mut self, drive: DriveId) -> u32 {
        let geometry = self.geometry(drive);
        let buffer = self.fixture.buffers().size() as u64;
        let longest = buffer.min(u64::from(geometry.transfer_max_bytes)) as u32;
        longest / geometry.block_bytes * geometry.block_bytes
    }

    fn submit(&mut self, drive: DriveId, operation: Operation) -> Result<u64, Full> {
        let tag = self.tag;
        self.bank().submit(Command { drive, operation, tag })?;
        self.tag = self.tag.wrapping_add(1);
        Ok(tag)
    }

    /// Waits for exactly `count` completions, and that no more come.
    fn collect(&mut self, count: usize) -> Vec<Completion> {
        let mut done = Vec::new();
        while done.len() < count {
            let before = done.len();
            self.bank().wait(None, &mut done).expect("a bank that works");
            assert!(done.len() > before, "wait came back with {before} of {count} done");
        }
        self.bank().wait(None, &mut done).expect("a bank that works");
        assert_eq!(done.len(), count, "more completions than commands: {done:?}");
        done
    }

    /// Runs one command to its end.
    fn run(&mut self, drive: DriveId, operation: Operation) -> Result<(), DeviceError> {
        let tag = self.submit(drive, operation).expect("a bank with nothing under way");
        let done = self.collect(1).remove(0);
        assert_eq!((done.drive, done.tag), (drive, tag));
        done.outcome
    }

    /// Runs one command that must succeed.
    fn run_well(&mut self, drive: DriveId, operation: Operation) {
        let outcome = self.run(drive, operation);
        assert_eq!(outcome, Ok(()), "{} on drive {}", operation.describe(), drive.0);
    }

    /// Fills a buffer with bytes that belong to `seed`.
    fn fill(&self, buffer: BufferId, seed: u64) {
        self.fixture.buffers().with(buffer, &mut |bytes| fill(bytes, seed));
    }

    /// The first `length` bytes of a buffer.
    fn bytes(&self, buffer: BufferId, length: u32) -> Vec<u8> {
        let mut copy = Vec::new();
        self.fixture.buffers().with(buffer, &mut |bytes| {
            copy = bytes[..length as usize].to_vec();
        });
        assert_eq!(copy.len(), length as usize, "`with` calls its closure");
        copy
    }

    fn write(&mut self, drive: DriveId, offset: u64, length: u32, seed: u64) {
        self.write_with(drive, offset, length, seed, false);
    }

    /// A write with Force Unit Access.
    fn force(&mut self, drive: DriveId, offset: u64, length: u32, seed: u64) {
        self.write_with(drive, offset, length, seed, true);
    }

    fn write_with(&mut self, drive: DriveId, offset: u64, length: u32, seed: u64, fua: bool) {
        let buffer = self.buffers[0];
        self.fill(buffer, seed);
        self.run_well(drive, Operation::Write { offset, length, buffer, fua });
    }

    fn read(&mut self, drive: DriveId, offset: u64, length: u32) -> Vec<u8> {
        let buffer = self.buffers[1];
        // What was there before must not pass for what was read.
        self.fill(buffer, 0xbad);
        self.run_well(drive, Operation::Read { offset, length, buffer });
        self.bytes(buffer, length)
    }

    /// Asserts that a range holds what [`Bench::write`] put there with this seed.
    fn expect(&mut self, drive: DriveId, offset: u64, length: u32, seed: u64) {
        let found = self.read(drive, offset, length);
        assert_same(&found, &pattern(length, seed), drive, offset);
    }
}

/// Like `assert_eq!`, with where they differ instead of all the bytes.
fn assert_same(found: &[u8], expected: &[u8], drive: DriveId, offset: u64) {
    assert_eq!(found.len(), expected.len());
    if let Some(at) = found.iter().zip(expected).position(|(found, expected)| found != expected) {
        panic!(
            "drive {} at {}: found {:#04x} instead of {:#04x}, {at} bytes into {}",
            drive.0,
            offset + at as u64,
            found[at],
            expected[at],
            found.len()
        );
    }
}

fn fill(bytes: &mut [u8], seed: u64) {
    let mut random = Random::new(seed);
    for part in bytes.chunks_mut(8) {
        part.copy_from_slice(&random.bits().to_le_bytes()[..part.len()]);
    }
}

fn pattern(length: u32, seed: u64) -> Vec<u8> {
    let mut bytes = vec![0; length as usize];
    fill(&mut bytes, seed);
    bytes
}
