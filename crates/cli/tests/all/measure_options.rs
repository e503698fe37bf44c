//! Options of single experiments: what they change, and what they refuse with a remedy.

use std::fs;

use crate::harness::{Ran, longtake, ran, run, scratch, tool};
use serde_json::Value;

const NVME: &str = "sim:patriot-hellfire-240gb:full";

/// `longtake measure` with these words.
fn measure(arguments: &str) -> Ran {
    ran(["measure"].into_iter().chain(arguments.split_whitespace()))
}

/// The figures that an experiment prints as JSON lines, as (name, value).
fn figures(printed: &str) -> Vec<(String, Value)> {
    let lines = printed.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let figures = lines.filter_map(|mut line| match line["figures"].take() {
        Value::Array(figures) => Some(figures),
        _ => None,
    });
    let pair =
        |figure: Value| (figure["name"].as_str().unwrap().to_owned(), figure["value"].clone());
    figures.flatten().map(pair).collect()
}

#[track_caller]
fn value(figures: &[(String, Value)], name: &str) -> f64 {
    let found = figures.iter().find(|(known, _)| known == name);
    found.and_then(|(_, value)| value.as_f64()).unwrap_or_else(|| panic!("no {name}: {figures:?}"))
}

/// An option that can't be as it is, with what the refusal must say.
#[track_caller]
fn refused(arguments: &str, words: &[&str]) {
    let ran = measure(arguments);
    assert!(ran.code == 1 || ran.code == 2, "{arguments}: {ran:?}");
    ran.says(words);
}

#[test]
fn a_sweep_measures_every_link_and_draws_it() {
    let folder = scratch();
    let output = folder.path().join("swept");
    let options = "--sweep --generations 1,3 --lanes 1,4 --depth 1,16 --json";
    let printed = measure(&format!("link {NVME} {options} -o {}", output.display())).code(0).text();
    let found = figures(&printed);
    let read = |link: &str| value(&found, &format!("link.sweep.{link}.read.sequential"));
    let ratio = read("1.0x4") / read("1.0x1");
    assert!((ratio / 4.0 - 1.0).abs() < 0.02, "{ratio}");
    assert!(read("3.0x4") > 10.0 * read("1.0x1"));
    for test in ["read.4KiB.d16", "write.4KiB.d1", "write.sequential", "mixed", "score"] {
        assert!(value(&found, &format!("link.sweep.3.0x1.{test}")) > 0.0);
    }
    // The drive's profile says what it does on its own link.
    let profile = fs::read_to_string(output.join("profile.toml")).unwrap();
    assert!(profile.contains("read.sequential") && !profile.contains("link.sweep"), "{profile}");
    let svg = folder.path().join("svg");
    let report = folder.path().join("swept.html");
    ran([
        "report".as_ref(),
        output.as_os_str(),
        "-o".as_ref(),
        report.as_os_str(),
        "--svg".as_ref(),
    ]
    .into_iter()
    .chain([svg.as_os_str()]))
    .code(0);
    for picture in [
        "link-sequential-reads-by-generation-and-lanes",
        "link-sequential-writes-by-generation-and-lanes",
        "link-mixed-reads-and-writes-by-generation-and-lanes",
        "link-random-reads-of-4-kib-by-depth",
        "link-random-writes-of-4-kib-by-depth",
        "link-all-tests-together-by-generation-and-lanes",
    ] {
        let drawn = fs::read_to_string(svg.join(format!("{picture}.svg"))).unwrap();
        assert!(drawn.contains("PCIe 1.0") && drawn.contains("PCIe 3.0"), "{picture}");
    }
}

#[test]
fn a_sweep_prints_a_table_with_a_row_for_each_link() {
    let folder = scratch();
    let output = folder.path().join("swept");
    let options = "--sweep --generations 3 --lanes 2,4 --depth 1,256 --quiet";
    let printed = measure(&format!("link {NVME} {options} -o {}", output.display())).code(0).text();
    let wide = printed.lines().find(|line| line.chars().count() > 100);
    assert_eq!(wide.filter(|line| !line.contains(folder.path().to_str().unwrap())), None);
    // As many tables as it takes to fit a terminal.
    let tables: Vec<&str> = printed.split("MB/s on").skip(1).collect();
    let heads: Vec<&str> = tables.iter().map(|table| table.lines().next().unwrap()).collect();
    for head in ["carries", "read", "4K read x1", "write", "4K write x256", "mixed", "score"] {
        assert!(heads.iter().any(|heads| heads.contains(head)), "{heads:?}");
    }
    assert_eq!(tables.len(), 2, "{printed}");
    for table in &tables {
        let rows: Vec<&str> = table.lines().skip(1).take(2).map(str::trim_start).collect();
        assert!(rows[0].starts_with("PCIe 3.0 x2"), "{rows:?}");
        assert!(rows[1].starts_with("PCIe 3.0 x4"), "{rows:?}");
    }
    assert!(tables[1].lines().nth(2).unwrap().ends_with("100 %"), "{printed}");
}

#[test]
fn a_sweep_that_can_not_be_is_refused_with_what_could() {
    let folder = scratch();
    let file = folder.path().join("file.bin");
    let file = file.display();
    refused(
        &format!("link {file} --size 1MiB --sweep"),
        &["only with --retrain SERIAL", "longtake fit"],
    );
    let retrain = format!("link {file} --size 1MiB --sweep --retrain S1 -o {file}.d");
    refused(&retrain, &["file.bin has no PCIe link", "NVMe drive"]);
    refused(&format!("link {NVME} --sweep --retrain S1"), &["leave out --retrain"]);
    refused("link sim:intel-dc-s3700-400gb --sweep", &["is a SATA drive", "choose an NVMe drive"]);
    refused(&format!("link {NVME} --lanes 4"), &["--sweep"]);
    refused(&format!("link {NVME} --sweep --lanes 3"), &["1, 2, 4, 8 or 16 lanes"]);
    refused(&format!("link {NVME} --sweep --generations 7"), &["7"]);
    assert!(fs::read_dir(folder.path()).unwrap().next().is_none());
}

#[test]
fn a_rate_is_to_be_held_in_the_chunks_that_record_writes() {
    let folder = scratch();
    let output = folder.path().join("held");
    let options = format!("--size 64MiB --rate 100MB/s -o {}", output.display());
    measure(&format!("fill sim:ideal {options}")).code(0);
    let step: Value =
        serde_json::from_slice(&fs::read(output.join("fill/held-100000000.json")).unwrap())
            .unwrap();
    let stream = &step["measurement"]["workload"]["stream"][0];
    let plan = "plan --rate 1GB/s --mission 1s --drive samsung-970-pro-512gb --json";
    let plan: Value = serde_json::from_str(&ran(plan.split_whitespace()).code(0).text()).unwrap();
    let take = &plan["designs"][0]["array"]["take"];
    let chunk = take["chunk_bytes"].as_u64().unwrap();
    assert_eq!(stream["block"], format!("{}KiB", chunk >> 10), "{stream}");
    assert_eq!((&stream["depth"], &stream["flush"]), (&take["buffers"], &Value::from("1s")));
}

#[test]
fn neighbours_take_depths_rates_overwriting_and_a_percentile() {
    let folder = scratch();
    let output = folder.path().join("neighbours");
    let options = "--size 256MiB --depth 4,1 --rate 100MB/s --overwrite random:2 --point 200ms \
                   --percentile 99 --longest 3s --json";
    let target = "sim:patriot-hellfire-240gb";
    let printed =
        measure(&format!("neighbours {target} {options} -o {}", output.display())).code(0).text();
    let found = figures(&printed);
    for depth in [1, 4] {
        let write = value(&found, &format!("neighbours.same.d{depth}.write"));
        assert!((write / 100e6 - 1.0).abs() < 0.05, "{write}");
        assert!(value(&found, &format!("neighbours.alone.d{depth}.p99")) > 0.0);
        let higher = format!("neighbours.alone.d{depth}.p99_9999");
        assert!(found.contains(&(higher, Value::Null)), "ten thousand times as many reads");
    }
    assert!(!found.iter().any(|(name, _)| name.contains(".d2.")), "{found:?}");
    assert!(printed.contains("overwritten twice, at random places in blocks of 4 KiB: 537 MB"));
    refused("neighbours sim:ideal --longest 3s", &["add --percentile"]);
    refused("neighbours sim:ideal --percentile 99.9 --time 1m", &["leave out --time"]);
    refused("neighbours sim:ideal --percentile 97", &["give one of 50, 90", "99.9999"]);
    refused("neighbours sim:ideal --overwrite random --read-only", &["leave out one of them"]);
    refused("neighbours sim:ideal --overwrite backwards", &["give sequential or random"]);
    refused("neighbours sim:ideal --depth 0", &["from 1 to"]);
    let odd = folder.path().join("odd");
    refused(
        &format!("neighbours sim:ideal --block 1000 --size 64MiB -o {}", odd.display()),
        &["addressed in blocks of", "give another block size"],
    );
}

#[test]
fn viewers_take_the_bit_rate_of_their_films() {
    let folder = scratch();
    let of = |rate: &str| {
        let output = folder.path().join(rate.replace('/', ""));
        let options = "--size 1GiB --ingest 10% --point 1s --quiet --json";
        let arguments = format!("viewers {NVME} --rate {rate} {options} -o {}", output.display());
        value(&figures(&measure(&arguments).code(0).text()), "viewers.alone")
    };
    // What a drive carries in all is divided among viewers: fewer of them watch what takes more.
    let (low, high) = (of("1.5MB/s"), of("4MB/s"));
    assert!(high > 0.0 && (low / high / (4.0 / 1.5) - 1.0).abs() < 0.2, "{low} {high}");
    refused("viewers sim:ideal --rate 0MB/s", &["give a rate above 0"]);
    refused("viewers sim:ideal --ingest 120%", &["at most 100 %"]);
    refused("viewers sim:ideal --ingest 10% --read-only", &["leave out one of them"]);
}

#[test]
fn blocks_and_depths_are_measured_as_asked() {
    let folder = scratch();
    let output = folder.path().join("stream");
    let options = "--size 256MiB --block 64KiB,1MiB --depth 2,8 --point 100ms --json";
    let printed =
        measure(&format!("stream {NVME} {options} -o {}", output.display())).code(0).text();
    let points: Vec<String> = fs::read_dir(output.join("stream"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter(|name| name.ends_with(".json") && name != "result.json")
        .filter(|name| !name.starts_with("prepare-"))
        .collect();
    assert_eq!(points.len(), 8, "reads and writes of two blocks at two depths: {points:?}");
    assert!(!figures(&printed).is_empty());
    refused("stream sim:ideal --block 0", &["1 byte at least"]);
    refused("steady sim:ideal --rate 1MB/s", &["unexpected argument '--rate'"]);
}

#[test]
fn a_slow_drive_fails_an_application_that_asks_for_absolute_figures() {
    let folder = scratch();
    let of = |name: &str, target: &str, options: &str| {
        let output = folder.path().join(name);
        let options =
            format!("--app olap,content-delivery --size 1GiB --point 1s {options} --json");
        measure(&format!("apps {target} {options} -o {}", output.display())).code(0).text()
    };
    let content =
        |printed: &str, app: &str| value(&figures(printed), &format!("apps.{app}.content")) == 1.0;
    // SATA carries a third of what eight scans need, and half of what the viewers do.
    let sata = of("sata", "sim:intel-dc-s3700-400gb:full", "");
    assert!(!content(&sata, "olap") && !content(&sata, "content-delivery"), "{sata}");
    assert!(sata.contains("(at least 1.80 GB/s (14.4 Gb/s) required)"), "{sata}");
    let nvme = of("nvme", "sim:intel-d7-p5510-3.84tb:full", "");
    assert!(content(&nvme, "olap") && content(&nvme, "content-delivery"), "{nvme}");
    assert!(!nvme.contains("apps.colour-grading"), "{nvme}");
    // Asked for shares of what it does alone, the slow drive serves what it can.
    let shares = of("shares", "sim:intel-dc-s3700-400gb:full", "--shares");
    assert!(content(&shares, "olap"), "{shares}");
    let report = fs::read_to_string(folder.path().join("nvme/report.html")).unwrap();
    assert!(report.contains("What streams ask, and why") && report.contains("H.264 at 1080p"));
    let demands = folder.path().join("demands.toml");
    fs::write(&demands, "[olap.scans]\nrate = \"100MB/s\"\nsource = \"our queries\"\n").unwrap();
    let own =
        of("own", "sim:intel-dc-s3700-400gb:full", &format!("--demands {}", demands.display()));
    assert!(content(&own, "olap") && !content(&own, "content-delivery"), "{own}");
    fs::write(&demands, "[olap.scan]\nrate = \"100MB/s\"\nsource = \"our queries\"\n").unwrap();
    let wrong = format!("apps sim:ideal --demands {}", demands.display());
    refused(&wrong, &["no application has a stream [olap.scan]", "olap.scans"]);
    refused(&format!("{wrong} --shares"), &["cannot be used with"]);
    refused("apps sim:ideal --app films", &["give one of cache-tier", "content-delivery"]);
    refused("apps sim:ideal --load 0", &["above 0"]);
}

#[test]
fn sentences_wrap_at_the_width_of_the_terminal_that_they_are_printed_on() {
    let folder = scratch();
    let program = longtake().get_program().to_string_lossy().into_owned();
    let widest = |columns: u32, name: &str| {
        let output = folder.path().join(name);
        let measure = format!(
            "'{program}' measure steady sim:ideal --size 1GiB --point 100ms -o {}",
            output.display()
        );
        // `script` runs it on a terminal of its own.
        let command = format!(
            "stty rows 24 cols {columns}; {measure} 2>'{}'",
            folder.path().join("said").display()
        );
        let printed =
            run(tool("script", "bsdutils").args(["-qec", &command, "/dev/null"])).code(0).text();
        let sentences = printed.lines().filter(|line| line.contains(". ") || line.ends_with('.'));
        sentences.map(|line| line.trim_end().chars().count()).max().expect("it says something")
    };
    let (narrow, wide, widest) = (widest(60, "narrow"), widest(100, "wide"), widest(240, "widest"));
    assert!((40..=60).contains(&narrow), "{narrow}");
    assert!((61..=100).contains(&wide) && widest == wide, "{wide}, {widest}");
}
