//! What is known of drives, as text and as JSON: a list of them, and each figure of one.

use base::{ByteSize, Rate};
use device::shell::quoted;
use profile::{FillCurve, Profile};
use serde_json::{Value, json};

use crate::text::{inline, table, trimmed};

/// A drive in a list.
#[derive(Debug)]
pub struct Listed {
    /// What it is called by.
    pub name: String,
    /// The user's own file; None for a drive of the library.
    pub path: Option<String>,
    /// What is known of it, or why it can't be read.
    pub profile: Result<Profile, String>,
}

impl Listed {
    /// As JSON.
    pub fn to_json(&self) -> Value {
        let Self { name, path, profile } = self;
        let profile = match profile {
            Err(problem) => return json!({"name": name, "path": path, "problem": problem}),
            Ok(profile) => profile,
        };
        let [measured, published, assumed] = profile.counts();
        json!({
            "name": name,
            "path": path,
            "model": profile.model,
            "kind": profile.kind,
            "capacity_bytes": profile.capacity_bytes,
            "sustained_write_bytes_per_s": profile.long_write().map(|rate| rate.0),
            "figures": {"measured": measured, "published": published, "assumed": assumed},
            "simulated": !profile.simulated.is_empty(),
        })
    }
}

/// A list of drives as a table. Those that can't be read are not in it.
pub fn list(drives: &[Listed]) -> String {
    let heads =
        ["name", "source", "size", "writes for long", "measured", "published", "assumed", "model"];
    let mut shown = table(&heads, &[2, 3, 4, 5, 6]);
    for Listed { name, path, profile } in drives {
        let Ok(profile) = profile else { continue };
        let [measured, published, assumed] = profile.counts().map(|count| count.to_string());
        let size = ByteSize(profile.capacity_bytes).to_string();
        let rate = profile.long_write().map_or_else(|| "-".to_owned(), gb);
        let source = if path.is_some() { "own" } else { "library" };
        let model = profile.model.clone();
        let cells =
            [name.clone(), source.to_owned(), size, rate, measured, published, assumed, model];
        shown.add_row(cells);
    }
    trimmed(&shown)
}

fn gb(rate: Rate) -> String {
    format!("{:.2} GB/s", rate.0 / 1e9)
}

/// Every figure of a drive, where it comes from and how far to trust it.
pub fn figures(profile: &Profile) -> String {
    let mut lines = vec![format!(
        "{}: {}, {}, {}",
        inline(&profile.name),
        inline(&profile.model),
        inline(&profile.kind),
        ByteSize(profile.capacity_bytes)
    )];
    lines.extend(profile.notes.iter().map(|note| format!("  {}", inline(note))));
    let mut shown = table(&["figure", "value", "range", "trust", "from"], &[1]);
    for (name, known) in &profile.figures {
        shown.add_row([
            name.clone(),
            known.unit.show(known.value),
            known.show_range(),
            known.trust().to_string(),
            known.show_source(),
        ]);
    }
    lines.push(format!("\n{}", trimmed(&shown)));
    lines.extend(profile.fill.as_ref().map(|fill| fill_curve(fill, profile.capacity_bytes)));
    lines.push(
        "\nTrust: measured closely (within a tenth), measured (it strays further, or by an unknown amount), published by a \
         measurer, datasheet (the maker's word), assumed."
            .to_owned(),
    );
    lines.push(if profile.simulated.is_empty() {
        "It can't be simulated yet: `longtake fit` finds the simulated drive that comes closest."
            .to_owned()
    } else {
        format!("What it is simulated by: longtake sim show {}", quoted(&profile.name))
    });
    lines.join("\n")
}

/// How far a fill curve goes, in a sentence.
fn fill_curve(fill: &FillCurve, capacity_bytes: u64) -> String {
    let whole = fill.is_whole(capacity_bytes);
    let reach = if whole { "the whole drive" } else { "part of the drive" };
    let (steps, bytes, mean) = (fill.steps.len(), ByteSize(fill.bytes()), Rate(fill.mean_rate()));
    format!("\nFill curve: {reach}, {bytes} in {steps} steps, {mean} on average.")
}

/// The same as JSON.
pub fn figures_json(profile: &Profile) -> Value {
    let mut value = json!(profile);
    for (name, known) in &profile.figures {
        value["figures"][name]["trust"] = json!(known.trust());
    }
    value
}
