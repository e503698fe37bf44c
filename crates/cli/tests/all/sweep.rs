//! Sweeps as users run them: killed in the middle and gone on with, with jobs that fail, as files for other machines.

use std::env;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use crate::harness::{Running, line, longtake, new_in, run, scratch, wait_until};
use nix::sys::signal::Signal;
use tempfile::TempDir;

/// A sweep's file in the folder.
fn spec(folder: &TempDir, text: &str) -> PathBuf {
    let path = new_in(folder, "spec.toml");
    fs::write(&path, text).expect("writing a file");
    path
}

/// Recordings of some seconds on one to four drives, a fraction of a second each.
const MISSIONS: &str = "run = [\"plan\", \"mission\"]\n[base]\ndrive = \"samsung-970-pro-512gb\"\nmission = \"60s\"\n[axes]\n\
     rate = { from = \"1GB/s\", to = \"6GB/s\", steps = 6 }\ncount = { from = 1, to = 4 }\n";

#[track_caller]
fn table(folder: &Path) -> String {
    fs::read_to_string(folder.join("results.csv")).expect("there is a table")
}

#[test]
fn a_sweep_that_was_killed_goes_on_to_the_same_table() {
    let folder = scratch();
    let spec = spec(&folder, MISSIONS);
    let (whole, cut) = (new_in(&folder, "whole"), new_in(&folder, "cut"));
    line(&format!("sweep @ --quiet --jobs 2 -o {}", whole.display()), &spec).code(0);

    let mut command = longtake();
    command.args(["sweep", "--quiet", "--jobs", "2", "-o"]).arg(&cut).arg(&spec);
    command.stdout(std::process::Stdio::null());
    let mut running = Running::start(&mut command);
    let results = cut.join("results.jsonl");
    let lines = || fs::read_to_string(&results).map_or(0, |text| text.lines().count());
    wait_until("three jobs are done", || lines() >= 3);
    running.signal(Signal::SIGKILL);
    running.wait();
    // As if the kill had hit in the middle of a line.
    let text = fs::read_to_string(&results).expect("there are results");
    let text = text.rsplit_once('\n').map_or("", |(whole, _)| whole).to_owned() + "\n";
    let kept = text.lines().count();
    fs::write(&results, format!("{text}{{\"version\":\"0")).expect("writing a file");

    let again = line(&format!("sweep @ --quiet --json -o {}", cut.display()), &spec).code(0).json();
    assert_eq!(again["run"].as_u64(), Some(24 - kept as u64), "{again}");
    assert_eq!(table(&cut), table(&whole));
    assert_eq!(table(&cut).lines().count(), 25);
    let once_more = line(&format!("sweep @ --quiet --json -o {}", cut.display()), &spec).code(0);
    assert_eq!(once_more.json()["run"], 0);
}

#[test]
fn a_drive_of_ones_own_that_has_changed_is_computed_anew() {
    let folder = scratch();
    let drive = new_in(&folder, "own.toml");
    line("sim new own --from ideal -o @", &drive).code(0);
    let text = format!(
        "run = [\"plan\"]\n[base]\ndrive = \"{}\"\nmission = \"60s\"\n[axes]\nrate = [\"1GB/s\", \"2GB/s\"]\n",
        drive.display()
    );
    let spec = spec(&folder, &text);
    let run = || line("sweep @ --quiet --json", &spec).code(0).json()["run"].clone();
    assert_eq!((run(), run()), (2.into(), 0.into()));
    let text = fs::read_to_string(&drive).expect("there is a drive");
    fs::write(&drive, format!("# looked at again\n{text}")).expect("writing a file");
    assert_eq!(run(), 0, "only what it says counts");
    fs::write(&drive, text.replace("Ideal 1 TB", "Ideal 1 TB, another one"))
        .expect("writing a file");
    assert_eq!(run(), 2);
}

#[test]
fn a_job_that_fails_is_counted_and_the_others_are_done() {
    let folder = scratch();
    let text = "[base]\nrate = \"2GB/s\"\nmission = \"60s\"\n[axes]\ndrive = [\"ideal\", \"samsung-970-pro-512gb\", \"nowhere\"]\nparity = [0, 99]\n";
    let spec = spec(&folder, text);
    let ran = line("sweep @ --json --quiet", &spec).code(3).json();
    assert_eq!((ran["jobs"].as_u64(), ran["failed"].as_u64()), (Some(6), Some(4)), "{ran}");
    let table = table(&folder.path().join("spec.sweep"));
    let rows: Vec<&str> = table.lines().collect();
    assert!(rows[0].starts_with("job,drive,parity,plan."), "{}", rows[0]);
    assert!(
        rows[4].starts_with("3,samsung-970-pro-512gb,99") && rows[4].contains("parity"),
        "{table}"
    );
    assert!(rows[5].contains("no drive 'nowhere'"), "{table}");
    assert_eq!(rows.len(), 7);
}

#[test]
fn jobs_run_one_by_one_give_the_table_of_the_sweep() {
    let folder = scratch();
    let text = "[base]\ndrive = \"samsung-970-pro-512gb\"\nmission = \"60s\"\n[axes]\nrate = [\"1GB/s\", \"4GB/s\"]\n";
    let spec = spec(&folder, text);
    line("sweep @ --quiet", &spec).code(0);
    let jobs = new_in(&folder, "jobs");
    line(&format!("sweep expand @ -o {}", jobs.display()), &spec).code(0);
    let cluster = new_in(&folder, "cluster");
    fs::create_dir(&cluster).expect("making a folder");
    let mut lines = Vec::new();
    for job in ["1.toml", "0.toml"] {
        lines.extend(line("sweep job @", &jobs.join(job)).code(0).stdout);
    }
    fs::write(cluster.join("results.jsonl"), lines).expect("writing a file");
    let ran = line(&format!("sweep @ --quiet --json -o {}", cluster.display()), &spec).code(0);
    assert_eq!(ran.json()["run"], 0);
    assert_eq!(table(&cluster), table(&folder.path().join("spec.sweep")));
}

#[test]
fn a_dry_run_counts_and_leaves_nothing() {
    let folder = scratch();
    let text = "[base]\ndrive = \"ideal\"\nmission = \"60s\"\n[axes]\nrate = [\"1GB/s\", \"2GB/s\"]\nspare = { from = 0, to = 4 }\n";
    let spec = spec(&folder, text);
    let said = line("sweep @ --dry-run --json", &spec).code(0).json();
    assert_eq!((said["jobs"].as_u64(), said["left"].as_u64()), (Some(10), Some(10)));
    assert!(said["estimate_s"].as_f64().is_some_and(|s| s >= 0.0), "{said}");
    assert!(!folder.path().join("spec.sweep").exists());
}

#[test]
fn a_sweep_that_can_not_be_is_refused_before_anything_is_run() {
    let folder = scratch();
    for (text, said) in [
        ("[axes]\nrate = 5\n", "line 2: the axis rate"),
        ("[base]\ndrive = \"ideel\"\n[axes]\nrate = [\"1GB/s\"]\n", "did you mean 'ideal'"),
        ("[axes]\nrate = [\"1GB/s\"]\n", "names no drive"),
        ("[base]\ndrive = \"ideal\"\nkeep = \"1h\"\n[axes]\nspeed = [1]\n", "speed"),
    ] {
        line("sweep @", &spec(&folder, text)).code(1).says(&[said]);
        assert!(!folder.path().join("spec.sweep").exists(), "{text}");
    }
    line("sweep @", &new_in(&folder, "none.toml")).code(1).says(&["none.toml", "No such file"]);
}

/// A python3 that does what a script says, found before any other.
fn python(folder: &TempDir, script: &str) -> std::ffi::OsString {
    let programs = new_in(folder, "programs");
    fs::create_dir_all(&programs).expect("making a folder");
    let path = programs.join("python3");
    fs::write(&path, format!("#!/bin/sh\n{script}\n")).expect("writing a program");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).expect("it is ours");
    let others = env::var_os("PATH").expect("there are programs");
    env::join_paths([programs].into_iter().chain(env::split_paths(&others))).expect("no colons")
}

#[test]
fn what_a_cluster_can_not_do_is_told_and_stays_to_be_run() {
    let folder = scratch();
    let text =
        "[base]\ndrive = \"ideal\"\nmission = \"60s\"\n[axes]\nrate = [\"1GB/s\", \"2GB/s\"]\n";
    let spec = spec(&folder, text);
    let swept = |script: &str| {
        let mut program = longtake();
        program.args(["sweep", "--quiet", "--scheduler", "tcp://host:1"]).arg(&spec);
        run(program.env("PATH", python(&folder, script)))
    };
    swept("echo 'No module named longtake' >&2; exit 1")
        .code(1)
        .says(&["No module named longtake", "pip install 'longtake[cluster]'"]);
    swept("read -r jobs; echo nonsense").code(1).says(&["no result", "nonsense"]);
    swept("read -r jobs; echo '{\"failed\":[7,\"gone\"]}'").code(1).says(&["no job 7"]);
    let other = r#"read -r jobs; echo '{"finished":[0,{"version":"0.0.1","job":{"run":["plan"],"keys":{}},"took_s":1}]}'"#;
    swept(other).code(1).says(&["Longtake 0.0.1", "install the same version everywhere"]);
    let ran = swept("read -r jobs; echo '{\"failed\":[1,\"its workers ended\"]}'");
    ran.code(3).says(&["job 1 was not run: its workers ended", "run the same command to continue"]);
    line("sweep @ --quiet -y", &spec).code(0);
    line("sweep @ --scheduler tcp://host:1 --jobs 2", &spec).code(2).says(&["--jobs"]);
    line("sweep @ --scheduler tcp://host:1 --tls-cert x", &spec).code(2).says(&["--tls-ca-file"]);
}

#[test]
fn a_table_as_parquet_has_the_same_rows() {
    let folder = scratch();
    let text =
        "[base]\ndrive = \"ideal\"\nmission = \"60s\"\n[axes]\nrate = [\"1GB/s\", \"2GB/s\"]\n";
    let spec = spec(&folder, text);
    let path = new_in(&folder, "table.parquet");
    line(&format!("sweep @ --quiet --parquet {}", path.display()), &spec).code(0);
    let bytes = fs::read(&path).expect("there is a file");
    assert!(bytes.starts_with(b"PAR1") && bytes.ends_with(b"PAR1"));
}
