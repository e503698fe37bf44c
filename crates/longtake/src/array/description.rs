//! Everything that is known of an array without reading its packets: members and their drives, takes with their rates and interfaces,
//! what is protected and what a ring has overwritten.

use std::collections::BTreeMap;

use anyhow::Result;
use device::identity::{self, Drive};
use device::wear::{Health, Wear};
use format::chunk::check_body;
use format::packets::{Item, Items};
use format::{ChunkSummary, Interface, LinkType};
use recorder::reader::Range;
use recorder::takes::Entry;
use uuid::Uuid;

use super::Array;
use super::contents::{Contents, Take};
use super::info::Info;
use super::open::Opened;
use super::rates::TakeRates;
use crate::recording::Rejections;

/// An array as [`Array::describe`] finds it.
#[derive(Clone, Debug)]
pub struct Description {
    /// What it is made of, how full it is, and what is protected.
    pub info: Info,
    /// The drive or file of each member, by number; None for one that is missing or can't be described.
    pub drives: Vec<Option<Drive>>,
    /// What was recorded on it.
    pub contents: Contents,
    /// More about each take, in the order of `contents.takes`.
    pub takes: Vec<TakeDetails>,
}

/// What the chunks of a take tell beyond its ledger.
#[derive(Clone, Debug, Default)]
pub struct TakeDetails {
    /// How fast it was recorded; None if that can't be known.
    pub rates: Option<TakeRates>,
    /// The interfaces that packets came from, in the order of the source's queues, each once: those described in the first and in
    /// the last chunk of each queue that can be read.
    pub interfaces: Vec<Interface>,
}

/// Chunks that are tried at each end of a queue, until one can be read.
const TRIES_MAX: usize = 4;

impl Array {
    /// Describes the array: also its drives, the rates of its takes, and the interfaces that they were recorded from. Reads the
    /// indexes and a few chunks.
    ///
    /// # Errors
    /// If a drive can't be read.
    pub fn describe(&mut self) -> crate::Result<Description> {
        let contents = self.contents()?;
        let info = self.info();
        let drives = info.drives();
        let takes = details(&mut self.opened, &contents)?;
        Ok(Description { info, drives, contents, takes })
    }
}

impl Info {
    /// What the drive of each member reports of its health, by number; None for a file, and for a drive that doesn't say.
    pub fn health(&self) -> Vec<Option<Health>> {
        let health = |drive: Option<Drive>| match drive?.wear {
            Wear::Known(health) => Some(health),
            Wear::Unknown { .. } => None,
        };
        self.drives().into_iter().map(health).collect()
    }

    /// The drive or file of each member, by number; None for one that is missing or can't be described.
    fn drives(&self) -> Vec<Option<Drive>> {
        let drive = |target: &String| identity::describe(target.as_ref()).ok();
        self.members.iter().map(|member| member.target.as_ref().and_then(drive)).collect()
    }
}

impl Array {
    /// What is known of the packets that a filter rejected from each of these takes. Reads a few chunks of each, which name the
    /// filter.
    ///
    /// # Errors
    /// If a drive can't be read.
    pub fn rejections(&mut self, takes: &[Take]) -> crate::Result<Vec<Rejections>> {
        let contents = self.contents()?;
        let chunks = chunks_of_packets(&contents);
        let of_take = |take: &Take| {
            let chunks = chunks.get(&take.id.uuid).map_or(&[][..], Vec::as_slice);
            Ok(take.rejections(&interfaces(&mut self.opened, chunks)?))
        };
        takes.iter().map(of_take).collect()
    }
}

/// The chunks of each take that hold packets, and not parity.
fn chunks_of_packets(contents: &Contents) -> BTreeMap<Uuid, Vec<&Entry>> {
    let mut chunks: BTreeMap<Uuid, Vec<&Entry>> = BTreeMap::new();
    for entry in contents.chunks.iter().filter(|entry| entry.record.parity.is_none()) {
        chunks.entry(entry.record.take.uuid).or_default().push(entry);
    }
    chunks
}

fn details(opened: &mut Opened, contents: &Contents) -> Result<Vec<TakeDetails>> {
    let mut chunks = chunks_of_packets(contents);
    let of_take = |take: &Take| {
        let chunks = chunks.remove(&take.id.uuid).unwrap_or_default();
        let summaries = chunks.iter().map(|entry| &entry.record.summary);
        let rates = TakeRates::of(take, summaries);
        Ok(TakeDetails { rates, interfaces: interfaces(opened, &chunks)? })
    };
    contents.takes.iter().map(of_take).collect()
}

/// The interfaces of a take with these chunks.
fn interfaces(opened: &mut Opened, chunks: &[&Entry]) -> Result<Vec<Interface>> {
    let mut queues: BTreeMap<u16, Vec<&Entry>> = BTreeMap::new();
    for &entry in chunks.iter().filter(|entry| entry.record.summary.packets > 0) {
        queues.entry(entry.record.summary.queue).or_default().push(entry);
    }
    let mut found = Vec::new();
    for queue in queues.into_values() {
        let mut first = queue.iter().take(TRIES_MAX);
        let mut last = queue.iter().rev().take(TRIES_MAX);
        let ends: [&mut dyn Iterator<Item = &&Entry>; 2] = [&mut first, &mut last];
        for end in ends {
            for entry in end {
                if let Some(described) = described_in(opened, entry)? {
                    found.extend(described);
                    break;
                }
            }
        }
    }
    let mut known: Vec<Interface> = Vec::new();
    for interface in found {
        if !known.contains(&interface) {
            known.push(interface);
        }
    }
    Ok(known)
}

/// The interfaces that a chunk describes; None if it can't be read.
fn described_in(opened: &mut Opened, entry: &Entry) -> Result<Option<Vec<Interface>>> {
    let ChunkSummary { length, .. } = entry.record.summary;
    let member = &opened.image.members[usize::from(entry.place.member)];
    if member.is_missing() {
        return Ok(None);
    }
    let range = Range { drive: member.drive, offset: entry.place.offset, length };
    let mut found = None;
    opened.reader().scatter(&[range], |_, read| {
        let Ok(chunk) = read else { return };
        if check_body(chunk, &entry.record).is_ok() {
            let items = Items::new(chunk, &entry.record).into_iter().flatten();
            let interfaces = items.filter_map(|item| match item {
                Ok(Item::Interface(interface)) => Some(interface),
                _ => None,
            });
            found = Some(interfaces.collect());
        }
    })?;
    Ok(found)
}

/// What a link type is called, as far as sources of Longtake and common capture files have it.
pub fn link_name(link: LinkType) -> String {
    let name = match link.0 {
        0 => "BSD loopback",
        1 => "Ethernet",
        101 => "raw IP",
        105 => "IEEE 802.11",
        113 => "Linux cooked capture",
        127 => "IEEE 802.11 with radiotap",
        147 => "raw blocks",
        228 => "raw IPv4",
        229 => "raw IPv6",
        276 => "Linux cooked capture 2",
        number => return format!("link type {number}"),
    };
    name.to_owned()
}
