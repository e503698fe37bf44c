//! A drive as a plan sees it: the figures that it is computed from, and what each rests on.

use format::{Layout, LayoutError};
use profile::{Profile, Trust, Unit, name};
use serde::Serialize;
use ssd::Spec;
use ssd::spec::{Link, SetLayout};

use crate::described::Described;
use crate::host::LINK_EFFICIENCY;

/// What the datasheet promises of writing, in bytes a second, where a measurer's figure stands under the name of the phase.
pub const DATASHEET_WRITE: &str = "datasheet.write";

/// A figure that a plan has used.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Figure {
    /// Its name in the profile.
    pub name: String,
    /// The value.
    pub value: f64,
    /// What it counts.
    pub unit: Unit,
    /// What it rests on.
    pub evidence: Trust,
    /// Where it comes from.
    pub origin: String,
    /// From where to where it lies in 95 of 100 cases; None if nothing tells.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub range: Option<(f64, f64)>,
}

/// Standard deviations of a normal distribution between its middle and the end of a range that has 95 of 100 cases.
const RANGE_DEVIATIONS: f64 = 1.96;
/// How far a rate or size may be off that a measurer published, or that parts of a simulated drive come to, as a share. Reviews round
/// levels to a tenth, and their means differ from their own levels by that much; of rates that were held out, none was predicted worse.
const SPREAD: f64 = 0.1;

/// A drive's flash in parts that share nothing: namespaces on NVM Sets of their own.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Parts {
    /// How sets divide the flash.
    pub layout: SetLayout,
    /// NVM Sets.
    pub sets: u32,
    /// Namespaces: parts of the flash.
    pub count: u32,
    /// The share of the flash that the smallest has.
    pub share: f64,
    /// Bytes of the smallest.
    pub bytes: u64,
}

/// A drive model that may be planned with.
#[derive(Clone, Debug)]
pub struct Candidate {
    /// What is known of it.
    pub profile: Profile,
    /// The price of one, in whatever currency all prices are.
    pub price: Option<f64>,
    /// The description that is all there is to know of it; None of a drive with a profile of its own.
    pub described: Option<Described>,
    /// What its simulation is made of, if it can be simulated.
    model: Option<Spec>,
    /// By how many standard deviations rates and sizes are taken to be less than stated.
    deviations: f64,
}

impl Parts {
    /// The share of the flash that is not recorded to while one part is.
    pub fn quiet_share(&self) -> f64 {
        self.share * f64::from(self.count - 1)
    }
}

impl Candidate {
    /// A drive with what is known of it.
    pub fn new(profile: Profile, price: Option<f64>) -> Self {
        // Parameters that no drive can have tell nothing of this one.
        let model = Spec::from_profile(&profile).ok().filter(|spec| spec.check().is_ok());
        Self { profile, price, described: None, model, deviations: 0.0 }
    }

    /// A drive of which only a description is known.
    pub fn of_description(described: Described, price: Option<f64>) -> Self {
        Self { described: Some(described), ..Self::new(described.profile(), price) }
    }

    /// A figure of the profile.
    pub fn figure(&self, name: &str) -> Option<Figure> {
        let known = self.profile.known(name)?;
        let spread = (known.trust() == Trust::Published).then(|| spread(known.value));
        Some(self.worse(Figure {
            name: name.to_owned(),
            value: known.value,
            unit: known.unit,
            evidence: known.trust(),
            origin: known.source.origin.clone(),
            range: known.range.or(spread),
        }))
    }

    /// From now on, rates and sizes that have a range are less than stated by so many standard deviations.
    pub fn worse_by(&mut self, deviations: f64) {
        self.deviations = deviations;
    }

    fn worse(&self, figure: Figure) -> Figure {
        let Some((low, _)) = figure.range else { return figure };
        if !matches!(figure.unit, Unit::BytesPerSecond | Unit::Bytes) {
            return figure;
        }
        let deviation = (figure.value - low) / RANGE_DEVIATIONS;
        Figure { value: (figure.value - self.deviations * deviation).max(0.0), ..figure }
    }

    /// A figure above 0 in bytes a second; a drive that writes nothing is none.
    pub fn rate(&self, name: &str) -> Option<Figure> {
        self.figure(name).filter(|figure| figure.unit == Unit::BytesPerSecond && figure.value > 0.0)
    }

    /// Writing past a cache as the simulated drive's parts come to.
    pub fn model_write(&self) -> Option<Figure> {
        let rate = self.model.as_ref()?.native_write_bytes_per_s();
        Some(self.worse(of_model(name::WRITE_NATIVE, rate)))
    }

    /// Bytes written when its cache begins to shrink, and the rate from there on. If no measurement has filled the drive, both are
    /// computed from the parameters of the simulated drive. `native` is the rate before.
    pub fn shrunk(&self, native: &Figure) -> Option<(Figure, Option<Figure>)> {
        let model = self.model.as_ref().and_then(|spec| Some((spec, spec.folding()?)));
        let level = self.rate(name::WRITE_SHRUNK).or_else(|| {
            let (spec, folding) = model?;
            let share = folding.bytes_per_s / spec.native_write_bytes_per_s();
            // It is worse already if the rate before is.
            Some(of_model(name::WRITE_SHRUNK, native.value * share))
        });
        if let Some(place) = self.figure(name::WRITE_SHRINK) {
            return Some((place, level));
        }
        // Overwriting, and the slowest minute of a fill, can only be measured on a drive that was filled.
        let of_all = [name::WRITE_MEAN, name::WRITE_OVERWRITE, name::WRITE_SUSTAINED];
        let seen_whole = of_all.iter().any(|name| self.figure(name).is_some())
            || self.profile.fill.as_ref().is_some_and(|f| f.is_whole(self.profile.capacity_bytes));
        let (_, folding) = model.filter(|_| !seen_whole)?;
        let place = of_model(name::WRITE_SHRINK, folding.from_bytes as f64);
        Some((self.worse(Figure { unit: Unit::Bytes, ..place }), level))
    }

    /// Reading in order: the figure, or what the simulated drive's parts come to.
    pub fn read(&self) -> Option<Figure> {
        self.rate(name::READ_SEQUENTIAL).or_else(|| {
            let rate = self.model.as_ref()?.sequential_read_bytes_per_s();
            Some(self.worse(of_model(name::READ_SEQUENTIAL, rate)))
        })
    }

    /// Reading so many bytes at places drawn at random, at depth: the most that was measured of it, or what the simulated drive's
    /// dies come to, each read taking one of them from its program and back.
    pub fn random_read(&self, read_bytes: u32) -> Option<Figure> {
        let depths = (0..=10).map(|power| 1 << power);
        let names = depths.map(|depth| name::random_rate(read_bytes.into(), depth));
        let measured = names.filter_map(|name| self.rate(&name));
        measured.max_by(|a, b| a.value.total_cmp(&b.value)).or_else(|| {
            let model = self.model.as_ref()?;
            let flash = &model.flash;
            let die_bytes = f64::from(flash.planes) * f64::from(flash.page_bytes);
            let accesses = (f64::from(read_bytes) / die_bytes).ceil();
            let access_us = flash.read_us + flash.suspend_us.unwrap_or(0.0);
            let dies = f64::from(flash.dies()) / (accesses * access_us / 1e6);
            let most = model.sequential_read_bytes_per_s() / f64::from(read_bytes);
            let reads = dies.min(model.controller.read_iops).min(most);
            let name = format!("random.read.{}", name::block(read_bytes.into()));
            Some(self.worse(of_model(&name, reads * f64::from(read_bytes))))
        })
    }

    /// The parts that its NVM Sets divide it into; None if all namespaces share flash, or nothing tells.
    pub fn parts(&self) -> Option<Parts> {
        let model = self.model.as_ref()?;
        let (sets, namespaces) = (&model.sets, &model.sets.namespaces);
        let alone = |at: usize| {
            let others = namespaces.iter().enumerate().filter(|(other, _)| *other != at);
            let mut others = others.flat_map(|(_, namespace)| &namespace.sets);
            !others.any(|set| namespaces[at].sets.contains(set))
        };
        if namespaces.len() < 2 || !(0..namespaces.len()).all(alone) {
            return None;
        }
        let share = |sets_of: usize| sets_of as f64 / f64::from(sets.count);
        Some(Parts {
            layout: sets.layout,
            sets: sets.count,
            count: namespaces.len() as u32,
            share: namespaces.iter().map(|n| share(n.sets.len())).fold(1.0, f64::min),
            bytes: namespaces.iter().map(|n| model.namespace_bytes(n)).min().unwrap_or(0),
        })
    }

    /// Its own link; None if that isn't known, as of a file.
    pub fn link(&self) -> Option<Link> {
        let of_model = self.model.as_ref().map(|spec| spec.link);
        let Some(link) = self.profile.link() else { return of_model };
        let efficiency = match of_model {
            Some(Link::Pcie { efficiency, .. }) => efficiency,
            _ => LINK_EFFICIENCY,
        };
        let lines = [2.5, 5.0, 8.0, 16.0, 32.0, 64.0];
        let generation = (1u8..).zip(lines).find(|(_, line)| *line == link.gigatransfers)?.0;
        Some(Link::Pcie { generation, lanes: link.lanes, efficiency })
    }

    /// How it is divided for recording: all of it, or each of its parts.
    ///
    /// # Errors
    /// If it is too small for it.
    pub fn layout(&self, parts: Option<Parts>) -> Result<Layout, LayoutError> {
        Layout::default_for(parts.map_or(self.profile.capacity_bytes, |parts| parts.bytes))
    }
}

/// What parts of a simulated drive come to.
fn of_model(name: &str, value: f64) -> Figure {
    Figure {
        name: name.to_owned(),
        value,
        unit: Unit::BytesPerSecond,
        evidence: Trust::Assumed,
        origin: "parts of the simulated drive".to_owned(),
        range: Some(spread(value)),
    }
}

fn spread(value: f64) -> (f64, f64) {
    (value * (1.0 - SPREAD), value * (1.0 + SPREAD))
}
