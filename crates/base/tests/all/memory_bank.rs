//! The memory bank keeps the seam's promises, whatever it is set up to be.

use longtake_base::conformance::Fixture;
use longtake_base::memory::{MemoryBank, MemoryBuffers, MemoryDrive};
use longtake_base::{BufferId, Duration, Rate, conformance_tests};

struct InMemory {
    bank: MemoryBank,
    buffers: MemoryBuffers,
    /// Losses of power so far.
    cuts: u64,
}

impl InMemory {
    fn new(drives: Vec<MemoryDrive>) -> Self {
        let buffers = MemoryBuffers::new(16, 1 << 20);
        Self { bank: MemoryBank::new(drives, buffers.clone()), buffers, cuts: 0 }
    }
}

impl Fixture for InMemory {
    type Bank = MemoryBank;
    type Memory = MemoryBuffers;

    fn bank(&mut self) -> &mut MemoryBank {
        &mut self.bank
    }
    fn buffers(&self) -> &MemoryBuffers {
        &self.buffers
    }
    fn buffer_ids(&self) -> Vec<BufferId> {
        self.buffers.buffer_ids().collect()
    }
    fn power_cut(&mut self) -> bool {
        self.cuts += 1;
        self.bank.power_cut(self.cuts);
        true
    }
}

mod a_perfect_drive {
    use super::*;
    conformance_tests!(InMemory::new(vec![MemoryDrive::default()]));
}

mod drives_that_take_their_time {
    use super::*;
    conformance_tests!(InMemory::new(vec![
        MemoryDrive {
            latency: Duration::from_micros(80),
            rate: Some(Rate(2e9)),
            volatile_cache: true,
            ..MemoryDrive::default()
        },
        MemoryDrive {
            latency: Duration::from_millis(5),
            rate: Some(Rate(1e8)),
            ..MemoryDrive::default()
        },
        MemoryDrive { writable: false, ..MemoryDrive::default() },
    ]));
}

mod odd_drives {
    use super::*;
    conformance_tests!(InMemory::new(vec![
        MemoryDrive { depth_max: 1, block_bytes: 512, ..MemoryDrive::default() },
        MemoryDrive { trim_reads_zeros: false, trim_unit_bytes: Some(512), ..drive(512) },
        MemoryDrive { trim_unit_bytes: None, transfer_max_bytes: 128 << 10, ..drive(4096) },
        MemoryDrive { trim_unit_bytes: Some(64 << 10), ..drive(16 << 10) },
    ]));

    fn drive(block_bytes: u32) -> MemoryDrive {
        MemoryDrive { block_bytes, capacity_bytes: 16 << 20, ..MemoryDrive::default() }
    }
}
