//! Commands that must not reach a drive: they fail, and nothing changes.

use super::{Bench, Fixture, assert_same, pattern};
use crate::{Bank, Buffers, DriveId, Full, Operation};

pub(super) fn commands_out_of_bounds_fail_and_change_nothing<F: Fixture>(fixture: &mut F) {
    let mut bench = Bench::new(fixture);
    for drive in bench.writable_drives() {
        let geometry = bench.geometry(drive);
        let block = geometry.block_bytes;
        let last = geometry.capacity_bytes - u64::from(block);
        bench.write(drive, last, block, 1);
        bench.write(drive, 0, block, 2);
        let far = u64::MAX / u64::from(block) * u64::from(block);
        for (offset, length) in [
            (geometry.capacity_bytes, block),
            (last, block * 2),
            (far, block),
            (far, block * 2),
            (1 << 63, block),
        ] {
            expect_refused(&mut bench, drive, offset, length);
        }
        if let Some(unit) = geometry.trim_unit_bytes.map(u64::from) {
            let beyond = geometry.capacity_bytes.next_multiple_of(unit);
            for (offset, length) in [
                (beyond, unit),
                (0, beyond + unit),
                (unit, u64::MAX / unit * unit),
                (u64::MAX / unit * unit, unit),
            ] {
                let trim = Operation::Trim { offset, length };
                expect_rejected(&mut bench, drive, trim);
            }
        }
        bench.expect(drive, last, block, 1);
        bench.expect(drive, 0, block, 2);
    }
}

pub(super) fn misaligned_commands_fail_and_change_nothing<F: Fixture>(fixture: &mut F) {
    let mut bench = Bench::new(fixture);
    for drive in bench.writable_drives() {
        let geometry = bench.geometry(drive);
        let block = geometry.block_bytes;
        bench.write(drive, 0, block * 3, 1);
        for (offset, length) in [
            (1, block),
            (u64::from(block) / 2, block),
            (0, block - 1),
            (0, block + block / 2),
            (u64::from(block), 1),
        ] {
            expect_refused(&mut bench, drive, offset, length);
        }
        if let Some(unit) = geometry.trim_unit_bytes.map(u64::from) {
            for (offset, length) in [(0, unit - 1), (1, unit), (unit / 2, unit), (0, unit + 1)] {
                let trim = Operation::Trim { offset, length };
                expect_rejected(&mut bench, drive, trim);
            }
        }
        bench.expect(drive, 0, block * 3, 1);
    }
}

pub(super) fn commands_longer_than_the_longest_transfer_or_buffer_fail<F: Fixture>(
    fixture: &mut F,
) {
    let mut bench = Bench::new(fixture);
    for drive in bench.writable_drives() {
        let block = bench.geometry(drive).block_bytes;
        let too_long = bench.longest(drive) + block;
        bench.write(drive, 0, block, 1);
        expect_refused(&mut bench, drive, 0, too_long);
        bench.expect(drive, 0, block, 1);
    }
}

pub(super) fn drives_that_are_not_writable_refuse_all_but_reads<F: Fixture>(fixture: &mut F) {
    let mut bench = Bench::new(fixture);
    for drive in bench.drives() {
        let geometry = bench.geometry(drive);
        if geometry.writable {
            continue;
        }
        let block = geometry.block_bytes;
        let before = bench.read(drive, 0, block);
        let buffer = bench.buffers[2];
        bench.fill(buffer, 1);
        let write = Operation::Write { offset: 0, length: block, buffer, fua: false };
        expect_rejected(&mut bench, drive, write);
        let unit = u64::from(geometry.trim_unit_bytes.unwrap_or(block));
        expect_rejected(&mut bench, drive, Operation::Trim { offset: 0, length: unit });
        let after = bench.read(drive, 0, block);
        assert_same(&after, &before, drive, 0);
    }
}

pub(super) fn a_full_drive_takes_nothing_and_loses_nothing<F: Fixture>(fixture: &mut F) {
    let mut bench = Bench::new(fixture);
    let buffer = bench.buffers[2];
    for drive in bench.writable_drives() {
        let geometry = bench.geometry(drive);
        bench.write(drive, 0, geometry.block_bytes, 1);
        for _ in 0..3 {
            let mut tags = fill_up(&mut bench, drive);
            // Not started: the buffer is free, and what it would have written isn't there.
            bench.fill(buffer, 2);
            let write =
                Operation::Write { offset: 0, length: geometry.block_bytes, buffer, fua: false };
            assert_eq!(bench.submit(drive, write), Err(Full));
            bench.fill(buffer, 3);

            let mut done = Vec::new();
            bench.bank().wait(None, &mut done).expect("a bank that works");
            assert!(!done.is_empty());
            tags.push(bench.submit(drive, Operation::Flush).expect("one is done: there is room"));
            done.extend(bench.collect(tags.len() - done.len()));
            let mut found: Vec<_> = done.iter().map(|done| done.tag).collect();
            found.sort_unstable();
            tags.sort_unstable();
            assert_eq!(found, tags);
            bench.expect(drive, 0, geometry.block_bytes, 1);
        }
    }
}

pub(super) fn a_full_drive_does_not_stop_the_others<F: Fixture>(fixture: &mut F) {
    let mut bench = Bench::new(fixture);
    let mut count = 0;
    for drive in bench.drives() {
        let depth_max = bench.geometry(drive).depth_max as usize;
        let taken = fill_up(&mut bench, drive).len();
        assert_eq!(taken, depth_max, "each drive has its own depth");
        count += taken;
    }
    bench.collect(count);
}

/// Submits flushes until the drive is full; their tags.
fn fill_up<F: Fixture>(bench: &mut Bench<F>, drive: DriveId) -> Vec<u64> {
    let depth_max = bench.geometry(drive).depth_max as usize;
    let mut tags = Vec::new();
    while let Ok(tag) = bench.submit(drive, Operation::Flush) {
        tags.push(tag);
        assert!(tags.len() <= depth_max, "more than depth_max commands were accepted");
    }
    assert!(!tags.is_empty(), "a drive with nothing under way is not full");
    tags
}

/// A command fails for the reason that the seam gives.
fn expect_rejected<F: Fixture>(bench: &mut Bench<F>, drive: DriveId, operation: Operation) {
    let buffer_bytes = bench.fixture.buffers().size() as u64;
    let why = bench.geometry(drive).check(&operation, buffer_bytes);
    let why = why.expect_err("the geometry forbids it").into();
    assert_eq!(bench.run(drive, operation), Err(why), "{}", operation.describe());
}

/// A read and a write of this range both fail, and the read leaves its buffer alone.
fn expect_refused<F: Fixture>(bench: &mut Bench<F>, drive: DriveId, offset: u64, length: u32) {
    let buffer = bench.buffers[2];
    bench.fill(buffer, 77);
    for operation in [
        Operation::Write { offset, length, buffer, fua: false },
        Operation::Read { offset, length, buffer },
    ] {
        expect_rejected(bench, drive, operation);
    }
    let kept = super::BUFFER_BYTES_MIN as u32;
    assert_same(&bench.bytes(buffer, kept), &pattern(kept, 77), drive, offset);
}
