//! A steady state that is put in place must be the one that writing leads to.

use base::random::Random;
use base::{Bank, BufferId, Command, DriveId, Operation};
use longtake_ssd::{SimBank, Slot, Spec, Start};

const BLOCK: u64 = 4096;

fn bank(start: Start) -> SimBank {
    let mut spec: Spec = crate::drives::small();
    // Many superblocks, so that one more or less doesn't show.
    spec.capacity_bytes = 1 << 30;
    spec.mapping.over_provisioning = 0.25;
    SimBank::new(&[Slot { spec, start, namespaces: vec![0], seed: 1 }], None).unwrap()
}

/// Writes so many blocks at random; returns the write amplification meanwhile.
fn write(bank: &mut SimBank, blocks: u64, random: &mut Random) -> f64 {
    let before = bank.health(0).sets[0].clone();
    let all = bank.drives()[0].capacity_bytes / BLOCK;
    let (mut sent, mut finished) = (0, 0);
    let mut done = Vec::new();
    while finished < blocks {
        while sent < blocks && sent - finished < 16 {
            let offset = random.below(all) * BLOCK;
            let operation =
                Operation::Write { offset, length: BLOCK as u32, buffer: BufferId(0), fua: false };
            bank.submit(Command { drive: DriveId(0), operation, tag: sent }).unwrap();
            sent += 1;
        }
        done.clear();
        bank.wait(None, &mut done).unwrap();
        finished += done.len() as u64;
    }
    let after = &bank.health(0).sets[0];
    (after.media_written_bytes - before.media_written_bytes) as f64
        / (after.written_bytes - before.written_bytes) as f64
}

#[test]
fn a_settled_drive_writes_as_one_that_was_written_over_and_over() {
    let blocks = (1 << 30) / BLOCK;
    let mut random = Random::new(1);
    let mut written = bank(Start::Full);
    write(&mut written, 6 * blocks, &mut random);
    let by_writing = write(&mut written, blocks, &mut random);
    let mut settled = bank(Start::Empty);
    write(&mut settled, blocks / 8, &mut random);
    settled.settle(BLOCK);
    let first = write(&mut settled, blocks / 2, &mut random);
    let later = write(&mut settled, blocks, &mut random);
    assert!(by_writing > 1.5, "{by_writing}");
    for computed in [first, later] {
        assert!((computed / by_writing - 1.0).abs() < 0.05, "{computed} or {by_writing}");
    }
}

#[test]
fn settling_keeps_time_counters_and_wear() {
    let mut bank = bank(Start::Full);
    write(&mut bank, 100_000, &mut Random::new(1));
    let (before, at) = (bank.health(0), bank.now());
    bank.settle(BLOCK);
    let after = bank.health(0);
    assert_eq!(bank.now(), at);
    assert!(before.sets[0].erases_mean > 0.0);
    assert_eq!(after, before);
}
