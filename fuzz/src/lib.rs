//! Everything that reads what comes from outside, given any bytes: it never panics, always ends, takes no memory because
//! a length says so, and what it takes for sound holds together.

#![forbid(unsafe_code)]

mod array;
mod capture_file;
mod checksums;
mod media;
mod moments;
mod packet;
mod planned;
mod profiles;
mod quantities;
mod recording;
mod requirement;
mod superblock;
mod sweep;
mod workload;

/// A reader and what must hold for it.
#[derive(Clone, Copy, Debug)]
pub struct Target {
    /// Its name, and its corpus's folder's.
    pub name: &'static str,
    /// What any bytes are read as.
    pub about: &'static str,
    /// Reads them.
    ///
    /// # Panics
    /// If something doesn't hold.
    pub run: fn(&[u8]),
}

/// All of them.
pub const TARGETS: [Target; 14] = [
    Target {
        name: "array",
        about: "changes to the golden members of an array, which is then read in every way and repaired",
        run: array::run,
    },
    Target {
        name: "array_parity",
        about: "the same for an array with parity, which is also rebuilt",
        run: array::run_parity,
    },
    Target {
        name: "capture_file",
        about: "a pcap or pcapng file of somebody else's",
        run: capture_file::run,
    },
    Target { name: "media", about: "a segment: chunk, packets, index", run: media::run },
    Target { name: "moments", about: "a point in time on the command line", run: moments::run },
    Target { name: "packet", about: "a packet, whose layers and flow are found", run: packet::run },
    Target {
        name: "profile",
        about: "a drive's profile in TOML, and the drive that is simulated from it",
        run: profiles::run,
    },
    Target {
        name: "quantities",
        about: "a size, a rate, a span of time, a source: words on the command line and in files",
        run: quantities::run,
    },
    Target {
        name: "recording",
        about: "a capture file that is recorded, listed, extracted and scrubbed",
        run: recording::run,
    },
    Target {
        name: "requirement",
        about: "a requirement in TOML, which is then planned",
        run: requirement::run,
    },
    Target {
        name: "planned",
        about: "a profile and a requirement in TOML, planned together and put to trial",
        run: planned::run,
    },
    Target { name: "superblock", about: "a superblock", run: superblock::run },
    Target { name: "sweep", about: "a sweep in TOML, and some of its jobs", run: sweep::run },
    Target {
        name: "workload",
        about: "a workload in TOML, fitted to a drive and said as a fio job",
        run: workload::run,
    },
];

/// The target of that name.
pub fn target(name: &str) -> Option<&'static Target> {
    TARGETS.iter().find(|target| target.name == name)
}
