//! The binary files of blktrace: records of the kernel's `struct blk_io_trace` (include/uapi/linux/blktrace_api.h), one after the
//! other, one file for each processor. Either byte order is read.

use std::collections::HashMap;
use std::io::{self, BufRead, Read};

use super::collector::{Collector, Found};
use super::{Choice, Events, Input, TraceError};
use crate::interval::Verb;

/// In the upper 24 bits of a record's first word.
const MAGIC: u32 = 0x6561_7400;
/// In its lower 8 bits.
const VERSION: u32 = 7;
/// Bytes of a record, without what follows it.
const RECORD_BYTES: usize = 48;
/// Bytes of a sector in a record.
const SECTOR_BYTES: u64 = 512;

/// Kinds of events, in the lower 16 bits of the action.
const QUEUE: u32 = 1;
const ISSUE: u32 = 7;

/// Categories, in its upper 16 bits.
const WRITE: u32 = 1 << 1;
const FLUSH: u32 = 1 << 2;
const PASSTHROUGH: u32 = 1 << 9;
const NOTIFY: u32 = 1 << 10;
const DISCARD: u32 = 1 << 13;
const FUA: u32 = 1 << 15;

/// Whether a file that begins so is of blktrace.
pub(super) fn begins(head: &[u8]) -> bool {
    head.first_chunk().is_some_and(|&word| order(word).is_some())
}

/// How a file's numbers are stored, from its first word.
fn order(word: [u8; 4]) -> Option<ByteOrder> {
    let is = |word: u32| word & !0xFF == MAGIC;
    if is(u32::from_le_bytes(word)) {
        Some(ByteOrder::Little)
    } else if is(u32::from_be_bytes(word)) {
        Some(ByteOrder::Big)
    } else {
        None
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ByteOrder {
    Little,
    Big,
}

impl ByteOrder {
    fn u64(self, record: &[u8; RECORD_BYTES], at: usize) -> u64 {
        let word = record[at..at + 8].try_into().expect("eight bytes of a record");
        if self == Self::Little { u64::from_le_bytes(word) } else { u64::from_be_bytes(word) }
    }

    fn u32(self, record: &[u8; RECORD_BYTES], at: usize) -> u32 {
        let word = record[at..at + 4].try_into().expect("four bytes of a record");
        if self == Self::Little { u32::from_le_bytes(word) } else { u32::from_be_bytes(word) }
    }

    fn u16(self, record: &[u8; RECORD_BYTES], at: usize) -> u16 {
        let word = record[at..at + 2].try_into().expect("two bytes of a record");
        if self == Self::Little { u16::from_le_bytes(word) } else { u16::from_be_bytes(word) }
    }
}

/// A record's fields, as far as they are looked at.
#[derive(Clone, Copy, Debug)]
struct Record {
    sequence: u32,
    time_ns: u64,
    sector: u64,
    bytes: u32,
    action: u32,
    device: u32,
    cpu: u32,
    /// Bytes that follow.
    data_bytes: u16,
}

impl Record {
    fn of(record: &[u8; RECORD_BYTES], order: ByteOrder) -> Self {
        Self {
            sequence: order.u32(record, 4),
            time_ns: order.u64(record, 8),
            sector: order.u64(record, 16),
            bytes: order.u32(record, 24),
            action: order.u32(record, 28),
            device: order.u32(record, 36),
            cpu: order.u32(record, 40),
            data_bytes: order.u16(record, 46),
        }
    }

    fn categories(self) -> u32 {
        self.action >> 16
    }

    /// `8,16`: the kernel's numbers have 20 bits of minor.
    fn device_name(self) -> String {
        format!("{},{}", self.device >> 20, self.device & 0xF_FFFF)
    }
}

/// Reads the files of one trace, one after the other.
#[derive(Debug)]
pub(super) struct Reader {
    wanted: Option<Events>,
    queued: Collector,
    /// Collected only until the first event of a queue shows that there are such.
    issued: Collector,
    choice: Choice,
    /// Name of the last device.
    device: (u32, String),
    /// The last number of each processor and device.
    sequences: HashMap<(u32, u32), u32>,
    lost: u64,
}

impl Reader {
    pub fn new(choice: &Choice) -> Self {
        Self {
            wanted: choice.events,
            queued: Collector::new(choice),
            issued: Collector::new(choice),
            choice: choice.clone(),
            device: (0, "0,0".to_owned()),
            sequences: HashMap::new(),
            lost: 0,
        }
    }

    /// Reads one file.
    ///
    /// # Errors
    /// For the first record that is not as it must be.
    pub fn read(&mut self, input: Input<'_>) -> Result<(), TraceError> {
        let Input { name, mut bytes } = input;
        let (mut byte, mut expected) = (0, None);
        loop {
            let record = match next(&mut *bytes, &mut expected) {
                Ok(Some(record)) => record,
                Ok(None) => return Ok(()),
                Err(Broken::Io(reason)) => return Err(TraceError::Read { name, reason }),
                Err(Broken::Short(found)) => {
                    let problem = format!(
                        "the last record has only {found} of {RECORD_BYTES} bytes: the trace was cut off; record it \
                         again, or remove the rest (truncate -s {byte} FILE)"
                    );
                    return Err(TraceError::Record { name, byte, problem });
                }
                Err(Broken::Problem(problem)) => {
                    return Err(TraceError::Record { name, byte, problem });
                }
            };
            let data = u64::from(record.data_bytes);
            match io::copy(&mut (&mut *bytes).take(data), &mut io::sink()) {
                Ok(skipped) if skipped == data => {}
                Ok(skipped) => {
                    let problem = format!(
                        "only {skipped} of the {data} bytes behind the last record are there: the trace was cut off; \
                         record it again, or remove the rest (truncate -s {byte} FILE)"
                    );
                    return Err(TraceError::Record { name, byte, problem });
                }
                Err(reason) => return Err(TraceError::Read { name, reason }),
            }
            if let Err(problem) = self.record(record) {
                return Err(TraceError::Record { name, byte, problem });
            }
            byte += RECORD_BYTES as u64 + data;
        }
    }

    fn record(&mut self, record: Record) -> Result<(), String> {
        if record.categories() & NOTIFY != 0 {
            return Ok(());
        }
        self.look_for_lost(record);
        let events = match record.action & 0xFFFF {
            QUEUE => Events::Queue,
            ISSUE => Events::Issue,
            _ => return Ok(()),
        };
        match self.wanted {
            Some(wanted) if wanted != events => return Ok(()),
            None if events == Events::Queue => {
                self.wanted = Some(events);
                self.issued = Collector::new(&self.choice);
            }
            _ => {}
        }
        if self.device.0 != record.device {
            self.device = (record.device, record.device_name());
        }
        let device = self.device.1.as_str();
        let collector = if events == Events::Queue { &mut self.queued } else { &mut self.issued };
        let is = |category| record.categories() & category != 0;
        if is(PASSTHROUGH) {
            collector.left_out(device)?.passthrough += 1;
            return Ok(());
        }
        if is(DISCARD) {
            collector.left_out(device)?.discards += 1;
            return Ok(());
        }
        // A write may carry a flush.
        if is(FLUSH) {
            collector.left_out(device)?.flushes += 1;
            if record.bytes == 0 {
                return Ok(());
            }
        }
        let offset = record
            .sector
            .checked_mul(SECTOR_BYTES)
            .ok_or_else(|| format!("no drive has a sector {}: remove the record", record.sector))?;
        let verb = if is(WRITE) { Verb::Write } else { Verb::Read };
        let (at_ns, length) = (record.time_ns, record.bytes.into());
        collector.add(device, Found { at_ns, offset, length, verb, fua: is(FUA) })
    }

    /// The kernel numbers a device's events on each processor. Numbers of 0 are none.
    fn look_for_lost(&mut self, record: Record) {
        let Record { cpu, device, sequence, .. } = record;
        if sequence == 0 {
            return;
        }
        if let Some(last) = self.sequences.insert((cpu, device), sequence)
            && sequence > last
        {
            self.lost += u64::from(sequence - last - 1);
        }
    }

    /// What was collected, of which events, and how many events are missing.
    pub fn finish(self) -> (Collector, Events, u64) {
        let events = match self.wanted {
            Some(events) => events,
            None if self.issued.is_empty() => Events::Queue,
            None => Events::Issue,
        };
        let collector = if events == Events::Queue { self.queued } else { self.issued };
        (collector, events, self.lost)
    }
}

/// Why there is no next record.
enum Broken {
    Io(io::Error),
    /// So many bytes are there.
    Short(usize),
    Problem(String),
}

/// The next record; None at the end.
fn next(
    bytes: &mut dyn BufRead,
    expected: &mut Option<ByteOrder>,
) -> Result<Option<Record>, Broken> {
    let mut record = [0; RECORD_BYTES];
    let mut found = 0;
    while found < RECORD_BYTES {
        match bytes.read(&mut record[found..]) {
            Ok(0) if found == 0 => return Ok(None),
            Ok(0) => return Err(Broken::Short(found)),
            Ok(more) => found += more,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(Broken::Io(error)),
        }
    }
    let word = *record.first_chunk().expect("a record is longer than a word");
    let order = order(word).filter(|order| expected.is_none_or(|expected| expected == *order));
    let Some(order) = order else {
        let word = u32::from_le_bytes(word);
        return Err(Broken::Problem(format!(
            "a record begins with {word:#010x} instead of {MAGIC:#010x} and a version: the file is damaged from here on; \
             record the trace again"
        )));
    };
    *expected = Some(order);
    let version = order.u32(&record, 0) & 0xFF;
    if version != VERSION {
        return Err(Broken::Problem(format!(
            "the record is of version {version}, and only version {VERSION} can be read: record the trace with a blktrace \
             that writes it"
        )));
    }
    Ok(Some(Record::of(&record, order)))
}
