//! What drives say of themselves beside a run: temperature, throttling, link.

use std::path::PathBuf;

use crate::analysis::Sample;
use crate::experiment::link::DriveLink;
use crate::threads::Sensors;
use device::link::Link;
use device::sampler::{Sampler, Throttle};

/// Sensors of these targets, read at each call. A sample's drive is the target's place. Those that have none say nothing.
pub fn of(targets: &[PathBuf]) -> Sensors {
    let mut samplers: Vec<(u16, Sampler, Option<Throttle>)> = Vec::new();
    for (index, path) in targets.iter().enumerate() {
        if let Ok(sampler) = Sampler::open(path) {
            samplers.push((index as u16, sampler, None));
        }
    }
    Box::new(move || {
        let read = |(drive, sampler, before): &mut (u16, Sampler, Option<Throttle>)| {
            let told = sampler.sample();
            // The counters only rise: one that rose since the last look says that it happened meanwhile.
            let throttled = told
                .throttle
                .as_ref()
                .map(|now| before.as_ref().is_some_and(|before| before != now));
            *before = told.throttle;
            let sample = Sample {
                at_ns: 0,
                temperature_celsius: told.temperature_celsius.map(f64::from),
                throttled,
                critical_warning: told.critical_warning,
                link: told.link.and_then(pcie_now),
            };
            (*drive, sample)
        };
        let samples = samplers.iter_mut().map(read);
        // A drive that tells nothing needs no line.
        samples.filter(|(_, sample)| *sample != Sample::default()).collect()
    })
}

fn pcie_now(link: Link) -> Option<crate::analysis::Link> {
    if let DriveLink::Pcie { now, .. } = DriveLink::from(link) { now } else { None }
}
