//! What a fit says: figure by figure what was measured and what the twin does, and what could not be told.

use base::units::grouped;
use base::{ByteSize, Rate};
use lab::Unit;
use lab::fitting::{Reach, Target, difference};
use serde_json::{Value, json};

use super::{Fitted, Miss, value};
use crate::parts::Part;

/// Figures whose names begin with these are many, and told together.
const MANY: [(&str, &str); 3] = [
    ("fill.empty.to ", "fill, empty drive, part by part"),
    ("fill.overwrite.to ", "fill, overwriting, part by part"),
    ("snia.round", "random writes, round by round"),
];

impl Fitted<'_> {
    /// A row for each figure, or for each group of many: its name, what was measured, what the twin does, and the difference.
    pub fn figure_rows(&self) -> Vec<[String; 4]> {
        let alone =
            |target: &Target| !MANY.iter().any(|(prefix, _)| target.name.starts_with(prefix));
        let row = |(target, figure): (&Target, Option<f64>)| {
            let shown =
                figure.map_or_else(|| "not there".to_owned(), |value| quantity(value, target.unit));
            let off = difference(target, figure).map_or_else(|| "-".to_owned(), percent);
            [target.name.clone(), quantity(target.value, target.unit), shown, off]
        };
        let single = figures(self).filter(|(target, _)| alone(target)).map(row);
        let groups = MANY.into_iter().filter_map(|(prefix, words)| together(self, prefix, words));
        single.chain(groups).collect()
    }

    /// A row for each fitted parameter: its name, its value, and how sure it is.
    pub fn parameter_rows(&self) -> Vec<[String; 3]> {
        let row = |(at, part): (usize, &Part)| {
            let sure = self.doubt(at).unwrap_or_else(|| determined(&self.fit.reaches[at]));
            [part.name.to_owned(), value(part.value(&self.spec)), sure]
        };
        self.parts.iter().enumerate().map(row).collect()
    }

    /// How the search went and what was not fitted, a sentence each.
    pub fn sentences(&self) -> Vec<String> {
        let mut said = vec![format!(
            "Tried {} drives of 1/{} of the size; the nearest differs by {:.1} % (root mean square){}.",
            self.tried,
            self.scale,
            100.0 * self.off(),
            match (self.stopped, self.fit.settled) {
                (true, _) => ". It was stopped: more evaluations may come closer",
                (false, true) => "",
                (false, false) => {
                    ". The budget ended the search: more evaluations may come closer"
                }
            }
        )];
        said.extend(self.rejected());
        for part in &self.left_out {
            said.push(format!("Not fitted: {}. To know it, {}.", part.name, part.needs.remedy()));
        }
        said.extend(self.drive.measured.notes.iter().cloned());
        said
    }

    /// Why the twin must not stand for the drive; None if it may.
    pub fn rejected(&self) -> Option<String> {
        let missed = |miss: &Miss<'_>| {
            let Miss { target, twin } = miss;
            let measured = quantity(target.value, target.unit);
            let twin = twin.map_or_else(
                || "the twin has none".to_owned(),
                |value| format!("the twin has {}", quantity(value, target.unit)),
            );
            format!("{} is {measured}, {twin}", target.name)
        };
        let all: Vec<String> = self.misses().iter().map(missed).collect();
        (!all.is_empty()).then(|| {
            format!(
                "Rejected: this twin is not the drive that was measured. {}. Do not plan with it.",
                all.join("; ")
            )
        })
    }

    /// Everything that was found, as JSON.
    pub fn to_json(&self) -> Value {
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
            let reach = &self.fit.reaches[at];
            let partner = self.fit.pairs.iter().find(|pair| pair.first == at || pair.second == at);
            json!({
                "name": part.name,
                "value": part.value(&self.spec),
                "determined": reach.determined,
                "range": [reach.low, reach.high],
                "range_known": !reach.unknown,
                "worse_from": [reach.noticed.0, reach.noticed.1],
                "not_told_apart_from": partner.map(|pair| {
                    self.parts[if pair.first == at { pair.second } else { pair.first }].name
                }),
            })
        };
        let left_out = |part: &Part| json!({"name": part.name, "needs": part.needs.remedy()});
        json!({
            "residual": self.off(),
            "rejected": self.misses().iter().map(|miss| miss.target.name.as_str()).collect::<Vec<_>>(),
            "misfit": self.fit.misfit,
            "settled": self.fit.settled,
            "stopped": self.stopped,
            "evaluations": self.tried,
            "scale": self.scale,
            "figures": figures(self).map(figure).collect::<Vec<_>>(),
            "parameters": self.parts.iter().enumerate().map(parameter).collect::<Vec<_>>(),
            "not_fitted": self.left_out.iter().map(left_out).collect::<Vec<_>>(),
            "notes": self.drive.measured.notes,
        })
    }
}

/// That nothing but what lies between two values fits as well.
fn determined(reach: &Reach) -> String {
    let (low, high) = reach.noticed;
    match (low.map(short), high.map(short)) {
        (Some(low), Some(high)) => format!("determined: between {low} and {high}"),
        (Some(low), None) => format!("determined: above {low}"),
        (None, Some(high)) => format!("determined: below {high}"),
        (None, None) => "determined".to_owned(),
    }
}

/// A value to three digits: where a difference begins to be noticed isn't known better.
fn short(number: f64) -> String {
    let unit = 10f64.powf(number.abs().log10().floor() - 2.0);
    value(if unit > 0.0 { (number / unit).round() * unit } else { number })
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

fn percent(share: f64) -> String {
    format!("{:+.1} %", 100.0 * share)
}

fn quantity(value: f64, unit: Unit) -> String {
    match unit {
        Unit::Bytes => ByteSize(value.round() as u64).to_string(),
        Unit::BytesPerSecond => Rate(value).to_string(),
        Unit::CommandsPerSecond => format!("{} a second", grouped(value.round() as u64)),
        Unit::Nanoseconds => format!("{:.1} us", value / 1e3),
        Unit::Percent => format!("{value:.1} %"),
        Unit::Count => format!("{value}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_determined_is_told_with_the_values_that_are_noticeably_worse() {
        let said = |noticed| {
            determined(&Reach { low: 9.0, high: 11.0, noticed, determined: true, unknown: false })
        };
        assert_eq!(said((Some(8.5), Some(12.0))), "determined: between 8.500 and 12.000");
        assert_eq!(said((Some(8.5), None)), "determined: above 8.500");
        assert_eq!(said((None, Some(43_960_259_151.0))), "determined: below 44,000,000,000");
        assert_eq!(said((Some(0.0), Some(0.110_4))), "determined: between 0.000 and 0.110");
        assert_eq!(said((None, None)), "determined");
    }
}
