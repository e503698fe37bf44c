//! The parameters of a simulated drive that a measurement may tell: where each stands, within what bounds it is sought, and
//! what has to be measured for it.

use lab::fitting::trials::{Measured, Shows};
use lab::fitting::{Knob, Scale};
use profile::name;
use ssd::Spec;
use ssd::spec::{Cache, Link};

/// A parameter that is fitted.
#[derive(Clone, Copy, Debug)]
pub struct Part {
    /// Name for people: its place in the specification, or words where it stands for several parameters.
    pub name: &'static str,
    /// Section and name of each parameter of the specification that it sets.
    pub fields: &'static [(&'static str, &'static str)],
    /// What must have been measured for it to be fitted.
    pub needs: Needs,
    bounds: (f64, f64),
    scale: Scale,
    get: fn(&Spec) -> f64,
    set: fn(&mut Spec, f64),
}

/// What must be measured for a parameter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Needs {
    /// The rate of reads at some depth and block size.
    Reads,
    /// The rate of writes at some depth and block size.
    Writes,
    /// Writing the whole drive, or at least writes at some depth.
    Fill,
    /// Writing the whole drive past a cache.
    Cliff,
    /// Writing the whole drive until its cache shrinks.
    Shrunk,
    /// Writing the whole drive past a cache, and reads.
    CachedReads,
    /// Random writes until they are steady.
    Rounds,
}

const FACTOR: Scale = Scale::Factor { step: 0.03 };
/// Whole superblocks: a smaller step might change nothing.
const SPARE: Scale = Scale::Factor { step: 0.08 };
const SHARE: Scale = Scale::Difference { step: 0.02 };

/// Every parameter that can be fitted.
pub const PARTS: [Part; 19] = [
    Part {
        name: "flash.program_us",
        fields: &[("flash", "program_us")],
        needs: Needs::Fill,
        bounds: (10.0, 1e5),
        scale: FACTOR,
        get: |spec| spec.flash.program_us,
        set: |spec, value| spec.flash.program_us = value,
    },
    Part {
        name: "flash.erase_us",
        fields: &[("flash", "erase_us")],
        needs: Needs::Fill,
        bounds: (1.0, 1e5),
        scale: Scale::Factor { step: 0.2 },
        get: |spec| spec.flash.erase_us,
        set: |spec, value| spec.flash.erase_us = value,
    },
    Part {
        name: "link.efficiency",
        fields: &[("link", "efficiency")],
        needs: Needs::Reads,
        bounds: (0.1, 1.0),
        scale: FACTOR,
        get: |spec| match spec.link {
            Link::Pcie { efficiency, .. } | Link::Sata { efficiency, .. } => efficiency,
        },
        set: |spec, value| match &mut spec.link {
            Link::Pcie { efficiency, .. } | Link::Sata { efficiency, .. } => *efficiency = value,
        },
    },
    Part {
        name: "cache size",
        fields: &[("cache", "static_bytes"), ("cache", "dynamic_bytes")],
        needs: Needs::Cliff,
        bounds: (1e6, 1e13),
        scale: FACTOR,
        get: |spec| spec.cache.as_ref().map_or(0.0, cache_bytes),
        set: |spec, value| {
            let fixed = fixed_share(spec);
            set_cache(spec, value, fixed);
        },
    },
    Part {
        name: "cache.program_us",
        fields: &[("cache", "program_us")],
        needs: Needs::Cliff,
        bounds: (5.0, 1e5),
        scale: FACTOR,
        get: |spec| of_cache(spec, |cache| cache.program_us),
        set: |spec, value| with_cache(spec, |cache| cache.program_us = value),
    },
    Part {
        name: "cache.first_bytes",
        fields: &[("cache", "first_bytes")],
        needs: Needs::Cliff,
        bounds: (1e6, 1e13),
        scale: FACTOR,
        get: |spec| of_cache(spec, |cache| cache.first_bytes as f64),
        set: |spec, value| with_cache(spec, |cache| cache.first_bytes = value.round() as u64),
    },
    Part {
        name: "cache.first_program_us",
        fields: &[("cache", "first_program_us")],
        needs: Needs::Cliff,
        bounds: (5.0, 1e5),
        scale: FACTOR,
        get: |spec| of_cache(spec, |cache| cache.first_program_us.unwrap_or(0.0)),
        set: |spec, value| with_cache(spec, |cache| cache.first_program_us = Some(value)),
    },
    Part {
        name: "cache.fold_us",
        fields: &[("cache", "fold_us")],
        needs: Needs::Shrunk,
        bounds: (5.0, 1e7),
        scale: FACTOR,
        get: |spec| of_cache(spec, |cache| cache.fold_us.unwrap_or(0.0)),
        set: |spec, value| with_cache(spec, |cache| cache.fold_us = Some(value)),
    },
    Part {
        name: "fixed share of the cache",
        fields: &[("cache", "static_bytes"), ("cache", "dynamic_bytes")],
        needs: Needs::Cliff,
        bounds: (0.0, 1.0),
        scale: SHARE,
        get: fixed_share,
        set: |spec, value| {
            let bytes = spec.cache.as_ref().map_or(0.0, cache_bytes);
            set_cache(spec, bytes, value);
        },
    },
    Part {
        name: "cache.shrink_from",
        fields: &[("cache", "shrink_from")],
        needs: Needs::Cliff,
        bounds: (0.0, 1.0),
        scale: SHARE,
        get: |spec| of_cache(spec, |cache| cache.shrink_from),
        set: |spec, value| {
            with_cache(spec, |cache| {
                let width = cache.shrink_to - cache.shrink_from;
                cache.shrink_from = value;
                cache.shrink_to = (value + width).min(1.0);
            });
        },
    },
    Part {
        name: "cache.shrink_to",
        fields: &[("cache", "shrink_to")],
        needs: Needs::Cliff,
        bounds: (0.0, 1.0),
        scale: SHARE,
        get: |spec| of_cache(spec, |cache| cache.shrink_to),
        set: |spec, value| {
            with_cache(spec, |cache| cache.shrink_to = value.max(cache.shrink_from));
        },
    },
    Part {
        name: "controller.read_us",
        fields: &[("controller", "read_us")],
        needs: Needs::Reads,
        bounds: (0.1, 1e4),
        scale: FACTOR,
        get: |spec| spec.controller.read_us,
        set: |spec, value| spec.controller.read_us = value,
    },
    Part {
        name: "flash.read_us",
        fields: &[("flash", "read_us")],
        needs: Needs::Reads,
        bounds: (0.5, 1e4),
        scale: FACTOR,
        get: |spec| spec.flash.read_us,
        set: |spec, value| spec.flash.read_us = value,
    },
    Part {
        name: "cache.read_us",
        fields: &[("cache", "read_us")],
        needs: Needs::CachedReads,
        bounds: (0.5, 1e4),
        scale: FACTOR,
        get: |spec| of_cache(spec, |cache| cache.read_us),
        set: |spec, value| with_cache(spec, |cache| cache.read_us = value),
    },
    Part {
        name: "controller.read_iops",
        fields: &[("controller", "read_iops")],
        needs: Needs::Reads,
        bounds: (1e3, 1e8),
        scale: FACTOR,
        get: |spec| spec.controller.read_iops,
        set: |spec, value| spec.controller.read_iops = value,
    },
    Part {
        name: "flash.channel_mb_s",
        fields: &[("flash", "channel_mb_s")],
        needs: Needs::Reads,
        bounds: (20.0, 1e4),
        scale: FACTOR,
        get: |spec| spec.flash.channel_mb_s,
        set: |spec, value| spec.flash.channel_mb_s = value,
    },
    Part {
        name: "controller.write_us",
        fields: &[("controller", "write_us")],
        needs: Needs::Writes,
        bounds: (0.1, 1e4),
        scale: FACTOR,
        get: |spec| spec.controller.write_us,
        set: |spec, value| spec.controller.write_us = value,
    },
    Part {
        name: "controller.write_iops",
        fields: &[("controller", "write_iops")],
        needs: Needs::Rounds,
        bounds: (1e3, 1e8),
        scale: FACTOR,
        get: |spec| spec.controller.write_iops,
        set: |spec, value| spec.controller.write_iops = value,
    },
    Part {
        name: "mapping.over_provisioning",
        fields: &[("mapping", "over_provisioning")],
        needs: Needs::Rounds,
        bounds: (0.005, 2.0),
        scale: SPARE,
        get: |spec| spec.mapping.over_provisioning,
        set: |spec, value| spec.mapping.over_provisioning = value,
    },
];

impl Part {
    /// Its value in `spec`, in the unit that the specification has it in.
    pub fn value(&self, spec: &Spec) -> f64 {
        (self.get)(spec)
    }

    /// Gives it a value, in the same unit.
    pub fn put(&self, spec: &mut Spec, value: f64) {
        (self.set)(spec, value);
    }

    /// Whether it is one of a cache, which not every drive has.
    pub const fn is_of_cache(&self) -> bool {
        matches!(self.needs, Needs::Cliff | Needs::Shrunk | Needs::CachedReads)
    }

    /// Whether a drive has it: what is sought by factors of itself begins above 0.
    pub fn is_in(&self, spec: &Spec) -> bool {
        matches!(self.scale, Scale::Difference { .. }) || self.value(spec) > 0.0
    }

    /// As the search takes it, beginning at what it is in `spec`.
    pub fn knob(&self, spec: &Spec) -> Knob {
        let (name, guess) = (self.name.to_owned(), self.value(spec));
        Knob { name, guess, bounds: self.bounds, scale: self.scale }
    }
}

impl Needs {
    /// Whether that was measured.
    pub fn are_met(self, measured: &Measured) -> bool {
        let shows =
            |wanted: fn(&Shows) -> bool| measured.trials.iter().any(|trial| wanted(&trial.shows));
        let reads = || shows(|shows| matches!(shows, Shows::Rate { verb: load::Verb::Read, .. }));
        let writes = || shows(|shows| matches!(shows, Shows::Rate { verb: load::Verb::Write, .. }));
        let fill = || shows(|shows| matches!(shows, Shows::Curve { .. }));
        let cliff = || measured.targets.iter().any(|target| target.name == name::WRITE_CACHE);
        match self {
            Self::Reads => reads(),
            Self::Writes => writes(),
            Self::Fill => fill() || writes(),
            Self::Cliff => cliff(),
            Self::Shrunk => measured.targets.iter().any(|target| target.name == name::WRITE_SHRUNK),
            Self::CachedReads => cliff() && reads(),
            Self::Rounds => shows(|shows| matches!(shows, Shows::Round { .. })),
        }
    }

    /// What to do about it where it wasn't.
    pub const fn remedy(self) -> &'static str {
        match self {
            Self::Reads => "measure link or stream",
            Self::Writes => "measure stream",
            Self::Fill => "measure fill",
            Self::Cliff | Self::Shrunk => "measure fill, on the whole drive",
            Self::CachedReads => "measure fill and link",
            Self::Rounds => "measure snia",
        }
    }
}

fn of_cache(spec: &Spec, get: impl Fn(&Cache) -> f64) -> f64 {
    spec.cache.as_ref().map_or(0.0, get)
}

fn with_cache(spec: &mut Spec, set: impl FnOnce(&mut Cache)) {
    if let Some(cache) = &mut spec.cache {
        set(cache);
    }
}

fn cache_bytes(cache: &Cache) -> f64 {
    (cache.static_bytes + cache.dynamic_bytes) as f64
}

fn fixed_share(spec: &Spec) -> f64 {
    of_cache(spec, |cache| cache.static_bytes as f64 / cache_bytes(cache).max(1.0))
}

fn set_cache(spec: &mut Spec, bytes: f64, fixed: f64) {
    with_cache(spec, |cache| {
        cache.static_bytes = (bytes * fixed).round() as u64;
        cache.dynamic_bytes = (bytes * (1.0 - fixed)).round() as u64;
    });
}
