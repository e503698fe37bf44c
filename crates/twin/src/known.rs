//! What is known of drives before they are measured: it states costs, and tells experiments what to hold results against.

use base::striped::{Layout, StripedSet};
use base::{Geometry, Rate};
use device::facts::Facts;
use lab::experiment::Scope;
use lab::experiment::link::DriveLink;
use lab::experiment::neighbours::Relation;
use lab::run::Subject;
use ssd::Spec;
use ssd::spec::Media;

/// What is known of one drive of the bank.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Known {
    /// The host link, as far as the drive tells it.
    pub link: DriveLink,
    /// What it may write and read, if that follows from something better than the link.
    rates: Option<(f64, f64)>,
    /// Temperature at which it warns, in degrees Celsius.
    pub warning_celsius: Option<f64>,
    /// What all targets that are this drive share, and no other.
    drive: Option<String>,
    /// What all namespaces of a drive share.
    subsystem: Option<String>,
    /// NVM Sets that it lies in.
    sets: Vec<u32>,
}

impl Known {
    /// From the facts that a real drive tells of itself.
    pub fn of_facts(facts: &Facts) -> Self {
        let nvme = facts.nvme.as_ref();
        let set = nvme.and_then(|nvme| nvme.namespace.known()?.nvm_set_id);
        let warning = nvme.and_then(|nvme| nvme.controller.known()?.warning_temperature_celsius);
        Self {
            link: facts.drive.link.map_or(DriveLink::NotKnown, DriveLink::from),
            rates: None,
            warning_celsius: warning.map(f64::from),
            drive: facts.drive.device.as_ref().map(|path| path.display().to_string()),
            subsystem: facts.drive.nvme.as_ref().and_then(|nvme| nvme.subsystem_nqn.clone()),
            sets: set.into_iter().map(u32::from).collect(),
        }
    }

    /// From the facts and parameters of a simulated drive: parameters tell more than it would say itself.
    pub fn of_simulated(facts: &Facts, spec: &Spec) -> Self {
        let name = facts.drive.path.display().to_string();
        Self { rates: Some(rates(spec)), drive: Some(name), ..Self::of_facts(facts) }
    }

    /// Of a striped set of these drives. Parity takes its share of what is written; links are the members'.
    pub fn of_set(layout: &Layout, members: &[Self]) -> Self {
        let (write, read): (Vec<f64>, Vec<f64>) = members.iter().map(Self::guess).unzip();
        let data = layout.data_members() as f64 / layout.members as f64;
        let warnings = members.iter().filter_map(|member| member.warning_celsius);
        Self {
            rates: Some((write.iter().sum::<f64>() * data, read.iter().sum())),
            warning_celsius: warnings.min_by(f64::total_cmp),
            ..Self::default()
        }
    }

    /// What it may write and read, in bytes a second: drives are built for their links, and write less than they read.
    /// Without a link, what a middling drive does.
    fn guess(&self) -> (f64, f64) {
        const WRITE_SHARE: f64 = 0.6;
        const READ_SHARE: f64 = 0.85;
        if let Some(rates) = self.rates {
            return rates;
        }
        match &self.link {
            DriveLink::Pcie { now: Some(link), .. } => {
                (link.bytes_a_second() * WRITE_SHARE, link.bytes_a_second() * READ_SHARE)
            }
            // 8b/10b: ten bits on the wire for a byte.
            DriveLink::Sata { now_gbps, .. } => {
                (now_gbps * 1e8 * WRITE_SHARE, now_gbps * 1e8 * READ_SHARE)
            }
            _ => (Scope::default().write_guess.0, Scope::default().read_guess.0),
        }
    }

    /// What this target shares with another.
    pub fn relation(&self, other: &Self) -> Relation {
        if self.drive.is_some() && self.drive == other.drive {
            return Relation::Same;
        }
        if self.subsystem.is_none() || self.subsystem != other.subsystem {
            return Relation::OtherDrive;
        }
        let apart = !self.sets.iter().any(|set| other.sets.contains(set));
        if apart && !self.sets.is_empty() && !other.sets.is_empty() {
            Relation::OtherSet
        } else {
            Relation::OtherNamespace
        }
    }
}

/// Description of a drive for reports.
pub fn subject(
    target: String,
    kind: String,
    facts: Option<&Facts>,
    geometry: &Geometry,
) -> Subject {
    let drive = facts.map(|facts| &facts.drive);
    Subject {
        target,
        kind,
        model: drive.and_then(|drive| drive.model.clone()),
        serial: drive.and_then(|drive| drive.serial.clone()),
        firmware: drive.and_then(|drive| drive.firmware.clone()),
        capacity_bytes: geometry.capacity_bytes,
        block_bytes: geometry.block_bytes,
        trim_bytes: geometry.trim_unit_bytes,
        link: drive.and_then(|drive| drive.link.as_ref()).map(ToString::to_string),
        scheduler: facts.and_then(|facts| facts.scheduler.clone()),
        facts: facts.and_then(|facts| serde_json::to_value(facts).ok()),
        members: Vec::new(),
    }
}

/// Description of a striped set of these drives for reports.
pub fn subject_of_set(set: &StripedSet, members: Vec<Subject>, geometry: &Geometry) -> Subject {
    let (level, stripe_bytes, count) = (set.level, set.stripe_bytes, members.len());
    let serials: Option<Vec<&str>> =
        members.iter().map(|member| member.serial.as_deref()).collect();
    let model = members.first().and_then(|first| first.model.clone());
    let alike = members.iter().all(|member| member.model == model);
    Subject {
        target: set.name.clone(),
        kind: format!("{level} of {count} drives, stripes of {stripe_bytes} bytes"),
        // The same drives in another order or with other stripes are another set.
        serial: serials.map(|serials| format!("{level}/{stripe_bytes}: {}", serials.join("+"))),
        model: model.filter(|_| alike).map(|model| format!("{count} x {model}")),
        firmware: None,
        capacity_bytes: geometry.capacity_bytes,
        block_bytes: geometry.block_bytes,
        trim_bytes: geometry.trim_unit_bytes,
        link: None,
        scheduler: None,
        facts: members.iter().map(|member| member.facts.clone()).collect(),
        members: members.into_iter().map(|member| member.target).collect(),
    }
}

/// The rates at which drives may write and read, all together, for stating costs.
pub fn guesses(known: &[Known]) -> (Rate, Rate) {
    let (write, read): (Vec<f64>, Vec<f64>) = known.iter().map(Known::guess).unzip();
    (Rate(write.iter().sum()), Rate(read.iter().sum()))
}

/// What a simulated drive writes and reads at best, by plain arithmetic. All its namespaces share that.
fn rates(spec: &Spec) -> (f64, f64) {
    let link = spec.link.bytes_per_s();
    let medium = match spec.flash.media {
        Media::Nand => spec.flash.program_bytes_per_s(),
        Media::InPlace => link,
    };
    let share = 1.0 / spec.sets.namespaces.len().max(1) as f64;
    (medium.min(link) * share, link * share)
}
