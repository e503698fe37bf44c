//! The options of `profiles`, defined once.

use std::path::PathBuf;

use base::ByteSize;
use clap::{Args, Subcommand};
use lab::importing::units::{RateUnit, ScaleUnit};

use longtake::names;

/// What can be done with profiles.
#[derive(Debug, Subcommand)]
pub enum ProfilesAction {
    /// List the drives of the library and your own, with the sources of their figures.
    List(ListArguments),
    /// Show every figure of a drive with its range, source and trust.
    Show(ShowArguments),
    /// Create a profile from measurements made by Longtake or other programs.
    Import(Box<ImportArguments>),
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
    /// Drive of the library or your own, or a file (with a / or ending in .toml).
    #[arg(value_name = "NAME|PATH")]
    pub drive: String,
    /// Print JSON.
    #[arg(long)]
    pub json: bool,
}

// Headings in the help.
const TABLES: &str = "CSV tables";
const EVIDENCE: &str = "Evidence";

/// `profiles import`.
#[derive(Clone, Debug, Args)]
pub struct ImportArguments {
    /// Measurements of one drive: a `longtake measure` folder, fio JSON or logs, or a CSV of time and rate.
    ///
    /// Bandwidth and histogram logs of several fio jobs are added up.
    #[arg(required = true, value_name = "FROM")]
    pub from: Vec<PathBuf>,
    /// Files of a second pass over the same drive [default: data beyond the drive's capacity].
    #[arg(long, value_name = "FILE", num_args = 1..)]
    pub overwrite_pass: Vec<PathBuf>,
    /// The drive was full at the start, so everything was overwritten.
    #[arg(long, conflicts_with = "overwrite_pass")]
    pub full: bool,
    /// Drive whose figures are kept where the import has none better: of the library or your own, or a file.
    #[arg(long, value_name = "NAME|PATH")]
    pub drive: Option<String>,
    /// Capacity of the drive, if neither FROM nor --drive states it.
    #[arg(long, value_name = "SIZE")]
    pub capacity: Option<ByteSize>,
    /// Model of the drive, if neither FROM nor --drive states it [default: the profile's name].
    #[arg(long, value_parser = names::printable, hide_short_help = true)]
    pub model: Option<String>,
    /// Name of the profile [default: from --drive, the model or the file].
    #[arg(long, value_parser = names::printable)]
    pub name: Option<String>,
    /// File to write instead of one in your folder of profiles.
    #[arg(long, short, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Who measured it.
    #[arg(long, value_name = "WHO", value_parser = names::printable, help_heading = EVIDENCE, hide_short_help = true)]
    pub by: Option<String>,
    /// Where it was published: an address, a magazine. Its figures then count as published, not as measured.
    #[arg(long, value_name = "WHERE", value_parser = names::printable, help_heading = EVIDENCE, hide_short_help = true)]
    pub published: Option<String>,
    /// Date of the measurement, as 2026-11-21 [default: from FROM, or the date of the file].
    #[arg(long, value_name = "DATE", value_parser = names::printable, help_heading = EVIDENCE, hide_short_help = true)]
    pub when: Option<String>,
    /// Column of times, or of bytes or percent written: name, or number from 1 [default: by its name].
    #[arg(long, value_name = "COLUMN", help_heading = TABLES, hide_short_help = true)]
    pub time_column: Option<String>,
    /// Column of rates: name, or number from 1 [default: by its name].
    #[arg(long, value_name = "COLUMN", help_heading = TABLES, hide_short_help = true)]
    pub rate_column: Option<String>,
    /// Unit of times: ns, us, ms, s, min, h, h:m:s; or B, kB, MB, GB, TB, KiB, MiB, GiB, TiB, % written [default:
    /// from the column's name].
    #[arg(long, value_name = "UNIT", help_heading = TABLES, hide_short_help = true)]
    pub time_unit: Option<ScaleUnit>,
    /// Unit of rates: B/s, kB/s, KiB/s, MB/s, MiB/s, GB/s, GiB/s, kb/s, Mb/s, Gb/s [default: from the column's name].
    #[arg(long, value_name = "UNIT", help_heading = TABLES, hide_short_help = true)]
    pub rate_unit: Option<RateUnit>,
    /// Replace the profile if it exists.
    #[arg(long, short = 'y')]
    pub overwrite: bool,
    /// Print JSON.
    #[arg(long)]
    pub json: bool,
}
