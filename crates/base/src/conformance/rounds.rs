//! What goes in comes out: completions, data, trims and flushes.

use std::panic::{AssertUnwindSafe, catch_unwind};

use super::{Bench, Fixture, assert_same, pattern};
use crate::{Bank, Buffers, Operation, Rejected};

pub(super) fn every_command_completes_once_with_its_own_tag_and_drive<F: Fixture>(fixture: &mut F) {
    let mut bench = Bench::new(fixture);
    let buffers = bench.buffers.clone();
    for round in 0..20u64 {
        let mut expected = Vec::new();
        for (i, &buffer) in buffers.iter().enumerate() {
            let drives = bench.writable_drives();
            let drive = drives[(i + round as usize) % drives.len()];
            let length = bench.geometry(drive).block_bytes;
            let offset = u64::from(length) * i as u64;
            let operation = match (i as u64 + round) % 3 {
                0 => Operation::Read { offset, length, buffer },
                1 => Operation::Write { offset, length, buffer, fua: false },
                _ => Operation::Flush,
            };
            // A drive whose depth is less than this is full, and says so elsewhere.
            if let Ok(tag) = bench.submit(drive, operation) {
                expected.push((drive, tag));
            }
        }
        assert!(!expected.is_empty());
        let done = bench.collect(expected.len());
        assert!(done.iter().all(|done| done.outcome.is_ok()), "{done:?}");
        let mut found: Vec<_> = done.iter().map(|done| (done.drive, done.tag)).collect();
        found.sort_unstable();
        expected.sort_unstable();
        assert_eq!(found, expected);
    }
}

pub(super) fn a_read_sees_every_write_that_completed_before_it<F: Fixture>(fixture: &mut F) {
    let mut bench = Bench::new(fixture);
    for drive in bench.writable_drives() {
        let block = bench.geometry(drive).block_bytes;
        for round in 0..8u64 {
            let length = block * (1 + round as u32 % 3);
            bench.write(drive, u64::from(block) * round, length, round);
            bench.expect(drive, u64::from(block) * round, length, round);
        }
        // Over it, in other pieces.
        bench.write(drive, 0, block * 4, 99);
        bench.write(drive, u64::from(block), block, 100);
        bench.expect(drive, u64::from(block), block, 100);
        let found = bench.read(drive, 0, block * 4);
        let mut expected = pattern(block * 4, 99);
        expected[block as usize..2 * block as usize].copy_from_slice(&pattern(block, 100));
        assert_same(&found, &expected, drive, 0);
    }
}

pub(super) fn drives_keep_what_is_theirs<F: Fixture>(fixture: &mut F) {
    let mut bench = Bench::new(fixture);
    let drives = bench.writable_drives();
    for &drive in &drives {
        let length = bench.geometry(drive).block_bytes;
        bench.write(drive, 0, length, u64::from(drive.0));
    }
    for &drive in &drives {
        let length = bench.geometry(drive).block_bytes;
        bench.expect(drive, 0, length, u64::from(drive.0));
    }
}

pub(super) fn the_longest_transfer_moves_every_byte<F: Fixture>(fixture: &mut F) {
    let mut bench = Bench::new(fixture);
    for drive in bench.writable_drives() {
        let block = u64::from(bench.geometry(drive).block_bytes);
        let length = bench.longest(drive);
        for (offset, seed) in [(0, 1), (block, 2)] {
            if offset + u64::from(length) <= bench.geometry(drive).capacity_bytes {
                bench.write(drive, offset, length, seed);
                bench.expect(drive, offset, length, seed);
            }
        }
    }
}

pub(super) fn the_first_and_last_blocks_can_be_written<F: Fixture>(fixture: &mut F) {
    let mut bench = Bench::new(fixture);
    for drive in bench.writable_drives() {
        let geometry = bench.geometry(drive);
        let last = geometry.capacity_bytes - u64::from(geometry.block_bytes);
        bench.write(drive, 0, geometry.block_bytes, 1);
        bench.write(drive, last, geometry.block_bytes, 2);
        bench.expect(drive, 0, geometry.block_bytes, 1);
        bench.expect(drive, last, geometry.block_bytes, 2);
    }
}

pub(super) fn commands_of_no_bytes_complete_and_do_nothing<F: Fixture>(fixture: &mut F) {
    let mut bench = Bench::new(fixture);
    let buffer = bench.buffers[2];
    for drive in bench.writable_drives() {
        let geometry = bench.geometry(drive);
        let block = geometry.block_bytes;
        bench.write(drive, 0, block, 1);
        bench.fill(buffer, 2);
        for offset in [0, geometry.capacity_bytes] {
            bench.run_well(drive, Operation::Write { offset, length: 0, buffer, fua: false });
            bench.run_well(drive, Operation::Read { offset, length: 0, buffer });
        }
        if geometry.trim_unit_bytes.is_some() {
            bench.run_well(drive, Operation::Trim { offset: 0, length: 0 });
        }
        assert_same(&bench.bytes(buffer, block), &pattern(block, 2), drive, 0);
        bench.expect(drive, 0, block, 1);
    }
}

pub(super) fn a_trim_gives_up_its_range_and_no_more<F: Fixture>(fixture: &mut F) {
    let mut bench = Bench::new(fixture);
    for drive in bench.writable_drives() {
        let geometry = bench.geometry(drive);
        let Some(unit) = geometry.trim_unit_bytes else {
            let trim = Operation::Trim { offset: 0, length: u64::from(geometry.block_bytes) };
            assert_eq!(bench.run(drive, trim), Err(Rejected::NoTrim.into()));
            continue;
        };
        // Three pieces, each of whole blocks and whole units.
        let piece = unit.max(geometry.block_bytes).next_multiple_of(4096);
        if piece > bench.longest(drive) {
            continue;
        }
        let start = |index: u64| u64::from(piece) * index;
        for index in 0..3 {
            bench.write(drive, start(index), piece, index);
        }
        bench.run_well(drive, Operation::Trim { offset: start(1), length: u64::from(piece) });
        bench.expect(drive, start(0), piece, 0);
        bench.expect(drive, start(2), piece, 2);
        let trimmed = bench.read(drive, start(1), piece);
        if geometry.trim_reads_zeros {
            assert!(trimmed.iter().all(|&byte| byte == 0), "a trimmed range must read as zeros");
        }
        bench.write(drive, start(1), piece, 4);
        bench.expect(drive, start(1), piece, 4);
    }
}

pub(super) fn a_flush_completes_and_keeps_data<F: Fixture>(fixture: &mut F) {
    let mut bench = Bench::new(fixture);
    for drive in bench.writable_drives() {
        let block = bench.geometry(drive).block_bytes;
        bench.run_well(drive, Operation::Flush);
        bench.write(drive, 0, block, 5);
        bench.run_well(drive, Operation::Flush);
        bench.expect(drive, 0, block, 5);
    }
}

pub(super) fn a_forced_write_moves_its_data_like_any_other<F: Fixture>(fixture: &mut F) {
    let mut bench = Bench::new(fixture);
    for drive in bench.writable_drives() {
        let (block, longest) = (bench.geometry(drive).block_bytes, bench.longest(drive));
        bench.write(drive, 0, longest, 1);
        bench.force(drive, 0, block, 2);
        bench.expect(drive, 0, block, 2);
        bench.force(drive, 0, longest, 3);
        bench.expect(drive, 0, longest, 3);
        let end = bench.geometry(drive).capacity_bytes;
        let buffer = bench.buffers[0];
        let beyond = Operation::Write { offset: end, length: block, buffer, fua: true };
        assert!(bench.run(drive, beyond).is_err(), "it lies beyond the end");
        bench.run_well(drive, Operation::Write { offset: end, length: 0, buffer, fua: true });
    }
}

pub(super) fn a_forced_write_survives_a_loss_of_power<F: Fixture>(fixture: &mut F) {
    let mut bench = Bench::new(fixture);
    for round in 0..16 {
        for drive in bench.writable_drives() {
            let (block, longest) = (bench.geometry(drive).block_bytes, bench.longest(drive));
            let beside = u64::from(longest);
            bench.write(drive, 0, longest, round);
            bench.write(drive, beside, longest, round);
            bench.force(drive, 0, block, 100 + round);
            bench.force(drive, beside, longest, 200 + round);
            // What comes after it may be lost, and does not take it along.
            bench.write(drive, u64::from(block), block, 300 + round);
        }
        if !bench.fixture.power_cut() {
            return;
        }
        for drive in bench.writable_drives() {
            let (block, longest) = (bench.geometry(drive).block_bytes, bench.longest(drive));
            bench.expect(drive, 0, block, 100 + round);
            bench.expect(drive, longest.into(), longest, 200 + round);
        }
    }
}

pub(super) fn buffers_are_not_to_be_touched_while_in_flight<F: Fixture>(fixture: &mut F) {
    let mut bench = Bench::new(fixture);
    let drive = bench.writable_drives()[0];
    let length = bench.geometry(drive).block_bytes;
    let buffer = bench.buffers[0];
    let write = Operation::Write { offset: 0, length, buffer, fua: false };
    bench.submit(drive, write).expect("a bank with nothing under way");
    let buffers = bench.fixture.buffers();
    let look = catch_unwind(AssertUnwindSafe(|| buffers.with(buffer, &mut |_| {})));
    assert!(look.is_err(), "looking at a buffer in flight must panic");
    let again = catch_unwind(AssertUnwindSafe(|| bench.submit(drive, write)));
    assert!(
        matches!(again, Err(_) | Ok(Err(_))),
        "a second command on a buffer in flight must not be accepted"
    );
    let mut done = Vec::new();
    bench.bank().wait(None, &mut done).expect("a bank that works");
    assert_eq!(done.len(), 1);
    bench.fill(buffer, 1);
}
