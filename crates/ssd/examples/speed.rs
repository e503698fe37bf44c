//! How fast the simulation is: a few workloads, timed.
#![allow(clippy::disallowed_methods, clippy::disallowed_types, clippy::disallowed_macros)]
use base::*;
use longtake_ssd::*;
#[path = "../tests/drives/mod.rs"]
mod drives;

fn run(
    bank: &mut SimBank,
    depth: u32,
    total: u64,
    mut next: impl FnMut() -> Operation,
    what: &str,
) {
    let t = std::time::Instant::now();
    let v0 = bank.now();
    let mut done = Vec::new();
    let mut sent = 0;
    for i in 0..depth {
        bank.submit(Command { drive: DriveId(0), operation: next(), tag: u64::from(i) }).unwrap();
        sent += 1;
    }
    let mut finished = 0;
    while finished < total {
        done.clear();
        bank.wait(None, &mut done).unwrap();
        for c in &done {
            finished += 1;
            if sent < total {
                bank.submit(Command { drive: DriveId(0), operation: next(), tag: c.tag }).unwrap();
                sent += 1;
            }
        }
    }
    let s = t.elapsed().as_secs_f64();
    let v = bank.now().since(v0).as_secs_f64();
    println!(
        "{what}: {total} in {s:.2} s: {:.2} M/s; virtual {v:.3} s, {:.0}/s; {:?}",
        total as f64 / s / 1e6,
        total as f64 / v,
        bank.health(0).sets[0].write_amplification()
    );
}

fn big(name: &str) -> Spec {
    let mut s = drives::small();
    s.name = name.into();
    s.capacity_bytes = 1_000_000_000_000 / 4096 * 4096;
    s.flash.channels = 8;
    s.flash.dies_per_channel = 4;
    s.flash.page_bytes = 16 << 10;
    s.flash.pages_per_block = 768;
    s.buffer.bytes = 64 << 20;
    s.mapping.over_provisioning = 0.125;
    s.controller.depth = 256;
    s
}

fn main() {
    let b = BufferId(0);
    let slot = |start| Slot { spec: big("big"), start, namespaces: vec![0], seed: 1 };
    let args: Vec<String> = std::env::args().collect();
    let want = |w: &str| args.len() < 2 || args.iter().any(|a| a == w);
    if want("read") {
        let t = std::time::Instant::now();
        let mut bank = SimBank::new(&[slot(Start::Full)], None).unwrap();
        println!("full start {:.2} s", t.elapsed().as_secs_f64());
        let mut r = Random::new(3);
        for _ in 0..3 {
            run(
                &mut bank,
                32,
                10_000_000,
                || Operation::Read { offset: r.below(244_140_625) * 4096, length: 4096, buffer: b },
                "4k random read",
            );
        }
    }
    if want("seq") {
        let mut bank = SimBank::new(&[slot(Start::Empty)], None).unwrap();
        let mut at = 0;
        for pass in 0..2 {
            let mut next = || {
                let o = at;
                at = (at + (128 << 10)) % (7_629_394 * (128 << 10));
                Operation::Write { offset: o, length: 128 << 10, buffer: b }
            };
            run(&mut bank, 8, 7_629_394, &mut next, &format!("seq pass {pass}"));
        }
    }
    if want("rand") {
        let mut bank = SimBank::new(&[slot(Start::Full)], None).unwrap();
        let mut r = Random::new(3);
        for _ in 0..2 {
            run(
                &mut bank,
                32,
                122_070_312,
                || Operation::Write {
                    offset: r.below(122_070_312) * 8192,
                    length: 8192,
                    buffer: b,
                },
                "8k random write",
            );
        }
    }
    if want("steady") {
        let t = std::time::Instant::now();
        let mut bank = SimBank::new(&[slot(Start::Random { block_bytes: 8192 })], None).unwrap();
        println!("steady start {:.2} s", t.elapsed().as_secs_f64());
        let mut r = Random::new(3);
        run(
            &mut bank,
            32,
            12_070_312,
            || Operation::Write { offset: r.below(122_070_312) * 8192, length: 8192, buffer: b },
            "8k random write",
        );
    }
}
