//! Drives that this machine doesn't have, as folders that look like the kernel's: NVMe with and
//! without multipath, SATA, virtio, md, device mapper, bcache, and `/dev/ng*`.
//!
//! Drawn after the trees of real machines. For RAID and device mapper also because a kernel without
//! those drivers must not leave their refusals untested.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use crate::safety_rig::{Loop, MIB, folder, run, text};
use longtake_device::holders::Use;
use longtake_device::identity::{self, Drive, IdentityError, Kind};
use longtake_device::link::{Link, PcieLink};
use longtake_device::safety::{self, Cost, Purpose, Refusal};
use longtake_device::sysfs::System;
use longtake_device::wear::{Health, Wear};
use tempfile::TempDir;

/// A made-up machine.
struct Machine {
    root: TempDir,
    system: System,
}

impl Machine {
    fn new() -> Self {
        let root = folder();
        let system = System::at(root.path());
        for part in ["sys/block", "sys/class/block", "sys/dev/block", "sys/dev/char", "proc/self"] {
            fs::create_dir_all(root.path().join(part)).unwrap();
        }
        fs::create_dir_all(&system.dev).unwrap();
        let machine = Self { root, system };
        machine.write("proc/self/mountinfo", "24 1 0:5 / /proc rw - proc proc rw\n");
        machine.write("proc/swaps", "Filename Type Size Used Priority\n");
        machine
    }

    fn write(&self, path: &str, text: impl AsRef<[u8]>) {
        let path = self.root.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    fn link(&self, path: &str, to: &str) {
        let path = self.root.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        symlink(self.root.path().join(to), path).unwrap();
    }

    /// A block device at `directory` (under `sys/devices`) with its number, size in bytes, attributes.
    fn block(&self, directory: &str, number: &str, bytes: u64, attributes: &[(&str, &str)]) {
        let directory = format!("sys/devices/{directory}");
        let name = directory.rsplit('/').next().unwrap();
        self.write(&format!("{directory}/dev"), format!("{number}\n"));
        self.write(&format!("{directory}/size"), format!("{}\n", bytes / 512));
        for (attribute, value) in attributes {
            self.write(&format!("{directory}/{attribute}"), format!("{value}\n"));
        }
        if !attributes.iter().any(|(name, _)| *name == "partition") {
            self.link(&format!("sys/block/{name}"), &directory);
        }
        self.link(&format!("sys/class/block/{name}"), &directory);
        self.link(&format!("sys/dev/block/{number}"), &directory);
    }

    fn node(&self, name: &str, kind: &str, number: &str) -> PathBuf {
        let path = self.system.dev.join(name);
        let (major, minor) = number.split_once(':').unwrap();
        run("mknod", &[text(&path), kind, major, minor]);
        path
    }

    fn drives(&self) -> Vec<Drive> {
        identity::drives_of(&self.system).unwrap()
    }

    fn dev(&self, name: &str) -> PathBuf {
        self.system.dev.join(name)
    }

    /// An NVMe controller with a PCIe link that trained below its best.
    fn controller(&self, name: &str, serial: &str) {
        let pci = "pci0000:00/0000:01:00.0";
        let directory = format!("sys/devices/{pci}/nvme/{name}");
        for (attribute, value) in [
            ("model", "Fast Drive 3840                         "),
            ("serial", serial),
            ("firmware_rev", "FW1.2   "),
            ("subsysnqn", "nqn.2014-08.org.nvmexpress:fast"),
            ("dev", "240:0"),
        ] {
            self.write(&format!("{directory}/{attribute}"), format!("{value}\n"));
        }
        for (attribute, value) in [
            ("current_link_speed", "8.0 GT/s PCIe"),
            ("current_link_width", "2"),
            ("max_link_speed", "16.0 GT/s PCIe"),
            ("max_link_width", "4"),
        ] {
            self.write(&format!("sys/devices/{pci}/{attribute}"), format!("{value}\n"));
        }
        self.link(&format!("{directory}/device"), &format!("sys/devices/{pci}"));
        fs::create_dir_all(self.root.path().join("sys/class/nvme")).unwrap();
        self.link(&format!("{directory}/subsystem"), "sys/class/nvme");
        self.link(&format!("sys/class/nvme/{name}"), &directory);
        let subsystem = "sys/devices/virtual/nvme-subsystem/nvme-subsys3";
        self.link(&format!("{subsystem}/{name}"), &directory);
        if !self.root.path().join("sys/class/nvme-subsystem/nvme-subsys3").exists() {
            self.link("sys/class/nvme-subsystem/nvme-subsys3", subsystem);
        }
    }

    /// A private namespace with one partition and its generic device, as a kernel with multipath
    /// support names them: the block device by subsystem, the generic one by controller.
    fn namespace(&self, block: &str, number: &str, bytes: u64, generic: &str) {
        let parent = "pci0000:00/0000:01:00.0/nvme/nvme0";
        let directory = format!("{parent}/{block}");
        self.block(
            &directory,
            number,
            bytes,
            &[
                ("nsid", "1"),
                ("wwid", "eui.0025385b71b0c2a1"),
                ("queue/logical_block_size", "512"),
                ("queue/physical_block_size", "4096"),
                ("queue/rotational", "0"),
            ],
        );
        self.link(&format!("sys/devices/{directory}/device"), &format!("sys/devices/{parent}"));
        self.link(
            &format!("sys/devices/{parent}/{generic}/device"),
            &format!("sys/devices/{parent}"),
        );
        self.link("sys/dev/char/241:7", &format!("sys/devices/{parent}/{generic}"));
    }

    fn mounted(&self, number: &str, point: &str) {
        let line = format!("36 1 {number} / {point} rw,noatime shared:1 - xfs /dev/x rw\n");
        self.write("proc/self/mountinfo", line);
    }
}

const NVME: &str = "pci0000:00/0000:01:00.0/nvme/nvme0/nvme3n1";

fn nvme() -> Machine {
    let machine = Machine::new();
    machine.controller("nvme0", "S64NA0123");
    machine.namespace("nvme3n1", "259:0", 1000 * MIB, "ng0n1");
    machine
}

fn with_partition(machine: &Machine) {
    let attributes = [("partition", "1"), ("start", "2048")];
    machine.block(&format!("{NVME}/nvme3n1p1"), "259:1", 500 * MIB, &attributes);
}

#[test]
fn an_nvme_drive_is_listed_with_its_maker_link_and_namespace() {
    let machine = nvme();
    with_partition(&machine);
    let drives = machine.drives();
    let [drive] = &drives[..] else { panic!("{drives:?}") };
    assert_eq!(drive.path, machine.dev("nvme3n1"));
    assert_eq!(drive.kind, Kind::Nvme);
    assert_eq!(drive.model.as_deref(), Some("Fast Drive 3840"));
    assert_eq!(drive.serial.as_deref(), Some("S64NA0123"));
    assert_eq!(drive.confirmation().as_deref(), Some("S64NA0123"));
    assert_eq!(drive.firmware.as_deref(), Some("FW1.2"));
    assert_eq!(drive.wwid.as_deref(), Some("eui.0025385b71b0c2a1"));
    assert_eq!(drive.size_bytes, 1000 * MIB);
    assert_eq!((drive.logical_block_bytes, drive.physical_block_bytes), (512, 4096));
    assert_eq!(drive.rotational, Some(false));
    let now = PcieLink { generation: 3, lanes: 2 };
    let best = PcieLink { generation: 4, lanes: 4 };
    assert_eq!(drive.link, Some(Link::Pcie { now, best, slot: None }));
    let namespace = drive.nvme.as_ref().unwrap();
    assert_eq!(namespace.id, Some(1));
    assert_eq!(namespace.controllers, ["nvme0"]);
    assert_eq!(namespace.subsystem.as_deref(), Some("nvme-subsys3"));
    assert_eq!(namespace.subsystem_nqn.as_deref(), Some("nqn.2014-08.org.nvmexpress:fast"));
    let [partition] = &drive.partitions[..] else { panic!("{:?}", drive.partitions) };
    assert_eq!((partition.index, partition.start_bytes, partition.size_bytes), (1, MIB, 500 * MIB));
    assert!(matches!(drive.wear, Wear::Unknown { .. }), "there is no controller to ask");
}

#[test]
fn with_multipath_a_namespace_is_listed_once_with_all_its_controllers() {
    let machine = Machine::new();
    machine.controller("nvme0", "S64NA0123");
    machine.controller("nvme1", "S64NA0123");
    let subsystem = "virtual/nvme-subsystem/nvme-subsys3";
    for (attribute, value) in [("model", "Two Ports"), ("serial", "S64NA0123")] {
        machine.write(&format!("sys/devices/{subsystem}/{attribute}"), value);
    }
    fs::create_dir_all(machine.root.path().join("sys/class/nvme-subsystem")).unwrap();
    machine.link(&format!("sys/devices/{subsystem}/subsystem"), "sys/class/nvme-subsystem");
    machine.block(&format!("{subsystem}/nvme3n1"), "259:0", 100 * MIB, &[("nsid", "1")]);
    machine.link(
        &format!("sys/devices/{subsystem}/nvme3n1/device"),
        &format!("sys/devices/{subsystem}"),
    );
    let leg = "pci0000:00/0000:01:00.0/nvme/nvme0/nvme3c0n1";
    machine.block(leg, "259:9", 100 * MIB, &[("hidden", "1")]);
    machine.link(
        &format!("sys/devices/{subsystem}/ng3n1/device"),
        &format!("sys/devices/{subsystem}"),
    );
    machine.link("sys/dev/char/241:0", &format!("sys/devices/{subsystem}/ng3n1"));

    let drives = machine.drives();
    let [drive] = &drives[..] else { panic!("{drives:?}") };
    assert_eq!(drive.path, machine.dev("nvme3n1"));
    let namespace = drive.nvme.as_ref().unwrap();
    assert_eq!(namespace.controllers, ["nvme0", "nvme1"]);
    assert_eq!(namespace.subsystem.as_deref(), Some("nvme-subsys3"));
    assert!(matches!(drive.link, Some(Link::Pcie { .. })), "{:?}", drive.link);
    let generic = machine.node("ng3n1", "c", "241:0");
    let described = identity::describe_in(&machine.system, &generic).unwrap();
    assert_eq!(described.device, Some(machine.dev("nvme3n1")));
}

#[test]
fn a_generic_device_leads_to_its_namespace_though_their_numbers_differ() {
    let machine = nvme();
    let generic = machine.node("ng0n1", "c", "241:7");
    // What the digits alone would say: another drive.
    machine.block("virtual/block/nvme0n1", "259:5", 8 * MIB, &[("device/serial", "WRONG")]);
    let drive = identity::describe_in(&machine.system, &generic).unwrap();
    assert_eq!(drive.path, generic);
    assert_eq!(drive.device, Some(machine.dev("nvme3n1")));
    assert_eq!(drive.serial.as_deref(), Some("S64NA0123"));
}

#[test]
fn the_generic_device_of_a_mounted_namespace_is_refused() {
    let machine = nvme();
    with_partition(&machine);
    let generic = machine.node("ng0n1", "c", "241:7");
    for (number, device) in [("259:0", "nvme3n1"), ("259:1", "nvme3n1p1")] {
        machine.mounted(number, "/srv/data");
        let verdict = safety::inspect_in(&machine.system, &generic);
        let expected = Refusal::Mounted {
            path: generic.clone(),
            device: machine.dev(device),
            mount_point: "/srv/data".into(),
            filesystem: "xfs".into(),
            process: None,
        };
        assert!(verdict.refusals.contains(&expected), "{:?}", verdict.refusals);
    }
}

#[test]
fn a_mount_that_many_namespaces_share_is_told_once() {
    let machine = nvme();
    machine.mounted("259:0", "/srv/data");
    let table = fs::read(machine.root.path().join("proc/self/mountinfo")).unwrap();
    for process in 10..20 {
        machine.write(&format!("proc/{process}/mountinfo"), &table);
        let namespace = format!("mnt:[{process}]");
        fs::create_dir_all(machine.root.path().join(format!("proc/{process}/ns"))).unwrap();
        symlink(namespace, machine.root.path().join(format!("proc/{process}/ns/mnt"))).unwrap();
    }
    let node = machine.node("nvme3n1", "b", "259:0");
    let verdict = safety::inspect_in(&machine.system, &node);
    let mounted = |refusal: &&Refusal| matches!(refusal, Refusal::Mounted { .. });
    assert_eq!(verdict.refusals.iter().filter(mounted).count(), 1, "{:?}", verdict.refusals);
}

#[test]
fn a_generic_device_is_authorized_by_a_claim_on_its_namespace_and_its_serial() {
    // The made-up namespace has the number of a real, empty loop device, so that it can be opened.
    let device = Loop::new(8 * MIB);
    let minor = device.text().trim_start_matches("/dev/loop");
    let machine = Machine::new();
    machine.controller("nvme0", "S64NA0123");
    machine.namespace("nvme3n1", &format!("7:{minor}"), 8 * MIB, "ng0n1");
    symlink(&device.path, machine.dev("nvme3n1")).unwrap();
    let generic = machine.node("ng0n1", "c", "241:7");

    let authorize = |words: &[&str]| {
        let words: Vec<_> = words.iter().map(|&word| word.to_owned()).collect();
        safety::authorize_in(&machine.system, &generic, &words, Purpose::Create)
    };
    let refusals = authorize(&[device.text(), "S64NA"]).unwrap_err();
    let [Refusal::NotConfirmed { argument, model, .. }] = &refusals[..] else {
        panic!("{refusals:?}")
    };
    assert_eq!(argument, "--erase S64NA0123");
    assert_eq!(model.as_deref(), Some("Fast Drive 3840"));
    let authorized = authorize(&["S64NA0123"]).unwrap();
    assert!(authorized.covers(&fs::File::open(&device.path).unwrap()).unwrap());
    assert!(matches!(&authorize(&["S64NA0123"]).unwrap_err()[..], [Refusal::InUse { .. }]));
}

#[test]
fn one_namespace_seen_through_two_controllers_is_refused_when_the_other_path_is_mounted() {
    let machine = Machine::new();
    for (n, number) in [(0, "259:0"), (1, "259:4")] {
        let directory = format!("virtual/block/nvme{n}n1");
        let attributes = [("wwid", "eui.1"), ("device/serial", "S1"), ("nsid", "1")];
        machine.block(&directory, number, 8 * MIB, &attributes);
    }
    // The same name on another drive, as careless makers do: its serial tells it from the others.
    let attributes = [("wwid", "eui.1"), ("device/serial", "S2")];
    machine.block("virtual/block/nvme2n1", "259:8", 8 * MIB, &attributes);
    machine.mounted("259:4", "/data");
    let mounted = |name: &str, number: &str| {
        let node = machine.node(name, "b", number);
        let refusals = safety::inspect_in(&machine.system, &node).refusals;
        refusals.iter().any(|refusal| matches!(refusal, Refusal::Mounted { .. }))
    };
    assert!(mounted("nvme0n1", "259:0"));
    assert!(!mounted("nvme2n1", "259:8"));
}

#[test]
fn a_sata_disk_tells_its_speed_and_the_serial_of_its_page() {
    let machine = Machine::new();
    let scsi = "pci0000:00/0000:00:17.0/ata2/host1/target1:0:0/1:0:0:0";
    let directory = format!("{scsi}/block/sda");
    machine.block(&directory, "8:0", 100 * MIB, &[("queue/rotational", "1"), ("ro", "1")]);
    machine.link(&format!("sys/devices/{directory}/device"), &format!("sys/devices/{scsi}"));
    machine.write(&format!("sys/devices/{scsi}/model"), "BIG DISK 8TB    ");
    machine.write(&format!("sys/devices/{scsi}/rev"), "0001");
    machine.write(&format!("sys/devices/{scsi}/wwid"), "naa.5000c500a1b2c3d4");
    machine.write(&format!("sys/devices/{scsi}/vpd_pg80"), b"\x00\x80\x00\x14            ZA1 2345");
    fs::create_dir_all(machine.root.path().join("sys/bus/scsi")).unwrap();
    machine.link(&format!("sys/devices/{scsi}/subsystem"), "sys/bus/scsi");
    let link = "sys/devices/pci0000:00/0000:00:17.0/ata2/link2/ata_link/link2";
    machine.write(&format!("{link}/sata_spd"), "3.0 Gbps\n");
    machine.write(&format!("{link}/hw_sata_spd_limit"), "6.0 Gbps\n");

    let drives = machine.drives();
    let [drive] = &drives[..] else { panic!("{drives:?}") };
    assert_eq!(drive.kind, Kind::Sata);
    assert_eq!(drive.serial.as_deref(), Some("ZA1 2345"));
    assert_eq!(drive.firmware.as_deref(), Some("0001"));
    assert_eq!(drive.wwid.as_deref(), Some("naa.5000c500a1b2c3d4"));
    assert_eq!(drive.rotational, Some(true));
    assert!(drive.read_only);
    assert_eq!(drive.link, Some(Link::Sata { now_gbps: 3.0, best_gbps: Some(6.0) }));
}

#[test]
fn a_virtual_disk_without_a_serial_is_confirmed_by_its_node() {
    let machine = Machine::new();
    let virtio = "pci0000:00/0000:00:02.0/virtio1";
    machine.block(&format!("{virtio}/block/vda"), "254:0", 10 * MIB, &[]);
    machine.block(&format!("{virtio}/block/vdb"), "254:16", 10 * MIB, &[("serial", "disk-2")]);
    fs::create_dir_all(machine.root.path().join("sys/bus/virtio")).unwrap();
    machine.link(&format!("sys/devices/{virtio}/subsystem"), "sys/bus/virtio");
    for name in ["vda", "vdb"] {
        let device = format!("sys/devices/{virtio}/block/{name}/device");
        machine.link(&device, &format!("sys/devices/{virtio}"));
    }
    let drives = machine.drives();
    let words: Vec<_> = drives.iter().map(|drive| drive.confirmation().unwrap()).collect();
    assert_eq!(words, [text(&machine.dev("vda")), "disk-2"]);
    assert!(drives.iter().all(|drive| drive.kind == Kind::Virtio && drive.link.is_none()));
}

#[test]
fn members_of_raid_device_mapper_and_bcache_are_refused_by_what_holds_them() {
    let machine = nvme();
    with_partition(&machine);
    machine.block("virtual/block/md0", "9:0", MIB, &[("md/level", "raid1")]);
    machine.block("virtual/block/dm-2", "253:2", MIB, &[("dm/name", "vg-root")]);
    machine.block("virtual/block/bcache0", "251:0", MIB, &[]);
    machine.block("virtual/block/drbd1", "147:1", MIB, &[]);
    let partition = format!("sys/devices/{NVME}/nvme3n1p1/holders");
    for name in ["md0", "dm-2", "bcache0", "drbd1"] {
        machine.link(&format!("{partition}/{name}"), &format!("sys/devices/virtual/block/{name}"));
    }
    let node = machine.node("nvme3n1", "b", "259:0");
    let refusals = safety::inspect_in(&machine.system, &node).refusals;
    let held: Vec<_> = refusals
        .iter()
        .filter_map(|refusal| match refusal {
            Refusal::Held { holder, .. } => {
                assert_eq!(holder.device, machine.dev("nvme3n1p1"));
                assert!(refusal.to_string().contains("through"), "{refusal}");
                Some((holder.how, holder.name.as_deref()))
            }
            _ => None,
        })
        .collect();
    assert_eq!(
        held,
        [
            (Use::Bcache, None),
            (Use::DeviceMapper, Some("vg-root")),
            (Use::Other, None),
            (Use::Md, Some("raid1")),
        ]
    );
    let kinds: Vec<_> = machine.drives().iter().map(|drive| drive.kind).collect();
    assert_eq!(kinds, [Kind::Other, Kind::DeviceMapper, Kind::Other, Kind::Md, Kind::Nvme]);
}

#[test]
fn a_registered_bcache_member_without_a_cache_set_is_refused_too() {
    let machine = nvme();
    machine.write(&format!("sys/devices/{NVME}/bcache/label"), "");
    let node = machine.node("nvme3n1", "b", "259:0");
    let refusals = safety::inspect_in(&machine.system, &node).refusals;
    let held = |refusal: &Refusal| matches!(refusal, Refusal::Held { holder, .. } if holder.how == Use::Bcache);
    assert!(refusals.iter().any(held), "{refusals:?}");
}

#[test]
fn a_device_that_sysfs_does_not_know_or_that_can_not_be_opened_is_refused() {
    let machine = nvme();
    let stale = machine.node("nvme9n1", "b", "259:77");
    let refusals = safety::inspect_in(&machine.system, &stale).refusals;
    assert!(
        matches!(&refusals[..], [Refusal::NotADrive { found, .. }] if found.contains("259:77"))
    );
    let error = identity::describe_in(&machine.system, &stale).unwrap_err();
    assert!(matches!(error, IdentityError::Unknown { .. }), "{error}");

    // Known, but its node is a file: nothing was read, so nothing is known.
    fs::write(machine.dev("nvme3n1"), "").unwrap();
    let node = machine.node("other-name", "b", "259:0");
    let refusals = safety::inspect_in(&machine.system, &node).refusals;
    assert!(matches!(&refusals[..], [Refusal::Unreadable { .. }]), "{refusals:?}");
}

#[test]
fn the_cost_of_a_write_comes_from_the_rating_or_the_drives_own_account_or_is_not_known() {
    let mut drive = nvme().drives().remove(0);
    let terabyte = 1_000_000_000_000;
    let rated = safety::cost(&drive, terabyte, Some(400 * terabyte));
    assert_eq!(rated, Cost::Rated { percent: 0.25, rated_bytes: 400 * terabyte });
    assert_eq!(rated.to_string(), "0.250 % of its rated life (400 TB)");
    assert!(matches!(safety::cost(&drive, terabyte, None), Cost::Unknown { .. }));

    let mut health = Health {
        percent_used: 10,
        spare_percent: 100,
        written_bytes: 100 * terabyte,
        temperature_celsius: None,
        critical_warning: 0,
    };
    drive.wear = Wear::Known(health);
    let Cost::Estimated { percent_min, percent_max } = safety::cost(&drive, terabyte, None) else {
        panic!("a drive that used 10 % knows what a terabyte costs")
    };
    assert!((percent_min - 0.09).abs() < 1e-9 && (percent_max - 0.11).abs() < 1e-9);
    health.percent_used = 1;
    drive.wear = Wear::Known(health);
    let unknown = safety::cost(&drive, terabyte, None).to_string();
    assert!(unknown.contains("not known"), "{unknown}");
}

#[test]
fn this_machines_drives_are_listed_and_each_can_be_described() {
    let device = Loop::new(8 * MIB);
    let drives = identity::drives().unwrap();
    let listed = drives.iter().find(|drive| drive.path == device.path).expect("the loop device");
    assert_eq!(listed.kind, Kind::Loop);
    assert_eq!(listed.confirmation().as_deref(), Some(device.text()));
    assert_eq!(*listed, identity::describe(&device.path).unwrap());
    assert!(listed.backing.as_deref().is_some_and(Path::is_absolute));
    assert!(drives.iter().all(|drive| drive.size_bytes > 0));
}

#[test]
fn what_can_not_be_described_says_what_to_give_instead() {
    for (path, words) in [("/", "give a block device"), ("/nowhere", "longtake drives")] {
        let error = identity::describe(Path::new(path)).unwrap_err().to_string();
        assert!(error.starts_with(path) && error.contains(words), "{error}");
    }
}
