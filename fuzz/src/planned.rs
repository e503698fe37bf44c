//! Any text as a drive's profile and a requirement: what can be required is planned on that drive, explained, and put to
//! trial on simulated ones; none of it panics, and every figure is a number.
//!
//! A line `---` stands between the two.

use std::ops::ControlFlow;

use plan::{Candidate, Draft, explain, plan, trial};
use profile::Profile;
use ssd::Spec;

/// Trials on more drives than this, or larger ones, are made, but not begun: each takes memory for its mapping.
const DRIVES_MAX: usize = 4;
const CAPACITY_BYTES_MAX: u64 = 16 << 30;
/// A drive of more superblocks than this takes its time to be filled before a trial.
const SUPERBLOCKS_MAX: u32 = 1 << 14;
/// What a trial may record, at most: it is broken off at its first sample.
const BYTES_PER_S_MAX: f64 = 20e9;

/// Reads both, plans, and begins the trials.
pub fn run(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let Some((drive, required)) = text.split_once("\n---\n") else { return };
    let Ok(profile) = Profile::from_toml(drive) else { return };
    let Ok(Ok(requirement)) = Draft::from_toml(required).map(|draft| draft.check()) else { return };
    let answer = plan(&requirement, &[Candidate::new(profile.clone(), None)]);
    for design in &answer.designs {
        assert!(explain::lines(design).iter().all(|line| !line.contains("NaN")), "{design:#?}");
        let Some(array) = &design.array else { continue };
        assert!(array.drives > 0 && array.take.stored_bytes_per_s.is_finite(), "{array:?}");
        let Ok(spec) = Spec::from_profile(&profile) else { continue };
        if spec.check().is_err() {
            continue;
        }
        for trial in trial::trials(&requirement, design, &spec) {
            let members = trial.mission.drives.iter().map(|slot| slot.namespaces.len());
            let few = members.sum::<usize>() <= DRIVES_MAX;
            let small = spec.capacity_bytes <= CAPACITY_BYTES_MAX
                && spec.superblocks_of_set() <= SUPERBLOCKS_MAX;
            if few && small && array.take.stored_bytes_per_s <= BYTES_PER_S_MAX {
                // A mission that its own check refuses is refused with a reason.
                let begun = trial.run(&mut trial::Budget::default(), |_, progress| {
                    let mut rates = progress.sample.iter().flat_map(|sample| &sample.rates);
                    assert!(rates.all(|rate| rate.is_finite()));
                    ControlFlow::Break(())
                });
                if let Err(error) = begun {
                    assert!(!error.to_string().is_empty());
                }
            }
        }
    }
}
