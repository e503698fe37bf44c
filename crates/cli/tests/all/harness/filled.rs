//! The simulated drive that README fills: measured once for all tests that need what came of it.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use super::line;

/// The measurement, without the name of the folder of its results.
pub const MEASURE: &str = "measure fill sim:samsung-970-evo-plus-1tb";

/// What came of it.
pub struct Filled {
    /// The folder of its results. Nothing is to be written into it.
    pub results: PathBuf,
    /// What it printed.
    pub printed: String,
}

/// The measurement as it was carried out once.
///
/// # Panics
/// If it fails.
pub fn filled() -> &'static Filled {
    static FILLED: LazyLock<Filled> = LazyLock::new(|| {
        let results = Path::new(env!("CARGO_TARGET_TMPDIR")).join("filled");
        // Of an earlier run.
        fs::remove_dir_all(&results).ok();
        let printed = line(&format!("{MEASURE} -q -o @"), &results).code(0).text();
        Filled { results, printed }
    });
    &FILLED
}
