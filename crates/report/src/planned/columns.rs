//! The tables of a plan in words: what each limit asks for on every drive, and what the arrays come to, in tables that fit a terminal.

use base::units::grouped;
use plan::Requirement;
use plan::answer::{Answer, Array, Design};
use plan::explain::{bytes, factor, seconds};
use plan::limits::Limit;
use plan::requirement::Term;

use crate::text::{self, TextColumn as Column};

/// How long drives last: in years, or in days of a year that they don't reach.
fn life(years: f64) -> String {
    if years < 1.0 {
        format!("{} d", factor(years * 365.0))
    } else {
        format!("{} y", factor(years))
    }
}

/// What a plan's tables show of an answer.
pub(super) struct Shown<'a> {
    requirement: &'a Requirement,
    designs: &'a [Design],
}

impl<'a> Shown<'a> {
    pub(super) fn new(requirement: &'a Requirement, answer: &'a Answer) -> Self {
        Self { requirement, designs: &answer.designs }
    }

    /// What the first columns count, a line each.
    pub(super) fn legend(&self) -> Vec<String> {
        let phase = if self.requirement.wraps() {
            "their slowest phase"
        } else {
            "the slowest phase that they reach"
        };
        let rate = if self.requirement.is_adaptive() { "adaptive" } else { "rate" };
        let mut asking = vec![rate];
        asking.extend(self.limits().iter().map(|limit| self.head(*limit)));
        let most = match asking.as_slice() {
            [only] => format!("as many as {only} says"),
            [first @ .., last] => format!("the most of {} and {last}", first.join(", ")),
            [] => String::new(),
        };
        let more = match (self.requirement.parity, self.requirement.spare) {
            (0, 0) => "",
            (_, 0) => ", and parity",
            (0, _) => ", and spares",
            _ => ", and parity and spares",
        };
        let mut lines = vec![
            format!("rate: drives that sustain it in {phase}, at its slowest moments"),
            "adaptive: drives that sustain it by the mean of that phase, with buffers for slow moments"
                .to_owned(),
            format!("drives: {most}{more}"),
        ];
        if self.designs.iter().any(Design::is_described) {
            lines.push(
                "unknown: what a drive's size, rate and endurance don't tell; such drives are counted by rate"
                    .to_owned(),
            );
        }
        lines
    }

    /// Drives by rate, what keeping, life and the host add, and the total.
    pub(super) fn counts(&self) -> Vec<String> {
        let requirement = self.requirement;
        let limits = self.limits();
        let mut columns = vec![
            self.number("rate", |design| design.stripe_rate_drives),
            self.number("adaptive", |design| design.adaptive_rate_drives),
        ];
        if !requirement.is_adaptive() {
            let buffers = |design: &Design| design.adaptive_rate_buffer_bytes.map(bytes);
            columns.push(self.right("buffers", buffers));
        }
        let need = |limit: Limit| move |design: &Design| super::need(design, limit);
        columns.extend(limits.iter().map(|limit| self.number(self.head(*limit), need(*limit))));
        for (head, more) in [("parity", requirement.parity), ("spare", requirement.spare)] {
            if more > 0 {
                columns.push(self.right(head, |_| Some(format!("+{more}"))));
            }
        }
        columns.push(self.number("drives", |design| Some(design.array.as_ref()?.drives)));
        let cost = |design: &Design| design.array.as_ref()?.cost;
        if self.designs.iter().any(|design| cost(design).is_some()) {
            let words =
                |cost: Option<f64>| cost.map_or("-".to_owned(), |cost| format!("{cost:.0}"));
            columns.push(self.right("cost", |design| Some(words(cost(design)))));
        }
        if !limits.is_empty() {
            columns.push(self.of_arrays("binds", false, |array| Some(array.binds.to_string())));
        }
        self.tables(columns)
    }

    /// What the arrays come to, and what that rests on.
    pub(super) fn arrays(&self) -> Vec<String> {
        let keeps = if self.requirement.wraps() { "keeps" } else { "records" };
        let years = |array: &Array| array.life_years.map(life);
        let mut columns = vec![
            self.of_arrays("slowest phase", false, |array| Some(array.slowest.to_string())),
            self.of_arrays(keeps, true, |array| Some(seconds(array.retention_s))),
            self.of_arrays("lasts", true, years),
        ];
        if self.requirement.is_adaptive() {
            let buffers = |design: &Design| {
                let array = design.array.as_ref().filter(|_| !design.is_described())?;
                Some(bytes(array.buffer_bytes))
            };
            columns.push(self.right("buffers", buffers));
        }
        let evidence = |design: &Design| design.evidence.map(|trust| trust.to_string());
        columns.push(Column { right: false, ..self.right("evidence", evidence) });
        self.tables(columns)
    }

    /// Limits other than the rate: those that the user set, and those that need more drives than the rate does.
    fn limits(&self) -> Vec<Limit> {
        let host = &self.requirement.host;
        let slots = host.lanes.is_some() || host.generation.is_some() || host.nic.is_some();
        let binds = |limit: Limit| {
            let array = |design: &Design| Some(design.array.as_ref()?.binds == limit);
            self.designs.iter().any(|design| array(design).unwrap_or(false))
        };
        let told = |limit: &Limit| match limit {
            Limit::Rate => false,
            Limit::Capacity => self.requirement.term != Term::Whole,
            Limit::Endurance => self.requirement.life_years.is_some(),
            Limit::Link => slots || binds(Limit::Link),
            Limit::Uplink => host.uplink.is_some(),
            Limit::Memory => host.memory.is_some(),
        };
        super::LIMITS.into_iter().filter(told).collect()
    }

    /// A limit at the head of a column, as it is asked for.
    fn head(&self, limit: Limit) -> &'static str {
        match limit {
            Limit::Rate => "rate",
            Limit::Capacity if self.requirement.wraps() => "keep",
            Limit::Capacity => "mission",
            Limit::Endurance => "life",
            Limit::Link => "link",
            Limit::Uplink => "uplink",
            Limit::Memory => "memory",
        }
    }

    fn number(&self, head: &'static str, of: impl Fn(&Design) -> Option<u32>) -> Column {
        self.right(head, |design| of(design).map(|number| grouped(number.into())))
    }

    fn of_arrays(
        &self,
        head: &'static str,
        right: bool,
        of: impl Fn(&Array) -> Option<String>,
    ) -> Column {
        Column { right, ..self.right(head, |design| of(design.array.as_ref()?)) }
    }

    fn right(&self, head: &'static str, of: impl Fn(&Design) -> Option<String>) -> Column {
        // Of a described drive with an answer, what there is no figure for is not known.
        let none = |design: &Design| {
            if design.is_described() && design.array.is_some() { "unknown" } else { "-" }.to_owned()
        };
        let cells = self.designs.iter().map(|design| of(design).unwrap_or_else(|| none(design)));
        Column::right(head, cells)
    }

    /// Tables of these columns side by side, each with the drives' names first.
    fn tables(&self, columns: Vec<Column>) -> Vec<String> {
        let names = self.designs.iter().map(|design| design.drive.clone());
        text::tables(&Column::left("drive", names), columns, 0)
    }
}
