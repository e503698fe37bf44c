//! Memory doesn't grow with what is written: a long run takes no more than a short one. Alone in its program, as it looks at all of the
//! program's memory.

mod drives;

use base::{Bank, BufferId, Command, DriveId, Operation, Random};
use longtake_ssd::{SimBank, Slot, Start};

/// Bytes of this program that are in memory, as Linux counts pages: those of the allocator and those that are mapped.
#[allow(clippy::disallowed_methods, reason = "a test may look at its own program")]
fn resident_bytes() -> u64 {
    let text = std::fs::read("/proc/self/statm").expect("Linux tells");
    let text = String::from_utf8(text).expect("it is text");
    let pages = text.split(' ').nth(1).expect("the second figure is resident pages");
    pages.parse::<u64>().expect("it is a number") * 4096
}

#[test]
fn a_million_writes_more_take_no_memory_more() {
    let spec = drives::cached();
    let places = spec.capacity_bytes / 4096;
    let slot = Slot { spec, start: Start::Full, namespaces: vec![0], seed: 1 };
    let mut bank = SimBank::new(&[slot], None).expect("a drive that can be");
    let mut random = Random::new(3);
    let mut done = Vec::new();
    let mut write = |commands: u64| {
        for tag in 0..commands {
            let offset = random.below(places) * 4096;
            let operation = match random.below(50) {
                0 => Operation::Trim { offset, length: 4096 },
                1 => Operation::Flush,
                _ => Operation::Write { offset, length: 4096, buffer: BufferId(0), fua: false },
            };
            while bank.submit(Command { drive: DriveId(0), operation, tag }).is_err() {
                done.clear();
                bank.wait(None, &mut done).expect("the bank goes on");
            }
        }
        bank.audit(0)
    };
    // Every unit several times, so that all tables are as large as they get.
    assert_eq!(write(300_000), Ok(()));
    let before = resident_bytes();
    assert_eq!(write(1_000_000), Ok(()));
    let grown = resident_bytes().saturating_sub(before);
    // The fault that this is about takes 900 bytes a write. The kernel may round what there is up to huge pages.
    assert!(grown < 8_000_000, "{grown} bytes more after a million writes");
}
