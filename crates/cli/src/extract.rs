//! `longtake extract`: recorded packets into a file, by time and filter.

use std::collections::HashMap;
use std::path::Path;
use std::process::ExitCode;

use anyhow::{Result, bail};
use base::{Bank, Rate, Timestamp};
use format::export::{Exporter, FileFormat};
use format::pcapng::{Block, Blocks, ReadPacket, read_packet};
use format::{ChunkRecord, Count, Interface};
use indicatif::ProgressBar;
use lab::Go;
use recorder::TimeRange;
use recorder::extract::{ExtractError, Unreadable, Visitor};
use recorder::takes::{Catalog, Entry, Gap};
use serde_json::{Value, json};
use source::clock;
use source::filter::Program;

use crate::account::{Recovered, Unread};
use crate::arguments::{self, ExtractArguments, Selection, takes_match};
use crate::exit;
use crate::measure::setup::stop_on_signals;
use crate::opening::{self, Opened};
use crate::outlet;
use crate::output::{NewFile, Outputs, Readers};
use crate::progress;
use longtake::control::{self, Hold};
use longtake::instant::utc;

/// Extracts packets to a file or standard output.
///
/// # Errors
/// If the array can't be opened, the filter is wrong, or the file can't be written.
pub fn extract(arguments: &ExtractArguments) -> Result<ExitCode> {
    let format = match arguments.format {
        Some(arguments::FileFormat::Pcapng) => FileFormat::Pcapng,
        Some(arguments::FileFormat::Pcap) => FileFormat::Pcap,
        None if arguments.output.extension().is_some_and(|e| e == "pcap") => FileFormat::Pcap,
        None => FileFormat::Pcapng,
    };
    let to_stdout = arguments.output == Path::new("-");
    let members = target::array::resolve(&arguments.array.array)?;
    let outputs = Outputs::new(arguments.overwrite).reads(&members);
    if !to_stdout {
        outputs.check(&arguments.output)?;
    }
    let mut opened = opening::open_members_to_read(&members, arguments.array.degraded)?;
    let range = span_of(&arguments.selection)?;
    // Before the chunks are listed: what is listed is there until it is read.
    let _hold = arguments.hold.then(|| hold(&opened, range)).transpose()?;
    let chosen = Chosen::load(&mut opened, &arguments.selection, range)?;
    let target = if to_stdout {
        outputs.stdout()?
    } else {
        outputs.create(&arguments.output, Readers::Owner)?
    };
    let mut out = Vec::new();
    let comment = format!("extracted from array '{}'", opened.image.superblock.name);
    let exporter = Exporter::new(format, &comment, &mut out);
    let to_stdout = to_stdout || is_stdout(&arguments.output);
    let shown = !arguments.quiet && !arguments.array.json && !to_stdout;
    let mut visitor = FileVisitor {
        exporter,
        out,
        stopped: stopped(&target, &arguments.output)?,
        target,
        written: 0,
        filter: Filter::new(&arguments.selection.filter),
        numbers: HashMap::new(),
        packets: 0,
        unreadable: Unread::default(),
        recovered: Recovered::default(),
        bar: progress::chunks_bar(0, "extracting", shown),
    };
    let start = opened.bank.now();
    chosen.visit(&mut opened, &mut visitor)?;
    let FileVisitor {
        exporter,
        mut out,
        mut target,
        packets,
        mut written,
        unreadable,
        recovered,
        bar,
        ..
    } = visitor;
    exporter.finish(&mut out);
    target.put(&out)?;
    target.finish()?;
    written += out.len() as u64;
    bar.finish_and_clear();
    let missing = chosen.missing();
    let rate = Rate::of(written, opened.bank.now().since(start));
    if arguments.array.json && !to_stdout {
        outlet::json(&json!({
            "packets": packets, "bytes": written, "output": arguments.output,
            "missing": outlet::count_json(missing), "unreadable": outlet::count_json(unreadable.count),
            "overwritten": unreadable.overwritten.json(), "holes": chosen.holes_json(),
            "recovered": recovered.json(),
            "stale_members": opening::stale_json(&opened), "overwritten_chunks": opened.overwritten,
        }))?;
    } else {
        // Standard output may be the capture itself.
        outlet::tell(&format!(
            "{} packets, {} bytes written to {} at {rate}",
            outlet::number(packets),
            outlet::number(written),
            arguments.output.display()
        ));
        recovered.report();
        unreadable.report();
        chosen.report_holes();
        if missing.packets > 0 {
            outlet::tell(&format!(
                "{} packets are missing from the takes in this span: `longtake ledger` names the gaps",
                outlet::number(missing.packets)
            ));
        }
    }
    let read = unreadable.is_empty() && !chosen.is_cut_by_the_ring() && opened.overwritten == 0;
    let whole = missing.packets == 0 && read;
    Ok(if whole { ExitCode::SUCCESS } else { ExitCode::from(exit::LOSS) })
}

/// The span of time that is asked for.
///
/// # Errors
/// If it ends before it begins.
pub fn span_of(selection: &Selection) -> Result<TimeRange> {
    let now = clock::now();
    let range = TimeRange {
        from: selection.since.map_or(Timestamp::MIN, |w| w.at(now)),
        to: selection.until.map_or(Timestamp::MAX, |w| w.at(now)),
    };
    if range.from > range.to {
        bail!("--since {} lies after --until {}: exchange them", utc(range.from), utc(range.to));
    }
    Ok(range)
}

/// Keeps the ring from overwriting a span while it is read. Without a recording under way nothing can.
fn hold(opened: &Opened, span: TimeRange) -> Result<Option<Hold>> {
    opened.recording.then(|| control::hold(opened.image.uuid, span)).transpose()
}

/// Whether a path names standard output, which then carries the capture alone.
fn is_stdout(path: &Path) -> bool {
    path == Path::new("/dev/stdout") || path == Path::new("/dev/fd/1")
}

/// Fails once a signal has asked to stop.
type Stopped = Box<dyn Fn() -> Result<()>>;

/// A signal ends an extract to a stream at once. One to a file ends by itself, so that its temporary file is removed.
fn stopped(target: &NewFile, path: &Path) -> Result<Stopped> {
    if target.is_stream() {
        return Ok(Box::new(|| Ok(())));
    }
    let (stop, path) = (stop_on_signals()?, path.to_owned());
    Ok(Box::new(move || {
        if stop() == Go::Stop {
            bail!("stopped by a signal: {} was not written", path.display());
        }
        Ok(())
    }))
}

/// What is to be read: the chunks of some takes and a span of time.
#[derive(Debug)]
pub struct Chosen {
    /// The span.
    pub range: TimeRange,
    /// Whether the user asked for a span, and not for whatever there is.
    span_asked: bool,
    takes: Vec<recorder::takes::Take>,
    catalog: Catalog,
    limit: Option<Rate>,
}

/// Reading is held to this while the array is being recorded, unless told otherwise.
pub const READ_RATE_BESIDE_RECORDING: Rate = Rate(500e6);

impl Chosen {
    /// Reads the indexes.
    ///
    /// # Errors
    /// If the selection matches nothing, or reading fails.
    pub fn load(opened: &mut Opened, selection: &Selection, range: TimeRange) -> Result<Self> {
        let catalog = opened.catalog(range)?;
        let mut takes = catalog.takes();
        if let Some(wanted) = &selection.take {
            let count = takes.len();
            let mut at = 0;
            takes.retain(|take| {
                at += 1;
                takes_match(wanted, take.id.uuid, at == count)
            });
            if takes.is_empty() {
                bail!("no take '{wanted}' in that span: `longtake takes` lists them");
            }
        }
        let limit = selection.read_rate.or(opened.recording.then_some(READ_RATE_BESIDE_RECORDING));
        let span_asked = selection.since.is_some() || selection.until.is_some();
        Ok(Self { range, span_asked, takes, catalog, limit })
    }

    /// Visits every chosen packet, take after take.
    ///
    /// # Errors
    /// The visitor's, or if reading fails.
    pub fn visit<V: Visitor<Error = anyhow::Error>>(
        &self,
        opened: &mut Opened,
        visitor: &mut V,
    ) -> Result<()> {
        let image = opened.image.clone();
        for take in &self.takes {
            let entries: Vec<Entry> = self
                .catalog
                .entries
                .iter()
                .filter(|e| e.record.take.uuid == take.id.uuid)
                .copied()
                .collect();
            recorder::extract::extract(
                &mut opened.reader(),
                &image,
                &entries,
                self.range,
                self.limit,
                visitor,
            )
            .map_err(|error| match error {
                ExtractError::Read(error) => error.into(),
                ExtractError::Visitor(error) => error,
            })?;
        }
        Ok(())
    }

    /// What is missing within the span, whole gaps that reach into it included.
    fn missing(&self) -> Count {
        let gaps = self.takes.iter().flat_map(|take| &take.gaps);
        let inside = gaps.filter(|gap| gap.touches(self.range));
        inside.fold(Count::ZERO, |sum, gap| sum + gap.count)
    }

    /// The stretches of the span that the ring had overwritten before this command looked.
    fn holes(&self) -> impl Iterator<Item = &Gap> {
        self.takes.iter().flat_map(|take| &take.holes).filter(|hole| hole.touches(self.range))
    }

    /// Whether the ring has overwritten part of a span that was asked for.
    pub fn is_cut_by_the_ring(&self) -> bool {
        self.span_asked && self.holes().next().is_some()
    }

    /// The holes as JSON.
    pub fn holes_json(&self) -> Value {
        let hole = |hole: &Gap| {
            json!({
                "packets": hole.count.packets, "bytes": hole.count.bytes,
                "from": utc(Timestamp::from_nanos(hole.from_ns)), "to": utc(Timestamp::from_nanos(hole.to_ns)),
            })
        };
        self.holes().map(hole).collect()
    }

    /// Tells the user what the ring had overwritten.
    pub fn report_holes(&self) {
        let (mut count, mut to_ns) = (Count::ZERO, 0);
        for hole in self.holes() {
            count += hole.count;
            to_ns = to_ns.max(hole.to_ns);
        }
        if !count.is_zero() {
            outlet::tell(&format!(
                "longtake: note: the ring has overwritten {} packets, the last of them before {}; --since that time extracts \
                 what is whole",
                outlet::number(count.packets),
                utc(Timestamp::from_nanos(to_ns))
            ));
        }
    }
}

/// A filter expression, compiled for each link type that comes up.
#[derive(Debug)]
pub struct Filter {
    expression: String,
    programs: HashMap<u16, Program>,
}

impl Filter {
    /// An empty expression accepts everything.
    pub fn new(expression: &str) -> Self {
        Self { expression: expression.trim().to_owned(), programs: HashMap::new() }
    }

    /// Whether everything is accepted.
    pub fn is_empty(&self) -> bool {
        self.expression.is_empty()
    }

    /// Whether a packet is accepted.
    ///
    /// # Errors
    /// If the expression can't be compiled for the link type.
    pub fn accepts(&mut self, interface: &Interface, packet: &ReadPacket<'_>) -> Result<bool> {
        if self.expression.is_empty() {
            return Ok(true);
        }
        let link_type = interface.link_type;
        if !self.programs.contains_key(&link_type.0) {
            let program = Program::compile(&self.expression, link_type, 0)?;
            self.programs.insert(link_type.0, program);
        }
        let program = &self.programs[&link_type.0];
        Ok(program.matches(packet.data, packet.original_length))
    }
}

/// Bytes gathered before they are written.
const OUT_BYTES: usize = 4 << 20;

struct FileVisitor {
    exporter: Exporter,
    out: Vec<u8>,
    target: NewFile,
    stopped: Stopped,
    written: u64,
    filter: Filter,
    /// Interface numbers in the file, to spare a look-up by description.
    numbers: HashMap<Interface, u32>,
    packets: u64,
    unreadable: Unread,
    recovered: Recovered,
    bar: ProgressBar,
}

impl FileVisitor {
    fn number(&mut self, interface: &Interface) -> u32 {
        if let Some(&number) = self.numbers.get(interface) {
            return number;
        }
        let number = self.exporter.interface(interface, &mut self.out);
        self.numbers.insert(interface.clone(), number);
        number
    }

    fn write_out(&mut self, at_least: usize) -> Result<()> {
        if self.out.len() >= at_least {
            self.target.put(&self.out)?;
            self.written += self.out.len() as u64;
            self.out.clear();
            (self.stopped)()?;
        }
        Ok(())
    }
}

impl Visitor for FileVisitor {
    type Error = anyhow::Error;

    fn packet(
        &mut self,
        interface: &Interface,
        packet: &ReadPacket<'_>,
        block: &Block<'_>,
    ) -> Result<()> {
        if !self.filter.accepts(interface, packet)? {
            return Ok(());
        }
        let number = self.number(interface);
        self.exporter.packet(number, packet, block, &mut self.out)?;
        self.packets += 1;
        self.write_out(OUT_BYTES)
    }

    fn blocks(
        &mut self,
        interfaces: &[Interface],
        blocks: &[u8],
        record: &ChunkRecord,
    ) -> Result<bool> {
        if !self.filter.is_empty() {
            return Ok(false);
        }
        if !self.exporter.takes_blocks() {
            return Ok(false);
        }
        let numbers: Vec<u32> = interfaces.iter().map(|i| self.number(i)).collect();
        if numbers.iter().enumerate().all(|(at, &number)| at as u32 == number) {
            self.write_out(1)?;
            self.target.put(blocks)?;
            self.written += blocks.len() as u64;
        } else {
            for block in Blocks::new(blocks) {
                let block = block?;
                let packet = read_packet(&block)?;
                let Some(&number) = numbers.get(packet.interface as usize) else { continue };
                self.exporter.packet(number, &packet, &block, &mut self.out)?;
                self.write_out(OUT_BYTES)?;
            }
        }
        self.packets += u64::from(record.summary.packets);
        Ok(true)
    }

    fn recovered(&mut self, entry: &Entry, _why: &Unreadable) -> Result<()> {
        self.recovered.enter(entry);
        Ok(())
    }

    fn lost(&mut self, entry: &Entry, why: &Unreadable) -> Result<()> {
        self.unreadable.enter(entry, why);
        Ok(())
    }

    fn progress(&mut self, done: u64, of: u64) -> Result<()> {
        self.bar.set_length(of);
        self.bar.set_position(done);
        (self.stopped)()
    }
}
