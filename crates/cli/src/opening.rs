//! Opens arrays for the commands; what the user should know goes to standard error.

use anyhow::Result;
use longtake::Remark;
use longtake::array::open::Tell;
use longtake::array::{Array, ArrayOptions};

use crate::arguments::ArrayArguments;
use crate::printer;

/// Prints a remark on standard error.
pub fn print(remark: &Remark) {
    printer::tell(&format!("longtake: {remark}"));
}

/// Prints remarks on standard error.
pub fn tell() -> Tell {
    Box::new(|remark| print(&remark))
}

/// How a command opens its array.
pub fn options(degraded: bool) -> ArrayOptions {
    Array::options().degraded(degraded).on_remark(|remark| print(&remark))
}

/// Opens a command's array for reading.
///
/// # Errors
/// If a member can't be opened or the array is not whole (and `--degraded` is not set).
pub fn open_to_read(arguments: &ArrayArguments) -> Result<Array> {
    Ok(options(arguments.degraded).open(&arguments.array)?)
}
