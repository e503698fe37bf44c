//! A drive that loses writes it has acknowledged loses data, and neither copy of its superblock.

use base::memory::MemoryBuffers;
use base::{Bank, BufferId, Buffers, Command, DriveId, Instant, Operation};
use format::Layout;
use format::layout::DATA_OFFSET;
use longtake_chaos::adversary::{Drive, Handle, Pace};
use longtake_chaos::fault::{Fault, What};
use longtake_chaos::trace::Trace;

const CAPACITY_BYTES: u64 = 4 << 20;
const PAGE_BYTES: u32 = 4096;

#[test]
fn a_drive_that_loses_writes_keeps_both_copies_of_its_superblock() {
    let drive = Drive {
        capacity_bytes: CAPACITY_BYTES,
        block_bytes: 4096,
        depth_max: 4,
        trimmed: None,
        volatile: true,
        pace: Pace::Even(10),
        kib_ns: 10,
        flush_us: 10,
    };
    let memory = MemoryBuffers::new(1, PAGE_BYTES as usize);
    let mut bank = Handle::new(&[drive], &memory, 1, Trace::default());
    let what = What::LosesWrites { left: u32::MAX };
    let to = Instant::from_nanos(u64::MAX);
    bank.hub(|hub| hub.set_faults(vec![Fault { drive: 0, from: Instant::START, to, what }]));
    let copy = Layout::copy_offset(CAPACITY_BYTES);
    let kept = [0, DATA_OFFSET, copy - u64::from(PAGE_BYTES), copy].map(|offset| {
        memory.with(BufferId(0), &mut |bytes| bytes.fill(7));
        let (length, buffer) = (PAGE_BYTES, BufferId(0));
        let operation = Operation::Write { offset, length, buffer, fua: false };
        bank.submit(Command { drive: DriveId(0), operation, tag: 0 }).unwrap();
        let mut done = Vec::new();
        while done.is_empty() {
            bank.wait(None, &mut done).unwrap();
        }
        assert_eq!(done[0].outcome, Ok(()));
        let mut bytes = [0; PAGE_BYTES as usize];
        bank.hub(|hub| hub.media(0).read(offset, &mut bytes));
        bytes == [7; PAGE_BYTES as usize]
    });
    assert_eq!(kept, [true, false, false, true]);
}
