//! Flexible data placement: what is kept apart, and what that saves.

use base::{DriveId, Random};
use longtake_ssd::spec::{Collector, Isolation, Namespace, Placement};
use longtake_ssd::{Spec, Start, steady};

use crate::drives;
use crate::laws::mapping::ftl_of;
use crate::laws::work::{self, Run, write};

/// Bytes of the writes to the ring, and of those at random.
const LARGE: u64 = 64 << 10;
const SMALL: u64 = 4 << 10;

/// 256 MiB in two namespaces of the same size, with 20 % spare flash in some 800 superblocks.
fn two_namespaces(placement: Option<Placement>) -> Spec {
    let mut spec = drives::small();
    spec.capacity_bytes = 256 << 20;
    (spec.flash.channels, spec.flash.dies_per_channel) = (2, 2);
    (spec.flash.pages_per_block, spec.flash.page_bytes) = (6, 16 << 10);
    (spec.flash.planes, spec.flash.read_us) = (1, 20.0);
    spec.mapping.over_provisioning = 0.2;
    spec.sets.namespaces = vec![Namespace { share: 0.5, sets: vec![0] }; 2];
    spec.placement = placement;
    spec.check().unwrap();
    spec
}

const fn two_handles(isolation: Isolation) -> Option<Placement> {
    Some(Placement { handles: 2, isolation })
}

/// What a drive amplifies by on which one namespace is a ring and the other is written at random, as many bytes of each.
fn ring_beside_random(spec: &Spec) -> f64 {
    let mut run = Run::new(&[work::slot_of(spec.clone(), Start::Full, 1)], None, 1);
    let half = spec.capacity_bytes / 2;
    let (mut random, mut ring) = (Random::new(3), 0);
    let mut laps = |run: &mut Run, times: u64| {
        let before = run.bank.health(0).sets[0].clone();
        for _ in 0..times * half / LARGE {
            let mut send = |drive: u16, operation| {
                while !run.submit(DriveId(drive), operation) {
                    run.wait(None);
                }
            };
            send(0, write(ring, LARGE as u32));
            ring = (ring + LARGE) % half;
            for _ in 0..LARGE / SMALL {
                send(1, write(random.below(half / SMALL) * SMALL, SMALL as u32));
            }
        }
        run.drain();
        let after = &run.bank.health(0).sets[0];
        (after.media_written_bytes - before.media_written_bytes) as f64
            / (after.written_bytes - before.written_bytes) as f64
    };
    laps(&mut run, 4);
    laps(&mut run, 4)
}

#[test]
fn a_ring_of_its_own_handle_is_hardly_copied_and_leaves_its_spare_flash_to_the_other_namespace() {
    let [together, initial, persistent] =
        [None, two_handles(Isolation::Initial), two_handles(Isolation::Persistent)]
            .map(|placement| ring_beside_random(&two_namespaces(placement)));
    // Were nothing of the ring copied, twice the spare share would be left for the other half of the data. But the collector takes
    // the emptiest superblock, and that is the ring's oldest in its turn.
    let spec = two_namespaces(two_handles(Isolation::Persistent));
    let rho = 1.0 / (1.0 + 2.0 * spec.spare_share());
    let at_random = steady::steady_state(Collector::Greedy, rho, 96).write_amplification;
    let least = f64::midpoint(1.0, at_random);
    assert!(persistent > 0.98 * least && persistent < 1.12 * least, "{persistent} of {least}");
    assert!(initial > persistent && together > 1.4 * initial, "{together} {initial} {persistent}");
}

#[test]
fn data_of_each_handle_that_waits_for_the_rest_of_its_wordline_leaves_room_for_more() {
    let mut spec = two_namespaces(two_handles(Isolation::Initial));
    let unit = u64::from(spec.mapping.unit_bytes);
    let row = spec.flash.program_bytes() * u64::from(spec.flash.dies());
    // The least: one row for each handle, and one that is programmed.
    spec.buffer.bytes = 3 * row;
    spec.check().unwrap();
    let mut run = Run::new(&[work::slot_of(spec, Start::Full, 1)], None, 1);
    let mut offset = 0;
    // All but a unit of a row, of both handles, and then more than is left.
    for length in [row - unit, row - unit, 2 * row, 3 * row] {
        for drive in [0, 1] {
            while !run.submit(DriveId(drive), write(offset, length as u32)) {
                run.wait(None);
            }
        }
        offset += length;
    }
    run.drain();
    run.bank.audit(0).unwrap();
}

/// Superblocks that hold data of both halves of the units after these are written over at random for long.
fn mixed(placement: Option<Placement>) -> usize {
    let spec = two_namespaces(placement);
    let (mut ftl, mut flash) = ftl_of(&spec, 1);
    let units = ftl.setup().units;
    if placement.is_some() {
        ftl.place_from(0, 0);
        ftl.place_from(units / 2, 1);
    }
    ftl.fill_in_order();
    let mut random = Random::new(2);
    for _ in 0..6 * u64::from(units) {
        ftl.write(random.below(units.into()) as u32, 1, &mut flash);
    }
    ftl.audit().unwrap();
    let superblock = ftl.setup().stripe.units(false);
    let mut holds = vec![[false; 2]; ftl.setup().superblocks as usize];
    for unit in 0..units {
        holds[(ftl.place(unit) / superblock) as usize][usize::from(unit >= units / 2)] = true;
    }
    holds.iter().filter(|both| **both == [true, true]).count()
}

#[test]
fn data_of_two_handles_comes_together_only_where_it_may_and_only_by_copying() {
    let (none, initial, persistent) = (
        mixed(None),
        mixed(two_handles(Isolation::Initial)),
        mixed(two_handles(Isolation::Persistent)),
    );
    assert_eq!(persistent, 0);
    assert!(initial > 10 && none > initial, "{none} without handles, {initial} with");
}
