//! libpcap's compiler, loaded when first needed so that neither the build nor a recording without a
//! filter depends on a C library.

use std::ffi::{CStr, CString, c_char, c_int, c_uint, c_void};
use std::ptr::NonNull;
use std::sync::{Mutex, OnceLock, PoisonError};

use format::LinkType;
use libloading::Library;

use super::{FilterError, Instruction};

/// Names that distributions install it under.
const NAMES: [&str; 3] = ["libpcap.so.1", "libpcap.so.0.8", "libpcap.so"];

/// `PCAP_NETMASK_UNKNOWN`: only `ip broadcast` wants a mask, and then the compiler says so.
const NETMASK_UNKNOWN: c_uint = 0xffff_ffff;

/// "Whole packets" as a snap length, as [`super::Program::compile`] takes it.
const WHOLE: c_int = c_int::MAX;

/// libpcap's `pcap_t`, of which only the address is known here.
type Handle = c_void;

/// `struct bpf_program`.
#[repr(C)]
struct RawProgram {
    length: c_uint,
    instructions: *mut Instruction,
}

/// The functions used, by their signatures in `pcap/pcap.h`.
struct Libpcap {
    open_dead: unsafe extern "C" fn(c_int, c_int) -> *mut Handle,
    compile:
        unsafe extern "C" fn(*mut Handle, *mut RawProgram, *const c_char, c_int, c_uint) -> c_int,
    free_code: unsafe extern "C" fn(*mut RawProgram),
    close: unsafe extern "C" fn(*mut Handle),
    error: unsafe extern "C" fn(*mut Handle) -> *const c_char,
    #[cfg(test)]
    offline_filter:
        unsafe extern "C" fn(*const RawProgram, *const tests::PacketHeader, *const u8) -> c_int,
    /// Keeps the functions' code mapped.
    _library: Library,
}

/// Compiles with libpcap's optimiser. `snap_length` 0 means whole packets.
pub(super) fn compile(
    expression: &str,
    link_type: LinkType,
    snap_length: u32,
) -> Result<Vec<Instruction>, FilterError> {
    with_raw(expression, link_type, snap_length, |_, raw| {
        if raw.instructions.is_null() {
            return Vec::new();
        }
        // SAFETY: pcap_compile succeeded, so it points to `length` instructions that stay until
        // pcap_freecode; `Instruction` has the layout of `struct bpf_insn`.
        unsafe { std::slice::from_raw_parts(raw.instructions, raw.length as usize) }.to_vec()
    })
}

/// Compiles, lets `look` see libpcap's own program, and frees everything.
fn with_raw<T>(
    expression: &str,
    link_type: LinkType,
    snap_length: u32,
    look: impl FnOnce(&Libpcap, &RawProgram) -> T,
) -> Result<T, FilterError> {
    let wrong = |message: String| FilterError::Expression {
        expression: expression.to_owned(),
        link_type,
        message,
    };
    let text = CString::new(expression).map_err(|_| wrong("it contains a NUL byte".to_owned()))?;
    let libpcap = library()?;
    let snap_length = match snap_length {
        0 => WHOLE,
        length => c_int::try_from(length).unwrap_or(WHOLE),
    };

    // Before 1.8 the compiler kept its state in globals.
    static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());
    let _guard = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);

    // SAFETY: pcap_open_dead takes any two numbers; the signature is the header's.
    let handle =
        NonNull::new(unsafe { (libpcap.open_dead)(link_type_in_libpcap(link_type), snap_length) })
            .ok_or_else(|| wrong("libpcap could not make a handle for it".to_owned()))?;
    let mut raw = RawProgram { length: 0, instructions: std::ptr::null_mut() };
    // SAFETY: the handle is open, `raw` is writable, `text` ends with NUL; all outlive the call.
    let status = unsafe {
        (libpcap.compile)(handle.as_ptr(), &raw mut raw, text.as_ptr(), 1, NETMASK_UNKNOWN)
    };
    let result = if status == 0 {
        let seen = look(libpcap, &raw);
        // SAFETY: `raw` was filled by pcap_compile and is not used afterwards.
        unsafe { (libpcap.free_code)(&raw mut raw) };
        Ok(seen)
    } else {
        // SAFETY: pcap_geterr returns a NUL-terminated text inside the handle, which is still open.
        let message = unsafe { CStr::from_ptr((libpcap.error)(handle.as_ptr())) };
        Err(wrong(message.to_string_lossy().into_owned()))
    };
    // SAFETY: the handle came from pcap_open_dead and is closed once.
    unsafe { (libpcap.close)(handle.as_ptr()) };
    result
}

/// libpcap's compiler goes by its own `DLT_` numbers, which on Linux differ from the registry's
/// `LINKTYPE_` in these.
fn link_type_in_libpcap(link_type: LinkType) -> c_int {
    match link_type.0 {
        100 => 11, // ATM RFC 1483
        101 => 12, // raw IP
        102 => 15, // SLIP BSD/OS
        103 => 16, // PPP BSD/OS
        106 => 19, // ATM CLIP
        same => c_int::from(same),
    }
}

fn library() -> Result<&'static Libpcap, FilterError> {
    static LIBRARY: OnceLock<Result<Libpcap, FilterError>> = OnceLock::new();
    LIBRARY.get_or_init(load).as_ref().map_err(Clone::clone)
}

fn load() -> Result<Libpcap, FilterError> {
    let mut reasons = Vec::new();
    for name in NAMES {
        // SAFETY: libpcap's initialisers have no precondition.
        match unsafe { Library::new(name) } {
            Ok(library) => match symbols(library) {
                Ok(libpcap) => return Ok(libpcap),
                Err(error) => reasons.push(error.to_string()),
            },
            Err(error) => reasons.push(error.to_string()),
        }
    }
    Err(FilterError::LibraryMissing { reason: reasons.join("; ") })
}

fn symbols(library: Library) -> Result<Libpcap, libloading::Error> {
    // SAFETY: the types are the signatures in `pcap/pcap.h`, unchanged since libpcap 0.8; the
    // library is kept as long as the functions.
    unsafe {
        Ok(Libpcap {
            open_dead: *library.get(b"pcap_open_dead\0")?,
            compile: *library.get(b"pcap_compile\0")?,
            free_code: *library.get(b"pcap_freecode\0")?,
            close: *library.get(b"pcap_close\0")?,
            error: *library.get(b"pcap_geterr\0")?,
            #[cfg(test)]
            offline_filter: *library.get(b"pcap_offline_filter\0")?,
            _library: library,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::filter::Program;
    use proptest::prelude::*;

    /// `struct pcap_pkthdr`.
    #[repr(C)]
    pub(super) struct PacketHeader {
        time: libc::timeval,
        captured: u32,
        original: u32,
    }

    /// What libpcap's own interpreter answers to each packet.
    fn oracle(expression: &str, link_type: LinkType, packets: &[(Vec<u8>, u32)]) -> Vec<u32> {
        with_raw(expression, link_type, 0, |libpcap, raw| {
            packets
                .iter()
                .map(|(data, original)| {
                    let header = PacketHeader {
                        time: libc::timeval { tv_sec: 0, tv_usec: 0 },
                        captured: data.len() as u32,
                        original: *original,
                    };
                    // SAFETY: the program is compiled, the header says how long `data` is.
                    unsafe {
                        (libpcap.offline_filter)(raw, &raw const header, data.as_ptr()) as u32
                    }
                })
                .collect()
        })
        .unwrap()
    }

    const EXPRESSIONS: [&str; 40] = [
        "",
        "ip",
        "ip6",
        "arp",
        "tcp",
        "udp",
        "icmp",
        "icmp6",
        "not tcp",
        "tcp port 80",
        "udp port 53 or tcp port 443",
        "src port 1000",
        "dst portrange 10-2000",
        "host 10.0.0.1",
        "src host 10.0.0.2 and udp",
        "net 10.0.0.0/24",
        "ip6 host fe80::1",
        "ether host 02:00:00:00:00:01",
        "ether broadcast or ether multicast",
        "vlan",
        "vlan 3",
        "vlan 3 and tcp",
        "vlan and vlan and udp port 53",
        "len > 100",
        "less 64",
        "greater 200",
        "tcp[tcpflags] & (tcp-syn|tcp-fin) != 0",
        "ip[6:2] & 0x1fff != 0",
        "ip[0] & 0xf > 5",
        "udp[8:4] = 0x01020304",
        "ether[12:2] = 0x0800",
        "ip[8] < 64 and ip proto 17",
        "tcp[((tcp[12] & 0xf0) >> 2):4] = 0x47455420",
        "ip[2:2] - ((ip[0] & 0xf) << 2) > 40",
        "ip[2:2] / ip[8] = 3",
        "ip[2:2] % 7 = 3",
        "ip[10:2] ^ 0xffff > 1000",
        "mpls",
        "(ip or ip6) and not port 22",
        "ether[len - 1] = 0",
    ];

    /// Frames with fields drawn from few values, so that filters hit as well as miss, cut anywhere.
    fn frame() -> impl Strategy<Value = (Vec<u8>, u32)> {
        let macs = prop::sample::select(vec![
            [2u8, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2],
            [0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 2, 0, 0, 0, 0, 1],
            [1, 0, 0x5e, 0, 0, 1, 2, 0, 0, 0, 0, 2],
        ]);
        let vlans =
            prop::collection::vec((prop::sample::select(vec![0x8100u16, 0x88a8]), 1u16..5), 0..3);
        let network = prop::sample::select(vec![0x0800u16, 0x0800, 0x86dd, 0x0806, 0x8847, 0x1234]);
        let transport = prop::sample::select(vec![6u8, 17, 1, 58, 132]);
        let port = prop::sample::select(vec![22u16, 53, 80, 443, 1000, 1500]);
        let small = (any::<u8>(), 1u8..4, 0u16..3, 5u8..8);
        let payload = prop::collection::vec(any::<u8>(), 0..220);
        (
            macs,
            vlans,
            network,
            transport,
            (port.clone(), port),
            small,
            payload,
            any::<u16>(),
            0u32..300,
        )
            .prop_map(
                |(macs, vlans, network, transport, ports, small, payload, cut, extra)| {
                    let (flags, host, fragment, header_words) = small;
                    let mut frame = macs.to_vec();
                    for (tag, id) in vlans {
                        frame.extend(tag.to_be_bytes());
                        frame.extend(id.to_be_bytes());
                    }
                    frame.extend(network.to_be_bytes());
                    match network {
                        0x0800 => {
                            let length = (u16::from(header_words) * 4 + 8 + payload.len() as u16)
                                .to_be_bytes();
                            frame.extend([0x40 | header_words, 0, length[0], length[1], 0, 1]);
                            frame.extend(fragment.to_be_bytes());
                            frame.extend([
                                flags, transport, 0xab, 0xcd, 10, 0, 0, host, 10, 0, 0, 2,
                            ]);
                            frame.resize(frame.len() + usize::from(header_words - 5) * 4, 1);
                        }
                        0x86dd => {
                            frame.extend([0x60, 0, 0, 0, 0, 60, transport, 64]);
                            frame.extend([0xfe, 0x80, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, host]);
                            frame.extend([0xfe, 0x80, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2]);
                        }
                        _ => frame.extend([0, 1, 8, 0, 6, 4, 0, 1]),
                    }
                    frame.extend(ports.0.to_be_bytes());
                    frame.extend(ports.1.to_be_bytes());
                    frame.extend([0, 0, 0, 1, 0, 0, 0, 2, 0x50, flags]);
                    frame.extend(payload);
                    let original = frame.len() as u32 + extra % 3 * extra;
                    // A third of them cut short.
                    if cut % 3 == 0 {
                        frame.truncate(usize::from(cut / 3) % frame.len());
                    }
                    (frame, original)
                },
            )
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(24))]
        #[test]
        fn our_interpreter_answers_as_libpcaps_does(
            packets in prop::collection::vec(frame(), 200)
        ) {
            for expression in EXPRESSIONS {
                let program = Program::compile(expression, LinkType::ETHERNET, 0).unwrap();
                let expected = oracle(expression, LinkType::ETHERNET, &packets);
                for ((data, original), expected) in packets.iter().zip(expected) {
                    let got = program.accept_length(data, *original);
                    prop_assert_eq!(got, expected, "{} on {:02x?}", expression, data);
                }
            }
        }

        #[test]
        fn our_interpreter_answers_as_libpcaps_does_on_raw_ip(
            packets in prop::collection::vec(frame(), 100)
        ) {
            let packets: Vec<_> = packets
                .into_iter()
                .map(|(data, original)| (data.get(14..).unwrap_or_default().to_vec(), original))
                .collect();
            for expression in ["ip", "ip6", "udp port 53", "host 10.0.0.1", "tcp[13] & 2 != 0"] {
                let program = Program::compile(expression, LinkType::RAW_IP, 0).unwrap();
                let expected = oracle(expression, LinkType::RAW_IP, &packets);
                for ((data, original), expected) in packets.iter().zip(expected) {
                    prop_assert_eq!(program.accept_length(data, *original), expected);
                }
            }
        }
    }

    #[test]
    fn the_generated_frames_hit_and_miss_most_filters() {
        use proptest::strategy::ValueTree;
        let mut runner = proptest::test_runner::TestRunner::deterministic();
        let packets: Vec<_> =
            (0..2000).map(|_| frame().new_tree(&mut runner).unwrap().current()).collect();
        let two_sided = EXPRESSIONS
            .iter()
            .filter(|expression| {
                let answers = oracle(expression, LinkType::ETHERNET, &packets);
                answers.contains(&0) && answers.iter().any(|answer| *answer != 0)
            })
            .count();
        // The empty expression accepts all, and a few conditions are rare.
        assert!(two_sided >= 35, "only {two_sided} of {} filters", EXPRESSIONS.len());
    }
}
