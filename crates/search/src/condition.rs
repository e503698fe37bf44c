//! What must be true of the chunks that hold a wanted packet, in terms of a flow index's keys.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::community_id::CommunityId;
use crate::index_key::IndexKey;

/// Parts of a condition that are shown.
const SHOWN_MAX: usize = 6;

/// A necessary condition: every chunk that holds a wanted packet meets it; others may meet it too.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Condition {
    /// Nothing is known.
    Any,
    /// A packet has this key.
    Key(IndexKey),
    /// There are fragments of datagrams.
    Fragments,
    /// All of these.
    All(Vec<Self>),
    /// At least one of these.
    OneOf(Vec<Self>),
}

impl Condition {
    /// Of packets of flows, by their Community IDs. A later fragment belongs to the flow of the first fragment of its datagram, which
    /// may lie in another chunk: whoever looks for flows looks at all fragments.
    pub fn of_flows(ids: &[CommunityId]) -> Self {
        let keys = ids.iter().map(|&id| Self::Key(IndexKey::Flow(id)));
        Self::OneOf(keys.chain([Self::Fragments]).collect())
    }

    /// All of several conditions, as simple as it gets.
    pub fn all(conditions: impl IntoIterator<Item = Self>) -> Self {
        let mut parts = Vec::new();
        for condition in conditions {
            match condition {
                Self::Any => {}
                Self::All(inner) => parts.extend(inner),
                other => parts.push(other),
            }
        }
        match parts.len() {
            0 => Self::Any,
            1 => parts.remove(0),
            _ => Self::All(parts),
        }
    }

    /// One of several conditions, as simple as it gets.
    pub fn one_of(conditions: impl IntoIterator<Item = Self>) -> Self {
        let mut parts = Vec::new();
        for condition in conditions {
            match condition {
                Self::Any => return Self::Any,
                Self::OneOf(inner) => parts.extend(inner),
                other => parts.push(other),
            }
        }
        if parts.len() == 1 { parts.remove(0) } else { Self::OneOf(parts) }
    }

    /// The keys in it, each once, in order.
    pub fn keys(&self) -> Vec<IndexKey> {
        let mut keys = Vec::new();
        self.collect(&mut keys);
        keys.sort_unstable();
        keys.dedup();
        keys
    }

    fn collect(&self, keys: &mut Vec<IndexKey>) {
        match self {
            Self::Any | Self::Fragments => {}
            Self::Key(key) => keys.push(*key),
            Self::All(parts) | Self::OneOf(parts) => {
                parts.iter().for_each(|part| part.collect(keys));
            }
        }
    }

    /// The columns that meet it, a bit each: by those of each key, and those with fragments.
    pub fn columns(&self, of_key: &impl Fn(&IndexKey) -> u64, fragments: u64) -> u64 {
        match self {
            Self::Any => u64::MAX,
            Self::Key(key) => of_key(key),
            Self::Fragments => fragments,
            Self::All(parts) => {
                parts.iter().fold(u64::MAX, |all, part| all & part.columns(of_key, fragments))
            }
            Self::OneOf(parts) => {
                parts.iter().fold(0, |any, part| any | part.columns(of_key, fragments))
            }
        }
    }
}

impl fmt::Display for Condition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let list = |f: &mut fmt::Formatter<'_>, parts: &[Self], word: &str| {
            for (at, part) in parts.iter().enumerate() {
                if at == SHOWN_MAX && parts.len() > SHOWN_MAX + 1 {
                    return write!(f, " {word} {} more", parts.len() - at);
                }
                if at > 0 {
                    write!(f, " {word} ")?;
                }
                match part {
                    Self::All(_) | Self::OneOf(_) => write!(f, "({part})")?,
                    _ => part.fmt(f)?,
                }
            }
            Ok(())
        };
        match self {
            Self::Any => f.write_str("anything"),
            Self::Key(key) => key.fmt(f),
            Self::Fragments => f.write_str("fragments"),
            Self::All(parts) => list(f, parts, "and"),
            Self::OneOf(parts) => list(f, parts, "or"),
        }
    }
}
