//! `longtake sim rest`: what trimming ahead and letting members rest does to the rate that a wrapped ring sustains.

use std::ops::ControlFlow;
use std::process::ExitCode;

use anyhow::{Context, Result};
use base::Rate;
use plan::rest::{Effect, SETTINGS, effects};
use serde_json::{Value, json};
use target::Model;

use super::arguments::RestArguments;
use crate::profiles::known;
use crate::{printer, progress};

/// Shows a line for each drive.
///
/// # Errors
/// If a drive isn't there or can't be simulated.
pub fn rest(arguments: &RestArguments) -> Result<ExitCode> {
    let heads: Vec<String> = SETTINGS
        .iter()
        .map(|setting| match (setting.trim_ahead, setting.rest) {
            (0, 0) => "neither".to_owned(),
            (trim, 0) => format!("trim {trim}"),
            (0, rest) => format!("rest {rest}"),
            (trim, rest) => format!("trim {trim}, rest {rest}"),
        })
        .collect();
    let heads: Vec<&str> = ["drive"].into_iter().chain(heads.iter().map(String::as_str)).collect();
    let mut table = printer::table(&heads, &(1..heads.len()).collect::<Vec<_>>());
    let mut values: Vec<Value> = Vec::new();
    for name in &arguments.drives {
        let model = Model::named(name)?;
        let drive = model.spec(known())?;
        let bar = progress::runs_bar(name, !arguments.json);
        let found = effects(&drive, arguments.members, |done, of| {
            bar.set_length(of.into());
            bar.set_position(done.into());
            ControlFlow::Continue(())
        })
        .with_context(|| model.to_string())?;
        bar.finish_and_clear();
        let each = |effect: &Effect| Rate(effect.rate.0 / f64::from(arguments.members));
        values.push(json!({
            "drive": name, "members": arguments.members,
            "effects": found.iter().map(|effect| json!({
                "trim_ahead": effect.setting.trim_ahead, "rest": effect.setting.rest,
                "rate": effect.rate.0, "rate_per_member": each(effect).0,
                "amplification": effect.amplification,
            })).collect::<Vec<_>>(),
        }));
        let cells = found.iter().map(|effect| format!("{:.2}", each(effect).0 / 1e9));
        table.add_row([name.clone()].into_iter().chain(cells));
    }
    if arguments.json {
        printer::json(&Value::Array(values))?;
        return Ok(ExitCode::SUCCESS);
    }
    printer::text(&printer::trimmed(&table))?;
    printer::text(&format!(
        "\nThe highest rate that a ring of {} drives in overwrite takes for half a minute without a loss, in GB/s a drive. Trim: segments \
         kept trimmed ahead of the head; rest: members that take no writes at a time, for 3 s each.",
        arguments.members
    ))?;
    Ok(ExitCode::SUCCESS)
}
