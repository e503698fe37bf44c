//! Write amplification of a step: what the rig's counters say is what the simulated drives did.

use std::fs;
use std::path::Path;

use lab::counters::StepWritten;
use lab::rig::Go;
use lab::{BankRig, Lab, Progress, Rig, Step};
use load::Workload;
use longtake_twin::{Setup, SetupOptions};
use profile::Profile;
use ssd::Spec;
use target::{NewFiles, Profiles, SimDrives, SimTarget};

fn profiles() -> Profiles {
    Profiles::in_folder("/nonexistent".into())
}

fn workload(text: &str) -> Workload {
    Workload::from_toml(&format!("seed = 7\ninterval = '100ms'\n{text}")).unwrap()
}

/// One step of a rig, as `longtake measure run` runs it.
fn step(rig: &mut dyn Rig, workload: &Workload) -> Step {
    let folder = tempfile::tempdir().unwrap();
    let mut watch = |_: &Progress<'_>| Go::On;
    Lab::new(rig, folder.path(), &mut watch).unwrap().step("run", "workload", workload).unwrap()
}

/// The same step through the rig that `longtake measure` opens for a target.
fn measured(target: &str, workload: &Workload) -> Step {
    let options = SetupOptions { targets: vec![target.into()], ..SetupOptions::default() };
    let setup = Setup::look(options, &profiles()).unwrap();
    let mut made = NewFiles::default();
    let opened = setup.open(true, Some(workload), &mut made, &|| Go::On, &mut |_| ());
    step(opened.unwrap().rig(), workload)
}

const SCATTERED: &str = "stop = { bytes = '512MiB' }\n[[stream]]\nwrite = 1\npattern = 'random'\nblock = '4KiB'\nsize = '1GiB'\ndepth = 16\n";

/// A drive of 512 MiB that was written over at random for ever, so that it copies from the first write on.
fn small(folder: &Path) -> String {
    let mut spec = Spec::from_profile(&profiles().named("ideal").unwrap()).unwrap();
    spec.capacity_bytes = 512 << 20;
    (spec.flash.channels, spec.flash.dies_per_channel, spec.flash.pages_per_block) = (2, 2, 48);
    spec.mapping.over_provisioning = 0.3;
    let mut profile = Profile::new("small", "Small", "simulated", spec.capacity_bytes);
    profile.simulated = spec.to_parameters();
    let path = folder.join("small.toml");
    fs::write(&path, profile.to_toml().unwrap()).unwrap();
    format!("sim:{}:random", path.display())
}

#[test]
fn the_write_amplification_of_a_step_is_what_the_models_own_books_say() {
    let folder = tempfile::tempdir().unwrap();
    let name = small(folder.path());
    let workload = workload(&SCATTERED.replace("1GiB", "512MiB"));
    let written = measured(&name, &workload).counters.written;

    let targets = SimTarget::all(std::slice::from_ref(&name)).unwrap().unwrap();
    let bank = SimDrives::new(&targets, None, &profiles()).unwrap().bank().unwrap();
    let mut rig = BankRig::without_data(bank);
    let before = rig.bank().health(0);
    let uncounted = step(&mut rig, &workload);
    let after = rig.bank().health(0);
    let host = after.written_bytes - before.written_bytes;
    let media = after.sets[0].media_written_bytes - before.sets[0].media_written_bytes;
    assert!(media > host && host > 0, "{media} {host}");
    let known = StepWritten::Known {
        host_bytes: host,
        media_bytes: media,
        amplification: media as f64 / host as f64,
    };
    assert_eq!(written, known);
    // Nobody asked this rig's bank.
    assert_eq!(uncounted.counters.written.amplification(), None);
}

#[test]
fn every_kind_of_simulated_rig_counts_what_its_media_take() {
    let verified = SCATTERED.replace("512MiB", "8MiB").replace("1GiB", "64MiB");
    let workloads = [workload(&verified), workload(&(verified + "content = 'verify'\n"))];
    for target in ["sim:ideal", "raid0:sim:ideal*2"] {
        for workload in &workloads {
            let written = measured(target, workload).counters.written;
            let StepWritten::Known { host_bytes, media_bytes, .. } = written else {
                panic!("{target}: {written:?}")
            };
            assert_eq!(host_bytes, 8 << 20, "{target}");
            assert!(media_bytes > 0, "{target}");
        }
    }
}

#[test]
fn a_step_that_writes_nothing_and_a_file_have_no_write_amplification() {
    let reads = workload("stop = { bytes = '1MiB' }\n[[stream]]\nread = 1\n");
    assert_eq!(measured("sim:ideal:full", &reads).counters.written.amplification(), None);

    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("drive");
    let options = SetupOptions {
        targets: vec![file.clone()],
        erase: vec![file.display().to_string()],
        mode: 0o600,
        new_file_bytes: 4 << 20,
        ..SetupOptions::default()
    };
    let setup = Setup::look(options, &profiles()).unwrap();
    let workload = workload("stop = { bytes = '1MiB' }\n[[stream]]\nwrite = 1\n");
    let mut made = NewFiles::default();
    let opened = setup.open(true, Some(&workload), &mut made, &|| Go::On, &mut |_| ());
    let counters = step(opened.unwrap().rig(), &workload).counters;
    let StepWritten::NotKnown { reason } = &counters.written else { panic!("{counters:?}") };
    assert!(reason.contains("no NVMe drive"), "{reason}");
}
