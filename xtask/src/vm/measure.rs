//! The scenario `measure`: workloads and experiments on the real NVMe driver, through the block layer and past it.

use anyhow::{Context, Result, bail};
use serde_json::Value;

use super::scenario::{Guest, Scenario, Stage};

/// See the module.
#[derive(Debug)]
pub struct Measure;

/// Name, and arguments of `longtake measure`. Each prints JSON.
const RUNS: [(&str, &str); 6] = [
    (
        "verify-block",
        "run $(nodes block,LT-ALONE-0004,1) --erase LT-ALONE-0004 --write 1 --block 64KiB --depth 8 --size 64MiB --bytes 64MiB --verify",
    ),
    (
        "verify-passthrough",
        "run $(nodes generic,LT-ALONE-0004,1) --erase LT-ALONE-0004 --write 1 --pattern random --block 64KiB --depth 8 --size 64MiB --bytes 64MiB --verify",
    ),
    (
        "random-block",
        "run $(nodes block,LT-ALONE-0004,1) --read 1 --pattern random --block 4KiB --depth 8 --size 64MiB --for 3s",
    ),
    (
        "random-passthrough",
        "run $(nodes generic,LT-ALONE-0004,1) --read 1 --pattern random --block 4KiB --depth 8 --size 64MiB --for 3s",
    ),
    ("link", "link $(nodes block,LT-TWIN-0001,1) --erase LT-TWIN-0001 --size 64MiB --point 1s"),
    (
        "neighbours",
        "neighbours $(nodes block,LT-TWIN-0001,1) $(nodes block,LT-TWIN-0001,2) --erase LT-TWIN-0001 --size 64MiB --point 1s",
    ),
];

impl Scenario for Measure {
    fn name(&self) -> &'static str {
        "measure"
    }

    fn about(&self) -> &'static str {
        "workloads by block layer and passthrough; links and neighbours as the drives tell them"
    }

    fn play(&self, stage: &Stage<'_>) -> Result<Vec<String>> {
        let mut script = "cd /tmp\n".to_owned();
        for (name, arguments) in RUNS {
            script +=
                &format!("run {name} longtake measure {arguments} --json --output /tmp/{name}.d\n");
        }
        script += "cp /tmp/neighbours.d/run.json /tmp/neighbours-run\ngive /tmp/neighbours-run\n";
        let files = stage.run_alone(&Guest::new(script))?;
        let mut told = Vec::new();
        for (name, _) in RUNS {
            files.expect_code(name, 0)?;
            let json: Vec<Value> = serde_json::Deserializer::from_str(files.text(name)?)
                .into_iter()
                .collect::<Result<_, _>>()
                .with_context(|| format!("{name} printed no JSON"))?;
            let first = json.first().with_context(|| format!("{name} printed nothing"))?;
            told.push(match name {
                "link" | "neighbours" => judge_experiment(name, first)?,
                _ => judge_run(name, &first["step"]["measurement"])?,
            });
        }
        let run = files.json("neighbours-run")?;
        let relations: Vec<&str> = run["outcomes"][0]["beside"]
            .as_array()
            .context("neighbours found nothing")?
            .iter()
            .filter_map(|beside| beside["relation"].as_str())
            .collect();
        if relations.len() != 2 || !relations[1].contains("namespace") {
            bail!("the second namespace was not known for one: {relations:?}");
        }
        told.push(format!("neighbours: {}", relations.join(", ")));
        Ok(told)
    }
}

fn judge_run(name: &str, measured: &Value) -> Result<String> {
    let result = &measured["results"][0];
    let number = |path: &str| {
        result
            .pointer(path)
            .and_then(Value::as_f64)
            .with_context(|| format!("{name}: no {path} in {measured}"))
    };
    if name.starts_with("verify") {
        let found = &measured["verification"];
        let (checked, wrong) = (found["checked_bytes"].as_u64(), found["wrong_sectors"].as_u64());
        // At random places some are written twice and some not at all.
        if checked < Some(16 << 20) || wrong != Some(0) {
            bail!("{name}: {found}");
        }
    }
    if result["errors"].as_object().is_none_or(|errors| !errors.is_empty()) {
        bail!("{name}: {}", result["errors"]);
    }
    Ok(format!(
        "{name}: {:.0} commands a second, mean {:.0} us, {:.2} GB/s",
        number("/commands_per_s")?,
        number("/service/mean_ns")? / 1e3,
        number("/bytes_per_s")? / 1e9
    ))
}

fn judge_experiment(name: &str, found: &Value) -> Result<String> {
    let answer: Vec<&str> =
        found["answer"].as_array().context("no answer")?.iter().filter_map(Value::as_str).collect();
    if name == "link" && !answer.iter().any(|sentence| sentence.contains("GT/s")) {
        bail!("the link was not known: {answer:?}");
    }
    Ok(format!("{name}: {}", answer.first().context("an empty answer")?))
}
