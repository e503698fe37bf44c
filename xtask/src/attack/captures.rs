//! The attack `captures`: mutated pcap and pcapng files are recorded and extracted again.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};
use base::{Random, Timestamp};
use format::{Interface, Packet};
use source::capture_file::CaptureFile;
use source::sink::{Ended, Loss, Sink};

use super::recording::Shape;
use super::stage::Stage;
use crate::vm::account::number;
use crate::vm::programs;

/// Mutated files.
#[derive(Debug)]
pub struct Captures;

/// Files of a round.
const FILES: u64 = 4;

impl super::Attack for Captures {
    fn name(&self) -> &'static str {
        "captures"
    }

    fn about(&self) -> &'static str {
        "mutated pcap and pcapng files as sources, recorded and extracted"
    }

    fn law(&self) -> &'static str {
        "record ends without a panic; the ledger balances; extract gives back every packet that the file has, byte for byte, up to \
         the first place that can't be read, and Wireshark's capinfos counts as many"
    }

    fn slice_rounds(&self) -> u64 {
        2
    }

    fn round(&self, stage: &mut Stage) -> Result<()> {
        let seeds = seeds(stage)?;
        for number in 0..FILES {
            let mut bytes = fs::read(stage.one_of(&seeds))?;
            let other = fs::read(stage.one_of(&seeds))?;
            for _ in 0..stage.random.below(6) {
                mutate(&mut bytes, &other, &mut stage.random);
            }
            bytes.truncate(1 << 20);
            fs::write(stage.path("source.pcapng"), &bytes)?;
            one(stage, number)?;
        }
        Ok(())
    }
}

/// The fuzzer's corpus, and a capture of each format that the program writes itself.
fn seeds(stage: &mut Stage) -> Result<Vec<PathBuf>> {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../fuzz/corpus/capture_file");
    let entries = fs::read_dir(&corpus).with_context(|| format!("reading {}", corpus.display()))?;
    let mut seeds = entries.map(|entry| Ok(entry?.path())).collect::<Result<Vec<_>>>()?;
    seeds.sort();
    let shape = tiny();
    let record = format!(
        "record -q --from synthetic:20MB/s,size=imix --until-bytes 60kB --to ./own {}",
        shape.options()
    );
    stage.line(&record)?.code(&[0])?;
    // As many as the others have a chance to be chosen: these are whole captures.
    for format in ["pcap", "pcapng"] {
        let file = format!("own.{format}");
        stage.line(&format!("extract ./own -q --format {format} -o {file}"))?.code(&[0])?;
        seeds.extend(vec![stage.path(&file); seeds.len() / 3]);
    }
    Ok(seeds)
}

fn tiny() -> Shape {
    Shape { members: 1, member_mib: 12, parity: 0, ring: false, chunk_kib: 256 }
}

/// Changes a file the way that damage, truncation and malice do.
fn mutate(bytes: &mut Vec<u8>, other: &[u8], random: &mut Random) {
    let length = bytes.len() as u64;
    if length < 16 {
        bytes.extend_from_slice(&other[..other.len().min(64)]);
        return;
    }
    let at = random.below(length) as usize;
    let span = 1 + random.below((length - at as u64).min(200)) as usize;
    match random.below(8) {
        0 => bytes[at] ^= 1 << random.below(8),
        1 => bytes[at] = random.bits() as u8,
        2 => {
            let values =
                [0, 1, 3, 4, 0x7fff_ffff, 0x8000_0000, u32::MAX, u32::MAX - 3, length as u32];
            let at = at & !3;
            let value = values[random.below(values.len() as u64) as usize].to_le_bytes();
            let end = (at + 4).min(bytes.len());
            bytes[at..end].copy_from_slice(&value[..end - at]);
        }
        3 => bytes.truncate(at),
        4 => drop(bytes.drain(at..at + span)),
        5 => {
            let copy = bytes[at..at + span].to_vec();
            let to = random.below(bytes.len() as u64) as usize;
            bytes.splice(to..to, copy);
        }
        6 => {
            let from = random.below(other.len() as u64) as usize;
            bytes.truncate(at);
            bytes.extend_from_slice(&other[from..]);
        }
        _ => bytes.extend_from_slice(other),
    }
}

/// One packet: time in ns, length on the wire, bytes.
type Frame = (u64, u32, Vec<u8>);

#[derive(Default)]
struct Frames(Vec<Frame>);

impl Sink for Frames {
    fn interface(&mut self, _: &Interface) -> u32 {
        0
    }

    fn packet(&mut self, packet: &Packet<'_>) -> Result<(), Ended> {
        let Packet { timestamp, original_length, data, .. } = packet;
        self.0.push((timestamp.as_nanos(), *original_length, data.to_vec()));
        Ok(())
    }

    fn lost(&mut self, _: u32, _: Loss, _: u64, _: u64) {}

    fn tick(&mut self, _: Timestamp) -> Result<(), Ended> {
        Ok(())
    }
}

/// The packets of a file up to its end or the first error, in the order of bytes; and whether it was read to its end.
fn frames(path: &Path) -> (Vec<Frame>, bool) {
    let mut frames = Frames::default();
    let whole = CaptureFile::open(path).is_ok_and(|file| file.run(&mut frames).is_ok());
    frames.0.sort();
    (frames.0, whole)
}

fn one(stage: &mut Stage, number_of_file: u64) -> Result<()> {
    let array = format!("./array{number_of_file}");
    let source = stage.path("source.pcapng");
    let (expected, whole) = frames(&source);
    let piped = stage.random.one_in(3);
    let from = if piped { "pcap:-" } else { "source.pcapng" };
    let line = format!("record --json --from {from} --to {array} {}", tiny().options());
    let mut command = Command::new(&stage.program);
    command.args(line.split_whitespace());
    let file = File::open(&source)?;
    command.stdin(if piped { Stdio::from(file) } else { Stdio::null() });
    let ran = stage.run_command(&mut command, &format!("longtake {line} < source.pcapng"), None)?;
    let ran = ran.sound()?.code(&[0, 1, 3])?;
    stage.saw(if whole { "files read whole" } else { "files with an error" });
    ensure!(whole || ran.code != Some(0), "the file has an error, and record says nothing of it");
    if !stage.path(&array).exists() {
        ensure!(expected.is_empty(), "{} packets, and no array: {}", expected.len(), ran.stderr);
        return Ok(());
    }
    let ledger = stage.run(&["ledger", &array, "--json"])?;
    if ledger.code == Some(1) {
        ensure!(
            expected.is_empty(),
            "{} packets, and no ledger: {}",
            expected.len(),
            ledger.stderr
        );
        return Ok(());
    }
    let ledger = ledger.json()?;
    ensure!(ledger["balances"] == true && ledger["ledger"]["balances"] == true, "{ledger}");
    let extract = ["extract", &array, "--json", "-y", "-o", "extract.pcapng"];
    let extract = stage.run(&extract)?.code(&[0, 3])?.json()?;
    let (found, sound) = frames(&stage.path("extract.pcapng"));
    ensure!(sound, "what was extracted is no whole capture");
    ensure!(
        number(&extract, "/packets")? == found.len() as u64,
        "{} packets extracted, {extract}",
        found.len()
    );
    ensure!(
        number(&ledger, "/ledger/stored/packets")? == found.len() as u64,
        "{} packets extracted: {ledger}",
        found.len()
    );
    if number(&ledger, "/ledger/truncated/packets")? == 0 {
        let differ = expected.iter().zip(&found).position(|(one, other)| one != other);
        ensure!(
            expected == found,
            "{} packets in the file, {} extracted, the first that differs is {differ:?}",
            expected.len(),
            found.len()
        );
    }
    stage.saw_many("packets equal", found.len() as u64);
    if found.len() as u64 % 4 == 1 {
        judged_by_wireshark(stage, found.len() as u64)?;
    }
    Ok(())
}

/// That Wireshark reads what was extracted, and counts as many packets.
fn judged_by_wireshark(stage: &mut Stage, packets: u64) -> Result<()> {
    let mut capinfos = Command::new("capinfos");
    capinfos.args(["-c", "-M", "-T", "-r"]).arg(stage.path("extract.pcapng"));
    let text = programs::run(&mut capinfos)?;
    let counted = text.trim_end().rsplit('\t').next().and_then(|field| field.parse().ok());
    ensure!(counted == Some(packets), "capinfos counts {counted:?} of {packets} packets");
    stage.saw("files judged by Wireshark");
    Ok(())
}
