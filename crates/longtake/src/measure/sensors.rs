//! What drives say of themselves beside a run: temperature, throttling, link.

use std::path::PathBuf;

use device::facts::Facts;
use device::link::{Link, PcieLink};
use device::sampler::{Sampler, Throttle};
use lab::analysis::Sample;
use lab::experiment::link::DriveLink;
use lab::threads::Sensors;

/// Billions of transfers a second on a lane, by PCIe generation from 1 on (PCI Express Base Specification 6.0, 1.2).
const GIGATRANSFERS: [f64; 6] = [2.5, 5.0, 8.0, 16.0, 32.0, 64.0];

/// Sensors of these targets. Those that have none say nothing.
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
                link: told.link.and_then(|link| {
                    if let Link::Pcie { now, .. } = link { pcie(now) } else { None }
                }),
            };
            (*drive, sample)
        };
        let samples = samplers.iter_mut().map(read);
        // A drive that tells nothing needs no line.
        samples.filter(|(_, sample)| *sample != Sample::default()).collect()
    })
}

/// A drive's link as experiments know it.
pub fn link(facts: &Facts) -> DriveLink {
    match facts.drive.link {
        Some(Link::Pcie { now, best, slot }) => {
            DriveLink::Pcie { now: pcie(now), best: pcie(best), slot: slot.and_then(pcie) }
        }
        Some(Link::Sata { now_gbps, best_gbps }) => DriveLink::Sata { now_gbps, best_gbps },
        None => DriveLink::NotKnown,
    }
}

fn pcie(link: PcieLink) -> Option<lab::analysis::Link> {
    let gigatransfers = *GIGATRANSFERS.get(usize::from(link.generation).checked_sub(1)?)?;
    Some(lab::analysis::Link { gigatransfers, lanes: link.lanes })
}
