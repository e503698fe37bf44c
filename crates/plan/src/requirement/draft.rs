//! A requirement as people write it: a few lines of TOML, or options laid over them.

use std::collections::BTreeMap;
use std::str::FromStr;

use base::{ByteSize, Duration, Rate};
use format::PAGE_BYTES;
use recorder::Placement;
use recorder::defaults::SETS_TURN;
use serde::{Deserialize, Serialize};

use super::{
    Counts, FRAME_BYTES_MAX, FRAME_BYTES_MIN, Frames, IMIX, Readers, Requirement, RequirementError,
    Sets, Term,
};
use crate::described::Described;
use crate::duty::Duty;
use crate::host::{Host, Nic, Uplink};

/// What may be said of a requirement; quantities are texts with their units. What isn't said has a default, if it can have one.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Draft {
    /// `100Gb/s`, `12.5GB/s`.
    pub rate: Option<String>,
    /// `wire` or `payload`; the default is wire for bits of frames, payload otherwise.
    pub counts: Option<String>,
    /// `1518`, `imix`, or lengths and numbers `64:7,594:4,1518:1`.
    pub frame: Option<String>,
    /// Bytes of a block: no packets, blocks of a sensor.
    pub raw: Option<String>,
    /// Bytes kept of each packet at most.
    pub slice: Option<u32>,
    /// A ring that keeps `8h`.
    pub keep: Option<String>,
    /// A recording of `2h` that stops.
    pub mission: Option<String>,
    /// How many missions a day.
    pub missions_a_day: Option<f64>,
    /// Share of the day, `30%`, or a share for each hour.
    pub duty: Option<DutyText>,
    /// Drives' worth of parity.
    pub parity: Option<u32>,
    /// Spare drives.
    pub spare: Option<u32>,
    /// Years that the drives are to last; their life limits nothing if it isn't said.
    pub life_years: Option<f64>,
    /// Margin on the rate in percent.
    pub margin_percent: Option<f64>,
    /// `2x500MB/s`, or `2x50MB/s,4KiB` of random reads.
    pub readers: Option<String>,
    /// `shared` or `separate`: which NVM Sets readers and the recorder use.
    pub sets: Option<String>,
    /// How long it is recorded to the same part of separate sets: `10m`.
    pub turn: Option<String>,
    /// PCIe lanes for drives and interfaces.
    pub lanes: Option<u32>,
    /// Generation of the slots.
    pub pcie_generation: Option<u8>,
    /// `7GB/s`, or `7GB/s,6GB/s` to the host and to the drives.
    pub uplink: Option<String>,
    /// Memory for chunk buffers.
    pub memory: Option<String>,
    /// What memory moves, reading and writing.
    pub memory_bandwidth: Option<String>,
    /// `4x16` or `4x16*2`: generation, lanes, how many.
    pub nic: Option<String>,
    /// `adaptive` or `stripe`; the default is stripe for a rate alone, adaptive otherwise.
    pub placement: Option<String>,
    /// Candidates: names of the library, or paths.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub drives: Vec<String>,
    /// Size of a drive that is not in the library: `15.36TB`.
    pub drive_size: Option<String>,
    /// What that drive writes for as long as anybody wants: `5GB/s`.
    pub drive_rate: Option<String>,
    /// How often a day all of it may be written.
    pub dwpd: Option<f64>,
    /// Years over which that is counted.
    pub warranty_years: Option<f64>,
    /// Price of a drive by its name, in any currency.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub prices: BTreeMap<String, f64>,
}

/// How much of the day: one share, or one for each hour.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum DutyText {
    /// `30%` or `0.3`.
    Share(String),
    /// A number from 0 to 1 for each hour.
    Hours(Vec<f64>),
}

impl FromStr for DutyText {
    type Err = String;

    /// `30%`, or 24 numbers with commas between them.
    fn from_str(text: &str) -> Result<Self, String> {
        if !text.contains(',') {
            return Ok(Self::Share(text.to_owned()));
        }
        let number = |part: &str| {
            part.trim().parse().map_err(|_| format!("'{}' is no number from 0 to 1", part.trim()))
        };
        text.split(',').map(number).collect::<Result<_, _>>().map(Self::Hours)
    }
}

/// The longest read beside the recording, in bytes.
const READ_BYTES_MAX: u64 = 16 << 20;
/// The longest frame of Ethernet without extensions.
const FRAME_DEFAULT: u32 = 1518;
/// Sizes and rates that a described drive may have, in bytes and bytes a second.
const DRIVE_BYTES_MIN: u64 = 1_000_000_000;
const DRIVE_BYTES_MAX: u64 = 1_000_000_000_000_000;
const DRIVE_RATE_MIN: f64 = 1e6;
const DRIVE_RATE_MAX: f64 = 1e12;
/// As many spares or drives' worth of parity as anybody means.
const SPARE_MAX: u32 = 64;

const DAY_S: f64 = 86_400.0;

impl Draft {
    /// From TOML.
    ///
    /// # Errors
    /// [`RequirementError::Syntax`].
    pub fn from_toml(text: &str) -> Result<Self, RequirementError> {
        toml::from_str(text).map_err(|error| RequirementError::Syntax {
            reason: error.to_string().trim().to_owned(),
        })
    }

    /// As TOML.
    ///
    /// # Errors
    /// [`RequirementError::Syntax`] if it holds a number that TOML hasn't.
    pub fn to_toml(&self) -> Result<String, RequirementError> {
        toml::to_string(self)
            .map_err(|error| RequirementError::Syntax { reason: error.to_string() })
    }

    /// This with all that `over` says instead. What excludes what `over` says goes too: a mission replaces a time to
    /// keep, a ring has no missions a day, shared sets have no turns.
    pub fn overridden(self, over: Self) -> Self {
        let ring = over.keep.is_some();
        let term = ring || over.mission.is_some();
        let kind = over.frame.is_some() || over.raw.is_some();
        let mut prices = self.prices;
        prices.extend(over.prices);
        Self {
            rate: over.rate.or(self.rate),
            counts: over.counts.or(self.counts),
            frame: over.frame.or(self.frame.filter(|_| !kind)),
            slice: over.slice.or(self.slice.filter(|_| over.raw.is_none())),
            raw: over.raw.or(self.raw.filter(|_| !kind)),
            keep: over.keep.or(self.keep.filter(|_| !term)),
            mission: over.mission.or(self.mission.filter(|_| !term)),
            missions_a_day: over.missions_a_day.or(self.missions_a_day.filter(|_| !ring)),
            duty: over.duty.or(self.duty),
            parity: over.parity.or(self.parity),
            spare: over.spare.or(self.spare),
            life_years: over.life_years.or(self.life_years),
            margin_percent: over.margin_percent.or(self.margin_percent),
            readers: over.readers.or(self.readers),
            turn: over.turn.or(self.turn.filter(|_| over.sets.as_deref() != Some("shared"))),
            sets: over.sets.or(self.sets),
            lanes: over.lanes.or(self.lanes),
            pcie_generation: over.pcie_generation.or(self.pcie_generation),
            uplink: over.uplink.or(self.uplink),
            memory: over.memory.or(self.memory),
            memory_bandwidth: over.memory_bandwidth.or(self.memory_bandwidth),
            nic: over.nic.or(self.nic),
            placement: over.placement.or(self.placement),
            drive_size: over.drive_size.or(self.drive_size),
            drive_rate: over.drive_rate.or(self.drive_rate),
            dwpd: over.dwpd.or(self.dwpd),
            warranty_years: over.warranty_years.or(self.warranty_years),
            drives: if over.drives.is_empty() { self.drives } else { over.drives },
            prices,
        }
    }

    /// The requirement that it is.
    ///
    /// # Errors
    /// [`RequirementError`] for the first thing that can't be, with the nearest that can.
    pub fn check(&self) -> Result<Requirement, RequirementError> {
        let (rate, counts, frames) = self.stream()?;
        let term = self.term()?;
        let life = |years| number("life", years, 0.01, 100.0);
        let unlimited = self.described()?.is_some_and(|drive| drive.dwpd.is_none());
        if self.life_years.is_some() && unlimited {
            return Err(RequirementError::Missing {
                field: "dwpd",
                wanted: "--dwpd 1 beside --drive-size: --life needs it to compute how long such a drive lasts",
            });
        }
        for (name, price) in &self.prices {
            if !price.is_finite() || *price < 0.0 {
                let given = format!("{name}={price}");
                return Err(value("price", given, "it is no amount of money", format!("{name}=0")));
            }
        }
        Ok(Requirement {
            rate,
            counts,
            slice: self.slice(&frames)?,
            frames,
            term,
            duty: self.duty()?,
            parity: at_most("parity", self.parity.unwrap_or(0), 2)?,
            spare: at_most("spare", self.spare.unwrap_or(0), SPARE_MAX)?,
            life_years: self.life_years.map(life).transpose()?,
            margin_percent: number("margin", self.margin_percent.unwrap_or(0.0), 0.0, 1000.0)?,
            readers: self.readers()?,
            sets: self.sets()?,
            host: self.host()?,
            placement: match &self.placement {
                // Who asks for a rate alone wants a number that relies on no buffer.
                None if term == Term::Whole => Placement::Stripe,
                None => Placement::default(),
                Some(text) => text
                    .parse()
                    .map_err(|problem| value("placement", text, problem, "adaptive".to_owned()))?,
            },
        })
    }

    /// The drive that it describes, if it describes one.
    ///
    /// # Errors
    /// [`RequirementError`] if its size or its rate is missing, or a figure can't be.
    pub fn described(&self) -> Result<Option<Described>, RequirementError> {
        let (size, rate) = match (&self.drive_size, &self.drive_rate) {
            (None, None) if self.dwpd.is_none() && self.warranty_years.is_none() => {
                return Ok(None);
            }
            (None, _) => {
                return Err(RequirementError::Missing {
                    field: "drive-size",
                    wanted: "--drive-size 15.36TB: a drive is described by its size and its rate",
                });
            }
            (_, None) => {
                return Err(RequirementError::Missing {
                    field: "drive-rate",
                    wanted: "--drive-rate 5GB/s, what the drive writes for as long as anybody wants, not its peak",
                });
            }
            (Some(size), Some(rate)) => (size, rate),
        };
        if self.warranty_years.is_some() && self.dwpd.is_none() {
            return Err(RequirementError::Missing {
                field: "dwpd",
                wanted: "--dwpd 1: a warranty counts for the drive writes a day that it allows",
            });
        }
        let bytes: ByteSize = parsed("drive-size", size, "15.36TB")?;
        if !(DRIVE_BYTES_MIN..=DRIVE_BYTES_MAX).contains(&bytes.0) {
            let problem = "a drive has from 1 GB to 1 PB";
            let nearest = bytes.0.clamp(DRIVE_BYTES_MIN, DRIVE_BYTES_MAX);
            return Err(value("drive-size", size, problem, ByteSize(nearest).to_string()));
        }
        let written: Rate = parsed("drive-rate", rate, "5GB/s")?;
        if !(DRIVE_RATE_MIN..=DRIVE_RATE_MAX).contains(&written.0) {
            let problem = "a drive writes from 1 MB/s to 1 TB/s";
            let nearest = Rate(written.0.clamp(DRIVE_RATE_MIN, DRIVE_RATE_MAX)).to_string();
            return Err(value("drive-rate", rate, problem, nearest));
        }
        let dwpd = self.dwpd.map(|dwpd| number("dwpd", dwpd, 0.01, 1000.0)).transpose()?;
        let years = self.warranty_years.map(|years| number("warranty", years, 0.1, 100.0));
        Ok(Some(Described { size: bytes, rate: written, dwpd, warranty_years: years.transpose()? }))
    }

    fn stream(&self) -> Result<(Rate, Counts, Frames), RequirementError> {
        let Some(text) = &self.rate else {
            return Err(RequirementError::Missing {
                field: "rate",
                wanted: "--rate, such as 100Gb/s or 12.5GB/s",
            });
        };
        let rate: Rate = parsed("rate", text, "100Gb/s")?;
        if rate.0 < 1.0 || rate.0 > 1e15 {
            return Err(value("rate", text, "it is not from 1 B/s to 1 PB/s", "1MB/s".to_owned()));
        }
        let frames = match (&self.frame, &self.raw) {
            (Some(_), Some(_)) => {
                return Err(RequirementError::Contradiction {
                    one: "--frame",
                    other: "--raw",
                    why: "a stream is of packets or of blocks that are none; give --frame for what comes from a network, --raw \
                          for what a sensor hands over",
                });
            }
            (Some(text), None) => Frames::Ethernet(mix(text)?),
            (None, Some(text)) => {
                let size: ByteSize = parsed("raw", text, "1MiB")?;
                let block_bytes = u32::try_from(size.0).unwrap_or(u32::MAX);
                if block_bytes == 0 {
                    let problem = "a block has at least a byte";
                    return Err(value("raw", text, problem, "1".to_owned()));
                }
                Frames::Raw { block_bytes }
            }
            (None, None) => Frames::Ethernet(vec![(FRAME_DEFAULT, 1)]),
        };
        let raw = matches!(frames, Frames::Raw { .. });
        // Bits are said of links, bytes of data.
        let bits = text.contains("b/s") || text.contains("bps");
        let counts = match self.counts.as_deref() {
            None if bits && !raw => Counts::Wire,
            None | Some("payload") => Counts::Payload,
            Some("wire") if raw => {
                return Err(RequirementError::Contradiction {
                    one: "--wire",
                    other: "--raw",
                    why: "blocks that are no packets have no preamble, check sequence or gap; give --payload, or --frame",
                });
            }
            Some("wire") => Counts::Wire,
            Some(other) => {
                let problem = "a rate counts what is on the wire or the payload";
                return Err(value("counts", other, problem, "wire".to_owned()));
            }
        };
        Ok((rate, counts, frames))
    }

    fn slice(&self, frames: &Frames) -> Result<Option<u32>, RequirementError> {
        match (self.slice, frames) {
            (None, _) => Ok(None),
            (Some(_), Frames::Raw { .. }) => Err(RequirementError::Contradiction {
                one: "--slice",
                other: "--raw",
                why: "blocks that are no packets are recorded whole; give a smaller block, or --frame",
            }),
            (Some(0), _) => {
                let problem = "at least a byte of each packet is kept";
                Err(value("slice", "0", problem, "128".to_owned()))
            }
            (slice, Frames::Ethernet(_)) => Ok(slice),
        }
    }

    fn term(&self) -> Result<Term, RequirementError> {
        let time = |field, text: &String| -> Result<Duration, RequirementError> {
            let time: Duration = parsed(field, text, "8h")?;
            if time < Duration::from_secs(1) {
                return Err(value(field, text, "it is shorter than a second", "1s".to_owned()));
            }
            Ok(time)
        };
        match (&self.keep, &self.mission) {
            (Some(_), Some(_)) => Err(RequirementError::Contradiction {
                one: "--keep",
                other: "--mission",
                why: "an array goes round or stops; give --keep for a ring that always holds the last so long, --mission for a \
                      recording that ends",
            }),
            (None, None) if self.missions_a_day.is_some() => Err(RequirementError::Missing {
                field: "mission",
                wanted: "--mission 2h for recordings of two hours, of which --missions-a-day says how many there are",
            }),
            (None, None) => Ok(Term::Whole),
            (Some(_), None) if self.missions_a_day.is_some() => {
                Err(RequirementError::Contradiction {
                    one: "--keep",
                    other: "--missions-a-day",
                    why: "a ring records always; leave --missions-a-day out, and say by --duty how much there is to record",
                })
            }
            (Some(text), None) => Ok(Term::Keep(time("keep", text)?)),
            (None, Some(text)) => {
                let a_day =
                    number("missions-a-day", self.missions_a_day.unwrap_or(1.0), 0.001, 1e5)?;
                let length = time("mission", text)?;
                let most = DAY_S / length.as_secs_f64();
                if self.missions_a_day.is_some_and(|a_day| a_day > most) {
                    let problem = format!("a day has no room for so many missions of {length}");
                    let nearest = ((most * 1000.0).floor() / 1000.0).max(0.001).to_string();
                    return Err(value("missions-a-day", a_day.to_string(), problem, nearest));
                }
                Ok(Term::Mission { length, per_thousand_days: (a_day * 1000.0).round() as u32 })
            }
        }
    }

    fn duty(&self) -> Result<Duty, RequirementError> {
        match &self.duty {
            None => Ok(Duty::always()),
            Some(DutyText::Share(text)) => {
                let (digits, scale) =
                    text.trim().strip_suffix('%').map_or((text.trim(), 1.0), |head| (head, 100.0));
                let share = digits.trim().parse::<f64>().ok().map(|number| number / scale);
                match share {
                    Some(share) if share > 0.0 && share <= 1.0 => Ok(Duty::share(share)),
                    Some(share) if share > 1.0 => {
                        let problem = "a day has no more than all of itself";
                        Err(value("duty", text, problem, "100%".to_owned()))
                    }
                    _ => {
                        let problem = "it is no share of the day above 0, nor 24 of them";
                        Err(unreadable("duty", text, problem, "1%"))
                    }
                }
            }
            Some(DutyText::Hours(shares)) => {
                let given = || format!("{} numbers", shares.len());
                let Ok(hours) = <&[f64; 24]>::try_from(shares.as_slice()) else {
                    let problem = "a day has 24 hours";
                    return Err(value("duty", given(), problem, "24 numbers".to_owned()));
                };
                let good = hours.iter().all(|share| (0.0..=1.0).contains(share));
                if !good || hours.iter().all(|share| *share == 0.0) {
                    let problem = "each is a share from 0 to 1, and one at least is above 0";
                    return Err(value("duty", given(), problem, "1 for the full rate".to_owned()));
                }
                Ok(Duty::hours(hours))
            }
        }
    }

    fn readers(&self) -> Result<Readers, RequirementError> {
        let Some(text) = &self.readers else { return Ok(Readers::default()) };
        let (readers, size) = match text.split_once(',') {
            Some((readers, size)) => (readers, Some(size)),
            None => (text.as_str(), None),
        };
        let (count, rate) = readers.split_once('x').unwrap_or(("1", readers));
        let problem = "it is not how many readers there are and what each reads";
        let count = count.trim().parse();
        let count = count.map_err(|_| unreadable("readers", text, problem, "2x500MB/s"))?;
        let rate = parsed("readers", rate, "2x500MB/s")?;
        let random_bytes = size.map(|size| {
            let bytes: ByteSize = parsed("readers", size, "2x50MB/s,4KiB")?;
            if !bytes.0.is_multiple_of(PAGE_BYTES)
                || !(PAGE_BYTES..=READ_BYTES_MAX).contains(&bytes.0)
            {
                let problem = "random reads are whole multiples of 4 KiB, up to 16 MiB";
                let nearest =
                    bytes.0.clamp(PAGE_BYTES, READ_BYTES_MAX).next_multiple_of(PAGE_BYTES);
                return Err(value("readers", text, problem, format!("{readers},{nearest}")));
            }
            Ok(bytes.0 as u32)
        });
        Ok(Readers { count, rate, random_bytes: random_bytes.transpose()? })
    }

    fn sets(&self) -> Result<Sets, RequirementError> {
        match (self.sets.as_deref(), &self.turn) {
            (None | Some("shared"), None) => Ok(Sets::Shared),
            (None | Some("shared"), Some(_)) => Err(RequirementError::Contradiction {
                one: "--turn",
                other: "--sets shared",
                why: "where all data lies on all flash there are no turns; give --sets separate, or leave --turn out",
            }),
            (Some("separate"), _) if self.readers()?.bytes_per_s() <= 0.0 => {
                Err(RequirementError::Missing {
                    field: "readers",
                    wanted: "--readers 2x500MB/s with --sets separate: separate sets help only if there are readers",
                })
            }
            (Some("separate"), turn) => {
                let turn = turn.as_ref().map_or(Ok(SETS_TURN), |text| {
                    let turn: Duration = parsed("turn", text, "10m")?;
                    if turn < Duration::from_secs(1) {
                        let problem = "it is shorter than a second";
                        return Err(value("turn", text, problem, "1s".to_owned()));
                    }
                    Ok(turn)
                })?;
                Ok(Sets::Separate { turn })
            }
            (Some(other), _) => {
                let problem = "readers and the recorder share NVM Sets or have separate ones";
                Err(value("sets", other, problem, "separate".to_owned()))
            }
        }
    }

    fn host(&self) -> Result<Host, RequirementError> {
        if let Some(0) = self.lanes {
            let problem = "drives without a lane move nothing";
            return Err(value("lanes", "0", problem, "4".to_owned()));
        }
        if let Some(generation) = self.pcie_generation.filter(|g| !(1..=6).contains(g)) {
            let nearest = generation.clamp(1, 6).to_string();
            let problem = "PCI Express has generations 1 to 6";
            return Err(value("pcie-generation", generation.to_string(), problem, nearest));
        }
        let uplink = |text: &String| {
            let (to_host, to_drives) = text.split_once(',').unwrap_or((text, text));
            let positive = |part: &str| {
                let rate: Rate = parsed("uplink", part, "7GB/s")?;
                let problem = "a link without a rate moves nothing";
                let zero = || value("uplink", text, problem, "1GB/s".to_owned());
                if rate.0 > 0.0 { Ok(rate) } else { Err(zero()) }
            };
            Ok(Uplink { to_host: positive(to_host)?, to_drives: positive(to_drives)? })
        };
        Ok(Host {
            lanes: self.lanes,
            generation: self.pcie_generation,
            uplink: self.uplink.as_ref().map(uplink).transpose()?,
            memory: self.memory.as_ref().map(|t| parsed("memory", t, "4GiB")).transpose()?,
            memory_bandwidth: self
                .memory_bandwidth
                .as_ref()
                .map(|t| parsed("memory-bandwidth", t, "200GB/s"))
                .transpose()?,
            nic: self.nic.as_deref().map(nic).transpose()?,
        })
    }
}

/// `1518`, `imix`, or `64:7,594:4,1518:1`.
fn mix(text: &str) -> Result<Vec<(u32, u32)>, RequirementError> {
    if text.trim() == "imix" {
        return Ok(IMIX.to_vec());
    }
    let one = |part: &str| {
        let (bytes, weight) = part.split_once(':').unwrap_or((part, "1"));
        let problem = "it is no length of frames, nor lengths with how many there are of each";
        let wrong = || unreadable("frame", text, problem, "1518, imix, or 64:7,594:4,1518:1");
        let bytes: u32 = bytes.trim().parse().map_err(|_| wrong())?;
        let weight: u32 = weight.trim().parse().map_err(|_| wrong())?;
        if !(FRAME_BYTES_MIN..=FRAME_BYTES_MAX).contains(&bytes) {
            let problem = format!(
                "frames of Ethernet are counted with their check sequence and have from {FRAME_BYTES_MIN} to \
                 {FRAME_BYTES_MAX} bytes"
            );
            let nearest = bytes.clamp(FRAME_BYTES_MIN, FRAME_BYTES_MAX).to_string();
            return Err(value("frame", text, problem, nearest));
        }
        if weight == 0 || weight > 1_000_000 {
            let problem = "of each length there are from 1 to 1,000,000";
            return Err(value("frame", text, problem, format!("{bytes}:1")));
        }
        Ok((bytes, weight))
    };
    text.split(',').map(one).collect()
}

/// `4x16` or `4x16*2`.
fn nic(text: &str) -> Result<Nic, RequirementError> {
    let (one, count) = text.split_once('*').unwrap_or((text, "1"));
    let numbers = one.split_once('x').and_then(|(generation, lanes)| {
        Some(Nic {
            generation: generation.trim().parse().ok().filter(|g| (1..=6).contains(g))?,
            lanes: lanes.trim().parse().ok().filter(|l| [1, 2, 4, 8, 16].contains(l))?,
            count: count.trim().parse().ok().filter(|n| (1..=64).contains(n))?,
        })
    });
    let problem = "it is no PCIe generation (1 to 6) and number of lanes (1, 2, 4, 8, 16), with *N for several";
    numbers.ok_or_else(|| unreadable("nic", text, problem, "4x16"))
}

fn parsed<T: FromStr>(
    field: &'static str,
    text: &str,
    example: &'static str,
) -> Result<T, RequirementError>
where
    T::Err: std::fmt::Display,
{
    text.trim().parse().map_err(|error: T::Err| unreadable(field, text, error, example))
}

fn unreadable(
    field: &'static str,
    given: &str,
    problem: impl ToString,
    example: &'static str,
) -> RequirementError {
    let (given, problem) = (given.to_owned(), problem.to_string());
    RequirementError::Unreadable { field, given, problem, example }
}

fn at_most(field: &'static str, given: u32, most: u32) -> Result<u32, RequirementError> {
    if given <= most {
        return Ok(given);
    }
    let problem = format!("there are from 0 to {most}");
    Err(value(field, given.to_string(), problem, most.to_string()))
}

fn number(field: &'static str, given: f64, least: f64, most: f64) -> Result<f64, RequirementError> {
    if (least..=most).contains(&given) {
        return Ok(given);
    }
    let nearest = if given.is_nan() { least } else { given.clamp(least, most) };
    let problem = format!("it is not from {least} to {most}");
    Err(value(field, given.to_string(), problem, nearest.to_string()))
}

fn value(
    field: &'static str,
    given: impl Into<String>,
    problem: impl Into<String>,
    nearest: String,
) -> RequirementError {
    RequirementError::Value { field, given: given.into(), problem: problem.into(), nearest }
}
