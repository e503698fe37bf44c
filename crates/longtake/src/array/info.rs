//! What an array is made of.

use base::{Bank, Timestamp};
use device::shell::quoted;
use format::superblock::Protected;
use recorder::takes::extents;
use recorder::{MemberImage, Segment};
use uuid::Uuid;

use super::open::Opened;

/// What an array is made of, how full it is, and what is protected.
#[derive(Clone, Debug)]
pub struct Info {
    /// Its identity.
    pub uuid: Uuid,
    /// The name that it was given when it was created.
    pub name: String,
    /// When it was created.
    pub created: Timestamp,
    /// How often its superblocks have been rewritten.
    pub generation: u64,
    /// Parity chunks for each group of chunks: 0, 1 or 2. As many members may fail without loss.
    pub parity: u8,
    /// Whether somebody is recording on it.
    pub recording: bool,
    /// Its members, by number.
    pub members: Vec<MemberInfo>,
    /// Spans of time that the ring does not overwrite.
    pub protected: Vec<Protected>,
    /// What was noticed when it was opened, in words.
    pub remarks: Vec<String>,
    /// Members that are out of date.
    pub stale: Vec<StaleMember>,
}

/// A member of an array.
#[derive(Clone, Debug)]
pub struct MemberInfo {
    /// Its file or device; None if it is missing.
    pub target: Option<String>,
    /// Model and serial number of its drive, or the file's path.
    pub identity: String,
    /// Size of the drive or file in bytes.
    pub capacity_bytes: u64,
    /// Number of segments.
    pub segments: u64,
    /// Length of a segment in bytes.
    pub segment_bytes: u64,
    /// Length of the longest chunk in bytes.
    pub chunk_max: u32,
    /// Bytes of all segments.
    pub data_bytes: u64,
    /// Bytes of the segments in use; of the newest, the part that is written.
    pub used_bytes: u64,
    /// The parts of the target that together are one pcapng file, oldest first.
    pub extents: Vec<Extent>,
}

/// A part of a file or device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Extent {
    /// First byte.
    pub offset: u64,
    /// Number of bytes.
    pub length: u64,
}

/// A member that was missing while others were recorded on, and was not rebuilt.
#[derive(Clone, Debug)]
pub struct StaleMember {
    /// Its number.
    pub member: u16,
    /// Model and serial number of its drive, or the file's path.
    pub identity: String,
    /// Time of the newest packet on it; None if it holds none.
    pub newest_packet: Option<Timestamp>,
    /// Start of the first take that it lacks, as far as the others still hold one.
    pub missed_take_started: Option<Timestamp>,
}

impl Info {
    /// The `dd` commands that make one pcapng file of each member that is there, `member0.pcapng` and so on, for a shell.
    pub fn copy_commands(&self) -> Vec<String> {
        let mut commands = Vec::new();
        for (at, member) in self.members.iter().enumerate() {
            let Some(target) = &member.target else { continue };
            for (part, extent) in member.extents.iter().enumerate() {
                let redirect = if part == 0 { ">" } else { ">>" };
                commands.push(format!(
                    "dd if={} bs=1M iflag=skip_bytes,count_bytes skip={} count={} status=none {redirect} member{at}.pcapng",
                    quoted(target),
                    extent.offset,
                    extent.length
                ));
            }
        }
        commands
    }

    pub(super) fn of(opened: &Opened) -> Self {
        let image = &opened.image;
        let superblock = &image.superblock;
        let members = image.members.iter().zip(&superblock.members).map(|(found, known)| {
            let drive = opened.bank.drives().get(found.drive.index());
            MemberInfo {
                target: drive.map(|drive| drive.name.clone()),
                identity: known.identity.clone(),
                capacity_bytes: known.capacity_bytes,
                segments: found.layout.segments,
                segment_bytes: found.layout.segment_bytes,
                chunk_max: found.layout.chunk_max,
                data_bytes: found.layout.data_bytes(),
                used_bytes: used(found),
                extents: extents(found)
                    .into_iter()
                    .map(|(offset, length)| Extent { offset, length })
                    .collect(),
            }
        });
        Self {
            uuid: image.uuid,
            name: superblock.name.clone(),
            created: superblock.created,
            generation: superblock.generation,
            parity: superblock.parity,
            recording: opened.recording,
            members: members.collect(),
            protected: image.protected.clone(),
            remarks: image.remarks.clone(),
            stale: stale_members(opened),
        }
    }
}

pub(super) fn stale_members(opened: &Opened) -> Vec<StaleMember> {
    let members = &opened.image.superblock.members;
    let stale = opened.stale().iter().map(|stale| StaleMember {
        member: stale.member,
        identity: members[usize::from(stale.member)].identity.clone(),
        newest_packet: stale.newest,
        missed_take_started: stale.missed,
    });
    stale.collect()
}

/// Bytes of segments in use.
fn used(member: &MemberImage) -> u64 {
    let head = member.head.as_ref().map(|h| h.segment);
    (0u64..)
        .zip(&member.segments)
        .map(|(at, segment)| match segment {
            Segment::Live(_) if Some(at) == head => member.head.as_ref().map_or(0, |h| h.used),
            Segment::Live(_) => member.layout.segment_bytes,
            Segment::Empty => 0,
        })
        .sum()
}
