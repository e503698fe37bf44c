//! Banks on the very drives that the environment names keep the seam's promises, polled or not:
//! `LONGTAKE_ERASE_DRIVES=/dev/ng0n1,/dev/nvme1n1` (what they hold is lost), `LONGTAKE_POLL=1`. Without
//! names, on loop devices.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::drives::{Folder, LoopDevice, OnDrives};
use base::{Bank, BufferId, Buffers, Command, DriveId, Operation, conformance_tests};
use longtake_device::target::{self, Access, OpenTarget, TargetError, TargetKind};
use longtake_device::{Options, Pages, Pool, UringBank, Warning, identity};

const WRITE: Access = Access::Write { exclusive: true };

/// The drives, for one test at a time.
struct Drives {
    paths: Vec<PathBuf>,
    _loops: Vec<LoopDevice>,
    _folder: Option<Folder>,
    _alone: MutexGuard<'static, ()>,
}

impl Drives {
    fn new() -> Self {
        static ALONE: Mutex<()> = Mutex::new(());
        let alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
        if let Ok(names) = std::env::var("LONGTAKE_ERASE_DRIVES") {
            let paths = names.split(',').map(PathBuf::from).collect();
            return Self { paths, _loops: Vec::new(), _folder: None, _alone: alone };
        }
        let folder = Folder::on_disk();
        let loops: Vec<_> = [512, 4096]
            .into_iter()
            .map(|block| LoopDevice::new(&folder.path().join(block.to_string()), 64 << 20, block))
            .collect();
        let paths = loops.iter().map(|device| device.path().to_owned()).collect();
        Self { paths, _loops: loops, _folder: Some(folder), _alone: alone }
    }

    fn open(&self, access: Access) -> Vec<OpenTarget> {
        let open = |path| target::open(path, access).unwrap_or_else(|error| panic!("{error}")).0;
        self.paths.iter().map(|path| open(path)).collect()
    }
}

/// A bank of all the drives. What is to be polled is, unless it can't be: files and loop devices.
fn bank(targets: Vec<OpenTarget>, pool: &Arc<Pool>, options: Options) -> UringBank {
    let poll = std::env::var_os("LONGTAKE_POLL").is_some();
    let pollable: Vec<String> = targets
        .iter()
        .filter(|target| target.kind != TargetKind::File)
        .map(|target| target.geometry.name.clone())
        .filter(|name| !name.starts_with("/dev/loop"))
        .collect();
    let options = Options { poll, ..options };
    let (bank, warnings) = UringBank::open(targets, Arc::clone(pool), options).unwrap();
    for warning in warnings {
        if let Warning::NotPolled { name, .. } = &warning {
            assert!(!pollable.contains(name), "{warning}");
        }
    }
    bank
}

fn on_named(options: Options, pages: Pages) -> OnDrives<Drives> {
    let drives = Drives::new();
    let (pool, _) = Pool::new(12, 3 << 20, pages).unwrap();
    let bank = bank(drives.open(WRITE), &pool, options);
    OnDrives { bank, pool, _drives: drives }
}

mod registered {
    use super::*;
    conformance_tests!(on_named(Options::default(), Pages::Huge));
}

mod without_registration_in_small_pages {
    use super::*;
    conformance_tests!(on_named(
        Options {
            depth_max: 3,
            register_buffers: false,
            register_files: false,
            ..Options::default()
        },
        Pages::Normal
    ));
}

/// Runs one command to its end; it must succeed.
fn run(bank: &mut UringBank, drive: DriveId, operation: Operation) {
    bank.submit(Command { drive, operation, tag: 0 }).unwrap();
    let mut done = Vec::new();
    bank.wait(None, &mut done).unwrap();
    assert_eq!(done[0].outcome, Ok(()), "{} on drive {}", operation.describe(), drive.0);
}

#[test]
fn what_is_written_one_way_is_read_the_other() {
    const LENGTH: u32 = 3 << 20;
    let drives = Drives::new();
    let (pool, _) = Pool::new(1, LENGTH as usize, Pages::Normal).unwrap();
    let (buffer, offset) = (BufferId(0), 1 << 20);
    // Through the page cache too, before and after: no old bytes may stay in it.
    let cached: Vec<PathBuf> = drives
        .paths
        .iter()
        .map(|path| identity::describe(path).unwrap().device.unwrap_or_else(|| path.clone()))
        .collect();
    for round in 0..2u8 {
        let mut writing = bank(drives.open(WRITE), &pool, Options::default());
        for index in 0..drives.paths.len() as u16 {
            pool.with(buffer, &mut |bytes| fill(bytes, round, index));
            run(
                &mut writing,
                DriveId(index),
                Operation::Write { offset, length: LENGTH, buffer, fua: false },
            );
            run(&mut writing, DriveId(index), Operation::Flush);
        }
        drop(writing);
        let paths = cached.iter().map(|path| target::open(path, Access::Read).unwrap().0);
        let (mut reading, _) =
            UringBank::open(paths.collect(), Arc::clone(&pool), Options::default()).unwrap();
        for index in 0..drives.paths.len() as u16 {
            let mut expected = vec![0; LENGTH as usize];
            fill(&mut expected, round, index);
            pool.with(buffer, &mut |bytes| bytes.fill(0));
            run(&mut reading, DriveId(index), Operation::Read { offset, length: LENGTH, buffer });
            pool.with(buffer, &mut |bytes| assert!(*bytes == expected, "drive {index}"));
            let mut bytes = vec![0; LENGTH as usize];
            let file = File::open(&cached[usize::from(index)]).unwrap();
            file.read_exact_at(&mut bytes, offset).unwrap();
            assert!(bytes == expected, "drive {index} through the page cache");
        }
    }
}

/// Bytes of which no two blocks, drives or rounds have the same.
fn fill(bytes: &mut [u8], round: u8, drive: u16) {
    for (at, byte) in bytes.chunks_mut(8).enumerate() {
        let word = (at as u64) << 24 | u64::from(drive) << 8 | u64::from(round);
        byte.copy_from_slice(&word.to_le_bytes()[..byte.len()]);
    }
}

#[test]
fn a_drive_has_one_writer_by_whichever_name() {
    let drives = Drives::new();
    for path in &drives.paths {
        let first = target::open(path, WRITE).unwrap().0;
        assert!(target::is_locked(path).unwrap());
        let other = identity::describe(path).unwrap().device.unwrap_or_else(|| path.clone());
        for name in [path, &other] {
            assert!(target::is_locked(name).unwrap(), "{}", name.display());
            let error = target::open(name, Access::Write { exclusive: false }).unwrap_err();
            assert!(matches!(error, TargetError::BeingRecorded { .. }), "{error}");
        }
        drop(first);
        assert!(!target::is_locked(path).unwrap());
    }
}

#[test]
fn banks_of_several_threads_share_the_drives() {
    let drives = Drives::new();
    let first = drives.open(WRITE);
    let clones: Vec<Vec<OpenTarget>> =
        (0..2).map(|_| first.iter().map(|target| target.try_clone().unwrap()).collect()).collect();
    drop(first);
    std::thread::scope(|scope| {
        for (thread, targets) in clones.into_iter().enumerate() {
            scope.spawn(move || {
                let (pool, _) = Pool::new(4, 64 << 10, Pages::Normal).unwrap();
                let mut bank = bank(targets, &pool, Options::default());
                for index in 0..bank.drives().len() as u16 {
                    let (offset, length) = ((thread as u64) << 20, 64 << 10);
                    let expected = vec![thread as u8 + 1; length as usize];
                    let buffer = BufferId(0);
                    pool.with(buffer, &mut |bytes| bytes.copy_from_slice(&expected));
                    run(
                        &mut bank,
                        DriveId(index),
                        Operation::Write { offset, length, buffer, fua: false },
                    );
                    let buffer = BufferId(1);
                    run(&mut bank, DriveId(index), Operation::Read { offset, length, buffer });
                    pool.with(buffer, &mut |bytes| assert!(*bytes == expected));
                }
            });
        }
    });
    assert!(drives.paths.iter().all(|path| !target::is_locked(path).unwrap()));
}
