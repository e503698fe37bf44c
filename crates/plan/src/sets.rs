//! Separate NVM Sets: what it costs a recording to leave a part of each drive's flash to readers, and which data they can read when.
//!
//! Data can only be read undisturbed from a set that is not being written, so recorder and readers take turns: the recorder writes to one
//! part of every drive for a while and readers read the other parts, until it moves on to the next part.

use profile::name;
use serde::Serialize;
use ssd::spec::SetLayout;

use crate::answer::Array;
use crate::explain::{drives, factor, rate, seconds};
use crate::limits::{Case, Subject};
use crate::requirement::{Requirement, Sets};

/// What separate sets come to on a drive.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Split {
    /// How sets divide the flash: `horizontal` or `vertical`.
    pub layout: &'static str,
    /// NVM Sets of a drive.
    pub sets: u32,
    /// Parts that are recorded to in turn: namespaces on sets of their own.
    pub parts: u32,
    /// The share of the flash that is recorded to at a time.
    pub share: f64,
    /// How long each part is recorded to, in seconds; as long a packet waits at most until it lies apart from the writing.
    pub turn_s: f64,
    /// The share of what is held that lies apart from the writing at any time.
    pub apart_share: f64,
    /// What a drive writes to one part, in the slowest phase, bytes a second: readers take nothing of it.
    pub write_bytes_per_s: f64,
    /// What it would write with all its flash, less what readers took of its time there.
    pub shared_write_bytes_per_s: Option<f64>,
    /// What a drive reads from the other parts, as readers do, bytes a second; None if that isn't known.
    pub read_bytes_per_s: Option<f64>,
    /// Drives in all if readers and the recorder shared all flash; None if no number would do.
    pub shared_drives: Option<u32>,
    /// Those of them that hold data.
    pub shared_data_drives: Option<u32>,
    /// How long data would be kept, or could be recorded, on as many drives with shared sets, in seconds.
    pub shared_retention_s: Option<f64>,
    /// The arithmetic, a line each.
    pub arithmetic: Vec<String>,
}

impl Split {
    /// Of a case with an array that will do; None if its readers share all flash with the recorder.
    pub fn of(case: &Case<'_>, array: &Array) -> Option<Self> {
        let (Sets::Separate { turn }, Some(parts)) = (case.requirement.sets, case.subject.parts)
        else {
            return None;
        };
        let requirement = Requirement { sets: Sets::Shared, ..case.requirement.clone() };
        let subject = Subject::new(case.subject.candidate, &requirement).ok();
        let shared = subject.as_ref().map(|subject| Case::new(&requirement, subject));
        let placement = requirement.placement;
        let answer = shared.as_ref().and_then(|shared| shared.size(placement).answer);
        let shared_data_drives = answer.map(|(data, _)| data);
        let beside = requirement.parity + requirement.spare;
        let of_shared = shared.as_ref().zip(shared_data_drives);
        let mut split = Self {
            layout: match parts.layout {
                SetLayout::Horizontal => "horizontal",
                SetLayout::Vertical => "vertical",
            },
            sets: parts.sets,
            parts: parts.count,
            share: parts.share,
            turn_s: turn.as_secs_f64(),
            apart_share: 1.0 - 1.0 / f64::from(parts.count),
            write_bytes_per_s: case.each(array.data_drives, placement),
            shared_write_bytes_per_s: of_shared
                .map(|(shared, drives)| shared.each(drives, placement) * shared.left(drives)),
            read_bytes_per_s: case.read().map(|read| read.value * parts.quiet_share()),
            shared_drives: shared_data_drives.map(|data| data + beside),
            shared_data_drives,
            shared_retention_s: shared.as_ref().map(|shared| {
                let usable = shared.subject.usable_bytes(requirement.wraps(), placement);
                let data = usable * f64::from(array.data_drives);
                requirement.duty.span_of(data / shared.load.space_bytes_per_s)
            }),
            arithmetic: Vec::new(),
        };
        split.arithmetic = split.lines(case, of_shared, array);
        Some(split)
    }

    fn lines(
        &self,
        case: &Case<'_>,
        shared: Option<(&Case<'_>, u32)>,
        array: &Array,
    ) -> Vec<String> {
        let mut lines = self.lines_of_rates(case, shared, array);
        lines.extend(self.lines_of_holding(case, array));
        lines.push(match self.shared_drives {
            Some(shared) => format!("{}; {shared} if all flash is shared", drives(array.drives)),
            None => {
                format!("{}; no number would do if all flash is shared", drives(array.drives))
            }
        });
        lines
    }

    /// How fast a drive is written and read beside that.
    fn lines_of_rates(
        &self,
        case: &Case<'_>,
        shared: Option<(&Case<'_>, u32)>,
        array: &Array,
    ) -> Vec<String> {
        let (parts, turn) = (self.parts, seconds(self.turn_s));
        let all = self.write_bytes_per_s / self.share;
        let readers = case.requirement.readers;
        let how = match readers.random_bytes {
            Some(size) => format!("{} at random", name::block(size.into())),
            None => "long reads".to_owned(),
        };
        let mut lines = vec![
            format!(
                "{parts} namespaces on {} {} NVM Sets: it is recorded to one of them on every drive for {turn}, then to the next; \
                 readers read from the others",
                self.sets, self.layout
            ),
            format!(
                "a drive writes {} x {:.2} of the flash = {}, of which readers take nothing",
                rate(all),
                self.share,
                rate(self.write_bytes_per_s)
            ),
        ];
        if let (Some((shared, drives)), Some(each)) = (shared, self.shared_write_bytes_per_s) {
            lines.push(format!(
                "sharing all flash it would write {} x {:.3} left by readers = {}",
                rate(each / shared.left(drives).max(f64::MIN_POSITIVE)),
                shared.left(drives),
                rate(each)
            ));
        }
        if let Some(read) = self.read_bytes_per_s {
            lines.push(format!(
                "readers: {} of {how}, from {} that read {} each in the other parts ({:.2} of the flash)",
                rate(readers.bytes_per_s()),
                drives(array.data_drives),
                rate(read),
                self.share * f64::from(parts - 1),
            ));
        }
        lines
    }

    /// What is held for how long, and when readers get at it.
    fn lines_of_holding(&self, case: &Case<'_>, array: &Array) -> Vec<String> {
        let mut lines = vec![format!(
            "what is recorded lies apart from the writing after {} at the latest; {} % of what is held do at a time",
            seconds(self.turn_s),
            factor(self.apart_share * 100.0)
        )];
        if case.turns_s() > 0.0 {
            lines.push(format!(
                "a part that had its turn long ago holds older data than the next one gives up: {} are held beyond what is kept",
                seconds(case.turns_s())
            ));
        }
        if let Some(shared) = self.shared_retention_s {
            let holds = if case.requirement.wraps() { "keeps" } else { "records" };
            lines.push(format!(
                "an array of {} {holds} {} in turns, and {} if all flash is shared",
                drives(array.drives),
                seconds(array.retention_s),
                seconds(shared)
            ));
        }
        lines
    }
}
