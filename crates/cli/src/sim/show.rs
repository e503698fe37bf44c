//! `longtake sim show`: a drive's parameters with their sources, and what they come to.

use std::process::ExitCode;

use anyhow::Result;
use base::ByteSize;
use profile::{Parameter, Profile};
use serde_json::{Value, json};
use ssd::Spec;
use ssd::spec::Media;
use ssd::spec::parameters::PARAMETERS;

use super::rate;
use crate::outlet;

/// Shows a drive.
///
/// # Errors
/// If standard output is gone.
pub fn show(profile: &Profile, spec: &Spec, json: bool) -> Result<ExitCode> {
    let rows = rows(profile, spec);
    let derived = derived(spec);
    if json {
        outlet::json(&value(profile, &rows, &derived))?;
        return Ok(ExitCode::SUCCESS);
    }
    outlet::text(&format!(
        "{}: {}, {}",
        outlet::inline(&profile.name),
        outlet::inline(&profile.model),
        ByteSize(profile.capacity_bytes)
    ))?;
    for note in &profile.notes {
        outlet::text(&format!("  {}", outlet::inline(note)))?;
    }
    let mut table = outlet::table(&["parameter", "value", "known by", "from"], &[1]);
    for Row { section, name, value, known_by, origin } in &rows {
        let cells = [format!("{section}.{name}"), value.to_string()];
        table.add_row(cells.into_iter().chain([(*known_by).to_owned(), origin.clone()]));
    }
    outlet::text(&format!("\n{}", outlet::trimmed(&table)))?;
    let mut table = outlet::table(&["it comes to", ""], &[1]);
    for Derived { words, text, .. } in derived {
        table.add_row([words.to_owned(), text]);
    }
    outlet::text(&format!("\n{}", outlet::trimmed(&table)))?;
    Ok(ExitCode::SUCCESS)
}

/// A parameter as it is shown.
struct Row {
    section: String,
    name: String,
    value: profile::Value,
    known_by: &'static str,
    origin: String,
}

/// Every parameter, those by default too.
fn rows(profile: &Profile, spec: &Spec) -> Vec<Row> {
    let mut rows = Vec::new();
    for (section, parameters) in spec.to_parameters().sections() {
        for (name, Parameter { value, .. }) in parameters {
            let given = profile.simulated.get(section, name);
            let (known_by, origin) = match given {
                None => ("default", String::new()),
                Some(Parameter { kind, origin, .. }) => (kind.word(), origin.clone()),
            };
            let (section, name) = (section.to_owned(), name.clone());
            rows.push(Row { section, name, value: value.clone(), known_by, origin });
        }
    }
    rows
}

/// What parameters come to.
struct Derived {
    /// Its name in JSON, with its unit.
    key: &'static str,
    words: &'static str,
    value: Value,
    text: String,
}

fn derived(spec: &Spec) -> Vec<Derived> {
    let mut all = Vec::new();
    let mut add = |key, words, value: Value, text| all.push(Derived { key, words, value, text });
    let mut bytes = |key, words, n: u64| add(key, words, n.into(), ByteSize(n).to_string());
    let flash = &spec.flash;
    if flash.media == Media::Nand {
        bytes("physical_bytes", "flash", spec.physical_bytes());
        let superblock = flash.block_bytes() * u64::from(flash.dies() / spec.sets.count);
        bytes("superblock_bytes", "superblock", superblock);
    }
    bytes("program_bytes", "one program of a die", flash.program_bytes());
    if flash.media == Media::Nand {
        let count = spec.superblocks_of_set();
        add("superblocks", "superblocks of a set", count.into(), outlet::number(count.into()));
    }
    add("dies", "dies", flash.dies().into(), flash.dies().to_string());
    let mut rates = |key, words, n: f64| add(key, words, n.into(), rate(n));
    rates("link_bytes_per_s", "link, one direction", spec.link.bytes_per_s());
    rates("channels_bytes_per_s", "channels together", flash.channels_bytes_per_s());
    rates("flash_read_bytes_per_s", "dies reading together", flash.read_bytes_per_s());
    rates("flash_write_bytes_per_s", "dies writing together", flash.program_bytes_per_s());
    rates("sequential_read_bytes_per_s", "sequential reads", spec.sequential_read_bytes_per_s());
    if let Some(cached) = spec.cached_write_bytes_per_s() {
        rates("cached_write_bytes_per_s", "sequential writes into the cache", cached);
    }
    rates("native_write_bytes_per_s", "sequential writes", spec.native_write_bytes_per_s());
    let lone = spec.lone_read_us(spec.mapping.unit_bytes);
    let words = "a read of one unit, alone";
    add("lone_read_us", words, lone.into(), format!("{lone:.1} us"));
    all
}

fn value(profile: &Profile, rows: &[Row], derived: &[Derived]) -> Value {
    let parameters: Vec<Value> = rows
        .iter()
        .map(|row| {
            let known = PARAMETERS.iter().find(|k| k.section == row.section && k.name == row.name);
            json!({
                "section": row.section,
                "name": row.name,
                "value": row.value,
                "known_by": row.known_by,
                "from": row.origin,
                "meaning": known.map(|known| known.meaning),
            })
        })
        .collect();
    let derived: serde_json::Map<String, Value> =
        derived.iter().map(|d| (d.key.to_owned(), d.value.clone())).collect();
    json!({
        "name": profile.name,
        "model": profile.model,
        "kind": profile.kind,
        "capacity_bytes": profile.capacity_bytes,
        "notes": profile.notes,
        "figures": profile.figures,
        "parameters": parameters,
        "derived": derived,
    })
}
