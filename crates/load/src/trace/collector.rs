//! Collects the requests of a trace as a reader finds them, and makes a trace of those of one device.

use std::collections::HashMap;

use super::{Choice, Events, Format, LeftOut, Moved, Request, Summary, Trace, TraceError};
use crate::interval::Verb;

/// Devices that a message names, at most.
const NAMED_MAX: usize = 8;

/// Nanoseconds of a second.
const SECOND_NS: u64 = 1_000_000_000;

/// What a reader finds, as it finds it.
#[derive(Debug)]
pub(super) struct Collector {
    choice: Choice,
    requests: Vec<Request>,
    /// Place of each device in `devices`.
    places: HashMap<String, u16>,
    devices: Vec<Device>,
    /// Place of the last device: most traces have long runs of one.
    last: usize,
    /// The trace has no times.
    pub untimed: bool,
}

/// A device of a trace.
#[derive(Debug, Default)]
struct Device {
    name: String,
    /// Reads and writes.
    requests: u64,
    left_out: LeftOut,
}

/// A read or write as a reader found it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Found {
    /// Nanoseconds from any beginning.
    pub at_ns: u64,
    pub offset: u64,
    pub length: u64,
    pub verb: Verb,
    pub fua: bool,
}

impl Collector {
    pub fn new(choice: &Choice) -> Self {
        Self {
            choice: choice.clone(),
            requests: Vec::new(),
            places: HashMap::new(),
            devices: Vec::new(),
            last: 0,
            untimed: false,
        }
    }

    /// Adds a read or write of a device.
    ///
    /// # Errors
    /// What is wrong with it, and what to do.
    pub fn add(&mut self, device: &str, found: Found) -> Result<(), String> {
        let Found { at_ns, offset, length, verb, fua } = found;
        if length == 0 {
            self.left_out(device)?.zero_length += 1;
            return Ok(());
        }
        let length = u32::try_from(length).map_err(|_| {
            format!("a request of {length} bytes is longer than 4 GiB: remove or split it")
        })?;
        if offset.checked_add(length.into()).is_none_or(|end| end > i64::MAX as u64) {
            return Err(format!("no drive has a byte {offset}: remove the request"));
        }
        let place = self.place(device)?;
        self.devices[place].requests += 1;
        if self.choice.device.as_ref().is_none_or(|wanted| wanted == device) {
            let device = place as u16;
            self.requests.push(Request { at_ns, offset, length, device, verb, fua });
        }
        Ok(())
    }

    /// What of a device is not replayed, to be counted.
    ///
    /// # Errors
    /// If there are too many devices.
    pub fn left_out(&mut self, device: &str) -> Result<&mut LeftOut, String> {
        let place = self.place(device)?;
        Ok(&mut self.devices[place].left_out)
    }

    fn place(&mut self, device: &str) -> Result<usize, String> {
        if self.devices.get(self.last).is_none_or(|last| last.name != device) {
            self.last = match self.places.get(device) {
                Some(&place) => place.into(),
                None => {
                    let place = u16::try_from(self.devices.len()).map_err(|_| {
                        "the trace has more than 65,536 devices: split it by device".to_owned()
                    })?;
                    self.places.insert(device.to_owned(), place);
                    let name = device.to_owned();
                    self.devices.push(Device { name, ..Device::default() });
                    place.into()
                }
            };
        }
        Ok(self.last)
    }

    /// The device that is wanted, or the first of those with most requests.
    fn chosen(&self) -> Result<Device, TraceError> {
        let mut all: Vec<&Device> = self.devices.iter().filter(|d| d.requests > 0).collect();
        // Stable: of those with as many, the first comes first.
        all.sort_by_key(|device| std::cmp::Reverse(device.requests));
        let found = match &self.choice.device {
            Some(wanted) => all.iter().find(|device| device.name == *wanted),
            None => all.first(),
        };
        if let Some(device) = found {
            let others = all.len() as u64 - 1;
            let requests: u64 = all.iter().map(|device| device.requests).sum();
            let other_devices = requests - device.requests;
            let left_out = LeftOut { other_devices, devices: others, ..device.left_out };
            return Ok(Device { name: device.name.clone(), requests: device.requests, left_out });
        }
        if let Some(device) = self.choice.device.clone() {
            let known = all.iter().take(NAMED_MAX).map(|device| device.name.clone()).collect();
            return Err(TraceError::NoDevice { device, known });
        }
        let left_out: Vec<String> = self.devices.iter().flat_map(|d| d.left_out.words()).collect();
        Err(TraceError::Empty { left_out })
    }

    /// Whether nothing was found, not even a flush.
    pub fn is_empty(&self) -> bool {
        self.devices.is_empty()
    }

    /// The trace.
    ///
    /// # Errors
    /// If there is nothing to replay.
    pub fn finish(
        self,
        format: Format,
        files: Vec<String>,
        events: Option<Events>,
        lost_events: u64,
    ) -> Result<Trace, TraceError> {
        let Device { name, mut left_out, .. } = self.chosen()?;
        let place = self.places[&name];
        let mut requests = self.requests;
        requests.retain(|request| request.device == place);
        if !requests.is_sorted_by_key(|request| request.at_ns) {
            requests.sort_by_key(|request| request.at_ns);
        }
        let whole_seconds = format == Format::Tencent;
        if whole_seconds {
            spread(&mut requests);
        }
        let first = requests.first().map_or(0, |request| request.at_ns);
        requests.iter_mut().for_each(|request| request.at_ns -= first);
        if let Some(time) = self.choice.time.filter(|_| !self.untimed) {
            let wanted = requests.partition_point(|request| request.at_ns <= time.as_nanos());
            left_out.later = (requests.len() - wanted) as u64;
            requests.truncate(wanted);
        }
        if self.choice.reads_only {
            let before = requests.len();
            requests.retain(|request| request.verb == Verb::Read);
            left_out.writes = (before - requests.len()) as u64;
        }
        if requests.is_empty() {
            return Err(TraceError::Empty { left_out: left_out.words() });
        }
        let moved = |verb| {
            let of_verb = requests.iter().filter(|request| request.verb == verb);
            of_verb.fold(Moved::default(), |sum, request| Moved {
                requests: sum.requests + 1,
                bytes: sum.bytes + u64::from(request.length),
            })
        };
        let ends = requests.iter().map(|request| request.offset + u64::from(request.length));
        let summary = Summary {
            format,
            files,
            events,
            device: name,
            reads: moved(Verb::Read),
            writes: moved(Verb::Write),
            span_ns: requests.last().filter(|_| !self.untimed).map(|last| last.at_ns),
            whole_seconds,
            end_bytes: ends.max().unwrap_or(0),
            lost_events,
            left_out,
        };
        Ok(Trace { summary, requests })
    }
}

/// Spreads requests whose times are whole seconds evenly over their second: all at its beginning would be a burst that never was.
fn spread(requests: &mut [Request]) {
    for second in requests.chunk_by_mut(|a, b| a.at_ns == b.at_ns) {
        let count = second.len() as u64;
        for (index, request) in second.iter_mut().enumerate() {
            request.at_ns += index as u64 * SECOND_NS / count;
        }
    }
}
