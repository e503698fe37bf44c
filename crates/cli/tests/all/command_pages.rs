//! docs/commands has a page for each command, and each shows the help that the program prints.

#[path = "../command_pages/pages.rs"]
mod pages;

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use crate::harness::{longtake, run};

#[test]
fn the_pages_of_commands_show_the_help_that_the_program_prints() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/commands");
    let help = |words: &[String]| {
        run(longtake().args(words).arg("--help").env_remove("COLUMNS")).code(0).text()
    };
    let pages = pages::pages(help);
    assert!(pages.len() >= 18, "{pages:?}");
    for (name, text) in &pages {
        let written = fs::read_to_string(folder.join(name)).unwrap_or_default();
        let stale = written.lines().zip(text.lines()).find(|(old, new)| old != new);
        assert!(
            written == *text,
            "docs/commands/{name} is stale, run `cargo xtask commands`: {stale:?}"
        );
    }
    let names: BTreeSet<String> = pages.into_iter().map(|(name, _)| name).collect();
    let written = fs::read_dir(folder).expect("it is there").flatten();
    let written = written.map(|entry| entry.file_name().to_string_lossy().into_owned());
    assert_eq!(written.collect::<BTreeSet<_>>(), names, "docs/commands has a page of no command");
}
