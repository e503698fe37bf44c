//! What a fit says: figure by figure what was measured and what the twin does, and what could not be told.

use std::path::Path;

use anyhow::Result;
use base::{ByteSize, Rate};
use lab::Unit;
use lab::fitting::{Target, difference};
use serde_json::{Value, json};
use twin::Fitted;
use twin::fit::value;
use twin::parts::Part;

use crate::outlet;

/// Figures whose names begin with these are many, and told together.
const MANY: [(&str, &str); 3] = [
    ("fill.empty.to ", "fill, empty drive, part by part"),
    ("fill.overwrite.to ", "fill, overwriting, part by part"),
    ("snia.round", "random writes, round by round"),
];

/// Shows what was found; the twin is in `output`.
///
/// # Errors
/// If standard output is gone.
pub fn show(found: &Fitted<'_>, output: &Path, as_json: bool) -> Result<()> {
    if as_json {
        return outlet::json(&json(found, output));
    }
    let mut table = outlet::table(&["figure", "measured", "twin", "residual"], &[1, 2, 3]);
    for (target, figure) in figures(found) {
        if !MANY.iter().any(|(prefix, _)| target.name.starts_with(prefix)) {
            let shown =
                figure.map_or_else(|| "not there".to_owned(), |value| quantity(value, target.unit));
            let off = difference(target, figure).map_or_else(|| "-".to_owned(), percent);
            table.add_row([target.name.clone(), quantity(target.value, target.unit), shown, off]);
        }
    }
    for (prefix, words) in MANY {
        if let Some(row) = together(found, prefix, words) {
            table.add_row(row);
        }
    }
    outlet::text(&outlet::trimmed(&table))?;
    let mut table = outlet::table(&["parameter", "value", "how sure"], &[1]);
    for (at, part) in found.parts.iter().enumerate() {
        let sure = found.doubt(at).unwrap_or_else(|| "determined".to_owned());
        table.add_row([part.name.to_owned(), value(part.value(&found.spec)), sure]);
    }
    outlet::text(&format!("\n{}\n", outlet::trimmed(&table)))?;
    for line in sentences(found) {
        outlet::text(&line)?;
    }
    outlet::text("")?;
    outlet::message(&format!("twin: {} (use it as sim:{})", output.display(), target_path(output)))
}

/// A path as a target takes it: one with a slash or ending in .toml.
fn target_path(output: &Path) -> String {
    let text = output.display().to_string();
    let is_file = text.contains('/') || text.ends_with(".toml");
    if is_file { text } else { format!("./{text}") }
}

fn figures<'a>(found: &'a Fitted<'_>) -> impl Iterator<Item = (&'a Target, Option<f64>)> {
    found.drive.measured.targets.iter().zip(found.fit.figures.iter().copied())
}

/// Many figures in one row: how far they are off in the mean, and the worst of them.
fn together(found: &Fitted<'_>, prefix: &str, words: &str) -> Option<[String; 4]> {
    let of = |(target, figure): (&Target, Option<f64>)| {
        Some((target.name.clone(), difference(target, figure)?))
    };
    let all: Vec<(String, f64)> = figures(found)
        .filter(|(target, _)| target.name.starts_with(prefix))
        .filter_map(of)
        .collect();
    let (worst, off) = all.iter().max_by(|(_, a), (_, b)| a.abs().total_cmp(&b.abs()))?;
    let mean = (all.iter().map(|(_, off)| off * off).sum::<f64>() / all.len() as f64).sqrt();
    let worst = format!("worst {} {}", worst.trim_start_matches("fill."), percent(*off));
    Some([
        words.to_owned(),
        format!("{} figures", all.len()),
        worst,
        format!("{:.1} %", 100.0 * mean),
    ])
}

fn sentences(found: &Fitted<'_>) -> Vec<String> {
    let mut said = vec![format!(
        "Tried {} drives of 1/{} of the size; the nearest differs by {:.1} % (root mean square){}.",
        found.tried,
        found.scale,
        100.0 * found.off(),
        if found.fit.settled {
            ""
        } else {
            ". The budget ended the search: more evaluations may come closer"
        }
    )];
    for part in &found.left_out {
        said.push(format!("Not fitted: {}. To know it, {}.", part.name, part.needs.remedy()));
    }
    said.extend(found.drive.measured.notes.iter().cloned());
    said
}

fn json(found: &Fitted<'_>, output: &Path) -> Value {
    let figure = |(target, figure): (&Target, Option<f64>)| {
        json!({
            "name": target.name,
            "unit": target.unit,
            "measured": target.value,
            "twin": figure,
            "residual": difference(target, figure),
        })
    };
    let parameter = |(at, part): (usize, &Part)| {
        let reach = &found.fit.reaches[at];
        let partner = found.fit.pairs.iter().find(|pair| pair.first == at || pair.second == at);
        json!({
            "name": part.name,
            "value": part.value(&found.spec),
            "determined": reach.determined,
            "range": [reach.low, reach.high],
            "range_known": !reach.unknown,
            "not_told_apart_from": partner.map(|pair| {
                found.parts[if pair.first == at { pair.second } else { pair.first }].name
            }),
        })
    };
    let left_out = |part: &Part| json!({"name": part.name, "needs": part.needs.remedy()});
    json!({
        "twin": output,
        "residual": found.off(),
        "misfit": found.fit.misfit,
        "settled": found.fit.settled,
        "evaluations": found.tried,
        "scale": found.scale,
        "figures": figures(found).map(figure).collect::<Vec<_>>(),
        "parameters": found.parts.iter().enumerate().map(parameter).collect::<Vec<_>>(),
        "not_fitted": found.left_out.iter().map(left_out).collect::<Vec<_>>(),
        "notes": found.drive.measured.notes,
    })
}

fn percent(share: f64) -> String {
    format!("{:+.1} %", 100.0 * share)
}

fn quantity(value: f64, unit: Unit) -> String {
    match unit {
        Unit::Bytes => ByteSize(value.round() as u64).to_string(),
        Unit::BytesPerSecond => Rate(value).to_string(),
        Unit::CommandsPerSecond => format!("{} a second", outlet::number(value.round() as u64)),
        Unit::Nanoseconds => format!("{:.1} us", value / 1e3),
        Unit::Percent => format!("{value:.1} %"),
        Unit::Count => format!("{value}"),
    }
}
