//! Sweeps expand to exactly the jobs that they say, samples are the same for the same seed, and what can't be is named.

use std::ops::ControlFlow;

use longtake_plan::sweep::{Figure, Job, JobError, Sweep, What};
use profile::Value;

fn sweep(text: &str) -> Sweep {
    Sweep::from_toml(text).unwrap_or_else(|error| panic!("{error}\n{text}"))
}

/// The values of some keys in every job.
fn points(sweep: &Sweep, keys: &[&str]) -> Vec<Vec<String>> {
    let said = |job: &Job, key: &str| match &job.keys[key] {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    (0..sweep.count())
        .map(|index| {
            let job = sweep.job(index);
            keys.iter().map(|key| said(&job, key)).collect()
        })
        .collect()
}

#[test]
fn a_grid_has_every_point_once_and_the_last_axis_varies_fastest() {
    let sweep = sweep(
        "run = [\"mission\", \"plan\", \"plan\"]\n[base]\ndrive = \"ideal\"\n[axes]\n\
         rate = [\"1GB/s\", \"2GB/s\"]\ncount = { from = 2, to = 7, step = 2 }\n",
    );
    assert_eq!(sweep.run, [What::Plan, What::Mission]);
    let expected = [
        ["1GB/s", "2"],
        ["1GB/s", "4"],
        ["1GB/s", "6"],
        ["2GB/s", "2"],
        ["2GB/s", "4"],
        ["2GB/s", "6"],
    ];
    assert_eq!(points(&sweep, &["rate", "count"]), expected);
    assert_eq!(sweep.job(3).keys["drive"].as_str(), Some("ideal"));
}

#[test]
fn ranges_have_both_ends_their_unit_and_their_scale() {
    let of = |axis: &str| {
        let sweep = sweep(&format!("[base]\ndrive = \"ideal\"\n[axes]\nx = {axis}\n"));
        points(&sweep, &["x"]).concat()
    };
    assert_eq!(
        of("{ from = \"10Gb/s\", to = \"40Gb/s\", steps = 4 }"),
        ["10Gb/s", "20Gb/s", "30Gb/s", "40Gb/s"]
    );
    assert_eq!(of("{ from = 0.1, to = 0.4, step = 0.1 }"), ["0.1", "0.2", "0.3", "0.4"]);
    assert_eq!(
        of("{ from = 1, to = 1000, steps = 4, log = true }"),
        ["1.0", "10.0", "100.0", "1000.0"]
    );
    assert_eq!(of("{ from = 1, to = 3, step = 1 }"), ["1", "2", "3"]);
    assert_eq!(of("{ from = \"1h\", to = \"2h\", steps = 3 }"), ["1h", "1.5h", "2h"]);
}

#[test]
fn tables_within_tables_are_keys_with_points() {
    let sweep = sweep(
        "[base]\ndrive = \"ideal\"\n[base.simulated.flash]\nchannels = 8\n\
         [axes.simulated.mapping]\nover_provisioning = [0.1, 0.2]\n",
    );
    assert_eq!(sweep.axes[0].0, "simulated.mapping.over_provisioning");
    assert_eq!(sweep.job(1).keys["simulated.flash.channels"].as_integer(), Some(8));
}

const SAMPLED: &str = "[sample]\ncount = 64\nseed = SEED\nmethod = \"METHOD\"\n[base]\ndrive = \"ideal\"\n[axes]\n\
     rate = { from = \"1GB/s\", to = \"9GB/s\" }\ncount = { from = 1, to = 4, step = 1 }\nplacement = [\"adaptive\", \"stripe\"]\n";

#[test]
fn a_sample_follows_from_its_seed_and_covers_its_space() {
    for method in ["random", "sobol"] {
        let of = |seed: &str| {
            let sweep = sweep(&SAMPLED.replace("SEED", seed).replace("METHOD", method));
            assert_eq!(sweep.count(), 64);
            points(&sweep, &["rate", "count", "placement"])
        };
        let (one, again, other) = (of("1"), of("1"), of("2"));
        assert_eq!(one, again, "{method}");
        assert_ne!(one, other, "{method}");
        for (column, value) in
            [(1, "1"), (1, "2"), (1, "3"), (1, "4"), (2, "stripe"), (2, "adaptive")]
        {
            let found = one.iter().filter(|point| point[column] == value).count();
            assert!(found >= 4, "{method}: {value} {found} times");
        }
        let rates: Vec<f64> =
            one.iter().map(|point| point[0].trim_end_matches("GB/s").parse().unwrap()).collect();
        assert!(rates.iter().all(|rate| (1.0..9.0).contains(rate)));
        // Sobol's points fall into each eighth equally often.
        for eighth in 0..8 {
            let from = 1.0 + f64::from(eighth);
            let found = rates.iter().filter(|rate| (from..from + 1.0).contains(*rate)).count();
            assert!(found == 8 || method == "random", "{method}: {found} in eighth {eighth}");
        }
    }
}

#[test]
fn a_sweep_that_can_not_be_is_refused_with_line_and_remedy() {
    for (text, words) in [
        ("[axes]\nx = 5\n", "line 2: the axis x is not valid: one value varies nothing"),
        ("[axes]\nx = []\n", "give at least one"),
        ("[axes]\nx = { from = 3, to = 1 }\n", "give the smaller first"),
        ("[axes]\nx = { from = \"1GB/s\", to = \"9Gb/s\" }\n", "give both the same"),
        ("[axes]\nx = { from = 0, to = 1, log = true, steps = 3 }\n", "begin above 0"),
        ("[axes]\nx = { from = 0, to = 1, step = 1, steps = 2 }\n", "give one of them"),
        ("[axes]\nx = { from = 0, to = 1, stepp = 1 }\n", "stepp"),
        ("[axes]\nx = { from = 0, to = 1, steps = 1 }\n", "give 2 to"),
        ("[base]\nx = 1\n[axes]\nx = [1]\n", "line 4: x is an axis and in [base] too"),
        ("run = []\n[axes]\nx = [1]\n", "no job"),
        ("run = [\"dance\"]\n", "dance"),
        ("what = 1\n", "what"),
        ("", "no job"),
        (
            "[axes]\nx = { from = 0, to = 1, steps = 100000 }\ny = { from = 0, to = 1, steps = 100000 }\n",
            "10000000000 jobs",
        ),
    ] {
        let error = Sweep::from_toml(text).expect_err(text).to_string();
        assert!(error.contains(words), "{text}: {error}");
    }
}

fn job(run: &str, keys: &str) -> Job {
    Job::from_toml(&format!("run = [{run}]\n[keys]\n{keys}\n")).unwrap()
}

fn done(run: &str, keys: &str) -> Result<std::collections::BTreeMap<String, Figure>, JobError> {
    let job = job(run, keys);
    let profile = profile::library::get(job.drive()?).unwrap();
    job.run(&profile, |_| ControlFlow::Continue(()))
}

fn number(figures: &std::collections::BTreeMap<String, Figure>, name: &str) -> f64 {
    match figures.get(name) {
        Some(Figure::Number(value)) => *value,
        other => panic!("{name} is {other:?} in {figures:?}"),
    }
}

#[test]
fn a_job_reads_back_from_its_text() {
    let job =
        job("\"plan\"", "drive = \"ideal\"\nrate = \"1GB/s\"\n\"simulated.flash.channels\" = 4");
    assert_eq!(Job::from_toml(&job.to_toml().unwrap()).unwrap(), job);
}

#[test]
fn arithmetic_and_recording_of_one_design_stand_side_by_side() {
    let keys = "drive = \"samsung-970-pro-512gb\"\nrate = \"4GB/s\"\nkeep = \"1m\"\nlife_years = 0.01\nduration = \"20s\"";
    let figures = done("\"plan\", \"mission\"", keys).unwrap();
    let drives = number(&figures, "plan.drives");
    assert!(drives >= 2.0, "{figures:?}");
    assert_eq!(number(&figures, "mission.drives"), drives);
    assert_eq!(number(&figures, "mission.lossless"), 1.0);
    let one = done("\"mission\"", &format!("{keys}\ncount = 1")).unwrap();
    assert_eq!(number(&one, "mission.lossless"), 0.0);
    assert!(number(&one, "mission.lost_percent") > 20.0, "{one:?}");
    assert!(!one.contains_key("plan.drives"));
    // A design by the rate alone is proved by recording until its ring has wrapped.
    let alone = "drive = \"samsung-970-pro-512gb\"\nrate = \"4GB/s\"";
    let figures = done("\"plan\", \"mission\"", alone).unwrap();
    assert_eq!(number(&figures, "plan.drives"), 2.0);
    assert_eq!(number(&figures, "mission.lossless"), 1.0);
    assert!(number(&figures, "mission.time_s") > number(&figures, "plan.retention_s"));
}

#[test]
fn figures_and_parameters_can_be_changed() {
    let keys = "drive = \"samsung-970-pro-512gb\"\nrate = \"10GB/s\"\nmission = \"5s\"";
    let usual = number(&done("\"plan\"", keys).unwrap(), "plan.drives");
    let slow = format!("{keys}\n\"figures.write.native\" = \"0.5GB/s\"");
    assert!(number(&done("\"plan\"", &slow).unwrap(), "plan.drives") > usual);
    let keys = format!("{keys}\ncount = 1");
    let lost = number(&done("\"mission\"", &keys).unwrap(), "mission.lost_bytes");
    let slower = format!("{keys}\n\"simulated.flash.program_us\" = 5000.0");
    assert!(number(&done("\"mission\"", &slower).unwrap(), "mission.lost_bytes") > lost);
}

#[test]
fn a_design_that_can_not_be_says_why() {
    let keys = "drive = \"ideal\"\nrate = \"1GB/s\"\nkeep = \"1m\"";
    for (more, words) in [
        ("speed = 7", "unknown field `speed`"),
        ("count = 0", "give 1 to"),
        ("count = \"many\"", "is not a number of drives"),
        ("begins = \"half\"", "neither empty nor full"),
        ("duration = \"soon\"", "is not a time"),
        ("\"simulated.flash.chanels\" = 4", "chanels"),
        ("\"simulated.flash\" = 4", "simulated.SECTION.NAME"),
        ("\"figures.write.moon\" = 4", "no such figure"),
    ] {
        let error = done("\"mission\"", &format!("{keys}\n{more}")).expect_err(more).to_string();
        assert!(error.contains(words), "{more}: {error}");
    }
    assert_eq!(done("\"plan\"", "rate = \"1GB/s\""), Err(JobError::Drive));
    let error = done("\"plan\"", "drive = \"ideal\"").unwrap_err().to_string();
    assert!(error.contains("rate"), "{error}");
    let broken = job("\"mission\"", keys);
    let profile = profile::library::get("ideal").unwrap();
    assert_eq!(broken.run(&profile, |_| ControlFlow::Break(())), Err(JobError::BrokenOff));
}
