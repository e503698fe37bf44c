//! Simulated drives of the library for published claims: their rigs, and where their parameters come from.

use std::collections::BTreeMap;
use std::fmt;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use base::striped::{Level, STRIPE_BYTES, StripedSet};
use lab::published::{Contents, Drives, DrivesNeeded, Ring, RingOutcome, UsedParameter};
use lab::rig::Go;
use lab::{BankRig, Rig, RigError};
use plan::mission::{DriveOutcome, Mission};
use profile::{Profile, library};
use ssd::spec::listed::ListedParameter;
use ssd::{SimBank, Slot, Spec, SpecError, Start, Uplink};
use target::Profiles;
use target::profiles::{OwnProfile, ProfilesError};

use crate::rig::{put_on, striped, written};

/// The library's drives, and others in the place of some of them.
#[derive(Clone, Debug, Default)]
pub struct Library {
    others: BTreeMap<String, Profile>,
    /// Whether the others say themselves what each of their values was fitted to.
    marked: bool,
}

/// Why a folder's drives can't stand in the library's place.
#[derive(Debug)]
pub enum LibraryError {
    /// It, or one of its files, can't be read.
    Profiles(ProfilesError),
    /// A drive can't be simulated: its file, and what is wrong in it.
    Spec(PathBuf, SpecError),
    /// There is no such folder.
    NoFolder(PathBuf),
    /// No file has the name of a drive of the library.
    NoDrive(PathBuf),
}

impl fmt::Display for LibraryError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Profiles(error) => error.fmt(f),
            Self::Spec(path, error) => write!(f, "{}: {error}", path.display()),
            Self::NoFolder(folder) => write!(f, "{} is not a folder of drives", folder.display()),
            Self::NoDrive(folder) => write!(
                f,
                "{} has no drive of the library: give it files named as `longtake sim list` names drives, such as \
                 samsung-970-pro-512gb.toml",
                folder.display()
            ),
        }
    }
}

impl std::error::Error for LibraryError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Profiles(error) => error.source(),
            Self::Spec(..) | Self::NoFolder(_) | Self::NoDrive(_) => None,
        }
    }
}

impl Library {
    /// With a folder's drives in the place of the library's of the same names: NAME.toml.
    ///
    /// # Errors
    /// If a file can't be read or is no drive, or there is none with the name of one of the library.
    pub fn with_folder(folder: &Path) -> Result<Self, LibraryError> {
        if !folder.is_dir() {
            return Err(LibraryError::NoFolder(folder.to_owned()));
        }
        let own = Profiles::in_folder(folder.to_owned()).own().map_err(LibraryError::Profiles)?;
        let mut others = BTreeMap::new();
        for OwnProfile { name, path, profile } in own {
            if library::names().all(|known| known != name) {
                continue;
            }
            let profile = profile.map_err(LibraryError::Profiles)?;
            Spec::from_profile(&profile).map_err(|error| LibraryError::Spec(path, error))?;
            others.insert(name, profile);
        }
        if others.is_empty() {
            Err(LibraryError::NoDrive(folder.to_owned()))
        } else {
            Ok(Self { others, marked: false })
        }
    }

    /// With these drives in the place of the library's of the same names. Their parameters are marked with all claims that they
    /// were fitted to.
    pub(crate) const fn fitted(others: BTreeMap<String, Profile>) -> Self {
        Self { others, marked: true }
    }

    /// The names of the drives that are not the library's.
    pub fn others(&self) -> impl Iterator<Item = &str> {
        self.others.keys().map(String::as_str)
    }

    fn drive(&self, model: &str) -> Result<Profile, RigError> {
        self.others.get(model).map_or_else(|| named(model), |profile| Ok(profile.clone()))
    }
}

impl Drives for Library {
    fn rig(&mut self, needed: &DrivesNeeded) -> Result<Box<dyn Rig>, RigError> {
        rig(needed, &self.drive(needed.model)?)
    }

    fn ring(
        &mut self,
        wanted: &Ring,
        tick: &mut dyn FnMut(f64) -> Go,
    ) -> Result<RingOutcome, RigError> {
        ring(wanted, &self.drive(wanted.model)?, tick)
    }

    fn parameters(&self, model: &str) -> Result<Vec<UsedParameter>, RigError> {
        let known = parameters(model, &named(model)?)?;
        match self.others.get(model) {
            Some(other) if self.marked => parameters(model, other),
            Some(other) => Ok(marked(parameters(model, other)?, &known)),
            None => Ok(known),
        }
    }
}

/// Parameters of another drive in the place of the library's. A value that is the library's keeps the library's mark. Any other value
/// without a mark may have been fitted to every claim.
fn marked(parameters: Vec<UsedParameter>, library: &[UsedParameter]) -> Vec<UsedParameter> {
    let mark = |parameter: UsedParameter| {
        let same =
            library.iter().find(|one| one.name == parameter.name && one.value == parameter.value);
        match same {
            _ if !parameter.fitted.is_empty() => parameter,
            Some(same) => UsedParameter { fitted: same.fitted.clone(), ..parameter },
            None => UsedParameter { changed: true, ..parameter },
        }
    };
    parameters.into_iter().map(mark).collect()
}

fn failed(model: &str, why: impl std::fmt::Display) -> RigError {
    RigError::Open(format!("simulating {model} failed: {why}"))
}

fn named(model: &str) -> Result<Profile, RigError> {
    library::get(model).map_err(|error| failed(model, error))
}

/// The parameters of a model, defaults too.
fn parameters(model: &str, profile: &Profile) -> Result<Vec<UsedParameter>, RigError> {
    let spec = Spec::from_profile(profile).map_err(|error| failed(model, error))?;
    let used = |listed: ListedParameter| UsedParameter {
        of: model.to_owned(),
        name: format!("{}.{}", listed.section, listed.name),
        value: listed.value.to_string(),
        source: match listed.origin.as_str() {
            "" => listed.known_by.to_owned(),
            origin => format!("{}: {origin}", listed.known_by),
        },
        fitted: listed.fitted,
        changed: false,
    };
    Ok(spec.listed(&profile.simulated).into_iter().map(used).collect())
}

/// Simulated drives of this profile, on the links that are asked for.
fn rig(needed: &DrivesNeeded, profile: &Profile) -> Result<Box<dyn Rig>, RigError> {
    let failed = |why: &dyn std::fmt::Display| failed(needed.model, why);
    let mut spec = Spec::from_profile(profile).map_err(|error| failed(&error))?;
    put_on(&mut spec, needed.link)?;
    shrink(&mut spec, needed.share);
    let start = match needed.contents {
        Contents::Empty => Start::Empty,
        Contents::Full => Start::Full,
        Contents::Random => Start::Random { block_bytes: spec.mapping.unit_bytes.max(4096) },
    };
    let slots = slots(&spec, needed.copies, &start);
    let uplink = needed.uplink.map(|(to_host, to_drives)| Uplink {
        read_bytes_per_s: to_host.0,
        write_bytes_per_s: to_drives.0,
    });
    let bank = SimBank::new(&slots, uplink).map_err(|error| failed(&error))?;
    if !needed.striped {
        return Ok(Box::new(BankRig::without_data(bank).copying(SimBank::copy).counting(written)));
    }
    let set = StripedSet {
        name: format!("raid0:sim:{}*{}", needed.model, needed.copies),
        level: Level::Raid0,
        stripe_bytes: STRIPE_BYTES,
    };
    Ok(Box::new(striped(bank, &set).map_err(|error| failed(&error))?))
}

/// Leaves a share of a drive's capacity, on as many dies.
fn shrink(spec: &mut Spec, share: f64) {
    if share < 1.0 {
        let unit = u64::from(spec.mapping.unit_bytes);
        spec.capacity_bytes = (spec.capacity_bytes as f64 * share) as u64 / unit * unit;
    }
}

/// So many drives, numbered if there are several.
fn slots(spec: &Spec, copies: u32, start: &Start) -> Vec<Slot> {
    let namespaces: Vec<usize> = (0..spec.sets.namespaces.len()).collect();
    let slot = |number: u32| {
        let mut spec = spec.clone();
        if copies > 1 {
            spec.name += &format!("#{number}");
        }
        let (start, namespaces) = (start.clone(), namespaces.clone());
        Slot { spec, start, namespaces, seed: number.into() }
    };
    (1..=copies).map(slot).collect()
}

/// The recorder on a ring of drives of this profile: the mission that `longtake record --virtual --when-full wrap` runs.
fn ring(
    wanted: &Ring,
    profile: &Profile,
    tick: &mut dyn FnMut(f64) -> Go,
) -> Result<RingOutcome, RigError> {
    let mut spec = Spec::from_profile(profile).map_err(|error| failed(wanted.model, error))?;
    shrink(&mut spec, wanted.share);
    let drives = slots(&spec, wanted.copies, &Start::Full);
    let mut mission = Mission::new(drives, wanted.load, wanted.time);
    if !wanted.trims {
        mission.trim_ahead = 0;
    }
    let outcome = mission
        .run(|progress| match tick(progress.at.as_secs_f64() / wanted.time.as_secs_f64()) {
            Go::On => ControlFlow::Continue(()),
            Go::Stop => ControlFlow::Break(()),
        })
        .map_err(|error| failed(wanted.model, error))?;
    let mean = |of: fn(&DriveOutcome) -> f64| {
        outcome.drives.iter().map(of).sum::<f64>() / outcome.drives.len().max(1) as f64
    };
    Ok(RingOutcome {
        laps: mean(|drive| drive.passes),
        slowest: outcome.slowest_wrapped(),
        lossless: outcome.lossless(),
        erased_ahead: mean(|drive| drive.erasing.map_or(0.0, |erasing| erasing.ahead)),
        erase_wait: mean(|drive| drive.erasing.map_or(0.0, |erasing| erasing.wait)),
    })
}

#[cfg(test)]
mod tests {
    use lab::published::{
        Basis, Claim, ClaimVerdict, Comparison, Effort, Found, Group, Published, Row, Stage,
    };
    use lab::{Progress, Unit};
    use profile::{Parameter, Value};

    use super::*;

    /// A group's claims with few commands, on these drives.
    fn on(drives: &mut dyn Drives, group: Group) -> Vec<Row> {
        let folder = tempfile::tempdir().unwrap();
        let mut watch = |_: &Progress<'_>| Go::On;
        let mut stage = Stage::new(drives, folder.path().to_owned(), Effort::Quick, &mut watch);
        let reproduced = group.reproduce(&mut stage).unwrap();
        assert!(reproduced.plots.iter().all(|plot| !plot.curves.is_empty()));
        assert!(!reproduced.parameters.is_empty());
        reproduced.rows
    }

    fn quick(group: Group) -> Vec<Row> {
        on(&mut Library::default(), group)
    }

    /// Nothing differs without an explanation, and these verdicts are of these claims; the rest is calibrated.
    #[track_caller]
    fn verdicts(rows: &[Row], expected: &[(ClaimVerdict, &[&str])]) {
        let unexplained = rows.iter().flat_map(|row| &row.comparisons).find(|c| c.is_unexplained());
        assert!(unexplained.is_none(), "{unexplained:#?}");
        for row in rows {
            let listed = expected.iter().find(|(_, ids)| ids.contains(&row.id.as_str()));
            let verdict = listed.map_or(ClaimVerdict::Calibrated, |(verdict, _)| *verdict);
            assert_eq!(row.verdict(), verdict, "{row:#?}");
        }
    }

    #[test]
    fn sets_isolate_a_reader_from_a_writer_as_the_talk_says() {
        verdicts(
            &quick(Group::Qos),
            &[
                (ClaimVerdict::NotTestable, &["QOS-1", "QOS-6", "QOS-12"]),
                (ClaimVerdict::Arithmetic, &["QOS-5"]),
                (ClaimVerdict::Contradicted, &["QOS-3"]),
                (ClaimVerdict::NotMet, &["QOS-2", "QOS-4", "QOS-9"]),
            ],
        );
    }

    #[test]
    fn six_drives_behind_a_chipset_have_the_articles_shapes() {
        verdicts(
            &quick(Group::Mix),
            &[
                (ClaimVerdict::NotTestable, &["MIX-2"]),
                (ClaimVerdict::Arithmetic, &["MIX-1", "MIX-8"]),
                (ClaimVerdict::Contradicted, &["MIX-7"]),
                (ClaimVerdict::NotMet, &["MIX-3"]),
            ],
        );
    }

    #[test]
    fn a_value_that_is_not_the_librarys_may_have_been_fitted_to_anything() {
        const MODEL: &str = "samsung-970-evo-plus-1tb";
        let folder = tempfile::tempdir().unwrap();
        let mut profile = named(MODEL).unwrap();
        // Marks are lost, one value is another, and one that was fitted is the library's.
        let fitted = profile.simulated.get("cache", "program_us").unwrap().value.clone();
        profile.simulated.set("cache", "program_us", Parameter::assumed(fitted));
        profile.simulated.set("flash", "read_us", Parameter::assumed(41.0));
        let file = folder.path().join(format!("{MODEL}.toml"));
        std::fs::write(&file, profile.to_toml().unwrap()).unwrap();
        let drives = Library::with_folder(folder.path()).unwrap();
        assert_eq!(drives.others().collect::<Vec<_>>(), [MODEL]);
        let parameters = drives.parameters(MODEL).unwrap();
        let of = |name: &str| parameters.iter().find(|one| one.name == name).unwrap();
        let claims = &of("cache.program_us").fitted;
        assert_eq!(
            (claims.as_slice(), of("cache.program_us").changed),
            (&["REC-7".to_owned()][..], false)
        );
        let changed = parameters.iter().filter(|one| one.changed);
        assert_eq!(changed.map(|one| one.name.as_str()).collect::<Vec<_>>(), ["flash.read_us"]);
        let other = drives.parameters("samsung-970-pro-512gb").unwrap();
        assert!(other.iter().all(|one| !one.changed), "the library's own");
        // So a figure that depends on it is as published and no more, and with the library's file all is as without one.
        let verdict = |parameters: &[UsedParameter]| {
            let row = Claim::new("REC-1", "").row(Basis::simulated(parameters));
            row.figure("x", Published::About(1.0), Unit::Count, 1.0).verdict()
        };
        assert_eq!(verdict(std::slice::from_ref(of("flash.read_us"))), ClaimVerdict::AsPublished);
        assert_eq!(verdict(&parameters), ClaimVerdict::Calibrated);
        std::fs::write(&file, named(MODEL).unwrap().to_toml().unwrap()).unwrap();
        let same = Library::with_folder(folder.path()).unwrap();
        assert_eq!(same.parameters(MODEL).unwrap(), Library::default().parameters(MODEL).unwrap());
    }

    /// The library with one parameter of one drive half as large again.
    struct Changed {
        model: String,
        section: String,
        name: String,
    }

    impl Changed {
        fn of(&self, model: &str) -> Result<Profile, RigError> {
            let mut profile = named(model)?;
            if model == self.model {
                let parameter = profile.simulated.get(&self.section, &self.name);
                let mut parameter = parameter.expect("it is a parameter of the drive").clone();
                parameter.value = match parameter.value {
                    Value::Integer(value) => Value::Integer(value * 3 / 2),
                    Value::Float(value) => Value::Float((value * 1.5).min(1.0f64.max(value))),
                    Value::Boolean(value) => Value::Boolean(!value),
                    other => other,
                };
                profile.simulated.set(&self.section, &self.name, parameter);
            }
            Ok(profile)
        }
    }

    impl Drives for Changed {
        fn rig(&mut self, needed: &DrivesNeeded) -> Result<Box<dyn Rig>, RigError> {
            rig(needed, &self.of(needed.model)?)
        }

        fn ring(
            &mut self,
            wanted: &Ring,
            tick: &mut dyn FnMut(f64) -> Go,
        ) -> Result<RingOutcome, RigError> {
            ring(wanted, &self.of(wanted.model)?, tick)
        }

        fn parameters(&self, model: &str) -> Result<Vec<UsedParameter>, RigError> {
            parameters(model, &self.of(model)?)
        }
    }

    /// Fitted parameters that some prediction or definition is said not to depend on: if one of them changes, none of these figures
    /// may.
    #[test]
    fn a_prediction_stays_when_a_parameter_is_changed_that_it_is_said_not_to_depend_on() {
        let independent = |row: &&Comparison, changed: &Changed| {
            let name = format!("{}.{}", changed.section, changed.name);
            let testable = !matches!(row.basis, Basis::NotTestable(_));
            let depends =
                row.basis.fitted().iter().any(|f| f.of == changed.model && f.name == name);
            testable && !depends
        };
        let group = Group::Lnk;
        let before = quick(group);
        for (section, name) in [("link", "efficiency"), ("controller", "read_iops")] {
            let (section, name) = (section.to_owned(), name.to_owned());
            let mut changed = Changed { model: "patriot-hellfire-240gb".to_owned(), section, name };
            let after = on(&mut changed, group);
            let pairs = before
                .iter()
                .zip(&after)
                .flat_map(|(a, b)| a.comparisons.iter().zip(&b.comparisons));
            let mut compared = 0;
            for (a, b) in pairs.filter(|(a, _)| independent(a, &changed)) {
                compared += 1;
                let same = match (&a.ours, &b.ours) {
                    (Found::Figure(a), Found::Figure(b)) => (a / b - 1.0).abs() < 0.01,
                    (a, b) => a == b,
                };
                assert!(
                    same,
                    "{}.{} changes {a:#?} to {:?}",
                    changed.section, changed.name, b.ours
                );
            }
            assert!(compared > 5, "{compared}");
        }
    }
}
