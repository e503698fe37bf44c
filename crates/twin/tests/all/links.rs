//! Whether a link is the limit is known of a simulated drive: put it on a faster one and see.

use base::Duration;
use base::random::Random;
use lab::experiment::Scope;
use lab::experiment::link::{DriveLink, HeldBack, Link, LinkResult};
use lab::rig::Go;
use lab::{BankRig, Lab, Progress};
use load::Verb;
use ssd::spec;
use ssd::{SimBank, Slot, Spec, Start};

/// Transfers a second on each lane, in 10^9, by generation.
const GIGATRANSFERS: [f64; 3] = [2.5, 5.0, 8.0];

/// A drive with flash and a link drawn at random.
fn drawn(random: &mut Random) -> Spec {
    let profile = profile::library::get("patriot-hellfire-240gb").expect("it is in the library");
    let mut spec = Spec::from_profile(&profile).expect("it can be simulated");
    let between = |random: &mut Random, low: f64, high: f64| {
        low + (high - low) * random.below(1 << 20) as f64 / f64::from(1 << 20)
    };
    spec.flash.channel_mb_s = between(random, 60.0, 600.0);
    spec.flash.program_us = between(random, 300.0, 3000.0);
    spec.capacity_bytes = 24 << 30;
    spec.link = spec::Link::Pcie {
        generation: 1 + random.below(3) as u8,
        lanes: 1 << random.below(3),
        // What packets of 128 to 256 bytes leave of the line, less a little.
        efficiency: between(random, 0.8, 0.91),
    };
    spec
}

/// The same with four times the lanes.
fn on_a_faster_link(spec: &Spec) -> Spec {
    let mut faster = spec.clone();
    let spec::Link::Pcie { lanes, .. } = &mut faster.link else { unreachable!("it was drawn") };
    *lanes *= 4;
    faster
}

fn measured(spec: &Spec) -> LinkResult {
    let spec::Link::Pcie { generation, lanes, .. } = spec.link else {
        unreachable!("it was drawn")
    };
    let gigatransfers = GIGATRANSFERS[usize::from(generation) - 1];
    let now = Some(lab::analysis::Link { gigatransfers, lanes });
    let slot = Slot { spec: spec.clone(), start: Start::Full, namespaces: vec![0], seed: 1 };
    let bank = SimBank::new(&[slot], None).expect("a drive");
    let scope = Scope {
        region: Some(256 << 20),
        point: Duration::from_millis(200),
        interval: Duration::from_millis(50),
        ..Scope::default()
    };
    let links = vec![DriveLink::Pcie { now, best: now, slot: None }];
    let folder = tempfile::tempdir().expect("a folder");
    let mut rig = BankRig::without_data(bank);
    let mut watch = |_: &Progress<'_>| Go::On;
    let mut lab = Lab::new(&mut rig, folder.path(), &mut watch).expect("a laboratory");
    Link { scope, links, write: true, sweep: None }.run(&mut lab).expect("it is measured")
}

#[test]
fn a_drive_is_held_back_by_its_link_if_it_is_faster_on_another() {
    let mut random = Random::new(1);
    let mut seen = [0; 2];
    for _ in 0..24 {
        let spec = drawn(&mut random);
        let (own, faster) = (measured(&spec), measured(&on_a_faster_link(&spec)));
        for operation in [Verb::Read, Verb::Write] {
            let rate = |result: &LinkResult| result.sequential(operation).expect("it was measured");
            let gain = rate(&faster) / rate(&own) - 1.0;
            let held_back = own.held_back(operation).expect("the link is known");
            let said = format!("{operation}: {held_back:?}, {:.2} faster, {spec:?}", 1.0 + gain);
            match held_back {
                HeldBack::No => assert!(gain < 0.1, "{said}"),
                HeldBack::Yes | HeldBack::Maybe => {}
            }
            if gain > 0.3 {
                assert_eq!(held_back, HeldBack::Yes, "{said}");
            }
            seen[usize::from(gain > 0.3)] += 1;
        }
    }
    assert!(seen.iter().all(|&seen| seen > 5), "{seen:?}");
}
