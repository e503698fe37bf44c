//! The options of `plan`, defined once. What they say of a requirement is text, as in its file: one place checks both.

use std::path::PathBuf;

use clap::{ArgGroup, Args, ValueEnum};
use plan::Draft;
use plan::requirement::DutyText;

use crate::arguments::OUTPUT;
use crate::cooling::CoolingArguments;

// Headings in the help.
const DEMAND: &str = "Requirement";
const DRIVES: &str = "Drives";
const HOST: &str = "Host";

/// `plan`.
#[derive(Debug, Args)]
#[command(group = ArgGroup::new("counted").args(["wire", "payload"]))]
pub struct PlanArguments {
    /// Requirement as TOML; --print toml writes one. Options take precedence over it.
    #[arg(value_name = "REQUIREMENT.toml")]
    pub requirement: Option<PathBuf>,
    /// Peak rate to record: 100Gb/s or 12.5GB/s.
    #[arg(long, value_name = "RATE", help_heading = DEMAND)]
    pub rate: Option<String>,
    /// The rate counts everything on the link: preamble, frame, check sequence, gap [default for Gb/s of frames].
    #[arg(long, help_heading = DEMAND, hide_short_help = true)]
    pub wire: bool,
    /// The rate counts what is recorded: frames without check sequence, or raw blocks [default otherwise].
    #[arg(long, help_heading = DEMAND, hide_short_help = true)]
    pub payload: bool,
    /// Ethernet frames with check sequence: 1518, imix, or 64:7,594:4,1518:1 [default: 1518].
    #[arg(long, value_name = "BYTES|MIX", help_heading = DEMAND)]
    pub frame: Option<String>,
    /// Record blocks of this size from a sensor instead of packets.
    #[arg(long, value_name = "SIZE", help_heading = DEMAND)]
    pub raw: Option<String>,
    /// Keep only this many bytes of each packet, as `record --slice` does [default: all].
    #[arg(long, value_name = "BYTES", help_heading = DEMAND, hide_short_help = true)]
    pub slice: Option<u32>,
    /// Time that a ring must always hold [default: none, only the rate counts].
    #[arg(long, value_name = "TIME", help_heading = DEMAND)]
    pub keep: Option<String>,
    /// Length of recordings that stop when done, on drives trimmed before each.
    #[arg(long, value_name = "TIME", help_heading = DEMAND)]
    pub mission: Option<String>,
    /// Missions a day, for the drives' life; with --mission [default: 1].
    #[arg(long, value_name = "N", help_heading = DEMAND, hide_short_help = true)]
    pub missions_a_day: Option<f64>,
    /// Share of the day that the rate lasts: 30%, or shares from 0 to 1 for 24 hours with commas [default: all].
    #[arg(long, value_name = "SHARE|24 SHARES", help_heading = DEMAND, hide_short_help = true)]
    pub duty: Option<DutyText>,
    /// Years that the drives must last [default: no limit].
    #[arg(long, value_name = "YEARS", help_heading = DEMAND)]
    pub life: Option<f64>,
    /// Percent to add to the rate, for dips and ageing [default: 0].
    #[arg(long, value_name = "PERCENT", value_parser = percent, help_heading = DEMAND)]
    pub margin: Option<f64>,
    /// Readers during the recording: 2x500MB/s of long reads, or 2x50MB/s,4KiB of random reads [default: none].
    #[arg(long, value_name = "NxRATE[,SIZE]", help_heading = DEMAND, hide_short_help = true)]
    pub readers: Option<String>,
    /// Drives to choose from: names of the library, or files (with a / or ending in .toml) [default: the library].
    #[arg(long = "drive", value_name = "NAME|PATH", value_delimiter = ',', num_args = 1.., help_heading = DRIVES)]
    pub drives: Vec<String>,
    /// Size of a drive outside the library: 15.36TB. Needs --drive-rate.
    #[arg(long, value_name = "SIZE", help_heading = DRIVES)]
    pub drive_size: Option<String>,
    /// Write rate that this drive sustains while it is overwritten, not its peak: 5GB/s.
    #[arg(long, value_name = "RATE", help_heading = DRIVES)]
    pub drive_rate: Option<String>,
    /// Drive writes a day that its datasheet allows [default: unknown, and so is its life].
    #[arg(long, value_name = "N", help_heading = DRIVES)]
    pub dwpd: Option<f64>,
    /// Years that --dwpd applies to, from the datasheet [default: 5].
    #[arg(long, value_name = "YEARS", help_heading = DRIVES, hide_short_help = true)]
    pub warranty: Option<f64>,
    /// Price of a drive, once for each. If all drives have one, the cheapest array is listed first.
    #[arg(long = "price", value_name = "NAME=AMOUNT", value_parser = price, help_heading = DRIVES, hide_short_help = true)]
    pub prices: Vec<(String, f64)>,
    /// Drives that may fail without losing data: 0, 1 or 2 [default: 0].
    #[arg(long, value_name = "N", help_heading = DRIVES)]
    pub parity: Option<u32>,
    /// Spare drives [default: 0].
    #[arg(long, value_name = "N", help_heading = DRIVES, hide_short_help = true)]
    pub spare: Option<u32>,
    /// NVM Sets: shared by readers and the recorder, or separate, so that they alternate [default: shared].
    #[arg(long, value_name = "shared|separate", help_heading = DRIVES, hide_short_help = true)]
    pub sets: Option<String>,
    /// Time until recorder and readers change sets. Shorter turns give readers newer data [default: 10m].
    #[arg(long, value_name = "TIME", help_heading = DRIVES, hide_short_help = true)]
    pub turn: Option<String>,
    /// How chunks are spread: adaptive, or stripe, which counts slowest moments [default: adaptive with --keep or
    /// --mission, else stripe].
    #[arg(long, value_name = "PLACEMENT", help_heading = DRIVES, hide_short_help = true)]
    pub placement: Option<String>,
    /// Memory for chunk buffers [default: as much as needed].
    #[arg(long, value_name = "SIZE", help_heading = HOST)]
    pub memory: Option<String>,
    /// PCIe lanes of the host for drives and network interfaces together [default: no limit].
    #[arg(long, value_name = "N", help_heading = HOST, hide_short_help = true)]
    pub lanes: Option<u32>,
    /// PCIe generation of the host's slots, 1 to 6 [default: that of each drive].
    #[arg(long, value_name = "N", help_heading = HOST, hide_short_help = true)]
    pub pcie_generation: Option<u8>,
    /// Network interfaces, which take lanes first: generation, lanes and number, as 4x16*2 [default: none].
    #[arg(long, value_name = "GENxLANES[*N]", help_heading = HOST, hide_short_help = true)]
    pub nic: Option<String>,
    /// Bandwidth of a link that all drives share, such as a chipset's; RATE,RATE if the directions differ [default:
    /// none].
    #[arg(long, value_name = "RATE[,RATE]", help_heading = HOST, hide_short_help = true)]
    pub uplink: Option<String>,
    /// Bandwidth of the host's memory, reads and writes together [default: no limit].
    #[arg(long, value_name = "RATE", help_heading = HOST, hide_short_help = true)]
    pub memory_bandwidth: Option<String>,
    /// Print every line of the arithmetic.
    #[arg(long, help_heading = OUTPUT)]
    pub explain: bool,
    /// Record each design on simulated drives, with as many drives as planned and with one less.
    ///
    /// Proofs take at most a minute together. Designs that were not proved by then are listed; --long proves all of
    /// them.
    #[arg(long, help_heading = OUTPUT)]
    pub prove: bool,
    /// Prove every design for its whole time, which may take long.
    #[arg(long, requires = "prove", help_heading = OUTPUT, hide_short_help = true)]
    pub long: bool,
    /// Where the simulated drives of proofs are put.
    #[command(flatten)]
    pub place: CoolingArguments,
    /// Also write a report with pictures to this file.
    #[arg(long, value_name = "FILE", help_heading = OUTPUT)]
    pub html: Option<PathBuf>,
    /// Replace the report if it exists.
    #[arg(long, short = 'y', requires = "html", help_heading = OUTPUT, hide_short_help = true)]
    pub overwrite: bool,
    /// Print the requirement as a file, and plan nothing.
    #[arg(long, value_enum, value_name = "FORMAT", conflicts_with_all = ["json", "explain", "prove", "html"], help_heading = OUTPUT, hide_short_help = true)]
    pub print: Option<Printed>,
    /// Print JSON.
    #[arg(long, help_heading = OUTPUT)]
    pub json: bool,
}

/// What a requirement is printed as.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Printed {
    /// The file that `plan` reads.
    Toml,
}

impl PlanArguments {
    /// What the options say of a requirement.
    pub fn draft(&self) -> Draft {
        let counts = match (self.wire, self.payload) {
            (true, _) => Some("wire".to_owned()),
            (_, true) => Some("payload".to_owned()),
            _ => None,
        };
        Draft {
            rate: self.rate.clone(),
            counts,
            frame: self.frame.clone(),
            raw: self.raw.clone(),
            slice: self.slice,
            keep: self.keep.clone(),
            mission: self.mission.clone(),
            missions_a_day: self.missions_a_day,
            duty: self.duty.clone(),
            parity: self.parity,
            spare: self.spare,
            life_years: self.life,
            margin_percent: self.margin,
            readers: self.readers.clone(),
            sets: self.sets.clone(),
            turn: self.turn.clone(),
            lanes: self.lanes,
            pcie_generation: self.pcie_generation,
            uplink: self.uplink.clone(),
            memory: self.memory.clone(),
            memory_bandwidth: self.memory_bandwidth.clone(),
            nic: self.nic.clone(),
            placement: self.placement.clone(),
            drives: self.drives.clone(),
            drive_size: self.drive_size.clone(),
            drive_rate: self.drive_rate.clone(),
            dwpd: self.dwpd,
            warranty_years: self.warranty,
            prices: self.prices.iter().cloned().collect(),
        }
    }
}

fn percent(text: &str) -> Result<f64, String> {
    let digits = text.trim().trim_end_matches('%').trim();
    digits.parse().map_err(|_| format!("'{text}' is no number of percent: give 10 or 10%"))
}

fn price(text: &str) -> Result<(String, f64), String> {
    let wrong =
        || format!("'{text}' is no price: give NAME=AMOUNT, as in intel-d7-p5510-3.84tb=700");
    let (name, amount) = text.rsplit_once('=').ok_or_else(wrong)?;
    Ok((name.trim().to_owned(), amount.trim().parse().map_err(|_| wrong())?))
}
