//! `longtake sim show`: a drive's parameters with their sources, and what they come to.

use std::process::ExitCode;

use anyhow::Result;
use base::ByteSize;
use profile::Profile;
use serde_json::{Value, json};
use ssd::Spec;
use ssd::spec::derived::{Derived, Quantity};
use ssd::spec::listed::ListedParameter;

use crate::outlet;

/// Shows a drive.
///
/// # Errors
/// If standard output is gone.
pub fn show(profile: &Profile, spec: &Spec, json: bool) -> Result<ExitCode> {
    let rows = spec.listed(&profile.simulated);
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
    for ListedParameter { section, name, value, known_by, origin, .. } in &rows {
        let known_by = (*known_by).to_owned();
        table.add_row([format!("{section}.{name}"), value.to_string(), known_by, origin.clone()]);
    }
    outlet::text(&format!("\n{}", outlet::trimmed(&table)))?;
    let mut table = outlet::table(&["it comes to", ""], &[1]);
    for Derived { words, quantity, .. } in derived {
        table.add_row([words.to_owned(), quantity.to_string()]);
    }
    outlet::text(&format!("\n{}", outlet::trimmed(&table)))?;
    Ok(ExitCode::SUCCESS)
}

fn value(profile: &Profile, rows: &[ListedParameter], derived: &[Derived]) -> Value {
    let parameters: Vec<Value> = rows
        .iter()
        .map(|row| {
            json!({
                "section": row.section,
                "name": row.name,
                "value": row.value,
                "known_by": row.known_by,
                "from": row.origin,
                "meaning": row.meaning,
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
