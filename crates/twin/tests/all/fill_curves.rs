//! Published fill curves of drives that the library does not have: read in as tables of turning points, fitted, and compared with
//! their twins.

use std::fmt::Write;
use std::path::Path;

use lab::Go;
use lab::importing::profile::{ImportOptions, import};
use longtake_twin::{Budget, MeasuredDrive, Search};
use profile::{Profile, name};
use serde::Deserialize;
use target::Profiles;

/// Drives that a fit may try.
const EVALUATIONS: u32 = 60;

#[derive(Deserialize)]
struct Curves {
    drive: Vec<Published>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Use {
    Learn,
    Judge,
    Contradicts,
}

#[derive(Deserialize)]
struct Published {
    model: String,
    #[serde(rename = "use")]
    of: Use,
    capacity_gb: u64,
    levels: Vec<(f64, f64)>,
    mean_mb_s: Option<f64>,
    source: String,
}

fn curves(of: Use) -> Vec<Published> {
    let all: Curves =
        toml::from_str(include_str!("../../data/fill-curves.toml")).expect("it is TOML");
    all.drive.into_iter().filter(|drive| drive.of == of).collect()
}

/// The corners of a curve, as somebody would type them in.
fn table(drive: &Published) -> String {
    let mut text = "written GB,MB/s\n".to_owned();
    let mut from = 0.0;
    for &(to, rate) in &drive.levels {
        writeln!(text, "{from},{rate}\n{to},{rate}").expect("a string takes all");
        from = to;
    }
    text
}

fn read_in(drive: &Published, folder: &Path) -> Profile {
    let path = folder.join("curve.csv");
    std::fs::write(&path, table(drive)).expect("writing a table");
    let options = ImportOptions {
        from: vec![path],
        capacity_bytes: Some(drive.capacity_gb * 1_000_000_000),
        model: Some(drive.model.clone()),
        published: Some(drive.source.clone()),
        ..ImportOptions::default()
    };
    import(&options, None, "0.0.0").expect("it is a table").profile
}

#[test]
fn show() {
    let all = [Use::Judge];
    for drive in all.into_iter().flat_map(curves) {
        let folder = tempfile::tempdir().expect("a folder");
        let profile = read_in(&drive, folder.path());
        let path = folder.path().join("profile.toml");
        std::fs::write(&path, profile.to_toml().expect("it can be written")).expect("writing");
        let measured = MeasuredDrive::read(&path, "twin", &Profiles::of_user()).expect("it tells");
        let began = std::time::Instant::now();
        let search = Search::new(&measured, None).expect("a guess");
        let fitted = search
            .run(Budget { evaluations: EVALUATIONS, time: None }, &mut |_, _| Go::On)
            .expect("it runs");
        println!(
            "== {} {:?} mean {:?}, {:.1} s, {} tried, off {:.1} %",
            drive.model,
            drive.levels,
            drive.mean_mb_s,
            began.elapsed().as_secs_f64(),
            fitted.tried,
            100.0 * fitted.off()
        );
        for row in fitted.figure_rows() {
            println!("   {row:?}");
        }
        println!(
            "   {:?} op {} prog {} bits {}",
            fitted.spec.cache,
            fitted.spec.mapping.over_provisioning,
            fitted.spec.flash.program_us,
            fitted.spec.flash.pages_per_program
        );
    }
}
