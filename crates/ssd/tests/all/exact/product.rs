//! The same closed loop on the simulated drive.

use base::{Bank, BufferId, Command, DriveId, Instant, Latencies, Operation};
use longtake_ssd::{SimBank, Slot, Spec, Start};

use crate::exact::reads::Outcome;

/// Reads in a closed loop on a drive that was written in order.
pub fn closed_loop(
    spec: &Spec,
    depth: usize,
    bytes: u32,
    commands: u64,
    mut next: impl FnMut() -> u64,
) -> Outcome {
    let slot = Slot { spec: spec.clone(), start: Start::Full, namespaces: vec![0], seed: 1 };
    let mut bank = SimBank::new(&[slot], None).expect("the drive is possible");
    let mut begun = vec![Instant::START; depth];
    let mut submit = |bank: &mut SimBank, tag: u64| {
        let operation = Operation::Read { offset: next(), length: bytes, buffer: BufferId(0) };
        bank.submit(Command { drive: DriveId(0), operation, tag }).expect("depth is the drive's");
    };
    for tag in 0..depth as u64 {
        submit(&mut bank, tag);
    }
    let mut latencies = Latencies::default();
    let mut done = Vec::new();
    while latencies.count() < commands {
        bank.wait(None, &mut done).expect("it goes on");
        for completion in done.drain(..) {
            assert_eq!(completion.outcome, Ok(()));
            let begun = &mut begun[completion.tag as usize];
            latencies.record(completion.reaped.since(*begun));
            *begun = completion.reaped;
            submit(&mut bank, completion.tag);
        }
    }
    let seconds = bank.now().since(Instant::START).as_secs_f64();
    Outcome { commands_per_s: latencies.count() as f64 / seconds, latencies }
}
