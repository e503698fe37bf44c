//! The name of an output becomes a file only if nothing is lost by that.

use std::fs;
use std::io::Write;

use longtake_target::output::{OutputError, Outputs, Readers};

#[test]
fn an_output_that_is_not_finished_leaves_the_old_file_and_nothing_else() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("figures.csv");
    fs::write(&path, "old").unwrap();
    let outputs = Outputs::new(true);
    let mut file = outputs.create(&path, Readers::Umask).unwrap();
    file.write_all(b"new").unwrap();
    drop(file);
    assert_eq!(fs::read(&path).unwrap(), b"old");
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    outputs.write(&path, "new").unwrap();
    assert_eq!(fs::read(&path).unwrap(), b"new");
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
}

#[test]
fn an_input_is_recognized_behind_another_name() {
    let folder = tempfile::tempdir().unwrap();
    let (input, other) = (folder.path().join("input"), folder.path().join("other"));
    fs::write(&input, "precious").unwrap();
    fs::hard_link(&input, &other).unwrap();
    let outputs = Outputs::new(true).reads([&input]);
    let refused = outputs.write(&other, "").unwrap_err();
    assert!(matches!(refused, OutputError::Input { .. }), "{refused}");
    assert_eq!(fs::read(&input).unwrap(), b"precious");
}
