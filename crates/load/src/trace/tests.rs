//! Traces made from what the formats' own descriptions say, and traces that are not as they must be.

use std::io::Cursor;

use base::memory::{MemoryBank, MemoryDrive};
use base::{Bank, Duration, Geometry};

use super::*;

fn inputs<'a>(files: &[&'a [u8]]) -> Vec<Input<'a>> {
    let input = |(index, bytes): (usize, &&'a [u8])| Input {
        name: format!("trace.{index}"),
        bytes: Box::new(Cursor::new(*bytes)),
    };
    files.iter().enumerate().map(input).collect()
}

fn read(files: &[&[u8]]) -> Result<Trace, TraceError> {
    Trace::read(inputs(files), &Choice::default())
}

fn text(lines: &str) -> Result<Trace, TraceError> {
    read(&[lines.as_bytes()])
}

/// Time in nanoseconds, offset, length, and whether it writes.
fn requests(trace: &Trace) -> Vec<(u64, u64, u32, bool)> {
    let all = trace.requests.iter();
    all.map(|r| (r.at_ns, r.offset, r.length, r.verb == Verb::Write)).collect()
}

/// An event as include/uapi/linux/blktrace_api.h lays it out, on processor 1, of device 8:16 unless `minor` says otherwise.
#[derive(Clone, Copy)]
struct Event {
    time: u64,
    sector: u64,
    bytes: u32,
    action: u32,
    minor: u32,
    sequence: u32,
    data: u16,
}

const Q_READ: u32 = 0x0011_0001;
const Q_WRITE: u32 = 0x0012_0001;
const Q_FUA: u32 = 0x801A_0001;
const Q_FLUSH: u32 = 0x001E_0001;
const Q_DISCARD: u32 = 0x2012_0001;
const D_READ: u32 = 0x0041_0007;
const D_WRITE: u32 = 0x0042_0007;
const D_PASSTHROUGH: u32 = 0x0241_0007;
const C_READ: u32 = 0x0081_0008;
const N_MESSAGE: u32 = 0x0400_0002;

impl Event {
    fn new(time: u64, sector: u64, bytes: u32, action: u32) -> Self {
        Self { time, sector, bytes, action, minor: 16, sequence: 0, data: 0 }
    }

    /// Its bytes; the other byte order if `big`.
    fn bytes(self, big: bool) -> Vec<u8> {
        let mut all = Vec::new();
        let mut put = |number: u64, size: usize| {
            let mut bytes = number.to_le_bytes()[..size].to_vec();
            if big {
                bytes.reverse();
            }
            all.extend(bytes);
        };
        put(0x6561_7407, 4);
        put(self.sequence.into(), 4);
        put(self.time, 8);
        put(self.sector, 8);
        put(self.bytes.into(), 4);
        put(self.action.into(), 4);
        put(4711, 4);
        put((8 << 20 | self.minor).into(), 4);
        put(1, 4);
        put(0, 2);
        put(self.data.into(), 2);
        all.extend(vec![0x55; self.data.into()]);
        all
    }
}

fn file(events: &[Event]) -> Vec<u8> {
    events.iter().flat_map(|event| event.bytes(false)).collect()
}

#[test]
fn the_queue_events_of_all_processors_are_merged_by_time() {
    let first = file(&[
        Event { data: 5, ..Event::new(1000, 0, 0, N_MESSAGE) },
        Event::new(5000, 8, 4096, Q_READ),
        Event::new(5500, 8, 4096, D_READ),
        Event::new(9000, 8, 4096, C_READ),
        Event::new(9000, 0, 0, Q_FLUSH),
        Event::new(9500, 64, 65536, Q_DISCARD),
    ]);
    let second = file(&[Event::new(4000, 16, 8192, Q_WRITE), Event::new(7000, 24, 512, Q_FUA)]);
    let trace = read(&[&first, &second, b""]).unwrap();
    assert_eq!(
        requests(&trace),
        [(0, 8192, 8192, true), (1000, 4096, 4096, false), (3000, 12288, 512, true)]
    );
    assert_eq!(trace.requests.iter().map(|r| r.fua).collect::<Vec<_>>(), [false, false, true]);
    let Summary { format, events, device, reads, writes, left_out, span_ns, end_bytes, .. } =
        trace.summary;
    assert_eq!((format, events, device.as_str()), (Format::Blktrace, Some(Events::Queue), "8,16"));
    assert_eq!(reads, Moved { requests: 1, bytes: 4096 });
    assert_eq!(writes, Moved { requests: 2, bytes: 8704 });
    assert_eq!((span_ns, end_bytes), (Some(3000), 16384));
    assert_eq!(left_out.words(), ["1 flush", "1 discard"]);
}

#[test]
fn a_trace_without_queue_events_has_its_issue_events_and_either_can_be_asked_for() {
    let issued = [Event::new(10, 0, 512, D_WRITE), Event::new(20, 0, 0, D_PASSTHROUGH)];
    let trace = read(&[&file(&issued)]).unwrap();
    assert_eq!(requests(&trace), [(0, 0, 512, true)]);
    assert_eq!(trace.summary.events, Some(Events::Issue));
    assert_eq!(trace.summary.left_out.words(), ["1 passed-through command"]);
    let both = file(&[issued[0], Event::new(30, 8, 4096, Q_READ), Event::new(40, 8, 4096, D_READ)]);
    assert_eq!(requests(&read(&[&both]).unwrap()), [(0, 4096, 4096, false)]);
    let choice = Choice { events: Some(Events::Issue), ..Choice::default() };
    let trace = Trace::read(inputs(&[&both]), &choice).unwrap();
    assert_eq!(requests(&trace), [(0, 0, 512, true), (30, 4096, 4096, false)]);
}

#[test]
fn the_other_byte_order_is_read_and_missing_events_are_counted() {
    let numbered = |sequence| Event { sequence, ..Event::new(u64::from(sequence), 8, 512, Q_READ) };
    let events = [numbered(3), numbered(4), numbered(8)];
    let swapped: Vec<u8> = events.iter().flat_map(|event| event.bytes(true)).collect();
    let (other, own) = (read(&[&swapped]).unwrap(), read(&[&file(&events)]).unwrap());
    assert_eq!(other, own);
    assert_eq!(own.summary.lost_events, 3);
}

#[test]
fn damaged_files_of_blktrace_are_refused_with_the_byte_and_what_to_do() {
    let good = file(&[Event::new(1, 0, 512, Q_READ), Event::new(2, 0, 512, Q_READ)]);
    let damaged = |change: fn(&mut Vec<u8>)| {
        let mut bytes = good.clone();
        change(&mut bytes);
        read(&[&bytes]).unwrap_err().to_string()
    };
    for (change, expected) in [
        ((|b| b.truncate(70)) as fn(&mut Vec<u8>), "byte 48: the last record has only 22 of 48"),
        (|b| b[49] = 0, "byte 48: a record begins with 0x65610007 instead"),
        (|b| b[48] = 8, "byte 48: the record is of version 8"),
        (|b| b[94] = 9, "byte 48: only 0 of the 9 bytes"),
        (|b| b[48..52].reverse(), "byte 48: a record begins with"),
        (|b| b[64..72].fill(0xFF), "byte 48: no drive has a sector"),
        (|b| b[0] = 8, "byte 0: the record is of version 8"),
        (|b| b[3] = 0, "in no known format"),
        (|b| b.clear(), "is empty"),
    ] {
        let error = damaged(change);
        assert!(error.contains("trace.0") && error.contains(expected), "{expected}: {error}");
    }
    assert!(
        damaged(|b| b.truncate(70)).contains("truncate -s 48"),
        "the remedy keeps what is whole"
    );
}

#[test]
fn the_device_with_most_requests_is_replayed_unless_another_is_named() {
    let other = Event { minor: 17, ..Event::new(3, 8, 512, Q_READ) };
    let events = [other, Event::new(1, 0, 512, Q_READ), Event::new(2, 8, 512, Q_WRITE)];
    let trace = read(&[&file(&events)]).unwrap();
    assert_eq!((trace.summary.device.as_str(), trace.requests.len()), ("8,16", 2));
    assert_eq!(trace.summary.left_out.words(), ["1 request of 1 other device"]);
    let named = |device: &str| {
        let choice = Choice { device: Some(device.to_owned()), ..Choice::default() };
        Trace::read(inputs(&[&file(&events)]), &choice)
    };
    assert_eq!(named("8,17").unwrap().summary.left_out.other_devices, 2);
    let error = named("8,18").unwrap_err().to_string();
    assert!(error.contains("name one of 8,16, 8,17"), "{error}");
}

#[test]
fn a_log_of_fio_version_3_has_times_in_microseconds() {
    let trace = text(
        "fio version 3 iolog\n36 /tmp/f add\n216 /tmp/f open\n223 /tmp/f read 249856 4096\n\
         8728 /tmp/f write 3104768 8192\n8730 /tmp/f sync 0 0\n8731 /tmp/f trim 0 4096\n9000 /tmp/f close\n",
    )
    .unwrap();
    assert_eq!(requests(&trace), [(0, 249_856, 4096, false), (8_505_000, 3_104_768, 8192, true)]);
    assert_eq!(trace.summary.device, "/tmp/f");
    assert_eq!(trace.summary.left_out.words(), ["1 flush", "1 discard"]);
}

#[test]
fn a_log_of_fio_version_2_has_waits_or_no_times() {
    let log = "fio version 2 iolog\nf add\nf open\nf read 0 4096\nf wait 250 0\nf write 4096 512\nf wait 50 0\nf read 0 512\n";
    let trace = text(log).unwrap();
    let times: Vec<u64> = trace.requests.iter().map(|request| request.at_ns).collect();
    assert_eq!(times, [0, 250_000, 300_000], "each wait counts from the one before");
    let without = text("fio version 2 iolog\nf add\nf read 0 4096\nf read 4096 4096\n").unwrap();
    assert_eq!(without.summary.span_ns, None);
    let error = Fitted::of(&without, &drive(), Fitting { speed: Speed::Recorded(1.0), ..FASTEST });
    assert!(error.unwrap_err().to_string().contains("--asap"));
    assert_eq!(Fitted::of(&without, &drive(), FASTEST).unwrap().reads.requests, 2);
}

#[test]
fn csv_formats_are_recognized_with_and_without_their_header() {
    // The first line of usr_0 of MSR Cambridge, and lines as the other descriptions have them.
    for (format, header, lines, device, expected) in [
        (
            Format::Msr,
            "Timestamp,Hostname,DiskNumber,Type,Offset,Size,ResponseTime",
            "128166372003061629,usr,0,Read,7014609920,24576,41286\n128166372003061639,usr,0,Write,512,512,7\n",
            "usr_0",
            [(0, 7_014_609_920, 24_576, false), (1000, 512, 512, true)],
        ),
        (
            Format::Alibaba,
            "device_id,opcode,offset,length,timestamp",
            "0,R,126703644672,4096,1577808000000626\n0,W,0,512,1577808000000726\n",
            "0",
            [(0, 126_703_644_672, 4096, false), (100_000, 0, 512, true)],
        ),
        (
            Format::Tencent,
            "Timestamp,Offset,Size,IOType,VolumeID",
            "1538323200,12910952,128,0,1063\n1538323200,6338688,8,1,1063\n",
            "1063",
            [(0, 12_910_952 * 512, 65_536, false), (500_000_000, 6_338_688 * 512, 4096, true)],
        ),
    ] {
        for trace in [lines.to_owned(), format!("{header}\r\n{lines}")] {
            let trace = text(&trace).unwrap();
            assert_eq!(trace.summary.format, format);
            assert_eq!(trace.summary.device, device);
            assert_eq!(requests(&trace), expected);
        }
    }
    assert!(text("1538323200,0,8,0,7\n").unwrap().summary.whole_seconds);
}

#[test]
fn wrong_lines_are_refused_with_their_number_and_what_to_do() {
    const MSR: &str = "1,usr,0,Read,0,512,1\n";
    for (lines, expected) in [
        (
            format!("{MSR}2,usr,0,Read,0,512\n"),
            "line 2: it has 6 fields, and MSR Cambridge CSV has 7",
        ),
        (format!("{MSR}\n\n2,usr,0,Raed,0,512,1\n"), "line 4: 'Raed' is neither Read nor Write"),
        (format!("{MSR}2,usr,0,Read,-1,512,1\n"), "line 2: the offset '-1' is no whole number"),
        (
            format!("{MSR}999999999999999999,usr,0,Read,0,512,1\n"),
            "line 2: the time 999999999999999999 is too large",
        ),
        (format!("{MSR}2,usr,0,Read,0,4294967296,1\n"), "line 2: a request of 4294967296 bytes"),
        (format!("{MSR}2,usr,0,Read,9223372036854775807,1,1\n"), "line 2: no drive has a byte"),
        (format!("{MSR}{}", "x".repeat(70_000)), "line 2: it is longer than 64 KiB"),
        (
            "fio version 3 iolog\n5 f read 0\n".to_owned(),
            "line 2: it has 4 fields, and a line of version 3 has 3 or 5",
        ),
        (
            "fio version 3 iolog\n5 f wait 9 0\n".to_owned(),
            "line 2: version 3 has times instead of waits",
        ),
        ("fio version 2 iolog\nf raed 0 512\n".to_owned(), "line 2: 'raed' is no action"),
        ("fio version 2 iolog\nf opne\n".to_owned(), "line 2: 'opne' is no action on a file"),
        ("fio version 9 iolog\n".to_owned(), "line 1: it must be"),
        ("fio version 3 iolog\n5 f sync 0 0\n".to_owned(), "nothing to replay; left out: 1 flush"),
        (
            format!("{MSR}2,usr,0,Read,0,0,1\n").replace("0,512", "0,0"),
            "left out: 2 requests of no bytes",
        ),
        ("\u{1f}\u{8b}".to_owned(), "in no known format"),
        ("1,2,3\n".to_owned(), "in no known format"),
    ] {
        let error = text(&lines).unwrap_err().to_string();
        assert!(error.contains(expected), "{expected}: {error}");
    }
    let error = read(&[&[0x1F, 0x8B, 8, 0]]).unwrap_err().to_string();
    assert!(error.contains("gunzip"), "{error}");
}

/// As fast as possible, within the drive.
const FASTEST: Fitting = Fitting { speed: Speed::Fastest, wrap: false, depth: None };

fn drive() -> Geometry {
    let drive = MemoryDrive { capacity_bytes: 1 << 20, ..MemoryDrive::default() };
    let mut geometry = MemoryBank::without_data(vec![drive]).drives()[0].clone();
    (geometry.block_bytes, geometry.transfer_max_bytes) = (4096, 64 << 10);
    geometry
}

#[test]
fn requests_become_whole_blocks_that_the_drive_takes_at_once() {
    let trace =
        text("fio version 3 iolog\n0 f read 4096 4096\n10 f read 4000 200\n20 f write 0 131072\n")
            .unwrap();
    let twice = Fitting { speed: Speed::Recorded(2.0), ..FASTEST };
    let FittedTrace { workload, fitted } = FittedTrace::new(&trace, &drive(), twice).unwrap();
    assert_eq!((fitted.widened, fitted.split, fitted.commands), (1, 1, 4));
    assert_eq!(fitted.reads, Moved { requests: 2, bytes: 4096 + 8192 });
    assert_eq!(fitted.span_ns, Some(10_000));
    let commands = workload.streams[0].trace.as_ref().unwrap().requests().unwrap();
    let places: Vec<_> = commands.iter().map(|r| (r.at_ns, r.offset, r.length)).collect();
    assert_eq!(
        places,
        [(0, 4096, 4096), (5000, 0, 8192), (10_000, 0, 65_536), (10_000, 65_536, 65_536)]
    );
    let text = workload.to_toml();
    let again = crate::Workload::from_toml(&text).unwrap();
    assert_eq!(again, workload, "its description stands for it");
    let error = crate::Plan::new(&again, &[drive()]).unwrap_err().to_string();
    assert!(error.contains("longtake measure replay"), "{error}");
}

#[test]
fn requests_beyond_the_drive_are_refused_or_wrapped() {
    let trace = text(
        "fio version 3 iolog\n0 f read 1048576 4096\n1 f read 2093056 8192\n2 f read 0 4096\n",
    )
    .unwrap();
    let error = Fitted::of(&trace, &drive(), FASTEST).unwrap_err();
    assert!(matches!(error, UnfitError::Beyond { end_bytes: 2_101_248, requests: 2, .. }));
    assert!(error.to_string().contains("--wrap"), "{error}");
    let wrap = Fitting { wrap: true, ..FASTEST };
    let FittedTrace { workload, fitted } = FittedTrace::new(&trace, &drive(), wrap).unwrap();
    assert_eq!(fitted.wrapped, 2);
    let commands = workload.streams[0].trace.as_ref().unwrap().requests().unwrap();
    let places: Vec<u64> = commands.iter().map(|request| request.offset).collect();
    assert_eq!(places, [0, (1 << 20) - 8192, 0], "none crosses the end");
    let long = text("fio version 3 iolog\n0 f read 0 2097152\n").unwrap();
    assert!(matches!(Fitted::of(&long, &drive(), wrap), Err(UnfitError::Longer { .. })));
}

#[test]
fn writes_and_what_comes_later_are_left_out_on_request() {
    let log = "fio version 3 iolog\n0 f write 0 512\n5 f read 0 512\n1000 f read 0 512\n2000 f read 0 512\n";
    let choice =
        Choice { reads_only: true, time: Some(Duration::from_millis(1)), ..Choice::default() };
    let trace = Trace::read(inputs(&[log.as_bytes()]), &choice).unwrap();
    assert_eq!(trace.requests.len(), 2);
    let left_out = trace.summary.left_out.words();
    assert_eq!(left_out, ["1 write (--reads-only)", "1 request after the time of --for"]);
}
