//! A drive as a plan sees it: the figures that it is computed from, and what each rests on.

use format::{Layout, LayoutError};
use profile::{Known, Profile, SourceKind, Unit, name};
use serde::Serialize;
use ssd::Spec;
use ssd::spec::Link;

use crate::host::LINK_EFFICIENCY;

/// What the datasheet promises of writing, in bytes a second, where a measurer's figure stands under the name of the phase.
pub const DATASHEET_WRITE: &str = "datasheet.write";

/// What a figure rests on; later ones are worth more.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Evidence {
    /// Taken for granted, or computed from what a simulated drive is made of.
    Assumed,
    /// The maker's word: what it holds for, and for how long, isn't known (REC-1).
    Datasheet,
    /// Published by somebody who measured.
    Published,
    /// Measured with this program, or read from its own results.
    Measured,
}

/// A figure that a plan has used.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Figure {
    /// Its name in the profile.
    pub name: String,
    /// Its value.
    pub value: f64,
    /// What it counts.
    pub unit: Unit,
    /// What it rests on.
    pub evidence: Evidence,
    /// Where it comes from.
    pub origin: String,
}

/// A drive model that may be planned with.
#[derive(Clone, Debug)]
pub struct Candidate {
    /// What is known of it.
    pub profile: Profile,
    /// The price of one, in whatever currency all prices are.
    pub price: Option<f64>,
    /// What its simulation is made of, if it can be simulated.
    model: Option<Spec>,
}

impl Evidence {
    /// Of a figure's source. A maker's word is told from a measurer's by the origin: profiles write `datasheet` there.
    pub fn of(known: &Known) -> Self {
        let maker = known.source.origin.to_lowercase().contains("datasheet");
        match known.source.kind {
            SourceKind::Measured => Self::Measured,
            SourceKind::Published if maker => Self::Datasheet,
            SourceKind::Published => Self::Published,
            SourceKind::Assumed => Self::Assumed,
        }
    }
}

impl std::fmt::Display for Evidence {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(match self {
            Self::Measured => "measured",
            Self::Published => "published by a measurer",
            Self::Datasheet => "datasheet",
            Self::Assumed => "assumed",
        })
    }
}

impl Candidate {
    /// A drive with what is known of it.
    pub fn new(profile: Profile, price: Option<f64>) -> Self {
        let model = Spec::from_profile(&profile).ok();
        Self { profile, price, model }
    }

    /// A figure of the profile.
    pub fn figure(&self, name: &str) -> Option<Figure> {
        let known = self.profile.known(name)?;
        Some(Figure {
            name: name.to_owned(),
            value: known.value,
            unit: known.unit,
            evidence: Evidence::of(known),
            origin: known.source.origin.clone(),
        })
    }

    /// A figure above 0 in bytes a second; a drive that writes nothing is none.
    pub fn rate(&self, name: &str) -> Option<Figure> {
        self.figure(name).filter(|figure| figure.unit == Unit::BytesPerSecond && figure.value > 0.0)
    }

    /// Writing past a cache as the simulated drive's parts come to.
    pub fn model_write(&self) -> Option<Figure> {
        let rate = self.model.as_ref()?.native_write_bytes_per_s();
        Some(self.of_model(name::WRITE_NATIVE, rate))
    }

    /// Reading in order: the figure, or what the simulated drive's parts come to.
    pub fn read(&self) -> Option<Figure> {
        self.rate(name::READ_SEQUENTIAL).or_else(|| {
            let rate = self.model.as_ref()?.sequential_read_bytes_per_s();
            Some(self.of_model(name::READ_SEQUENTIAL, rate))
        })
    }

    fn of_model(&self, name: &str, value: f64) -> Figure {
        Figure {
            name: name.to_owned(),
            value,
            unit: Unit::BytesPerSecond,
            evidence: Evidence::Assumed,
            origin: "parts of the simulated drive".to_owned(),
        }
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

    /// How it is divided for recording.
    ///
    /// # Errors
    /// If it is too small for it.
    pub fn layout(&self) -> Result<Layout, LayoutError> {
        Layout::default_for(self.profile.capacity_bytes)
    }
}
