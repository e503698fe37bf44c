//! What simulated drives answer, read by the parsers that read real drives: it must be what their specification says.

use std::path::Path;

use base::{Duration, Instant};
use device::facts::{Answer, Facts};
use device::identity::Kind;
use device::link::LinkVerdict;
use device::nvme::identify::{Attribute, DeallocatedReads, OptionalCommand};
use device::nvme::log::Window;
use device::wear::Wear;
use longtake_target::facts;
use ssd::health::SetWindow;
use ssd::spec::{
    Buffer, Collector, Controller, Endurance, Flash, Heat, Isolation, Link, Mapping, Media,
    Namespace, Placement, Predictable, SetLayout, Sets, Spec,
};
use ssd::{Erases, Health, SetHealth, SimBank, Slot, Start};

/// A drive of 1 TB as shops sell them.
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

fn slot(spec: Spec) -> Slot {
    let namespaces = (0..spec.sets.namespaces.len()).collect();
    Slot { spec, start: Start::Empty, namespaces, seed: 7 }
}

fn facts_of(spec: Spec, namespace: usize, health: Health) -> Facts {
    facts::of("sim:example", &slot(spec), 0, namespace, health).unwrap()
}

fn new(spec: Spec) -> Facts {
    facts_of(spec, 0, Health::default())
}

#[test]
fn a_plain_drive_is_listed_like_a_real_one() {
    let facts = new(spec());
    let drive = &facts.drive;
    assert_eq!(drive.path, Path::new("sim:example"));
    assert_eq!((drive.kind, drive.size_bytes), (Kind::Nvme, 1_000_204_886_016));
    assert_eq!((drive.logical_block_bytes, drive.physical_block_bytes), (512, 4096));
    assert_eq!(drive.model.as_deref(), Some("Example 1TB"));
    assert_eq!(drive.firmware.as_deref(), Some(env!("CARGO_PKG_VERSION")));
    let serial = drive.serial.as_deref().unwrap();
    assert!(serial.starts_with("SIM-") && serial.len() == 20, "{serial}");
    assert_eq!(drive.link.unwrap().to_string(), "PCIe 4.0 x4");
    assert_eq!(facts.link_verdict, Some(LinkVerdict::Full));
    assert_eq!(drive.wear.percent_used(), Some(0));
    assert_eq!(drive.nvme.as_ref().unwrap().id, Some(1));
    assert_eq!(drive.confirmation(), None, "nothing needs to be confirmed");
}

#[test]
fn a_plain_drives_controller_says_what_it_can_and_no_more() {
    let nvme = new(spec()).nvme.unwrap();
    let controller = nvme.controller.known().unwrap();
    assert_eq!(controller.version.as_deref(), Some("2.0.0"));
    assert_eq!(controller.capacity_bytes, Some(1_000_204_886_016));
    assert_eq!(controller.unallocated_bytes, Some(0));
    assert_eq!((controller.namespace_id_max, controller.transfer_max_bytes), (1, None));
    assert_eq!((controller.nvm_set_id_max, controller.endurance_group_id_max), (0, 1));
    assert_eq!(controller.attributes, [Attribute::EnduranceGroups]);
    assert_eq!(controller.nvm_commands, [OptionalCommand::DatasetManagement]);
    assert_eq!(controller.admin_commands, []);
    assert_eq!(controller.warning_temperature_celsius, Some(70));
    assert_eq!(controller.critical_temperature_celsius, Some(85));
    assert!(controller.subsystem_nqn.as_ref().unwrap().starts_with("nqn.2014-08.org.nvmexpress:"));

    assert_eq!(nvme.active_namespaces, Answer::Known(vec![1]));
    assert_eq!(nvme.nvm_sets, Answer::NotSupported);
    assert_eq!(nvme.placement, Answer::NotSupported);
    assert_eq!(nvme.predictable_latency, Answer::NotSupported);
    let logs: Vec<u8> = nvme.supported_logs.known().unwrap().iter().map(|log| log.id).collect();
    assert_eq!(logs, [0x00, 0x02, 0x09]);
}

#[test]
fn a_plain_drives_namespace_tells_its_blocks_and_what_suits_it() {
    let nvme = new(spec()).nvme.unwrap();
    let namespace = nvme.namespace.known().unwrap();
    assert_eq!(namespace.size_bytes, 1_000_204_886_016);
    assert_eq!(namespace.capacity_bytes, namespace.size_bytes);
    assert_eq!(namespace.nvm_bytes, Some(namespace.size_bytes));
    let formats: Vec<_> =
        namespace.formats.iter().map(|f| (f.block_bytes, f.metadata_bytes)).collect();
    assert_eq!(formats, [(512, 0), (4096, 0)]);
    assert_eq!(namespace.format().block_bytes, 512);
    assert_eq!(namespace.deallocated_reads, DeallocatedReads::Zeros);
    assert_eq!((namespace.nvm_set_id, namespace.endurance_group_id), (None, Some(1)));
    let preferred = namespace.preferred.unwrap();
    assert_eq!((preferred.write_granularity_bytes, preferred.trim_alignment_bytes), (4096, 4096));
    // 32 dies x 2 planes x 3 pages of 16 KiB.
    assert_eq!(preferred.write_best_bytes, Some(32 * 6 * (16 << 10)));

    let blocks_of_4096 = Spec { block_bytes: 4096, ..spec() };
    let nvme = new(blocks_of_4096).nvme.unwrap();
    let namespace = nvme.namespace.known().unwrap();
    assert_eq!(namespace.format().block_bytes, 4096);
    assert_eq!(namespace.size_bytes, 1_000_204_886_016);
}

#[test]
fn placement_is_told_with_its_handles_and_what_was_written_under_it() {
    assert_eq!(new(spec()).nvme.unwrap().placement, Answer::NotSupported);
    let mut spec = spec();
    spec.placement = Some(Placement { handles: 3, isolation: Isolation::Initial });
    let set = SetHealth {
        physical_bytes: 1_000_000,
        written_bytes: 2_000_000,
        media_written_bytes: 3_000_000,
        erases_mean: 2.5,
        ..SetHealth::default()
    };
    let facts = facts_of(spec.clone(), 0, Health { sets: vec![set], ..Health::default() });
    let nvme = facts.nvme.unwrap();
    assert!(nvme.controller.known().unwrap().has(Attribute::FlexibleDataPlacement));
    let [placement] = &nvme.placement.known().unwrap()[..] else { panic!("one group") };
    assert_eq!((placement.endurance_group_id, placement.enabled), (1, Some(true)));
    assert_eq!(placement.configuration_in_use, Some(0));
    let [configuration] = &placement.configurations[..] else { panic!("one configuration") };
    assert_eq!((configuration.valid, configuration.reclaim_groups), (true, 1));
    assert_eq!(configuration.reclaim_unit_handles, 3);
    assert_eq!(configuration.isolation, [device::nvme::placement::Isolation::Initial; 3]);
    let superblock = spec.flash.block_bytes() * u64::from(spec.flash.dies());
    assert_eq!(configuration.reclaim_unit_bytes, superblock);
    let written = placement.statistics.unwrap();
    assert_eq!((written.host_written_bytes, written.media_written_bytes), (2_000_000, 3_000_000));
    assert_eq!(written.media_erased_bytes, 2_500_000);
}

#[test]
fn the_window_of_each_set_is_told_with_what_is_left_of_it() {
    let mut spec = spec();
    spec.capacity_bytes = 1 << 40;
    let namespace = |set| Namespace { share: 0.5, sets: vec![set] };
    spec.sets = Sets {
        layout: SetLayout::Horizontal,
        count: 2,
        namespaces: vec![namespace(0), namespace(1)],
    };
    spec.predictable = Some(Predictable {
        reads: 1000,
        writes: 20,
        longest_ms: 300.0,
        recovery_ms: 400.0,
        recovery_least_ms: 50.0,
    });
    let window = SetWindow {
        window: ssd::Window::Deterministic,
        since: Instant::START,
        reads_left: 7,
        writes_left: 0,
        ms_left: 9,
        ended: 0,
    };
    let in_it = SetHealth { window: Some(window), ..SetHealth::default() };
    let health = Health { sets: vec![in_it, SetHealth::default()], ..Health::default() };
    let nvme = facts_of(spec, 0, health).nvme.unwrap();
    assert!(nvme.controller.known().unwrap().has(Attribute::PredictableLatencyMode));
    let [first, second] = &nvme.predictable_latency.known().unwrap()[..] else { panic!("two") };
    assert_eq!((first.nvm_set_id, second.nvm_set_id), (1, 2));
    assert_eq!((first.window, second.window), (Window::Deterministic, Window::NotUsed));
    assert_eq!((first.deterministic_reads, first.deterministic_writes), (Some(1000), Some(20)));
    assert_eq!(first.deterministic_max_ms, Some(300));
    assert_eq!(first.housekeeping_min_high_ms, Some(400));
    assert_eq!(first.housekeeping_min_low_ms, Some(50));
    assert_eq!(
        (first.deterministic_reads_left, first.deterministic_writes_left),
        (Some(7), Some(0))
    );
    assert_eq!((first.deterministic_ms_left, second.deterministic_ms_left), (Some(9), None));
    let logs: Vec<u8> = nvme.supported_logs.known().unwrap().iter().map(|log| log.id).collect();
    assert_eq!(logs, [0x00, 0x02, 0x09, 0x0A]);
}

#[test]
fn two_sets_with_a_namespace_each_are_told_apart() {
    let namespace = |share, set| Namespace { share, sets: vec![set] };
    let sets = Sets {
        layout: SetLayout::Horizontal,
        count: 2,
        namespaces: vec![namespace(0.5, 0), namespace(0.25, 1)],
    };
    let spec = Spec { sets, capacity_bytes: 1 << 40, ..spec() };
    let half = spec.capacity_bytes / 2;
    let worn = |written_bytes, life_used| SetHealth {
        capacity_bytes: half,
        physical_bytes: half,
        written_bytes,
        media_written_bytes: 2 * written_bytes,
        life_used,
        ..SetHealth::default()
    };
    let health =
        Health { sets: vec![worn(5_000_000_000, 0.02), worn(0, 0.0)], ..Health::default() };
    let [first, second] = [0, 1].map(|index| facts_of(spec.clone(), index, health.clone()));
    assert_eq!(first.drive.serial, second.drive.serial, "one drive");
    assert_eq!((first.drive.size_bytes, second.drive.size_bytes), (half, half / 2));
    let [first, second] = [first, second].map(|facts| facts.nvme.unwrap());
    assert_eq!(first.active_namespaces, Answer::Known(vec![1, 2]));
    for (nvme, id) in [(&first, 1), (&second, 2)] {
        let namespace = nvme.namespace.known().unwrap();
        assert_eq!((namespace.nvm_set_id, namespace.endurance_group_id), (Some(id), Some(id)));
        let controller = nvme.controller.known().unwrap();
        assert!(controller.has(Attribute::NvmSets) && controller.has(Attribute::EnduranceGroups));
        assert_eq!((controller.nvm_set_id_max, controller.endurance_group_id_max), (2, 2));
        assert_eq!(controller.unallocated_bytes, Some(half / 2));
    }
    let sets = second.nvm_sets.known().unwrap();
    assert_eq!(
        sets.iter().map(|set| (set.id, set.endurance_group_id)).collect::<Vec<_>>(),
        [(1, 1), (2, 2)]
    );
    assert_eq!(sets[1].capacity_bytes, half);
    // 10 us in the controller, 50 us on the flash, the rest on channel and link.
    assert_eq!(sets[0].random_read_ns, Some(64_000));
    let groups = first.endurance_groups.known().unwrap();
    let counted: Vec<_> = groups
        .iter()
        .map(|g| (g.id, g.percent_used, g.written_bytes, g.media_written_bytes))
        .collect();
    assert_eq!(counted, [(1, 2, Some(5_000_000_000), Some(10_000_000_000)), (2, 0, None, None)]);
    assert_eq!(groups[0].capacity_bytes, Some(half));
}

#[test]
fn only_a_buffer_without_protection_is_a_volatile_write_cache() {
    let volatile = |protected| {
        let buffer = Buffer { protected, ..spec().buffer };
        let nvme = new(Spec { buffer, ..spec() }).nvme.unwrap();
        nvme.controller.known().unwrap().volatile_write_cache
    };
    assert!(volatile(false));
    assert!(!volatile(true));
}

#[test]
fn a_drive_whose_heat_is_simulated_tells_its_temperature_and_its_limits() {
    let mut spec = spec();
    let heat = Heat {
        idle_w: 1.0,
        die_w: 0.02,
        transfer_w: 3.0,
        joules_per_k: 15.0,
        kelvin_per_w: 9.0,
        ambient_c: 40.0,
        light_c: 78.0,
        light_mb_s: 600.0,
        heavy_c: 83.0,
        heavy_mb_s: 100.0,
        hysteresis_k: 2.0,
    };
    spec.heat = Some(heat);
    spec.check().unwrap();
    let health = SimBank::new(&[slot(spec.clone())], None).unwrap().health(0);
    let nvme = facts_of(spec, 0, health).nvme.unwrap();
    assert_eq!(nvme.smart.known().unwrap().temperature_celsius, Some(40));
    let controller = nvme.controller.known().unwrap();
    assert_eq!(controller.warning_temperature_celsius, Some(78));
    assert_eq!(controller.critical_temperature_celsius, Some(83));
}

#[test]
fn a_worn_drive_shows_its_age_in_its_logs() {
    let set = SetHealth {
        capacity_bytes: spec().capacity_bytes,
        physical_bytes: 1_070_000_000_000,
        media_written_bytes: 900_000_000_000_000,
        life_used: 0.84,
        ..SetHealth::default()
    };
    let health = Health {
        read_bytes: 300_000_000_512_000,
        written_bytes: 600_000_000_512_000,
        reads: 10,
        writes: 20,
        busy: Duration::from_secs(3 * 60),
        power_on: Duration::from_secs(5 * 3600 + 1),
        unsafe_shutdowns: 2,
        erases: Erases::default(),
        retries: 0,
        thermal: None,
        sets: vec![set],
    };
    let facts = facts_of(spec(), 0, health);
    let Wear::Known(wear) = &facts.drive.wear else { panic!("{:?}", facts.drive.wear) };
    assert_eq!((wear.percent_used, wear.spare_percent, wear.critical_warning), (84, 100, 0));
    let nvme = facts.nvme.unwrap();
    let smart = nvme.smart.known().unwrap();
    assert_eq!(smart.read_bytes.next_multiple_of(512_000), smart.read_bytes);
    assert_eq!((smart.read_bytes, smart.written_bytes), (300_000_000_512_000, 600_000_000_512_000));
    assert_eq!((smart.host_reads, smart.host_writes), (10, 20));
    assert_eq!((smart.busy_minutes, smart.power_on_hours), (3, 5));
    assert_eq!((smart.power_cycles, smart.unsafe_shutdowns), (3, 2));
    assert_eq!(smart.temperature_celsius, None, "heat isn't simulated");
    let group = &nvme.endurance_groups.known().unwrap()[0];
    assert_eq!(group.media_written_bytes, Some(900_000_000_000_000));
    assert_eq!(group.endurance_bytes, Some(1_070_000_000_000_000));
    assert_eq!((group.host_reads, group.host_writes, group.percent_used), (10, 20, 84));
}

#[test]
fn a_sata_drive_has_model_serial_and_link_and_nothing_of_nvme() {
    let facts = new(Spec { link: Link::Sata { gbps: 6.0, efficiency: 0.9 }, ..spec() });
    let drive = &facts.drive;
    assert_eq!((drive.kind, drive.size_bytes), (Kind::Sata, 1_000_204_886_016));
    assert_eq!(drive.model.as_deref(), Some("Example 1TB"));
    assert!(drive.serial.as_ref().unwrap().starts_with("SIM-"));
    assert_eq!(drive.link.unwrap().to_string(), "SATA 6 Gb/s");
    assert_eq!((drive.nvme.as_ref(), drive.wear.percent_used(), facts.nvme), (None, None, None));
}

#[test]
fn a_namespace_that_a_drive_does_not_have_is_refused_by_name() {
    let error = facts::of("sim:example", &slot(spec()), 0, 1, Health::default()).unwrap_err();
    let text = error.to_string();
    assert!(text.contains("sim:example refused Identify Namespace"), "{text}");
}
