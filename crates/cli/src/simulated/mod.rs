//! Simulated drives in the program: from targets on the command line to a bank in virtual time. They live as long as the
//! command, and the same command gets the same drives.

pub mod descriptors;
mod facts;
mod feed;
mod record;
mod target;
mod uplink;

use anyhow::{Context, Result, bail};
use base::{Bank, Buffers, Geometry, NoBuffers};
use device::facts::Facts;
use ssd::{SimBank, Slot, Spec, Start};

use crate::sim;

pub use record::record;
pub use target::{Contents, Model, Target};
pub use uplink::UplinkOption;

/// What the first drive's random choices follow from; the others count on from it.
const SEED: u64 = 1;

/// Unit of the random writes whose steady state `:random` is, unless the drive's own is larger.
const RANDOM_BYTES: u32 = 4096;

/// The simulated drives of a command. A drive that shows several namespaces is several drives of the bank.
#[derive(Clone, Debug)]
pub struct Drives {
    slots: Vec<Slot>,
    shown: Vec<Shown>,
    uplink: Option<UplinkOption>,
}

/// One drive of the bank: a namespace of a simulated drive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shown {
    /// Its drive.
    pub slot: usize,
    /// Which of the drive's namespaces, from 0.
    pub namespace: usize,
}

/// Drives that targets name together: those with different namespaces name the same.
struct Group<'a> {
    target: &'a Target,
    spec: Spec,
    namespaces: Vec<usize>,
}

impl Drives {
    /// The drives that these targets name, in the order of their first mention.
    ///
    /// # Errors
    /// If one isn't in the library, its file can't be read, it can't be simulated, or lacks a namespace; or if a drive is
    /// named twice.
    pub fn new(targets: &[Target], uplink: Option<UplinkOption>) -> Result<Self> {
        let mut groups: Vec<Group<'_>> = Vec::new();
        for target in targets {
            add(&mut groups, target)?;
        }
        let mut drives = Self { slots: Vec::new(), shown: Vec::new(), uplink };
        let mut before: Vec<&Model> = Vec::new();
        for Group { target, spec, namespaces } in &groups {
            for copy in 1..=target.count {
                // The same kind may be there already, with other contents.
                let alike = 1 + before.iter().filter(|model| **model == &target.model).count();
                let number = (target.count > 1 || alike as u32 > copy).then_some(alike);
                drives.put(target, spec, namespaces, number);
                before.push(&target.model);
            }
        }
        Ok(drives)
    }

    fn put(&mut self, target: &Target, spec: &Spec, namespaces: &[usize], number: Option<usize>) {
        let place = self.slots.len();
        let mut spec = spec.clone();
        // The bank calls its drives after this. What was measured on other contents is of another name.
        spec.name = target.model.name();
        if target.contents != Contents::Empty {
            spec.name += &format!(":{}", target.contents);
        }
        if let Some(number) = number {
            spec.name += &format!("#{number}");
        }
        let shown = namespaces.iter().map(|&namespace| Shown { slot: place, namespace });
        self.shown.extend(shown);
        let start = match target.contents {
            Contents::Empty => Start::Empty,
            Contents::Full => Start::Full,
            Contents::Random => {
                Start::Random { block_bytes: RANDOM_BYTES.max(spec.mapping.unit_bytes) }
            }
        };
        let (namespaces, seed) = (namespaces.to_vec(), SEED + place as u64);
        self.slots.push(Slot { spec, start, namespaces, seed });
    }

    /// The drives of the bank, in its order.
    pub fn shown(&self) -> &[Shown] {
        &self.shown
    }

    /// The simulated drive that a drive of the bank lies on.
    pub fn slot(&self, shown: &Shown) -> &Slot {
        &self.slots[shown.slot]
    }

    /// What each drive of such a bank tells of itself, after all that it has been through.
    ///
    /// # Errors
    /// If one can't be asked.
    pub fn facts<M: Buffers>(&self, bank: &SimBank<M>) -> Result<Vec<Facts>> {
        let facts = |(shown, geometry): (&Shown, &Geometry)| {
            let health = bank.health(shown.slot);
            facts::of(&geometry.name, self.slot(shown), shown.slot, shown.namespace, health)
        };
        Ok(self.shown.iter().zip(bank.drives()).map(facts).collect::<Result<_, _>>()?)
    }

    /// A bank that keeps time and no data.
    ///
    /// # Errors
    /// If a drive can't be simulated.
    pub fn bank(&self) -> Result<SimBank<NoBuffers>> {
        Ok(SimBank::new(&self.slots, self.uplink.map(UplinkOption::link))?)
    }

    /// A bank that keeps what is written, in memory.
    ///
    /// # Errors
    /// If a drive can't be simulated.
    pub fn bank_with_data<M: Buffers>(&self, memory: M) -> Result<SimBank<M>> {
        Ok(SimBank::with_data(&self.slots, self.uplink.map(UplinkOption::link), memory)?)
    }
}

/// Adds a target's drives, or the namespace it names to drives that are there.
fn add<'a>(groups: &mut Vec<Group<'a>>, target: &'a Target) -> Result<()> {
    let same = groups.iter_mut().find(|group| {
        let other = group.target;
        other.model == target.model
            && (other.contents == target.contents
                || (other.namespace.is_some() && target.namespace.is_some()))
    });
    let Some(group) = same else {
        let spec =
            sim::spec(&sim::profile(&target.model)?).with_context(|| target.model.to_string())?;
        let namespaces = match target.namespace {
            Some(number) => vec![namespace(&spec, target, number)?],
            None => (0..spec.sets.namespaces.len()).collect(),
        };
        groups.push(Group { target, spec, namespaces });
        return Ok(());
    };
    let other = group.target;
    let (Some(number), Some(_)) = (target.namespace, other.namespace) else {
        bail!(
            "{target} and {other} name the same drive: for several drives alike give {}*2",
            target.model
        );
    };
    if other.contents != target.contents || other.count != target.count {
        bail!(
            "{other} and {target} name the same drive, which begins in one way: give both the same contents and number"
        );
    }
    let more = namespace(&group.spec, target, number)?;
    if group.namespaces.contains(&more) {
        bail!("{target} is named twice");
    }
    group.namespaces.push(more);
    Ok(())
}

fn namespace(spec: &Spec, target: &Target, number: u32) -> Result<usize> {
    let there = spec.sets.namespaces.len();
    if number as usize > there {
        let plural = if there == 1 { "namespace" } else { "namespaces" };
        bail!("{target}: the drive has {there} {plural}, numbered from 1");
    }
    Ok(number as usize - 1)
}
