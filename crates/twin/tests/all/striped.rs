//! Striped sets, real and simulated, are measured like a drive; and published experiments run on the set that a user would name.

use base::{ByteSize, Duration, Rate};
use lab::experiment::mix::{Mix, MixResult};
use lab::experiment::{Experiment, ExperimentOutcome, Options, Scope};
use lab::published::{Drives, DrivesNeeded};
use lab::rig::Go;
use lab::{Lab, Progress, Rig};
use load::{Measurement, Workload};
use longtake_twin::published::Library;
use longtake_twin::{Setup, SetupError, SetupOptions, Wishes};
use target::{NewFiles, Profiles, Uplink};

const UPLINK: (Rate, Rate) = (Rate(1.6e9), Rate(1.25e9));

fn look(options: SetupOptions) -> Result<Setup, SetupError> {
    Setup::look(options, &Profiles::in_folder("/nonexistent".into()))
}

fn simulated(target: &str) -> SetupOptions {
    let (to_host, to_drives) = UPLINK;
    let uplink = Some(Uplink { to_host, to_drives });
    SetupOptions { targets: vec![target.into()], uplink, ..SetupOptions::default() }
}

fn mixed(rig: &mut dyn Rig, mix: &Mix) -> MixResult {
    let folder = tempfile::tempdir().unwrap();
    let mut watch = |_: &Progress<'_>| Go::On;
    mix.run(&mut Lab::new(rig, folder.path(), &mut watch).unwrap()).unwrap()
}

#[test]
fn a_published_set_is_the_set_that_a_user_names() {
    let setup = look(simulated("raid0:sim:intel-dc-s3500-480gb*6")).unwrap();
    let wishes = Wishes {
        size: Some(ByteSize(1 << 30)),
        point: Some(Duration::from_millis(20)),
        options: Options::Points {
            blocks: vec![512, 64 << 10],
            depths: vec![64],
            rates: Vec::new(),
        },
        ..Wishes::default()
    };
    wishes.check(&setup).unwrap();
    let programme = wishes.programme(&["mix"], &setup);
    let Experiment::Mix(mix) = &programme.experiments[0].0 else { unreachable!() };
    let mut made = NewFiles::default();
    let mut rig = setup.open(true, None, &mut made, &|| Go::On, &mut |_| ()).unwrap();
    let theirs = mixed(rig.rig(), mix);
    let needed =
        DrivesNeeded { uplink: Some(UPLINK), ..DrivesNeeded::raid0("intel-dc-s3500-480gb", 6) };
    let scope = Scope {
        region: Some(1 << 30),
        point: Duration::from_millis(20),
        interval: Duration::from_millis(5),
        ..Scope::default()
    };
    let ours = Mix { scope, blocks: vec![512, 64 << 10], depth: 64, ..Mix::default() };
    assert_eq!(mixed(Library::default().rig(&needed).unwrap().as_mut(), &ours), theirs);
    assert_eq!((theirs.points.len(), theirs.jobs * theirs.depth), (14, 64));
}

#[test]
fn a_set_is_described_as_one_drive_with_its_members() {
    let known = |target: &str| {
        let setup = look(simulated(target)).unwrap();
        let subjects = setup.subjects();
        (subjects[0].clone(), setup.geometry()[0].clone(), subjects.len())
    };
    let (subject, geometry, count) = known("raid5:sim:intel-dc-s3500-480gb*4,stripe=128KiB");
    assert_eq!(count, 1);
    assert_eq!(subject.target, "raid5:sim:intel-dc-s3500-480gb*4,stripe=128KiB");
    assert_eq!(subject.target, geometry.name);
    assert_eq!(subject.members.len(), 4);
    assert!(subject.model.as_ref().unwrap().starts_with("4 x "), "{subject:?}");
    let (one, ..) = known("sim:intel-dc-s3500-480gb");
    assert!(subject.capacity_bytes.abs_diff(3 * one.capacity_bytes) < 3 * (128 << 10));
    // Results of one set are not gone on with on another.
    let (other, ..) = known("raid5:sim:intel-dc-s3500-480gb*4");
    assert!(subject.is(&subject) && !subject.is(&other));
}

fn verified(target: String, options: SetupOptions) -> Measurement {
    // Blocks longer than a stripe, shorter ones, and trims, so that commands have one part and many.
    let workload = "name = 'verify'
        stop = { bytes = '24MiB' }
        [[stream]]
        write = 8
        read = 2
        pattern = 'random'
        block = '4KiB:50,36KiB:20,256KiB:10'
        align = '4KiB'
        depth = 16
        size = '8MiB'
        content = 'verify'";
    let workload = Workload::from_toml(workload).unwrap();
    let setup = look(SetupOptions { targets: vec![target.into()], ..options }).unwrap();
    let mut made = NewFiles::default();
    let mut rig = setup.open(true, Some(&workload), &mut made, &|| Go::On, &mut |_| ()).unwrap();
    rig.rig().run(&workload, &mut |_, _| Go::On).unwrap()
}

#[track_caller]
fn all_right(measured: &Measurement) {
    let found = measured.verification.as_ref().expect("it verified");
    assert!(found.wrong_sectors == 0 && found.checked_bytes > 0, "{found:?}");
    assert_eq!(measured.error_count(), 0);
}

#[test]
fn what_is_written_to_a_set_of_files_reads_back() {
    for level in ["raid0", "raid5", "raid6"] {
        let folder = tempfile::tempdir().unwrap();
        let file = |number: u32| folder.path().join(format!("{number}.bin"));
        let members: Vec<String> = (0..4).map(|n| file(n).display().to_string()).collect();
        let options =
            SetupOptions { mode: 0o600, new_file_bytes: 8 << 20, ..SetupOptions::default() };
        let target = format!("{level}:{},stripe=32KiB", members.join(","));
        all_right(&verified(target, options));
        for number in 0..4 {
            let bytes = std::fs::read(file(number)).unwrap();
            assert!(bytes.iter().any(|byte| *byte != 0), "{level}: nothing is on member {number}");
        }
    }
}

#[test]
fn what_is_written_to_a_set_of_simulated_drives_reads_back() {
    for level in ["raid0", "raid5", "raid6"] {
        let target = format!("{level}:sim:intel-dc-s3500-480gb*4,stripe=32KiB");
        all_right(&verified(target, SetupOptions::default()));
    }
}

#[test]
fn drives_that_can_not_be_a_set_are_refused_before_anything_is_made() {
    let folder = tempfile::tempdir().unwrap();
    let target = |text: &str| text.replace('@', &folder.path().display().to_string());
    for (text, words) in [
        ("raid0:@/a", "needs 2 drives"),
        ("raid5:@/a,@/b", "needs 3 drives"),
        ("raid0:@/a,sim:ideal", "is simulated and"),
        ("raid0:@/a,@/b,stripe=512", "no whole number of the drives' blocks"),
        ("raid0:@/a,@/b,stripe=16MiB", "is smaller than a stripe"),
    ] {
        let targets = vec![target(text).into()];
        let options = SetupOptions { targets, new_file_bytes: 8 << 20, ..SetupOptions::default() };
        let error = look(options).unwrap_err().to_string();
        assert!(error.contains(words), "{text}: {error}");
    }
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
}

/// Small writes cost a set with parity more than the same set without: on drives that are the limit, by the commands they take.
#[test]
fn small_writes_cost_the_commands_that_parity_takes() {
    let writes = |level: &str| {
        let setup = look(SetupOptions {
            targets: vec![format!("{level}:sim:intel-dc-s3500-480gb:full*6").into()],
            ..SetupOptions::default()
        });
        let workload = Workload::from_toml(
            "name = 'small'
            stop = { time = '100ms' }
            interval = '10ms'
            [[stream]]
            write = 1
            pattern = 'random'
            block = '4KiB'
            depth = 128",
        );
        let workload = workload.unwrap();
        let mut made = NewFiles::default();
        let mut rig =
            setup.unwrap().open(true, Some(&workload), &mut made, &|| Go::On, &mut |_| ()).unwrap();
        rig.rig().run(&workload, &mut |_, _| Go::On).unwrap().commands_per_s()
    };
    let (raid0, raid5, raid6) = (writes("raid0"), writes("raid5"), writes("raid6"));
    assert!(raid0 > 1.9 * raid5 && raid5 > raid6, "{raid0} {raid5} {raid6}");
}

#[test]
fn experiments_run_on_a_set_as_on_a_drive() {
    let setup = || look(simulated("raid5:sim:intel-dc-s3500-480gb*3")).unwrap();
    let wishes = Wishes {
        size: Some(ByteSize(32 << 20)),
        point: Some(Duration::from_millis(5)),
        ..Wishes::default()
    };
    // The others go through the same rig, and take longer.
    for name in ["stream", "steady", "link", "neighbours"] {
        let setup = setup();
        let programme = wishes.programme(&[name], &setup);
        let mut made = NewFiles::default();
        let mut rig = setup.open(true, None, &mut made, &|| Go::On, &mut |_| ()).unwrap();
        let folder = tempfile::tempdir().unwrap();
        let mut watch = |_: &Progress<'_>| Go::On;
        let mut lab = Lab::new(rig.rig(), folder.path(), &mut watch).unwrap();
        let outcome: ExperimentOutcome = programme.experiments[0].0.run(&mut lab).unwrap();
        assert!(!outcome.answer().answer().is_empty(), "{name}");
    }
}
