//! Requests that a processor simulates in a second, of one drive under one load: ours, and MQSim's from its source.
//!
//! Both simulate the same drive in the same run: 8 channels of 4 dies, pages of 4 KiB that are read and programmed one at a time. It is
//! small, because MQSim keeps a record of each page, and empty at first, because preparing a full drive takes MQSim minutes or fails.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail, ensure};
use base::random::Random;
use base::{BufferId, Operation};
use nix::sys::resource::{UsageWho, getrusage};
use ssd::{SimBank, Slot, Spec, Start};
use tempfile::TempDir;

use super::Setting;
use super::comparison::{Comparison, Goal, Unit};
use super::machine::{self, ProcessorTime};
use super::rounds::Figures;
use super::simulate::{closed_loop, ideal};

const PAGE: u64 = 4096;
const PAGES_PER_BLOCK: u64 = 256;
const BLOCKS_PER_DIE: u64 = 256;
const OVER_PROVISIONING: f64 = 0.127;
const DEPTH: u64 = 32;
const BUFFER: BufferId = BufferId(0);
/// With so few, MQSim does little but start.
const HARDLY_ANY: u64 = 1000;
/// A request or so may be under way when MQSim ends.
const SERVED: f64 = 0.999;

/// A load, as both are given it.
#[derive(Clone, Copy, Debug)]
struct Load {
    what: &'static str,
    reads: bool,
    bytes: u64,
    requests: u64,
}

/// MQSim, built, and a folder for what it is given and writes.
#[derive(Debug)]
struct MqSim {
    program: PathBuf,
    folder: TempDir,
}

/// Runs both.
///
/// # Errors
/// If MQSim can't be built or run, or leaves requests out.
pub fn run(setting: &Setting) -> Result<Vec<Comparison>> {
    machine::pinned(|| {
        let other = setting.mqsim.as_deref().map(|source| MqSim::build(source, &setting.dir));
        let other = other.transpose()?;
        let spec = drive()?;
        // The writes are as many as fill the drive twice.
        let blocks = spec.capacity_bytes / (2 * PAGE);
        let loads = [
            Load { what: "4 KiB random reads", reads: true, bytes: PAGE, requests: 2_000_000 },
            Load {
                what: "8 KiB random writes, over an empty drive twice",
                reads: false,
                bytes: 2 * PAGE,
                requests: 2 * blocks,
            },
        ];
        loads.into_iter().map(|load| compare(setting, &spec, load, other.as_ref())).collect()
    })
}

fn compare(
    setting: &Setting,
    spec: &Spec,
    load: Load,
    other: Option<&MqSim>,
) -> Result<Comparison> {
    let (mut ours, mut theirs) = (Vec::new(), Vec::new());
    for _ in 0..setting.rounds {
        ours.push(simulated(spec, load)?);
        if let Some(other) = other {
            let started = other.seconds(Load { requests: HARDLY_ANY, ..load })?;
            theirs.push(load.requests as f64 / (other.seconds(load)? - started));
        }
    }
    Ok(Comparison {
        benchmark: "mqsim",
        what: format!(
            "{} at depth {DEPTH}, 32 dies, {}: requests a second of processor time",
            load.what,
            base::ByteSize(spec.capacity_bytes)
        ),
        reference: other.map(|_| ("MQSim".to_owned(), Figures(theirs))),
        ours: Figures(ours),
        unit: Unit::CommandsPerS,
        goal: Some(Goal::Ratio(50.0)),
    })
}

/// The drive that both simulate.
fn drive() -> Result<Spec> {
    let mut spec = ideal()?;
    spec.flash.planes = 1;
    spec.flash.page_bytes = PAGE as u32;
    spec.flash.pages_per_block = PAGES_PER_BLOCK as u32;
    spec.mapping.over_provisioning = OVER_PROVISIONING;
    let physical = u64::from(spec.flash.dies()) * BLOCKS_PER_DIE * PAGES_PER_BLOCK * PAGE;
    spec.capacity_bytes = (physical as f64 / (1.0 + OVER_PROVISIONING)) as u64 / PAGE * PAGE;
    Ok(spec)
}

/// Requests a second of processor time by our own simulator.
fn simulated(spec: &Spec, load: Load) -> Result<f64> {
    let slot = Slot { spec: spec.clone(), start: Start::Empty, namespaces: vec![0], seed: 1 };
    let mut bank = SimBank::new(&[slot], None)?;
    let mut random = Random::new(1);
    let (blocks, length) = (spec.capacity_bytes / load.bytes, load.bytes as u32);
    let start = ProcessorTime::start();
    closed_loop(&mut bank, DEPTH, load.requests, |_| {
        let offset = random.below(blocks) * load.bytes;
        match load.reads {
            true => Operation::Read { offset, length, buffer: BUFFER },
            false => Operation::Write { offset, length, buffer: BUFFER, fua: false },
        }
    });
    Ok(load.requests as f64 / start.seconds())
}

impl MqSim {
    /// Builds it from a folder with its source, which stays as it is.
    fn build(source: &Path, dir: &Path) -> Result<Self> {
        ensure!(
            source.join("ssdconfig.xml").is_file() && source.join("Makefile").is_file(),
            "{} holds no MQSim: give the folder of its source, with its Makefile and ssdconfig.xml",
            source.display()
        );
        // A new one, so that nothing that was there before is deleted with it.
        let folder = tempfile::tempdir_in(fs::canonicalize(dir)?)?;
        let copied = Command::new("cp").arg("-rT").args([source, folder.path()]).status()?;
        ensure!(copied.success(), "copying {} failed", source.display());
        eprintln!("building MQSim");
        let made = Command::new("make").arg("-C").arg(folder.path()).stdout(Stdio::null()).status();
        ensure!(made.context("running make")?.success(), "MQSim can't be built: see make's errors");
        let drive = configured(&fs::read_to_string(folder.path().join("ssdconfig.xml"))?)?;
        fs::write(folder.path().join("drive.xml"), drive)?;
        Ok(Self { program: folder.path().join("MQSim"), folder })
    }

    /// Seconds of processor time that it takes for a load.
    fn seconds(&self, load: Load) -> Result<f64> {
        fs::write(self.folder.path().join("load.xml"), scenario(load))?;
        let before = children_s()?;
        let told = Command::new(&self.program)
            .args(["-i", "drive.xml", "-w", "load.xml"])
            .current_dir(&self.folder)
            .stdin(Stdio::null())
            .output()
            .context("running MQSim")?;
        let seconds = children_s()? - before;
        ensure!(told.status.success(), "MQSim ended with {}", told.status);
        let told = String::from_utf8_lossy(&told.stdout);
        let served = served(&told).context("MQSim doesn't say how many requests it served")?;
        if (served as f64) < load.requests as f64 * SERVED {
            bail!("MQSim served {served} of {} requests", load.requests);
        }
        Ok(seconds)
    }
}

/// Requests served, from MQSim's last words.
fn served(told: &str) -> Option<u64> {
    let (_, after) = told.rsplit_once("total requests serviced:")?;
    after.split_whitespace().next()?.parse().ok()
}

/// Seconds of processor time of all children that have ended.
fn children_s() -> Result<f64> {
    let usage = getrusage(UsageWho::RUSAGE_CHILDREN).context("asking what children used")?;
    let seconds =
        |time: nix::sys::time::TimeVal| time.tv_sec() as f64 + time.tv_usec() as f64 / 1e6;
    Ok(seconds(usage.user_time()) + seconds(usage.system_time()))
}

/// MQSim's own configuration with the drive that both simulate; everything else stays as its makers set it.
fn configured(own: &str) -> Result<String> {
    let blocks = BLOCKS_PER_DIE.to_string();
    let (pages, page) = (PAGES_PER_BLOCK.to_string(), PAGE.to_string());
    // MQSim counts spare flash as a share of all flash.
    let spare = format!("{:.4}", OVER_PROVISIONING / (1.0 + OVER_PROVISIONING));
    let set = [
        ("Enabled_Preconditioning", "false"),
        ("Ideal_Mapping_Table", "true"),
        ("Overprovisioning_Ratio", &spare),
        ("Flash_Channel_Count", "8"),
        ("Chip_No_Per_Channel", "4"),
        ("Die_No_Per_Chip", "1"),
        ("Plane_No_Per_Die", "1"),
        ("Block_No_Per_Plane", &blocks),
        ("Page_No_Per_Block", &pages),
        ("Page_Capacity", &page),
    ];
    let mut text = own.to_owned();
    for (name, value) in set {
        let (opens, closes) = (format!("<{name}>"), format!("</{name}>"));
        let (before, rest) = text.split_once(&opens).with_context(|| format!("no {name}"))?;
        let (_, after) = rest.split_once(&closes).with_context(|| format!("no end of {name}"))?;
        text = format!("{before}{opens}{value}{closes}{after}");
    }
    Ok(text)
}

/// A load as MQSim is given it. Its cache is off: with it, MQSim takes longer for each request.
fn scenario(load: Load) -> String {
    let sectors = load.bytes / 512;
    let set = [
        ("Priority_Class", "HIGH".to_owned()),
        ("Device_Level_Data_Caching_Mode", "TURNED_OFF".to_owned()),
        ("Channel_IDs", "0,1,2,3,4,5,6,7".to_owned()),
        ("Chip_IDs", "0,1,2,3".to_owned()),
        ("Die_IDs", "0".to_owned()),
        ("Plane_IDs", "0".to_owned()),
        ("Initial_Occupancy_Percentage", "100".to_owned()),
        ("Working_Set_Percentage", "100".to_owned()),
        ("Synthetic_Generator_Type", "QUEUE_DEPTH".to_owned()),
        ("Read_Percentage", if load.reads { "100" } else { "0" }.to_owned()),
        ("Address_Distribution", "RANDOM_UNIFORM".to_owned()),
        ("Percentage_of_Hot_Region", "0".to_owned()),
        ("Generated_Aligned_Addresses", "true".to_owned()),
        ("Address_Alignment_Unit", sectors.to_string()),
        ("Request_Size_Distribution", "FIXED".to_owned()),
        ("Average_Request_Size", sectors.to_string()),
        ("Variance_Request_Size", "0".to_owned()),
        ("Seed", "1".to_owned()),
        ("Average_No_of_Reqs_in_Queue", DEPTH.to_string()),
        ("Intensity", "32768".to_owned()),
        ("Stop_Time", "0".to_owned()),
        ("Total_Requests_To_Generate", load.requests.to_string()),
    ];
    let lines: String =
        set.iter().map(|(name, value)| format!("<{name}>{value}</{name}>\n")).collect();
    format!(
        "<?xml version=\"1.0\" encoding=\"us-ascii\"?>\n<MQSim_IO_Scenarios><IO_Scenario>\
         <IO_Flow_Parameter_Set_Synthetic>\n{lines}</IO_Flow_Parameter_Set_Synthetic>\
         </IO_Scenario></MQSim_IO_Scenarios>\n"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_drive_is_set_in_a_configuration_and_the_rest_stays() {
        let names = ["Enabled_Preconditioning", "Ideal_Mapping_Table", "Overprovisioning_Ratio"];
        let more = ["Flash_Channel_Count", "Chip_No_Per_Channel", "Die_No_Per_Chip"];
        let last = ["Plane_No_Per_Die", "Block_No_Per_Plane", "Page_No_Per_Block", "Page_Capacity"];
        let all: Vec<&str> = [&names[..], &more, &last].concat();
        let own: String = all.iter().map(|name| format!("<{name}>7</{name}>\n")).collect();
        let own = format!("<Seed>321</Seed>\n{own}");
        let set = configured(&own).unwrap();
        assert!(set.contains("<Seed>321</Seed>"), "{set}");
        assert!(set.contains("<Page_Capacity>4096</Page_Capacity>"), "{set}");
        assert!(!set.contains(">7<"), "{set}");
        let error = configured("<Seed>321</Seed>").unwrap_err();
        assert_eq!(error.to_string(), "no Enabled_Preconditioning");
    }

    #[test]
    fn requests_that_were_served_are_read_from_its_last_words() {
        let told = "Flow 0 - total requests generated: 12 total requests serviced:11\n  - delay";
        assert_eq!(served(told), Some(11));
        assert_eq!(served("Writing results"), None);
    }

    #[test]
    fn a_folder_without_its_source_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let error = MqSim::build(folder.path(), folder.path()).unwrap_err().to_string();
        assert!(error.contains("holds no MQSim"), "{error}");
    }
}
