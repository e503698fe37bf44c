//! The options of single experiments, each defined once, and what they ask of the laboratory.

use std::fs;
use std::path::PathBuf;

use anyhow::{Context, Result};
use base::{ByteSize, Duration, Rate};
use clap::Args;
use lab::experiment::Options;
use lab::experiment::apps::Application;
use lab::experiment::link::sweep::LANES;
use lab::experiment::neighbours::{Overwriting, PERCENTILES};
use lab::experiment::options::{
    AppsAsk, AppsOptions, NeighboursOptions, SweepOptions, ViewersOptions,
};
use lab::experiment::viewers::Ingest;

use super::arguments::ExperimentArguments;

/// Heading of an experiment's own options.
const EXPERIMENT: &str = "Experiment";

/// `measure fill`.
#[derive(Debug, Args)]
pub struct FillArguments {
    /// Drives, results and limits.
    #[command(flatten)]
    pub experiment: ExperimentArguments,
    /// Size of each write; less on drives with a smaller limit. Lower it to match a recorder of small blocks.
    #[arg(long, value_name = "SIZE", default_value = "1MiB", value_parser = block, help_heading = EXPERIMENT)]
    pub block: u64,
    /// Writes in flight on each drive. Raise it if the drive is not busy.
    #[arg(long, value_name = "N", default_value_t = 8, value_parser = depth, help_heading = EXPERIMENT)]
    pub depth: u32,
    /// Rates to hold: the drives are then written five times over at each of them, beginning empty.
    ///
    /// The result says whether each drive keeps up, and how much data waits meanwhile. `longtake plan` uses it.
    #[arg(long, value_name = "RATE,RATE,...", value_delimiter = ',', value_parser = rate, help_heading = EXPERIMENT)]
    pub rate: Vec<Rate>,
}

/// `measure stream`.
#[derive(Debug, Args)]
pub struct StreamArguments {
    /// Drives, results and limits.
    #[command(flatten)]
    pub experiment: ExperimentArguments,
    /// Block sizes. Give fewer to finish sooner [default: powers of two from 64KiB to 16MiB].
    #[arg(long, value_name = "SIZE,SIZE,...", value_delimiter = ',', value_parser = block, help_heading = EXPERIMENT)]
    pub block: Vec<u64>,
    /// Commands in flight on each drive [default: 1,2,4,8,16,32].
    #[arg(long, value_name = "N,N,...", value_delimiter = ',', value_parser = depth, help_heading = EXPERIMENT)]
    pub depth: Vec<u32>,
}

/// `measure steady`.
#[derive(Debug, Args)]
pub struct SteadyArguments {
    /// Drives, results and limits.
    #[command(flatten)]
    pub experiment: ExperimentArguments,
    /// Size of each command; less on drives with a smaller limit. Set it to what will be written, such as a frame.
    #[arg(long, value_name = "SIZE", default_value = "8MiB", value_parser = block, help_heading = EXPERIMENT)]
    pub block: u64,
}

/// `measure mix`.
#[derive(Debug, Args)]
pub struct MixArguments {
    /// Drives, results and limits.
    #[command(flatten)]
    pub experiment: ExperimentArguments,
    /// Block sizes; those that a drive doesn't support are left out [default:
    /// 512,4KiB,8KiB,16KiB,32KiB,64KiB,128KiB,1MiB].
    #[arg(long, value_name = "SIZE,SIZE,...", value_delimiter = ',', value_parser = block, help_heading = EXPERIMENT)]
    pub block: Vec<u64>,
    /// Commands in flight on each drive, or on a striped set as a whole. Two jobs share an even number.
    #[arg(long, value_name = "N", default_value_t = 64, value_parser = depth, help_heading = EXPERIMENT)]
    pub depth: u32,
}

/// `measure snia`.
#[derive(Debug, Args)]
pub struct SniaArguments {
    /// Drives, results and limits.
    #[command(flatten)]
    pub experiment: ExperimentArguments,
    /// Commands in flight for each of two jobs on each drive. The specification leaves the choice to the tester.
    #[arg(long, value_name = "N", default_value_t = 16, value_parser = depth, help_heading = EXPERIMENT)]
    pub depth: u32,
}

/// `measure link`.
#[derive(Debug, Args)]
pub struct LinkArguments {
    /// Drives, results and limits.
    #[command(flatten)]
    pub experiment: ExperimentArguments,
    /// Also measure simulated drives on other PCIe links: every generation by every number of lanes.
    ///
    /// It shows what a narrower link costs and what a wider one gains. Each link begins with the contents that the
    /// target names.
    #[arg(long, help_heading = EXPERIMENT)]
    pub sweep: bool,
    /// Sweep the link of the real drive with this serial number over its speeds by retraining it.
    ///
    /// The previous speed is restored afterwards. The number of lanes stays. Refused while the drive is in use.
    #[arg(long, value_name = "SERIAL", requires = "sweep", help_heading = EXPERIMENT)]
    pub retrain: Option<String>,
    /// PCIe generations of the sweep, 1 to 6 [default: 1,2,3,4,5; on a real drive those it supports].
    #[arg(long, value_name = "N,N,...", value_delimiter = ',', requires = "sweep", value_parser = clap::value_parser!(u8).range(1..=6), help_heading = EXPERIMENT)]
    pub generations: Vec<u8>,
    /// Lanes of the sweep: 1, 2, 4, 8 or 16 [default: 1,2,4 and more up to the drive's own].
    #[arg(long, value_name = "N,N,...", value_delimiter = ',', requires = "sweep", value_parser = lanes, help_heading = EXPERIMENT)]
    pub lanes: Vec<u8>,
    /// Random 4 KiB commands in flight on each link of the sweep [default: 1,4,16,32].
    #[arg(long, value_name = "N,N,...", value_delimiter = ',', requires = "sweep", value_parser = depth, help_heading = EXPERIMENT)]
    pub depth: Vec<u32>,
}

/// `measure neighbours`.
#[derive(Debug, Args)]
pub struct NeighboursArguments {
    /// Drives, results and limits.
    #[command(flatten)]
    pub experiment: ExperimentArguments,
    /// Size of each read.
    #[arg(long, value_name = "SIZE", default_value = "4KiB", value_parser = block, help_heading = EXPERIMENT)]
    pub block: u64,
    /// Reads in flight; each number is a point. Give fewer to finish sooner [default: 1,2,4,8,16,32].
    #[arg(long, value_name = "N,N,...", value_delimiter = ',', value_parser = depth, help_heading = EXPERIMENT)]
    pub depth: Vec<u32>,
    /// Size of each write beside the reads [default: 128KiB].
    #[arg(long, value_name = "SIZE", value_parser = block, help_heading = EXPERIMENT)]
    pub write_block: Option<u64>,
    /// Writes in flight beside the reads [default: 8].
    #[arg(long, value_name = "N", value_parser = depth, help_heading = EXPERIMENT)]
    pub write_depth: Option<u32>,
    /// Rate of each writer. Set it to the rate that will be recorded [default: as fast as possible].
    #[arg(long, value_name = "RATE", value_parser = rate, help_heading = EXPERIMENT)]
    pub rate: Option<Rate>,
    /// Overwrite the drives first: sequential, or random in 4 KiB.
    ///
    /// :PASSES repeats it. Use it to measure a used drive, which collects garbage.
    #[arg(long, value_name = "HOW[:PASSES]", help_heading = EXPERIMENT)]
    pub overwrite: Option<Overwriting>,
    /// Extend each point until this percentile is known: 50 to 99.9999.
    ///
    /// That takes 100 reads beyond the percentile, or 10^8 reads for 99.9999. Points that end earlier list the reads
    /// that are missing.
    #[arg(long, value_name = "PERCENT", value_parser = percentile, help_heading = EXPERIMENT)]
    pub percentile: Option<f64>,
    /// Longest time of an extended point [default: ten times --point].
    #[arg(long, value_name = "TIME", help_heading = EXPERIMENT)]
    pub longest: Option<Duration>,
    /// Read in deterministic windows of a simulated drive.
    ///
    /// That is NVMe's Predictable Latency Mode. Before each point, the reader's NVM Sets recover from the last window. Points that outlast
    /// their window are listed.
    #[arg(long, hide_short_help = true, help_heading = EXPERIMENT)]
    pub deterministic: bool,
}

/// `measure viewers`.
#[derive(Debug, Args)]
pub struct ViewersArguments {
    /// Drives, results and limits.
    #[command(flatten)]
    pub experiment: ExperimentArguments,
    /// Rate of each viewer. H.264 video at 1080p takes 1.5 to 4 MB/s; set it to your bit rate.
    #[arg(long, value_name = "RATE", default_value = "2.5MB/s", value_parser = rate, help_heading = EXPERIMENT)]
    pub rate: Rate,
    /// Size of each read. A larger block takes longer to play, so it leaves more time.
    #[arg(long, value_name = "SIZE", default_value = "512KiB", value_parser = block, help_heading = EXPERIMENT)]
    pub block: u64,
    /// Rate of the writer on all drives together, or a share of what they write alone (50%) [default: 200MB/s].
    #[arg(long, value_name = "RATE", help_heading = EXPERIMENT)]
    pub ingest: Option<Ingest>,
}

/// `measure apps`.
#[derive(Debug, Args)]
pub struct AppsArguments {
    /// Drives, results and limits.
    #[command(flatten)]
    pub experiment: ExperimentArguments,
    /// Applications: cache-tier, virtual-machines, olap, content-delivery, post-production, colour-grading [default:
    /// all].
    #[arg(long, value_name = "NAME,...", value_delimiter = ',', value_parser = application, help_heading = EXPERIMENT)]
    pub app: Vec<Application>,
    /// Requirements of applications as TOML (docs/measure.md). Streams that the file doesn't name keep their own.
    #[arg(long, value_name = "FILE", conflicts_with = "shares", help_heading = EXPERIMENT)]
    pub demands: Option<PathBuf>,
    /// Require shares of the drives' own rates instead of absolute figures, to judge behaviour independent of speed.
    #[arg(long, help_heading = EXPERIMENT)]
    pub shares: bool,
    /// Factor for all rates. Raise it above 1 to find the reserve.
    #[arg(long, value_name = "FACTOR", default_value_t = 1.0, value_parser = factor, help_heading = EXPERIMENT)]
    pub load: f64,
}

impl AppsArguments {
    /// The options as the experiment takes them.
    ///
    /// # Errors
    /// If the file of demands can't be read.
    pub fn options(&self) -> Result<Options> {
        let asks = match &self.demands {
            Some(path) => {
                let text = fs::read_to_string(path)
                    .with_context(|| format!("reading {}", path.display()))?;
                let demands = text.parse().with_context(|| {
                    format!("{} doesn't say what applications ask", path.display())
                })?;
                Some(AppsAsk::Demands(demands))
            }
            None => self.shares.then_some(AppsAsk::Shares),
        };
        let (applications, load) = (self.app.clone(), Some(self.load));
        Ok(Options::Apps(AppsOptions { applications, asks, load }))
    }
}

impl FillArguments {
    /// The options as the experiment takes them.
    pub fn options(&self) -> Options {
        points(&[self.block], &[self.depth], &self.rate)
    }
}

impl StreamArguments {
    /// The options as the experiment takes them.
    pub fn options(&self) -> Options {
        points(&self.block, &self.depth, &[])
    }
}

impl SteadyArguments {
    /// The options as the experiment takes them.
    pub fn options(&self) -> Options {
        points(&[self.block], &[], &[])
    }
}

impl MixArguments {
    /// The options as the experiment takes them.
    pub fn options(&self) -> Options {
        points(&self.block, &[self.depth], &[])
    }
}

impl SniaArguments {
    /// The options as the experiment takes them.
    pub fn options(&self) -> Options {
        points(&[], &[self.depth], &[])
    }
}

impl LinkArguments {
    /// The options as the experiment takes them.
    pub fn options(&self) -> Options {
        let sweep = self.sweep.then(|| SweepOptions {
            generations: self.generations.clone(),
            lanes: self.lanes.clone(),
            depths: self.depth.clone(),
        });
        Options::Link { sweep }
    }
}

impl NeighboursArguments {
    /// The options as the experiment takes them.
    pub fn options(&self) -> Options {
        Options::Neighbours(NeighboursOptions {
            read_block: Some(self.block),
            depths: self.depth.clone(),
            write_block: self.write_block,
            write_depth: self.write_depth,
            rate: self.rate,
            overwrite: self.overwrite,
            percentile: self.percentile,
            longest: self.longest,
            deterministic: self.deterministic,
        })
    }
}

impl ViewersArguments {
    /// The options as the experiment takes them.
    pub fn options(&self) -> Options {
        let Self { rate, block, ingest, .. } = *self;
        Options::Viewers(ViewersOptions { rate: Some(rate), block: Some(block), ingest })
    }
}

fn points(blocks: &[u64], depths: &[u32], rates: &[Rate]) -> Options {
    let (blocks, depths, rates) = (blocks.to_vec(), depths.to_vec(), rates.to_vec());
    Options::Points { blocks, depths, rates }
}

/// Commands under way.
fn depth(text: &str) -> Result<u32, String> {
    const DEPTH_MAX: u32 = 65_535;
    let depth = text.parse().ok().filter(|depth| (1..=DEPTH_MAX).contains(depth));
    depth.ok_or_else(|| format!("a depth is a number from 1 to {DEPTH_MAX}"))
}

/// A block size in bytes.
fn block(text: &str) -> Result<u64, String> {
    let bytes = text.parse::<ByteSize>().map_err(|error| error.to_string())?.0;
    if bytes > 0 { Ok(bytes) } else { Err("a block is of 1 byte at least".to_owned()) }
}

fn rate(text: &str) -> Result<Rate, String> {
    let rate = text.parse::<Rate>().map_err(|error| error.to_string())?;
    if rate.0 > 0.0 { Ok(rate) } else { Err("give a rate above 0".to_owned()) }
}

fn application(text: &str) -> Result<Application, String> {
    Application::named(text).ok_or_else(|| {
        let names: Vec<&str> = Application::ALL.iter().map(|a| a.name()).collect();
        format!("give one of {}", names.join(", "))
    })
}

/// A number above 0.
pub fn factor(text: &str) -> Result<f64, String> {
    let factor = text.parse().ok().filter(|factor: &f64| *factor > 0.0 && factor.is_finite());
    factor.ok_or_else(|| "give a number above 0, such as 1.5".to_owned())
}

fn lanes(text: &str) -> Result<u8, String> {
    let lanes = text.parse().ok().filter(|lanes| LANES.contains(lanes));
    lanes.ok_or_else(|| "a link has 1, 2, 4, 8 or 16 lanes".to_owned())
}

fn percentile(text: &str) -> Result<f64, String> {
    let percent = text.trim_end_matches('%').parse().ok();
    percent.filter(|percent| PERCENTILES.contains(percent)).ok_or_else(|| {
        let known: Vec<String> = PERCENTILES.iter().map(f64::to_string).collect();
        format!("give one of {}", known.join(", "))
    })
}

#[cfg(test)]
mod tests {
    use clap::Parser;
    use lab::experiment::Experiment;

    use crate::commands::{Arguments, Verb};
    use crate::measure::arguments::MeasureAction;

    #[test]
    fn defaults_are_the_experiments_own() {
        for name in Experiment::NAMES {
            let parsed = Arguments::try_parse_from(["longtake", "measure", name, "drive"]).unwrap();
            let Verb::Measure { action } = parsed.verb else { unreachable!() };
            let options = match action {
                MeasureAction::Fill(a) => a.options(),
                MeasureAction::Stream(a) => a.options(),
                MeasureAction::Steady(a) => a.options(),
                MeasureAction::Viewers(a) => a.options(),
                MeasureAction::Mix(a) => a.options(),
                MeasureAction::Neighbours(a) => a.options(),
                MeasureAction::Link(a) => a.options(),
                MeasureAction::Snia(a) => a.options(),
                MeasureAction::Apps(a) => a.options().unwrap(),
                _ => continue,
            };
            let mut experiment = Experiment::named(name).unwrap();
            options.set(&mut experiment);
            assert_eq!(Some(experiment), Experiment::named(name));
        }
    }
}
