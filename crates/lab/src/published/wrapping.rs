//! What wrapping over stale data costs (REC-3 to REC-5): a recorder's ring on drives whose blocks must be erased, in three ways, and
//! single drives that are trimmed and left alone.

use base::{Duration, Rate};
use load::quantity::Size;
use load::workload::{Blocks, Stream};
use load::{Verb, Workload};

use super::basis::Basis;
use super::claim::Row;
use super::stage::{Effort, Ring, RingOutcome, Stage};
use crate::lab::{Lab, LabError};

/// A rate that many times another is visibly faster.
pub(super) const VISIBLY: f64 = 1.05;

/// Drives of a ring.
const COPIES: u32 = 2;

/// How often a ring is written over, so that the slowest window is looked for in a whole lap; and how often where levels alone
/// are looked at.
const LAPS: f64 = 2.2;
const QUICK_LAPS: f64 = 1.2;

/// A load that many times what drives are known to take keeps them busy at all times.
const SATURATING: f64 = 1.5;

/// The load of drives that each have a tenth of their time to spare, as a share of what they sustain.
const WITH_TIME_TO_SPARE: f64 = 0.9;

/// Of all blocks, so many are "all", and the rest "none".
const NEARLY_ALL: f64 = 0.95;

/// What a drive takes that a ring wraps on, in bursts.
pub(super) struct Bursts {
    stale: f64,
    trimmed: f64,
    rested: f64,
}

impl Bursts {
    /// On a drive that was just overwritten: writes on, trims and writes, trims and rests and writes.
    pub(super) fn measure(lab: &mut Lab<'_>) -> Result<Self, LabError> {
        let whole = lab.capacity_bytes();
        let stale = burst(lab, "wrap-stale")?;
        trim(lab, "wrap-trim", whole)?;
        let trimmed = burst(lab, "wrap-trimmed")?;
        trim(lab, "wrap-trim-again", whole)?;
        lab.rest(STEPS, "wrap-rest", Duration::from_secs(60))?;
        let rested = burst(lab, "wrap-rested")?;
        Ok(Self { stale, trimmed, rested })
    }

    /// Whether a trim and a rest save what writing over stale data costs.
    fn rest_helps(&self) -> bool {
        self.rested > VISIBLY * self.stale
    }
}

/// Rings of one model, on drives that are full in the beginning.
pub(super) struct Wrapped {
    model: &'static str,
    basis: Basis,
    /// Nothing trimmed, and as fast as the drives take it.
    none: RingOutcome,
    /// Trimmed ahead, as fast as the drives take it.
    trimmed: RingOutcome,
    /// Trimmed ahead, with time to spare.
    spared: RingOutcome,
}

/// A model of which rings are recorded.
pub(super) struct Recorded<'a> {
    pub(super) model: &'static str,
    pub(super) basis: &'a Basis,
    /// The part of its capacity that is simulated, and its bytes.
    pub(super) part: f64,
    pub(super) bytes: u64,
    /// What one drive is known to take over stale data, about.
    pub(super) rate: f64,
}

impl Wrapped {
    /// Records on the three rings.
    pub(super) fn record(stage: &mut Stage<'_>, of: &Recorded<'_>) -> Result<Self, LabError> {
        let Recorded { model, basis, part, bytes, rate } = *of;
        let laps = if stage.effort() == Effort::Quick { QUICK_LAPS } else { LAPS };
        let mut ring = |trims, load: f64| {
            let seconds = laps * bytes as f64 / load.min(rate);
            let load = Rate(load * f64::from(COPIES));
            let time = Duration::from_secs_f64(seconds);
            let ring = Ring { model, copies: COPIES, share: part, trims, load, time };
            stage.ring(&format!("REC-{model}: ring"), &ring)
        };
        let none = ring(false, SATURATING * rate)?;
        let trimmed = ring(true, SATURATING * rate)?;
        let sustained = each(&none).map_or(rate, |rate| rate.min(SATURATING * of.rate));
        let spared = ring(true, WITH_TIME_TO_SPARE * sustained)?;
        Ok(Self { model, basis: basis.clone(), none, trimmed, spared })
    }
}

/// The lowest rate of each drive, in bytes a second.
fn each(ring: &RingOutcome) -> Option<f64> {
    ring.slowest.map(|rate| rate.0 / f64::from(COPIES))
}

/// Erases before programs, and what waiting for them costs.
pub(super) fn erasing(row: Row, rings: &[Wrapped], pro: &Bursts) -> Row {
    let all = |of: fn(&Wrapped) -> f64| range(rings.iter().map(of));
    let (least, most) = all(|ring| ring.none.erase_wait);
    let (_, ahead) = all(|ring| ring.none.erased_ahead);
    let drive = row.basis.clone();
    let rings_basis = rings.iter().fold(Basis::Arithmetic, |basis, ring| basis.and(&ring.basis));
    row.on(rings_basis)
        .words(
            "a ring as fast as its drives: blocks that are stale when they are needed",
            "all",
            ahead < 1.0 - NEARLY_ALL,
            format!("at least {}", percent(1.0 - ahead)),
        )
        .words(
            "the flash's time in which programs wait for erases",
            "much",
            most > VISIBLY - 1.0,
            format!("{} to {}", percent(least), percent(most)),
        )
        .contradicted_in_words(
            "a die erases a block in a small part of the time that it takes to program all of its pages",
        )
        .on(drive)
        .words(
            "970 PRO: over stale data, and after a trim and a rest",
            "faster after them, as blocks are erased meanwhile",
            pro.rest_helps(),
            format!("{}, {}", gigabytes(pro.stale), gigabytes(pro.rested)),
        )
        .contradicted_in_words(
            "the rest erases the blocks, which saves at most the time for which programs would wait for erases",
        )
}

/// A ring that neither trims nor rests.
pub(super) fn no_time(row: Row, rings: &[Wrapped], qlc: &Bursts) -> Row {
    let row = row
        .words(
            "1 TB of QLC: wrapping without a trim or a rest, against the same after both",
            "slower",
            qlc.rest_helps(),
            format!("{} against {}", gigabytes(qlc.stale), gigabytes(qlc.rested)),
        )
        .noted("the rest makes the drive faster because the drive empties its cache, not because it erases blocks");
    rings.iter().fold(row, |row, ring| {
        row.on(ring.basis.clone()).words(
            format!(
                "{}, wrapping without a trim: blocks erased before they are needed",
                ring.model
            ),
            "none",
            ring.none.erased_ahead < 1.0 - NEARLY_ALL,
            format!("{} at {}", percent(ring.none.erased_ahead), sustained(&ring.none)),
        )
    })
}

/// Trimming ahead, with and without time to spare.
pub(super) fn ways_out(row: Row, rings: &[Wrapped], qlc: &Bursts) -> Row {
    let over = format!("against {} of wrapping", gigabytes(qlc.stale));
    let row = row
        .words(
            "1 TB of QLC: trimmed, with a minute's rest",
            "faster than wrapping",
            qlc.rest_helps(),
            format!("{} {over}", gigabytes(qlc.rested)),
        )
        .words(
            "1 TB of QLC: trimmed, without a rest",
            "no faster than wrapping",
            qlc.trimmed <= VISIBLY * qlc.stale,
            format!("{} {over}", gigabytes(qlc.trimmed)),
        );
    let row = rings.iter().fold(row, one_way_out);
    let (least, most) = range(rings.iter().map(|ring| ring.none.erase_wait));
    let (_, still) = range(rings.iter().map(|ring| ring.spared.erase_wait));
    row.words(
        "what a ring without a trim loses to erases, which erasing ahead could gain",
        "much",
        most > VISIBLY - 1.0,
        format!("{} to {} of its rate", percent(least), percent(most)),
    )
    .noted(format!(
        "with a tenth of the time to spare a die still has no pause as long as an erase: programs that come meanwhile wait, for up to {} of \
         its time, and catch up afterwards",
        percent(still)
    ))
    .contradicted_in_words(
        "blocks are erased ahead as the document says, but waiting for that was never what made wrapping slow",
    )
}

fn one_way_out(row: Row, ring: &Wrapped) -> Row {
    let Wrapped { model, basis, none, trimmed, spared } = ring;
    let faster =
        each(trimmed).zip(each(none)).is_some_and(|(with, without)| with > VISIBLY * without);
    let lost = if spared.lossless { "nothing lost" } else { "with losses" };
    row.on(basis.clone())
        .words(
            format!("{model}, trimmed ahead, without time to spare"),
            "no faster than wrapping",
            !faster,
            format!("{} against {}", sustained(trimmed), sustained(none)),
        )
        .noted(format!(
            "the slowest 500th of the time in {:.1} laps of a ring of {COPIES} drives, at a higher rate than they can write",
            none.laps
        ))
        .words(
            format!("{model}, trimmed ahead, with a tenth of its time to spare: blocks erased before they are needed"),
            "all",
            spared.erased_ahead > NEARLY_ALL && spared.lossless,
            format!("{} at {}, {lost}", percent(spared.erased_ahead), sustained(spared)),
        )
}

fn sustained(ring: &RingOutcome) -> String {
    each(ring).map_or("no rate".to_owned(), gigabytes)
}

fn range(values: impl Iterator<Item = f64>) -> (f64, f64) {
    values.fold((f64::INFINITY, 0.0), |(least, most), value| (least.min(value), most.max(value)))
}

fn percent(share: f64) -> String {
    format!("{:.1} %", 100.0 * share)
}

fn gigabytes(rate: f64) -> String {
    format!("{:.2} GB/s", rate / 1e9)
}

/// Bytes that show how fast a drive takes more.
const BURST_BYTES: u64 = 8 << 30;
const BURST_BLOCK: u64 = 1 << 20;

/// The folder of what is done beside the fill.
const STEPS: &str = "wrap";

fn burst(lab: &mut Lab<'_>, name: &str) -> Result<f64, LabError> {
    let stream = Stream {
        name: "burst".to_owned(),
        write: 1,
        block: Blocks::of(BURST_BLOCK),
        size: Some(Size(BURST_BYTES)),
        depth: 8,
        ..Stream::default()
    };
    let step = lab.step(STEPS, name, &once(name, BURST_BYTES, stream))?;
    Ok(step.measurement.result("burst", Verb::Write).map_or(0.0, |result| result.bytes_per_s))
}

fn trim(lab: &mut Lab<'_>, name: &str, bytes: u64) -> Result<(), LabError> {
    let stream = Stream {
        name: "trim".to_owned(),
        trim: 1,
        block: Blocks::of(1 << 30),
        ..Stream::default()
    };
    lab.step(STEPS, name, &once(name, bytes, stream)).map(|_| ())
}

fn once(name: &str, bytes: u64, stream: Stream) -> Workload {
    crate::experiment::Scope::default().bytes_once(name, bytes, vec![stream])
}
