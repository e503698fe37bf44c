//! What a bank on io_uring does beyond the seam's promises: wakers, threads, fall-backs, its end.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc;
use std::thread;

use crate::drives::{Folder, LoopDevice};
use base::{Bank, BufferId, Buffers, Command, DeviceError, DriveId, Duration, Full, Operation};
use longtake_device::target::{self, Access};
use longtake_device::{OpenError, Options, Pages, Pool, UringBank, Warning};

const DRIVE: DriveId = DriveId(0);
const WRITE: Access = Access::Write { exclusive: true };
/// Longer than any test may take.
const LONG: Duration = Duration::from_secs(3600);

fn member(folder: &Folder) -> PathBuf {
    let path = folder.path().join("member");
    target::create_file(&path, 8 << 20).unwrap();
    path
}

fn bank(folder: &Folder) -> (UringBank, Arc<Pool>) {
    let target = target::open(&member(folder), WRITE).unwrap().0;
    let (pool, _) = Pool::new(4, 64 << 10, Pages::Transparent).unwrap();
    let (bank, warnings) =
        UringBank::open(vec![target], Arc::clone(&pool), Options::default()).unwrap();
    assert_eq!(warnings, []);
    (bank, pool)
}

fn write(buffer: u32, offset: u64, tag: u64) -> Command {
    let operation =
        Operation::Write { offset, length: 64 << 10, buffer: BufferId(buffer), fua: false };
    Command { drive: DRIVE, operation, tag }
}

#[test]
fn reading_leaves_the_time_of_a_files_last_reading_as_it_was() {
    let folder = Folder::on_disk();
    let path = member(&folder);
    let target = target::open(&path, Access::Read).unwrap().0;
    let (pool, _) = Pool::new(1, 64 << 10, Pages::Transparent).unwrap();
    let (mut bank, _) = UringBank::open(vec![target], pool, Options::default()).unwrap();
    // Older than the last change, so that the kernel would note a reading at once.
    let long_ago = std::time::UNIX_EPOCH + std::time::Duration::from_secs(1_000_000_000);
    let times = std::fs::FileTimes::new().set_accessed(long_ago);
    std::fs::File::open(&path).unwrap().set_times(times).unwrap();
    let operation = Operation::Read { offset: 0, length: 64 << 10, buffer: BufferId(0) };
    bank.submit(Command { drive: DRIVE, operation, tag: 0 }).unwrap();
    let mut done = Vec::new();
    bank.wait(None, &mut done).unwrap();
    assert_eq!(done[0].outcome, Ok(()));
    assert_eq!(std::fs::metadata(&path).unwrap().accessed().unwrap(), long_ago);
}

#[test]
fn a_waker_ends_a_wait_from_another_thread() {
    let folder = Folder::on_disk();
    let (mut bank, _) = bank(&folder);
    let waker = bank.waker();
    let (woken, heard) = mpsc::channel();
    let waking = thread::spawn(move || {
        // Until it is heard, for the moment when the bank falls asleep can't be seen from here.
        while heard.try_recv().is_err() {
            waker.wake();
            thread::sleep(std::time::Duration::from_micros(200));
        }
    });
    let mut done = Vec::new();
    let start = bank.now();
    for _ in 0..20 {
        bank.wait_for(LONG, &mut done).unwrap();
    }
    woken.send(()).unwrap();
    waking.join().unwrap();
    assert!(bank.now() < start + LONG && done.is_empty());
}

#[test]
fn a_wake_that_comes_first_ends_the_next_wait_and_only_that() {
    let folder = Folder::on_disk();
    let (mut bank, _) = bank(&folder);
    let waker = bank.waker();
    waker.wake();
    waker.wake();
    let mut done = Vec::new();
    bank.wait_for(LONG, &mut done).unwrap();
    let until = bank.now() + Duration::from_millis(5);
    bank.wait(Some(until), &mut done).unwrap();
    assert!(bank.now() >= until, "two wakes were one");
}

#[test]
fn wakes_lose_no_completions() {
    let folder = Folder::on_disk();
    let (mut bank, _) = bank(&folder);
    let waker = bank.waker();
    let (stop, stopped) = mpsc::channel::<()>();
    let waking = thread::spawn(move || {
        while stopped.try_recv() == Err(mpsc::TryRecvError::Empty) {
            waker.wake();
            thread::yield_now();
        }
    });
    let (mut tag, mut done) = (0, Vec::new());
    while tag < 400 {
        for buffer in 0..4 {
            bank.submit(write(buffer, u64::from(buffer) << 20, tag)).unwrap();
            tag += 1;
        }
        while done.len() < tag as usize {
            bank.wait_for(LONG, &mut done).unwrap();
        }
    }
    drop(stop);
    waking.join().unwrap();
    let mut tags: Vec<_> = done.iter().map(|completion| completion.tag).collect();
    tags.sort_unstable();
    assert!(tags.into_iter().eq(0..tag));
}

#[test]
fn a_bank_moves_to_another_thread_until_it_first_waits() {
    let folder = Folder::on_disk();
    let (mut bank, pool) = bank(&folder);
    pool.with(BufferId(0), &mut |bytes| bytes.fill(5));
    bank.submit(write(0, 0, 1)).unwrap();
    let moved = thread::spawn(move || {
        let mut done = Vec::new();
        bank.wait(None, &mut done).unwrap();
        assert_eq!(done[0].outcome, Ok(()));
        bank
    });
    let mut bank = moved.join().unwrap();
    let error = bank.wait_for(Duration::from_millis(1), &mut Vec::new());
    // Kernels before 6.0 have rings that belong to nobody.
    if let Err(error) = error {
        assert!(error.to_string().contains("belongs to the thread"), "{error}");
    }
}

#[test]
fn dropping_a_bank_finishes_its_writes_and_frees_buffers_and_drives() {
    let folder = Folder::on_disk();
    let (mut bank, pool) = bank(&folder);
    for buffer in 0..4 {
        pool.with(BufferId(buffer), &mut |bytes| bytes.fill(buffer as u8 + 1));
        bank.submit(write(buffer, u64::from(buffer) << 16, 0)).unwrap();
    }
    drop(bank);
    let path = folder.path().join("member");
    assert!(!target::is_locked(&path).unwrap());
    let bytes = std::fs::read(&path).unwrap();
    for buffer in 0..4 {
        assert_eq!(pool.hold(BufferId(buffer))[0], buffer as u8 + 1, "it can be used again");
        let start = (buffer as usize) << 16;
        assert!(bytes[start..start + (64 << 10)].iter().all(|&byte| byte == buffer as u8 + 1));
    }
}

#[test]
fn a_block_device_is_free_for_others_once_its_bank_is_dropped() {
    let folder = Folder::on_disk();
    let device = LoopDevice::new(&folder.path().join("image"), 8 << 20, 4096);
    for trim_by_ring in [true, false] {
        // Opening exclusively again is what would fail.
        let target = target::open(device.path(), WRITE).unwrap().0;
        let (pool, _) = Pool::new(1, 4096, Pages::Normal).unwrap();
        let options = Options { trim_by_ring, ..Options::default() };
        let (mut bank, warnings) = UringBank::open(vec![target], pool, options).unwrap();
        assert_eq!(warnings.contains(&Warning::TrimByThread), !trim_by_ring);
        let operation = Operation::Trim { offset: 0, length: 8 << 20 };
        bank.submit(Command { drive: DRIVE, operation, tag: 0 }).unwrap();
    }
}

#[test]
fn a_discard_gives_the_space_of_a_block_device_back() {
    use std::os::unix::fs::MetadataExt;
    let folder = Folder::on_disk();
    let image = folder.path().join("image");
    for trim_by_ring in [true, false] {
        let device = LoopDevice::new(&image, 8 << 20, 4096);
        let target = target::open(device.path(), WRITE).unwrap().0;
        let (pool, _) = Pool::new(4, 64 << 10, Pages::Normal).unwrap();
        let options = Options { trim_by_ring, ..Options::default() };
        let (mut bank, _) = UringBank::open(vec![target], pool, options).unwrap();
        let mut done = Vec::new();
        bank.submit(write(0, 0, 1)).unwrap();
        bank.wait(None, &mut done).unwrap();
        assert!(std::fs::metadata(&image).unwrap().blocks() > 0);
        let operation = Operation::Trim { offset: 0, length: 64 << 10 };
        bank.submit(Command { drive: DRIVE, operation, tag: 2 }).unwrap();
        bank.wait(None, &mut done).unwrap();
        assert!(done.iter().all(|completion| completion.outcome.is_ok()), "{done:?}");
        assert_eq!(std::fs::metadata(&image).unwrap().blocks(), 0);
        drop(bank);
        drop(device);
        std::fs::remove_file(&image).unwrap();
    }
}

#[test]
fn a_file_cut_short_gives_a_short_read_with_its_length() {
    let folder = Folder::on_disk();
    let (mut bank, _) = bank(&folder);
    let file = std::fs::OpenOptions::new().write(true).open(folder.path().join("member")).unwrap();
    file.set_len(20480).unwrap();
    let operation = Operation::Read { offset: 0, length: 64 << 10, buffer: BufferId(0) };
    bank.submit(Command { drive: DRIVE, operation, tag: 0 }).unwrap();
    let mut done = Vec::new();
    bank.wait(None, &mut done).unwrap();
    assert_eq!(done[0].outcome, Err(DeviceError::Short { moved: 20480 }));
}

#[test]
fn a_full_file_system_is_no_space_and_not_a_medium_error() {
    let folder = Folder::on_disk();
    let size = std::process::Command::new("mount")
        .args(["-t", "tmpfs", "-o", "size=64k", "none"])
        .arg(folder.path())
        .status()
        .unwrap();
    assert!(size.success());
    struct Mount<'a>(&'a Folder);
    impl Drop for Mount<'_> {
        fn drop(&mut self) {
            // Lazily: between fork and exec, programs that other tests start have our files open too.
            let status =
                std::process::Command::new("umount").arg("--lazy").arg(self.0.path()).status();
            assert!(thread::panicking() || status.is_ok_and(|status| status.success()));
        }
    }
    let mount = Mount(&folder);
    let path = folder.path().join("sparse");
    std::fs::File::create_new(&path).unwrap().set_len(1 << 20).unwrap();
    let target = target::open(&path, WRITE).unwrap().0;
    let (pool, _) = Pool::new(4, 64 << 10, Pages::Normal).unwrap();
    let (mut bank, _) = UringBank::open(vec![target], pool, Options::default()).unwrap();
    let mut done = Vec::new();
    for buffer in 0..2 {
        bank.submit(write(buffer, u64::from(buffer) << 16, 0)).unwrap();
        bank.wait(None, &mut done).unwrap();
    }
    assert_eq!(done[0].outcome, Ok(()));
    assert_eq!(done[1].outcome, Err(DeviceError::NoSpace));
    drop(bank);
    drop(mount);
}

#[test]
fn without_permission_to_lock_memory_a_bank_works_and_says_what_to_do() {
    let folder = Folder::on_disk();
    let target = target::open(&member(&folder), WRITE).unwrap().0;
    let (pool, _) = Pool::new(4, 8 << 20, Pages::Normal).unwrap();
    // Capabilities belong to the thread, so that giving one up in a thread of its own hurts nobody;
    // the limit is that of the process, and matters only to those without the capability.
    thread::spawn(move || {
        limit_locked_memory(64 << 10);
        give_up_locking_memory();
        let (mut bank, warnings) =
            UringBank::open(vec![target], Arc::clone(&pool), Options::default()).unwrap();
        assert!(matches!(warnings[..], [Warning::BuffersNotRegistered { bytes: 0x200_0000, .. }]));
        let advice = warnings[0].to_string();
        assert!(advice.contains("ulimit -l 32768"), "{advice}");
        let mut done = Vec::new();
        bank.submit(write(0, 0, 1)).unwrap();
        bank.wait(None, &mut done).unwrap();
        assert_eq!(done[0].outcome, Ok(()));
    })
    .join()
    .unwrap();
}

fn limit_locked_memory(bytes: u64) {
    let limit = libc::rlimit { rlim_cur: bytes, rlim_max: bytes };
    // SAFETY: the pointer is to an rlimit of our own.
    assert_eq!(unsafe { libc::setrlimit(libc::RLIMIT_MEMLOCK, &raw const limit) }, 0);
}

/// Drops CAP_IPC_LOCK from this thread (capset(2), version 3 of its layout).
fn give_up_locking_memory() {
    const VERSION_3: u32 = 0x2008_0522;
    const CAP_IPC_LOCK: u32 = 14;
    let mut header = [VERSION_3, 0];
    // Effective, permitted and inheritable, for capabilities 0 to 31 and then 32 to 63.
    let mut sets = [0u32; 6];
    // SAFETY: the header is as the version says, and the sets have room for what is written.
    let got = unsafe { libc::syscall(libc::SYS_capget, header.as_mut_ptr(), sets.as_mut_ptr()) };
    assert_eq!(got, 0);
    sets[0] &= !(1 << CAP_IPC_LOCK);
    // SAFETY: as above, and only read from.
    let set = unsafe { libc::syscall(libc::SYS_capset, header.as_mut_ptr(), sets.as_ptr()) };
    assert_eq!(set, 0);
}

#[test]
fn impossible_banks_are_refused() {
    let (pool, _) = Pool::new(1, 4096, Pages::Normal).unwrap();
    let error = UringBank::open(Vec::new(), Arc::clone(&pool), Options::default()).unwrap_err();
    assert!(matches!(error, OpenError::DriveCount { count: 0 }), "{error}");
    let folder = Folder::on_disk();
    let path = member(&folder);
    for depth_max in [0, 1 << 20] {
        let target = target::open(&path, WRITE).unwrap().0;
        let options = Options { depth_max, ..Options::default() };
        let error = UringBank::open(vec![target], Arc::clone(&pool), options).unwrap_err();
        assert!(matches!(error, OpenError::Depth { .. }), "{error}");
        assert!(error.to_string().contains("between 1 and 16384"), "{error}");
    }
}

#[test]
fn the_depth_is_the_one_that_was_asked_for() {
    let folder = Folder::on_disk();
    let target = target::open(&member(&folder), WRITE).unwrap().0;
    let (pool, _) = Pool::new(1, 4096, Pages::Normal).unwrap();
    let options = Options { depth_max: 2, ..Options::default() };
    let (mut bank, _) = UringBank::open(vec![target], pool, options).unwrap();
    assert_eq!(bank.drives()[0].depth_max, 2);
    let flush = Command { drive: DRIVE, operation: Operation::Flush, tag: 0 };
    assert_eq!([0; 3].map(|_| bank.submit(flush)), [Ok(()), Ok(()), Err(Full)]);
}

#[test]
fn a_bank_that_is_to_poll_falls_back_to_interrupts_and_says_why() {
    let folder = Folder::on_disk();
    let device = LoopDevice::new(&folder.path().join("image"), 8 << 20, 4096);
    for (path, file, advice) in
        [(member(&folder), true, "it is a file"), (device.path().to_owned(), false, "poll_queues")]
    {
        let target = target::open(&path, WRITE).unwrap().0;
        let (pool, _) = Pool::new(1, 64 << 10, Pages::Normal).unwrap();
        let options = Options { poll: true, ..Options::default() };
        let (mut bank, warnings) = UringBank::open(vec![target], pool, options).unwrap();
        let name = path.display().to_string();
        assert_eq!(warnings, [Warning::NotPolled { name, file }]);
        assert!(warnings[0].to_string().contains(advice), "{}", warnings[0]);
        let mut done = Vec::new();
        bank.submit(write(0, 0, 1)).unwrap();
        bank.wait(None, &mut done).unwrap();
        assert_eq!(done[0].outcome, Ok(()));
    }
}
