//! The applications as workloads: what each stands for, what its streams ask, and when they are content.

use std::fmt;

use base::{Duration, Geometry, Rate};
use load::quantity::{Pace, Size, Time};
use load::workload::{Arrival, Blocks, Pattern, Stream};
use serde::{Deserialize, Serialize};

use super::Ceilings;
use super::demands::{Demand, Demands};
use crate::experiment::Scope;
use crate::experiment::pace::kept;

/// What a viewer of a film in H.264 at 1080p reads, in bytes a second.
const VIEWER_RATE: f64 = 2.5e6;
const VIEWER_BLOCK_BYTES: u64 = 512 << 10;
const VIEWERS_MAX: f64 = 4_000.0;
/// Large objects: frames of uncompressed or mezzanine video.
const FRAME_BYTES: u64 = 8 << 20;
const LARGE_BYTES: u64 = 1 << 20;
/// Blocks that players of large files read ahead, and captures write behind.
const AHEAD: u64 = 4;
/// What random commands may take: longer, and people or other machines wait.
const PATIENCE: Duration = Duration::from_millis(10);
/// What somebody who jumps about in a film takes for at once.
const AT_ONCE: Duration = Duration::from_millis(200);
/// Streams that write have this part of the region, its end, to themselves.
const WRITE_PART: u64 = 4;

/// An application of drives that stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Application {
    /// The cache tier of a storage array.
    CacheTier,
    /// Many virtual machines on one drive.
    VirtualMachines,
    /// Analytical databases.
    Olap,
    /// A server of films.
    ContentDelivery,
    /// Post-production and on-air playout.
    PostProduction,
    /// Colour grading.
    ColourGrading,
}

/// When a stream is content.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Success {
    /// No answer may be late.
    NoneLate,
    /// This share of the answers may be late.
    LateAtMost {
        /// In percent.
        percent: f64,
    },
    /// It must get the rate it asks for.
    KeepsRate,
    /// It must get this rate at least.
    RateAtLeast {
        /// In bytes a second, on all drives together.
        bytes_per_s: f64,
    },
}

/// One stream of an application.
#[derive(Clone, Debug)]
pub(super) struct Part {
    pub stream: Stream,
    /// What it asks on all drives together, in bytes a second; None for as much as it gets.
    pub asked: Option<f64>,
    pub success: Success,
    /// A block is late after the time that so many of them last.
    pub ahead: Option<u64>,
    /// Where its figures come from, if they are absolute.
    pub source: Option<String>,
}

impl Part {
    fn new(stream: Stream, asked: Option<f64>, success: Success) -> Self {
        Self { stream, asked, success, ahead: None, source: None }
    }
}

impl Application {
    /// All of them.
    pub const ALL: [Self; 6] = [
        Self::CacheTier,
        Self::VirtualMachines,
        Self::Olap,
        Self::ContentDelivery,
        Self::PostProduction,
        Self::ColourGrading,
    ];

    /// By its name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|application| application.name() == name)
    }

    /// Its name among steps and figures.
    pub const fn name(self) -> &'static str {
        match self {
            Self::CacheTier => "cache-tier",
            Self::VirtualMachines => "virtual-machines",
            Self::Olap => "olap",
            Self::ContentDelivery => "content-delivery",
            Self::PostProduction => "post-production",
            Self::ColourGrading => "colour-grading",
        }
    }

    /// What it stands for.
    pub const fn stands_for(self) -> &'static str {
        match self {
            Self::CacheTier => {
                "hot blocks of a storage array, while backup, replication and a snapshot stream at the same time"
            }
            Self::VirtualMachines => {
                "the orderly streams of sixteen guests, which reach the drive as random commands of all sizes"
            }
            Self::Olap => {
                "eight tables scanned at once for queries, while a cube is built in one long write"
            }
            Self::ContentDelivery => {
                "many viewers of films, while new films are pulled in and cold ones make room"
            }
            Self::PostProduction => {
                "four programmes played out of large files without a dip, while a feed is captured"
            }
            Self::ColourGrading => {
                "a film played back and jumped about in frame by frame, while graded frames are written"
            }
        }
    }
}

impl fmt::Display for Application {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::CacheTier => "Cache tier",
            Self::VirtualMachines => "Virtual machines",
            Self::Olap => "OLAP",
            Self::ContentDelivery => "Content delivery",
            Self::PostProduction => "Post-production and playout",
            Self::ColourGrading => "Colour grading",
        })
    }
}

/// Makes an application's streams for a bank.
#[derive(Clone, Debug)]
pub(super) struct Maker {
    ceilings: Ceilings,
    load: f64,
    demands: Option<Demands>,
    drives: f64,
    /// Where reads end and writes begin, and how much is behind, in bytes.
    split: (u64, u64),
    /// The unit of offsets and lengths in bytes.
    unit: u64,
    longest: u64,
    trims: bool,
}

impl Maker {
    /// For these drives, which do at best what `ceilings` say; every rate is multiplied by `load`. Without `demands` rates are
    /// shares of the ceilings. None if the region has no room.
    pub fn new(
        scope: &Scope,
        drives: &[Geometry],
        ceilings: &Ceilings,
        (load, demands): (f64, Option<&Demands>),
    ) -> Option<Self> {
        let unit = drives.iter().map(|d| u64::from(d.block_bytes)).fold(4096, u64::max);
        let region = drives.iter().map(|drive| scope.bytes(drive, unit)).min()?;
        let transfer = drives.iter().map(|d| u64::from(d.transfer_max_bytes)).min()?;
        // The split lies on a large block's edge where it can, so that trims begin on their unit.
        let edge = if region / WRITE_PART >= LARGE_BYTES { LARGE_BYTES } else { unit };
        let behind = region / WRITE_PART / edge * edge;
        let read = (region - behind) / edge * edge;
        let trimming = |drive: &Geometry| {
            drive.trim_unit_bytes.is_some_and(|trim| edge.is_multiple_of(u64::from(trim)))
        };
        let longest = transfer.min(behind) / unit * unit;
        (longest > 0).then(|| Self {
            ceilings: ceilings.clone(),
            load,
            demands: demands.cloned(),
            drives: drives.len() as f64,
            split: (read, behind),
            unit,
            longest,
            trims: edge == LARGE_BYTES && drives.iter().all(trimming),
        })
    }

    /// Whether cold content can be given up by trimming.
    pub const fn trims(&self) -> bool {
        self.trims
    }

    /// The calibrations: names and streams.
    pub fn calibrations(&self) -> [(&'static str, Stream); 3] {
        let read = Stream { depth: 8, ..self.reading("read", LARGE_BYTES) };
        let write = Stream { depth: 8, ..self.writing("write", LARGE_BYTES) };
        let random = Stream {
            pattern: Pattern::Random,
            read: 70,
            write: 30,
            depth: 32,
            ..self.reading("random", 4096)
        };
        [("ceiling-read", read), ("ceiling-write", write), ("ceiling-random", random)]
    }

    /// The application's streams, with what is demanded of them.
    pub fn parts(&self, application: Application) -> Vec<Part> {
        let demand = |part: &Part| self.demands.as_ref()?.of(application, &part.stream.name);
        let parts = self.shares(application).into_iter();
        parts
            .map(|part| match demand(&part) {
                Some(demand) => self.demanded(part, demand),
                None => part,
            })
            .collect()
    }

    /// A stream that asks what is demanded, whatever the drives do alone.
    fn demanded(&self, part: Part, demand: &Demand) -> Part {
        let each = match demand.rate {
            Pace::Bytes(bytes) => bytes,
            Pace::Commands(commands) => commands * part.stream.block.mean(),
        };
        let total = each * f64::from(demand.streams) * self.load;
        let jobs = (f64::from(demand.streams) / self.drives).ceil();
        let stream = Stream { jobs: jobs as u32, ..part.stream };
        let (asked, rate, success) = match part.success {
            // As fast as it goes, and so fast at least.
            Success::RateAtLeast { .. } => {
                (None, stream.rate, Success::RateAtLeast { bytes_per_s: total })
            }
            other => (Some(total), Some(kept(total / self.drives / jobs)), other),
        };
        let source = Some(demand.source.clone());
        let part = Part { stream: Stream { rate, ..stream }, asked, success, source, ..part };
        match (demand.deadline, part.ahead) {
            (Some(_), _) => {
                Part { stream: Stream { deadline: demand.deadline, ..part.stream }, ..part }
            }
            (None, Some(blocks)) => self.in_time(blocks, part),
            (None, None) => part,
        }
    }

    /// The application's streams. Their shares of what the drives do alone add up to three quarters or less.
    fn shares(&self, application: Application) -> Vec<Part> {
        let Ceilings { read_bytes_per_s: read, write_bytes_per_s: write, random_iops: random } =
            self.ceilings;
        let late = |percent| Success::LateAtMost { percent };
        match application {
            Application::CacheTier => {
                let hot = Stream {
                    pattern: Pattern::Hot { space_percent: 20.0, access_percent: 80.0 },
                    read: 70,
                    write: 30,
                    ..self.impatient(self.reading("cache", 4096))
                };
                vec![
                    self.at(hot, 0.3 * random * self.round(4096) as f64, late(0.1)),
                    self.at(self.reading("backup", 512 << 10), 0.15 * read, Success::KeepsRate),
                    self.at(self.reading("replication", 64 << 10), 0.05 * read, Success::KeepsRate),
                    self.at(self.writing("snapshot", LARGE_BYTES), 0.1 * write, Success::KeepsRate),
                ]
            }
            Application::VirtualMachines => vec![self.virtual_machines()],
            Application::Olap => {
                let scans = Stream { jobs: 8, depth: 2, ..self.reading("scans", LARGE_BYTES) };
                let least = Success::RateAtLeast { bytes_per_s: 0.5 * read };
                vec![
                    Part::new(scans, None, least),
                    self.at(self.writing("cube", LARGE_BYTES), 0.2 * write, Success::KeepsRate),
                ]
            }
            Application::ContentDelivery => self.content_delivery(read, write),
            Application::PostProduction => {
                let playout = Stream { jobs: 4, ..self.reading("playout", FRAME_BYTES) };
                let capture = self.writing("capture", FRAME_BYTES);
                vec![
                    self.in_time(AHEAD, self.at(playout, 0.5 * read, Success::NoneLate)),
                    self.in_time(AHEAD, self.at(capture, 0.2 * write, Success::NoneLate)),
                ]
            }
            Application::ColourGrading => {
                let scrubbing = Stream {
                    pattern: Pattern::Random,
                    arrival: Arrival::Poisson,
                    deadline: Some(Time(AT_ONCE)),
                    ..self.reading("scrubbing", FRAME_BYTES)
                };
                let playback = self.reading("playback", FRAME_BYTES);
                vec![
                    self.in_time(AHEAD, self.at(playback, 0.35 * read, Success::NoneLate)),
                    self.at(scrubbing, 0.1 * read, late(1.0)),
                    self.at(self.writing("render", FRAME_BYTES), 0.15 * write, Success::KeepsRate),
                ]
            }
        }
    }

    fn virtual_machines(&self) -> Part {
        let Ceilings { read_bytes_per_s: read, write_bytes_per_s: write, random_iops: random } =
            self.ceilings;
        let sizes = [(4096, 60), (16 << 10, 20), (64 << 10, 20)];
        let blocks = sizes.map(|(bytes, weight)| (Size(self.round(bytes)), weight));
        let block = Blocks(blocks.to_vec());
        let mean = block.mean();
        let bandwidth = 1.0 / (0.65 / read + 0.35 / write);
        // A command takes its share of the commands and of the bandwidth that the drives have.
        let commands = 1.0 / (1.0 / random + mean / bandwidth);
        let guests = Stream {
            pattern: Pattern::Random,
            block,
            read: 65,
            write: 35,
            jobs: 16,
            ..self.impatient(self.reading("guests", 4096))
        };
        self.at(guests, 0.35 * commands * mean, Success::LateAtMost { percent: 1.0 })
    }

    fn content_delivery(&self, read: f64, write: f64) -> Vec<Part> {
        let asked = self.load * 0.5 * read;
        // Viewers are whole, so a slow drive has one that reads less.
        let viewers = (asked / VIEWER_RATE / self.drives).floor().clamp(1.0, VIEWERS_MAX);
        let carried = (viewers * self.drives * VIEWER_RATE).min(asked) / self.load;
        let viewers = Stream {
            jobs: viewers as u32,
            depth: 1,
            align: Some(Size(self.unit)),
            ..self.reading("viewers", VIEWER_BLOCK_BYTES)
        };
        let mut parts = vec![
            self.in_time(1, self.at(viewers, carried, Success::NoneLate)),
            self.at(self.writing("new", LARGE_BYTES), 0.2 * write, Success::KeepsRate),
        ];
        if self.trims {
            let cold = Stream {
                write: 0,
                trim: 1,
                pattern: Pattern::Random,
                block: Blocks::of(LARGE_BYTES),
                align: None,
                ..self.writing("cold", LARGE_BYTES)
            };
            parts.push(self.at(cold, 0.2 * write, Success::KeepsRate));
        }
        parts
    }

    /// A block size that all drives can do, near the one wanted.
    fn round(&self, bytes: u64) -> u64 {
        (bytes / self.unit * self.unit).clamp(self.unit, self.longest)
    }

    fn reading(&self, name: &str, block: u64) -> Stream {
        Stream {
            name: name.to_owned(),
            block: Blocks::of(self.round(block)),
            read: 1,
            size: Some(Size(self.split.0)),
            depth: 4,
            ..Stream::default()
        }
    }

    fn writing(&self, name: &str, block: u64) -> Stream {
        Stream {
            read: 0,
            write: 1,
            from: Some(Size(self.split.0)),
            size: Some(Size(self.split.1)),
            align: Some(Size(self.unit)),
            ..self.reading(name, block)
        }
    }

    /// Independent commands that somebody waits for.
    fn impatient(&self, stream: Stream) -> Stream {
        let deadline = Some(Time(PATIENCE));
        Stream { arrival: Arrival::Poisson, deadline, depth: 16, ..stream }
    }

    /// A stream that asks so many bytes a second of all drives together, before the load is applied.
    fn at(&self, stream: Stream, bytes_per_s: f64, success: Success) -> Part {
        let asked = (bytes_per_s * self.load).max(1.0);
        let rate = Some(kept(asked / self.drives / f64::from(stream.jobs)));
        Part::new(Stream { rate, ..stream }, Some(asked), success)
    }

    /// A block is late after the time that so many of them last.
    fn in_time(&self, blocks: u64, part: Part) -> Part {
        let Some(Pace::Bytes(rate)) = part.stream.rate else { return part };
        let deadline = Some(Time(Rate(rate).time_for(blocks * part.stream.block.longest())));
        Part { stream: Stream { deadline, ..part.stream }, ahead: Some(blocks), ..part }
    }
}
