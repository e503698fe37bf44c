//! `longtake sim show`: a drive's parameters with their sources, and what they come to.

use std::process::ExitCode;

use anyhow::Result;
use base::ByteSize;
use profile::{Parameter, Profile};
use serde_json::{Value, json};
use ssd::Spec;
use ssd::spec::derived::{Derived, Quantity};
use ssd::spec::parameters::PARAMETERS;

use crate::outlet;

/// Shows a drive.
///
/// # Errors
/// If standard output is gone.
pub fn show(profile: &Profile, spec: &Spec, json: bool) -> Result<ExitCode> {
    let rows = rows(profile, spec);
    let derived = spec.derived();
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
    for Derived { words, quantity, .. } in derived {
        table.add_row([words.to_owned(), quantity.to_string()]);
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
        derived.iter().map(|derived| (derived.key.to_owned(), number(derived.quantity))).collect();
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

fn number(quantity: Quantity) -> Value {
    match quantity {
        Quantity::Bytes(count) | Quantity::Count(count) => json!(count),
        Quantity::BytesPerSecond(value) | Quantity::Microseconds(value) => json!(value),
    }
}
