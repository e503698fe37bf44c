//! Marks of files that hold nothing but what measurements wrote.

use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

use longtake_device::safety::{Refusal, authorize};
use longtake_device::scratch::{Measured, is_marked};

/// Marks a file that nobody else opens.
fn mark(file: &File) {
    assert!(Measured::watch(file.try_clone().unwrap()).unwrap().mark().unwrap());
}

/// A marked file. It lies where the project is built: the file system of temporary files may keep no marks.
fn marked() -> (tempfile::TempDir, PathBuf, File) {
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let path = folder.path().join("scratch");
    fs::write(&path, "measured").unwrap();
    let file = File::options().read(true).write(true).open(&path).unwrap();
    mark(&file);
    assert!(is_marked(&file));
    (folder, path, file)
}

/// Whether the file may be written without anybody giving it up.
fn is_free(path: &Path) -> bool {
    match authorize(path, &[]) {
        Ok(proof) => is_marked(proof.claim().unwrap()),
        Err(refusals) => {
            assert_eq!(refusals, [Refusal::ForeignContent { path: path.to_owned(), offset: 0 }]);
            false
        }
    }
}

#[test]
fn a_marked_file_may_be_written_until_somebody_writes_to_it_right_after_the_mark() {
    let (_folder, path, mut file) = marked();
    assert!(is_free(&path));
    file.write_all(b"M").unwrap();
    assert!(!is_free(&path) && !is_marked(&file));
    mark(&file);
    assert!(is_free(&path));
    file.set_len(3).unwrap();
    assert!(!is_free(&path));
}

#[test]
fn a_file_that_somebody_opens_during_a_measurement_is_not_marked() {
    let (_folder, path, file) = marked();
    let measured = Measured::watch(file.try_clone().unwrap()).unwrap();
    let mut other = File::options().write(true).open(&path).unwrap();
    other.write_all(b"mine").unwrap();
    drop(other);
    // What a measurement writes afterwards must not hide it.
    (&file).write_all(b"measured").unwrap();
    assert!(!measured.mark().unwrap());
    assert!(!is_free(&path) && !is_marked(&file));
}

#[test]
fn a_copy_with_all_attributes_is_not_marked() {
    let (folder, path, _file) = marked();
    let copy = folder.path().join("copy");
    let copied = Command::new("cp").arg("--archive").args([&path, &copy]).status().unwrap();
    assert!(copied.success());
    assert!(!is_free(&copy) && is_free(&path));
    // Nor is it in the place of the file that was marked.
    fs::rename(&copy, &path).unwrap();
    assert!(!is_free(&path));
}

#[test]
fn a_marked_file_that_holds_something_known_is_refused() {
    let (_folder, path, file) = marked();
    file.set_len(4 << 20).unwrap();
    drop(file);
    let made = Command::new("mkfs.ext4").arg("-q").arg("-F").arg(&path).status().unwrap();
    assert!(made.success());
    mark(&File::options().write(true).read(true).open(&path).unwrap());
    let refusals = authorize(&path, &[]).unwrap_err();
    assert!(matches!(refusals[..], [Refusal::Signature { .. }]), "{refusals:?}");
}
