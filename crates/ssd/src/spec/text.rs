//! Drives from specification files and back: a profile's `[simulated.*]` parameters as a [`Spec`].

use std::cell::RefCell;
use std::collections::BTreeSet;

use profile::{Parameter, Profile, Simulated, nearest};

use super::field::{Field, Kind};
use super::parameters::{Absent, Known, PARAMETERS};
use super::{
    Buffer, Cache, Collector, Controller, Endurance, Flash, Heat, Link, Mapping, Media, Namespace,
    Placement, Predictable, Sets, Spec, SpecError, Upkeep,
};

impl Spec {
    /// A drive from what a profile says of its simulation. Whether it can be is for [`Spec::check`] to say.
    ///
    /// # Errors
    /// [`SpecError`] for a parameter that is missing, unknown, of the wrong kind, or of no use beside the others.
    pub fn from_profile(profile: &Profile) -> Result<Self, SpecError> {
        if profile.simulated.is_empty() {
            return Err(SpecError {
                field: "simulated".to_owned(),
                problem: format!(
                    "'{}' says nothing of how it is simulated: add [simulated.*] tables, or start from a drive of the \
                     library",
                    profile.name
                ),
            });
        }
        let read = Reader { given: &profile.simulated, used: RefCell::default() };
        read.refuse_unknown()?;
        let spec = Self {
            name: profile.name.clone(),
            model: profile.model.clone(),
            capacity_bytes: profile.capacity_bytes,
            block_bytes: read.get("controller", "block_bytes")?,
            controller: Controller {
                read_us: read.get("controller", "read_us")?,
                write_us: read.get("controller", "write_us")?,
                read_iops: read.get("controller", "read_iops")?,
                write_iops: read.get("controller", "write_iops")?,
                depth: read.get("controller", "depth")?,
            },
            link: read.link()?,
            buffer: Buffer {
                bytes: read.get("buffer", "bytes")?,
                protected: read.get("buffer", "protected")?,
            },
            flash: read.flash()?,
            mapping: read.mapping()?,
            cache: read.cache()?,
            sets: read.sets()?,
            placement: if read.given.has("placement") {
                Some(Placement {
                    handles: read.get("placement", "handles")?,
                    isolation: read.get("placement", "isolation")?,
                })
            } else {
                None
            },
            predictable: read.predictable()?,
            endurance: Endurance {
                cycles: read.get("endurance", "cycles")?,
                used: read.get("endurance", "used")?,
                rated_bytes: read.maybe("endurance", "rated_bytes")?,
            },
            upkeep: if read.given.has("upkeep") {
                Some(Upkeep {
                    every_bytes: read.get("upkeep", "every_bytes")?,
                    bytes: read.get("upkeep", "bytes")?,
                    within_bytes: read.get("upkeep", "within_bytes")?,
                })
            } else {
                None
            },
            heat: read.heat()?,
        };
        read.refuse_unused()?;
        Ok(spec)
    }

    /// The parameters that make this drive, all of them as assumed.
    pub fn to_parameters(&self) -> Simulated {
        let mut all = Writer::default();
        let c = &self.controller;
        all.put("controller", "block_bytes", &self.block_bytes);
        all.put("controller", "read_us", &c.read_us);
        all.put("controller", "write_us", &c.write_us);
        all.put("controller", "read_iops", &c.read_iops);
        all.put("controller", "write_iops", &c.write_iops);
        all.put("controller", "depth", &c.depth);
        match self.link {
            Link::Pcie { generation, lanes, efficiency } => {
                all.put("link", "kind", &Kind::Pcie);
                all.put("link", "generation", &generation);
                all.put("link", "lanes", &lanes);
                all.put("link", "efficiency", &efficiency);
            }
            Link::Sata { gbps, efficiency } => {
                all.put("link", "kind", &Kind::Sata);
                all.put("link", "gbps", &gbps);
                all.put("link", "efficiency", &efficiency);
            }
        }
        all.put("buffer", "bytes", &self.buffer.bytes);
        all.put("buffer", "protected", &self.buffer.protected);
        all.flash(&self.flash);
        all.mapping(&self.mapping, self.flash.media);
        if let Some(cache) = &self.cache {
            all.cache(cache);
        }
        all.put("sets", "layout", &self.sets.layout);
        all.put("sets", "count", &self.sets.count);
        all.put("sets", "namespaces", &self.sets.namespaces);
        if let Some(Placement { handles, isolation }) = &self.placement {
            all.put("placement", "handles", handles);
            all.put("placement", "isolation", isolation);
        }
        if let Some(predictable) = &self.predictable {
            all.put("predictable", "reads", &predictable.reads);
            all.put("predictable", "writes", &predictable.writes);
            all.put("predictable", "longest_ms", &predictable.longest_ms);
            all.put("predictable", "recovery_ms", &predictable.recovery_ms);
            all.put("predictable", "recovery_least_ms", &predictable.recovery_least_ms);
        }
        all.put("endurance", "cycles", &self.endurance.cycles);
        all.put("endurance", "used", &self.endurance.used);
        if let Some(rated) = &self.endurance.rated_bytes {
            all.put("endurance", "rated_bytes", rated);
        }
        if let Some(Upkeep { every_bytes, bytes, within_bytes }) = &self.upkeep {
            all.put("upkeep", "every_bytes", every_bytes);
            all.put("upkeep", "bytes", bytes);
            all.put("upkeep", "within_bytes", within_bytes);
        }
        if let Some(heat) = &self.heat {
            all.heat(heat);
        }
        all.0
    }
}

/// Takes parameters one by one, and knows in the end which nobody took.
struct Reader<'a> {
    given: &'a Simulated,
    used: RefCell<BTreeSet<(&'static str, &'static str)>>,
}

impl Reader<'_> {
    /// A parameter, or its default.
    fn get<T: Field>(&self, section: &'static str, name: &'static str) -> Result<T, SpecError> {
        if let Some(value) = self.maybe(section, name)? {
            return Ok(value);
        }
        let Known { absent, meaning, .. } = known(section, name);
        let Absent::Default(default) = absent else {
            return Err(error(section, name, format!("it is missing: {meaning}")));
        };
        default
            .parse()
            .ok()
            .and_then(|value| T::read(&value))
            .ok_or_else(|| error(section, name, format!("give {}", T::WANTED)))
    }

    /// A parameter if it is given.
    fn maybe<T: Field>(
        &self,
        section: &'static str,
        name: &'static str,
    ) -> Result<Option<T>, SpecError> {
        self.used.borrow_mut().insert((section, name));
        let Some(Parameter { value, .. }) = self.given.get(section, name) else { return Ok(None) };
        T::read(value)
            .map(Some)
            .ok_or_else(|| error(section, name, format!("{value} is not {}", T::WANTED)))
    }

    fn link(&self) -> Result<Link, SpecError> {
        Ok(match self.get("link", "kind")? {
            Kind::Pcie => Link::Pcie {
                generation: self.get("link", "generation")?,
                lanes: self.get("link", "lanes")?,
                efficiency: self.get("link", "efficiency")?,
            },
            Kind::Sata => Link::Sata {
                gbps: self.get("link", "gbps")?,
                efficiency: self.get("link", "efficiency")?,
            },
        })
    }

    fn flash(&self) -> Result<Flash, SpecError> {
        let media = self.get("flash", "media")?;
        // In-place media have neither planes nor blocks that matter.
        let nand = media == Media::Nand;
        let count = |name| if nand { self.get("flash", name) } else { Ok(1) };
        Ok(Flash {
            media,
            channels: self.get("flash", "channels")?,
            dies_per_channel: self.get("flash", "dies_per_channel")?,
            planes: count("planes")?,
            page_bytes: self.get("flash", "page_bytes")?,
            pages_per_block: count("pages_per_block")?,
            pages_per_program: count("pages_per_program")?,
            read_us: self.get("flash", "read_us")?,
            program_us: self.get("flash", "program_us")?,
            erase_us: if nand { self.get("flash", "erase_us")? } else { 0.0 },
            channel_mb_s: self.get("flash", "channel_mb_s")?,
            suspend_us: if nand { self.maybe("flash", "suspend_us")? } else { None },
            suspend_erases: !nand || self.get("flash", "suspend_erases")?,
            variation: self.get("flash", "variation")?,
            bad_blocks: if nand { self.get("flash", "bad_blocks")? } else { 0.0 },
            retry_share: if nand { self.get("flash", "retry_share")? } else { 0.0 },
        })
    }

    fn mapping(&self) -> Result<Mapping, SpecError> {
        let unit_bytes = self.get("mapping", "unit_bytes")?;
        let trim_reads_zeros = self.get("mapping", "trim_reads_zeros")?;
        Ok(match self.get("flash", "media")? {
            Media::InPlace => Mapping {
                unit_bytes,
                over_provisioning: 0.0,
                collector: Collector::Greedy,
                reserve_superblocks: 0,
                trim_reads_zeros,
            },
            Media::Nand => Mapping {
                unit_bytes,
                over_provisioning: self.get("mapping", "over_provisioning")?,
                collector: self.get("mapping", "collector")?,
                reserve_superblocks: self.get("mapping", "reserve_superblocks")?,
                trim_reads_zeros,
            },
        })
    }

    fn predictable(&self) -> Result<Option<Predictable>, SpecError> {
        if !self.given.has("predictable") {
            return Ok(None);
        }
        Ok(Some(Predictable {
            reads: self.get("predictable", "reads")?,
            writes: self.get("predictable", "writes")?,
            longest_ms: self.get("predictable", "longest_ms")?,
            recovery_ms: self.get("predictable", "recovery_ms")?,
            recovery_least_ms: self.get("predictable", "recovery_least_ms")?,
        }))
    }

    fn cache(&self) -> Result<Option<Cache>, SpecError> {
        if !self.given.has("cache") {
            return Ok(None);
        }
        Ok(Some(Cache {
            static_bytes: self.get("cache", "static_bytes")?,
            dynamic_bytes: self.get("cache", "dynamic_bytes")?,
            shrink_from: self.get("cache", "shrink_from")?,
            shrink_to: self.get("cache", "shrink_to")?,
            program_us: self.get("cache", "program_us")?,
            first_bytes: self.get("cache", "first_bytes")?,
            first_program_us: self.maybe("cache", "first_program_us")?,
            read_us: self.get("cache", "read_us")?,
            fold_us: self.maybe("cache", "fold_us")?,
            when_full: self.get("cache", "when_full")?,
            idle_ms: self.get("cache", "idle_ms")?,
            drain_mb_s: self.maybe("cache", "drain_mb_s")?,
        }))
    }

    fn heat(&self) -> Result<Option<Heat>, SpecError> {
        if !self.given.has("heat") {
            return Ok(None);
        }
        Ok(Some(Heat {
            idle_w: self.get("heat", "idle_w")?,
            die_w: self.get("heat", "die_w")?,
            transfer_w: self.get("heat", "transfer_w")?,
            joules_per_k: self.get("heat", "joules_per_k")?,
            kelvin_per_w: self.get("heat", "kelvin_per_w")?,
            ambient_c: self.get("heat", "ambient_c")?,
            light_c: self.get("heat", "light_c")?,
            light_mb_s: self.get("heat", "light_mb_s")?,
            heavy_c: self.get("heat", "heavy_c")?,
            heavy_mb_s: self.get("heat", "heavy_mb_s")?,
            hysteresis_k: self.get("heat", "hysteresis_k")?,
        }))
    }

    fn sets(&self) -> Result<Sets, SpecError> {
        let count: u32 = self.get("sets", "count")?;
        let each = || {
            let share = 1.0 / f64::from(count);
            (0..count).map(|set| Namespace { share, sets: vec![set] }).collect()
        };
        Ok(Sets {
            layout: self.get("sets", "layout")?,
            count,
            namespaces: self.maybe("sets", "namespaces")?.unwrap_or_else(each),
        })
    }

    /// Whether all that is given is known.
    fn refuse_unknown(&self) -> Result<(), SpecError> {
        let given = self.given.sections().flat_map(|(section, parameters)| {
            parameters.iter().map(move |(name, _)| (section, name))
        });
        for (section, name) in given {
            let of_section = || PARAMETERS.iter().filter(|known| known.section == section);
            if !of_section().any(|known| known.name == name) {
                return Err(error(section, name, unknown(section, name)));
            }
        }
        Ok(())
    }

    /// Whether all that is given was taken.
    fn refuse_unused(&self) -> Result<(), SpecError> {
        let used = self.used.borrow();
        for (section, parameters) in self.given.sections() {
            for (name, _) in parameters {
                if !used.iter().any(|(s, n)| *s == section && n == name) {
                    let problem = "it has no meaning together with the others (link.kind, flash.media): leave it out";
                    return Err(error(section, name, problem.to_owned()));
                }
            }
        }
        Ok(())
    }
}

/// What to say of a parameter that there isn't.
fn unknown(section: &str, name: &str) -> String {
    let names: Vec<&str> = PARAMETERS
        .iter()
        .filter(|known| known.section == section)
        .map(|known| known.name)
        .collect();
    if names.is_empty() {
        let mut sections: Vec<&str> = PARAMETERS.iter().map(|known| known.section).collect();
        sections.dedup();
        return match nearest(section, sections.iter().copied()) {
            Some(nearest) => format!("there is no section '{section}'; did you mean '{nearest}'?"),
            None => format!("there is no section '{section}'; there are {}", sections.join(", ")),
        };
    }
    match nearest(name, names.iter().copied()) {
        Some(nearest) => format!("it is not known; did you mean '{nearest}'?"),
        None => format!("it is not known; {section} has {}", names.join(", ")),
    }
}

fn known(section: &str, name: &str) -> Known {
    let found = PARAMETERS.iter().find(|known| known.section == section && known.name == name);
    *found.unwrap_or_else(|| panic!("{section}.{name} is in the list of parameters"))
}

fn error(section: &str, name: &str, problem: String) -> SpecError {
    SpecError { field: format!("{section}.{name}"), problem }
}

#[derive(Default)]
struct Writer(Simulated);

impl Writer {
    fn put<T: Field>(&mut self, section: &str, name: &str, value: &T) {
        self.0.set(section, name, Parameter::assumed(value.write()));
    }

    fn heat(&mut self, heat: &Heat) {
        self.put("heat", "idle_w", &heat.idle_w);
        self.put("heat", "die_w", &heat.die_w);
        self.put("heat", "transfer_w", &heat.transfer_w);
        self.put("heat", "joules_per_k", &heat.joules_per_k);
        self.put("heat", "kelvin_per_w", &heat.kelvin_per_w);
        self.put("heat", "ambient_c", &heat.ambient_c);
        self.put("heat", "light_c", &heat.light_c);
        self.put("heat", "light_mb_s", &heat.light_mb_s);
        self.put("heat", "heavy_c", &heat.heavy_c);
        self.put("heat", "heavy_mb_s", &heat.heavy_mb_s);
        self.put("heat", "hysteresis_k", &heat.hysteresis_k);
    }

    fn flash(&mut self, flash: &Flash) {
        let nand = flash.media == Media::Nand;
        self.put("flash", "media", &flash.media);
        self.put("flash", "channels", &flash.channels);
        self.put("flash", "dies_per_channel", &flash.dies_per_channel);
        if nand {
            self.put("flash", "planes", &flash.planes);
        }
        self.put("flash", "page_bytes", &flash.page_bytes);
        if nand {
            self.put("flash", "pages_per_block", &flash.pages_per_block);
            self.put("flash", "pages_per_program", &flash.pages_per_program);
        }
        self.put("flash", "read_us", &flash.read_us);
        self.put("flash", "program_us", &flash.program_us);
        if nand {
            self.put("flash", "erase_us", &flash.erase_us);
        }
        self.put("flash", "channel_mb_s", &flash.channel_mb_s);
        if let (true, Some(suspend_us)) = (nand, &flash.suspend_us) {
            self.put("flash", "suspend_us", suspend_us);
        }
        if nand {
            self.put("flash", "suspend_erases", &flash.suspend_erases);
        }
        self.put("flash", "variation", &flash.variation);
        if nand {
            self.put("flash", "bad_blocks", &flash.bad_blocks);
            self.put("flash", "retry_share", &flash.retry_share);
        }
    }

    fn mapping(&mut self, mapping: &Mapping, media: Media) {
        self.put("mapping", "unit_bytes", &mapping.unit_bytes);
        if media == Media::Nand {
            self.put("mapping", "over_provisioning", &mapping.over_provisioning);
            self.put("mapping", "collector", &mapping.collector);
            self.put("mapping", "reserve_superblocks", &mapping.reserve_superblocks);
        }
        self.put("mapping", "trim_reads_zeros", &mapping.trim_reads_zeros);
    }

    fn cache(&mut self, cache: &Cache) {
        self.put("cache", "static_bytes", &cache.static_bytes);
        self.put("cache", "dynamic_bytes", &cache.dynamic_bytes);
        self.put("cache", "shrink_from", &cache.shrink_from);
        self.put("cache", "shrink_to", &cache.shrink_to);
        self.put("cache", "program_us", &cache.program_us);
        self.put("cache", "first_bytes", &cache.first_bytes);
        if let Some(first_us) = &cache.first_program_us {
            self.put("cache", "first_program_us", first_us);
        }
        self.put("cache", "read_us", &cache.read_us);
        if let Some(fold_us) = &cache.fold_us {
            self.put("cache", "fold_us", fold_us);
        }
        self.put("cache", "when_full", &cache.when_full);
        self.put("cache", "idle_ms", &cache.idle_ms);
        if let Some(drain_mb_s) = &cache.drain_mb_s {
            self.put("cache", "drain_mb_s", drain_mb_s);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spec::{Isolation, SetLayout, WhenFull};
    use profile::{Value, library};
    use proptest::prelude::*;

    fn ideal() -> Profile {
        library::get("ideal").unwrap()
    }

    /// The ideal drive with a parameter set.
    fn with(section: &str, name: &str, value: impl Into<Value>) -> Result<Spec, SpecError> {
        let mut profile = ideal();
        profile.simulated.set(section, name, Parameter::assumed(value));
        Spec::from_profile(&profile)
    }

    fn profile_of(spec: &Spec) -> Profile {
        let mut profile = Profile::new(&spec.name, &spec.model, "nvme", spec.capacity_bytes);
        profile.simulated = spec.to_parameters();
        profile
    }

    #[test]
    fn a_file_makes_the_drive_it_says_and_defaults_the_rest() {
        let spec = Spec::from_profile(&ideal()).unwrap();
        assert_eq!((spec.name.as_str(), spec.capacity_bytes), ("ideal", 1_000_000_000_000));
        assert_eq!(spec.flash.dies(), 32);
        assert_eq!(spec.buffer, Buffer { bytes: 64 << 20, protected: true });
        assert_eq!(spec.link, Link::Pcie { generation: 4, lanes: 4, efficiency: 1.0 });
        assert_eq!(spec.mapping.collector, Collector::Greedy);
        assert_eq!(spec.sets, Sets::none());
        assert_eq!((spec.cache, spec.upkeep), (None, None));
    }

    #[test]
    fn an_unknown_parameter_is_refused_with_the_one_that_was_meant() {
        let error = with("flash", "chanels", 4).unwrap_err();
        assert_eq!(error.field, "flash.chanels");
        assert!(error.problem.contains("did you mean 'channels'"), "{error}");
        let error = with("flush", "channels", 4).unwrap_err();
        assert!(error.problem.contains("did you mean 'flash'"), "{error}");
        let error = with("buffer", "zebra", 4).unwrap_err();
        assert!(error.problem.contains("buffer has bytes, protected"), "{error}");
    }

    #[test]
    fn a_misspelt_parameter_is_told_rather_than_the_one_that_is_missing_for_it() {
        let text = ideal().to_toml().unwrap().replace("channels = 8", "chanels = 8");
        let error = Spec::from_profile(&Profile::from_toml(&text).unwrap()).unwrap_err();
        assert_eq!(error.field, "flash.chanels", "{error}");
    }

    #[test]
    fn a_parameter_that_means_nothing_here_is_refused() {
        for (section, name) in [("link", "gbps"), ("flash", "media")] {
            let value = if name == "media" { Value::from("in-place") } else { Value::from(6.0) };
            let error = with(section, name, value).unwrap_err();
            assert!(error.problem.contains("has no meaning"), "{error}");
        }
    }

    #[test]
    fn a_missing_parameter_is_named_with_its_meaning() {
        let error = with("cache", "idle_ms", 5.0).unwrap_err();
        assert_eq!(error.field, "cache.program_us");
        assert!(error.problem.contains("one bit a cell"), "{error}");
        let error = Spec::from_profile(&Profile::new("it", "It", "nvme", 1 << 40)).unwrap_err();
        assert!(error.problem.contains("[simulated.*]"), "{error}");
    }

    #[test]
    fn a_value_of_the_wrong_kind_is_told_what_is_wanted() {
        for (section, name, value, wanted) in [
            ("flash", "channels", Value::from(-1), "whole number"),
            ("flash", "channels", Value::from(1.5), "whole number"),
            ("flash", "read_us", Value::from("fast"), "a number"),
            ("buffer", "bytes", Value::from("much"), "64MiB"),
            ("buffer", "protected", Value::from(1), "true or false"),
            ("mapping", "collector", Value::from("choices-some"), "choices-10"),
            ("sets", "layout", Value::from("diagonal"), "horizontal"),
            ("sets", "namespaces", Value::from(2), "share = 0.5"),
            ("link", "kind", Value::from("usb"), "sata"),
            ("link", "generation", Value::from(300), "255"),
        ] {
            let error = with(section, name, value).unwrap_err();
            assert_eq!(error.field, format!("{section}.{name}"));
            assert!(error.problem.contains(wanted), "{error}");
        }
    }

    #[test]
    fn every_default_can_be_read() {
        let needed = [
            "controller",
            "link",
            "buffer",
            "flash",
            "mapping",
            "cache",
            "sets",
            "placement",
            "predictable",
            "endurance",
            "upkeep",
            "heat",
        ];
        for known in PARAMETERS {
            assert!(needed.contains(&known.section), "{known:?}");
            if let Absent::Default(default) = known.absent {
                assert!(default.parse::<Value>().is_ok(), "{known:?}");
            }
        }
    }

    #[test]
    fn what_a_drive_is_made_of_is_in_the_list_and_the_other_way_round() {
        let mut given = BTreeSet::new();
        let sata = Link::Sata { gbps: 6.0, efficiency: 0.9 };
        let mut spec = Spec::from_profile(&ideal()).unwrap();
        spec.upkeep = Some(Upkeep { every_bytes: 2, bytes: 1, within_bytes: 1 });
        spec.heat = Some(heat(1.0));
        spec.endurance.rated_bytes = Some(1);
        spec.placement = Some(Placement { handles: 2, isolation: Isolation::Initial });
        spec.predictable = Some(windows(1.0));
        spec.cache = Some(Cache {
            static_bytes: 0,
            dynamic_bytes: 0,
            shrink_from: 0.0,
            shrink_to: 1.0,
            program_us: 1.0,
            first_bytes: 1,
            first_program_us: Some(1.0),
            read_us: 1.0,
            fold_us: Some(1.0),
            when_full: WhenFull::Fold,
            idle_ms: 0.0,
            drain_mb_s: Some(1.0),
        });
        for spec in [Spec { link: sata, ..spec.clone() }, spec] {
            for (section, parameters) in spec.to_parameters().sections() {
                given.extend(parameters.iter().map(|(name, _)| format!("{section}.{name}")));
            }
        }
        let listed: BTreeSet<String> =
            PARAMETERS.iter().map(|known| format!("{}.{}", known.section, known.name)).collect();
        assert_eq!(given, listed);
    }

    fn windows(times: f64) -> Predictable {
        Predictable {
            reads: 1,
            writes: 2,
            longest_ms: times,
            recovery_ms: 2.0 * times,
            recovery_least_ms: times,
        }
    }

    fn heat(times: f64) -> Heat {
        Heat {
            idle_w: times,
            die_w: 0.02 * times,
            transfer_w: 3.0 * times,
            joules_per_k: 17.0 * times,
            kelvin_per_w: 9.0 * times,
            ambient_c: times - 1.0,
            light_c: 70.0 * times,
            light_mb_s: 900.0 * times,
            heavy_c: 80.0 * times,
            heavy_mb_s: 200.0 * times,
            hysteresis_k: 1.5 * times,
        }
    }

    fn cache() -> impl Strategy<Value = Cache> {
        (any::<u32>(), any::<u32>(), 0.0..1.0f64, 0.0..1.0f64, 0.0..1e4f64, any::<bool>()).prop_map(
            |(fixed, dynamic, from, to, us, fold)| Cache {
                static_bytes: fixed.into(),
                dynamic_bytes: dynamic.into(),
                shrink_from: from,
                shrink_to: to,
                program_us: us,
                first_bytes: (fixed / 2).into(),
                first_program_us: fold.then_some(us / 2.0),
                read_us: us / 3.0,
                fold_us: fold.then_some(us * 3.0),
                when_full: if fold { WhenFull::Fold } else { WhenFull::Native },
                idle_ms: us * 7.0,
                drain_mb_s: fold.then_some(us / 7.0),
            },
        )
    }

    fn sets() -> impl Strategy<Value = Sets> {
        let namespace = (0.0..1.0f64, prop::collection::vec(0..9u32, 0..3))
            .prop_map(|(share, sets)| Namespace { share, sets });
        (any::<bool>(), 1..9u32, prop::collection::vec(namespace, 0..4)).prop_map(
            |(vertical, count, namespaces)| Sets {
                layout: if vertical { SetLayout::Vertical } else { SetLayout::Horizontal },
                count,
                namespaces,
            },
        )
    }

    proptest! {
        #[test]
        fn any_drive_reads_back_from_its_parameters(
            numbers in prop::collection::vec(any::<u32>(), 12),
            times in prop::collection::vec(0.0..1e7f64, 12),
            flags in prop::collection::vec(any::<bool>(), 6),
            cache in prop::option::of(cache()),
            sets in sets(),
            choice in 0..5u32,
        ) {
            let nand = flags[0];
            let spec = Spec {
                name: "it".to_owned(),
                model: "It".to_owned(),
                capacity_bytes: u64::from(numbers[0]) + 1,
                block_bytes: numbers[1],
                controller: Controller {
                    read_us: times[0], write_us: times[1], read_iops: times[2], write_iops: times[3],
                    depth: numbers[2],
                },
                link: if flags[1] {
                    Link::Pcie { generation: 5, lanes: 8, efficiency: times[4] }
                } else {
                    Link::Sata { gbps: times[5], efficiency: times[4] }
                },
                buffer: Buffer { bytes: numbers[3].into(), protected: flags[2] },
                flash: Flash {
                    media: if nand { Media::Nand } else { Media::InPlace },
                    channels: numbers[4],
                    dies_per_channel: numbers[5],
                    planes: if nand { numbers[6] } else { 1 },
                    page_bytes: numbers[7],
                    pages_per_block: if nand { numbers[8] } else { 1 },
                    pages_per_program: if nand { numbers[9] } else { 1 },
                    read_us: times[6],
                    program_us: times[7],
                    erase_us: if nand { times[8] } else { 0.0 },
                    channel_mb_s: times[9],
                    suspend_us: (nand && flags[3]).then_some(times[10]),
                    suspend_erases: !nand || flags[4],
                    variation: times[11],
                    bad_blocks: if nand { times[5] } else { 0.0 },
                    retry_share: if nand { times[4] } else { 0.0 },
                },
                mapping: Mapping {
                    unit_bytes: numbers[10],
                    over_provisioning: if nand { times[11] } else { 0.0 },
                    collector: match choice {
                        _ if !nand => Collector::Greedy,
                        0 => Collector::CostBenefit,
                        1 => Collector::Fifo,
                        2 => Collector::Random,
                        3 => Collector::Greedy,
                        _ => Collector::Choices(numbers[11]),
                    },
                    reserve_superblocks: if nand { numbers[11] } else { 0 },
                    trim_reads_zeros: flags[4],
                },
                cache,
                sets,
                placement: flags[3].then_some(Placement {
                    handles: numbers[7],
                    isolation: if flags[4] { Isolation::Initial } else { Isolation::Persistent },
                }),
                predictable: flags[0].then(|| windows(times[1])),
                endurance: Endurance {
                    cycles: numbers[11],
                    used: times[3],
                    rated_bytes: flags[5].then_some(numbers[1].into()),
                },
                upkeep: flags[5].then_some(Upkeep {
                    every_bytes: numbers[0].into(),
                    bytes: numbers[2].into(),
                    within_bytes: numbers[1].into(),
                }),
                heat: flags[2].then(|| heat(times[0])),
            };
            let text = profile_of(&spec).to_toml().unwrap();
            let read = Spec::from_profile(&Profile::from_toml(&text).unwrap()).unwrap();
            prop_assert_eq!(read, spec, "{}", text);
        }
    }
}
