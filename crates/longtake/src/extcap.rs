//! Arrays as interfaces of Wireshark, which asks a program for them: its extcap protocol
//! (<https://www.wireshark.org/docs/wsdg_html_chunked/ChCaptureExtcap.html>).
//!
//! An answer is a list of lines, each a word and values in braces. Two interfaces stand for an array: what is being recorded, and what
//! was recorded.

use std::path::PathBuf;
use std::process::Command;

use anyhow::Context;
use format::LinkType;
use source::filter::Program;

use crate::{Array, Uuid, array};

/// An array that Wireshark lists.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listed {
    /// What it is opened by.
    pub place: String,
    name: String,
    uuid: Uuid,
}

/// The arrays of these names that can be opened; those on the drives of this machine if none is named.
///
/// # Errors
/// If the drives can't be listed.
pub fn listed(places: &[String]) -> crate::Result<Vec<Listed>> {
    if places.is_empty() {
        let found = array::list(&[], &mut |_| ())?.into_iter();
        let on_drives = |array: array::FoundArray| Listed {
            place: array.uuid.to_string(),
            name: array.name,
            uuid: array.uuid,
        };
        return Ok(found.map(on_drives).collect());
    }
    // One array that is not there must not hide the others.
    let open = |place: &String| {
        let array = Array::options().degraded(true).open(place).ok()?;
        Some(Listed { place: place.clone(), name: array.info().name, uuid: array.uuid() })
    };
    Ok(places.iter().filter_map(open).collect())
}

/// What an interface shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// The packets of the recording under way.
    Live,
    /// A span of what was recorded.
    Span,
}

impl Kind {
    const fn name(self) -> &'static str {
        match self {
            Self::Live => "live",
            Self::Span => "span",
        }
    }
}

/// The answer to `--extcap-interfaces`.
pub fn interfaces(arrays: &[Listed]) -> Vec<String> {
    let version = env!("CARGO_PKG_VERSION");
    let mut lines = vec![format!("extcap {{version={version}}}{{display=Longtake}}")];
    for Listed { name, uuid, .. } in arrays {
        // What would end the value, or the line.
        let name = name.replace(|c: char| c.is_control() || "{}".contains(c), "_");
        lines.extend([Kind::Live, Kind::Span].map(|kind| {
            let kind = kind.name();
            format!("interface {{value=longtake-{kind}-{uuid}}}{{display={name} ({kind})}}")
        }));
    }
    lines
}

/// The array and the kind that an interface's name stands for.
///
/// # Errors
/// If it is no name of ours, or the array is not among these.
pub fn interface<'a>(name: &str, arrays: &'a [Listed]) -> crate::Result<(&'a Listed, Kind)> {
    let parts = name.strip_prefix("longtake-").and_then(|rest| rest.split_once('-'));
    let of_kind = |name| [Kind::Live, Kind::Span].into_iter().find(|kind| kind.name() == name);
    let known = parts.and_then(|(kind, uuid)| Some((of_kind(kind)?, uuid)));
    let (kind, uuid) = known.with_context(|| format!("{name:?} is no interface of Longtake"))?;
    let array = arrays.iter().find(|array| array.uuid.to_string() == uuid);
    let array = array.with_context(|| format!("the array {uuid} is not there any more"))?;
    Ok((array, kind))
}

/// The answer to `--extcap-dlts`. Each packet's own link type is in the pcapng stream.
pub fn link_types() -> Vec<String> {
    vec!["dlt {number=1}{name=EN10MB}{display=as recorded}".to_owned()]
}

/// The answer to `--extcap-config`: the fields of the interface's dialog, which are options of `longtake extract`.
pub fn fields(kind: Kind) -> Vec<String> {
    let of_span = [
        (
            "since",
            "From",
            "2026-11-21T10:00:00Z, \"2026-11-21 10:00\" (local), -10m (ago); empty: the oldest packet",
        ),
        ("until", "To", "A time in the same forms; empty: the newest packet"),
        ("take", "Take", "UUID of one take, its beginning, or last; empty: all takes"),
    ];
    let filter =
        ("filter", "Filter", "Packets that this libpcap expression accepts, as in tcpdump");
    let fields = of_span.into_iter().filter(|_| kind == Kind::Span).chain([filter]);
    let line = |(number, (name, display, tooltip)): (usize, (&str, &str, &str))| {
        format!(
            "arg {{number={number}}}{{call=--{name}}}{{display={display}}}{{type=string}}{{tooltip={tooltip}}}"
        )
    };
    fields.enumerate().map(line).collect()
}

/// The answer to a capture filter: what is wrong with it.
pub fn wrong_filter(filter: &str) -> Option<String> {
    Program::compile(filter, LinkType::ETHERNET, 0).err().map(|wrong| wrong.to_string())
}

/// The folder in which Wireshark looks for programs of this user, as tshark names it.
///
/// # Errors
/// If there is no tshark, or it names no folder.
pub fn folder() -> crate::Result<PathBuf> {
    const REMEDY: &str = "name Wireshark's extcap folder with --directory";
    let answer = Command::new("tshark").args(["-G", "folders"]).output();
    let answer = answer.with_context(|| format!("running tshark: install it, or {REMEDY}"))?;
    let folders = String::from_utf8_lossy(&answer.stdout);
    let named = |name: &str| {
        let line = folders.lines().find(|line| line.to_lowercase().starts_with(name))?;
        Some(PathBuf::from(line.split_once(':')?.1.trim()))
    };
    // Before version 4.2, Wireshark looks below its settings, and does not say so.
    let settings = || Some(named("personal configuration")?.join("extcap"));
    let folder = named("personal extcap path").or_else(settings);
    Ok(folder.with_context(|| format!("tshark names no folder of this user: {REMEDY}"))?)
}
