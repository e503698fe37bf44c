//! The SOURCE argument: one line of text that names where data comes from, and how.

use std::fmt;
use std::io::Read;
use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};
use std::str::FromStr;

use base::{ByteSize, Rate};
use format::LinkType;

use crate::capture_file::looks_like_capture;
use crate::generator::Pace;
use crate::producer::Producer;
use crate::{stream, synthetic, traffic};

/// The forms that a source can take, for messages.
pub const FORMS: &str = "\
    synthetic:RATE|max[,size=N|imix][,seed=S][,queues=Q]   generated packets that can be checked
    traffic:RATE|max[,flows=N][,size=imix|N][,seed=S][,queues=Q]  generated flows of many protocols
    if:NAME[,queues=Q][,promiscuous]                       a network interface (NAME alone works too)
    udp:ADDR:PORT[,queues=Q][,group=ADDR[%NAME]][,headers=off]  UDP datagrams
    tcp:HOST:PORT[,block=SIZE]                             a stream from a sender that listens
    tcp-listen:ADDR:PORT[,block=SIZE][,connections=N|reconnect]  streams from senders that connect
    pipe:PATH[,block=SIZE]                                 a stream from a fifo or file
    -[,block=SIZE]                                         a stream from standard input
    file:PATH                                              a pcap or pcapng file (PATH alone works too)
    pcap:-                                                 the same from standard input";

/// Longest name of a network interface in bytes (`IFNAMSIZ` less the NUL).
const INTERFACE_NAME_BYTES_MAX: usize = 15;

/// Extensions of capture files, in lower case.
const CAPTURE_EXTENSIONS: [&str; 4] = ["pcap", "pcapng", "cap", "ntar"];

/// Where data comes from.
#[derive(Clone, Debug, PartialEq)]
pub enum SourceSpec {
    /// Made-up packets.
    Synthetic(synthetic::Options),
    /// Made-up traffic.
    Traffic(traffic::Options),
    /// A network interface.
    Interface(InterfaceSpec),
    /// UDP datagrams.
    Udp(UdpSpec),
    /// A byte stream, cut into blocks of so many bytes.
    Stream {
        /// The stream's address.
        endpoint: stream::Endpoint,
        /// Bytes in a block.
        block_bytes: u32,
    },
    /// A capture file, or a fifo through which one comes.
    CaptureFile(PathBuf),
    /// A capture file through standard input.
    CaptureStdin,
    /// The recording program itself, which no text names.
    Producer(Producer),
}

/// A network interface to capture from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InterfaceSpec {
    /// Its name, as `ip link` shows it.
    pub name: String,
    /// Sockets that share its packets, each for a thread of its own; 1 at least.
    pub queues: u16,
    /// Whether to capture what is addressed to other stations.
    pub promiscuous: bool,
}

/// UDP datagrams to receive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UdpSpec {
    /// Where to listen.
    pub address: SocketAddr,
    /// Sockets that share the address, each for a thread of its own; 1 at least.
    pub queues: u16,
    /// A multicast group to join; the address itself if that is one.
    pub group: Option<IpAddr>,
    /// The interface to join it on; the routing table decides otherwise.
    pub group_interface: Option<String>,
    /// Whether IP and UDP headers made from the addresses are recorded before the payload.
    pub headers: bool,
}

/// A text that names no source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SpecError {
    text: String,
    wrong: String,
}

impl fmt::Display for SpecError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "'{}' is not a source: {}. A source is one of\n{FORMS}", self.text, self.wrong)
    }
}

impl std::error::Error for SpecError {}

impl SourceSpec {
    /// Whether its packets have headers that say who sent them to whom; of the blocks of a stream nothing is known.
    pub fn has_headers(&self) -> bool {
        match self {
            Self::Stream { .. } => false,
            Self::Udp(udp) => udp.headers,
            Self::Producer(producer) => producer.interface().link_type != LinkType::USER0,
            _ => true,
        }
    }

    /// Whether it holds the sender back when buffers are full; else packets are dropped and counted.
    pub fn can_wait(&self) -> bool {
        match self {
            Self::Synthetic(_) | Self::Traffic(_) => self.rate().is_none(),
            Self::Interface(_) | Self::Udp(_) => false,
            Self::Stream { .. } | Self::CaptureFile(_) | Self::CaptureStdin => true,
            Self::Producer(_) => true,
        }
    }

    /// The rate of a generated source, if it has one.
    pub const fn rate(&self) -> Option<Rate> {
        match self {
            Self::Synthetic(options) => options.pace.rate(),
            Self::Traffic(options) => options.pace.rate(),
            _ => None,
        }
    }

    /// How many threads it is to be run by.
    pub fn queues(&self) -> u16 {
        match self {
            Self::Synthetic(options) => options.queues,
            Self::Traffic(options) => options.queues,
            Self::Interface(interface) => interface.queues,
            Self::Udp(udp) => udp.queues,
            Self::Stream { .. } | Self::CaptureFile(_) | Self::CaptureStdin => 1,
            Self::Producer(_) => 1,
        }
    }
}

impl FromStr for SourceSpec {
    type Err = SpecError;

    /// A text without a known prefix is looked up: a file that exists and has a capture file's
    /// extension or first bytes, or a path, is a file; anything else that may be an interface's name is
    /// an interface.
    fn from_str(text: &str) -> Result<Self, SpecError> {
        parse(text).map_err(|wrong| SpecError { text: text.to_owned(), wrong })
    }
}

fn parse(text: &str) -> Result<SourceSpec, String> {
    if let Some((prefix, rest)) = text.split_once(':') {
        match prefix {
            "synthetic" => return synthetic_from(rest).map(SourceSpec::Synthetic),
            "traffic" => return traffic_from(rest).map(SourceSpec::Traffic),
            "if" | "interface" => return interface_from(rest).map(SourceSpec::Interface),
            "udp" => return udp_from(rest).map(SourceSpec::Udp),
            "tcp" => {
                let (address, options) = Words::split(rest);
                let endpoint = stream::Endpoint::Connect(host_and_port(address)?);
                return stream_from(endpoint, options);
            }
            "tcp-listen" => {
                let (address, options) = Words::split(rest);
                let address = host_and_port(address)?;
                return stream_from(stream::Endpoint::Listen { address, connections: 1 }, options);
            }
            "pipe" => {
                let (path, options) = path_and_block(rest)?;
                return stream_from(stream::Endpoint::Path(path), options);
            }
            "file" | "pcap" if rest.is_empty() => return Err("the path is missing".to_owned()),
            "file" => return Ok(SourceSpec::CaptureFile(rest.into())),
            "pcap" if rest == "-" => return Ok(SourceSpec::CaptureStdin),
            "pcap" => return Ok(SourceSpec::CaptureFile(rest.into())),
            _ => {}
        }
    }
    let (first, options) = Words::split(text);
    if matches!(first, "-" | "stdin") {
        return stream_from(stream::Endpoint::Stdin, options);
    }
    if is_capture_path(text) {
        return Ok(SourceSpec::CaptureFile(text.into()));
    }
    if Path::new(text).is_file() && !Path::new("/sys/class/net").join(text).exists() {
        return Err(
            "that file is no capture file; to record it as raw blocks give pipe:PATH".into()
        );
    }
    if text.contains(':') {
        return Err("nothing is known by that prefix".to_owned());
    }
    interface_from(text).map(SourceSpec::Interface)
}

/// Whether a text without prefix means a capture file.
fn is_capture_path(text: &str) -> bool {
    let path = Path::new(text);
    let extension = path.extension().and_then(|extension| extension.to_str());
    if extension.is_some_and(|e| CAPTURE_EXTENSIONS.contains(&e.to_ascii_lowercase().as_str())) {
        return true;
    }
    if !path.is_file() {
        // What looks like a path is one, so that the message about it is about a file.
        return text.contains('/');
    }
    let mut first = [0; 6];
    match std::fs::File::open(path).and_then(|mut file| file.read(&mut first)) {
        Ok(count) => looks_like_capture(&first[..count]),
        Err(_) => false,
    }
}

fn synthetic_from(text: &str) -> Result<synthetic::Options, String> {
    let (pace, mut words) = Words::split(text);
    let pace = pace_from(pace, "synthetic:1GB/s")?;
    let mut options = synthetic::Options { pace, ..synthetic::Options::default() };
    while let Some((key, value)) = words.next() {
        match (key, value) {
            ("imix", None) => options.sizes = synthetic::Sizes::Imix,
            ("size", Some(size)) => options.sizes = sizes_from(size, synthetic::FRAME_BYTES_MIN)?,
            ("seed", Some(seed)) => options.seed = number("seed", seed)?,
            ("queues", Some(queues)) => options.queues = number("queues", queues)?,
            other => return Err(unknown(other, "size=N, imix, seed=S, queues=Q")),
        }
    }
    options.check().map_err(|error| error.to_string())?;
    Ok(options)
}

fn traffic_from(text: &str) -> Result<traffic::Options, String> {
    let (pace, mut words) = Words::split(text);
    let pace = pace_from(pace, "traffic:1GB/s")?;
    let mut options = traffic::Options { pace, ..traffic::Options::default() };
    while let Some((key, value)) = words.next() {
        match (key, value) {
            ("flows", Some(flows)) => options.flows = number("flows", flows)?,
            ("imix", None) => options.sizes = synthetic::Sizes::Imix,
            ("size", Some(size)) => options.sizes = sizes_from(size, traffic::FRAME_BYTES_MIN)?,
            ("seed", Some(seed)) => options.seed = number("seed", seed)?,
            ("queues", Some(queues)) => options.queues = number("queues", queues)?,
            other => return Err(unknown(other, "flows=N, size=imix|N, seed=S, queues=Q")),
        }
    }
    options.check().map_err(|error| error.to_string())?;
    Ok(options)
}

fn pace_from(text: &str, example: &str) -> Result<Pace, String> {
    Ok(match text {
        "" => return Err(format!("the rate is missing, as in {example}")),
        "max" => Pace::Max,
        rate => Pace::Rate(rate.parse::<Rate>().map_err(|e| e.to_string())?),
    })
}

fn sizes_from(text: &str, min: u16) -> Result<synthetic::Sizes, String> {
    if text == "imix" {
        return Ok(synthetic::Sizes::Imix);
    }
    let bytes = text.parse::<ByteSize>().map_err(|e| e.to_string())?.0;
    // A size beyond the type's range is out of range like any other.
    let size = u16::try_from(bytes).map_err(|_| {
        let max = synthetic::FRAME_BYTES_MAX;
        format!("a generated frame can't be {bytes} bytes long: give {min} to {max}")
    })?;
    Ok(synthetic::Sizes::Fixed(size))
}

fn interface_from(text: &str) -> Result<InterfaceSpec, String> {
    let (name, mut words) = Words::split(text);
    if name.is_empty() {
        return Err("the interface's name is missing".to_owned());
    }
    check_interface_name(name)?;
    let mut spec = InterfaceSpec { name: name.to_owned(), queues: 1, promiscuous: false };
    while let Some((key, value)) = words.next() {
        match (key, value) {
            ("queues", Some(queues)) => spec.queues = at_least_one("queues", queues)?,
            ("promiscuous" | "promisc", None) => spec.promiscuous = true,
            other => return Err(unknown(other, "queues=Q, promiscuous")),
        }
    }
    Ok(spec)
}

fn check_interface_name(name: &str) -> Result<(), String> {
    let wrong = |c: char| c == '/' || c == ':' || c.is_whitespace();
    if name.len() > INTERFACE_NAME_BYTES_MAX || name.contains(wrong) {
        return Err(format!("no interface can be called '{name}', and no such file exists"));
    }
    Ok(())
}

fn udp_from(text: &str) -> Result<UdpSpec, String> {
    let (address, mut words) = Words::split(text);
    let address: SocketAddr = address
        .parse()
        .map_err(|_| format!("'{address}' is not ADDR:PORT, as in 0.0.0.0:5000 or [::]:5000"))?;
    let mut spec =
        UdpSpec { address, queues: 1, group: None, group_interface: None, headers: true };
    while let Some((key, value)) = words.next() {
        match (key, value) {
            ("queues", Some(queues)) => spec.queues = at_least_one("queues", queues)?,
            ("headers", None | Some("on")) => spec.headers = true,
            ("headers", Some("off")) => spec.headers = false,
            ("group", Some(group)) => {
                let (group, interface) = match group.split_once('%') {
                    Some((group, interface)) => (group, Some(interface)),
                    None => (group, None),
                };
                let group: IpAddr =
                    group.parse().map_err(|_| format!("'{group}' is not an IP address"))?;
                if !group.is_multicast() {
                    return Err(format!("{group} is not a multicast group"));
                }
                if let Some(name) = interface {
                    check_interface_name(name)?;
                }
                spec.group = Some(group);
                spec.group_interface = interface.map(str::to_owned);
            }
            other => return Err(unknown(other, "queues=Q, group=ADDR[%NAME], headers=off")),
        }
    }
    if spec.group.is_none() && address.ip().is_multicast() {
        spec.group = Some(address.ip());
    }
    Ok(spec)
}

fn stream_from(mut endpoint: stream::Endpoint, mut words: Words<'_>) -> Result<SourceSpec, String> {
    let mut block_bytes = stream::BLOCK_BYTES_DEFAULT;
    let mut counted = false;
    while let Some((key, value)) = words.next() {
        counted |= key == "connections";
        match (key, value, &mut endpoint) {
            ("block", Some(block), _) => block_bytes = block_from(block)?,
            ("connections", Some(count), stream::Endpoint::Listen { connections, .. }) => {
                *connections = at_least_one("connections", count)?;
                if *connections > stream::CONNECTIONS_MAX {
                    let max = stream::CONNECTIONS_MAX;
                    return Err(format!("{count} connections are more than {max}"));
                }
            }
            ("reconnect", None, stream::Endpoint::Listen { address, .. }) if !counted => {
                endpoint = stream::Endpoint::ListenOn { address: std::mem::take(address) };
            }
            ("connections", _, stream::Endpoint::ListenOn { .. })
            | ("reconnect", None, stream::Endpoint::Listen { .. }) => {
                return Err(
                    "connections=N counts senders, and reconnect takes any number: give one of \
                            them"
                        .to_owned(),
                );
            }
            (_, _, stream::Endpoint::Listen { .. } | stream::Endpoint::ListenOn { .. }) => {
                return Err(unknown((key, value), "block=SIZE, connections=N, reconnect"));
            }
            _ => return Err(unknown((key, value), "block=SIZE")),
        }
    }
    Ok(SourceSpec::Stream { endpoint, block_bytes })
}

fn block_from(text: &str) -> Result<u32, String> {
    let bytes = text.parse::<ByteSize>().map_err(|e| e.to_string())?.0;
    match u32::try_from(bytes) {
        Ok(bytes @ 1..=stream::BLOCK_BYTES_MAX) => Ok(bytes),
        _ => Err(format!("a block can't be {text}: give 1 to {} bytes", stream::BLOCK_BYTES_MAX)),
    }
}

/// A path may contain commas, so only a last part that starts with `block=` is an option.
fn path_and_block(text: &str) -> Result<(PathBuf, Words<'_>), String> {
    let (path, options) = match text.rsplit_once(',') {
        Some((path, option)) if option.starts_with("block=") => (path, option),
        _ => (text, ""),
    };
    if path.is_empty() {
        return Err("the path is missing".to_owned());
    }
    Ok((path.into(), Words(options)))
}

fn host_and_port(text: &str) -> Result<String, String> {
    match text.rsplit_once(':') {
        Some((host, port)) if !host.is_empty() && port.parse::<u16>().is_ok() => {
            Ok(text.to_owned())
        }
        _ => Err(format!("'{text}' is not HOST:PORT, as in 127.0.0.1:5000 or [::1]:5000")),
    }
}

fn number<T: FromStr>(key: &str, text: &str) -> Result<T, String> {
    text.parse().map_err(|_| format!("{key}={text} is not a number in range"))
}

fn at_least_one(key: &str, text: &str) -> Result<u16, String> {
    match number(key, text)? {
        0 => Err(format!("{key} must be 1 at least")),
        count => Ok(count),
    }
}

fn unknown((key, value): (&str, Option<&str>), known: &str) -> String {
    let value = value.map(|value| format!("={value}")).unwrap_or_default();
    format!("'{key}{value}' is not an option of it; it takes {known}")
}

/// The options behind the first word: `key` or `key=value`, between commas.
struct Words<'a>(&'a str);

impl<'a> Words<'a> {
    /// The first word, and what follows it.
    fn split(text: &'a str) -> (&'a str, Self) {
        let (first, rest) = text.split_once(',').unwrap_or((text, ""));
        (first, Self(rest))
    }

    fn next(&mut self) -> Option<(&'a str, Option<&'a str>)> {
        if self.0.is_empty() {
            return None;
        }
        let (word, rest) = self.0.split_once(',').unwrap_or((self.0, ""));
        self.0 = rest;
        Some(match word.split_once('=') {
            Some((key, value)) => (key, Some(value)),
            None => (word, None),
        })
    }
}

impl fmt::Display for SourceSpec {
    /// With every option, in the form that parses to the same, but for a producer, which no text names.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Synthetic(options) => write!(f, "synthetic:{options}"),
            Self::Traffic(options) => write!(f, "traffic:{options}"),
            Self::Interface(interface) => {
                write!(f, "if:{},queues={}", interface.name, interface.queues)?;
                if interface.promiscuous { f.write_str(",promiscuous") } else { Ok(()) }
            }
            Self::Udp(udp) => {
                write!(f, "udp:{},queues={}", udp.address, udp.queues)?;
                if let Some(group) = udp.group {
                    write!(f, ",group={group}")?;
                    if let Some(interface) = &udp.group_interface {
                        write!(f, "%{interface}")?;
                    }
                }
                if udp.headers { Ok(()) } else { f.write_str(",headers=off") }
            }
            Self::Stream { endpoint, block_bytes } => {
                match endpoint {
                    stream::Endpoint::Connect(address) => write!(f, "tcp:{address}")?,
                    stream::Endpoint::Listen { address, connections } => {
                        write!(f, "tcp-listen:{address},connections={connections}")?;
                    }
                    stream::Endpoint::ListenOn { address } => {
                        write!(f, "tcp-listen:{address},reconnect")?;
                    }
                    stream::Endpoint::Path(path) => write!(f, "pipe:{}", path.display())?,
                    stream::Endpoint::Stdin => f.write_str("-")?,
                }
                write!(f, ",block={block_bytes}")
            }
            Self::CaptureFile(path) => write!(f, "file:{}", path.display()),
            Self::CaptureStdin => f.write_str("pcap:-"),
            Self::Producer(producer) => write!(f, "program:{}", producer.interface().name),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn spec(text: &str) -> SourceSpec {
        text.parse().unwrap_or_else(|error| panic!("{error}"))
    }

    #[test]
    fn every_form_is_understood() {
        use synthetic::{Options, Sizes};
        let rate = |bytes| Options { pace: Pace::Rate(Rate(bytes)), ..Options::default() };
        let imix = Options { sizes: Sizes::Imix, seed: 7, queues: 2, ..rate(12.5e9) };
        let interface =
            |name: &str| InterfaceSpec { name: name.into(), queues: 1, promiscuous: false };
        let udp = UdpSpec {
            address: "0.0.0.0:5000".parse().unwrap(),
            queues: 2,
            group: Some("239.1.1.1".parse().unwrap()),
            group_interface: Some("eth1".to_owned()),
            headers: false,
        };
        let stream = |endpoint, block_bytes| SourceSpec::Stream { endpoint, block_bytes };
        let listen =
            |connections| stream::Endpoint::Listen { address: "[::]:5000".into(), connections };
        for (text, expected) in [
            ("synthetic:1GB/s", SourceSpec::Synthetic(rate(1e9))),
            ("synthetic:100Gb/s,imix,seed=7,queues=2", SourceSpec::Synthetic(imix)),
            ("synthetic:max,size=1500", SourceSpec::Synthetic(Options::default())),
            ("traffic:max", SourceSpec::Traffic(traffic::Options::default())),
            (
                "traffic:1GB/s,flows=1000,size=1500,seed=7,queues=2",
                SourceSpec::Traffic(traffic::Options {
                    pace: Pace::Rate(Rate(1e9)),
                    flows: 1000,
                    sizes: Sizes::Fixed(1500),
                    seed: 7,
                    queues: 2,
                }),
            ),
            ("if:eth0", SourceSpec::Interface(interface("eth0"))),
            ("eth0.100", SourceSpec::Interface(interface("eth0.100"))),
            (
                "if:eth0,queues=4,promiscuous",
                SourceSpec::Interface(InterfaceSpec {
                    queues: 4,
                    promiscuous: true,
                    ..interface("eth0")
                }),
            ),
            ("udp:0.0.0.0:5000,queues=2,group=239.1.1.1%eth1,headers=off", SourceSpec::Udp(udp)),
            (
                "tcp:radar:5000,block=1MiB",
                stream(stream::Endpoint::Connect("radar:5000".into()), 1 << 20),
            ),
            ("tcp-listen:[::]:5000,connections=3", stream(listen(3), 65_536)),
            (
                "tcp-listen:[::]:5000,reconnect,block=512",
                stream(stream::Endpoint::ListenOn { address: "[::]:5000".into() }, 512),
            ),
            ("pipe:a,b,block=512", stream(stream::Endpoint::Path("a,b".into()), 512)),
            ("-", stream(stream::Endpoint::Stdin, 65_536)),
            ("stdin,block=4K", stream(stream::Endpoint::Stdin, 4096)),
            ("file:eth0", SourceSpec::CaptureFile("eth0".into())),
            ("/tmp/there/is/none", SourceSpec::CaptureFile("/tmp/there/is/none".into())),
            ("a.PCAPNG", SourceSpec::CaptureFile("a.PCAPNG".into())),
            ("pcap:-", SourceSpec::CaptureStdin),
        ] {
            assert_eq!(spec(text), expected, "{text}");
        }
    }

    #[test]
    fn a_multicast_address_is_a_group_to_join() {
        let SourceSpec::Udp(udp) = spec("udp:239.9.9.9:5000") else { panic!("not UDP") };
        assert_eq!(udp.group, Some("239.9.9.9".parse().unwrap()));
    }

    #[test]
    fn a_file_without_extension_is_known_by_its_first_bytes() {
        let folder = tempfile::tempdir().unwrap();
        let (capture, notes) = (folder.path().join("capture"), folder.path().join("notes"));
        std::fs::write(&capture, [0x0a, 0x0d, 0x0d, 0x0a, 0, 0]).unwrap();
        std::fs::write(&notes, "no capture").unwrap();
        assert_eq!(spec(capture.to_str().unwrap()), SourceSpec::CaptureFile(capture));
        let error = notes.to_str().unwrap().parse::<SourceSpec>().unwrap_err().to_string();
        assert!(error.contains("pipe:PATH"), "{error}");
    }

    #[test]
    fn a_wrong_source_is_answered_with_the_reason_and_every_form() {
        for (text, reason) in [
            ("", "name is missing"),
            ("synthetic:", "rate is missing"),
            ("synthetic:100", "is not a rate"),
            ("synthetic:0GB/s", "positive rate"),
            ("synthetic:max,size=40", "40 bytes"),
            ("synthetic:max,size=1MiB", "1048576 bytes"),
            ("synthetic:max,sized=4", "'sized=4' is not an option"),
            ("synthetic:max,queues=0", "0 queues"),
            ("traffic:", "as in traffic:1GB/s"),
            ("traffic:max,flows=0", "0 flows: give 1 to"),
            ("traffic:max,flows=2,queues=3", "2 flows: give 3 to"),
            ("traffic:max,size=59", "59 bytes"),
            ("traffic:max,hosts=4", "'hosts=4' is not an option"),
            ("udp:5000", "ADDR:PORT"),
            ("udp:0.0.0.0:1,group=10.0.0.1", "not a multicast group"),
            ("tcp:radar", "HOST:PORT"),
            ("tcp:radar:70000", "HOST:PORT"),
            ("tcp:radar:1,connections=2", "'connections=2' is not an option"),
            ("tcp-listen:0.0.0.0:1,connections=2000", "more than 1024"),
            ("tcp-listen:0.0.0.0:1,connections=2,reconnect", "give one of them"),
            ("tcp-listen:0.0.0.0:1,reconnect,connections=2", "give one of them"),
            ("tcp-listen:0.0.0.0:1,reconnect=2", "'reconnect=2' is not an option"),
            ("tcp:radar:1,reconnect", "'reconnect' is not an option"),
            ("-,block=0", "a block can't be"),
            ("pipe:", "path is missing"),
            ("file:", "path is missing"),
            ("if:eth0,queues=x", "not a number"),
            ("sctp:1.2.3.4:5", "prefix"),
            ("a-name-too-long-for-linux", "no interface can be called"),
        ] {
            let error = text.parse::<SourceSpec>().unwrap_err().to_string();
            assert!(error.contains(reason), "{text}: {error}");
            assert!(error.contains("tcp-listen:ADDR:PORT"), "{error}");
        }
    }

    fn any_spec() -> impl Strategy<Value = SourceSpec> {
        let sizes =
            prop_oneof![Just(synthetic::Sizes::Imix), (60u16..).prop_map(synthetic::Sizes::Fixed)];
        let pace =
            prop_oneof![Just(Pace::Max), (1e-3f64..1e13).prop_map(|rate| Pace::Rate(Rate(rate)))];
        let flows = prop::option::of(256..=traffic::FLOWS_MAX);
        let generated = (pace, sizes, any::<u64>(), 1u16..=256, flows).prop_map(
            |(pace, sizes, seed, queues, flows)| match flows {
                Some(flows) => {
                    SourceSpec::Traffic(traffic::Options { pace, flows, sizes, seed, queues })
                }
                None => SourceSpec::Synthetic(synthetic::Options { pace, sizes, seed, queues }),
            },
        );
        let interface = ("[a-z][a-z0-9]{0,14}", 1u16.., any::<bool>()).prop_map(
            |(name, queues, promiscuous)| {
                SourceSpec::Interface(InterfaceSpec { name, queues, promiscuous })
            },
        );
        let group = prop::option::of((any::<[u8; 3]>(), prop::option::of("[a-z]{1,8}")));
        let udp = (any::<SocketAddr>(), 1u16.., group, any::<bool>())
            .prop_filter(
                "names a scope, which the text form carries only as a number",
                |(a, ..)| !a.ip().is_multicast() && a.is_ipv4(),
            )
            .prop_map(|(address, queues, group, headers)| {
                let (group, group_interface) = match group {
                    Some(([b, c, d], interface)) => (Some(IpAddr::from([239, b, c, d])), interface),
                    None => (None, None),
                };
                SourceSpec::Udp(UdpSpec { address, queues, group, group_interface, headers })
            });
        let address = "[a-z0-9.]{1,20}:[1-9][0-9]{0,3}";
        let endpoint = prop_oneof![
            address.prop_map(stream::Endpoint::Connect),
            (address, 1u16..=1024).prop_map(|(address, connections)| stream::Endpoint::Listen {
                address,
                connections
            }),
            address.prop_map(|address| stream::Endpoint::ListenOn { address }),
            "[a-z/,.= -]{1,20}".prop_map(|path| stream::Endpoint::Path(path.into())),
            Just(stream::Endpoint::Stdin),
        ];
        let stream = (endpoint, 1..=stream::BLOCK_BYTES_MAX)
            .prop_map(|(endpoint, block_bytes)| SourceSpec::Stream { endpoint, block_bytes });
        let file = "[a-z/,.: =]{1,20}".prop_map(|path| SourceSpec::CaptureFile(path.into()));
        prop_oneof![generated, interface, udp, stream, file, Just(SourceSpec::CaptureStdin)]
    }

    proptest! {
        #[test]
        fn what_is_printed_parses_to_the_same(spec in any_spec()) {
            prop_assert_eq!(spec.to_string().parse::<SourceSpec>(), Ok(spec));
        }

        #[test]
        fn every_text_is_a_source_or_is_answered_with_the_forms(text in ".{0,40}") {
            if let Err(error) = text.parse::<SourceSpec>() {
                prop_assert!(error.to_string().ends_with(FORMS));
            }
        }
    }
}
