//! Any text as a sweep: jobs can be counted, taken from anywhere among them, and read back as they are written.

use plan::sweep::{Job, Sweep};

/// Reads it, and looks at the first, the middle and the last job.
pub fn run(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let sweep = match Sweep::from_toml(text) {
        Ok(sweep) => sweep,
        Err(error) => return assert!(!error.to_string().is_empty()),
    };
    let count = sweep.count();
    assert!(count > 0);
    for index in [0, count / 2, count - 1] {
        let job = sweep.job(index);
        if let Ok(printed) = job.to_toml() {
            let again = Job::from_toml(&printed).expect("what was printed reads");
            assert_eq!(again.to_toml().ok(), Some(printed));
        }
        if let Err(error) = job.check() {
            assert!(!error.to_string().is_empty());
        }
    }
}
