//! One function for each limit.

use profile::name;
use recorder::Placement;
use ssd::spec::Link;

use super::{Case, DRIVES_MAX, Limit, Need, Obstacle};
use crate::candidate::Figure;
use crate::explain::{bytes, drives as count, factor, rate as gb, seconds};
use crate::host::{MEMORY_CROSSINGS, MEMORY_CROSSINGS_CACHED};
use crate::phases::Dips;
use crate::requirement::Term;

/// What each limit asks for, in the order in which they are told.
pub(super) fn needs(case: &Case<'_>, placement: Placement) -> Vec<Need> {
    let mut needs = vec![
        rate(case, placement),
        capacity(case, placement),
        endurance(case),
        link(case),
        uplink(case),
    ];
    let at_least = needs.iter().filter_map(|need| need.drives).max().unwrap_or(1);
    needs.push(memory(case, placement, at_least));
    needs
}

/// Drives that write as fast as data comes, in the slowest phase that is reached.
fn rate(case: &Case<'_>, placement: Placement) -> Need {
    if case.requirement.readers.bytes_per_s() > 0.0 && case.read().is_none() {
        return never(Limit::Rate, Obstacle::NoReadRate);
    }
    let Some(drives) = case.sustaining(placement) else {
        let reads = case.requirement.readers.bytes_per_s();
        let obstacle = if reads > 0.0 { Obstacle::Readers { reads } } else { Obstacle::TooMany };
        return never(Limit::Rate, obstacle);
    };
    let phases = &case.subject.phases;
    let slowest = phases.slowest(case.fill(drives));
    let mut arithmetic = Vec::new();
    if !case.requirement.wraps() {
        let held = case.fill(drives);
        let all = if held * f64::from(drives) < case.volume() { ", all that it holds" } else { "" };
        arithmetic.push(format!(
            "{} in {} / {drives} drives: {} on each{all}, {}",
            bytes(case.volume()),
            seconds(case.load.held_s),
            bytes(held),
            slowest.stage,
        ));
    }
    let at_full_speed = smallest(|drives| case.suffices(drives, placement)).unwrap_or(drives);
    arithmetic.push(full_speed_words(case, placement, at_full_speed));
    arithmetic.extend(curve_words(case, at_full_speed));
    arithmetic.extend(phases.dips.map(dips_words));
    let waiting = case.backlog(at_full_speed, placement);
    if waiting > 0.0 && waiting.is_finite() {
        arithmetic.push(format!("{} wait in memory while a phase is slower", bytes(waiting)));
    }
    arithmetic.extend(seen_words(case, at_full_speed, drives));
    let mut figures = vec![slowest.figure.clone()];
    figures.extend(phases.figures.iter().cloned());
    if at_full_speed != drives {
        let seen = &case.subject.seen;
        figures.extend([&seen.held, &seen.waiting, &seen.not_held].into_iter().flatten().cloned());
    }
    if case.left(drives) < 1.0 || case.subject.parts.is_some() {
        figures.extend(case.read());
    }
    Need { limit: Limit::Rate, drives: Some(drives), obstacle: None, arithmetic, figures }
}

/// How many drives their figures at full speed ask for, as a line.
fn full_speed_words(case: &Case<'_>, placement: Placement, drives: u32) -> String {
    let phases = &case.subject.phases;
    let slowest = phases.slowest(case.fill(drives));
    let (each, left) = (case.each_at_full_speed(drives, placement), case.left(drives));
    let stripe = placement == Placement::Stripe;
    let what = match phases.dips {
        Some(_) if stripe => "while one dips, all wait".to_owned(),
        None if stripe && !phases.even => "slowest moments".to_owned(),
        _ => "mean".to_owned(),
    };
    let flash = case
        .subject
        .parts
        .map_or_else(String::new, |parts| format!(", with {:.2} of the flash", parts.share));
    let beside = if left < 1.0 { format!(" x {left:.3} left by readers") } else { String::new() };
    let asked = case.load.offered_bytes_per_s / (each * left);
    format!(
        "{placement}: {} / {} ({}, {what}{flash}; {}, {}){beside} = {asked:.2}{}: {}",
        gb(case.load.offered_bytes_per_s),
        gb(each),
        slowest.stage,
        slowest.figure.evidence,
        slowest.figure.origin,
        reserve_words(case, placement, drives),
        count(drives),
    )
}

/// That a drive more is asked for because one less would leave too little for flushes and trims. In missions over drives that dip, the
/// buffers for dips hold what those cost.
fn reserve_words(case: &Case<'_>, placement: Placement, drives: u32) -> String {
    let beside_dips = case.subject.phases.dips.is_some() && !case.requirement.wraps();
    let less = drives - 1;
    if beside_dips || less == 0 {
        return String::new();
    }
    let written = f64::from(less) * case.each_at_full_speed(less, placement) * case.left(less);
    let spare = written / case.load.offered_bytes_per_s - 1.0;
    if !(0.0..case.headroom()).contains(&spare) {
        return String::new();
    }
    format!(" ({less} would have only {:.2} % in reserve)", spare * 100.0)
}

/// What was seen of a drive at a given rate, where that asks for another number; or how to see whether fewer would do, as a line.
fn seen_words(case: &Case<'_>, at_full_speed: u32, drives: u32) -> Option<String> {
    let seen = &case.subject.seen;
    let each = gb(case.share(drives));
    if drives < at_full_speed {
        let (held, waiting) = (seen.held.as_ref()?, seen.waiting.as_ref()?);
        return Some(format!(
            "a drive was seen to hold {} with {} waiting ({}, {}): {} at {each} each",
            gb(held.value),
            bytes(waiting.value),
            held.evidence,
            held.origin,
            count(drives),
        ));
    }
    if drives > at_full_speed {
        let not_held = seen.not_held.as_ref()?;
        return Some(format!(
            "a drive was seen not to hold {} ({}, {}): {} at {each} each",
            gb(not_held.value),
            not_held.evidence,
            not_held.origin,
            count(drives),
        ));
    }
    None
}

/// In what time a drive takes its part of a mission by its fill curve, as a line.
fn curve_words(case: &Case<'_>, drives: u32) -> Option<String> {
    case.backlog_by_curve(drives)?;
    let fill = case.fill(drives);
    let spent_s = case.subject.phases.curve.as_ref()?.seconds(fill)?;
    Some(format!(
        "by its fill curve, an empty drive takes {} in {}, {} on average",
        bytes(fill),
        seconds(spent_s),
        gb(fill / spent_s),
    ))
}

/// What dips cost, as a line.
fn dips_words(dips: Dips) -> String {
    let (together, share) = (seconds(dips.together_s), dips.share * 100.0);
    format!("dips cost a drive {together} together and {share:.2} % of its time")
}

/// Drives that hold what is to be held.
fn capacity(case: &Case<'_>, placement: Placement) -> Need {
    let usable = case.subject.usable_bytes(case.requirement.wraps(), placement);
    let held_s = case.load.held_s + case.turns_s();
    let held = held_s * case.load.space_bytes_per_s;
    if usable <= 0.0 {
        let why = "a ring keeps as many segments free as it has: take a larger drive".to_owned();
        return never(Limit::Capacity, Obstacle::TooSmall(why));
    }
    if case.requirement.term == Term::Whole {
        return silent(
            Limit::Capacity,
            "nothing has to be held: the array keeps what its drives hold",
        );
    }
    let drives = (held / usable).ceil().max(1.0);
    let line = format!(
        "{} at {} = {} / {} of each drive ({} of {} segments) = {:.2}: {}",
        seconds(held_s),
        gb(case.load.space_bytes_per_s),
        bytes(held),
        bytes(usable),
        (usable / case.subject.layout.segment_bytes as f64).round(),
        case.subject.segments(),
        held / usable,
        count(drives as u32),
    );
    needed(Limit::Capacity, drives, line, Vec::new())
}

/// Drives that may be written as much as there will be in the years that they are to last.
fn endurance(case: &Case<'_>) -> Need {
    let requirement = case.requirement;
    let Some(figure) = case.subject.candidate.figure(name::ENDURANCE).filter(|f| f.value > 0.0)
    else {
        return silent(Limit::Endurance, "not known: the profile has no endurance.bytes");
    };
    let share = if requirement.wraps() { "written by a ring" } else { "written by all missions" };
    let Some((years, written)) = requirement.life_years.zip(case.load.life_bytes) else {
        let line = format!(
            "{} {share} a year, of {} a drive ({}): no limit, as no --life is given",
            bytes(case.load.year_bytes),
            bytes(figure.value),
            figure.evidence,
        );
        let (limit, figures) = (Limit::Endurance, vec![figure]);
        return Need { limit, drives: None, obstacle: None, arithmetic: vec![line], figures };
    };
    let drives = (written / figure.value).ceil().max(1.0);
    let line = format!(
        "{} {share} in {} years, at the full rate {} % of the time / {} a drive ({}) = {:.2}: {}",
        bytes(written),
        factor(years),
        factor(requirement.mean_share() * 100.0),
        bytes(figure.value),
        figure.evidence,
        written / figure.value,
        count(drives as u32),
    );
    needed(Limit::Endurance, drives, line, vec![figure])
}

/// Drives whose own links carry the stream.
fn link(case: &Case<'_>) -> Need {
    if let Some(obstacle) = nic(case) {
        return never(Limit::Link, obstacle);
    }
    let Some(own) = case.subject.candidate.link() else {
        return match laned(case, 1) {
            Ok(()) => silent(Limit::Link, "not known: the profile has no link"),
            Err(obstacle) => never(Limit::Link, obstacle),
        };
    };
    match linked(case, 1) {
        Ok(drives) => {
            let each = each_link(case, own, drives).unwrap_or(own);
            let line = format!(
                "{} / {} ({}) = {:.2}: {}",
                gb(case.load.offered_bytes_per_s + shared_reads(case, each)),
                gb(each.bytes_per_s()),
                link_words(each),
                (case.load.offered_bytes_per_s + shared_reads(case, each)) / each.bytes_per_s(),
                count(drives),
            );
            let known = [name::LINK_GIGATRANSFERS, name::LINK_LANES];
            let figures = known.iter().filter_map(|n| case.subject.candidate.figure(n)).collect();
            needed(Limit::Link, f64::from(drives), line, figures)
        }
        Err(obstacle) => never(Limit::Link, obstacle),
    }
}

/// The least number of drives, from this one on, whose links carry the stream on the lanes that each gets.
///
/// # Errors
/// [`Obstacle`] if there is none: with more drives, each has fewer lanes.
pub(super) fn linked(case: &Case<'_>, from: u32) -> Result<u32, Obstacle> {
    let Some(own) = case.subject.candidate.link() else {
        return laned(case, from).map(|()| from);
    };
    let carried = |drives: u32| {
        each_link(case, own, drives).map(|link| {
            let needed = case.load.offered_bytes_per_s + shared_reads(case, link);
            (link.bytes_per_s() * f64::from(drives), needed)
        })
    };
    let mut best: f64 = 0.0;
    let mut drives = from.max(1);
    // With lanes to share out the number is bounded by theirs; without, by the rate of one link.
    while let Some((there, needed)) = carried(drives) {
        if there >= needed {
            return Ok(drives);
        }
        best = best.max(there);
        let least = (needed / (there / f64::from(drives))).ceil() as u32;
        drives =
            if case.requirement.host.lanes.is_none() { least.max(drives + 1) } else { drives + 1 };
        if drives > DRIVES_MAX {
            return Err(Obstacle::TooMany);
        }
    }
    if best > 0.0 {
        let needed = case.load.offered_bytes_per_s + shared_reads(case, own);
        return Err(Obstacle::Link { needed, there: best });
    }
    let total = drives + case.requirement.parity + case.requirement.spare;
    Err(Obstacle::Lanes { drives: total, lanes: case.requirement.host.drive_lanes().unwrap_or(0) })
}

/// Whether the host has a lane for each of so many data drives, of whose links nothing else is known, and the others.
///
/// # Errors
/// [`Obstacle::Lanes`] if it hasn't.
fn laned(case: &Case<'_>, drives: u32) -> Result<(), Obstacle> {
    let total = drives + case.requirement.parity + case.requirement.spare;
    match case.requirement.host.drive_lanes() {
        Some(lanes) if total > lanes => Err(Obstacle::Lanes { drives: total, lanes }),
        _ => Ok(()),
    }
}

/// The link that each gets when so many hold data.
fn each_link(case: &Case<'_>, own: Link, drives: u32) -> Option<Link> {
    let total = drives + case.requirement.parity + case.requirement.spare;
    case.requirement.host.link_for(own, total)
}

/// What readers take of a link in the direction of the writing: nothing, but where it carries one direction at a time.
fn shared_reads(case: &Case<'_>, link: Link) -> f64 {
    if link.half_duplex() { case.requirement.readers.bytes_per_s() } else { 0.0 }
}

/// Whether the interfaces' slots carry what comes.
fn nic(case: &Case<'_>) -> Option<Obstacle> {
    let there = case.requirement.host.nic?.bytes_per_s();
    let needed = case.load.packet_bytes_per_s;
    (needed > there).then_some(Obstacle::Nic { needed, there })
}

/// Drives with which the shared link carries stream and parity: with more of them, parity is a smaller share.
fn uplink(case: &Case<'_>) -> Need {
    let Some(link) = case.requirement.host.uplink else {
        return silent(Limit::Uplink, "none: drives share nothing on their way");
    };
    let reads = case.requirement.readers.bytes_per_s();
    if reads > link.to_host.0 {
        let there = link.to_host.0;
        return never(Limit::Uplink, Obstacle::Uplink { toward: "host", needed: reads, there });
    }
    let (offered, there) = (case.load.offered_bytes_per_s, link.to_drives.0);
    let parity = f64::from(case.requirement.parity);
    if offered > there || (parity > 0.0 && offered >= there) {
        let needed = offered;
        return never(Limit::Uplink, Obstacle::Uplink { toward: "drives", needed, there });
    }
    let drives =
        if parity > 0.0 { (parity * offered / (there - offered)).ceil().max(1.0) } else { 1.0 };
    let written = offered * (drives + parity) / drives;
    let line = format!(
        "{} with parity over {} toward the drives: {}",
        gb(written),
        gb(there),
        count(drives as u32)
    );
    needed(Limit::Uplink, drives, line, Vec::new())
}

/// Drives whose dips fit in the memory for buffers. More drives may need more memory: where `at_least`, which other limits ask for, don't
/// fit, it asks for more than those.
fn memory(case: &Case<'_>, placement: Placement, at_least: u32) -> Need {
    if let Some(bandwidth) = case.requirement.host.memory_bandwidth {
        let needed = case.load.packet_bytes_per_s * MEMORY_CROSSINGS_CACHED;
        if needed > bandwidth.0 {
            let there = bandwidth.0;
            return never(Limit::Memory, Obstacle::MemoryBandwidth { needed, there });
        }
    }
    let mut arithmetic: Vec<String> = case
        .requirement
        .host
        .memory_bandwidth
        .map(|there| crossings(case, there.0))
        .into_iter()
        .collect();
    let Some(memory) = case.requirement.host.memory else {
        arithmetic.push("not given: as much as the answer's buffers need".to_owned());
        let (limit, figures) = (Limit::Memory, Vec::new());
        return Need { limit, drives: None, obstacle: None, arithmetic, figures };
    };
    let Some(first) = case.sustaining(placement) else {
        return never(Limit::Memory, Obstacle::TooMany);
    };
    let from = first.max(at_least);
    let drives = match buffered(case, placement, from) {
        Ok(drives) if drives > from => drives,
        // Alone, memory asks for no more than others do.
        Ok(drives) => buffered(case, placement, first).unwrap_or(drives),
        Err(obstacle) => return never(Limit::Memory, obstacle),
    };
    arithmetic.push(format!(
        "{} of buffers ({} in chunks on their way, the rest for dips) in {memory}: {}",
        bytes(case.buffer_bytes(drives, placement)),
        bytes(case.pipeline_bytes(drives)),
        count(drives),
    ));
    let drives = Some(drives);
    let figures = case.subject.phases.figures.clone();
    Need { limit: Limit::Memory, drives, obstacle: None, arithmetic, figures }
}

/// The fewest drives, from this number on, whose buffers fit in the memory given, if any is.
///
/// # Errors
/// [`Obstacle::Memory`] if none do, with the drives whose buffers need least.
pub(super) fn buffered(case: &Case<'_>, placement: Placement, from: u32) -> Result<u32, Obstacle> {
    let there_bytes = case.requirement.host.memory.map_or(f64::INFINITY, |memory| memory.0 as f64);
    let (mut drives, mut least) = (from, (f64::INFINITY, from));
    // Each has chunks in memory, so some number is the last that can fit.
    while drives == from || (case.pipeline_bytes(drives) <= there_bytes && drives <= DRIVES_MAX) {
        let needed_bytes = case.buffer_bytes(drives, placement);
        if needed_bytes <= there_bytes {
            return Ok(drives);
        }
        if needed_bytes < least.0 {
            least = (needed_bytes, drives);
        }
        drives += 1;
    }
    Err(Obstacle::Memory { needed_bytes: least.0, there_bytes, drives: least.1 })
}

/// What crosses the memory bus, as a line.
fn crossings(case: &Case<'_>, there: f64) -> String {
    let packets = case.load.packet_bytes_per_s;
    format!(
        "{} of packets x {MEMORY_CROSSINGS_CACHED} (the copy: read, fetch, write) = {}, x {MEMORY_CROSSINGS} with interface and drives \
         = {}, of {} that memory moves",
        gb(packets),
        gb(packets * MEMORY_CROSSINGS_CACHED),
        gb(packets * MEMORY_CROSSINGS),
        gb(there),
    )
}

/// The least number that will do, if more always do as well.
pub(super) fn smallest(will_do: impl Fn(u32) -> bool) -> Option<u32> {
    let mut high = 1;
    while !will_do(high) {
        high *= 2;
        if high > DRIVES_MAX {
            return None;
        }
    }
    let mut low = high / 2;
    while high - low > 1 {
        let middle = low + (high - low) / 2;
        if will_do(middle) { high = middle } else { low = middle }
    }
    Some(high)
}

fn needed(limit: Limit, drives: f64, line: String, figures: Vec<Figure>) -> Need {
    if drives > f64::from(DRIVES_MAX) {
        return never(limit, Obstacle::TooMany);
    }
    let drives = Some(drives as u32);
    Need { limit, drives, obstacle: None, arithmetic: vec![line], figures }
}

/// Asks for nothing, and says why.
fn silent(limit: Limit, why: &str) -> Need {
    let arithmetic = vec![why.to_owned()];
    Need { limit, drives: None, obstacle: None, arithmetic, figures: Vec::new() }
}

fn never(limit: Limit, obstacle: Obstacle) -> Need {
    let arithmetic = vec![obstacle.to_string()];
    Need { limit, drives: None, obstacle: Some(obstacle), arithmetic, figures: Vec::new() }
}

/// A link in words.
fn link_words(link: Link) -> String {
    match link {
        Link::Pcie { generation, lanes, .. } => format!("PCIe {generation} x{lanes}"),
        Link::Sata { gbps, .. } => format!("SATA {gbps} Gb/s"),
    }
}
