//! Block traces as lines of fields between commas. MSR Cambridge: README of SNIA IOTTA 388 (times are Windows file times, of
//! 100 ns; bytes). Alibaba: README of github.com/alibaba/block-traces (microseconds; bytes). Tencent: README of SNIA IOTTA 27917
//! (whole seconds; sectors of 512 bytes).

use super::collector::{Collector, Found};
use super::lines::{Lines, number, times};
use super::{Format, Input, TraceError};
use crate::interval::Verb;

/// Names of the columns, as the traces' own descriptions have them.
const MSR: [&str; 7] =
    ["Timestamp", "Hostname", "DiskNumber", "Type", "Offset", "Size", "ResponseTime"];
const ALIBABA: [&str; 5] = ["device_id", "opcode", "offset", "length", "timestamp"];
const TENCENT: [&str; 5] = ["Timestamp", "Offset", "Size", "IOType", "VolumeID"];

/// Bytes of Tencent's sectors.
const SECTOR_BYTES: u64 = 512;

/// Columns of each format.
const COLUMNS: [(Format, &[&str]); 3] =
    [(Format::Msr, &MSR), (Format::Alibaba, &ALIBABA), (Format::Tencent, &TENCENT)];

/// The format of a file whose first line is this, if it is one of these.
pub(super) fn recognize(head: &[u8]) -> Option<Format> {
    let line = head.split(|&byte| byte == b'\n').next()?;
    let fields = fields(std::str::from_utf8(line).ok()?.trim());
    if let Some((format, _)) = COLUMNS.into_iter().find(|(_, columns)| is_header(&fields, columns))
    {
        return Some(format);
    }
    match fields.as_slice() {
        [_, _, _, kind, _, _, _] if direction(kind, "Read", "Write").is_ok() => Some(Format::Msr),
        [_, kind, _, _, _] if direction(kind, "R", "W").is_ok() => Some(Format::Alibaba),
        all @ [_, _, _, "0" | "1", _] if all.iter().all(|field| field.parse::<u64>().is_ok()) => {
            Some(Format::Tencent)
        }
        _ => None,
    }
}

/// Reads a trace in one of these formats.
///
/// # Errors
/// For the first line that is not as its format has it.
pub(super) fn read(
    input: Input<'_>,
    format: Format,
    collector: &mut Collector,
) -> Result<(), TraceError> {
    let mut lines = Lines::of(input);
    let columns = COLUMNS.into_iter().find(|(of, _)| *of == format).map_or(&[][..], |(_, c)| c);
    let mut device = String::new();
    loop {
        let first = lines.number() == 0;
        let Some(line) = lines.next()? else { return Ok(()) };
        let fields = fields(line);
        if first && is_header(&fields, columns) {
            continue;
        }
        let found = if fields.len() == columns.len() {
            request(&fields, format, &mut device)
        } else {
            Err(format!(
                "it has {} fields, and {format} has {}: {}; correct the line, or remove it",
                fields.len(),
                columns.len(),
                columns.join(",")
            ))
        };
        if let Err(problem) = found.and_then(|found| collector.add(&device, found)) {
            return Err(lines.wrong(problem));
        }
    }
}

fn fields(line: &str) -> Vec<&str> {
    line.split(',').map(str::trim).collect()
}

fn is_header(fields: &[&str], columns: &[&str]) -> bool {
    fields.len() == columns.len()
        && fields.iter().zip(columns).all(|(field, column)| field.eq_ignore_ascii_case(column))
}

/// The request of a line with the right number of fields; `device` becomes the name of its device.
fn request(fields: &[&str], format: Format, device: &mut String) -> Result<Found, String> {
    device.clear();
    let found = |at_ns, offset, length, verb| Found { at_ns, offset, length, verb, fua: false };
    match *fields {
        [time, host, disk, kind, offset, size, response] if format == Format::Msr => {
            device.extend([host, "_", disk]);
            number(response, "response time")?;
            let at_ns = times(number(time, "time")?, 100, "time")?;
            let verb = direction(kind, "Read", "Write")?;
            Ok(found(at_ns, number(offset, "offset")?, number(size, "size")?, verb))
        }
        [id, opcode, offset, length, time] if format == Format::Alibaba => {
            device.push_str(id);
            let at_ns = times(number(time, "time")?, 1000, "time")?;
            let verb = direction(opcode, "R", "W")?;
            Ok(found(at_ns, number(offset, "offset")?, number(length, "length")?, verb))
        }
        [time, offset, size, kind, volume] => {
            device.push_str(volume);
            let at_ns = times(number(time, "time")?, 1_000_000_000, "time")?;
            let offset = times(number(offset, "offset")?, SECTOR_BYTES, "offset")?;
            let length = times(number(size, "size")?, SECTOR_BYTES, "size")?;
            Ok(found(at_ns, offset, length, direction(kind, "0", "1")?))
        }
        _ => Err("it has another number of fields than its format: correct the line".to_owned()),
    }
}

/// Whether a field says read or write.
fn direction(text: &str, read: &str, write: &str) -> Result<Verb, String> {
    if text.eq_ignore_ascii_case(read) {
        Ok(Verb::Read)
    } else if text.eq_ignore_ascii_case(write) {
        Ok(Verb::Write)
    } else {
        Err(format!("'{text}' is neither {read} nor {write}: correct the line, or remove it"))
    }
}
