//! Links of known width, held against drives of known rates.

use super::*;
use crate::analysis;
use crate::experiment::testing::{Done, Model, geometry, rated, run_in, scope};
use crate::finding::contradictions;
use base::Duration;

fn link(links: Vec<DriveLink>) -> Link {
    Link { scope: Scope { region: Some(32 << 20), ..scope(300) }, links, write: true, sweep: None }
}

fn pcie(gigatransfers: f64, lanes: u8) -> Option<analysis::Link> {
    Some(analysis::Link { gigatransfers, lanes })
}

fn run(link: &Link, drives: Vec<Geometry>, model: Model) -> (LinkResult, Done) {
    let folder = tempfile::tempdir().unwrap();
    let (result, done) = run_in(folder.path(), drives, model, |lab| link.run(lab));
    (result.unwrap(), done)
}

#[test]
fn a_drive_behind_a_degraded_link_is_warned_of_with_what_it_costs() {
    // 880 MB/s through two lanes of 5 GT/s, which carry 914 MB/s of data; four lanes of 8 GT/s would carry 3.6 GB/s.
    let model = rated(Rate(880e6), Rate(300e6), Duration::from_micros(80));
    let links = vec![DriveLink::Pcie { now: pcie(5.0, 2), best: pcie(8.0, 4), slot: None }];
    let link = link(links);
    let (result, done) = run(&link, vec![geometry()], model);
    let said = result.answer();
    assert!(said[0].contains("degraded: PCIe of 5 GT/s x2 (could be 8 GT/s x4)"), "{said:?}");
    assert!(said[0].contains("costs 75 %"), "{said:?}");
    assert!(said[0].contains("up to 2.69 GB/s"), "{said:?}");
    let said = said.join(" ");
    assert!(said.contains("96 % of what the link carries: the link is the limit"), "{said}");
    assert!(said.contains("33 % of what the link carries: the link is not the limit"), "{said}");
    let share = result.figures().into_iter().find(|f| f.name == "link.read_share").unwrap();
    assert!((share.value.unwrap() - 96.3).abs() < 1.0);
    assert!(done.written_bytes <= link.cost(&[geometry()]).written_bytes);
}

#[test]
fn drives_that_reach_more_than_usual_packets_carry_have_larger_packets() {
    // A lane of 8 GT/s carries 900 MB/s in packets of 256 bytes, 941 in packets of 512, and 985 of whatever it is.
    let links = || vec![DriveLink::Pcie { now: pcie(8.0, 1), best: pcie(8.0, 1), slot: None }];
    for (rate, at_most) in [(912e6, 941e6), (950e6, 962e6), (984e6, 984.7e6)] {
        let model = rated(Rate(rate), Rate(300e6), Duration::from_micros(80));
        let (result, _) = run(&link(links()), vec![geometry()], model);
        let (ceiling, best) = (result.ceiling.unwrap(), result.best.unwrap());
        assert!((ceiling.payload.1 / at_most - 1.0).abs() < 0.001, "{rate}: {ceiling:?}");
        assert_eq!(ceiling, best, "{rate}");
        let (findings, figures) = (result.findings(), result.figures());
        assert!(contradictions(&findings, &figures).is_empty(), "{rate}: {findings:?}");
        let said = result.answer().join(" ");
        assert!(said.contains("so larger packets are assumed"), "{said}");
        assert!(said.contains("what the link carries: the link is the limit"), "{said}");
    }
}

#[test]
fn drives_that_reach_more_than_their_link_do_not_run_against_it() {
    let links = vec![DriveLink::Pcie { now: pcie(8.0, 1), best: pcie(8.0, 1), slot: None }];
    let model = rated(Rate(1.5e9), Rate(300e6), Duration::from_micros(80));
    let (result, _) = run(&link(links), vec![geometry()], model);
    assert_eq!(result.held_back(Verb::Read), Some(HeldBack::No));
    let (findings, figures) = (result.findings(), result.figures());
    assert!(contradictions(&findings, &figures).is_empty(), "{findings:?}");
    let said = result.answer().join(" ");
    assert!(said.contains("more than the 985 MB/s"), "{said}");
}

#[test]
fn random_reads_are_held_against_the_least_link_that_would_do() {
    let model = rated(Rate(520e6), Rate(520e6), Duration::from_micros(100));
    let links = vec![DriveLink::Pcie { now: pcie(8.0, 4), best: pcie(8.0, 4), slot: None }];
    let (result, _) = run(&link(links), vec![geometry()], model);
    assert!(result.warnings().is_empty());
    let deep = result.random(32).unwrap();
    assert!((deep / 520e6 - 1.0).abs() < 0.05, "{deep}");
    // One at a time: 4 KiB in 108 us.
    assert!((result.random(1).unwrap() / 38e6 - 1.0).abs() < 0.02);
    assert_eq!(result.least_link(520e6).map(|(g, l)| g * f64::from(l)), Some(8.0));
    assert_eq!(result.least_link(1e13), None);
    let said = result.answer().join(" ");
    assert!(said.contains("Random reads of 4 KiB reach"), "{said}");
    assert!(said.contains("would carry that"), "{said}");
}

#[test]
fn without_a_known_link_the_rates_are_told_and_no_share() {
    let model = rated(Rate(1e9), Rate(1e9), Duration::from_micros(10));
    let file = Geometry { writable: false, transfer_max_bytes: 512 << 10, ..geometry() };
    let known = DriveLink::Sata { now_gbps: 6.0, best_gbps: None };
    let (result, done) = run(&link(vec![known]), vec![file.clone(), file], model);
    assert_eq!(done.written_bytes, 0);
    assert_eq!(result.ceiling, None);
    let said = result.answer().join(" ");
    assert!(said.contains("The link of model is unknown"), "{said}");
    assert!(said.contains("Sequential reads reach 2.0"), "{said}");
    assert!(said.contains("Writes were not measured"), "{said}");
    assert!(said.contains("Left out: 1 MiB"), "{said}");
    let ceiling = result.figures().into_iter().find(|f| f.name == "link.ceiling").unwrap();
    assert_eq!((ceiling.value, ceiling.note.as_str()), (None, "no link is known"));
}

#[test]
fn a_second_run_in_the_same_folder_does_no_io() {
    let folder = tempfile::tempdir().unwrap();
    let link = link(Vec::new());
    let run = || {
        let model = rated(Rate(1e9), Rate(1e9), Duration::from_micros(10));
        run_in(folder.path(), vec![geometry()], model, |lab| link.run(lab))
    };
    let (first, done) = run();
    assert!(done.read_bytes > 0);
    let (second, done) = run();
    assert_eq!(done, Done::default());
    assert_eq!(second.unwrap(), first.unwrap());
}

#[test]
fn a_sweep_of_drives_whose_links_can_not_be_changed_is_refused_before_anything_is_done() {
    let folder = tempfile::tempdir().unwrap();
    let swept = Link { sweep: Some(Sweep::default()), ..link(Vec::new()) };
    let model = rated(Rate(1e9), Rate(1e9), Duration::from_micros(10));
    let (refused, done) = run_in(folder.path(), vec![geometry()], model, |lab| swept.run(lab));
    let refused = refused.unwrap_err().to_string();
    assert!(refused.contains("can't be changed: sweep simulated ones"), "{refused}");
    assert_eq!(done, Done::default());
}

#[test]
fn a_mode_is_known_by_its_link_and_a_link_by_its_mode() {
    for generation in 1..=6 {
        let mode = PcieMode { generation, lanes: 4 };
        let link = mode.link().unwrap();
        assert_eq!(PcieMode::of(&link), Some(mode));
    }
    assert_eq!(PcieMode { generation: 3, lanes: 4 }.link(), pcie(8.0, 4));
    assert_eq!(PcieMode { generation: 0, lanes: 4 }.link(), None);
    assert_eq!(PcieMode { generation: 7, lanes: 4 }.link(), None);
}
