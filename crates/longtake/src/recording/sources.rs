//! From a source's description to threads' work: opens everything that needs rights, runs later.

use std::num::NonZero;

use anyhow::{Context, Result};
use base::Duration;
use format::LinkType;
use recorder::defaults;
use source::capture_file::CaptureFile;
use source::filter::Program;
use source::filtering::Filtering;
use source::generator::Generator;
use source::interface::{Capture, InterfaceOptions, InterfaceWarning, Link, LinkEvent};
use source::packer::{Packer, Pressure};
use source::producer::Producer;
use source::spec::{InterfaceSpec, SourceSpec, UdpSpec};
use source::stream::{self, Stream};
use source::synthetic::Synthetic;
use source::traffic::Traffic;
use source::udp::{Framing, Group, UdpOptions, UdpSource};

use super::observer::Rejections;
use super::options::Options;
use crate::instant::utc;

/// What one queue does in its thread. It hands in all its chunks before it returns its remarks
/// for the account.
pub type Work = Box<dyn FnOnce(Packer) -> Result<Vec<String>> + Send>;

/// A source, open.
pub struct Open {
    /// One for each queue.
    pub queues: Vec<Work>,
    /// What it does when buffers are full, and at the end.
    pub pressure: Pressure,
    /// What was asked for and not granted.
    pub warnings: Vec<String>,
    /// What is known of the packets that the filter rejects.
    pub rejections: Rejections,
    /// The interface's link, which may go down meanwhile.
    pub link: Option<Link>,
}

/// How packets are taken.
#[derive(Clone, Debug)]
pub struct Taking {
    /// A filter in tcpdump's language, or empty.
    pub filter: String,
    /// Bytes of each packet to keep; 0 keeps all.
    pub snap: u32,
    /// The kernel's buffer for each queue in bytes.
    pub kernel_buffer: usize,
    /// A block of a stream is delivered at this age at the latest.
    pub flush_interval: Duration,
}

impl Taking {
    /// As a recording's options say.
    pub fn of(options: &Options) -> Self {
        Self {
            filter: options.filter.clone(),
            snap: options.snap_bytes,
            kernel_buffer: options.kernel_buffer.0 as usize,
            flush_interval: defaults::block_age_max(options.flush_interval),
        }
    }
}

/// Checks a source and its filter by opening it, before files are created for what it delivers. A source that waits stays
/// open; any other is closed again, because it would drop what comes until the recording starts.
///
/// # Errors
/// As [`open`].
pub fn open_early(spec: &SourceSpec, taking: &Taking) -> Result<Option<Open>> {
    let source = open(spec, taking)?;
    Ok(matches!(source.pressure, Pressure::Waits).then_some(source))
}

/// Opens a source.
///
/// # Errors
/// If it can't be opened, or the filter is wrong.
pub fn open(spec: &SourceSpec, taking: &Taking) -> Result<Open> {
    if !taking.filter.trim().is_empty() {
        // Wrong everywhere or only for one link type: a mistake shows before anything is recorded.
        Program::compile(&taking.filter, LinkType::ETHERNET, taking.snap)?;
    }
    let pressure = match spec {
        SourceSpec::Interface(_) | SourceSpec::Udp(_) => Pressure::DropsAndDrains,
        other if other.can_wait() => Pressure::Waits,
        _ => Pressure::Drops,
    };
    let mut rejections = Rejections::of(&taking.filter);
    let (queues, warnings) = match spec {
        SourceSpec::Synthetic(options) => {
            let queues = Synthetic::open(options)?;
            (queues.into_iter().map(|queue| generated(queue, taking)).collect(), Vec::new())
        }
        SourceSpec::Traffic(options) => {
            let queues = Traffic::open(options)?;
            (queues.into_iter().map(|queue| generated(queue, taking)).collect(), Vec::new())
        }
        SourceSpec::Interface(spec) => open_interface(spec, taking, &mut rejections)?,
        SourceSpec::Udp(spec) => open_udp(spec, taking)?,
        SourceSpec::Stream { endpoint, block_bytes } => {
            let options = stream::Options {
                block_bytes: *block_bytes,
                flush_interval: taking.flush_interval,
            };
            let stream = Stream::open(endpoint, options)?;
            let mut warnings = Vec::new();
            if let Some(address) = stream.local_address() {
                warnings.push(format!("listening on {address}"));
            }
            if !taking.filter.trim().is_empty() {
                warnings
                    .push("the filter sees blocks of a stream, which are no packets".to_owned());
            }
            (vec![byte_stream(stream, taking)], warnings)
        }
        SourceSpec::CaptureFile(path) => (vec![file(CaptureFile::open(path)?, taking)], Vec::new()),
        SourceSpec::CaptureStdin => (vec![file(CaptureFile::stdin()?, taking)], Vec::new()),
        SourceSpec::Producer(producer) => (vec![produced(producer.clone(), taking)], Vec::new()),
    };
    let link = match spec {
        SourceSpec::Interface(spec) => Some(Link::open(&spec.name)?),
        _ => None,
    };
    Ok(Open { queues, pressure, warnings, rejections, link })
}

/// Opens the sockets of a network interface: the work of each, and warnings. The kernel filters.
fn open_interface(
    spec: &InterfaceSpec,
    taking: &Taking,
    rejections: &mut Rejections,
) -> Result<(Vec<Work>, Vec<String>)> {
    let mut options = InterfaceOptions::new(&spec.name);
    options.queues = spec.queues;
    options.promiscuous = spec.promiscuous;
    options.ring_bytes = taking.kernel_buffer;
    options.snap_length = taking.snap;
    options.filter.clone_from(&taking.filter);
    let capture = Capture::open(&options)?;
    let here = |w: &InterfaceWarning| matches!(w, InterfaceWarning::FilterInUserSpace { .. });
    if *rejections == Rejections::Counted && !capture.warnings.iter().any(here) {
        *rejections = Rejections::NotCounted;
    }
    let warnings = capture.warnings.iter().map(ToString::to_string).collect();
    let work = capture.queues.into_iter().map(|queue| -> Work {
        Box::new(move |mut packer| {
            let outcome = queue.run(&mut packer);
            packer.finish();
            Ok(outcome?.events.iter().map(link_event).collect())
        })
    });
    Ok((work.collect(), warnings))
}

/// Binds the sockets that receive datagrams: the work of each, and warnings.
fn open_udp(spec: &UdpSpec, taking: &Taking) -> Result<(Vec<Work>, Vec<String>)> {
    let mut options = UdpOptions::new(spec.address);
    options.queues = spec.queues;
    options.recv_buffer_bytes = taking.kernel_buffer;
    options.group =
        spec.group.map(|address| Group { address, interface: spec.group_interface.clone() });
    options.framing = if spec.headers { Framing::Headers } else { Framing::Payload };
    let bound = UdpSource::bind(&options)?;
    let warnings = bound.warnings.iter().map(ToString::to_string).collect();
    Ok((bound.sources.into_iter().map(|source| udp(source, taking)).collect(), warnings))
}

fn link_event(event: &LinkEvent) -> String {
    match event {
        LinkEvent::WentDown { at } => format!("the interface went down at {}", utc(*at)),
        LinkEvent::CameBack { at } => format!("the interface came back at {}", utc(*at)),
    }
}

/// Runs a source into a packer, through a filter in user space, and finishes the packer whatever
/// comes of it.
fn filtered<T>(
    packer: Packer,
    taking: &Taking,
    run: impl FnOnce(&mut Filtering<Packer>) -> Result<T>,
) -> Result<T> {
    let mut sink = Filtering::new(packer, &taking.filter, taking.snap);
    let outcome = run(&mut sink);
    let packer = sink.finish().context("the filter does not suit the source")?;
    packer.finish();
    outcome
}

fn generated(queue: impl Generator + Send + 'static, taking: &Taking) -> Work {
    let taking = taking.clone();
    Box::new(move |packer| {
        let summary = filtered(packer, &taking, |sink| Ok(queue.run(sink)))?;
        let mut notes = Vec::new();
        if summary.harness_limited() {
            notes.push(format!(
                "the generated source fell behind its schedule by up to {}: this machine, not the recorder, was the limit",
                summary.lag_max
            ));
        }
        Ok(notes)
    })
}

fn udp(source: UdpSource, taking: &Taking) -> Work {
    let taking = taking.clone();
    Box::new(move |packer| {
        filtered(packer, &taking, |sink| Ok(source.run(sink)?))?;
        Ok(Vec::new())
    })
}

fn byte_stream(stream: Stream, taking: &Taking) -> Work {
    let taking = taking.clone();
    Box::new(move |packer| {
        let summary = filtered(packer, &taking, |sink| Ok(stream.run(sink)?))?;
        let broken = NonZero::new(summary.broken).map(|broken| {
            format!(
                "{broken} connections ended with an error; what had arrived by then is recorded"
            )
        });
        Ok(broken.into_iter().collect())
    })
}

fn produced(producer: Producer, taking: &Taking) -> Work {
    let taking = taking.clone();
    Box::new(move |packer| {
        let sink = producer.run(Filtering::new(packer, &taking.filter, taking.snap));
        let packer = sink.finish().context("the filter does not suit the source")?;
        packer.finish();
        Ok(Vec::new())
    })
}

fn file(file: CaptureFile, taking: &Taking) -> Work {
    let taking = taking.clone();
    Box::new(move |packer| {
        let summary = filtered(packer, &taking, |sink| Ok(file.run(sink)?))?;
        let mut notes = Vec::new();
        for (count, what) in [
            (
                summary.lost_originally,
                "packets were lost when the file was captured; they are in the ledger",
            ),
            (summary.skipped_name_resolution, "name resolution blocks were left out"),
            (summary.skipped_secrets, "decryption secrets blocks were left out"),
            (summary.skipped_custom, "custom blocks were left out"),
            (summary.skipped_other, "blocks of unknown types were left out"),
            (summary.options_left_out, "packet options of unknown meaning were left out"),
            (summary.timestamps_out_of_range, "time stamps were out of range and moved into it"),
        ] {
            if let Some(count) = NonZero::new(count) {
                notes.push(format!("{count} {what}"));
            }
        }
        Ok(notes)
    })
}
