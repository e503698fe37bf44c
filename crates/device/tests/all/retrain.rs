//! Retraining on a port that this machine doesn't have: a sysfs tree whose `config` file has the registers where the PCI Express
//! Base Specification puts them, and a link that does what they say. No real link was ever retrained by a test.

use std::fs;
use std::os::unix::fs::{FileExt, symlink};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU16, Ordering};
use std::time::Duration;

use crate::safety_rig::{Loop, MIB, Mount, folder, run};
use longtake_device::retrain::{Port, RetrainError, Wait};
use longtake_device::sysfs::System;
use tempfile::TempDir;

/// The PCI Express capability lies behind two others.
const CAPABILITY: usize = 0xA0;
const CONTROL: usize = CAPABILITY + 0x10;
const STATUS: usize = CAPABILITY + 0x12;
const CONTROL_2: usize = CAPABILITY + 0x30;
const RETRAIN: u16 = 1 << 5;
const TRAINING: u16 = 1 << 11;
const ACTIVE: u16 = 1 << 13;
/// De-emphasis, which retraining must leave as it is, and a target speed of 16 GT/s.
const CONTROL_2_BEFORE: u16 = 0x0044;
/// Common clock, which a retraining must not touch.
const CONTROL_BEFORE: u16 = 0x0040;

const PORT: &str = "sys/devices/pci0000:00/0000:00:01.0";
const FUNCTION: &str = "0000:01:00.0";

/// A machine with a drive of PCIe 4.0 x4 below a port that can do 5.0 x4.
struct Machine {
    root: TempDir,
    system: System,
    /// The generation that the link comes up with instead of the target; 0 for the target.
    stuck: Arc<AtomicU16>,
}

impl Machine {
    fn new() -> Self {
        let root = folder();
        let system = System::at(root.path());
        let machine = Self { root, system, stuck: Arc::default() };
        for part in ["sys/block", "sys/class/block", "sys/dev/block", "sys/class/nvme", "dev"] {
            fs::create_dir_all(machine.root.path().join(part)).unwrap();
        }
        machine.write("proc/self/mountinfo", "24 1 0:5 / /proc rw - proc proc rw\n");
        machine.write("proc/swaps", "Filename Type Size Used Priority\n");
        machine.write(&format!("{PORT}/config"), config(0x42));
        for (folder, speed) in [(PORT.to_owned(), "32.0"), (format!("{PORT}/{FUNCTION}"), "16.0")] {
            machine.write(&format!("{folder}/max_link_speed"), format!("{speed} GT/s PCIe\n"));
            machine.write(&format!("{folder}/max_link_width"), "4\n");
            machine.write(&format!("{folder}/current_link_speed"), "16.0 GT/s PCIe\n");
            machine.write(&format!("{folder}/current_link_width"), "4\n");
        }
        machine
    }

    /// A namespace on a loop device, so that it can be opened and mounted. With multipath it hangs on the subsystem.
    fn with_drive(self, device: &Loop, multipath: bool) -> (Self, PathBuf) {
        let controller = format!("{PORT}/{FUNCTION}/nvme/nvme0");
        for (name, value) in [("model", "Fast"), ("serial", "S64NA0123"), ("dev", "240:0")] {
            self.write(&format!("{controller}/{name}"), value);
        }
        self.link(&format!("{controller}/device"), &format!("{PORT}/{FUNCTION}"));
        self.link(&format!("{controller}/subsystem"), "sys/class/nvme");
        self.link("sys/class/nvme/nvme0", &controller);
        let number = format!("7:{}", device.text().trim_start_matches("/dev/loop"));
        let subsystem = "sys/devices/virtual/nvme-subsystem/nvme-subsys0";
        if multipath {
            self.write(&format!("{subsystem}/model"), "Fast");
            self.write(&format!("{subsystem}/serial"), "S64NA0123");
            fs::create_dir_all(self.root.path().join("sys/class/nvme-subsystem")).unwrap();
            self.link(&format!("{subsystem}/subsystem"), "sys/class/nvme-subsystem");
            self.link(&format!("{subsystem}/nvme0"), &controller);
            self.link("sys/class/nvme-subsystem/nvme-subsys0", subsystem);
        }
        let parent = if multipath { subsystem } else { controller.as_str() };
        let namespace = format!("{parent}/nvme0n1");
        for (name, value) in
            [("dev", number.as_str()), ("size", "16384"), ("nsid", "1"), ("wwid", "eui.1")]
        {
            self.write(&format!("{namespace}/{name}"), value);
        }
        self.link(&format!("{namespace}/device"), parent);
        for place in
            ["sys/block/nvme0n1", "sys/class/block/nvme0n1", &format!("sys/dev/block/{number}")]
        {
            self.link(place, &namespace);
        }
        let node = self.system.dev.join("nvme0n1");
        symlink(&device.path, &node).unwrap();
        (self, node)
    }

    fn write(&self, path: &str, bytes: impl AsRef<[u8]>) {
        let path = self.root.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, bytes).unwrap();
    }

    fn link(&self, path: &str, to: &str) {
        symlink(self.root.path().join(to), self.root.path().join(path)).unwrap();
    }

    fn config(&self) -> PathBuf {
        self.root.path().join(PORT).join("config")
    }

    fn word(&self, offset: usize) -> u16 {
        word(&fs::read(self.config()).unwrap(), offset)
    }

    fn speed(&self) -> u16 {
        self.word(STATUS) & 0xF
    }

    /// Time in which the hardware works: the bit that retrains begins a training, and the next moment ends it.
    fn hardware(&self) -> Wait {
        let (config, stuck) = (self.config(), Arc::clone(&self.stuck));
        Box::new(move |_: Duration| {
            let bytes = fs::read(&config).unwrap();
            let file = fs::OpenOptions::new().write(true).open(&config).unwrap();
            let set = |offset: usize, value: u16| {
                file.write_all_at(&value.to_le_bytes(), offset as u64).unwrap();
            };
            let (control, status) = (word(&bytes, CONTROL), word(&bytes, STATUS));
            if control & RETRAIN != 0 {
                set(CONTROL, control & !RETRAIN);
                set(STATUS, status & !ACTIVE | TRAINING);
            } else if status & TRAINING != 0 && stuck.load(Ordering::Relaxed) != u16::MAX {
                let target = word(&bytes, CONTROL_2) & 0xF;
                let speed = Some(stuck.load(Ordering::Relaxed)).filter(|s| *s != 0);
                set(STATUS, status & !TRAINING & !0xF | ACTIVE | speed.unwrap_or(target.min(4)));
            }
        })
    }

    fn port(&self) -> Result<Port, RetrainError> {
        Port::of_function(&self.root.path().join(PORT).join(FUNCTION), self.hardware())
    }
}

fn word(bytes: &[u8], offset: usize) -> u16 {
    u16::from_le_bytes([bytes[offset], bytes[offset + 1]])
}

/// Configuration space of a port: power management, then MSI, then PCI Express with `about` in its capabilities register.
fn config(about: u16) -> Vec<u8> {
    let mut bytes = vec![0; 256];
    let mut set = |offset: usize, value: u32, length: usize| {
        bytes[offset..offset + length].copy_from_slice(&value.to_le_bytes()[..length]);
    };
    set(0x06, 0x0010, 2);
    set(0x34, 0x80, 1);
    set(0x80, 0x90_01, 2);
    set(0x90, 0xA0_05, 2);
    set(CAPABILITY, 0x00_10, 2);
    set(CAPABILITY + 0x02, about.into(), 2);
    // 32 GT/s x4, and it tells whether the link is active.
    set(CAPABILITY + 0x0C, 5 | 4 << 4 | 1 << 20, 4);
    set(CONTROL, CONTROL_BEFORE.into(), 2);
    set(STATUS, u32::from(4 | 4 << 4 | ACTIVE), 2);
    // Each speed to 32 GT/s.
    set(CAPABILITY + 0x2C, 0x3E, 4);
    set(CONTROL_2, CONTROL_2_BEFORE.into(), 2);
    bytes
}

#[test]
fn a_link_is_trained_to_every_speed_that_both_ends_can_do_and_back_again() {
    let machine = Machine::new();
    let before = fs::read(machine.config()).unwrap();
    let mut port = machine.port().unwrap();
    assert_eq!(port.best(), 4, "the drive's, as the port can do more");
    assert_eq!(fs::read(machine.config()).unwrap(), before, "nothing is changed by looking");
    for generation in [1, 3, 2, 4] {
        port.set(generation).unwrap();
        assert_eq!(machine.speed(), u16::from(generation));
        assert_eq!(machine.word(CONTROL_2), 0x0040 | u16::from(generation), "the rest stays");
        assert_eq!(machine.word(CONTROL), CONTROL_BEFORE);
    }
    port.set(1).unwrap();
    port.restore().unwrap();
    assert_eq!(fs::read(machine.config()).unwrap(), before);
}

#[test]
fn a_port_that_goes_out_of_scope_leaves_the_link_as_it_was() {
    let machine = Machine::new();
    let before = fs::read(machine.config()).unwrap();
    let mut port = machine.port().unwrap();
    port.set(2).unwrap();
    assert_eq!(machine.speed(), 2);
    drop(port);
    assert_eq!(fs::read(machine.config()).unwrap(), before);
}

#[test]
fn a_link_that_comes_up_slower_or_not_at_all_is_said_and_restored() {
    let machine = Machine::new();
    let before = fs::read(machine.config()).unwrap();
    let mut port = machine.port().unwrap();
    machine.stuck.store(1, Ordering::Relaxed);
    let error = port.set(3).unwrap_err();
    assert!(matches!(error, RetrainError::NotReached { asked: 3, reached: 1 }), "{error}");
    machine.stuck.store(u16::MAX, Ordering::Relaxed);
    let error = port.set(3).unwrap_err();
    assert!(matches!(error, RetrainError::Down), "{error}");
    let error = port.restore().unwrap_err();
    assert!(matches!(error, RetrainError::Down), "{error}");
    assert_eq!(machine.word(CONTROL_2), CONTROL_2_BEFORE, "a link that comes up later is as fast");
    machine.stuck.store(0, Ordering::Relaxed);
    drop(port);
    assert_eq!(fs::read(machine.config()).unwrap(), before);
}

#[test]
fn speeds_and_ports_that_can_not_be_are_refused_and_nothing_is_written() {
    let machine = Machine::new();
    for generation in [0, 5, 16] {
        let error = machine.port().unwrap().set(generation).unwrap_err().to_string();
        assert!(error.contains("up to 4.0"), "{error}");
    }
    let refused = |bytes: Vec<u8>, says: &str| {
        machine.write(&format!("{PORT}/config"), &bytes);
        let error = machine.port().unwrap_err().to_string();
        assert!(error.contains(says), "{error}");
        assert_eq!(fs::read(machine.config()).unwrap(), bytes);
    };
    refused(config(0x02), "being no port");
    refused(config(0x41), "no Link Control 2 register");
    let without = |offset: usize| {
        let mut bytes = config(0x42);
        bytes[offset] = 0;
        bytes
    };
    refused(without(0x06), "no PCI Express capability");
    refused(without(0x91), "no PCI Express capability");
    let mut endless = config(0x42);
    endless[0x91] = 0x80;
    refused(endless, "no PCI Express capability");
    // A user who can read only the header learns what full access takes.
    refused(config(0x42)[..64].to_vec(), "Retraining needs root");
    machine.write(&format!("{PORT}/config"), config(0x42));
    machine.write(&format!("{PORT}/0000:01:00.1/class"), "0x020000");
    let error = machine.port().unwrap_err().to_string();
    assert!(error.contains("0000:01:00.0, 0000:01:00.1"), "{error}");
}

#[test]
fn a_drive_is_retrained_only_if_it_is_confirmed_and_not_in_use() {
    for multipath in [false, true] {
        retrained_only_if_unused(multipath);
    }
}

fn retrained_only_if_unused(multipath: bool) {
    let device = Loop::new(8 * MIB);
    let (machine, node) = Machine::new().with_drive(&device, multipath);
    let above = |path: &Path, serial: &str| {
        Port::above_in(&machine.system, path, serial, machine.hardware())
    };
    let error = above(&node, "S64NA").unwrap_err().to_string();
    assert!(error.contains("--retrain S64NA0123"), "{error}");
    let error = above(&machine.config(), "S64NA0123").unwrap_err().to_string();
    assert!(error.contains("only the link of an NVMe drive"), "{error}");
    let mut port = above(&node, "S64NA0123").unwrap();
    port.set(1).unwrap();
    drop(port);
    assert_eq!((machine.speed(), machine.word(CONTROL_2)), (4, CONTROL_2_BEFORE));
    run("mkfs.ext4", &["-q", device.text()]);
    // What lies on it stays there, and is no reason.
    drop(above(&node, "S64NA0123").unwrap());
    let mount = Mount::new(&device.path);
    let number = device.text().trim_start_matches("/dev/loop");
    let line = format!("36 1 7:{number} / /somewhere rw shared:1 - ext4 /dev/x rw\n");
    machine.write("proc/self/mountinfo", line);
    let error = above(&node, "S64NA0123").unwrap_err();
    assert!(matches!(error, RetrainError::InUse(_)), "{error}");
    assert!(error.to_string().contains("/somewhere"), "{error}");
    drop(mount);
    assert_eq!(fs::read(machine.config()).unwrap(), config(0x42));
}
