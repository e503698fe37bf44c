//! The options of `profiles`, defined once.

use clap::{Args, Subcommand};

/// What can be done with profiles.
#[derive(Debug, Subcommand)]
pub enum ProfilesAction {
    /// List the drives of the library and your own, and where their figures come from.
    List(ListArguments),
    /// Show every figure of a drive with its range, its source and how far to trust it.
    Show(ShowArguments),
}

/// `profiles list`.
#[derive(Debug, Args)]
pub struct ListArguments {
    /// Print JSON.
    #[arg(long)]
    pub json: bool,
}

/// `profiles show`.
#[derive(Debug, Args)]
pub struct ShowArguments {
    /// A drive of the library or your own, or a file (with a / or ending in .toml).
    #[arg(value_name = "NAME|PATH")]
    pub drive: String,
    /// Print JSON.
    #[arg(long)]
    pub json: bool,
}
