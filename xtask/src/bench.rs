//! `cargo xtask bench`: each benchmark beside its reference, in turn, in one run. A ratio from one run is
//! what is compared with a goal; absolute figures are this machine's. Nothing here fails for being slow.

mod comparison;
mod extract;
mod extract_whole;
mod folder;
mod generate;
mod load;
mod machine;
mod markdown;
mod mqsim;
mod pack;
mod parity;
mod program;
mod python;
mod record;
mod record_cut;
mod record_index;
mod rounds;
mod search;
mod search_large;
mod search_live;
mod serve;
mod simulate;
mod veth;

use std::fs;
use std::path::PathBuf;

use anyhow::{Context, Result, bail};
use base::ByteSize;
use serde_json::json;

use comparison::Comparison;

/// `bench`.
#[derive(Debug, clap::Args)]
pub struct Arguments {
    /// Which: pack, parity, record, record-index, record-cut, extract, extract-whole, search, search-large, search-live, serve, python, generate, load, simulate-reads, simulate, mqsim [default: all].
    names: Vec<String>,
    /// Where member files and captures may be made; needs up to 40 GB. They are deleted afterwards.
    #[arg(long, default_value = "target/bench")]
    dir: PathBuf,
    /// Rounds of each measurement.
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..))]
    rounds: u32,
    /// The longtake program to measure [default: built from this workspace].
    #[arg(long, value_name = "FILE")]
    program: Option<PathBuf>,
    /// fio's t/io_uring, built from fio's source: the benchmark `load` compares processor time with it.
    #[arg(long, value_name = "FILE")]
    t_io_uring: Option<PathBuf>,
    /// Folder into which Debian's packages stenographer, libaio1, libleveldb1d and libsnappy1v5 were unpacked (dpkg -x): the benchmark
    /// `search` compares with them.
    #[arg(long, value_name = "DIR")]
    stenographer: Option<PathBuf>,
    /// Folder with MQSim's source: the benchmark `mqsim` builds a copy and compares with it.
    #[arg(long, value_name = "DIR")]
    mqsim: Option<PathBuf>,
    /// Bytes of packets that `search` searches. It needs about four times as much space.
    #[arg(long, value_name = "SIZE", default_value = "10GB")]
    search_bytes: ByteSize,
    /// Print JSON.
    #[arg(long)]
    json: bool,
    /// Also write the results to this file as Markdown.
    #[arg(long, value_name = "FILE")]
    markdown: Option<PathBuf>,
}

/// What every benchmark is told.
#[derive(Debug)]
pub struct Setting {
    /// An existing directory for its files.
    pub dir: PathBuf,
    /// How often to measure.
    pub rounds: u32,
    /// The longtake program, if not the workspace's.
    pub program: Option<PathBuf>,
    /// fio's t/io_uring, if there is one.
    pub t_io_uring: Option<PathBuf>,
    /// Where Stenographer is, if it is anywhere.
    pub stenographer: Option<PathBuf>,
    /// Where MQSim's source is, if it is anywhere.
    pub mqsim: Option<PathBuf>,
    /// Bytes of packets to search.
    pub search_bytes: ByteSize,
}

impl Setting {
    /// The longtake program to measure.
    ///
    /// # Errors
    /// If it can't be built.
    pub fn longtake(&self) -> Result<PathBuf> {
        self.program.clone().map_or_else(program::longtake, Ok)
    }
}

type Benchmark = fn(&Setting) -> Result<Vec<Comparison>>;

const BENCHMARKS: [(&str, Benchmark); 17] = [
    ("pack", pack::run),
    ("parity", parity::run),
    ("record", record::run),
    ("record-index", record_index::run),
    ("record-cut", record_cut::run),
    ("extract", extract::run),
    ("extract-whole", extract_whole::run),
    ("search", search::run),
    ("search-large", search_large::run),
    ("search-live", search_live::run),
    ("serve", serve::run),
    ("python", python::run),
    ("generate", generate::run),
    ("load", load::run),
    ("simulate-reads", simulate::run_reads),
    ("simulate", simulate::run),
    ("mqsim", mqsim::run),
];

/// Runs the benchmarks and prints what came of them.
///
/// # Errors
/// If one can't be run at all.
pub fn run(arguments: &Arguments) -> Result<()> {
    for name in &arguments.names {
        if !BENCHMARKS.iter().any(|(known, _)| known == name) {
            let known = BENCHMARKS.map(|(known, _)| known).join(", ");
            bail!("no benchmark '{name}': there are {known}");
        }
    }
    program::go_on_released()?;
    fs::create_dir_all(&arguments.dir)
        .with_context(|| format!("making {}", arguments.dir.display()))?;
    let setting = Setting {
        dir: arguments.dir.clone(),
        rounds: arguments.rounds,
        program: arguments.program.clone(),
        t_io_uring: arguments.t_io_uring.clone(),
        stenographer: arguments.stenographer.clone(),
        mqsim: arguments.mqsim.clone(),
        search_bytes: arguments.search_bytes,
    };
    let machine = machine::describe(&setting.dir);
    let mut found = Vec::new();
    for (name, benchmark) in BENCHMARKS {
        if !arguments.names.is_empty() && !arguments.names.iter().any(|wanted| wanted == name) {
            continue;
        }
        eprintln!("running {name}");
        found.extend(benchmark(&setting).with_context(|| format!("benchmark {name}"))?);
    }
    if arguments.json {
        let comparisons: Vec<_> = found.iter().map(Comparison::json).collect();
        let machine: serde_json::Map<_, _> =
            machine.iter().map(|(name, value)| ((*name).to_owned(), json!(value))).collect();
        println!("{:#}", json!({"machine": machine, "comparisons": comparisons}));
    } else {
        for (name, value) in &machine {
            println!("{name}: {value}");
        }
        for comparison in &found {
            let [what, ours, reference, ratio, goal] = comparison.cells();
            println!("\n{}: {what}", comparison.benchmark);
            println!("  ours       {ours}");
            println!("  reference  {reference}");
            println!("  ratio      {ratio}");
            println!("  goal       {goal}");
        }
    }
    if let Some(path) = &arguments.markdown {
        let text = markdown::page(&machine, &found);
        fs::write(path, text).with_context(|| format!("writing {}", path.display()))?;
    }
    Ok(())
}
