//! Simulated drives: from targets to a bank in virtual time. They live as long as the bank, and the same targets get the same
//! drives.

mod error;

use base::{Bank, Buffers, Geometry, NoBuffers};
use device::facts::Facts;
use device::nvme::AdminError;
use profile::Profile;
use ssd::{SimBank, Slot, Spec, SpecError, Start};

use crate::facts;
use crate::name::{Contents, Model, SimTarget};
use crate::parts::Place;
use crate::profiles::{Profiles, ProfilesError};
use crate::uplink::Uplink;

pub use error::SimDrivesError;

/// What the first drive's random choices follow from; the others count on from it.
const SEED: u64 = 1;

/// Unit of the random writes whose steady state `:random` is, unless the drive's own is larger.
const RANDOM_BYTES: u32 = 4096;

/// Simulated drives that targets name. A drive with several namespaces is several drives of the bank.
#[derive(Clone, Debug)]
pub struct SimDrives {
    slots: Vec<Slot>,
    namespaces: Vec<SimNamespace>,
    uplink: Option<Uplink>,
}

/// One drive of the bank: a namespace of a simulated drive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SimNamespace {
    /// Zero-based index of the simulated drive.
    pub slot: usize,
    /// Zero-based index of the namespace on that drive.
    pub namespace: usize,
}

/// Drives that targets name together: those with different namespaces name the same.
struct Group<'a> {
    target: &'a SimTarget,
    spec: Spec,
    namespaces: Vec<usize>,
}

impl SimDrives {
    /// The drives that these targets name, in the order of their first mention.
    ///
    /// # Errors
    /// If one isn't in the library, its file can't be read, it can't be simulated, or lacks a namespace; or if a drive is
    /// named twice.
    pub fn new(
        targets: &[SimTarget],
        uplink: Option<Uplink>,
        profiles: &Profiles,
    ) -> Result<Self, SimDrivesError> {
        let mut groups: Vec<Group<'_>> = Vec::new();
        for target in targets {
            add(&mut groups, target, profiles)?;
        }
        let mut drives = Self { slots: Vec::new(), namespaces: Vec::new(), uplink };
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

    fn put(
        &mut self,
        target: &SimTarget,
        spec: &Spec,
        namespaces: &[usize],
        number: Option<usize>,
    ) {
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
        let shown = namespaces.iter().map(|&namespace| SimNamespace { slot: place, namespace });
        self.namespaces.extend(shown);
        let start = match target.contents {
            Contents::Empty => Start::Empty,
            Contents::Full => Start::Full,
            Contents::Overwritten => Start::Overwritten,
            Contents::Random => {
                Start::Random { block_bytes: RANDOM_BYTES.max(spec.mapping.unit_bytes) }
            }
        };
        let (namespaces, seed) = (namespaces.to_vec(), SEED + place as u64);
        self.slots.push(Slot { spec, start, namespaces, seed });
    }

    /// The simulated drives, each with what is on it at the start.
    pub fn slots(&self) -> &[Slot] {
        &self.slots
    }

    /// The link that they share.
    pub fn uplink(&self) -> Option<Uplink> {
        self.uplink
    }

    /// The drives of the bank, in its order.
    pub fn namespaces(&self) -> &[SimNamespace] {
        &self.namespaces
    }

    /// The simulated drive that a drive of the bank lies on.
    pub fn slot(&self, namespace: &SimNamespace) -> &Slot {
        &self.slots[namespace.slot]
    }

    /// The NVM Sets that each drive of the bank lies in.
    pub fn places(&self) -> Vec<Place> {
        let place = |shown: &SimNamespace| {
            let Spec { name, sets, .. } = &self.slot(shown).spec;
            Place {
                member: format!("namespace {} of {name}", shown.namespace + 1),
                drive: shown.slot.to_string(),
                sets: sets.namespaces[shown.namespace].sets.iter().copied().collect(),
            }
        };
        self.namespaces.iter().map(place).collect()
    }

    /// What each drive of such a bank tells of itself, after all that it has been through.
    ///
    /// # Errors
    /// If one can't be asked.
    pub fn facts<M: Buffers>(&self, bank: &SimBank<M>) -> Result<Vec<Facts>, AdminError> {
        let facts = |(shown, geometry): (&SimNamespace, &Geometry)| {
            let health = bank.health(shown.slot);
            facts::of(&geometry.name, self.slot(shown), shown.slot, shown.namespace, health)
        };
        self.namespaces.iter().zip(bank.drives()).map(facts).collect()
    }

    /// A bank that keeps time and no data.
    ///
    /// # Errors
    /// If a drive can't be simulated.
    pub fn bank(&self) -> Result<SimBank<NoBuffers>, SpecError> {
        SimBank::new(&self.slots, self.uplink.map(Uplink::link))
    }

    /// A bank that keeps what is written, in memory.
    ///
    /// # Errors
    /// If a drive can't be simulated.
    pub fn bank_with_data<M: Buffers>(&self, memory: M) -> Result<SimBank<M>, SpecError> {
        SimBank::with_data(&self.slots, self.uplink.map(Uplink::link), memory)
    }
}

/// Adds a target's drives, or the namespace it names to drives that are there.
fn add<'a>(
    groups: &mut Vec<Group<'a>>,
    target: &'a SimTarget,
    profiles: &Profiles,
) -> Result<(), SimDrivesError> {
    let same = groups.iter_mut().find(|group| {
        let other = group.target;
        other.model == target.model
            && (other.contents == target.contents
                || (other.namespace.is_some() && target.namespace.is_some()))
    });
    let Some(group) = same else {
        let spec = target.model.spec(profiles)?;
        let namespaces = match target.namespace {
            Some(number) => vec![namespace(&spec, target, number)?],
            None => (0..spec.sets.namespaces.len()).collect(),
        };
        groups.push(Group { target, spec, namespaces });
        return Ok(());
    };
    let other = group.target;
    let (Some(number), Some(_)) = (target.namespace, other.namespace) else {
        return Err(SimDrivesError::Same { target: target.clone(), other: other.clone() });
    };
    if other.contents != target.contents || other.count != target.count {
        return Err(SimDrivesError::Beginnings { target: target.clone(), other: other.clone() });
    }
    let more = namespace(&group.spec, target, number)?;
    if group.namespaces.contains(&more) {
        return Err(SimDrivesError::Twice { target: target.clone() });
    }
    group.namespaces.push(more);
    Ok(())
}

fn namespace(spec: &Spec, target: &SimTarget, number: u32) -> Result<usize, SimDrivesError> {
    let there = spec.sets.namespaces.len();
    if number as usize > there {
        return Err(SimDrivesError::NoNamespace { target: target.clone(), there });
    }
    Ok(number as usize - 1)
}

impl Model {
    /// What is known of this kind of drive.
    ///
    /// # Errors
    /// If it is in neither the library nor the user's folder of profiles, or its file can't be read.
    pub fn profile(&self, profiles: &Profiles) -> Result<Profile, ProfilesError> {
        match self {
            Self::Library(name) => profiles.named(name),
            Self::File(path) => profiles.read(path),
        }
    }

    /// A drive of this kind as it can be simulated.
    ///
    /// # Errors
    /// As [`Model::profile`], or if it can't be simulated.
    pub fn spec(&self, profiles: &Profiles) -> Result<Spec, SimDrivesError> {
        let profile = self.profile(profiles)?;
        spec(&profile).map_err(|reason| SimDrivesError::Spec { model: self.clone(), reason })
    }
}

/// A drive as it can be simulated.
///
/// # Errors
/// If it can't be.
pub fn spec(profile: &Profile) -> Result<Spec, SpecError> {
    let spec = Spec::from_profile(profile)?;
    spec.check()?;
    Ok(spec)
}
