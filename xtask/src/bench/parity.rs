//! The price of parity: making it, against memcpy of the same bytes; and what is recorded a second onto four files with it,
//! against the same without.

use std::fs;
use std::hint::black_box;
use std::process::Command;
use std::time::Instant;

use anyhow::{Context, Result};
use format::layout::CHUNK_MAX_DEFAULT;
use format::parity::{self, OVERHEAD_BYTES};

use super::comparison::{Comparison, Unit};
use super::machine;
use super::rounds::interleaved;
use super::{Setting, program};

/// Data chunks of a group: an array of five members, or of six with two parities.
const GROUP: usize = 4;
/// Bytes of chunks in a round of making parity.
const FOLDED_BYTES: usize = 1 << 30;
/// Bytes of packets in a round of recording.
const RECORDED_BYTES: u64 = 2 << 30;
const MEMBERS: u32 = 4;

/// Runs it.
///
/// # Errors
/// If memory or files can't be had, or Longtake fails.
pub fn run(setting: &Setting) -> Result<Vec<Comparison>> {
    let mut found = machine::pinned(|| making(setting))?;
    found.extend(recording(setting)?);
    Ok(found)
}

fn making(setting: &Setting) -> Result<Vec<Comparison>> {
    let length = (CHUNK_MAX_DEFAULT - OVERHEAD_BYTES) as usize;
    let mut random = base::random::Random::new(1);
    let chunk = |_| (0..length).map(|_| random.bits() as u8).collect();
    // As in a recording, a chunk is no longer in the processor's caches when its parity is computed.
    let chunks: Vec<Vec<u8>> = (0..4 * GROUP).map(chunk).collect();
    let groups = FOLDED_BYTES / (length * GROUP);
    let bytes = (groups * GROUP * length) as f64;
    let fold = |parities: u8| -> Result<f64> {
        let mut made = vec![vec![0u8; CHUNK_MAX_DEFAULT as usize]; parities.into()];
        let start = Instant::now();
        for group in 0..groups {
            for at in 0..GROUP {
                let filled = if at == 0 { 0 } else { length as u32 };
                let chunk = &chunks[(group * GROUP + at) % chunks.len()];
                for (place, parity) in (0u8..).zip(&mut made) {
                    parity::fold(place, parity, filled, chunk);
                }
            }
            black_box(&made);
        }
        Ok(bytes / start.elapsed().as_secs_f64())
    };
    let copy = || -> Result<f64> {
        let mut copies = vec![vec![0u8; length]; GROUP];
        let start = Instant::now();
        for at in 0..groups * GROUP {
            copies[at % GROUP].copy_from_slice(&chunks[at % chunks.len()]);
            black_box(&copies);
        }
        Ok(bytes / start.elapsed().as_secs_f64())
    };
    let contestants: [super::rounds::Contestant<'_>; 3] =
        [Box::new(|| fold(1)), Box::new(|| fold(2)), Box::new(copy)];
    let [one, two, memcpy] = interleaved(2 * setting.rounds, true, contestants)?;
    let made = [("one parity (exclusive or)", one), ("two parities (and Reed-Solomon)", two)];
    let comparison = |(what, ours)| Comparison {
        benchmark: "parity",
        what: format!("chunks taken into {what}, on one core"),
        reference: Some(("memcpy of the same bytes".to_owned(), memcpy.clone())),
        ours,
        unit: Unit::BytesPerS,
        goal: None,
    };
    Ok(made.into_iter().map(comparison).collect())
}

fn recording(setting: &Setting) -> Result<Vec<Comparison>> {
    let longtake = setting.longtake()?;
    let directory = setting.dir.join("parity");
    // Bytes of chunks with packets, a second, as the program says itself: from its first step to the last flush.
    let record = |parity: u8| -> Result<f64> {
        drop(fs::remove_dir_all(&directory));
        nix::unistd::sync();
        let output = program::run(
            Command::new(&longtake)
                .args(["record", "--from", "synthetic:max", "--json", "--keep-privileges"])
                .args(["--members", &MEMBERS.to_string(), "--member-size", "2GiB", "--to"])
                .arg(&directory)
                .args(["--until-bytes", &RECORDED_BYTES.to_string()])
                .args(["--parity", &parity.to_string()]),
        )?;
        let text = String::from_utf8_lossy(&output);
        let last = text.lines().last().context("longtake printed nothing")?;
        let event = serde_json::from_str(last).context("longtake's last event")?;
        let of_parity = match parity {
            0 => 0.0,
            _ => program::number(&event, "/parity/bytes")?,
        };
        let data = program::number(&event, "/written")? - of_parity;
        Ok(data / program::number(&event, "/after_s")?)
    };
    let measured = interleaved(
        setting.rounds,
        false,
        [Box::new(|| record(1)), Box::new(|| record(2)), Box::new(|| record(0))],
    );
    drop(fs::remove_dir_all(&directory));
    let [one, two, none] = measured?;
    let comparison = |(what, ours)| Comparison {
        benchmark: "parity",
        what: format!("longtake record --from synthetic:max onto four files, {what}"),
        reference: Some(("the same without parity".to_owned(), none.clone())),
        ours,
        unit: Unit::BytesPerS,
        goal: None,
    };
    let recorded =
        [("--parity 1 (3/4 of the writes)", one), ("--parity 2 (2/4 of the writes)", two)];
    Ok(recorded.into_iter().map(comparison).collect())
}
