//! Simulated drives that keep data pass the suite that every bank must pass: a plain one, one with a cache and small buffer, one whose
//! units are larger than its blocks, one in place, one with sets and several namespaces.

use base::BufferId;
use base::conformance::Fixture;
use base::memory::MemoryBuffers;
use longtake_ssd::{SimBank, Slot, Spec, Start};

struct Simulated {
    bank: SimBank<MemoryBuffers>,
    memory: MemoryBuffers,
}

impl Simulated {
    fn new(specs: Vec<Spec>, start: &Start) -> Self {
        let memory = MemoryBuffers::new(8, 256 << 10);
        let slot = |spec: Spec| Slot {
            namespaces: (0..spec.sets.namespaces.len()).collect(),
            spec,
            start: start.clone(),
            seed: 1,
        };
        let slots: Vec<Slot> = specs.into_iter().map(slot).collect();
        let bank = SimBank::with_data(&slots, None, memory.clone()).expect("a drive that can be");
        Self { bank, memory }
    }
}

impl Fixture for Simulated {
    type Bank = SimBank<MemoryBuffers>;
    type Memory = MemoryBuffers;

    fn bank(&mut self) -> &mut Self::Bank {
        &mut self.bank
    }
    fn buffers(&self) -> &MemoryBuffers {
        &self.memory
    }
    fn buffer_ids(&self) -> Vec<BufferId> {
        self.memory.buffer_ids().collect()
    }
    fn power_cut(&mut self) -> bool {
        self.bank.power_cut();
        true
    }
}

mod plain {
    use super::*;
    base::conformance_tests!(Simulated::new(vec![crate::drives::small()], &Start::Empty));
}

mod full_with_a_cache {
    use super::*;
    base::conformance_tests!(Simulated::new(
        vec![crate::drives::cached(), crate::drives::small()],
        &Start::Full
    ));
}

mod with_large_units_in_steady_state {
    use super::*;
    base::conformance_tests!(Simulated::new(
        vec![crate::drives::large_units()],
        &Start::Random { block_bytes: 16 << 10 }
    ));
}

mod in_place {
    use super::*;
    base::conformance_tests!(Simulated::new(vec![crate::drives::in_place()], &Start::Empty));
}

mod in_sets {
    use super::*;
    base::conformance_tests!(Simulated::new(
        vec![crate::drives::in_sets(), crate::drives::striped()],
        &Start::Empty
    ));
}
