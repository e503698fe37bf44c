//! Banks on io_uring keep the seam's promises: on files and on block devices, with and without what
//! makes them fast.

use std::sync::Arc;

use crate::drives::{Folder, LoopDevice};
use base::conformance::Fixture;
use base::{BufferId, conformance_tests};
use longtake_device::target::{self, Access, OpenTarget};
use longtake_device::{Options, Pages, Pool, UringBank};

const DRIVE_BYTES: u64 = 32 << 20;
const WRITE: Access = Access::Write { exclusive: true };

/// A bank on drives of its own, which go with it.
struct OnDrives {
    bank: UringBank,
    pool: Arc<Pool>,
    /// After the bank, which must be gone before its drives.
    _loops: Vec<LoopDevice>,
    _folder: Folder,
}

impl OnDrives {
    fn new(
        targets: Vec<OpenTarget>,
        loops: Vec<LoopDevice>,
        folder: Folder,
        options: Options,
    ) -> Self {
        let (pool, _) = Pool::new(12, 1 << 20, Pages::Huge).unwrap();
        let (bank, _) = UringBank::open(targets, Arc::clone(&pool), options).unwrap();
        Self { bank, pool, _loops: loops, _folder: folder }
    }

    /// Two files to write and one to read.
    fn files(folder: Folder, options: Options) -> Self {
        let targets = [WRITE, WRITE, Access::Read].into_iter().enumerate().map(|(i, access)| {
            let path = folder.path().join(format!("member{i}"));
            target::create_file(&path, DRIVE_BYTES).unwrap();
            target::open(&path, access).unwrap().0
        });
        Self::new(targets.collect(), Vec::new(), folder, options)
    }

    /// Two loop devices to write and one to read.
    fn loops(options: Options) -> Self {
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
        Self::new(targets, loops, folder, options)
    }
}

impl Fixture for OnDrives {
    type Bank = UringBank;
    type Memory = Arc<Pool>;

    fn bank(&mut self) -> &mut UringBank {
        &mut self.bank
    }
    fn buffers(&self) -> &Arc<Pool> {
        &self.pool
    }
    fn buffer_ids(&self) -> Vec<BufferId> {
        self.pool.buffer_ids().collect()
    }
}

/// Without anything that is registered, and with few commands at once.
fn plain() -> Options {
    Options {
        depth_max: 3,
        register_buffers: false,
        register_files: false,
        trim_by_ring: false,
        poll: false,
    }
}

mod files {
    use super::*;
    conformance_tests!(OnDrives::files(Folder::on_disk(), Options::default()));
}

mod files_without_registration {
    use super::*;
    conformance_tests!(OnDrives::files(Folder::on_disk(), plain()));
}

mod files_in_memory {
    use super::*;
    conformance_tests!(OnDrives::files(Folder::in_memory(), Options::default()));
}

mod block_devices {
    use super::*;
    conformance_tests!(OnDrives::loops(Options::default()));
}

mod block_devices_without_registration_and_trimmed_by_thread {
    use super::*;
    conformance_tests!(OnDrives::loops(plain()));
}
