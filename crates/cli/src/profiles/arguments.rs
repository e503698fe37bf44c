//! The options of `profiles`, defined once.

use std::path::PathBuf;

use base::ByteSize;
use clap::{Args, Subcommand};
use lab::importing::units::{RateUnit, ScaleUnit};

use longtake::names;

/// What can be done with profiles.
#[derive(Debug, Subcommand)]
pub enum ProfilesAction {
    /// List the drives of the library and your own, and where their figures come from.
    List(ListArguments),
    /// Show every figure of a drive with its range, its source and how far to trust it.
    Show(ShowArguments),
    /// Make a profile of your own from what was measured, here or elsewhere.
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
    /// A drive of the library or your own, or a file (with a / or ending in .toml).
    #[arg(value_name = "NAME|PATH")]
    pub drive: String,
    /// Print JSON.
    #[arg(long)]
    pub json: bool,
}

/// `profiles import`.
#[derive(Clone, Debug, Args)]
pub struct ImportArguments {
    /// What was measured on one drive: a folder or JSON that `longtake measure` wrote; fio's JSON; fio's bandwidth or
    /// histogram logs (those of several jobs are added up); or a CSV of time and rate.
    #[arg(required = true, value_name = "FROM")]
    pub from: Vec<PathBuf>,
    /// A CSV or fio's logs of the same drive written a second time [default: what lies beyond the drive's capacity].
    #[arg(long, value_name = "FILE", num_args = 1..)]
    pub overwrite_pass: Vec<PathBuf>,
    /// Everything was written over old data: the drive was full from the beginning.
    #[arg(long, conflicts_with = "overwrite_pass")]
    pub full: bool,
    /// The drive: one of the library or your own, or a file. What is known of it is kept where the import tells nothing better.
    #[arg(long, value_name = "NAME|PATH")]
    pub drive: Option<String>,
    /// The drive's capacity, where neither FROM nor --drive tells it.
    #[arg(long, value_name = "SIZE")]
    pub capacity: Option<ByteSize>,
    /// The drive's model, where neither FROM nor --drive tells it [default: the profile's name].
    #[arg(long, value_parser = names::printable)]
    pub model: Option<String>,
    /// What the profile is called [default: after --drive, the model or the file].
    #[arg(long, value_parser = names::printable)]
    pub name: Option<String>,
    /// Write this file instead of one in your own folder of profiles.
    #[arg(long, short, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Who measured it.
    #[arg(long, value_name = "WHO", value_parser = names::printable)]
    pub by: Option<String>,
    /// It is somebody's publication, where: an address, a magazine. Its figures count as published, not as measured.
    #[arg(long, value_name = "WHERE", value_parser = names::printable)]
    pub published: Option<String>,
    /// The day of the measurement, as 2026-11-21 [default: as FROM tells, or the file's own].
    #[arg(long, value_name = "DATE", value_parser = names::printable)]
    pub when: Option<String>,
    /// CSV: the column of times (or of bytes or percent written), by its name or its number from 1 [default: by its name].
    #[arg(long, value_name = "COLUMN")]
    pub time_column: Option<String>,
    /// CSV: the column of rates, by its name or its number from 1 [default: by its name].
    #[arg(long, value_name = "COLUMN")]
    pub rate_column: Option<String>,
    /// CSV: what times are in: ns, us, ms, s, min, h, h:m:s; or B, kB, MB, GB, TB, KiB, MiB, GiB, TiB, % of the drive written
    /// [default: as the column's name says].
    #[arg(long, value_name = "UNIT")]
    pub time_unit: Option<ScaleUnit>,
    /// CSV: what rates are in: B/s, kB/s, KiB/s, MB/s, MiB/s, GB/s, GiB/s, kb/s, Mb/s, Gb/s [default: as the column's name says].
    #[arg(long, value_name = "UNIT")]
    pub rate_unit: Option<RateUnit>,
    /// Overwrite the profile if there is one.
    #[arg(long, short = 'y')]
    pub overwrite: bool,
    /// Print JSON.
    #[arg(long)]
    pub json: bool,
}
