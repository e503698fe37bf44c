//! The Python package as Python sees it: its tests run in an environment with the libraries that it hands packets to,
//! on the library that cargo has just built. `cargo xtask python` runs them on the wheel instead.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::env;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Command;

#[test]
fn the_tests_of_the_package_pass_in_python() {
    let package = Path::new(env!("CARGO_MANIFEST_DIR"));
    // In target, so that the libraries are downloaded once.
    let environment = Path::new(env!("CARGO_TARGET_TMPDIR")).join("python");
    let python = environment.join("bin/python");
    if !python.exists() {
        run(Command::new("python3").args(["-m", "venv"]).arg(&environment));
    }
    let install = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "-r"];
    run(Command::new(&python).args(install).arg(package.join("tests/requirements.txt")));

    let installed = tempfile::tempdir().unwrap();
    let modules = installed.path().join("longtake");
    fs::create_dir(&modules).unwrap();
    for file in fs::read_dir(package.join("longtake")).unwrap() {
        let file = file.unwrap();
        symlink(file.path(), modules.join(file.file_name())).unwrap();
    }
    let built = env::current_exe().unwrap().with_file_name("lib_longtake.so");
    assert!(built.exists(), "{} is not there", built.display());
    symlink(&built, modules.join("_longtake.abi3.so")).unwrap();

    // The command line hands sweeps to the package. `cargo test --workspace` builds it, too.
    let program = built.ancestors().nth(2).unwrap().join("longtake");
    assert!(program.exists(), "{} is not there: cargo build", program.display());

    let mut tests = Command::new(&python);
    tests.args(["-m", "unittest", "discover", "--start-directory"]).arg(package.join("tests"));
    tests.env("PYTHONPATH", installed.path()).env("LONGTAKE_PROGRAM", program);
    run(tests.current_dir(&installed));
}

fn run(command: &mut Command) {
    let status = command.status().unwrap();
    assert!(status.success(), "{command:?}: {status}");
}
