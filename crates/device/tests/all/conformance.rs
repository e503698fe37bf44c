//! Banks on io_uring keep the seam's promises: on files and on block devices, with and without what
//! makes them fast.

use std::sync::Arc;

use crate::drives::{Folder, LoopDevice, OnDrives};
use base::conformance_tests;
use longtake_device::target::{self, Access, OpenTarget};
use longtake_device::{Options, Pages, Pool, UringBank};

const DRIVE_BYTES: u64 = 32 << 20;
const WRITE: Access = Access::Write { exclusive: true };

/// A bank on these targets, and what they are on: loop devices and their folder.
fn on<D>(targets: Vec<OpenTarget>, drives: D, options: Options) -> OnDrives<D> {
    let (pool, _) = Pool::new(12, 1 << 20, Pages::Huge).unwrap();
    let (bank, _) = UringBank::open(targets, Arc::clone(&pool), options).unwrap();
    OnDrives { bank, pool, _drives: drives }
}

/// Two files to write and one to read.
fn on_files(folder: Folder, options: Options) -> OnDrives<Folder> {
    let targets = [WRITE, WRITE, Access::Read].into_iter().enumerate().map(|(i, access)| {
        let path = folder.path().join(format!("member{i}"));
        target::create_file(&path, DRIVE_BYTES).unwrap();
        target::open(&path, access).unwrap().0
    });
    on(targets.collect(), folder, options)
}

/// Two loop devices to write and one to read.
fn on_loops(options: Options) -> OnDrives<(Vec<LoopDevice>, Folder)> {
    let folder = Folder::on_disk();
    let (mut targets, mut loops) = (Vec::new(), Vec::new());
    for (i, access) in [WRITE, WRITE, Access::Read].into_iter().enumerate() {
        let path = folder.path().join(format!("image{i}"));
        // One with blocks of 512 bytes, as old drives have, and the others with 4 KiB.
        let block_bytes = if i == 0 { 512 } else { 4096 };
        let device = LoopDevice::new(&path, DRIVE_BYTES, block_bytes);
        targets.push(target::open(device.path(), access).unwrap().0);
        loops.push(device);
    }
    on(targets, (loops, folder), options)
}

/// Without anything that is registered, and with few commands at once.
fn plain() -> Options {
    Options {
        depth_max: 3,
        register_buffers: false,
        register_files: false,
        trim_by_ring: false,
        poll: false,
        tight_loop: false,
    }
}

/// As the load engine uses a bank.
fn tight() -> Options {
    Options { tight_loop: true, ..Options::default() }
}

mod files {
    use super::*;
    conformance_tests!(on_files(Folder::on_disk(), Options::default()));
}

mod files_in_a_tight_loop {
    use super::*;
    conformance_tests!(on_files(Folder::on_disk(), tight()));
}

mod files_without_registration {
    use super::*;
    conformance_tests!(on_files(Folder::on_disk(), plain()));
}

mod files_in_memory {
    use super::*;
    conformance_tests!(on_files(Folder::in_memory(), Options::default()));
}

mod block_devices {
    use super::*;
    conformance_tests!(on_loops(Options::default()));
}

mod block_devices_in_a_tight_loop {
    use super::*;
    conformance_tests!(on_loops(tight()));
}

mod block_devices_without_registration_and_trimmed_by_thread {
    use super::*;
    conformance_tests!(on_loops(plain()));
}
