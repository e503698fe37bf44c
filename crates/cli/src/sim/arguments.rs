//! The options of `sim`, defined once.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use crate::profiles::arguments::{ListArguments, ShowArguments};
use longtake::names;

/// What can be done with the drives that are simulated.
#[derive(Debug, Subcommand)]
pub enum SimAction {
    /// List the drives of the library.
    List(ListArguments),
    /// Show the parameters of a drive, their sources, and the rates they allow.
    Show(ShowArguments),
    /// Create a file for your own drive, to edit.
    New(NewArguments),
    /// Check files of drives, and list what is wrong.
    Check(CheckArguments),
    /// Simulate how trimming ahead and resting members change the rate of a wrapped ring.
    Rest(RestArguments),
}

/// `sim new`.
#[derive(Debug, Args)]
pub struct NewArguments {
    /// Name of the drive.
    #[arg(value_parser = names::printable)]
    pub name: String,
    /// File to write.
    #[arg(long, short, value_name = "FILE")]
    pub output: PathBuf,
    /// Drive to start from: one of the library, or a file.
    #[arg(long, value_name = "NAME|PATH", default_value = "ideal")]
    pub from: String,
    /// Replace the file if it exists.
    #[arg(long, short = 'y')]
    pub overwrite: bool,
    /// Print JSON.
    #[arg(long)]
    pub json: bool,
}

/// `sim check`.
#[derive(Debug, Args)]
pub struct CheckArguments {
    /// Files to check.
    #[arg(required = true, value_name = "FILE")]
    pub files: Vec<PathBuf>,
    /// Print JSON.
    #[arg(long)]
    pub json: bool,
}

/// `sim rest`.
#[derive(Debug, Args)]
pub struct RestArguments {
    /// Drives of the library, or files.
    #[arg(required = true, value_name = "NAME|PATH")]
    pub drives: Vec<String>,
    /// Number of members of the ring.
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = clap::value_parser!(u32).range(2..=64))]
    pub members: u32,
    /// Print JSON.
    #[arg(long)]
    pub json: bool,
}
