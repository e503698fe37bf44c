//! The library's values as text, as the program prints them: tables, and lines. Names and paths are in them as they are: whoever
//! prints them escapes what is not printable.

mod account;
mod check;
mod flows;
mod index;
pub mod live_line;
mod recorded;
mod scrub;

use base::units::{counted, grouped};
use base::{ByteSize, Rate, Timestamp};
use device::identity::Drive;
use device::shell::quoted;
use device::wear::Wear;
use format::superblock::Protected;
use format::{Count, Interface};
use recorder::TimeRange;

use crate::array::{
    Contents, DeleteReport, Description, FoundArray, FoundState, Gap, Info, MemberInfo,
    ParityCoverage, Take, TakeDetails, link_name,
};
use crate::instant::utc;

pub use account::{missing, recovered_chunks, unread};
pub use check::checked;
pub use flows::{flow_sums, flows};
pub use index::{index_use, indexed};
pub use recorded::recorded_besides;
pub use scrub::scrubbed;

/// A table: its head, the columns that are aligned to the right, and its rows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Table {
    /// Head of each column.
    pub heads: &'static [&'static str],
    /// Zero-based indexes of the columns that are aligned to the right.
    pub right: &'static [usize],
    /// The cells of each row.
    pub rows: Vec<Vec<String>>,
}

/// A cell without a value.
const NONE: &str = "-";

fn or_none(value: Option<impl ToString>) -> String {
    value.map_or_else(|| NONE.to_owned(), |value| value.to_string())
}

fn share(part: u64, whole: u64) -> String {
    format!("{:.1} %", 100.0 * part as f64 / whole.max(1) as f64)
}

/// The arrays that were found.
pub fn found(arrays: &[FoundArray]) -> Table {
    let row = |array: &FoundArray| {
        let state = array.state.as_ref().ok();
        let of = |value: fn(&FoundState) -> String| or_none(state.map(value));
        let place = array.directory.as_ref().map(|directory| directory.display().to_string());
        vec![
            array.name.clone(),
            place.unwrap_or_else(|| "drives".to_owned()),
            format!("{} of {}", state.map_or(array.targets.len(), |s| s.present), array.members),
            ByteSize(array.capacity_bytes).to_string(),
            array.parity.to_string(),
            of(|state| if state.has_wrapped { "yes" } else { "not known" }.to_owned()),
            of(|state| state.takes.to_string()),
            of(|state| share(state.used_bytes, state.data_bytes)),
            or_none(state.and_then(|state| state.newest_packet).map(utc)),
            match state {
                None => "can't be opened".to_owned(),
                Some(state) if state.recording => "being recorded".to_owned(),
                Some(state) if state.present < array.members => "incomplete".to_owned(),
                Some(_) => "complete".to_owned(),
            },
        ]
    };
    Table {
        heads: &[
            "array",
            "on",
            "members",
            "size",
            "parity",
            "ring",
            "takes",
            "used",
            "newest packet",
            "state",
        ],
        right: &[2, 3, 4, 6, 7],
        rows: arrays.iter().map(row).collect(),
    }
}

/// Why arrays that were found can't be opened, a line for each.
pub fn unopened(arrays: &[FoundArray]) -> Vec<String> {
    let line = |array: &FoundArray| {
        let why = array.state.as_ref().err()?;
        Some(format!("{} ({}) can't be opened: {why}", array.name, array.uuid))
    };
    arrays.iter().filter_map(line).collect()
}

/// An array's name and identity, in a line.
pub fn title(info: &Info) -> String {
    let recording = if info.recording { ", being recorded" } else { "" };
    format!("array '{}' {}, created {}{recording}", info.name, info.uuid, utc(info.created))
}

/// The members of an array.
pub fn members(info: &Info) -> Table {
    let row = |(at, member): (usize, &MemberInfo)| {
        vec![
            at.to_string(),
            or_none(member.target.as_ref()),
            member.identity.clone(),
            ByteSize(member.capacity_bytes).to_string(),
            share(member.used_bytes, member.data_bytes),
            presence(member).to_owned(),
        ]
    };
    Table {
        heads: &["member", "target", "identity", "size", "used", "state"],
        right: &[0, 3, 4],
        rows: info.members.iter().enumerate().map(row).collect(),
    }
}

fn presence(member: &MemberInfo) -> &'static str {
    if member.target.is_some() { "present" } else { "MISSING" }
}

/// The members of an array with what their drives report.
pub fn drives(described: &Description) -> Table {
    let members = described.info.members.iter().zip(&described.drives).enumerate();
    let row = |(at, (member, drive)): (usize, (&MemberInfo, &Option<Drive>))| {
        let drive = drive.as_ref();
        // A file, and a drive that is missing, is known by what the array keeps of it.
        let model = drive.and_then(|drive| drive.model.clone());
        vec![
            at.to_string(),
            or_none(member.target.as_ref()),
            model.unwrap_or_else(|| member.identity.clone()),
            or_none(drive.and_then(|drive| drive.serial.as_ref())),
            ByteSize(member.capacity_bytes).to_string(),
            share(member.used_bytes, member.data_bytes),
            or_none(drive.and_then(health)),
            presence(member).to_owned(),
        ]
    };
    Table {
        heads: &["member", "target", "model", "serial", "size", "used", "health", "state"],
        right: &[0, 4, 5],
        rows: members.map(row).collect(),
    }
}

/// What a drive reports of its wear.
fn health(drive: &Drive) -> Option<String> {
    let Wear::Known(health) = &drive.wear else { return None };
    let mut words = format!("{} % worn, {} % spare", health.percent_used, health.spare_percent);
    if let Some(celsius) = health.temperature_celsius {
        words += &format!(", {celsius} \u{b0}C");
    }
    if health.critical_warning != 0 {
        words += &format!(", WARNING {:#04x}", health.critical_warning);
    }
    Some(words)
}

/// How an array's members are divided, and how full they are.
pub fn geometry(info: &Info) -> Vec<String> {
    let segments: u64 = info.members.iter().map(|member| member.segments).sum();
    let used: u64 = info.members.iter().map(|member| member.used_bytes).sum();
    let whole: u64 = info.members.iter().map(|member| member.data_bytes).sum();
    let mut lines = Vec::new();
    if let Some(member) = info.members.first() {
        lines.push(format!(
            "{} of {}, chunks of up to {}, parity {}",
            counted(segments, "segment"),
            ByteSize(member.segment_bytes),
            ByteSize(member.chunk_max.into()),
            info.parity
        ));
    }
    lines.push(format!("used: {} of {} ({})", ByteSize(used), ByteSize(whole), share(used, whole)));
    lines
}

/// What parity an array has.
pub fn parity(parity: u8, coverage: &ParityCoverage) -> String {
    let short = match coverage.short_chunks {
        0 => String::new(),
        1 => "; 1 chunk has less".to_owned(),
        short => format!("; {} have less", counted(short, "chunk")),
    };
    format!(
        "parity {parity}: the array survives the loss of any {}; {}, {} of parity{short}",
        if parity == 1 { "one member" } else { "two members" },
        counted(coverage.groups, "group"),
        ByteSize(coverage.bytes)
    )
}

/// What was recorded on an array, in a few lines.
pub fn contents(contents: &Contents) -> Vec<String> {
    let Contents { takes, chunks, .. } = contents;
    let packets: u64 = takes.iter().map(|take| take.stored.packets).sum();
    let missing: u64 = takes.iter().map(|take| take.missing().packets).sum();
    let mut lines = vec![format!(
        "{}, {}, {}; {} missing",
        counted(takes.len() as u64, "take"),
        counted(chunks.len() as u64, "chunk"),
        counted(packets, "packet"),
        counted(missing, "packet")
    )];
    lines.extend(contents.span().map(|span| format!("from {}", from_to(span))));
    lines
}

fn from_to(TimeRange { from, to }: TimeRange) -> String {
    format!("{} to {}", utc(from), utc(to))
}

/// Spans of time that a ring does not overwrite, a line for each.
pub fn protected(spans: &[Protected]) -> Vec<String> {
    let span = |span: &Protected| {
        let line = format!("protected: {} to {} {}", utc(span.from), utc(span.to), span.label);
        line.trim_end().to_owned()
    };
    spans.iter().map(span).collect()
}

/// What a ring has overwritten; empty if nothing is known to be.
pub fn released(contents: &Contents) -> Vec<String> {
    let Some(released) = contents.released else { return Vec::new() };
    let until = released.until.map(|until| format!("; nothing after {} is missing", utc(until)));
    vec![format!(
        "overwritten by the ring: {} of the takes that are left{}",
        count(released.count),
        until.unwrap_or_default()
    )]
}

/// The takes of an array.
pub fn takes(takes: &[Take]) -> Table {
    let row = |take: &Take| {
        vec![
            take.id.uuid.to_string(),
            utc(take.id.started),
            take.duration().to_string(),
            grouped(take.stored.packets),
            ByteSize(take.captured_bytes).to_string(),
            grouped(take.ledger.lost_unwanted().packets),
            grouped(take.missing().packets),
            take.state.to_string(),
        ]
    };
    Table {
        heads: &["take", "started", "length", "packets", "bytes", "lost", "missing", "state"],
        right: &[2, 3, 4, 5, 6],
        rows: takes.iter().map(row).collect(),
    }
}

/// The takes of an array with their spans of time and rates. A take is named by the beginning of its UUID.
pub fn rates(described: &Description) -> Table {
    let takes = described.contents.takes.iter().zip(&described.takes);
    let row = |(take, details): (&Take, &TakeDetails)| {
        let has_packets = take.stored.packets > 0;
        let time = |ns| or_none(has_packets.then(|| utc(Timestamp::from_nanos(ns))));
        let bytes_only =
            |rate: Rate| format!("{rate}").split(" (").next().unwrap_or_default().to_owned();
        vec![
            take.id.uuid.to_string()[..8].to_owned(),
            time(take.first_ns),
            time(take.last_ns),
            grouped(take.stored.packets),
            ByteSize(take.captured_bytes).to_string(),
            or_none(details.rates.map(|rates| bytes_only(rates.average))),
            or_none(details.rates.map(|rates| bytes_only(rates.peak_second))),
            take.state.to_string(),
        ]
    };
    Table {
        heads: &["take", "from", "to", "packets", "bytes", "average", "peak second", "state"],
        right: &[3, 4, 5, 6],
        rows: takes.map(row).collect(),
    }
}

/// The interfaces of each take, a line for each.
pub fn interfaces(described: &Description) -> Vec<String> {
    let takes = described.contents.takes.iter().zip(&described.takes);
    let lines = takes.flat_map(|(take, details)| {
        let take = take.id.uuid.to_string()[..8].to_owned();
        details.interfaces.iter().map(move |found| format!("take {take}: {}", interface(found)))
    });
    lines.collect()
}

fn interface(interface: &Interface) -> String {
    let Interface { name, link_type, snap_length, filter, speed_bits, .. } = interface;
    let mut words = format!("interface '{name}', {}", link_name(*link_type));
    if *speed_bits > 0 {
        words += &format!(", {}", Rate(*speed_bits as f64 / 8.0));
    }
    if *snap_length > 0 {
        words += &format!(", packets cut to {}", counted((*snap_length).into(), "byte"));
    }
    if !filter.is_empty() {
        words += &format!(", filter '{filter}'");
    }
    words
}

fn count(count: Count) -> String {
    format!("{}, {}", counted(count.packets, "packet"), counted(count.bytes, "byte"))
}

/// How much of a take the ring has left.
pub fn left(take: &Take) -> String {
    format!(
        "{} of {} left, older ones overwritten",
        grouped(take.stored.packets),
        counted(take.ledger.stored.packets, "packet")
    )
}

/// What of a take is there by parity alone.
pub fn recovered(take: &Take) -> String {
    let chunks = counted(take.recovered_chunks, "chunk");
    format!("recovered from parity: {chunks}, {}", count(take.recovered))
}

/// What became of the stored part of a take: on the media, overwritten, missing. Several lines.
pub fn account(take: &Take) -> Vec<String> {
    let chunks = counted(take.chunks, "chunk");
    let mut lines = vec![format!("on the media: {} in {chunks}", count(take.stored))];
    if take.recovered_chunks > 0 {
        lines.push(format!("of that {}", recovered(take)));
    }
    if !take.overwritten.is_zero() {
        lines.push(format!("overwritten by the ring since: {}", count(take.overwritten)));
    }
    for gap in &take.gaps {
        lines.push(format!(
            "MISSING: {} in chunks {} to {}, {}",
            count(gap.count),
            gap.first_sequence,
            gap.last_sequence,
            times(gap)
        ));
    }
    if !take.ended {
        lines.push("the take has no recorded end: the ledger covers everything up to the last chunk found, and nothing after it".to_owned());
    }
    let sum =
        if take.balances() { "which adds up" } else { "which does NOT add up: please report it" };
    lines.push(format!("stored = on the media + overwritten + missing, {sum}"));
    lines
}

/// When the packets of a gap came, as far as the chunks around it tell.
fn times(gap: &Gap) -> String {
    let time = |ns| utc(Timestamp::from_nanos(ns));
    if gap.to_ns == u64::MAX {
        return format!("after {}", time(gap.from_ns));
    }
    format!("between {} and {}", time(gap.from_ns), time(gap.to_ns))
}

/// What is lost by a deletion, and what happens to each member.
pub fn deletion(report: &DeleteReport) -> Vec<String> {
    let mut lines = vec![format!(
        "array '{}' {}: {}, {}, {}",
        report.name,
        report.uuid,
        counted(report.takes as u64, "take"),
        counted(report.packets, "packet"),
        ByteSize(report.bytes)
    )];
    lines.extend(report.span.map(|span| format!("from {}", from_to(span))));
    lines.extend(protected(&report.protected));
    let verbs = if report.dry_run { ["would be", "would be"] } else { ["is", "are"] };
    for member in &report.members {
        let target = member.target.display();
        lines.push(match member.is_file {
            true => format!("{target} {} removed", verbs[0]),
            false => format!("both superblocks of {target} {} erased", verbs[1]),
        });
    }
    for member in &report.missing {
        lines.push(format!("member {member} is missing: what it holds stays"));
    }
    if let Some(directory) = &report.directory {
        let directory = directory.display();
        match report.others.as_slice() {
            [] => lines.push(format!("{directory} {} removed", verbs[0])),
            [other, ..] => lines.push(format!(
                "{directory} stays: it holds {} of others, such as {}",
                counted(report.others.len() as u64, "file"),
                other.display()
            )),
        }
    }
    if let Some(drive) = report.members.iter().find(|member| !member.is_file) {
        lines.push(format!(
            "the packets stay on drives until they are overwritten, and can be read by hand where `longtake array show` says before \
             the deletion; `blkdiscard {}` discards them",
            quoted(&drive.target.display().to_string())
        ));
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_of_a_thing_is_singular_and_any_other_number_plural() {
        for (number, text) in [(0, "0 takes"), (1, "1 take"), (2, "2 takes"), (1234, "1,234 takes")]
        {
            assert_eq!(counted(number, "take"), text);
        }
    }
}
