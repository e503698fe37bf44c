//! What goes on beside the chunks: flushes, the indexes of full segments, trims ahead of the head.

use base::Instant;

use super::tag::Tag;
use super::{NEVER, Phase, Recorder};
use crate::member::{GivenUp, IndexWrite, Indexing, Member};
use crate::protocol::{FlowIndexPart, Output};

impl Recorder {
    /// Closes, trims and flushes, where it is due, on the members that something has happened to, in order of their numbers.
    pub(super) fn look_after_touched(&mut self, now: Instant) {
        let mut touched = std::mem::take(&mut self.touched);
        touched.sort_unstable();
        touched.dedup();
        let mut moved = false;
        for at in touched.drain(..) {
            self.close_segments(at);
            self.trim_ahead(now, at);
            self.flush(now, at);
            let due = self.member_due(at).unwrap_or(NEVER);
            moved |= std::mem::replace(&mut self.dues[at], due) != due;
        }
        self.touched = touched;
        if moved {
            self.first_due = self.dues.iter().fold(NEVER, |first, &due| first.min(due));
        }
    }

    /// When a member wants to be looked after again, if nothing happens to it.
    fn member_due(&self, at: usize) -> Option<Instant> {
        let member = &self.members[at];
        if member.failed.is_some() {
            return None;
        }
        let flush = member.flush_due.filter(|_| member.flushing.is_none());
        let trims = self.trims(member) && member.trimming.is_none();
        let trim = Some(member.trim_due)
            .filter(|_| trims && member.given_up.is_some_and(|g| self.is_told(g)));
        [flush, trim].into_iter().flatten().min()
    }

    pub(super) fn flush_later(&mut self, now: Instant, at: usize) {
        let due = now + self.config.flush_interval;
        let member = &mut self.members[at];
        if member.failed.is_none() && member.flush_due.is_none() {
            member.flush_due = Some(due);
        }
    }

    pub(super) fn flush(&mut self, now: Instant, at: usize) {
        let at_once = self.phase != Phase::Running && self.waiting.is_empty();
        let wraps = self.wraps();
        let member = &mut self.members[at];
        let quiet =
            member.in_flight.is_empty() && member.indexing.is_empty() && member.closing_settled();
        let due = member.flush_due.is_some_and(|due| {
            due <= now || (at_once && quiet) || member.wants_flush(wraps, &self.protected)
        });
        if !due || member.flushing.is_some() || member.failed.is_some() {
            return;
        }
        member.flush_due = None;
        let covered = std::mem::take(&mut member.unflushed);
        let tag = self.tag(Tag::Flush(at as u16));
        let member = &mut self.members[at];
        member.flushing = Some((tag, covered));
        member.flushing_groups = std::mem::take(&mut member.unflushed_groups);
        member.flushes_sent += 1;
        self.outputs.push_back(Output::Flush { member: at as u16, tag });
    }

    pub(super) fn close_segments(&mut self, at: usize) {
        if self.members[at].failed.is_some() {
            return;
        }
        while let Some(write) = self.members[at].next_index() {
            let tag = self.tag(Tag::Index(at as u16));
            let IndexWrite { segment, place, section_bytes, chunks, part } = write;
            self.members[at].indexing.push(Indexing { tag, segment, part: Some(part) });
            self.outputs.push_back(Output::WriteIndex { place, section_bytes, chunks, part, tag });
        }
    }

    /// Has a flow index written into the segment that it is about, which is not reused before that is done. If it was reused already, or
    /// will be next, or the member has failed, nothing is written: searches read the chunks.
    pub(super) fn write_flow_index(&mut self, part: FlowIndexPart) {
        let member = &self.members[usize::from(part.member)];
        if member.is_next(part.segment, self.wraps(), &self.protected) {
            return;
        }
        if !self.is_filled_with(part.member, part.segment, part.sequences) {
            return;
        }
        let tag = self.tag(Tag::Index(part.member));
        let indexing = Indexing { tag, segment: part.segment, part: None };
        self.members[usize::from(part.member)].indexing.push(indexing);
        self.outputs.push_back(Output::WriteFlowIndex { part, tag });
    }

    pub(super) fn trims(&self, member: &Member) -> bool {
        self.wraps()
            && self.config.trim_ahead > 0
            && self.phase == Phase::Running
            && member.trims
            && member.failed.is_none()
    }

    /// Gives up what the head will reach soon, and trims it once the media say that it was given up: a kill between a trim and
    /// that would leave a hole that nothing explains.
    pub(super) fn trim_ahead(&mut self, now: Instant, at: usize) {
        let member = &self.members[at];
        if !self.trims(member) || member.trimming.is_some() {
            return;
        }
        let given_up = match member.given_up {
            Some(given_up) => given_up,
            None => {
                if !member.may_trim {
                    return;
                }
                let Some(segment) = member.to_trim(self.config.trim_ahead, &self.protected) else {
                    self.members[at].may_trim = false;
                    return;
                };
                let given_up = GivenUp { segment, told_from: self.next_sequence };
                let member = &mut self.members[at];
                member.given_up = Some(given_up);
                let contents = member.empty(segment);
                self.give_up(at, segment, contents);
                given_up
            }
        };
        if !self.is_told(given_up) || self.members[at].trim_due > now {
            return;
        }
        let tag = self.tag(Tag::Trim(at as u16));
        let member = &mut self.members[at];
        let segment = given_up.segment;
        member.given_up = None;
        member.trimming = Some((tag, segment));
        member.trim_due = now + self.config.trim_interval;
        let offset = member.layout.segment_offset(segment);
        let length = member.layout.segment_bytes;
        self.outputs.push_back(Output::Trim { member: at as u16, offset, length, tag });
    }

    /// Whether a chunk that says so is on a medium.
    pub(super) fn is_told(&self, given_up: GivenUp) -> bool {
        given_up.told_from <= self.newest_acknowledged
    }
}
