//! Simulated drives of the library for published claims: their rigs, and where their parameters come from.

use std::ops::ControlFlow;

use base::striped::{Level, STRIPE_BYTES, StripedSet};
use lab::published::{Contents, Drives, DrivesNeeded, Ring, RingOutcome, UsedParameter};
use lab::rig::{Go, Written};
use lab::{BankRig, Rig, RigError};
use plan::mission::{DriveOutcome, Mission};
use profile::Profile;
use ssd::spec::listed::ListedParameter;
use ssd::{SimBank, Slot, Spec, Start, Uplink};

use crate::rig::{put_on, striped};

/// The library's drives.
#[derive(Clone, Copy, Debug, Default)]
pub struct Library;

impl Drives for Library {
    fn rig(&mut self, needed: &DrivesNeeded) -> Result<Box<dyn Rig>, RigError> {
        rig(needed, &named(needed.model)?)
    }

    fn ring(
        &mut self,
        wanted: &Ring,
        tick: &mut dyn FnMut(f64) -> Go,
    ) -> Result<RingOutcome, RigError> {
        ring(wanted, &named(wanted.model)?, tick)
    }

    fn parameters(&self, model: &str) -> Result<Vec<UsedParameter>, RigError> {
        parameters(model, &named(model)?)
    }
}

fn failed(model: &str, why: impl std::fmt::Display) -> RigError {
    RigError::Open(format!("simulating {model} failed: {why}"))
}

fn named(model: &str) -> Result<Profile, RigError> {
    profile::library::get(model).map_err(|error| failed(model, error))
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

/// What was written to all drives of a bank.
fn written(bank: &SimBank) -> Written {
    let mut sum = Written::default();
    for slot in 0..bank.slots() {
        let health = bank.health(slot);
        sum.host_bytes += health.written_bytes;
        sum.media_bytes += health.sets.iter().map(|set| set.media_written_bytes).sum::<u64>();
    }
    sum
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
    use lab::Progress;
    use lab::published::{Basis, ClaimVerdict, Comparison, Effort, Found, Group, Row, Stage};
    use profile::Value;

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
        on(&mut Library, group)
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
