//! Options of single experiments as a user gives them, each on its way into the experiment that it is of.

use std::fmt;

use base::{Duration, Rate};

use super::any::Experiment;
use super::apps::{Application, Apps, Demands};
use super::link::{Link, Sweep};
use super::neighbours::{Neighbours, Overwriting};
use super::viewers::{Ingest, Viewers};

/// What a user asks of one experiment. What is empty or None stays as the experiment has it.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Options {
    /// Nothing: every experiment as it is.
    #[default]
    Defaults,
    /// Of all that say which blocks and how many of them under way: `fill`, `stream`, `steady`, `mix`, `snia`. An experiment
    /// that has one of either takes the first.
    Points {
        /// Block sizes in bytes.
        blocks: Vec<u64>,
        /// Commands under way.
        depths: Vec<u32>,
        /// Rates that drives are to hold: of `fill` alone.
        rates: Vec<Rate>,
    },
    /// Of `link`.
    Link {
        /// Measure on other links than the drives' own.
        sweep: Option<SweepOptions>,
    },
    /// Of `neighbours`.
    Neighbours(NeighboursOptions),
    /// Of `viewers`.
    Viewers(ViewersOptions),
    /// Of `apps`.
    Apps(AppsOptions),
}

/// Which links are swept.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SweepOptions {
    /// PCIe generations, 1 to 6.
    pub generations: Vec<u8>,
    /// Numbers of lanes, 1 to 16.
    pub lanes: Vec<u8>,
    /// Random commands under way.
    pub depths: Vec<u32>,
}

/// Options of `neighbours`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct NeighboursOptions {
    /// Bytes of each read.
    pub read_block: Option<u64>,
    /// Reads under way.
    pub depths: Vec<u32>,
    /// Bytes of each write.
    pub write_block: Option<u64>,
    /// Writes under way.
    pub write_depth: Option<u32>,
    /// What each writer writes.
    pub rate: Option<Rate>,
    /// How the drives are overwritten before.
    pub overwrite: Option<Overwriting>,
    /// The percentile that has to be known.
    pub percentile: Option<f64>,
    /// How long a point may take until it is.
    pub longest: Option<Duration>,
    /// Read in deterministic windows.
    pub deterministic: bool,
}

/// Options of `viewers`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ViewersOptions {
    /// What each viewer reads.
    pub rate: Option<Rate>,
    /// Bytes of each read.
    pub block: Option<u64>,
    /// What is written beside viewers.
    pub ingest: Option<Ingest>,
}

/// Options of `apps`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct AppsOptions {
    /// Which applications.
    pub applications: Vec<Application>,
    /// What they ask.
    pub asks: Option<AppsAsk>,
    /// What every rate is multiplied by.
    pub load: Option<f64>,
}

/// What applications ask.
#[derive(Clone, Debug, PartialEq)]
pub enum AppsAsk {
    /// Shares of what the drives do alone.
    Shares,
    /// Absolute figures.
    Demands(Demands),
}

/// What options are given beside: what holds for every experiment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Beside {
    /// Nothing may be written.
    pub read_only: bool,
    /// There is a budget of time.
    pub budget: bool,
    /// Time for each point.
    pub point: Option<Duration>,
}

/// Why options can't be given together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OptionsError {
    /// It says how something is written, where nothing may be.
    NothingIsWritten {
        /// The option.
        option: &'static str,
    },
    /// Points are drawn out for a percentile and shortened for a budget.
    PercentileInBudget,
    /// Points are drawn out for a percentile alone.
    LongestWithoutPercentile,
    /// A point that is drawn out is shorter than one that isn't.
    LongestBelowPoint {
        /// The longest that is allowed.
        longest: Duration,
        /// What every point takes.
        point: Duration,
    },
}

impl fmt::Display for OptionsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NothingIsWritten { option } => write!(
                f,
                "{option} says how something is written, and --read-only leaves out all that writes: leave out one of them"
            ),
            Self::PercentileInBudget => f.write_str(
                "--percentile draws points out and --time shortens them: leave out --time, and limit each point by --longest",
            ),
            Self::LongestWithoutPercentile => f.write_str(
                "--longest limits points that are drawn out until a percentile is known: add --percentile, or set --point",
            ),
            Self::LongestBelowPoint { longest, point } => write!(
                f,
                "every point takes the {point} of --point, more than --longest {longest}: give a shorter --point or a greater --longest"
            ),
        }
    }
}

impl std::error::Error for OptionsError {}

impl Options {
    /// Whether they can be given together, and beside those of every experiment.
    ///
    /// # Errors
    /// [`OptionsError`], with what would do.
    pub fn check(&self, beside: Beside) -> Result<(), OptionsError> {
        let writing: &[(bool, &'static str)] = match self {
            Self::Neighbours(options) => &[
                (options.overwrite.is_some(), "--overwrite"),
                (options.rate.is_some(), "--rate"),
                (options.write_block.is_some(), "--write-block"),
                (options.write_depth.is_some(), "--write-depth"),
            ],
            Self::Viewers(options) => &[(options.ingest.is_some(), "--ingest")],
            _ => &[],
        };
        if let Some((_, option)) = writing.iter().find(|(given, _)| *given && beside.read_only) {
            return Err(OptionsError::NothingIsWritten { option });
        }
        let Self::Neighbours(options) = self else { return Ok(()) };
        match (options.percentile, options.longest, beside.point) {
            (Some(_), _, _) if beside.budget => Err(OptionsError::PercentileInBudget),
            (None, Some(_), _) => Err(OptionsError::LongestWithoutPercentile),
            (_, Some(longest), Some(point)) if longest < point => {
                Err(OptionsError::LongestBelowPoint { longest, point })
            }
            _ => Ok(()),
        }
    }

    /// Puts them into an experiment. One that they are not of stays as it is.
    pub fn set(&self, experiment: &mut Experiment) {
        match (self, experiment) {
            (Self::Link { sweep: Some(sweep) }, Experiment::Link(link)) => {
                **link = Link::swept(sweep.sweep());
            }
            (Self::Neighbours(options), Experiment::Neighbours(neighbours)) => {
                options.set(neighbours);
            }
            (Self::Viewers(options), Experiment::Viewers(viewers)) => options.set(viewers),
            (Self::Apps(options), Experiment::Apps(apps)) => options.set(apps),
            (Self::Points { blocks, depths, rates }, experiment) => {
                set_points(experiment, blocks, depths, rates);
            }
            _ => {}
        }
    }
}

fn set_points(experiment: &mut Experiment, blocks: &[u64], depths: &[u32], rates: &[Rate]) {
    let (block, depth) = (blocks.first().copied(), depths.first().copied());
    match experiment {
        Experiment::Fill(fill) => {
            put(&mut fill.block_bytes, block);
            put(&mut fill.depth, depth);
            fill.rates = rates.to_vec();
            fill.rates.sort_by(|a, b| a.0.total_cmp(&b.0));
            fill.rates.dedup();
        }
        Experiment::Stream(stream) => {
            put_all(&mut stream.blocks, blocks);
            put_all(&mut stream.depths, depths);
        }
        Experiment::Steady(steady) => put(&mut steady.block_bytes, block),
        Experiment::Mix(mix) => {
            put_all(&mut mix.blocks, blocks);
            put(&mut mix.depth, depth);
        }
        Experiment::Snia(snia) => put(&mut snia.depth, depth),
        Experiment::Link(_)
        | Experiment::Neighbours(_)
        | Experiment::Viewers(_)
        | Experiment::Apps(_)
        | Experiment::Diskmark(_) => {}
    }
}

impl AppsOptions {
    fn set(&self, apps: &mut Apps) {
        put_all(&mut apps.applications, &self.applications);
        put(&mut apps.load, self.load);
        match &self.asks {
            Some(AppsAsk::Shares) => apps.demands = None,
            Some(AppsAsk::Demands(demands)) => apps.demands = Some(demands.clone()),
            None => {}
        }
    }
}

impl SweepOptions {
    fn sweep(&self) -> Sweep {
        let mut sweep = Sweep::default();
        put_all(&mut sweep.generations, &self.generations);
        put_all(&mut sweep.lanes, &self.lanes);
        put_all(&mut sweep.depths, &self.depths);
        sweep
    }
}

impl NeighboursOptions {
    fn set(&self, neighbours: &mut Neighbours) {
        put(&mut neighbours.read_block_bytes, self.read_block);
        put_all(&mut neighbours.depths, &self.depths);
        put(&mut neighbours.write_block_bytes, self.write_block);
        put(&mut neighbours.write_depth, self.write_depth);
        neighbours.write_rate = self.rate.or(neighbours.write_rate);
        neighbours.overwrite = self.overwrite.or(neighbours.overwrite);
        neighbours.percentile = self.percentile.or(neighbours.percentile);
        neighbours.longest = self.longest.or(neighbours.longest);
        neighbours.deterministic |= self.deterministic;
    }
}

impl ViewersOptions {
    fn set(&self, viewers: &mut Viewers) {
        put(&mut viewers.rate, self.rate);
        put(&mut viewers.block_bytes, self.block);
        viewers.ingest = self.ingest.or(viewers.ingest);
    }
}

/// Replaces what an experiment has if something was given.
fn put<T>(own: &mut T, given: Option<T>) {
    if let Some(given) = given {
        *own = given;
    }
}

/// The same of a list, whose values are each taken once, in rising order.
fn put_all<T: Copy + Ord>(own: &mut Vec<T>, given: &[T]) {
    if !given.is_empty() {
        *own = given.to_vec();
        own.sort_unstable();
        own.dedup();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(name: &str, options: &Options) -> Experiment {
        let mut experiment = Experiment::named(name).unwrap();
        options.set(&mut experiment);
        experiment
    }

    #[test]
    fn blocks_and_depths_reach_every_experiment_that_has_them() {
        let rates = [3e8, 1e8, 3e8].map(Rate).to_vec();
        let options =
            Options::Points { blocks: vec![8192, 4096, 8192], depths: vec![16, 2], rates };
        let Experiment::Fill(fill) = set("fill", &options) else { unreachable!() };
        assert_eq!((fill.block_bytes, fill.depth), (8192, 16));
        assert_eq!(fill.rates, [1e8, 3e8].map(Rate));
        let Experiment::Stream(stream) = set("stream", &options) else { unreachable!() };
        assert_eq!((stream.blocks, stream.depths), (vec![4096, 8192], vec![2, 16]));
        let Experiment::Mix(mix) = set("mix", &options) else { unreachable!() };
        assert_eq!((mix.blocks, mix.depth), (vec![4096, 8192], 16));
        let Experiment::Steady(steady) = set("steady", &options) else { unreachable!() };
        assert_eq!(steady.block_bytes, 8192);
        let Experiment::Snia(snia) = set("snia", &options) else { unreachable!() };
        assert_eq!(snia.depth, 16);
    }

    #[test]
    fn options_that_contradict_each_other_are_refused_with_what_would_do() {
        let of = |options: &NeighboursOptions, beside| {
            Options::Neighbours(options.clone()).check(beside).unwrap_err().to_string()
        };
        let free = Beside::default();
        let longest = Some(Duration::from_secs(1));
        let alone = NeighboursOptions { longest, ..NeighboursOptions::default() };
        assert!(of(&alone, free).contains("add --percentile"));
        let both = NeighboursOptions { percentile: Some(99.9), ..alone };
        assert_eq!(Options::Neighbours(both.clone()).check(free), Ok(()));
        assert!(of(&both, Beside { budget: true, ..free }).contains("leave out --time"));
        let point = Some(Duration::from_secs(2));
        assert!(of(&both, Beside { point, ..free }).contains("a shorter --point"));
        let rate = NeighboursOptions { rate: Some(Rate(1e6)), ..NeighboursOptions::default() };
        assert_eq!(Options::Neighbours(rate.clone()).check(free), Ok(()));
        assert!(of(&rate, Beside { read_only: true, ..free }).contains("--rate says how"));
        let ingest = Some(Ingest::Share(0.5));
        let viewers = Options::Viewers(ViewersOptions { ingest, ..ViewersOptions::default() });
        assert_eq!(viewers.check(free), Ok(()));
        assert!(viewers.check(Beside { read_only: true, ..free }).is_err());
    }

    #[test]
    fn what_is_not_given_stays_as_the_experiment_has_it() {
        let nothing = [
            Options::Defaults,
            Options::Points { blocks: Vec::new(), depths: Vec::new(), rates: Vec::new() },
            Options::Link { sweep: None },
            Options::Neighbours(NeighboursOptions::default()),
            Options::Viewers(ViewersOptions::default()),
            Options::Apps(AppsOptions::default()),
        ];
        for name in Experiment::NAMES {
            for options in &nothing {
                assert_eq!(Some(set(name, options)), Experiment::named(name), "{options:?}");
            }
        }
    }

    #[test]
    fn viewers_and_neighbours_take_rates_of_their_own() {
        let viewers = ViewersOptions { rate: Some(Rate(4e6)), ..ViewersOptions::default() };
        let Experiment::Viewers(viewers) = set("viewers", &Options::Viewers(viewers)) else {
            unreachable!()
        };
        assert_eq!(viewers.rate, Rate(4e6));
        let rate = Some(Rate(50e6));
        let neighbours =
            NeighboursOptions { rate, depths: vec![1], ..NeighboursOptions::default() };
        let neighbours = set("neighbours", &Options::Neighbours(neighbours));
        let Experiment::Neighbours(neighbours) = neighbours else { unreachable!() };
        assert_eq!((neighbours.write_rate, neighbours.depths), (rate, vec![1]));
    }
}
