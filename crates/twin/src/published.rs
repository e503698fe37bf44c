//! Rigs of simulated drives for published claims.

use lab::published::{Contents, DrivesNeeded};
use lab::{BankRig, Rig, RigError};
use ssd::spec::Link;
use ssd::{SimBank, Slot, Spec, Start, Uplink};

/// Simulated drives from the library, on the links that are asked for.
///
/// # Errors
/// If the library has no such drive, or it can't be simulated so.
pub fn rig(needed: &DrivesNeeded) -> Result<Box<dyn Rig>, RigError> {
    let failed = |why: &dyn std::fmt::Display| {
        RigError::Open(format!("simulating {} failed: {why}", needed.model))
    };
    let profile = profile::library::get(needed.model).map_err(|error| failed(&error))?;
    let mut spec = Spec::from_profile(&profile).map_err(|error| failed(&error))?;
    if let Some(other) = needed.link {
        let Link::Pcie { generation, lanes, .. } = &mut spec.link else {
            return Err(failed(&"its link isn't PCI Express, so it has no generation and lanes"));
        };
        (*generation, *lanes) = (other.generation, other.lanes);
    }
    if needed.share < 1.0 {
        let unit = u64::from(spec.mapping.unit_bytes);
        spec.capacity_bytes = (spec.capacity_bytes as f64 * needed.share) as u64 / unit * unit;
    }
    let start = match needed.contents {
        Contents::Empty => Start::Empty,
        Contents::Full => Start::Full,
        Contents::Random => Start::Random { block_bytes: spec.mapping.unit_bytes.max(4096) },
    };
    let namespaces: Vec<usize> = (0..spec.sets.namespaces.len()).collect();
    let slots: Vec<Slot> = (1..=needed.copies)
        .map(|number| {
            let mut spec = spec.clone();
            if needed.copies > 1 {
                spec.name += &format!("#{number}");
            }
            let (start, namespaces, seed) = (start.clone(), namespaces.clone(), number.into());
            Slot { spec, start, namespaces, seed }
        })
        .collect();
    let uplink = needed.uplink.map(|(to_host, to_drives)| Uplink {
        read_bytes_per_s: to_host.0,
        write_bytes_per_s: to_drives.0,
    });
    let bank = SimBank::new(&slots, uplink).map_err(|error| failed(&error))?;
    Ok(Box::new(BankRig::without_data(bank)))
}

#[cfg(test)]
mod tests {
    use lab::Progress;
    use lab::published::{ClaimVerdict, Effort, Group, Row, Stage};
    use lab::rig::Go;

    use super::*;

    /// A group's claims with few commands.
    fn quick(group: Group) -> Vec<Row> {
        let folder = tempfile::tempdir().unwrap();
        let mut watch = |_: &Progress<'_>| Go::On;
        let mut make = rig;
        let mut stage = Stage::new(&mut make, folder.path().to_owned(), Effort::Quick, &mut watch);
        let reproduced = group.reproduce(&mut stage).unwrap();
        assert!(reproduced.holds(), "{:#?}", reproduced.rows);
        assert!(reproduced.plots.iter().all(|plot| !plot.curves.is_empty()));
        reproduced.rows
    }

    fn verdicts(rows: &[Row], verdict: ClaimVerdict) -> Vec<&str> {
        rows.iter().filter(|row| row.verdict() == verdict).map(|row| row.id.as_str()).collect()
    }

    #[test]
    fn claims_that_parameters_were_fitted_to_are_claims_of_ours() {
        let known: Vec<&str> =
            Group::ALL.iter().flat_map(|group| group.claims()).map(|claim| claim.id).collect();
        let mut named = 0;
        for drive in profile::library::names() {
            let simulated = profile::library::get(drive).unwrap().simulated;
            for (section, parameters) in simulated.sections() {
                for (name, parameter) in parameters {
                    for claim in &parameter.fitted {
                        assert!(
                            known.contains(&claim.as_str()),
                            "{drive} {section}.{name}: {claim}"
                        );
                        named += 1;
                    }
                }
            }
        }
        assert!(named > 0);
    }

    #[test]
    fn sets_isolate_a_reader_from_a_writer_as_the_talk_says() {
        let rows = quick(Group::Qos);
        let met = verdicts(&rows, ClaimVerdict::Met);
        for id in ["QOS-2", "QOS-4", "QOS-5", "QOS-7", "QOS-11"] {
            assert!(met.contains(&id), "{id}: {rows:#?}");
        }
        let explained = verdicts(&rows, ClaimVerdict::Explained);
        assert!(
            explained.iter().all(|id| ["QOS-8", "QOS-9", "QOS-10"].contains(id)),
            "{explained:?}"
        );
    }

    #[test]
    fn six_drives_behind_a_chipset_have_the_articles_shapes() {
        let rows = quick(Group::Mix);
        assert_eq!(
            verdicts(&rows, ClaimVerdict::Met),
            ["MIX-1", "MIX-4", "MIX-5", "MIX-6", "MIX-8"]
        );
        // Both contradict themselves.
        assert_eq!(verdicts(&rows, ClaimVerdict::Explained), ["MIX-3", "MIX-7"]);
    }
}
