//! The options of `plan`, defined once. What they say of a requirement is text, as in its file: one place checks both.

use std::path::PathBuf;

use clap::{ArgGroup, Args, ValueEnum};
use plan::Draft;
use plan::requirement::DutyText;

/// `plan`.
#[derive(Debug, Args)]
#[command(group = ArgGroup::new("counted").args(["wire", "payload"]))]
pub struct PlanArguments {
    /// A requirement as TOML (--print toml writes one); options go before what it says.
    #[arg(value_name = "REQUIREMENT.toml")]
    pub requirement: Option<PathBuf>,
    /// The rate at its fullest: 100Gb/s, 12.5GB/s.
    #[arg(long, value_name = "RATE")]
    pub rate: Option<String>,
    /// The rate counts all that is on the link: preamble, frame, check sequence, gap [default for Gb/s of frames].
    #[arg(long)]
    pub wire: bool,
    /// The rate counts what is kept of packets: frames without check sequence, or raw blocks [default otherwise].
    #[arg(long)]
    pub payload: bool,
    /// Lengths of Ethernet frames with their check sequence: 1518, imix, or a mix by number, 64:7,594:4,1518:1 [default: 1518].
    #[arg(long, value_name = "BYTES|MIX")]
    pub frame: Option<String>,
    /// No packets: blocks of a sensor of this size, stored as they are.
    #[arg(long, value_name = "SIZE")]
    pub raw: Option<String>,
    /// A ring that always holds the last so long [default: nothing has to be held, only the rate counts].
    #[arg(long, value_name = "TIME")]
    pub keep: Option<String>,
    /// Recordings of this length that stop when they are done.
    #[arg(long, value_name = "TIME")]
    pub mission: Option<String>,
    /// How many missions there are a day, for the drives' life; with --mission [default: 1].
    #[arg(long, value_name = "N")]
    pub missions_a_day: Option<f64>,
    /// How much of the day the rate lasts: 30%, or a share from 0 to 1 for each of 24 hours, with commas [default: all].
    #[arg(long, value_name = "SHARE|24 SHARES")]
    pub duty: Option<DutyText>,
    /// Drives' worth of parity: 0, 1 or 2 drives may fail [default: 0].
    #[arg(long, value_name = "N")]
    pub parity: Option<u32>,
    /// Drives that wait for others to fail [default: 0].
    #[arg(long, value_name = "N")]
    pub spare: Option<u32>,
    /// Years that the drives are to last [default: their life limits nothing].
    #[arg(long, value_name = "YEARS")]
    pub life: Option<f64>,
    /// Plan for a rate higher by so many percent [default: 0].
    #[arg(long, value_name = "PERCENT", value_parser = percent)]
    pub margin: Option<f64>,
    /// Who reads while it is recorded: 2x500MB/s of long reads; 2x50MB/s,4KiB of reads at random places.
    #[arg(long, value_name = "NxRATE[,SIZE]")]
    pub readers: Option<String>,
    /// NVM Sets of drives that have them: shared by readers and the recorder, or separate, so that they change places [default: shared].
    #[arg(long, value_name = "shared|separate")]
    pub sets: Option<String>,
    /// How long it is recorded to the same part of separate sets [default: 10m].
    #[arg(long, value_name = "TIME")]
    pub turn: Option<String>,
    /// The host's PCIe lanes for drives and network interfaces together.
    #[arg(long, value_name = "N")]
    pub lanes: Option<u32>,
    /// The generation of its slots, 1 to 6.
    #[arg(long, value_name = "N")]
    pub pcie_generation: Option<u8>,
    /// A link that all drives share, such as a chipset's, and its rate to the drives if that is another.
    #[arg(long, value_name = "RATE[,RATE]")]
    pub uplink: Option<String>,
    /// Memory for chunk buffers [default: as much as it takes].
    #[arg(long, value_name = "SIZE")]
    pub memory: Option<String>,
    /// What the host's memory moves, reading and writing together.
    #[arg(long, value_name = "RATE")]
    pub memory_bandwidth: Option<String>,
    /// Network interfaces: PCIe generation, lanes, and how many: 4x16*2.
    #[arg(long, value_name = "GENxLANES[*N]")]
    pub nic: Option<String>,
    /// How chunks are spread over the drives: adaptive, or stripe, which counts their slowest moments [default: adaptive with --keep or
    /// --mission, else stripe].
    #[arg(long, value_name = "PLACEMENT")]
    pub placement: Option<String>,
    /// Drives to choose from: names of the library, or files (with a / or ending in .toml) [default: the library's].
    #[arg(long = "drive", value_name = "NAME|PATH", value_delimiter = ',', num_args = 1..)]
    pub drives: Vec<String>,
    /// Size of a drive that is not in the library: 15.36TB. It is planned beside those of --drive; needs --drive-rate.
    #[arg(long, value_name = "SIZE")]
    pub drive_size: Option<String>,
    /// What that drive writes for as long as anybody wants, also when it is overwritten (not its peak): 5GB/s.
    #[arg(long, value_name = "RATE")]
    pub drive_rate: Option<String>,
    /// How many times a day all of that drive may be written, as its datasheet says [default: not known, so its life isn't either].
    #[arg(long, value_name = "N")]
    pub dwpd: Option<f64>,
    /// Years of warranty that --dwpd counts over; change it if the datasheet's are others [default: 5].
    #[arg(long, value_name = "YEARS")]
    pub warranty: Option<f64>,
    /// What a drive costs; the cheapest array comes first if all have a price. Once for each.
    #[arg(long = "price", value_name = "NAME=AMOUNT", value_parser = price)]
    pub prices: Vec<(String, f64)>,
    /// Print every line of the arithmetic.
    #[arg(long)]
    pub explain: bool,
    /// Record each design on simulated drives, in virtual time: on as many as planned, and on one less. Takes at most a minute and says
    /// what was not proved by then.
    #[arg(long)]
    pub prove: bool,
    /// Prove every design for its whole time, however long that takes.
    #[arg(long, requires = "prove")]
    pub long: bool,
    /// Write a report with pictures to this file.
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,
    /// Overwrite the report if it is there.
    #[arg(long, short = 'y', requires = "html")]
    pub overwrite: bool,
    /// Print the requirement as a file, and plan nothing.
    #[arg(long, value_enum, value_name = "FORMAT", conflicts_with_all = ["json", "explain", "prove", "html"])]
    pub print: Option<Printed>,
    /// Print JSON.
    #[arg(long)]
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
