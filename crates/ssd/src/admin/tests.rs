//! Answers read by the offsets of the specification; the program's tests read them with the parsers that read real
//! drives.

use base::{Bank, Duration};
use proptest::prelude::*;

use super::*;
use crate::bank::{SimBank, Slot, Start};
use crate::spec::{
    Buffer, Collector, Controller, Endurance, Flash, Mapping, Namespace, SetLayout, Sets,
};

fn spec() -> Spec {
    Spec {
        name: "example".to_owned(),
        model: "Example 1TB".to_owned(),
        capacity_bytes: 1_000_204_886_016,
        block_bytes: 512,
        controller: Controller {
            read_us: 10.0,
            write_us: 8.0,
            read_iops: 1e6,
            write_iops: 1e6,
            depth: 1024,
        },
        link: Link::Pcie { generation: 4, lanes: 4, efficiency: 0.9 },
        buffer: Buffer { bytes: 64 << 20, protected: false },
        flash: Flash {
            media: Media::Nand,
            channels: 8,
            dies_per_channel: 4,
            planes: 2,
            page_bytes: 16 << 10,
            pages_per_block: 768,
            pages_per_program: 3,
            read_us: 50.0,
            program_us: 1800.0,
            erase_us: 4000.0,
            channel_mb_s: 1200.0,
            suspend_us: Some(20.0),
            suspend_erases: true,
            variation: 0.0,
            bad_blocks: 0.0,
            retry_share: 0.0,
        },
        mapping: Mapping {
            unit_bytes: 4096,
            over_provisioning: 0.07,
            collector: Collector::Greedy,
            reserve_superblocks: 2,
            trim_reads_zeros: true,
        },
        cache: None,
        sets: Sets::none(),
        placement: None,
        predictable: None,
        endurance: Endurance { cycles: 1000, used: 0.0, rated_bytes: None },
        upkeep: None,
        heat: None,
    }
}

/// Two sets of half the drive, the first with a namespace over all of it and the second over half of it.
fn two_sets() -> Spec {
    let namespace = |share, set| Namespace { share, sets: vec![set] };
    Spec {
        sets: Sets {
            layout: SetLayout::Vertical,
            count: 2,
            namespaces: vec![namespace(0.5, 0), namespace(0.25, 1)],
        },
        ..spec()
    }
}

fn admin(spec: &Spec) -> Admin {
    Admin::new(spec, Health::default(), 1, 0)
}

fn identify(cns: u8, nsid: u32, specific: u16) -> Query {
    Query::Identify { cns, nsid, specific }
}

fn number(bytes: &[u8], at: usize, length: usize) -> u64 {
    bytes[at..at + length].iter().rev().fold(0, |number, &byte| number << 8 | u64::from(byte))
}

#[test]
fn a_serial_number_follows_from_specification_seed_and_slot_and_fits_its_field() {
    let serial = |spec: &Spec, seed, slot| Identity::of(spec, seed, slot).serial;
    let first = serial(&spec(), 1, 0);
    assert_eq!(first, serial(&spec(), 1, 0));
    assert_eq!(first.len(), 20);
    let other = Spec { block_bytes: 4096, ..spec() };
    for different in [serial(&spec(), 2, 0), serial(&spec(), 1, 1), serial(&other, 1, 0)] {
        assert_ne!(first, different);
    }
    let data = admin(&spec()).answer(identify(1, 0, 0)).unwrap();
    assert_eq!(&data[4..24], first.as_bytes());
    assert!(data[768..].starts_with(b"nqn.2014-08.org.nvmexpress:uuid:"));
    assert_eq!((data[768 + 46], data[768 + 68]), (b'8', 0), "a UUID of version 8, and its end");
}

#[test]
fn a_name_longer_than_its_field_is_cut_and_other_alphabets_are_replaced() {
    let model = "Größe ".repeat(20);
    let data = admin(&Spec { model, ..spec() }).answer(identify(1, 0, 0)).unwrap();
    assert!(data[24..64].starts_with(b"Gr??e Gr??e "));
    assert!(data[64..72].is_ascii());
}

#[test]
fn only_what_is_lost_with_the_power_is_a_volatile_write_cache() {
    let byte = |spec: &Spec| admin(spec).answer(identify(1, 0, 0)).unwrap()[525];
    let protected = Buffer { protected: true, ..spec().buffer };
    let in_place = Flash { media: Media::InPlace, ..spec().flash };
    assert_eq!(byte(&spec()), 0b101);
    assert_eq!(byte(&Spec { buffer: protected, ..spec() }), 0b100);
    assert_eq!(byte(&Spec { flash: in_place, ..spec() }), 0b100);
}

#[test]
fn capacity_is_shared_out_among_sets_and_namespaces_without_a_rest() {
    let spec = two_sets();
    let admin = admin(&spec);
    let controller = admin.answer(identify(1, 0, 0)).unwrap();
    let total = number(&controller, 280, 8);
    let unallocated = number(&controller, 296, 8);
    let sizes: Vec<u64> = (1..=2)
        .map(|nsid| number(&admin.answer(identify(0, nsid, 0)).unwrap(), 0, 8) * 512)
        .collect();
    assert_eq!(total, spec.capacity_bytes);
    assert_eq!(sizes.iter().sum::<u64>() + unallocated, total);
    let sets = admin.answer(identify(4, 0, 0)).unwrap();
    assert_eq!(sets[0], 2);
    assert_eq!(number(&sets, 128 + 16, 8) + number(&sets, 256 + 16, 8), total);
    assert_eq!(number(&sets, 128 + 32, 8), 0);
    assert_eq!(number(&sets, 256 + 32, 8), unallocated);
}

#[test]
fn a_new_drive_tells_the_sizes_that_its_bank_works_with() {
    let over_both = Namespace { share: 0.9, sets: vec![0, 1] };
    let striped = Sets { namespaces: vec![over_both], ..two_sets().sets };
    for spec in [spec(), two_sets(), Spec { sets: striped, ..spec() }] {
        let namespaces = (0..spec.sets.namespaces.len()).collect();
        let slot = Slot { spec: spec.clone(), start: Start::Empty, namespaces, seed: 1 };
        let bank = SimBank::new(&[slot], None).unwrap();
        let admin = admin(&spec);
        assert_eq!(admin.health.sets, bank.health(0).sets);
        for (drive, nsid) in bank.drives().iter().zip(1..) {
            let namespace = admin.answer(identify(0, nsid, 0)).unwrap();
            assert_eq!(number(&namespace, 0, 8) * 512, drive.capacity_bytes);
        }
    }
}

#[test]
fn lists_begin_where_they_are_asked_to() {
    let admin = admin(&two_sets());
    let ids = |query| {
        let data = admin.answer(query).unwrap();
        (number(&data, 0, 4), number(&data, 4, 4))
    };
    assert_eq!(ids(identify(2, 0, 0)), (1, 2));
    assert_eq!(ids(identify(2, 1, 0)), (2, 0));
    assert_eq!(ids(identify(2, 2, 0)), (0, 0));
    let second = admin.answer(identify(4, 0, 2)).unwrap();
    assert_eq!((second[0], number(&second, 128, 2)), (1, 2));
    let groups = admin.answer(identify(0x19, 0, 2)).unwrap();
    assert_eq!((number(&groups, 0, 2), number(&groups, 2, 2)), (1, 2));
}

#[test]
fn a_namespace_in_several_sets_tells_none() {
    let over_both = Namespace { share: 1.0, sets: vec![0, 1] };
    let sets = Sets { namespaces: vec![over_both], ..two_sets().sets };
    let admin = admin(&Spec { sets, ..spec() });
    let namespace = admin.answer(identify(0, 1, 0)).unwrap();
    assert_eq!((number(&namespace, 100, 2), number(&namespace, 102, 2)), (0, 0));
    let list = admin.answer(identify(4, 0, 0)).unwrap();
    let controller = admin.answer(identify(1, 0, 0)).unwrap();
    assert_eq!(list[0], 2);
    // What is left of whole rounds of stripes.
    let left = number(&controller, 296, 8);
    assert!(left < 256 << 10, "{left}");
    assert_eq!([number(&list, 128 + 32, 8), number(&list, 256 + 32, 8)], [left / 2; 2]);
}

#[test]
fn counters_are_rounded_up_as_the_specification_has_it_and_life_stops_at_255() {
    let set = SetHealth {
        capacity_bytes: 1 << 40,
        physical_bytes: 1_100_000_000_000,
        written_bytes: 1_000_000_001,
        read_bytes: 1,
        media_written_bytes: 3_000_000_000,
        life_used: 0.29,
        ..SetHealth::default()
    };
    let health = Health {
        read_bytes: 512_001,
        written_bytes: 1_000_000_001,
        reads: 7,
        writes: 8,
        busy: Duration::from_secs(119),
        power_on: Duration::from_secs(7200),
        unsafe_shutdowns: 2,
        erases: crate::Erases::default(),
        retries: 0,
        thermal: None,
        sets: vec![set],
    };
    let worn = Admin::new(&spec(), health.clone(), 1, 0);
    let smart = worn.answer(Query::Log { page: 2, specific: 0 }).unwrap();
    assert_eq!((smart[0], smart[3], smart[5]), (0, 100, 29));
    let counters: Vec<u64> = (0..8).map(|n| number(&smart, 32 + 16 * n, 8)).collect();
    assert_eq!(counters, [2, 1954, 7, 8, 1, 3, 2, 2]);
    let group = worn.answer(Query::Log { page: 9, specific: 1 }).unwrap();
    let counters: Vec<u64> = (0..6).map(|n| number(&group, 32 + 16 * n, 8)).collect();
    assert_eq!(counters, [1_100_000, 1, 2, 3, 7, 8]);

    let mut worn_out = health;
    worn_out.sets[0].life_used = 3.0;
    let log = Admin::new(&spec(), worn_out, 1, 0).answer(Query::Log { page: 2, specific: 0 });
    assert_eq!(log.unwrap()[5], 255);
}

#[test]
fn a_typical_read_takes_each_step_of_its_way_once() {
    let list = admin(&two_sets()).answer(identify(4, 0, 0)).unwrap();
    // 10 us controller, 50 us flash, 4096 B at 1.2 GB/s, and at 7.09 GB/s: 64.0 us, in tenths.
    assert_eq!(number(&list, 128 + 8, 4), 640);
    // 16 dies of the set x 2 planes x 3 pages of 16 KiB.
    assert_eq!(number(&list, 128 + 12, 4), 16 * 6 * (16 << 10));
}

#[test]
fn what_a_drive_does_not_have_it_refuses_by_the_status_of_a_real_one() {
    let admin = admin(&spec());
    let log = |page, specific| Query::Log { page, specific };
    for (query, status) in [
        (identify(0, 0, 0), Status::INVALID_NAMESPACE),
        (identify(0, 2, 0), Status::INVALID_NAMESPACE),
        (identify(0, u32::MAX, 0), Status::INVALID_NAMESPACE),
        (identify(2, u32::MAX, 0), Status::INVALID_NAMESPACE),
        (identify(4, 0, 0), Status::INVALID_FIELD),
        (identify(0x7F, 0, 0), Status::INVALID_FIELD),
        (log(0x09, 0), Status::INVALID_FIELD),
        (log(0x09, 2), Status::INVALID_FIELD),
        (log(0xCA, 0), Status::INVALID_LOG_PAGE),
    ] {
        assert_eq!(admin.answer(query), Err(status), "{query:?}");
    }
    let sata = Spec { link: Link::Sata { gbps: 6.0, efficiency: 0.9 }, ..spec() };
    let refused = super::Admin::new(&sata, Health::default(), 1, 0).answer(identify(1, 0, 0));
    assert_eq!(refused, Err(Status::INVALID_OPCODE));
}

proptest! {
    #[test]
    fn an_answer_has_the_length_of_its_kind_whatever_is_asked_of_whatever_drive(
        cns in 0u8..0x20,
        page in 0u8..0x10,
        nsid in prop_oneof![0u32..50, any::<u32>()],
        specific in prop_oneof![0u16..50, any::<u16>()],
        sets in 1u32..40,
        namespaces in 0usize..40,
        capacity_bytes in 1u64 << 30..1 << 43,
        life_used in any::<f64>(),
    ) {
        let share = 1.0 / namespaces as f64;
        let namespace = |n: usize| Namespace { share, sets: vec![n as u32 % sets] };
        let namespaces = (0..namespaces).map(namespace).collect();
        let sets = Sets { count: sets, namespaces, ..two_sets().sets };
        let spec = Spec { sets, capacity_bytes, ..spec() };
        let worn = SetHealth { life_used, written_bytes: u64::MAX, ..SetHealth::default() };
        let admin = Admin::new(&spec, Health { sets: vec![worn], ..Health::default() }, 1, 0);
        if let Ok(data) = admin.answer(identify(cns, nsid, specific)) {
            prop_assert_eq!(data.len(), 4096);
            prop_assert!([0, 1, 2, 4, 0x19].contains(&cns));
        }
        if let Ok(log) = admin.answer(Query::Log { page, specific }) {
            prop_assert_eq!(log.len(), if page == 0 { 1024 } else { 512 });
            prop_assert!([0, 2, 9].contains(&page));
        }
    }
}
