//! `longtake wireshark`: arrays among the interfaces of Wireshark and tshark, which run the program as an extcap.

use std::env;
use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Command, ExitCode};

use anyhow::Result;
use clap::{Args, Subcommand};
use device::shell::quoted;
use longtake::extcap::{self, Kind, Listed};
use target::output::Outputs;

use crate::{opening, printer};

/// What can be done for Wireshark.
#[derive(Debug, Subcommand)]
pub enum WiresharkAction {
    /// Add arrays to the interfaces of Wireshark: "NAME (live)" shows a recording, "NAME (span)" what was recorded.
    ///
    /// Writes a small script that runs this program into Wireshark's extcap folder. Remove that file to undo it. Wireshark then lists
    /// two interfaces for each array, with fields for times and a filter. Whoever runs Wireshark needs to be able to read the arrays.
    Install(InstallArguments),
    /// Answer Wireshark, which runs it by the script that `install` writes.
    #[command(hide = true)]
    Extcap(ExtcapArguments),
}

/// `wireshark install`.
#[derive(Debug, Args)]
pub struct InstallArguments {
    /// Array to list: a directory of member files, drives with commas between them, or an array's name or UUID. Give it once for each
    /// array [default: the arrays that are on the drives of this machine whenever Wireshark asks].
    #[arg(long = "array", value_name = "ARRAY")]
    pub arrays: Vec<String>,
    /// Folder for the script, such as /usr/lib/x86_64-linux-gnu/wireshark/extcap for all users [default: this user's extcap folder].
    #[arg(long, value_name = "DIR")]
    pub directory: Option<PathBuf>,
    /// Replace the script if it exists.
    #[arg(long, short = 'y')]
    pub overwrite: bool,
    /// Print JSON.
    #[arg(long)]
    pub json: bool,
}

/// `wireshark extcap`: one of the four questions that Wireshark asks.
#[derive(Debug, Args)]
pub struct ExtcapArguments {
    /// Arrays to list.
    #[arg(long = "array")]
    arrays: Vec<String>,
    /// Which interfaces there are.
    #[arg(long)]
    extcap_interfaces: bool,
    /// Version of Wireshark that asks.
    #[arg(long, num_args = 0..=1, require_equals = true)]
    extcap_version: Option<Option<String>>,
    /// The interface that the other questions are about.
    #[arg(long)]
    extcap_interface: Option<String>,
    /// Its link types.
    #[arg(long)]
    extcap_dlts: bool,
    /// The fields of its dialog.
    #[arg(long)]
    extcap_config: bool,
    /// Write packets to the FIFO.
    #[arg(long, requires = "fifo")]
    capture: bool,
    /// Where Wireshark reads.
    #[arg(long)]
    fifo: Option<PathBuf>,
    /// Wireshark's own capture filter.
    #[arg(long)]
    extcap_capture_filter: Option<String>,
    /// First time.
    #[arg(long, allow_hyphen_values = true)]
    since: Option<String>,
    /// Last time.
    #[arg(long, allow_hyphen_values = true)]
    until: Option<String>,
    /// One take.
    #[arg(long)]
    take: Option<String>,
    /// The dialog's filter.
    #[arg(long)]
    filter: Option<String>,
}

/// Installs the script, or does what it is run for.
///
/// # Errors
/// If the script can't be written, or there is no such array.
pub fn wireshark(action: &WiresharkAction) -> Result<ExitCode> {
    match action {
        WiresharkAction::Install(arguments) => install(arguments),
        WiresharkAction::Extcap(arguments) => answer(arguments),
    }
}

fn install(arguments: &InstallArguments) -> Result<ExitCode> {
    let folder = arguments
        .directory
        .clone()
        .map_or_else(|| Ok(extcap::folder()?), Ok::<_, anyhow::Error>)?;
    let mut words = vec![env::current_exe()?.to_string_lossy().into_owned()];
    words.extend(["wireshark", "extcap"].map(str::to_owned));
    for place in &arguments.arrays {
        opening::options(true).open(place)?;
        // Wireshark runs the script in a directory of its own.
        let place =
            fs::canonicalize(place).map_or(place.clone(), |path| path.display().to_string());
        words.extend(["--array".to_owned(), place]);
    }
    let words: Vec<String> = words.iter().map(|word| quoted(word)).collect();
    let outputs = Outputs::new(arguments.overwrite);
    outputs.make_folder(&folder)?;
    let path = folder.join("longtake");
    outputs.write(&path, &format!("#!/bin/sh\nexec {} \"$@\"\n", words.join(" ")))?;
    fs::set_permissions(&path, Permissions::from_mode(0o755))?;
    match arguments.json {
        true => printer::json(&serde_json::json!({ "script": path }))?,
        false => printer::message(&format!("wrote {}: see `tshark -D`", path.display()))?,
    }
    Ok(ExitCode::SUCCESS)
}

/// Answers one question.
fn answer(arguments: &ExtcapArguments) -> Result<ExitCode> {
    let arrays = extcap::listed(&arguments.arrays)?;
    let lines = if arguments.extcap_interfaces {
        extcap::interfaces(&arrays)
    } else {
        let name = arguments.extcap_interface.as_deref().unwrap_or_default();
        let (array, kind) = extcap::interface(name, &arrays)?;
        if arguments.capture {
            return Err(capture(arguments, array, kind));
        } else if arguments.extcap_dlts {
            extcap::link_types()
        } else if arguments.extcap_config {
            extcap::fields(kind)
        } else {
            let filter = arguments.extcap_capture_filter.as_deref();
            filter.and_then(extcap::wrong_filter).into_iter().collect()
        }
    };
    printer::lines(lines)?;
    Ok(ExitCode::SUCCESS)
}

/// Becomes `longtake extract`, which writes what Wireshark shows. Returns only if it can't.
fn capture(arguments: &ExtcapArguments, array: &Listed, kind: Kind) -> anyhow::Error {
    let program = match env::current_exe() {
        Ok(program) => program,
        Err(error) => return error.into(),
    };
    let mut extract = Command::new(program);
    extract.args(["extract", "--quiet", "--format", "pcapng", "--output"]);
    extract.args(&arguments.fifo).args((kind == Kind::Live).then_some("--follow"));
    let ExtcapArguments { since, until, take, filter, extcap_capture_filter, .. } = arguments;
    let filters: Vec<String> = [filter, extcap_capture_filter]
        .into_iter()
        .flatten()
        .filter(|text| !text.is_empty())
        .map(|text| format!("({text})"))
        .collect();
    let filter = Some(filters.join(" and "));
    for (name, value) in [("since", since), ("until", until), ("take", take), ("filter", &filter)] {
        let value = value.as_ref().filter(|value| !value.is_empty());
        extract.args(value.map(|value| format!("--{name}={value}")));
    }
    extract.arg("--").arg(&array.place).exec().into()
}
