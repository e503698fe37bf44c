//! Options that a program can give and no recording can have.

use longtake::{Options, Recording};

use crate::harness::scratch;

#[test]
fn a_depth_that_no_recording_can_have_is_refused_before_anything_is_made() {
    let folder = scratch();
    let target = folder.path().join("array");
    for depth in [0, 65] {
        let options = Options { depth, ..Options::default() };
        let recording = Recording::builder("synthetic:1MB/s", &target.display().to_string());
        let refused = recording.options(options).run(&mut ()).expect_err("it can't be").to_string();
        assert!(refused.contains("give 1 to 64"), "{refused}");
        assert!(!target.exists());
    }
}
