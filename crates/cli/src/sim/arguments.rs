//! The options of `sim`, defined once.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use crate::profiles::arguments::{ListArguments, ShowArguments};
use longtake::names;

/// What can be done with the drives that are simulated.
#[derive(Debug, Subcommand)]
pub enum SimAction {
    /// List the drives that come with the program.
    List(ListArguments),
    /// Show what a drive is made of, where that is known from, and what it comes to.
    Show(ShowArguments),
    /// Make a file of a drive of one's own, to change.
    New(NewArguments),
    /// Say whether files make drives that can be, and what is wrong if not.
    Check(CheckArguments),
    /// Show what trimming ahead and letting members rest does to the rate that a wrapped ring sustains, by simulation.
    Rest(RestArguments),
}

/// `sim new`.
#[derive(Debug, Args)]
pub struct NewArguments {
    /// What the drive is called.
    #[arg(value_parser = names::printable)]
    pub name: String,
    /// The file to write.
    #[arg(long, short, value_name = "FILE")]
    pub output: PathBuf,
    /// The drive to start from: one of the library, or a file.
    #[arg(long, value_name = "NAME|PATH", default_value = "ideal")]
    pub from: String,
    /// Overwrite the file if there is one.
    #[arg(long, short = 'y')]
    pub overwrite: bool,
    /// Print JSON.
    #[arg(long)]
    pub json: bool,
}

/// `sim check`.
#[derive(Debug, Args)]
pub struct CheckArguments {
    /// The files.
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
    /// Members of the ring.
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = clap::value_parser!(u32).range(2..=64))]
    pub members: u32,
    /// Print JSON.
    #[arg(long)]
    pub json: bool,
}
