//! Published results: every claim's verdict, what is written, and what is refused.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use crate::harness::{line, new_in, scratch};
use lab::published::{ClaimVerdict, Group, Reproduced};

/// Reproduces with these words in a new folder; what was printed, after checks that everything is where it should be.
fn reproduced(words: &str) -> Vec<Reproduced> {
    let folder = scratch();
    let output = new_in(&folder, "results");
    let ran = line(&format!("reproduce {words} --json --quiet -o @"), &output).code(0);
    let printed: Vec<Reproduced> = serde_json::from_slice(&ran.stdout).expect("what was kept");
    let kept = fs::read(output.join("reproduced.json")).expect("it is kept");
    let kept: Vec<Reproduced> = serde_json::from_slice(&kept).expect("as it was printed");
    assert!(printed.iter().zip(&kept).all(|(a, b)| a.group == b.group && a.plots == b.plots));
    let page = fs::read_to_string(output.join("report.html")).expect("there is a report");
    for claim in kept.iter().flat_map(|group| &group.rows) {
        assert!(page.contains(&claim.id), "{} is not in the report", claim.id);
    }
    printed
}

/// What each claim of a group comes to.
fn verdicts(words: &str) -> BTreeMap<String, ClaimVerdict> {
    let rows = reproduced(words).into_iter().flat_map(|group| group.rows);
    rows.map(|row| (row.id.clone(), row.verdict())).collect()
}

/// Every claim of the group is met but for those that are explained, and those with nothing to measure.
#[track_caller]
fn holds(words: &str, group: Group, explained: &[&str], nothing: &[&str]) {
    let found = verdicts(words);
    assert_eq!(found.len(), group.claims().len());
    for (id, verdict) in found {
        let expected = match id.as_str() {
            id if explained.contains(&id) => ClaimVerdict::Explained,
            id if nothing.contains(&id) => ClaimVerdict::NothingToMeasure,
            _ => ClaimVerdict::Met,
        };
        assert_eq!(verdict, expected, "{id}");
    }
}

#[test]
fn fills_come_out_as_the_white_paper_has_them() {
    // Five drives are filled twice, which takes some seconds even in virtual time.
    holds("REC --quick", Group::Rec, &["REC-11"], &[]);
}

#[test]
fn streams_come_out_as_the_article_has_them() {
    holds("STR", Group::Str, &["STR-4", "STR-5", "STR-6"], &["STR-1", "STR-8"]);
}

#[test]
fn links_come_out_as_the_article_has_them() {
    holds("LNK", Group::Lnk, &["LNK-7"], &["LNK-5"]);
}

#[test]
fn one_claim_alone_is_printed_with_its_contradiction_and_its_reasons() {
    let folder = scratch();
    let output = new_in(&folder, "results");
    let ran = line("reproduce --only str-5 --markdown --quiet -o @", &output).code(0);
    let text = ran.text();
    assert!(text.contains("STR-5 contradicts itself"), "{text}");
    assert!(text.contains("| STR-5 | read of 8 MB: SATA over NVMe |"), "{text}");
    assert!(!text.contains("STR-6"), "{text}");
}

#[test]
fn a_claim_that_does_not_exist_and_a_folder_in_use_are_refused() {
    let folder = scratch();
    fs::write(folder.path().join("something"), "of somebody").expect("writing a file");
    line("reproduce --only REC-99 -o @", folder.path())
        .code(1)
        .says(&["REC-99", "REC-1 to REC-15"]);
    line("reproduce LNK -o @", folder.path()).code(1).says(&["is not empty"]);
    line("reproduce XYZ -o @", folder.path()).code(2).says(&["XYZ", "give REC"]);
    line("reproduce LNK --only REC-1 -o @", folder.path()).code(1).says(&["leave the groups out"]);
}

#[test]
fn the_handbook_has_every_claim() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reproduced.md");
    let text = fs::read_to_string(path).expect("docs/reproduced.md is there");
    for claim in Group::ALL.into_iter().flat_map(Group::claims) {
        assert!(
            text.contains(&format!("| {} |", claim.id)),
            "docs/reproduced.md lacks {}",
            claim.id
        );
    }
}
