//! The options of `sweep`, defined once.

use std::num::NonZeroUsize;
use std::path::PathBuf;

use clap::{Args, Subcommand};

/// `sweep`.
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true, arg_required_else_help = true)]
pub struct SweepArguments {
    /// What to do instead of running a sweep here.
    #[command(subcommand)]
    pub action: Option<SweepAction>,
    /// The sweep: what is common to all designs, what varies, and what to compute (docs/sweeps.md).
    #[arg(value_name = "SPEC.toml")]
    pub spec: Option<PathBuf>,
    /// The folder for results; one with results of the same sweep is gone on with [default: SPEC.sweep].
    #[arg(long, short, value_name = "DIR")]
    pub output: Option<PathBuf>,
    /// Jobs at the same time [default: as many as there are processors].
    #[arg(long, value_name = "N")]
    pub jobs: Option<NonZeroUsize>,
    /// Write the table as CSV here [default: results.csv in the folder].
    #[arg(long, value_name = "FILE")]
    pub csv: Option<PathBuf>,
    /// Also write the table as Parquet.
    #[arg(long, value_name = "FILE")]
    pub parquet: Option<PathBuf>,
    /// Overwrite the tables if they exist.
    #[arg(long, short = 'y')]
    pub overwrite: bool,
    /// Say how many jobs there are and how long they may take (one is run to know), and do nothing.
    #[arg(long)]
    pub dry_run: bool,
    /// Print JSON.
    #[arg(long)]
    pub json: bool,
    /// Print no progress.
    #[arg(long, short)]
    pub quiet: bool,
}

/// What can be done with jobs one by one.
#[derive(Debug, Subcommand)]
pub enum SweepAction {
    /// Run one job and print its result as a line of JSON. Such lines, joined as results.jsonl in a sweep's folder, are its results.
    Job(JobArguments),
    /// Write each job of a sweep as a file, for other machines.
    Expand(ExpandArguments),
}

/// `sweep job`.
#[derive(Debug, Args)]
pub struct JobArguments {
    /// The job, as TOML or JSON.
    #[arg(value_name = "JOB.toml")]
    pub job: PathBuf,
    /// Accepted as by every command, and changes nothing: the result is a line of JSON in any case.
    #[arg(long)]
    pub json: bool,
}

/// `sweep expand`.
#[derive(Debug, Args)]
pub struct ExpandArguments {
    /// The sweep.
    #[arg(value_name = "SPEC.toml")]
    pub spec: PathBuf,
    /// The folder for jobs.
    #[arg(long, short, value_name = "DIR")]
    pub output: PathBuf,
    /// Overwrite jobs that exist.
    #[arg(long, short = 'y')]
    pub overwrite: bool,
    /// Print JSON.
    #[arg(long)]
    pub json: bool,
}
