//! Small drives to test with.
#![allow(dead_code, reason = "each test takes those that it needs")]

use longtake_ssd::Spec;
use longtake_ssd::spec::{
    Buffer, Cache, Collector, Controller, Endurance, Flash, Link, Mapping, Media, Namespace,
    SetLayout, Sets, WhenFull,
};

/// 64 MiB on 8 dies, TLC, unprotected buffer.
pub fn small() -> Spec {
    Spec {
        name: "small".to_owned(),
        model: "Small".to_owned(),
        capacity_bytes: 64 << 20,
        block_bytes: 512,
        controller: Controller {
            read_us: 5.0,
            write_us: 5.0,
            read_iops: 600e3,
            write_iops: 500e3,
            depth: 32,
        },
        link: Link::Pcie { generation: 3, lanes: 4, efficiency: 0.9 },
        buffer: Buffer { bytes: 4 << 20, protected: false },
        flash: Flash {
            media: Media::Nand,
            channels: 4,
            dies_per_channel: 2,
            planes: 2,
            page_bytes: 8 << 10,
            pages_per_block: 12,
            pages_per_program: 3,
            read_us: 50.0,
            program_us: 500.0,
            erase_us: 3_000.0,
            channel_mb_s: 800.0,
            suspend_us: Some(30.0),
            suspend_erases: true,
            variation: 0.0,
            bad_blocks: 0.0,
            retry_share: 0.0,
        },
        mapping: Mapping {
            unit_bytes: 4096,
            over_provisioning: 0.4,
            collector: Collector::Greedy,
            reserve_superblocks: 3,
            trim_reads_zeros: true,
        },
        cache: None,
        sets: Sets::none(),
        placement: None,
        predictable: None,
        endurance: Endurance { cycles: 3_000, used: 0.0, rated_bytes: None },
        upkeep: None,
        heat: None,
    }
}

/// With a cache, and no suspension.
pub fn cached() -> Spec {
    let mut spec = small();
    spec.name = "cached".to_owned();
    spec.flash.suspend_us = None;
    spec.cache = Some(Cache {
        static_bytes: 1 << 20,
        dynamic_bytes: 6 << 20,
        shrink_from: 0.5,
        shrink_to: 0.9,
        program_us: 150.0,
        first_bytes: 0,
        first_program_us: None,
        read_us: 30.0,
        fold_us: None,
        when_full: WhenFull::Native,
        idle_ms: 50.0,
        drain_mb_s: None,
    });
    spec
}

/// Mapped in 16 KiB, with 4 KiB blocks.
pub fn large_units() -> Spec {
    let mut spec = small();
    spec.name = "large-units".to_owned();
    spec.block_bytes = 4096;
    spec.mapping.unit_bytes = 16 << 10;
    spec.buffer.protected = true;
    spec
}

/// 3D XPoint.
pub fn in_place() -> Spec {
    let mut spec = small();
    spec.name = "in-place".to_owned();
    spec.flash.media = Media::InPlace;
    spec.flash.channels = 7;
    spec.flash.dies_per_channel = 5;
    spec.flash.planes = 1;
    spec.flash.page_bytes = 4096;
    spec.flash.pages_per_block = 64;
    spec.flash.pages_per_program = 1;
    spec.flash.read_us = 7.0;
    spec.flash.program_us = 10.0;
    spec.flash.suspend_us = None;
    spec.mapping.over_provisioning = 0.0;
    spec
}

/// Two vertical sets with a namespace each.
pub fn in_sets() -> Spec {
    let mut spec = small();
    spec.name = "in-sets".to_owned();
    spec.sets = Sets {
        layout: SetLayout::Vertical,
        count: 2,
        namespaces: vec![
            Namespace { share: 0.5, sets: vec![0] },
            Namespace { share: 0.5, sets: vec![1] },
        ],
    };
    spec.mapping.over_provisioning = 0.5;
    spec
}

/// Two horizontal sets, a namespace over both and one in the second.
pub fn striped() -> Spec {
    let mut spec = in_sets();
    spec.name = "striped".to_owned();
    spec.sets.layout = SetLayout::Horizontal;
    spec.sets.namespaces =
        vec![Namespace { share: 0.5, sets: vec![0, 1] }, Namespace { share: 0.25, sets: vec![1] }];
    spec
}
