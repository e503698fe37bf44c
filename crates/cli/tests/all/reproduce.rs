//! Published results: every claim's verdict, what is written, and what is refused.

use std::fs;
use std::path::{Path, PathBuf};

use crate::harness::{line, long, new_in, scratch};
use lab::published::{ClaimVerdict, Group, Reproduced, Row};

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

/// The lines of a claim's figures are in the handbook: whole ones if they were measured alike, their verdicts otherwise.
#[track_caller]
fn in_the_handbook(row: &Row, whole: bool) {
    let text = handbook();
    for cells in report::reproduced::lines_of(row) {
        let line = format!("| {} |", cells.join(" | "));
        let [id, what, .., verdict] = &cells;
        let begins = format!("| {id} | {what} |");
        let ends = format!("| {verdict} |");
        let found = text.lines().any(|in_book| {
            if whole {
                in_book == line
            } else {
                in_book.starts_with(&begins) && in_book.ends_with(&ends)
            }
        });
        assert!(
            found,
            "docs/reproduced.md lacks {line}: generate it again with `longtake reproduce --markdown`"
        );
    }
}

fn handbook() -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reproduced.md");
    fs::read_to_string(path).expect("docs/reproduced.md is there")
}

/// Each claim of a group has the verdict listed for it, or is calibrated if none is listed; the handbook agrees.
#[track_caller]
fn comes_to(words: &str, group: Group, listed: &[(ClaimVerdict, &[&str])]) {
    let rows: Vec<Row> = reproduced(words).into_iter().flat_map(|group| group.rows).collect();
    assert_eq!(rows.len(), group.claims().len());
    for row in rows {
        let listed = listed.iter().find(|(_, ids)| ids.contains(&row.id.as_str()));
        let expected = listed.map_or(ClaimVerdict::Calibrated, |(verdict, _)| *verdict);
        assert_eq!(row.verdict(), expected, "{row:#?}");
        in_the_handbook(&row, !words.contains("--quick"));
    }
}

/// Five drives are filled twice, which takes a minute without optimization: the drive that no figure was fitted to, unless
/// `LONGTAKE_LONG=1` asks for all.
#[test]
fn fills_come_out_as_the_white_paper_has_them() {
    if !long() {
        let claims: Vec<Row> =
            reproduced("--only REC-8 --quick").into_iter().flat_map(|group| group.rows).collect();
        let [claim] = claims.as_slice() else { panic!("one claim was asked for: {claims:#?}") };
        assert_eq!(claim.verdict(), ClaimVerdict::Predicted, "{claim:#?}");
        in_the_handbook(claim, false);
        return;
    }
    comes_to(
        "REC --quick",
        Group::Rec,
        &[
            (ClaimVerdict::Predicted, &["REC-8"]),
            (ClaimVerdict::Arithmetic, &["REC-6", "REC-12", "REC-13", "REC-14", "REC-15"]),
            (ClaimVerdict::Contradicted, &["REC-2", "REC-3", "REC-5", "REC-11"]),
        ],
    );
}

#[test]
fn streams_come_out_as_the_article_has_them() {
    comes_to(
        "STR",
        Group::Str,
        &[
            (ClaimVerdict::NotTestable, &["STR-1", "STR-8"]),
            (ClaimVerdict::Contradicted, &["STR-4", "STR-5"]),
            (ClaimVerdict::NotMet, &["STR-6", "STR-7"]),
        ],
    );
}

#[test]
fn links_come_out_as_the_article_has_them() {
    comes_to("LNK", Group::Lnk, &[(ClaimVerdict::NotTestable, &["LNK-5", "LNK-7"])]);
}

/// The grid of six drives in RAID 0 is what its command gives, figure by figure, and the handbook has it.
#[test]
fn the_grid_comes_out_as_the_article_has_it_and_as_its_command_gives_it() {
    let folder = scratch();
    let (measured, reproduced) = (new_in(&folder, "measured"), new_in(&folder, "reproduced"));
    let command = "measure mix raid0:sim:intel-dc-s3500-480gb*6 --depth 64 --uplink 1.6GB/s,1.25GB/s --size 64GiB --point 200ms";
    let handbook = handbook();
    assert!(handbook.contains(
        &command.replace("raid0:sim:intel-dc-s3500-480gb*6", "'raid0:sim:intel-dc-s3500-480gb*6'")
    ));
    line(&format!("{command} --quiet -o @"), &measured).code(0);
    line("reproduce MIX --quiet -o @", &reproduced).code(0);
    let read = |path: PathBuf| fs::read(path).expect("it was measured");
    assert!(read(measured.join("mix/result.json")) == read(reproduced.join("MIX/mix/result.json")));
    let kept: Vec<Reproduced> =
        serde_json::from_slice(&read(reproduced.join("reproduced.json"))).expect("as it was kept");
    assert_eq!(kept[0].plots.len(), 3);
    for row in &kept[0].rows {
        in_the_handbook(row, true);
    }
    let pictures = new_in(&folder, "pictures");
    line(&format!("report {} --svg @", measured.display()), &pictures).code(0);
    let drawn = fs::read_dir(&pictures).expect("pictures are there").count();
    assert!(drawn >= 3, "lines of IOPS and of bandwidth, and a radar: {drawn}");
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
fn claims_are_judged_with_other_drives_and_none_of_their_figures_is_called_predicted() {
    const MODEL: &str = "patriot-hellfire-240gb";
    let folder = scratch();
    let file = new_in(&folder, &format!("{MODEL}.toml"));
    let own = profile::library::get(MODEL).unwrap();
    let mut other = own.clone();
    // The same drive but for a value that changes little, with no word on what it was chosen for.
    other.simulated.set("controller", "write_us", profile::Parameter::assumed(12.5));
    assert_ne!(own, other);
    fs::write(&file, other.to_toml().unwrap()).unwrap();
    let line_of = |folder: &Path, output: &str| {
        let command =
            format!("--profiles {} reproduce LNK --quick --json -q -o @", folder.display());
        line(&command, &folder.join(output))
    };
    let ran = line_of(folder.path(), "changed").says(&["in the library's place", MODEL]);
    let groups: Vec<Reproduced> = serde_json::from_slice(&ran.stdout).unwrap();
    let changed = |p: &&lab::published::UsedParameter| p.changed;
    let changed: Vec<&str> =
        groups[0].parameters.iter().filter(changed).map(|p| p.name.as_str()).collect();
    assert_eq!(changed, ["controller.write_us"]);
    let rows = groups.iter().flat_map(|group| &group.rows);
    let verdicts: Vec<ClaimVerdict> =
        rows.flat_map(|row| &row.comparisons).map(|comparison| comparison.verdict()).collect();
    assert!(!verdicts.contains(&ClaimVerdict::Predicted), "{verdicts:?}");
    assert!(verdicts.contains(&ClaimVerdict::Calibrated), "{verdicts:?}");
    // What is wrong is named with its file and its place there.
    let wrong = fs::read_to_string(&file).unwrap().replace("write_us", "write_ms");
    fs::write(&file, wrong).unwrap();
    line_of(folder.path(), "wrong").code(1).says(&[file.to_str().unwrap(), "write_ms"]);
    fs::rename(&file, folder.path().join("else.toml")).unwrap();
    line_of(folder.path(), "none").code(1).says(&["has no drive of the library"]);
    line_of(&folder.path().join("missing"), "none").code(1).says(&["is not a folder of drives"]);
}

#[test]
fn held_out_figures_are_predicted_by_drives_that_were_fitted_to_others() {
    let book = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/held-out.md");
    let book = fs::read_to_string(book).expect("docs/held-out.md is there");
    for group in reproduced("LNK --hold-out") {
        let held_out = group.held_out.expect("it says how drives were fitted");
        assert!(held_out.fits.iter().all(|fit| fit.met), "{:#?}", held_out.fits);
        let fitted: Vec<&String> = held_out.fits.iter().flat_map(|fit| &fit.figures).collect();
        let figures = group.rows.iter().flat_map(report::reproduced::lines_of);
        let figures: Vec<String> = figures.map(|[id, what, ..]| format!("{id}, {what}")).collect();
        assert!(fitted.iter().all(|&figure| figures.contains(figure)), "{fitted:?}");
        for row in &group.rows {
            for (comparison, cells) in row.comparisons.iter().zip(report::reproduced::lines_of(row))
            {
                let verdict = comparison.verdict();
                let [id, what, ..] = &cells;
                if fitted.contains(&&format!("{id}, {what}")) {
                    assert_ne!(verdict, ClaimVerdict::Predicted, "{cells:?}");
                } else {
                    assert_ne!(verdict, ClaimVerdict::Calibrated, "{cells:?}");
                }
                let line = format!("| {} |", cells.join(" | "));
                assert!(book.contains(&line), "docs/held-out.md lacks {line}");
            }
        }
        let figures = group.rows.iter().flat_map(|row| &row.comparisons);
        let predicted = figures.filter(|figure| figure.verdict() == ClaimVerdict::Predicted);
        assert!(predicted.count() > 5, "{}", group.group);
    }
    line("--profiles /tmp reproduce LNK --hold-out -o @", scratch().path())
        .code(1)
        .says(&["leave out --profiles"]);
}

#[test]
fn the_handbook_has_every_claim() {
    let text = handbook();
    for claim in Group::ALL.into_iter().flat_map(Group::claims) {
        assert!(
            text.contains(&format!("| {} |", claim.id)),
            "docs/reproduced.md lacks {}",
            claim.id
        );
    }
}
