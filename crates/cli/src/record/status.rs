//! What a recording tells while it runs and at its end: a status for people, JSON lines for programs.

use std::collections::VecDeque;
use std::io::IsTerminal;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::Result;
use base::{ByteSize, Duration, Instant, Rate};
use device::shell::quoted;
use format::Count;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use longtake::Remark;
use longtake::recording::{
    Account, CompleteFile, Notice, Observer, Snapshot, Started, View, Watch,
};
use longtake::service_manager::ServiceManager;
use longtake::text;
use longtake::text::live_line;
use recorder::Event;
use serde_json::json;

use super::reporter::{Line, Reporter};
use crate::arguments::RecordArguments;
use crate::printer;

/// How often progress is shown on a terminal and in JSON.
const SHOW_EVERY: Duration = Duration::from_millis(500);
/// How often a line of progress is printed where it stays, in a log.
const LOG_EVERY: Duration = Duration::from_secs(10);
/// How often the counters are looked at for loss and silence.
const WATCH_EVERY: Duration = Duration::from_millis(500);

/// Where and how a recording tells.
pub struct Status {
    json: bool,
    quiet: bool,
    /// Whether remarks that go without saying are told.
    details: bool,
    /// Whether progress replaces itself on a terminal.
    terminal: bool,
    reporter: Option<Reporter>,
    manager: Option<ServiceManager>,
    /// Set once the recording is to end.
    stop: Arc<AtomicBool>,
    /// Lines that must be told and had to wait.
    unsent: VecDeque<Line>,
    /// The source and the target as the user wrote them.
    source: String,
    target: String,
    /// What is recorded, once it is.
    started: Option<Started>,
    start: Instant,
    shown: Instant,
    /// Bytes written to each member when last shown.
    written: Vec<u64>,
    /// Interval of progress in JSON.
    json_every: Duration,
    watch: Watch,
    watched: Instant,
    /// Acknowledged since last told, by sequence number.
    acknowledged: Vec<u64>,
    /// Whether the user was told that packets are truncated.
    told_truncated: bool,
}

impl Status {
    /// For a recording that is about to start, and that `stop` ends.
    pub fn new(arguments: &RecordArguments, stop: Arc<AtomicBool>) -> Self {
        Self {
            json: arguments.json,
            quiet: arguments.quiet || arguments.json,
            details: !arguments.quiet,
            terminal: false,
            reporter: None,
            manager: ServiceManager::from_environment().unwrap_or_else(|error| {
                printer::tell(&format!("longtake: warning: {error:#}"));
                None
            }),
            stop,
            unsent: VecDeque::new(),
            source: arguments.from.clone(),
            target: arguments.to.clone().unwrap_or_default(),
            started: None,
            start: Instant::START,
            shown: Instant::START,
            written: Vec::new(),
            json_every: arguments.json_every.unwrap_or(SHOW_EVERY),
            watch: Watch::new(Instant::START, "", u32::MAX),
            watched: Instant::START,
            acknowledged: Vec::new(),
            told_truncated: false,
        }
    }

    /// Has a line told, or drops it if so many wait that it would be old.
    fn tell(&self, line: Line) -> bool {
        self.reporter.as_ref().is_some_and(|reporter| reporter.tell(line).is_ok())
    }

    /// Has a line told, later if it must be.
    fn insist(&mut self, line: Line) {
        self.unsent.push_back(line);
        while let (Some(reporter), Some(line)) = (&self.reporter, self.unsent.pop_front()) {
            if let Err(line) = reporter.tell(line) {
                self.unsent.push_front(line);
                return;
            }
        }
    }

    /// Interval of progress.
    fn every(&self) -> Duration {
        match (self.json, self.terminal) {
            (true, _) => self.json_every,
            (false, true) => SHOW_EVERY,
            (false, false) => LOG_EVERY,
        }
    }

    /// What is recorded.
    fn recorded(&self) -> &Started {
        match &self.started {
            Some(started) => started,
            None => unreachable!("nothing is told of a recording before it has started"),
        }
    }

    /// Tells the first time that something is truncated.
    fn tell_truncated(&mut self, elapsed: Duration, truncated: Count) {
        if self.told_truncated || truncated.is_zero() {
            return;
        }
        self.told_truncated = true;
        let text = if truncated.packets > 0 {
            "a packet is longer than a chunk and was truncated; the ledger counts such packets. \
             An array with longer chunks (--chunk) keeps more of them"
        } else {
            "the texts of an interface description are longer than 1,000 bytes and are truncated"
        };
        self.insist(if self.json {
            let line = json!({
                "event": "truncated", "text": text, "truncated": truncated,
                "after_s": elapsed.as_secs_f64(),
            });
            Line::Json(line.to_string())
        } else {
            Line::Text(format!("longtake: note: {text}"))
        });
    }

    /// Shows progress.
    fn show(&mut self, now: Instant, snapshot: &Snapshot) {
        let rates = live_line::rates(&self.written, snapshot, now.since(self.shown));
        self.written = snapshot.members.iter().map(|member| member.written).collect();
        self.shown = now;
        let started = self.recorded();
        if let Some(manager) = &self.manager {
            manager.status(&live_line::line(started, snapshot, &rates, snapshot.truncated.packets));
        }
        if self.json {
            let fill = f64::from(snapshot.buffers_held) / f64::from(started.buffers);
            let rate = (Rate(rates.iter().sum()), rates.as_slice());
            let line = longtake::json::progress(snapshot, started.rejections, rate, fill);
            self.tell(Line::Json(line.to_string()));
            return;
        }
        if self.quiet {
            return;
        }
        let line = live_line::line(started, snapshot, &rates, snapshot.truncated.packets);
        self.tell(Line::Status(line));
    }

    /// Reports loss or silence that begins or ends.
    fn notice(&mut self, elapsed: Duration, notice: Notice) {
        self.insist(if self.json {
            Line::Json(longtake::json::notice(&notice, elapsed).to_string())
        } else {
            Line::Text(format!("longtake: {notice}"))
        });
    }

    fn acknowledged_line(&self, acknowledged: Count, durable: Count) -> Line {
        let line = json!({
            "event": "acknowledged", "chunks": self.acknowledged,
            "acknowledged": acknowledged, "durable": durable,
        });
        Line::Json(line.to_string())
    }

    /// Prints the account. Nobody listening any more does not make the recording a failure.
    pub fn finished(mut self, account: &Account) {
        self.tell_truncated(account.elapsed, account.ledger.truncated);
        let mut last = std::mem::take(&mut self.unsent);
        if self.json && !self.acknowledged.is_empty() {
            last.push_back(self.acknowledged_line(account.acknowledged, account.durable));
        }
        if let Some(reporter) = self.reporter.take() {
            reporter.finish(last);
        }
        let printed = if self.json {
            printer::json_line(&longtake::json::recorded(account))
        } else {
            self.print(account)
        };
        printed.ok();
        for error in &account.errors {
            printer::tell(&format!("longtake: the source ended with an error: {error:#}"));
        }
        if let Some(error) = &account.output_error {
            printer::tell(&format!("longtake: writing ended with an error: {error:#}"));
        }
    }

    /// The account in words.
    fn print(&self, account: &Account) -> Result<()> {
        for note in &account.notes {
            printer::tell(&format!("longtake: note: {note}"));
        }
        let started = &account.started;
        let virtual_time = if started.simulated { " of virtual time" } else { "" };
        let (name, place) = match &account.files {
            Some(files) => (String::new(), files.to_string()),
            None => {
                let members = printer::counted(started.drives.len() as u64, "member");
                (format!("take {}: ", started.take), members)
            }
        };
        printer::text(&format!(
            "{name}{} in {}{virtual_time}, {} written to {place} at {}\n",
            printer::counted(account.ledger.stored.packets, "packet"),
            account.elapsed,
            ByteSize(account.written),
            account.rate(),
        ))?;
        printer::text(&printer::ledger(&account.ledger, started.rejections))?;
        printer::lines(text::recorded_besides(account))?;
        let fill = 100.0 * f64::from(account.buffers_most) / f64::from(started.buffers);
        printer::text(&format!("\nended because {}", account.reason))?;
        printer::text(&format!("buffers were filled to {fill:.0} % at most"))?;
        if started.simulated || account.files.is_some() {
            return Ok(());
        }
        let to = quoted(&self.target);
        printer::text(&format!(
            "list takes:  longtake takes {to}\nextract it:  longtake extract {to} --take last -o take.pcapng"
        ))
    }
}

impl Observer for Status {
    fn remark(&mut self, remark: Remark) {
        if self.details || !matches!(remark, Remark::Detail(_)) {
            printer::tell(&format!("longtake: {remark}"));
        }
    }

    fn started(&mut self, now: Instant, started: &Started) -> longtake::Result<()> {
        (self.start, self.shown, self.watched) = (now, now, now);
        self.watch = Watch::new(now, &self.source, started.buffers);
        let bar = (!self.quiet && std::io::stderr().is_terminal()).then(|| {
            let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr());
            match ProgressStyle::with_template("{msg}") {
                Ok(style) => bar.with_style(style),
                Err(_) => bar,
            }
        });
        self.terminal = bar.is_some();
        self.reporter = Some(Reporter::start(bar)?);
        if self.json {
            self.insist(Line::Json(longtake::json::started(started, &self.source).to_string()));
        }
        self.started = Some(started.clone());
        if let Some(manager) = &self.manager {
            manager.ready();
        }
        Ok(())
    }

    fn next(&self) -> Option<Instant> {
        Some((self.shown + self.every()).min(self.watched + WATCH_EVERY))
    }

    fn event(&mut self, now: Instant, event: &Event) {
        if let Event::Acknowledged { sequence, .. } = event {
            self.acknowledged.push(*sequence);
        }
        let after = now.since(self.start);
        let Some(value) = longtake::json::event(event, self.recorded(), after) else { return };
        let is_reuse = matches!(event, Event::Reused { .. });
        match (self.json, is_reuse) {
            // Progress says up to when, should this one find no room.
            (true, true) => drop(self.tell(Line::Json(value.to_string()))),
            (true, false) => self.insist(Line::Json(value.to_string())),
            (false, true) => {}
            (false, false) => self.insist(Line::Text(format!("longtake: {event}"))),
        }
    }

    fn file(&mut self, now: Instant, file: &CompleteFile) {
        if self.json {
            let line = longtake::json::file(file, now.since(self.start));
            self.insist(Line::Json(line.to_string()));
        }
    }

    fn look(&mut self, view: &View<'_>) {
        if let Some(manager) = &mut self.manager {
            manager.alive();
            if self.stop.load(Ordering::Relaxed) {
                manager.stopping();
            }
        }
        self.tell_truncated(view.elapsed(), view.truncated());
        if self.json && !self.acknowledged.is_empty() {
            let line = self.acknowledged_line(view.acknowledged(), view.durable());
            if self.tell(line) {
                self.acknowledged.clear();
            }
        }
        let now = view.now();
        if self.next().is_none_or(|next| now < next) {
            return;
        }
        let snapshot = view.snapshot();
        self.watched = now;
        for notice in self.watch.look(now, &snapshot) {
            self.notice(snapshot.elapsed, notice);
        }
        if now >= self.shown + self.every() {
            self.show(now, &snapshot);
        }
    }
}
