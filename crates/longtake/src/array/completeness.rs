//! How complete an answer about an array is: what is missing, overwritten or unreadable of what it should cover.

use base::Timestamp;
use base::units::counted;
use format::Count;

use super::account::ReadAccount;
use super::contents::Take;
use super::open::Opened;
use crate::instant::utc;

/// Which members of an array there are.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Members {
    /// Numbers of those that can't be opened.
    pub missing: Vec<u16>,
    /// Numbers of those that are out of date.
    pub stale: Vec<u16>,
    parity: u8,
}

impl Members {
    pub(super) fn of(opened: &Opened) -> Self {
        let members = (0u16..).zip(&opened.image.members);
        Self {
            missing: members.filter(|(_, member)| member.is_missing()).map(|(at, _)| at).collect(),
            stale: opened.stale().iter().map(|stale| stale.member).collect(),
            parity: opened.image.superblock.parity,
        }
    }

    /// Whether parity makes up for those that are missing.
    pub fn suffice(&self) -> bool {
        self.missing.len() <= usize::from(self.parity)
    }
}

/// How complete an answer is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Completeness {
    /// Whether the answer covers every packet that was stored in the takes and the span that were asked for. What a ring overwrote
    /// counts against it only if a span was asked for. What was lost before it could be stored is in the ledger.
    pub complete: bool,
    /// Which members there are.
    pub members: Members,
    /// Packets that the array should hold and doesn't.
    pub missing: Count,
    /// Packets in chunks that are damaged, or that a drive failed to read.
    pub unreadable: Count,
    /// Packets that the ring overwrote before they were listed, in takes of which something is left.
    pub overwritten: Count,
    /// Packets that the ring overwrote while they were being read.
    pub overtaken: Count,
    /// Time of the first packet after which some are overwritten.
    pub overwritten_from: Option<Timestamp>,
    /// Time of the last packet before which some are overwritten, if it is known.
    pub overwritten_to: Option<Timestamp>,
    /// Chunks that come from a member that is out of date, although the ring has overwritten them since.
    pub outdated_chunks: u64,
}

impl Completeness {
    /// Of packets that were read, or are about to be.
    pub fn of_packets(read: &ReadAccount) -> Self {
        let from = read.holes.iter().map(|hole| hole.from_ns).min();
        let to = read.holes.iter().map(|hole| hole.to_ns).filter(|&to| to != u64::MAX).max();
        Self {
            complete: read.is_complete(),
            members: read.members.clone(),
            missing: read.missing,
            unreadable: read.unreadable.count,
            overwritten: read.holes.iter().fold(Count::ZERO, |sum, hole| sum + hole.count),
            overtaken: read.overwritten.count,
            overwritten_from: from.map(Timestamp::from_nanos),
            overwritten_to: to.map(Timestamp::from_nanos),
            outdated_chunks: read.overwritten_chunks,
        }
    }

    /// What the end of a file of packets says of it: a line for each thing.
    pub(super) fn at_the_end(&self) -> Vec<String> {
        self.lines("it has every packet of the selection that was stored")
    }

    /// What its header says, which is written before anything is read: a file that was cut off must not claim to be whole.
    pub(super) fn at_the_start(&self) -> Vec<String> {
        self.lines("nothing of the selection was missing when the extraction began")
    }

    fn lines(&self, if_complete: &str) -> Vec<String> {
        let packets = |what: &str, count: Count| {
            let told = || format!("{what}: {}", counted(count.packets, "packet"));
            (count.packets > 0).then(told)
        };
        let outdated = || {
            let chunks = counted(self.outdated_chunks, "chunk");
            format!("from a member that is out of date: {chunks}")
        };
        let until = self.overwritten_to.map(|to| format!(", the last before {}", utc(to)));
        let overwritten = packets("overwritten by the ring", self.overwritten);
        let lines = [
            (self.complete && self.overwritten.is_zero()).then(|| if_complete.to_owned()),
            self.missing_members(),
            packets("missing from the takes", self.missing),
            overwritten.map(|line| line + &until.unwrap_or_default()),
            (self.outdated_chunks > 0).then(outdated),
            packets("could not be read", self.unreadable),
            packets("overwritten by the ring before they were read", self.overtaken),
        ];
        lines.into_iter().flatten().collect()
    }

    fn missing_members(&self) -> Option<String> {
        let missing: Vec<String> = self.members.missing.iter().map(u16::to_string).collect();
        let by_parity = match self.members.suffice() {
            true => "; parity gives back what was on them",
            false => "",
        };
        (!missing.is_empty()).then(|| format!("missing members: {}{by_parity}", missing.join(", ")))
    }

    /// Of takes of an array that were listed.
    pub(super) fn of_takes(opened: &Opened, takes: &[Take]) -> Self {
        let sum =
            |of: fn(&Take) -> Count| takes.iter().fold(Count::ZERO, |sum, take| sum + of(take));
        let account = ReadAccount {
            members: Members::of(opened),
            missing: sum(|take| take.missing()),
            overwritten_chunks: opened.overwritten,
            holes: takes.iter().flat_map(|take| take.holes.iter().copied()).collect(),
            ..ReadAccount::default()
        };
        Self { overwritten: sum(|take| take.overwritten), ..Self::of_packets(&account) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_complete_if_parity_makes_up_for_the_members_that_are_missing() {
        // A gap is noticed by the chunks behind it, and nothing lies behind the last one.
        for (missing, parity, complete) in
            [(vec![], 0, true), (vec![1], 1, true), (vec![1], 0, false), (vec![0, 1], 1, false)]
        {
            let members = Members { missing, stale: Vec::new(), parity };
            let read = ReadAccount { members, ..ReadAccount::default() };
            let completeness = Completeness::of_packets(&read);
            assert_eq!(completeness.complete, complete, "{completeness:?}");
            let every = "it has every packet of the selection that was stored".to_owned();
            assert_eq!(completeness.at_the_end().contains(&every), complete, "{completeness:?}");
            assert!(!completeness.at_the_start().contains(&every), "{completeness:?}");
        }
    }

    #[test]
    fn nothing_was_missing_is_never_said_beside_what_was() {
        let overwritten = Count::new(3, 60);
        let read = ReadAccount::default();
        let completeness = Completeness { overwritten, ..Completeness::of_packets(&read) };
        assert!(
            completeness.complete,
            "an answer without a span is complete, whatever a ring has overwritten"
        );
        assert_eq!(completeness.at_the_start(), ["overwritten by the ring: 3 packets"]);
    }

    #[test]
    fn one_line_names_each_thing_with_its_number() {
        let completeness = Completeness {
            complete: false,
            members: Members { missing: vec![0, 4], stale: Vec::new(), parity: 2 },
            missing: Count::new(1, 60),
            unreadable: Count::new(2000, 60),
            overwritten: Count::new(3, 60),
            overtaken: Count::new(4, 60),
            overwritten_from: None,
            overwritten_to: Some(Timestamp::from_nanos(1_000_000_000)),
            outdated_chunks: 1,
        };
        let expected = [
            "missing members: 0, 4; parity gives back what was on them",
            "missing from the takes: 1 packet",
            "overwritten by the ring: 3 packets, the last before 1970-01-01T00:00:01Z",
            "from a member that is out of date: 1 chunk",
            "could not be read: 2,000 packets",
            "overwritten by the ring before they were read: 4 packets",
        ];
        assert_eq!(completeness.at_the_end(), expected);
    }
}
