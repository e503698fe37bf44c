//! `longtake fit`: a simulated drive that was measured is found again from its measurement alone. The binary sees folders of
//! results and profiles, never the drive.

use std::path::Path;
use std::process::{Command, Output};

use base::Duration;
use lab::experiment::Scope;
use lab::experiment::any::ExperimentOutcome;
use lab::experiment::fill::Fill;
use lab::experiment::link::Link;
use lab::experiment::mix::Mix;
use lab::run::{Run, Subject};
use lab::{BankRig, Go, Lab};
use load::Workload;
use load::quantity::{Size, Time};
use load::workload::{Blocks, Pattern, Stop, Stream};
use profile::{Parameter, Profile, SourceKind};
use serde_json::Value;
use ssd::spec::{self, Collector, Media, Sets, WhenFull};
use ssd::{SimBank, Slot, Spec, Start};

/// A small drive of three bits a cell.
fn hidden(cache: bool) -> Spec {
    Spec {
        name: "hidden".to_owned(),
        model: "Hidden 2GB".to_owned(),
        capacity_bytes: 2 << 30,
        block_bytes: 512,
        controller: spec::Controller {
            read_us: 9.0,
            write_us: 14.0,
            read_iops: 90_000.0,
            write_iops: 70_000.0,
            depth: 1024,
        },
        link: spec::Link::Pcie { generation: 3, lanes: 4, efficiency: 0.7 },
        buffer: spec::Buffer { bytes: 2 << 20, protected: false },
        flash: spec::Flash {
            media: Media::Nand,
            channels: 8,
            dies_per_channel: 1,
            planes: 2,
            page_bytes: 16 << 10,
            pages_per_block: 24,
            pages_per_program: 3,
            read_us: 62.0,
            program_us: 2300.0,
            erase_us: 500.0,
            channel_mb_s: 900.0,
            suspend_us: Some(25.0),
            suspend_erases: true,
            variation: 0.0,
            bad_blocks: 0.0,
            retry_share: 0.0,
        },
        mapping: spec::Mapping {
            unit_bytes: 4096,
            over_provisioning: 0.19,
            collector: Collector::Greedy,
            reserve_superblocks: 4,
            trim_reads_zeros: true,
        },
        cache: cache.then_some(spec::Cache {
            static_bytes: 30_000_000,
            dynamic_bytes: 290_000_000,
            shrink_from: 0.7,
            shrink_to: 0.92,
            program_us: 210.0,
            first_bytes: 0,
            first_program_us: None,
            read_us: 30.0,
            fold_us: None,
            when_full: WhenFull::Native,
            idle_ms: 1000.0,
            drain_mb_s: None,
        }),
        sets: Sets::none(),
        placement: None,
        predictable: None,
        endurance: spec::Endurance { cycles: 1000, used: 0.0, rated_bytes: None },
        upkeep: None,
        heat: None,
    }
}

/// Which experiments are run, in this order.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Ask {
    Fill,
    Link,
    Mix,
    /// Random writes after the region was written twice, each round at other places.
    Rounds,
}

/// Measures the drive into a folder, as `measure` does on one drive.
fn measure(spec: &Spec, asked: &[Ask], folder: &Path) {
    let slot = Slot { spec: spec.clone(), start: Start::Empty, namespaces: vec![0], seed: 7 };
    let mut rig = BankRig::without_data(SimBank::new(&[slot], None).unwrap());
    let mut watch = |_: &lab::Progress<'_>| Go::On;
    let subject = Subject {
        target: "drive".to_owned(),
        kind: "simulated".to_owned(),
        model: Some(spec.model.clone()),
        serial: None,
        firmware: None,
        capacity_bytes: spec.capacity_bytes,
        block_bytes: spec.block_bytes,
        trim_bytes: Some(512),
        link: None,
        scheduler: None,
        facts: None,
        members: Vec::new(),
    };
    let mut run = Run::begin("test", vec![subject]);
    let scope = |point_ms, region| Scope {
        point: Duration::from_millis(point_ms),
        interval: Duration::from_millis(20),
        region,
        ..Scope::default()
    };
    let mut lab = Lab::new(&mut rig, folder, &mut watch).unwrap();
    for ask in asked {
        run.add(match ask {
            Ask::Fill => {
                let fill = Fill { scope: scope(100, None), rests: Vec::new(), ..Fill::default() };
                ExperimentOutcome::Fill(Box::new(fill.run(&mut lab).unwrap()))
            }
            Ask::Link => {
                let link = Link { scope: scope(100, Some(1 << 30)), ..Link::default() };
                ExperimentOutcome::Link(Box::new(link.run(&mut lab).unwrap()))
            }
            Ask::Mix => {
                let (blocks, read_percents) = (vec![4096], vec![100]);
                let mix = Mix { scope: scope(100, None), blocks, read_percents, ..Mix::default() };
                ExperimentOutcome::Mix(Box::new(mix.run(&mut lab).unwrap()))
            }
            Ask::Rounds => {
                rounds(&mut lab);
                continue;
            }
        });
    }
    run.keep(folder).unwrap();
}

/// What a test of steady random writes does, as its steps.
fn rounds(lab: &mut Lab<'_>) {
    let whole = lab.capacity_bytes();
    let stream = |block, pattern| Stream {
        write: 1,
        block: Blocks::of(block),
        pattern,
        depth: 16,
        ..Stream::default()
    };
    let mut step = |name: &str, seed, stop, stream| {
        let interval = Time(Duration::from_millis(50));
        let (name, streams) = (name.to_owned(), vec![stream]);
        let workload = Workload {
            seed,
            interval,
            warm_up: Time::default(),
            stop,
            streams,
            name: name.clone(),
        };
        lab.step("snia", &name, &workload).unwrap();
    };
    let once = Stop { bytes: Some(Size(whole)), ..Stop::default() };
    for pass in 1..=2 {
        let stream = stream(128 << 10, Pattern::Sequential);
        step(&format!("precondition-{pass}-0"), 1, once, stream);
    }
    let time = Some(Time(Duration::from_millis(800)));
    for number in 1..=6 {
        let name = format!("round-{number:02}-4096-r0");
        let stop = Stop { time, ..Stop::default() };
        step(&name, number, stop, stream(4096, Pattern::Random));
    }
}

fn longtake(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_longtake")).args(arguments).output().unwrap()
}

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

/// Fits and gives what was said and the twin.
fn fit(measurement: &Path, evaluations: u32) -> (Value, Profile, Spec) {
    let folder = tempfile::tempdir().unwrap();
    let twin = folder.path().join("twin.toml");
    let evaluations = evaluations.to_string();
    let output = longtake(&[
        "fit",
        text(measurement),
        "-o",
        text(&twin),
        "--json",
        "--evaluations",
        &evaluations,
    ]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let said = serde_json::from_slice(&output.stdout).unwrap();
    let profile = Profile::from_toml(&std::fs::read_to_string(&twin).unwrap()).unwrap();
    let spec = Spec::from_profile(&profile).unwrap();
    spec.check().unwrap();
    (said, profile, spec)
}

fn near(what: &str, found: f64, expected: f64) {
    assert!((found / expected - 1.0).abs() < 0.05, "{what}: {found} for {expected}");
}

fn parameter<'a>(said: &'a Value, name: &str) -> &'a Value {
    let all = said["parameters"].as_array().unwrap();
    all.iter().find(|one| one["name"] == name).unwrap_or_else(|| panic!("no {name} in {said:#}"))
}

fn cache_bytes(spec: &Spec) -> f64 {
    spec.cache.map_or(0.0, |cache| (cache.static_bytes + cache.dynamic_bytes) as f64)
}

#[test]
fn cache_rates_and_latency_are_found_again() {
    let truth = hidden(true);
    let folder = tempfile::tempdir().unwrap();
    measure(&truth, &[Ask::Fill, Ask::Link, Ask::Mix], folder.path());
    let (said, profile, twin) = fit(folder.path(), 150);
    near("cache", cache_bytes(&twin), cache_bytes(&truth));
    near("native", twin.native_write_bytes_per_s(), truth.native_write_bytes_per_s());
    let cached = |spec: &Spec| spec.cached_write_bytes_per_s().unwrap();
    near("cached", cached(&twin), cached(&truth));
    near("reads", twin.sequential_read_bytes_per_s(), truth.sequential_read_bytes_per_s());
    // What a read takes alone is not asked for: reads were measured many at a time.
    near("shrinking", twin.cache.unwrap().shrink_from, truth.cache.unwrap().shrink_from);
    assert!(said["residual"].as_f64().unwrap() < 0.05, "{said:#}");
    // What is sure says so, and so does what is not: nothing was written at random.
    let flash = profile.simulated.get("flash", "program_us").unwrap();
    assert_eq!(flash.kind, SourceKind::Measured);
    assert!(flash.origin.starts_with("fitted to "), "{}", flash.origin);
    let spare = profile.simulated.get("mapping", "over_provisioning").unwrap();
    assert_eq!(spare.kind, SourceKind::Assumed);
    assert!(spare.origin.contains("measure snia"), "{}", spare.origin);
    // The link is narrower than the channels, so little tells what they could do: what is said holds the truth.
    let channel = parameter(&said, "flash.channel_mb_s");
    let [from, to] = [0, 1].map(|end| channel["range"][end].as_f64());
    let hidden = truth.flash.channel_mb_s;
    let holds = from.is_none_or(|from| from <= hidden) && to.is_none_or(|to| hidden <= to);
    assert!(channel["determined"] == false || holds, "{channel}");
}

#[test]
fn over_provisioning_is_found_again_and_a_drive_without_a_cache_gets_none() {
    let truth = hidden(false);
    let folder = tempfile::tempdir().unwrap();
    measure(&truth, &[Ask::Fill, Ask::Rounds], folder.path());
    let (said, profile, twin) = fit(folder.path(), 85);
    near("native", twin.native_write_bytes_per_s(), truth.native_write_bytes_per_s());
    near("over-provisioning", twin.mapping.over_provisioning, truth.mapping.over_provisioning);
    assert_eq!(twin.cache, None);
    assert!(!profile.simulated.has("cache"));
    let spare = parameter(&said, "mapping.over_provisioning");
    assert_eq!(spare["determined"], true, "{spare}");
    let [below, above] = [0, 1].map(|end| spare["worse_from"][end].as_f64().unwrap());
    let hidden = truth.mapping.over_provisioning;
    assert!(below < hidden && hidden < above, "{hidden}: {spare}");
    let left_out = said["not_fitted"].as_array().unwrap();
    assert!(left_out.iter().any(|part| part["name"] == "flash.read_us"), "{left_out:?}");
}

/// What the profile of a measurement tells, off by a few percent.
fn noisy_profile() -> String {
    let figure = |name: &str, value: f64, unit: &str| {
        format!(
            "\"{name}\" = {{ value = {value}, unit = \"{unit}\", source = {{ kind = \"measured\", origin = \"a lab\" }} }}\n"
        )
    };
    let rate = "bytes_per_second";
    // 8 dies program 96 KiB in 2,300 us and 32 KiB in 210 us.
    let native = 8.0 * 98_304.0 / 2300e-6;
    let fast = 8.0 * 32_768.0 / 210e-6;
    format!(
        "name = \"noisy\"\nmodel = \"Noisy\"\nkind = \"nvme\"\ncapacity_bytes = 2147483648\n[figures]\n{}{}{}{}",
        figure("write.native", native * 1.03, rate),
        figure("write.fast", fast * 0.98, rate),
        figure("write.cache_bytes", 320e6 * 1.03, "bytes"),
        figure("read.sequential", 2.8e9 * 0.98, rate),
    )
}

#[test]
fn a_profile_of_a_few_figures_with_noise_gives_a_twin_of_them() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("noisy.toml");
    std::fs::write(&path, noisy_profile()).unwrap();
    let (said, profile, twin) = fit(&path, 80);
    near("cache", cache_bytes(&twin), 320e6);
    // The profile has no third level, so the twin folds its cache during all native writes; the level includes both.
    let native =
        said["figures"].as_array().unwrap().iter().find(|one| one["name"] == "write.native");
    near("native", native.unwrap()["twin"].as_f64().unwrap(), 8.0 * 98_304.0 / 2300e-6);
    assert_eq!(said["rejected"].as_array().map(Vec::len), Some(0), "{said:#}");
    near("cached", twin.cached_write_bytes_per_s().unwrap(), 8.0 * 32_768.0 / 210e-6);
    near("reads", twin.sequential_read_bytes_per_s(), 2.8e9);
    // What was known of the drive stays known.
    assert!(profile.known("write.native").is_some());
    assert_eq!(parameter(&said, "controller.read_iops")["determined"], false);
}

#[test]
fn what_a_twin_has_from_another_drive_keeps_the_claims_that_it_was_fitted_to() {
    let folder = tempfile::tempdir().unwrap();
    let [input, output, from] =
        ["noisy.toml", "twin.toml", "other.toml"].map(|name| folder.path().join(name));
    std::fs::write(&input, noisy_profile()).unwrap();
    // With blocks small enough for so small a drive.
    let mut other = profile::library::get("samsung-970-evo-plus-1tb").unwrap();
    other.simulated.set("flash", "pages_per_block", Parameter::assumed(6));
    other.simulated.set("cache", "static_bytes", Parameter::assumed(30_000_000));
    let mut erase = other.simulated.get("flash", "erase_us").unwrap().clone();
    (erase.kind, erase.fitted) = (SourceKind::Assumed, vec!["REC-7".to_owned()]);
    other.simulated.set("flash", "erase_us", erase.clone());
    std::fs::write(&from, other.to_toml().unwrap()).unwrap();
    let (input, output, from) = (text(&input), text(&output), text(&from));
    let ran = longtake(&["fit", input, "-o", output, "--from", from, "--evaluations", "20"]);
    // So few tries needn't come near enough.
    assert!(matches!(ran.status.code(), Some(0 | 3)), "{}", String::from_utf8_lossy(&ran.stderr));
    let twin = Profile::from_toml(&std::fs::read_to_string(output).unwrap()).unwrap();
    let kept = twin.simulated.get("flash", "erase_us").unwrap();
    assert_eq!((&kept.value, &kept.fitted), (&erase.value, &erase.fitted), "{kept:?}");
    // It is as fast as was measured, and not as the other one is.
    let [measured, other] =
        [&twin, &other].map(|drive| drive.simulated.get("cache", "program_us").unwrap());
    assert_eq!(other.fitted, ["REC-7"]);
    assert_ne!(measured.value, other.value);
    assert!(measured.fitted.is_empty(), "{measured:?}");
}

#[test]
fn the_same_measurement_gives_the_same_twin_and_files_are_not_overwritten_unasked() {
    let folder = tempfile::tempdir().unwrap();
    let (input, output) = (folder.path().join("noisy.toml"), folder.path().join("twin.toml"));
    std::fs::write(&input, noisy_profile()).unwrap();
    let fit = |more: &[&str]| {
        longtake(
            &[&["fit", text(&input), "-o", text(&output), "--evaluations", "20"], more].concat(),
        )
    };
    assert!(fit(&[]).status.success());
    let first = std::fs::read_to_string(&output).unwrap();
    let refused = fit(&[]);
    assert_eq!(refused.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&refused.stderr).contains("-y"));
    let again = fit(&["-y"]);
    let said = String::from_utf8_lossy(&again.stdout).into_owned();
    assert!(again.status.success() && said.contains("write.native"), "{said}");
    assert!(said.contains("use it as sim:"), "{said}");
    assert_eq!(std::fs::read_to_string(&output).unwrap(), first);
    // Nor is what it was fitted to, under any name, even if files may be replaced.
    for word in [text(&input), "noisy"] {
        let own = ["--profiles", text(folder.path()), "fit", word, "-o", text(&input), "-y"];
        let refused = longtake(&own);
        assert_eq!(refused.status.code(), Some(1), "{word}");
        let said = String::from_utf8_lossy(&refused.stderr).into_owned();
        assert!(said.contains("is an input of this command"), "{said}");
    }
    // It can be used at once.
    let target = format!("sim:{}", output.display());
    let shown = longtake(&["sim", "show", text(&output)]);
    assert!(shown.status.success(), "{}", String::from_utf8_lossy(&shown.stderr));
    let dry = longtake(&["measure", "fill", &target, "--dry-run"]);
    assert!(dry.status.success(), "{}", String::from_utf8_lossy(&dry.stderr));
}

#[test]
fn what_can_not_be_fitted_is_refused_with_what_to_measure() {
    let folder = tempfile::tempdir().unwrap();
    let twin = folder.path().join("twin.toml");
    let refusal = |measurement: &Path| {
        let output = longtake(&["fit", text(measurement), "-o", text(&twin)]);
        assert_eq!(output.status.code(), Some(1));
        assert!(!twin.exists());
        String::from_utf8_lossy(&output.stderr).into_owned()
    };
    let error = refusal(&folder.path().join("nowhere"));
    assert!(error.contains("nowhere") && error.contains("longtake measure"), "{error}");
    let empty = folder.path().join("empty");
    std::fs::create_dir(&empty).unwrap();
    let error = refusal(&empty);
    assert!(error.contains("holds no results"), "{error}");
    let bare = folder.path().join("bare.toml");
    std::fs::write(&bare, "name = \"a\"\nmodel = \"A\"\nkind = \"nvme\"\ncapacity_bytes = 1000\n")
        .unwrap();
    let error = refusal(&bare);
    assert!(error.contains("longtake measure fill TARGET -o DIR"), "{error}");
}
