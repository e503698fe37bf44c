//! `longtake wireshark`: arrays among the interfaces of Wireshark and tshark, which run the program as an extcap.

use std::env;
use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Command, ExitCode};

use anyhow::{Context, Result};
use clap::{Args, Subcommand};
use device::shell::quoted;
use format::LinkType;
use longtake::{Uuid, array};
use source::filter::Program;
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
    let folder = arguments.directory.clone().map_or_else(extcap_folder, Ok)?;
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
    let path = printer::inline(&path.to_string_lossy()).into_owned();
    printer::text(&format!("wrote {path}: `tshark -D` lists the interfaces"))?;
    Ok(ExitCode::SUCCESS)
}

/// Where Wireshark looks for programs of this user. Before version 4.2 it does not name that folder.
fn extcap_folder() -> Result<PathBuf> {
    const REMEDY: &str = "name Wireshark's extcap folder with --directory";
    let answer = Command::new("tshark").args(["-G", "folders"]).output();
    let answer = answer.with_context(|| format!("running tshark: install it, or {REMEDY}"))?;
    let folders = String::from_utf8_lossy(&answer.stdout);
    let named = |name: &str| {
        let line = folders.lines().find(|line| line.to_lowercase().starts_with(name))?;
        Some(PathBuf::from(line.split_once(':')?.1.trim()))
    };
    let own = || Some(named("personal configuration")?.join("extcap"));
    let folder = named("personal extcap path").or_else(own);
    folder.with_context(|| format!("tshark names no folder of this user: {REMEDY}"))
}

/// An array that Wireshark lists.
struct Listed {
    place: String,
    name: String,
    uuid: Uuid,
}

/// The arrays of these names; those on the drives of this machine if there are none.
fn listed(places: &[String]) -> Result<Vec<Listed>> {
    if places.is_empty() {
        let found = array::list(&[], &mut |_| ())?.into_iter();
        let listed = found.map(|array| Listed {
            place: array.uuid.to_string(),
            name: array.name,
            uuid: array.uuid,
        });
        return Ok(listed.collect());
    }
    let open = |place: &String| {
        // One array that is not there must not hide the others.
        let array = opening::options(true).open(place).ok()?;
        Some(Listed { place: place.clone(), name: array.info().name, uuid: array.uuid() })
    };
    Ok(places.iter().filter_map(open).collect())
}

/// Answers one question.
fn answer(arguments: &ExtcapArguments) -> Result<ExitCode> {
    let arrays = listed(&arguments.arrays)?;
    if arguments.extcap_interfaces {
        let version = env!("CARGO_PKG_VERSION");
        let mut lines = vec![format!("extcap {{version={version}}}{{display=Longtake}}")];
        for Listed { name, uuid, .. } in &arrays {
            let name = text(name);
            for kind in ["live", "span"] {
                lines.push(format!(
                    "interface {{value=longtake-{kind}-{uuid}}}{{display={name} ({kind})}}"
                ));
            }
        }
        printer::text(&lines.join("\n"))?;
        return Ok(ExitCode::SUCCESS);
    }
    let interface = arguments.extcap_interface.as_deref().unwrap_or_default();
    let (kind, uuid) = interface
        .strip_prefix("longtake-")
        .and_then(|rest| rest.split_once('-'))
        .with_context(|| format!("{interface:?} is no interface of Longtake"))?;
    let array = arrays.iter().find(|array| array.uuid.to_string() == uuid);
    let array = array.with_context(|| format!("the array {uuid} is not there any more"))?;
    let is_live = kind == "live";
    if arguments.capture {
        return Err(capture(arguments, array, is_live));
    }
    if arguments.extcap_dlts {
        // The packets' own link types are in the pcapng stream.
        printer::text("dlt {number=1}{name=EN10MB}{display=as recorded}")?;
    } else if arguments.extcap_config {
        printer::text(&fields(is_live).join("\n"))?;
    } else if let Some(filter) = &arguments.extcap_capture_filter {
        // What is printed here is what is wrong with it.
        if let Err(wrong) = Program::compile(filter, LinkType::ETHERNET, 1 << 16) {
            printer::text(&wrong.to_string())?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// The fields of an interface's dialog.
fn fields(is_live: bool) -> Vec<String> {
    let filter =
        ("filter", "Filter", "Packets that this libpcap expression accepts, as in tcpdump");
    let since = (
        "since",
        "From",
        "2026-11-21T10:00:00Z, \"2026-11-21 10:00\" (local), -10m (ago); empty: the oldest packet",
    );
    let until = ("until", "To", "A time in the same forms; empty: the newest packet");
    let take = ("take", "Take", "UUID of one take, its beginning, or last; empty: all takes");
    let fields = if is_live { vec![filter] } else { vec![since, until, take, filter] };
    let field = |(at, (name, display, tooltip)): (usize, (&str, &str, &str))| {
        format!(
            "arg {{number={at}}}{{call=--{name}}}{{display={display}}}{{type=string}}{{tooltip={tooltip}}}"
        )
    };
    fields.into_iter().enumerate().map(field).collect()
}

/// Becomes `longtake extract`, which writes what Wireshark shows. Returns only if it can't.
fn capture(arguments: &ExtcapArguments, array: &Listed, is_live: bool) -> anyhow::Error {
    let program = match env::current_exe() {
        Ok(program) => program,
        Err(error) => return error.into(),
    };
    let mut extract = Command::new(program);
    extract.args(["extract", "--quiet", "--format", "pcapng", "--output"]);
    extract.args(&arguments.fifo).args(is_live.then_some("--follow"));
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

/// A name as it can stand between braces.
fn text(name: &str) -> String {
    printer::inline(name).replace(['{', '}'], "_")
}
