//! The options of `sweep`, defined once.

use std::num::NonZeroUsize;
use std::path::PathBuf;

use clap::{Args, Subcommand};
use longtake::sweep::Cluster;

const CLUSTER: &str = "On a cluster";

/// `sweep`.
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true, arg_required_else_help = true)]
pub struct SweepArguments {
    /// What to do instead of running a sweep here.
    #[command(subcommand)]
    pub action: Option<SweepAction>,
    /// Sweep to run: the common settings, the axes, and what to compute (docs/sweeps.md).
    #[arg(value_name = "SPEC.toml")]
    pub spec: Option<PathBuf>,
    /// Folder for results; an interrupted sweep continues in it [default: SPEC.sweep].
    #[arg(long, short, value_name = "DIR")]
    pub output: Option<PathBuf>,
    /// Jobs to run at the same time [default: the number of processors].
    #[arg(long, value_name = "N")]
    pub jobs: Option<NonZeroUsize>,
    /// Where to compute the jobs, if not here.
    #[command(flatten)]
    pub cluster: ClusterArguments,
    /// File for the table as CSV [default: results.csv in the folder].
    #[arg(long, value_name = "FILE")]
    pub csv: Option<PathBuf>,
    /// Also write the table as Parquet to this file.
    #[arg(long, value_name = "FILE")]
    pub parquet: Option<PathBuf>,
    /// Replace tables that exist.
    #[arg(long, short = 'y')]
    pub overwrite: bool,
    /// Count the jobs, run one to estimate the time, and write nothing.
    #[arg(long)]
    pub dry_run: bool,
    /// Print JSON.
    #[arg(long)]
    pub json: bool,
    /// Print no progress.
    #[arg(long, short)]
    pub quiet: bool,
}

/// A cluster.
#[derive(Clone, Debug, Args)]
pub struct ClusterArguments {
    /// Compute the jobs on the workers of a Dask cluster, which has its scheduler at this address (docs/cluster.md).
    ///
    /// Needs the Python package here and on the workers: pip install 'longtake[cluster]'. The drives' profiles are sent along.
    #[arg(long, value_name = "ADDRESS", conflicts_with_all = ["jobs", "dry_run"], help_heading = CLUSTER)]
    pub scheduler: Option<String>,
    /// Certificate of the authority that has signed those of the cluster [default: as Dask's configuration says].
    #[arg(long, value_name = "FILE", requires_all = ["scheduler", "tls_cert", "tls_key"], help_heading = CLUSTER)]
    pub tls_ca_file: Option<PathBuf>,
    /// Certificate to show to the cluster.
    #[arg(long, value_name = "FILE", requires = "tls_ca_file", help_heading = CLUSTER)]
    pub tls_cert: Option<PathBuf>,
    /// Its key.
    #[arg(long, value_name = "FILE", requires = "tls_ca_file", help_heading = CLUSTER)]
    pub tls_key: Option<PathBuf>,
}

impl ClusterArguments {
    /// The cluster, if there is to be one.
    pub fn chosen(&self) -> Option<Cluster> {
        let Self { scheduler, tls_ca_file: ca, tls_cert, tls_key } = self.clone();
        let tls = ca.zip(tls_cert).zip(tls_key).map(|((ca, cert), key)| [ca, cert, key]);
        Some(Cluster { scheduler: scheduler?, tls })
    }
}

/// What can be done with jobs one by one.
#[derive(Debug, Subcommand)]
pub enum SweepAction {
    /// Run one job and print its result as a line of JSON, for results.jsonl in the sweep's folder.
    Job(JobArguments),
    /// Write each job of a sweep to a file, for other machines.
    Expand(ExpandArguments),
}

/// `sweep job`.
#[derive(Debug, Args)]
pub struct JobArguments {
    /// Job as TOML or JSON.
    #[arg(value_name = "JOB.toml")]
    pub job: PathBuf,
    /// Accepted for uniformity: the result is a line of JSON in any case.
    #[arg(long)]
    pub json: bool,
}

/// `sweep expand`.
#[derive(Debug, Args)]
pub struct ExpandArguments {
    /// Sweep to expand.
    #[arg(value_name = "SPEC.toml")]
    pub spec: PathBuf,
    /// Folder for the jobs.
    #[arg(long, short, value_name = "DIR")]
    pub output: PathBuf,
    /// Replace jobs that exist.
    #[arg(long, short = 'y')]
    pub overwrite: bool,
    /// Print JSON.
    #[arg(long)]
    pub json: bool,
}
