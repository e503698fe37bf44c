//! `Sets::Separate`: one NVM Set of each drive is written at a time, and readers meet no writes in the others.

use std::fs;

use base::{Duration, Rate};
use longtake::recording::{Observer, Options, Sets, View};
use longtake::{ByteSize, Recording};
use plan::mission::{Mission, Readers};
use profile::{Parameter, library};
use recorder::WhenFull;
use tempfile::TempDir;

use crate::harness::scratch;

/// Two drives of two sets each, in a file of the folder: the library's dies with fewer blocks, so that they are written over in
/// seconds.
fn drives(folder: &TempDir) -> String {
    let mut profile = library::get("memblaze-4tb-horizontal").expect("the library has it");
    profile.capacity_bytes = 16 << 30;
    profile.simulated.set("flash", "pages_per_block", Parameter::assumed(24));
    let file = folder.path().join("small.toml");
    fs::write(&file, profile.to_toml().expect("it can be written")).expect("writing it");
    format!("sim:{}", file.display())
}

fn separate(turn: Duration) -> Options {
    Options { sets: Sets::Separate, rest_turn: Some(turn), ..Options::default() }
}

/// Bytes of each member when it was last looked at, and what was seen of them.
#[derive(Default)]
struct Watch {
    written: Vec<u64>,
    /// The part that was last written.
    part: Option<usize>,
    changes: usize,
    /// Looks at which members of both parts had been written since the one before.
    both: usize,
}

impl Observer for Watch {
    fn look(&mut self, view: &View<'_>) {
        let now: Vec<u64> = view.snapshot().members.iter().map(|member| member.written).collect();
        self.written.resize(now.len(), 0);
        // Drives in their order, and of each its two namespaces.
        let wrote = |part: usize| {
            (part..now.len()).step_by(2).any(|member| now[member] > self.written[member])
        };
        match (wrote(0), wrote(1)) {
            (true, true) => self.both += 1,
            (false, false) => {}
            (first, _) => {
                let part = usize::from(!first);
                self.changes += usize::from(self.part.is_some_and(|before| before != part));
                self.part = Some(part);
            }
        }
        self.written = now;
    }
}

#[test]
fn one_set_of_each_drive_is_written_at_a_time() {
    let folder = scratch();
    let options = Options {
        memory: ByteSize(64 << 20),
        duration: Some(Duration::from_secs(2)),
        ..separate(Duration::from_millis(400))
    };
    let mut watch = Watch::default();
    let recording = Recording::builder("synthetic:50MB/s", &format!("{}*2", drives(&folder)));
    let account = recording.options(options).run(&mut watch).expect("it is recorded");
    assert!(account.is_complete());
    assert!((3..=5).contains(&watch.changes), "{} changes in five turns", watch.changes);
    assert!(watch.both <= watch.changes + 1, "{} looks saw both parts written", watch.both);
    let (least, most) = (watch.written.iter().min(), watch.written.iter().max());
    assert!(least.is_some_and(|least| *least > most.unwrap() / 3), "{:?}", watch.written);
}

#[test]
fn readers_beside_a_virtual_recording_meet_no_writes_in_sets_of_their_own() {
    let folder = scratch();
    let mission = |options: Options| {
        // Where all sets are written there is none that a reader could prefer.
        let apart = options.sets == Sets::Separate;
        let options = Options {
            when_full: WhenFull::Wrap,
            duration: Some(Duration::from_secs(20)),
            ..options
        };
        let target = format!("{}:full*2", drives(&folder));
        let mission = Recording::builder("synthetic:1.5GB/s", &target).options(options).mission();
        let readers = Readers {
            random: true,
            bytes: 4096,
            rate: Rate(4e7),
            depth: 64,
            drives: None,
            apart,
            begins: Duration::from_secs(4),
        };
        Mission { readers: vec![readers], coarse: false, ..mission.expect("it can be simulated") }
    };
    let run = |mission: Mission| {
        let outcome = mission.run(|_| std::ops::ControlFlow::Continue(())).expect("it is run");
        assert!(outcome.lossless());
        let reads = outcome.reads.latencies;
        let tail = reads.percentile(99.5).expect("there are enough");
        (reads.mean_ns().expect("there are some") / 1e3, tail)
    };
    let (apart_us, apart_tail) = run(mission(separate(Duration::from_secs(2))));
    let (beside_us, beside_tail) = run(mission(Options::default()));
    assert!(apart_us < 110.0 && beside_us > 1.2 * apart_us, "{apart_us} us, {beside_us} us beside");
    assert!(beside_tail.as_nanos() > 5 * apart_tail.as_nanos(), "{apart_tail}, {beside_tail}");
}

#[test]
fn drives_that_have_no_sets_to_keep_apart_are_refused_with_the_reason() {
    let folder = scratch();
    let small = drives(&folder);
    let rest = Options { rest: 1, ..separate(Duration::from_secs(1)) };
    let own = || separate(Duration::from_secs(1));
    for (target, options, words) in [
        ("sim:ideal*2".to_owned(), own(), "the only member on its drive"),
        (format!("{small}@1"), own(), "the only member on its drive"),
        (small.clone(), rest, "--rest"),
    ] {
        let options = Options { duration: Some(Duration::from_millis(10)), ..options };
        let built = || Recording::builder("synthetic:50MB/s", &target).options(options.clone());
        let run = built().run(&mut ()).expect_err("it can't be").to_string();
        let described = built().mission().expect_err("it can't be").to_string();
        assert!(run.contains(words) && described.contains(words), "{run}\n{described}");
    }
    let member = folder.path().join("member");
    let options = Options {
        new: longtake::recording::NewArray {
            members: 2,
            member_size: Some(ByteSize(40 << 20)),
            ..Default::default()
        },
        ..own()
    };
    let target = format!("{}/", member.display());
    let files = Recording::builder("synthetic:50MB/s", &target).options(options).run(&mut ());
    let error = files.expect_err("files are in no set").to_string();
    assert!(error.contains("NVM Set") && !member.join("member0").exists(), "{error}");
}
