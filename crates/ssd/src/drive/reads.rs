//! Reads on their way: from the controller to the cells, through channel and link to the host. In-place media write the same way.

use base::Operation;

use super::hands::is_programming;
use super::namespaces::Place;
use super::{Drive, Set, UnderWay, UplinkWires};
use crate::dies::Access;
use crate::earliest::NEVER;
use crate::ftl::Location;
use crate::map::NOWHERE;
use crate::spec::Media as Medium;

impl Drive {
    /// Sends a read of one unit, which leaves the controller at `at`, to its die at once, if nothing can come between: no work on dies,
    /// nothing else before it. It saves an event. Returns false if it must wait for its time.
    #[inline(always)]
    pub(super) fn read_early(
        &mut self,
        index: u32,
        namespace: u32,
        offset: u64,
        length: u32,
        at: u64,
    ) -> bool {
        let in_place = self.spec.flash.media == Medium::InPlace;
        if in_place || self.dies.working() || self.others_at != NEVER {
            return false;
        }
        let Some((set, unit)) = self.namespaces.unit(namespace, offset, length) else {
            return false;
        };
        let Set { ftl, dies: own, read_bytes, .. } = &mut self.sets[set as usize];
        let Some((die, slc)) = ftl.on_die(unit) else {
            return false;
        };
        *read_bytes += u64::from(length);
        self.health.reads += 1;
        self.health.read_bytes += u64::from(length);
        let access =
            Access { command: index, channel_bytes: self.unit.bytes(), link_bytes: length };
        self.dies.read(at, own[die as usize], slc, access);
        true
    }

    /// A read has passed the controller.
    #[inline]
    pub(super) fn begin_read(&mut self, index: u32, uplink: &mut Option<UplinkWires>) {
        let UnderWay { command, namespace, .. } = self.commands[index as usize];
        let Operation::Read { offset, length, .. } = command.operation else { return };
        self.health.reads += 1;
        self.health.read_bytes += u64::from(length);
        if length == 0 {
            self.over.push(self.now, index);
            return;
        }
        if self.spec.flash.media == Medium::InPlace {
            self.access_in_place(index, namespace, offset, length, true);
            return;
        }
        let (mut parts, mut from_memory) = (0, 0);
        let size = self.unit;
        let mut at = offset;
        let end = offset + u64::from(length);
        while at < end {
            let Place { set, unit, units } = self.namespaces.locate(namespace, at, end);
            let piece_end = (size.floor(at) + size.bytes_of(units.into())).min(end);
            let now = self.now;
            let Set { ftl, dies: own, active, read_bytes, .. } = &mut self.sets[set as usize];
            let dies = &mut self.dies;
            *read_bytes += piece_end - at;
            let mut unit_at = size.floor(at);
            ftl.read(unit, units, |place, count| {
                let bytes_end = unit_at + size.bytes_of(count.into());
                let asked = (bytes_end.min(end) - unit_at.max(at)) as u32;
                unit_at = bytes_end;
                if place == NOWHERE {
                    from_memory += asked;
                    return;
                }
                let found = ftl.locate(place);
                let Location { spot, slc, .. } = found;
                if found.filling || is_programming(active, &found) {
                    from_memory += asked;
                    return;
                }
                parts += 1;
                let access = Access {
                    command: index,
                    channel_bytes: count * size.bytes(),
                    link_bytes: asked,
                };
                dies.read(now, own[spot.die as usize], slc, access);
            });
            at = piece_end;
        }
        self.commands[index as usize].parts = parts + u32::from(from_memory > 0);
        if from_memory > 0 {
            let part = Access { command: index, channel_bytes: 0, link_bytes: from_memory };
            self.accessed(part, self.now, uplink);
        }
    }

    /// A part of a command will be through its channel at a time. The link serves parts in the order in which they are, which is not
    /// that in which dies are done: another channel may be less busy.
    #[inline(always)]
    pub(super) fn ready_at(&mut self, at: u64, access: Access, uplink: &mut Option<UplinkWires>) {
        let settled = self.settled(uplink);
        if at <= settled && self.ready.is_empty() {
            self.accessed(access, at, uplink);
            return;
        }
        self.ready.push(at, access);
        self.send_ready(settled, uplink);
    }

    /// Hands what is ready up to some time to the link.
    #[inline]
    pub(super) fn send_ready(&mut self, until: u64, uplink: &mut Option<UplinkWires>) {
        while let Some((at, access)) = self.ready.pop_until(until) {
            self.accessed(access, at, uplink);
        }
    }

    /// Up to when it is known what is ready for the link. While nothing but reads is under way, what comes next is either on a die, or
    /// will be for a read's time; and then it still has to pass a channel. It saves an event. (A read that finds its data in memory may
    /// come behind one that is still in its channel: for the time of a page's transfer at most.)
    #[inline]
    fn settled(&self, uplink: &Option<UplinkWires>) -> u64 {
        if uplink.is_some() || self.dies.working() || self.others_at != NEVER {
            return self.now;
        }
        self.dies.next().min(self.now + self.shortest_read_ns) + self.shortest_transfer_ns
    }

    /// A part of a command is through its channel.
    // Always: a simulated drive does little else when it is read.
    #[inline(always)]
    fn accessed(&mut self, access: Access, at: u64, uplink: &mut Option<UplinkWires>) {
        let command = &mut self.commands[access.command as usize];
        let writing = matches!(command.command.operation, Operation::Write { .. });
        let mut through = at;
        if !writing {
            through = self.to_host.transfer(through, access.link_bytes);
            if self.half_duplex {
                self.from_host.hold(through);
            }
            if let Some(uplink) = uplink {
                through = uplink.read.transfer(through, access.link_bytes);
            }
        }
        command.through = command.through.max(through);
        command.parts -= 1;
        if command.parts == 0 {
            let at = command.through;
            if writing {
                self.over.push(at, access.command);
                self.others_at = self.others_at.min(at);
            } else {
                // One wire to the host: it lets one part through after the other.
                self.sent.push_last(at, access.command);
            }
        }
    }

    /// Accesses that read or write in place: one for each page that the range touches.
    pub(super) fn access_in_place(
        &mut self,
        index: u32,
        namespace: u32,
        offset: u64,
        length: u32,
        reading: bool,
    ) {
        let page = u64::from(self.spec.flash.page_bytes);
        let dies = u64::from(self.spec.flash.dies());
        let base = self.namespaces.start(namespace);
        let (mut at, end) = (base + offset, base + offset + u64::from(length));
        while at < end {
            let piece_end = ((at / page + 1) * page).min(end);
            let bytes = (piece_end - at) as u32;
            // Neighbours lie on different channels.
            let die = ((at / page) % dies) as u32;
            self.commands[index as usize].parts += 1;
            let access = Access { command: index, channel_bytes: bytes, link_bytes: bytes };
            if reading {
                self.dies.read(self.now, die, false, access);
            } else {
                let access = Access { channel_bytes: 0, ..access };
                self.dies.write_in_place(self.now, die, bytes, access);
            }
            at = piece_end;
        }
    }
}
