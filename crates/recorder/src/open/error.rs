//! Why an array can't be opened, and what to do about it.

use std::fmt;

use format::Damage;

use crate::reader::ReadError;

/// Why an array can't be opened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OpenError {
    /// A drive has no sound superblock.
    NotMember {
        /// Name of the drive.
        drive: String,
        /// What stands there instead.
        damage: Damage,
    },
    /// Two drives belong to different arrays.
    Foreign {
        /// The one that doesn't belong.
        drive: String,
        /// Its array's name.
        name: String,
        /// The name of the others' array.
        expected: String,
    },
    /// Two drives say that they are the same member.
    Twice {
        /// Name of the first drive.
        first: String,
        /// Name of the second drive.
        second: String,
        /// Zero-based index of the member.
        member: u16,
    },
    /// Another drive has taken this one's place in the meantime.
    Stale {
        /// Name of the drive.
        drive: String,
        /// The array's name.
        name: String,
        /// The member that it was.
        member: u16,
        /// What took its place.
        replaced_by: String,
    },
    /// The drive is to become a member, and its rebuild is under way or was cut short.
    Unfinished {
        /// Name of the drive.
        drive: String,
        /// The array's name.
        name: String,
        /// The member that it will be.
        member: u16,
    },
    /// Members are missing.
    Missing {
        /// The array's name.
        name: String,
        /// Which, and what they are.
        members: Vec<(u16, String)>,
    },
    /// The drive is smaller than its superblock says.
    Shrunk {
        /// Name of the drive.
        drive: String,
        /// What there is.
        capacity_bytes: u64,
        /// What there was.
        expected_bytes: u64,
    },
    /// The buffers are too small for the array's chunks.
    Buffers {
        /// What there is.
        buffer_bytes: u32,
        /// What it takes.
        needed_bytes: u32,
    },
    /// Reading failed.
    Read(ReadError),
}

impl fmt::Display for OpenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotMember { drive, damage: damage @ Damage::Newer { .. } } => {
                write!(f, "{drive}: {damage}")
            }
            Self::NotMember { drive, damage } => write!(
                f,
                "{drive} is not a member of a Longtake array ({damage}): read without it by --degraded, or create one with `longtake array create`"
            ),
            Self::Foreign { drive, name, expected } => write!(
                f,
                "{drive} belongs to array '{name}', not to '{expected}': name the members of one array only"
            ),
            Self::Twice { first, second, member } => write!(
                f,
                "{first} and {second} both say they are member {member}: one is a copy of the other, leave one out"
            ),
            Self::Stale { drive, name, member, replaced_by } => write!(
                f,
                "{drive} was member {member} of array '{name}' until it was replaced by {replaced_by}: what it holds is out of date, leave it out"
            ),
            Self::Unfinished { drive, name, member } => write!(
                f,
                "{drive} is to become member {member} of array '{name}', and its rebuild is under way or was cut short: leave it out, or go on with `longtake array rebuild`"
            ),
            Self::Missing { name, members } => {
                write!(f, "array '{name}' lacks ")?;
                for (at, (member, identity)) in members.iter().enumerate() {
                    let comma = if at > 0 { ", " } else { "" };
                    write!(f, "{comma}member {member} ({identity})")?;
                }
                f.write_str(": name all members; to read without them, give --degraded")
            }
            Self::Shrunk { drive, capacity_bytes, expected_bytes } => write!(
                f,
                "{drive} has {capacity_bytes} bytes but was made a member with {expected_bytes}: was the file cut or the drive exchanged? Read without it by --degraded"
            ),
            Self::Buffers { buffer_bytes, needed_bytes } => write!(
                f,
                "buffers of {buffer_bytes} bytes are too small for this array's chunks of {needed_bytes}"
            ),
            Self::Read(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for OpenError {}

impl<E: Into<ReadError>> From<E> for OpenError {
    fn from(error: E) -> Self {
        Self::Read(error.into())
    }
}
