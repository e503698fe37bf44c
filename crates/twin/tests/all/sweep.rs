//! Sweeps over links, on the simulated drive that the published sweep was made with.

use lab::Answer as _;
use lab::experiment::link::sweep::SweepTest;
use lab::experiment::link::{LinkResult, SweepResult};
use lab::experiment::options::SweepOptions;
use lab::experiment::{ExperimentOutcome, Options};
use lab::rig::{Go, PcieMode};
use lab::{Lab, Progress};
use longtake_twin::{Setup, SetupOptions, Wishes};
use target::{NewFiles, Profiles};

const DRIVE: &str = "sim:patriot-hellfire-240gb";

fn setup(target: &str) -> Setup {
    let options = SetupOptions { targets: vec![target.into()], ..SetupOptions::default() };
    Setup::look(options, &Profiles::in_folder("/nonexistent".into())).unwrap()
}

fn wishes(sweep: SweepOptions) -> Wishes {
    Wishes { options: Options::Link { sweep: Some(sweep) }, ..Wishes::default() }
}

fn swept(target: &str, wishes: &Wishes) -> LinkResult {
    let setup = setup(target);
    wishes.check(&setup).unwrap();
    let programme = wishes.programme(&["link"], &setup);
    let mut rig =
        setup.open(true, None, &mut NewFiles::default(), &|| Go::On, &mut |_| ()).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let mut watch = |_: &Progress<'_>| Go::On;
    let mut lab = Lab::new(rig.rig(), folder.path(), &mut watch).unwrap();
    match programme.experiments[0].0.run(&mut lab).unwrap() {
        ExperimentOutcome::Link(result) => *result,
        other => panic!("{other:?}"),
    }
}

fn mode(generation: u8, lanes: u8) -> PcieMode {
    PcieMode { generation, lanes }
}

#[track_caller]
fn test(sweep: &SweepResult, name: &str) -> SweepTest {
    sweep.tests().into_iter().find(|test| test.name() == name).unwrap()
}

#[track_caller]
fn near(found: f64, expected: f64, share: f64) {
    assert!((found / expected - 1.0).abs() <= share, "{found} for {expected}");
}

/// As the published sweep found: see LNK-2 to LNK-4 of `longtake reproduce`.
#[test]
fn generation_and_lanes_trade_until_the_flash_is_the_limit() {
    let depths = vec![1, 32];
    let sweep = SweepOptions { generations: vec![1, 2, 3], depths, ..SweepOptions::default() };
    let result = swept(&format!("{DRIVE}:full"), &wishes(sweep));
    let sweep = result.sweep.as_ref().unwrap();
    assert_eq!(sweep.own, Some(mode(3, 4)));
    assert_eq!(sweep.links.len(), 9, "three generations on 1, 2 and 4 lanes");
    let read = test(sweep, "read.sequential");
    let at = |test: &SweepTest, on: PcieMode| sweep.on(on).unwrap().rate(test).unwrap();
    let lane = at(&read, mode(1, 1));
    for (on, times) in [
        (mode(1, 2), 2.0),
        (mode(2, 1), 2.0),
        (mode(1, 4), 4.0),
        (mode(2, 2), 4.0),
        (mode(3, 1), 4.0),
    ] {
        near(at(&read, on), times * lane, 0.02);
    }
    // Reads gain from the last step, and less than the link does; writes gained all before.
    let gain = at(&read, mode(3, 4)) / at(&read, mode(2, 4));
    assert!(gain > 1.3 && gain < 1.9, "{gain}");
    assert_eq!(sweep.enough(&read).unwrap().mode, mode(3, 4));
    let write = test(sweep, "write.sequential");
    near(at(&write, mode(3, 4)), at(&write, mode(2, 4)), 0.02);
    // One read at a time needs hardly more than a lane; many are held back by it.
    let (one, many) = (test(sweep, "read.4KiB.d1"), test(sweep, "read.4KiB.d32"));
    assert!(at(&one, mode(1, 1)) > 0.8 * at(&one, mode(3, 4)));
    near(at(&many, mode(1, 1)), lane, 0.02);
    assert!(at(&many, mode(3, 4)) > 2.0 * lane);
    // A lane carries both directions at once.
    assert!(at(&test(sweep, "mixed"), mode(1, 1)) > 1.9 * lane);
    // What was measured on the drive's own link before is what the sweep finds on it.
    near(at(&read, mode(3, 4)), result.sequential(load::Verb::Read).unwrap(), 0.03);
    near(sweep.relative_score(sweep.on(mode(3, 4)).unwrap()).unwrap(), 100.0, 1e-9);
    let said = result.answer().join("\n");
    assert!(said.contains("Swept over 9 links, from PCIe 1.0 x1 to PCIe 3.0 x4"), "{said}");
    assert!(said.contains("Sequential reads need PCIe 3.0 x4"), "{said}");
    assert!(said.contains("on the widest link of the sweep: a wider one may bring more"), "{said}");
}

#[test]
fn every_link_begins_with_the_drive_as_it_was() {
    let wishes = |lanes| {
        let generations = vec![3];
        wishes(SweepOptions { generations, lanes, depths: vec![8] })
    };
    let both = swept(DRIVE, &wishes(vec![1, 4])).sweep.unwrap();
    let alone = swept(DRIVE, &wishes(vec![4])).sweep.unwrap();
    assert_eq!(both.on(mode(3, 4)), alone.on(mode(3, 4)));
    assert_ne!(both.on(mode(3, 1)).unwrap().points, alone.on(mode(3, 4)).unwrap().points);
}

#[test]
fn a_sweep_that_may_not_write_only_reads() {
    let sweep = SweepOptions { lanes: vec![4], depths: vec![1], ..SweepOptions::default() };
    let wishes = Wishes { read_only: true, ..wishes(sweep) };
    let programme = wishes.programme(&["link"], &setup(DRIVE));
    assert_eq!(programme.cost().written_bytes, 0);
    let sweep = swept(&format!("{DRIVE}:full"), &wishes).sweep.unwrap();
    let names: Vec<String> = sweep.tests().iter().map(SweepTest::name).collect();
    assert_eq!(names, ["read.sequential", "read.4KiB.d1"]);
}

#[test]
fn retraining_is_of_one_real_drive_and_of_its_speeds_alone() {
    let folder = tempfile::tempdir().unwrap();
    let refused = |targets: &[&str], lanes: Vec<u8>| {
        let targets = targets.iter().map(|name| folder.path().join(name)).collect();
        let retrain = Some("S1".to_owned());
        let options =
            SetupOptions { targets, retrain, new_file_bytes: 1 << 20, ..SetupOptions::default() };
        let setup = Setup::look(options, &Profiles::in_folder("/nonexistent".into())).unwrap();
        wishes(SweepOptions { lanes, ..SweepOptions::default() }).check(&setup).unwrap_err()
    };
    assert!(refused(&["a", "b"], Vec::new()).to_string().contains("one drive at a time"));
    assert!(refused(&["a"], vec![4]).to_string().contains("leave out --lanes"));
    let retrain = Some("S1".to_owned());
    let simulated =
        SetupOptions { targets: vec![DRIVE.into()], retrain, ..SetupOptions::default() };
    let refused = Setup::look(simulated, &Profiles::in_folder("/nonexistent".into())).unwrap_err();
    assert!(refused.to_string().contains("leave out --retrain"), "{refused}");
}

#[test]
fn real_drives_without_leave_and_sata_drives_are_not_swept() {
    let refused = |target: &str| {
        let options = SetupOptions {
            targets: vec![target.into()],
            new_file_bytes: 1 << 20,
            ..SetupOptions::default()
        };
        let setup = Setup::look(options, &Profiles::in_folder("/nonexistent".into())).unwrap();
        wishes(SweepOptions::default()).check(&setup).unwrap_err().to_string()
    };
    let real = refused("/tmp/no-such-file-to-be-swept");
    assert!(real.contains("only with --retrain SERIAL"), "{real}");
    assert!(real.contains("longtake fit"), "{real}");
    let sata = refused("sim:intel-dc-s3700-400gb");
    assert!(sata.contains("is a SATA drive: choose an NVMe drive"), "{sata}");
}
