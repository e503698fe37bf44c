//! `longtake sim rest`: what trimming ahead and letting members rest does to the rate that a wrapped ring sustains.

use std::ops::ControlFlow;
use std::process::ExitCode;

use anyhow::{Context, Result};
use plan::rest::effects;
use report::rest::{self, Rested};
use target::Model;

use super::arguments::RestArguments;
use crate::profiles::known;
use crate::{printer, progress};

/// Shows a line for each drive.
///
/// # Errors
/// If a drive isn't there or can't be simulated.
pub fn rest(arguments: &RestArguments) -> Result<ExitCode> {
    let members = arguments.members;
    let mut found = Vec::new();
    for name in &arguments.drives {
        let model = Model::named(name)?;
        let drive = model.spec(known())?;
        let bar = progress::runs_bar(name, !arguments.json);
        let effects = effects(&drive, members, |done, of| {
            bar.set_length(of.into());
            bar.set_position(done.into());
            ControlFlow::Continue(())
        })
        .with_context(|| model.to_string())?;
        bar.finish_and_clear();
        found.push(Rested { drive: name.clone(), members, effects });
    }
    if arguments.json {
        printer::json(&found.iter().map(Rested::to_json).collect())?;
    } else {
        printer::text(&rest::text(&found, members))?;
    }
    Ok(ExitCode::SUCCESS)
}
