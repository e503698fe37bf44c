//! Capture files looked into: by our own reader, and by the tools that judge us.

use std::path::Path;

use base::Timestamp;
use format::{Interface, Packet};
use source::capture_file::CaptureFile;
use source::synthetic::{Checker, Options};
use source::{Ended, Loss, Sink};

use super::{Ran, run, tool};

/// One packet of a file.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Frame {
    /// ns since 1970.
    pub time: u64,
    /// Length on the wire in bytes.
    pub original_length: u32,
    /// What is kept of it.
    pub data: Vec<u8>,
    /// Its interface, by number.
    pub interface: u32,
}

/// A file's contents.
#[derive(Debug, Default)]
pub struct Contents {
    /// Its interfaces.
    pub interfaces: Vec<Interface>,
    /// Its packets, in order.
    pub frames: Vec<Frame>,
}

impl Sink for Contents {
    fn interface(&mut self, interface: &Interface) -> u32 {
        self.interfaces.push(interface.clone());
        self.interfaces.len() as u32 - 1
    }
    fn packet(&mut self, packet: &Packet<'_>) -> Result<(), Ended> {
        self.frames.push(Frame {
            time: packet.timestamp.as_nanos(),
            original_length: packet.original_length,
            data: packet.data.to_vec(),
            interface: packet.interface,
        });
        Ok(())
    }
    fn lost(&mut self, _: u32, _: Loss, _: u64, _: u64) {}
    fn tick(&mut self, _: Timestamp) -> Result<(), Ended> {
        Ok(())
    }
}

/// Reads a whole capture file.
#[track_caller]
pub fn read(path: &Path) -> Contents {
    let mut contents = Contents::default();
    into(path, &mut contents);
    contents
}

/// Runs a whole capture file into a sink.
#[track_caller]
pub fn into(path: &Path, sink: &mut impl Sink) {
    let file = CaptureFile::open(path).unwrap_or_else(|e| panic!("opening {path:?}: {e}"));
    let summary = file.run(sink).unwrap_or_else(|e| panic!("reading {path:?}: {e}"));
    assert!(summary.complete);
}

/// Synthetic packets held against what was generated.
pub struct Synthetic {
    /// What they were found to be.
    pub checker: Checker,
    /// Time, queue and sequence number of each, in the file's order.
    pub packets: Vec<(u64, u16, u64)>,
}

impl Synthetic {
    /// The sequence numbers, one by one, if there is only one queue.
    pub fn sequences(&self) -> impl Iterator<Item = u64> + '_ {
        self.packets.iter().map(|&(_, _, sequence)| sequence)
    }

    /// First and last sequence number; fails unless they are all there in order between.
    #[track_caller]
    pub fn contiguous(&self) -> Option<(u64, u64)> {
        let mut numbers = self.sequences();
        let first = numbers.next()?;
        let mut last = first;
        for number in numbers {
            assert_eq!(number, last + 1, "after sequence number {last}");
            last = number;
        }
        Some((first, last))
    }
}

impl Sink for Synthetic {
    fn interface(&mut self, _: &Interface) -> u32 {
        0
    }
    fn packet(&mut self, packet: &Packet<'_>) -> Result<(), Ended> {
        let found = self.checker.check(packet.data, packet.original_length);
        let (queue, sequence) = found.unwrap_or_else(|wrong| panic!("{wrong}"));
        self.packets.push((packet.timestamp.as_nanos(), queue, sequence));
        Ok(())
    }
    fn lost(&mut self, _: u32, _: Loss, _: u64, _: u64) {}
    fn tick(&mut self, _: Timestamp) -> Result<(), Ended> {
        Ok(())
    }
}

/// Reads a file of synthetic packets; every byte of each must be right.
#[track_caller]
pub fn synthetic(path: &Path, options: &Options) -> Synthetic {
    let mut found = Synthetic { checker: Checker::new(options), packets: Vec::new() };
    into(path, &mut found);
    found
}

/// What a Wireshark tool complains, without its remark on who runs it.
fn complaints(ran: &Ran) -> String {
    let remark = |line: &&str| !line.starts_with("Running as user") && !line.is_empty();
    ran.stderr.lines().filter(remark).collect::<Vec<_>>().join("\n")
}

/// The lines that `tshark` prints for a file with these arguments; any complaint fails the test.
#[track_caller]
pub fn tshark(path: &Path, arguments: &[&str]) -> Vec<String> {
    // Dissection is not what is asked here, and would take most of the time.
    let mut command = tool("tshark", "tshark");
    let ran = run(command.args(["-n", "-r"]).arg(path).args(arguments)).code(0);
    assert_eq!(complaints(&ran), "", "tshark on {}", path.display());
    ran.text().lines().map(str::to_owned).collect()
}

/// How many packets `capinfos` finds in a file; any complaint fails the test.
#[track_caller]
pub fn capinfos(path: &Path) -> u64 {
    let mut command = tool("capinfos", "wireshark-common");
    let ran = run(command.args(["-c", "-M", "-T", "-r"]).arg(path)).code(0);
    assert_eq!(complaints(&ran), "", "capinfos on {}", path.display());
    let text = ran.text();
    let count = text.trim_end().rsplit('\t').next().and_then(|field| field.parse().ok());
    count.unwrap_or_else(|| panic!("capinfos printed {text}"))
}
