//! What a guest's `account` told of a take, held together: ledger, chunks, checksums and the packets themselves
//! must say the same, to the packet.

use std::collections::BTreeMap;
use std::ops::Range;

use anyhow::{Context, Result, bail, ensure};
use serde_json::Value;

use super::handed::Files;

/// A take as it was found, every part of it in agreement.
#[derive(Clone, Debug)]
pub struct Account {
    /// `complete` or `cut short`.
    pub state: String,
    /// Packets offered, as far as the ledger reaches.
    pub offered: u64,
    /// Packets that could not be stored, by stage, without those that were to be left out.
    pub lost: BTreeMap<String, u64>,
    /// Packets on the media.
    pub on_media: u64,
    /// Packets that a ring has given up.
    pub overwritten: u64,
    /// Packets that are missing from what was stored.
    pub missing: u64,
    /// Named gaps.
    pub gaps: usize,
    /// The take's chunks.
    pub chunks: Vec<Chunk>,
    /// Sequence numbers of the packets that were got back, by queue.
    pub found: BTreeMap<u64, Vec<Range<u64>>>,
}

/// A chunk that was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Chunk {
    /// Its number.
    pub sequence: u64,
    /// Where it lies.
    pub member: u64,
    /// Packets in it.
    pub packets: u64,
}

/// A number by its path in a JSON value.
///
/// # Errors
/// If there is none.
pub fn number(value: &Value, path: &str) -> Result<u64> {
    value.pointer(path).and_then(Value::as_u64).with_context(|| format!("no {path} in {value}"))
}

impl Account {
    /// Reads what `account NAME ...` handed over.
    ///
    /// # Errors
    /// If a part is missing, or two parts disagree.
    pub fn of(files: &Files, name: &str) -> Result<Self> {
        Self::read(files, name).with_context(|| format!("the account {name}"))
    }

    fn read(files: &Files, name: &str) -> Result<Self> {
        let take = files.json(&format!("{name}.ledger"))?;
        let array = files.json(&format!("{name}.array"))?;
        let check = files.json(&format!("{name}.check"))?;
        let extract = files.json(&format!("{name}.extract"))?;
        let packets = files.json(&format!("{name}.packets"))?;
        let lost = take["ledger"]["lost"].as_object().context("no losses in the ledger")?;
        let lost: BTreeMap<String, u64> = lost
            .iter()
            .filter(|(stage, _)| *stage != "filtered")
            .map(|(stage, count)| Ok((stage.clone(), number(count, "/packets")?)))
            .collect::<Result<_>>()?;
        let chunks = array["chunks"].as_array().context("no chunks in the array")?;
        let chunks = chunks
            .iter()
            .filter(|chunk| chunk["take"] == take["take"])
            .map(|chunk| {
                Ok(Chunk {
                    sequence: number(chunk, "/sequence")?,
                    member: number(chunk, "/member")?,
                    packets: number(chunk, "/packets")?,
                })
            })
            .collect::<Result<_>>()?;
        let account = Self {
            state: take["state"].as_str().context("no state")?.to_owned(),
            offered: number(&take, "/ledger/offered/packets")?,
            lost,
            on_media: number(&take, "/on_media/packets")?,
            overwritten: number(&take, "/overwritten/packets")?,
            missing: number(&take, "/missing/packets")?,
            gaps: take["gaps"].as_array().map_or(0, Vec::len),
            chunks,
            found: ranges(&packets)?,
        };
        account.agree(&take, &packets, &check)?;
        ensure!(
            number(&extract, "/packets")? == account.on_media
                && number(&extract, "/missing/packets")? == account.missing
                && number(&extract, "/unreadable/packets")? == 0,
            "extract says {extract}, the ledger {take}"
        );
        let whole = account.missing == 0;
        let clean = whole && account.lost_sum() == 0;
        let takes = number(&array, "/takes")?;
        files.expect_code(&format!("{name}.ledger"), if clean { 0 } else { 3 })?;
        files.expect_code(&format!("{name}.extract"), if whole { 0 } else { 3 })?;
        // Earlier takes have accounts of their own.
        if takes == 1 {
            files.expect_code(&format!("{name}.check"), if whole { 0 } else { 3 })?;
            ensure!(number(&check, "/missing_packets")? == account.missing, "check: {check}");
        }
        Ok(account)
    }

    fn agree(&self, take: &Value, packets: &Value, check: &Value) -> Result<()> {
        if take["balances"] != true || take["ledger"]["balances"] != true {
            bail!("the ledger does not balance: {take}");
        }
        let stored = number(take, "/ledger/stored/packets")?;
        let lost = self.lost_sum();
        ensure!(
            self.offered == stored + lost,
            "{} packets offered, {stored} stored, {lost} lost",
            self.offered
        );
        let placed = self.on_media + self.overwritten + self.missing;
        ensure!(stored == placed, "{stored} packets stored, {placed} accounted for: {take}");
        let in_chunks: u64 = self.chunks.iter().map(|chunk| chunk.packets).sum();
        ensure!(
            in_chunks == self.on_media,
            "{in_chunks} packets in the chunks, {} on the media",
            self.on_media
        );
        let got_back = number(packets, "/packets")?;
        ensure!(
            got_back == self.on_media && got_back == count(&self.found),
            "{got_back} packets got back, {} of them different, {} on the media",
            count(&self.found),
            self.on_media
        );
        ensure!(number(packets, "/wrong")? == 0, "packets got back wrong: {packets}");
        let disordered = |queue: &Value| queue["in_order"] != true || queue["duplicates"] != 0;
        let queues = packets["queues"].as_array().map_or(&[][..], Vec::as_slice);
        ensure!(!queues.iter().any(disordered), "packets out of order or twice: {packets}");
        let damaged = check["damaged"].as_array().context("check says nothing of damage")?;
        let unbalanced = check["unbalanced_takes"].as_array().context("nor of balances")?;
        ensure!(damaged.is_empty() && unbalanced.is_empty(), "check finds {check}");
        Ok(())
    }

    /// Packets that could not be stored.
    pub fn lost_sum(&self) -> u64 {
        self.lost.values().sum()
    }

    /// That the take ended as it should, with nothing missing from what was stored.
    ///
    /// # Errors
    /// If it did not.
    pub fn expect_whole(&self) -> Result<()> {
        ensure!(
            self.state == "complete" && self.missing == 0 && self.on_media > 0,
            "the take is {}, {} packets are there and {} are missing",
            self.state,
            self.on_media,
            self.missing
        );
        Ok(())
    }

    /// Losses in words.
    pub fn losses(&self) -> String {
        let lost: Vec<String> = self
            .lost
            .iter()
            .filter(|(_, packets)| **packets > 0)
            .map(|(stage, packets)| format!("{packets} lost by {stage}"))
            .collect();
        if lost.is_empty() { "none lost".to_owned() } else { lost.join(", ") }
    }
}

/// Sequence numbers by queue.
fn ranges(packets: &Value) -> Result<BTreeMap<u64, Vec<Range<u64>>>> {
    let queues = packets["queues"].as_array().context("no queues among the packets")?;
    queues
        .iter()
        .map(|queue| {
            let ranges = queue["ranges"].as_array().context("a queue without ranges")?;
            let ranges = ranges
                .iter()
                .map(|range| Ok(number(range, "/0")?..number(range, "/1")?))
                .collect::<Result<_>>()?;
            Ok((number(queue, "/queue")?, ranges))
        })
        .collect()
}

fn count(found: &BTreeMap<u64, Vec<Range<u64>>>) -> u64 {
    found.values().flatten().map(|range| range.end - range.start).sum()
}

/// How many numbers are in `all` and not in `part`, if those of `part` are all in `all`.
///
/// # Errors
/// If one is not.
pub fn left_out(
    all: &BTreeMap<u64, Vec<Range<u64>>>,
    part: &BTreeMap<u64, Vec<Range<u64>>>,
) -> Result<u64> {
    for (queue, ranges) in part {
        let whole = all.get(queue).map_or(&[][..], Vec::as_slice);
        for range in ranges {
            let inside = whole.iter().any(|w| w.start <= range.start && range.end <= w.end);
            ensure!(inside, "packets {range:?} of queue {queue} are in the part alone");
        }
    }
    Ok(count(all) - count(part))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_part_leaves_out_is_counted_and_what_it_adds_is_refused() {
        let all = BTreeMap::from([(0, vec![0..10, 20..30])]);
        let part = BTreeMap::from([(0, vec![0..3, 5..10, 20..30])]);
        assert_eq!(left_out(&all, &part).unwrap(), 2);
        assert_eq!(left_out(&all, &all).unwrap(), 0);
        assert!(left_out(&part, &all).is_err());
        assert!(left_out(&all, &BTreeMap::from([(1, vec![0..1, 2..3])])).is_err());
    }
}
