//! What a recording tells while it runs and at its end: a status for people, JSON lines for programs.

use std::collections::VecDeque;
use std::io::IsTerminal;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use anyhow::Result;
use base::{ByteSize, Duration, Instant, Rate};
use device::shell::quoted;
use format::{Count, Stage};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use recorder::{Event, ParityProgress, Recorder};
use serde_json::{Value, json};
use source::packer::Progress;
use uuid::Uuid;

use crate::arguments::RecordArguments;
use crate::outlet;
use crate::teller::{Line, Teller};
use longtake::instant::utc;

/// How often progress is shown on a terminal and in JSON.
const SHOW_EVERY: Duration = Duration::from_millis(500);
/// How often a line of progress is printed where it stays, in a log.
const LOG_EVERY: Duration = Duration::from_secs(2);

/// What stays the same during a recording.
#[derive(Debug)]
pub struct Totals {
    /// The array's name.
    pub array: String,
    /// Its identity.
    pub array_uuid: Uuid,
    /// The source as the user wrote it.
    pub source: String,
    /// Chunk buffers.
    pub buffers: u32,
    /// The members' targets.
    pub drives: Vec<String>,
    /// The array as the user wrote it.
    pub to: String,
    /// Whether the drives are simulated: time is virtual, and afterwards there is nothing to look at.
    pub simulated: bool,
}

/// Where and how a recording tells.
pub struct Status {
    json: bool,
    quiet: bool,
    /// Whether progress replaces itself on a terminal.
    terminal: bool,
    teller: Option<Teller>,
    /// Lines that must be told and had to wait.
    unsent: VecDeque<Line>,
    totals: Totals,
    progress: Arc<Progress>,
    start: Instant,
    shown: Instant,
    /// Bytes written when last shown.
    written: u64,
    /// Acknowledged since last told, by sequence number.
    acknowledged: Vec<u64>,
    buffers_most: u32,
    /// Whether the user was told that packets are truncated.
    told_truncated: bool,
}

impl Status {
    /// For a recording that is about to start.
    ///
    /// # Errors
    /// If the system gives no thread to tell from.
    pub fn new(
        arguments: &RecordArguments,
        totals: Totals,
        progress: Arc<Progress>,
    ) -> Result<Self> {
        let quiet = arguments.quiet || arguments.json;
        let bar = (!quiet && std::io::stderr().is_terminal()).then(|| {
            let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr());
            match ProgressStyle::with_template("{msg}") {
                Ok(style) => bar.with_style(style),
                Err(_) => bar,
            }
        });
        Ok(Self {
            json: arguments.json,
            quiet,
            terminal: bar.is_some(),
            teller: Some(Teller::start(bar)?),
            unsent: VecDeque::new(),
            totals,
            progress,
            start: Instant::START,
            shown: Instant::START,
            written: 0,
            acknowledged: Vec::new(),
            buffers_most: 0,
            told_truncated: false,
        })
    }

    /// Has a line told, or drops it if so many wait that it would be old.
    fn tell(&self, line: Line) -> bool {
        self.teller.as_ref().is_some_and(|teller| teller.tell(line).is_ok())
    }

    /// Has a line told, later if it must be.
    fn insist(&mut self, line: Line) {
        self.unsent.push_back(line);
        while let (Some(teller), Some(line)) = (&self.teller, self.unsent.pop_front()) {
            if let Err(line) = teller.tell(line) {
                self.unsent.push_front(line);
                return;
            }
        }
    }

    /// The recording starts at `now`.
    pub fn started(&mut self, now: Instant, core: &Recorder) {
        (self.start, self.shown) = (now, now);
        if self.json {
            let take = core.take();
            let line = json!({
                "event": "started", "take": take.uuid, "started": utc(take.started),
                "array": self.totals.array, "array_uuid": self.totals.array_uuid,
                "members": self.totals.drives, "source": self.totals.source,
                "buffers": self.totals.buffers, "first_sequence": take.first_sequence,
            });
            self.insist(Line::Json(line.to_string()));
        }
    }

    /// When something is to be shown next.
    pub fn next(&self) -> Instant {
        self.shown + if self.terminal || self.json { SHOW_EVERY } else { LOG_EVERY }
    }

    /// Tells what happened.
    pub fn event(&mut self, now: Instant, event: &Event) {
        match event {
            Event::Acknowledged { sequence, .. } => self.acknowledged.push(*sequence),
            Event::Durable { .. } | Event::DurableChunk { .. } | Event::Finished => {}
            Event::Reused { member, segment, last_ns } if self.json => {
                let line = json!({
                    "event": "reused", "member": member, "segment": segment, "last_ns": last_ns,
                });
                // Progress says up to when, should this one find no room.
                self.tell(Line::Json(line.to_string()));
            }
            Event::Reused { .. } => {}
            other if self.json => {
                let name = match other {
                    Event::MemberFailed { .. } => "member_failed",
                    Event::TrimFailed { .. } => "trim_failed",
                    Event::ArrayFull { .. } => "array_full",
                    Event::ParityReduced { .. } => "parity_reduced",
                    _ => "no_member_left",
                };
                let member = match other {
                    Event::MemberFailed { member, .. } | Event::TrimFailed { member, .. } => {
                        self.totals.drives.get(usize::from(*member))
                    }
                    _ => None,
                };
                let line = json!({
                    "event": name, "target": member, "text": other.to_string(),
                    "after_s": now.since(self.start).as_secs_f64(),
                });
                self.insist(Line::Json(line.to_string()));
            }
            other => self.insist(Line::Text(format!("longtake: {other}"))),
        }
    }

    /// What was truncated to fit so far, packed but not yet placed included.
    fn truncated(&self) -> Count {
        let Progress { truncated_packets, truncated_bytes, .. } = &*self.progress;
        Count::new(
            truncated_packets.load(Ordering::Relaxed),
            truncated_bytes.load(Ordering::Relaxed),
        )
    }

    /// Tells the first time that something is truncated.
    fn tell_truncated(&mut self, now: Instant) {
        let truncated = self.truncated();
        if self.told_truncated || truncated.is_zero() {
            return;
        }
        self.told_truncated = true;
        let text = if truncated.packets > 0 {
            "a packet does not fit a chunk and is truncated; the ledger counts all that are. \
             An array with longer chunks (--chunk) keeps more of them"
        } else {
            "the texts of an interface description are longer than 1,000 bytes and are truncated"
        };
        self.insist(if self.json {
            let line = json!({
                "event": "truncated", "text": text, "truncated": outlet::count_json(truncated),
                "after_s": now.since(self.start).as_secs_f64(),
            });
            Line::Json(line.to_string())
        } else {
            Line::Text(format!("longtake: note: {text}"))
        });
    }

    /// Shows progress if it is time to; acknowledgements are told each time in JSON.
    pub fn show(&mut self, now: Instant, core: &Recorder) {
        self.buffers_most = self.buffers_most.max(core.buffers_held());
        self.tell_truncated(now);
        if self.json && !self.acknowledged.is_empty() {
            let (acknowledged, durable) = (core.acknowledged(), core.durable());
            let line = self.acknowledged_line(acknowledged, durable);
            if self.tell(line) {
                self.acknowledged.clear();
            }
        }
        if now < self.next() {
            return;
        }
        let written: u64 = core.members().map(|m| m.written).sum();
        let rate = Rate::of(written - self.written, now.since(self.shown));
        let average = Rate::of(written, now.since(self.start));
        (self.written, self.shown) = (written, now);
        let fill = f64::from(core.buffers_held()) / f64::from(self.totals.buffers);
        let offered = self.progress.offered_packets.load(Ordering::Relaxed);
        let lost = |stage: Stage| self.progress.lost_packets[stage.index()].load(Ordering::Relaxed);
        let lost_sum: u64 =
            Stage::ALL.iter().filter(|&&s| s != Stage::Filtered).map(|&s| lost(s)).sum();
        if self.json {
            let members: Vec<_> = core
                .members()
                .map(|m| json!({"written": m.written, "rate": m.rate, "working": m.working}))
                .collect();
            let line = json!({
                "event": "progress", "after_s": now.since(self.start).as_secs_f64(),
                "rate": rate.0, "average_rate": average.0, "buffer_fill": fill,
                "offered_packets": offered, "lost_packets": lost_sum,
                "truncated": outlet::count_json(self.truncated()), "members": members,
                "ledger": outlet::ledger_json(core.ledger()), "reused_to_ns": core.reused_to_ns(),
                "parity": core.parity().map(parity_json),
            });
            self.tell(Line::Json(line.to_string()));
            return;
        }
        if self.quiet {
            return;
        }
        let members: Vec<String> = core
            .members()
            .map(|m| if m.working { format!("{:.2}", m.rate / 1e9) } else { "FAILED".to_owned() })
            .collect();
        let truncated = match self.truncated().packets {
            0 => String::new(),
            packets => format!(", truncated {}", outlet::number(packets)),
        };
        let line = format!(
            "{}  now {rate}, average {average}\nbuffers {:.0} %, members {} GB/s, offered {} packets, lost {}{truncated}",
            now.since(self.start),
            fill * 100.0,
            members.join(" "),
            outlet::number(offered),
            outlet::number(lost_sum),
        );
        self.tell(Line::Status(line));
    }

    fn acknowledged_line(&self, acknowledged: Count, durable: Count) -> Line {
        let line = json!({
            "event": "acknowledged", "chunks": self.acknowledged,
            "acknowledged": outlet::count_json(acknowledged), "durable": outlet::count_json(durable),
        });
        Line::Json(line.to_string())
    }

    /// Prints the account.
    ///
    /// # Errors
    /// If standard output is gone.
    pub fn finished(&mut self, now: Instant, core: &Recorder, notes: &[String]) -> Result<()> {
        self.tell_truncated(now);
        let mut last = std::mem::take(&mut self.unsent);
        if self.json && !self.acknowledged.is_empty() {
            last.push_back(self.acknowledged_line(core.acknowledged(), core.durable()));
        }
        if let Some(teller) = self.teller.take() {
            teller.finish(last);
        }
        let ledger = core.ledger();
        let written: u64 = core.members().map(|m| m.written).sum();
        let elapsed: Duration = now.since(self.start);
        let average = Rate::of(written, elapsed);
        if self.json {
            return outlet::json_line(&json!({
                "event": "finished", "take": core.take().uuid, "after_s": elapsed.as_secs_f64(),
                "written": written, "average_rate": average.0, "ledger": outlet::ledger_json(ledger),
                "acknowledged": outlet::count_json(core.acknowledged()),
                "durable": outlet::count_json(core.durable()),
                "buffers": self.totals.buffers, "buffers_most": self.buffers_most, "notes": notes,
                "simulated": self.totals.simulated,
                "reused_to_ns": core.reused_to_ns(),
                "parity": core.parity().map(parity_json),
            }));
        }
        for note in notes {
            outlet::tell(&format!("longtake: note: {note}"));
        }
        let Count { packets, .. } = ledger.stored;
        let virtual_time = if self.totals.simulated { " of virtual time" } else { "" };
        outlet::text(&format!(
            "take {}: {} packets in {elapsed}{virtual_time}, {} written to {} members at {average}\n",
            core.take().uuid,
            outlet::number(packets),
            ByteSize(written),
            self.totals.drives.len(),
        ))?;
        outlet::text(&outlet::ledger_table(ledger))?;
        if let Some(parity) = core.parity() {
            outlet::text(&parity_words(&parity))?;
        }
        if core.reused_to_ns() > 0 {
            outlet::text(&format!(
                "the ring has wrapped: nothing is missing since {}",
                utc(base::Timestamp::from_nanos(core.reused_to_ns()))
            ))?;
        }
        let fill = 100.0 * f64::from(self.buffers_most) / f64::from(self.totals.buffers);
        outlet::text(&format!("\nbuffers were filled to {fill:.0} % at most"))?;
        if self.totals.simulated {
            return Ok(());
        }
        let to = quoted(&self.totals.to);
        outlet::text(&format!(
            "look at it:   longtake takes {to}\nget it back:  longtake extract {to} --take last -o take.pcapng"
        ))
    }
}

fn parity_json(parity: ParityProgress) -> Value {
    let ParityProgress { parity, groups, bytes, chunks_short } = parity;
    json!({"parity": parity, "groups": groups, "bytes": bytes, "chunks_short": chunks_short})
}

fn parity_words(parity: &ParityProgress) -> String {
    let short = match parity.chunks_short {
        0 => String::new(),
        short => format!("; {} chunks HAVE LESS OR NONE", outlet::number(short)),
    };
    format!(
        "parity {}: {} groups, {} of parity{short}",
        parity.parity,
        outlet::number(parity.groups),
        ByteSize(parity.bytes)
    )
}
