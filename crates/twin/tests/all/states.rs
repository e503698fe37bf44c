//! The state that experiments start from: on simulated drives each finds the same, whatever was measured before it.

use std::path::Path;

use base::{ByteSize, Duration};
use lab::experiment::all::Programme;
use lab::experiment::{Experiment, ExperimentOutcome, StartingState};
use lab::rig::Go;
use lab::run::Run;
use lab::{Figure, Lab, LabError, Progress};
use longtake_twin::{Setup, SetupOptions, Wishes};
use target::{NewFiles, Profiles};

fn setup(target: &str) -> Setup {
    let options = SetupOptions { targets: vec![target.into()], ..SetupOptions::default() };
    Setup::look(options, &Profiles::in_folder("/nonexistent".into())).unwrap()
}

/// Runs experiments of these names one after the other, and gives what each found.
fn measure(names: &[&'static str], target: &str, wishes: &Wishes) -> Vec<ExperimentOutcome> {
    let setup = setup(target);
    let programme: Programme = wishes.programme(names, &setup);
    assert_eq!(programme.left_out, []);
    let mut rig =
        setup.open(true, None, &mut NewFiles::default(), &|| Go::On, &mut |_| ()).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let mut run = Run::begin("1", Vec::new());
    let mut watch = |_: &Progress<'_>| Go::On;
    let ending = programme
        .conduct::<LabError>(rig.rig(), &mut run, folder.path(), &mut watch, &mut |_| Ok(()))
        .unwrap();
    assert_eq!(ending, lab::experiment::conduct::Ending::Done { failures: 0 });
    run.outcomes
}

fn figures(outcome: &ExperimentOutcome) -> Vec<Figure> {
    outcome.answer().figures()
}

/// A consumer drive with a cache, a SATA drive and one of four bits a cell, each with a region that `mix` writes over several times.
#[test]
fn each_experiment_finds_in_all_what_it_finds_alone() {
    // A search for viewers takes as long as all others together, most of all on a fast drive.
    let but_viewers: Vec<_> =
        Experiment::NAMES.iter().copied().filter(|n| *n != "viewers").collect();
    for (target, size, names) in [
        ("sim:samsung-970-evo-plus-1tb", 256 << 20, &but_viewers[..]),
        ("sim:intel-dc-s3500-480gb:full", 64 << 20, Experiment::NAMES),
        ("sim:qlc-1tb", 64 << 20, &["fill", "mix", "neighbours"]),
    ] {
        let wishes = Wishes {
            size: Some(ByteSize(size)),
            point: Some(Duration::from_millis(20)),
            ..Wishes::default()
        };
        let all = measure(names, target, &wishes);
        assert_eq!(all.len(), names.len());
        for (together, &name) in all.iter().zip(names) {
            let alone = measure(&[name], target, &wishes);
            assert_eq!(figures(together), figures(&alone[0]), "{name} on {target}");
            assert_eq!(together.answer().answer(), alone[0].answer().answer());
        }
    }
}

/// Two runs of a grid: points in another order, and fewer of them, are the same.
#[test]
fn a_point_of_a_grid_does_not_depend_on_the_points_before_it() {
    let wishes = Wishes {
        size: Some(ByteSize(256 << 20)),
        point: Some(Duration::from_millis(20)),
        ..Wishes::default()
    };
    let target = "sim:samsung-970-evo-plus-1tb";
    let few = Wishes {
        options: lab::experiment::Options::Points {
            blocks: vec![65_536],
            depths: Vec::new(),
            rates: Vec::new(),
        },
        ..wishes.clone()
    };
    let point = |wishes: &Wishes| match &measure(&["mix"], target, wishes)[0] {
        ExperimentOutcome::Mix(result) => {
            assert!(result.preparation.restored && result.preparation.renewed);
            assert_eq!(result.preparation.state, StartingState::WrittenOnce);
            result.at(65_536, 0).unwrap().clone()
        }
        other => panic!("{other:?}"),
    };
    assert_eq!(point(&wishes), point(&few));
}

/// A file keeps what was written, so it is trimmed and written again; where that leaves something, the result says so.
#[test]
fn a_drive_that_keeps_what_was_written_is_trimmed_and_written_before_each_experiment() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("drive");
    let options = SetupOptions {
        targets: vec![file.clone()],
        erase: vec![file.display().to_string()],
        mode: 0o600,
        new_file_bytes: 4 << 20,
        ..SetupOptions::default()
    };
    let setup =
        Setup::look(options, &Profiles::in_folder(Path::new("/nonexistent").into())).unwrap();
    let wishes = Wishes { point: Some(Duration::from_millis(5)), ..Wishes::default() };
    let programme = wishes.programme(&["steady", "mix"], &setup);
    let mut made = NewFiles::default();
    let mut rig = setup.open(true, None, &mut made, &|| Go::On, &mut |_| ()).unwrap();
    let results = folder.path().join("results");
    let mut watch = |_: &Progress<'_>| Go::On;
    let mut lab = Lab::new(rig.rig(), &results, &mut watch).unwrap();
    for (experiment, _) in &programme.experiments {
        assert_eq!(experiment.starting_state(), StartingState::WrittenOnce);
        let outcome = experiment.run(&mut lab).unwrap();
        let preparation = match &outcome {
            ExperimentOutcome::Steady(result) => &result.preparation,
            ExperimentOutcome::Mix(result) => &result.preparation,
            other => panic!("{other:?}"),
        };
        assert!(!preparation.renewed && !preparation.restored);
        assert_eq!(preparation.written_bytes, 4 << 20);
        let said = outcome.answer().answer().join("\n");
        let trimmed = preparation.trimmed_bytes == 4 << 20;
        assert_eq!(said.contains("trimmed, then 4.19 MB written once in order"), trimmed, "{said}");
        assert_eq!(said.contains("was not trimmed: earlier writes may have"), !trimmed, "{said}");
        assert!(said.contains("Each point started from what the one before left"), "{said}");
    }
}
