//! Arrays of files for tests, and recordings onto them.

use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use longtake::ByteSize;
use longtake::recording::{NewArray, Options};
use longtake::{Array, Recording};
use recorder::WhenFull;
use tempfile::TempDir;

/// A folder for one test, on the disk that the build is on (direct I/O needs a real one).
pub fn scratch() -> TempDir {
    tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("making a scratch folder")
}

/// Empty files that can become members.
pub fn files(folder: &Path, count: u16, bytes: u64) -> Vec<PathBuf> {
    let file = |number| {
        let path = folder.join(format!("member{number}"));
        File::create(&path).and_then(|file| file.set_len(bytes)).expect("making a file");
        path
    };
    (0..count).map(file).collect()
}

/// Records onto six small member files.
fn options(parity: u8) -> Options {
    let new = NewArray {
        members: 6,
        member_size: Some(ByteSize(40 << 20)),
        segment: Some(ByteSize(4 << 20)),
        chunk: Some(ByteSize(252 << 10)),
        parity: Some(parity),
        ..NewArray::default()
    };
    // More than any of them records, and quicker to be had than half a gibibyte.
    Options { new, memory: ByteSize(128 << 20), ..Options::default() }
}

/// An array of six member files in a new folder.
pub struct Fixture {
    folder: TempDir,
    /// Packets that were recorded onto it.
    pub packets: u64,
}

impl Fixture {
    /// Records so many bytes of synthetic packets, slowly enough for wide groups of parity.
    pub fn recorded(bytes: u64, parity: u8) -> Self {
        let mut fixture = Self { folder: scratch(), packets: 0 };
        fixture.record(bytes, parity);
        fixture
    }

    /// A recording that has started and goes on: a lap of its ring takes minutes, so that nothing is overwritten while a test reads.
    pub fn recording() -> (Self, Recording) {
        let fixture = Self { folder: scratch(), packets: 0 };
        let options = Options { when_full: WhenFull::Wrap, ..options(0) };
        let recording = Recording::builder("synthetic:200kB/s", &fixture.name()).options(options);
        (fixture, recording.start().expect("files can be recorded on"))
    }

    /// Records so many bytes more.
    pub fn record(&mut self, bytes: u64, parity: u8) {
        let options = Options { until_bytes: Some(ByteSize(bytes)), ..options(parity) };
        let recording = Recording::builder("synthetic:50MB/s", &self.name()).options(options);
        let account = recording.run(&mut ()).expect("files can be recorded on");
        assert!(account.is_complete(), "{:?}", account.ledger);
        self.packets += account.ledger.stored.packets;
    }

    /// The array's name.
    pub fn name(&self) -> String {
        self.path().display().to_string()
    }

    /// The array's folder.
    pub fn path(&self) -> PathBuf {
        self.folder.path().join("array")
    }

    /// The file of a member.
    pub fn member(&self, number: u16) -> PathBuf {
        self.path().join(format!("member{number}"))
    }

    /// Removes a member.
    pub fn remove(&self, number: u16) {
        fs::remove_file(self.member(number)).expect("it is there");
    }

    /// Opens the array.
    pub fn open(&self) -> Array {
        Array::open(&self.name()).expect("it is whole")
    }
}

/// Changes a byte of a file.
pub fn flip(path: &Path, at: u64) {
    let file = File::options().read(true).write(true).open(path).expect("it is there");
    let mut byte = [0];
    file.read_exact_at(&mut byte, at).expect("it can be read");
    file.write_all_at(&[byte[0] ^ 1], at).expect("it can be written");
}
