//! The hostile bank keeps the promises of every bank, as long as no fault is planned.

use base::memory::MemoryBuffers;
use base::{BufferId, conformance};
use longtake_chaos::adversary::{Drive, Handle, Pace};
use longtake_chaos::media::Trimmed;
use longtake_chaos::trace::Trace;

struct Fixture {
    bank: Handle,
    memory: MemoryBuffers,
}

impl conformance::Fixture for Fixture {
    type Bank = Handle;
    type Memory = MemoryBuffers;

    fn bank(&mut self) -> &mut Handle {
        &mut self.bank
    }
    fn buffers(&self) -> &MemoryBuffers {
        &self.memory
    }
    fn buffer_ids(&self) -> Vec<BufferId> {
        self.memory.buffer_ids().collect()
    }
    fn power_cut(&mut self) -> bool {
        self.bank.hub(|hub| hub.crash(true));
        true
    }
}

fn fixture() -> Fixture {
    let drive = |block_bytes, trimmed, pace| Drive {
        capacity_bytes: conformance::CAPACITY_BYTES_MIN,
        block_bytes,
        depth_max: 16,
        trimmed,
        volatile: true,
        pace,
        kib_ns: 100,
        flush_us: 3000,
    };
    let drives = [
        drive(512, Some(Trimmed::Zeros), Pace::Spread(2000)),
        drive(4096, Some(Trimmed::Junk), Pace::Even(100)),
        drive(512, None, Pace::Tailed { us: 50, one_in: 10, worst_us: 20_000 }),
    ];
    let memory = MemoryBuffers::new(conformance::BUFFERS_MIN as u32, conformance::BUFFER_BYTES_MIN);
    let bank = Handle::new(&drives, &memory, 11, Trace::default());
    Fixture { bank, memory }
}

base::conformance_tests!(fixture());
