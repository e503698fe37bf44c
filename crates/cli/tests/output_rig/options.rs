//! Every option and argument that is a path, and what it is for: the program's own tests hold this list against its command line,
//! and `tests/outputs.rs` tries every one that names an output.

/// What a path on the command line is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// It is read.
    Input,
    /// A drive, or a file in a drive's place, with checks of its own.
    Target,
    /// A file that is written: the command line that does, with `OUT` for the path and `@` for the folder of the test, and an
    /// input of that command (empty if it has none).
    File {
        /// The words.
        line: &'static str,
        /// The input.
        input: &'static str,
    },
    /// A folder that files are written into.
    Folder {
        /// The words.
        line: &'static str,
        /// A file that is written there, or would be.
        file: &'static str,
        /// Whether the command is quick enough to be run to its end in a new folder.
        quick: bool,
    },
}

use Role::{File, Folder, Input, Target};

const fn experiment(line: &'static str) -> Role {
    Folder { line, file: "run.json", quick: false }
}

/// Command, the argument's name, and what it is for.
pub const PATHS: &[(&str, &str, Role)] = &[
    (
        "",
        "profiles",
        Folder {
            line: "profiles import @/measured --name made --capacity 1TB -y --profiles OUT",
            file: "made.toml",
            quick: true,
        },
    ),
    ("array create", "targets", Target),
    ("array list", "directories", Input),
    ("array rebuild", "onto", Target),
    ("drives", "targets", Target),
    ("extract", "output", File { line: "extract @/array -q -y -o OUT", input: "@/array/member0" }),
    ("fit", "measurement", Input),
    (
        "fit",
        "output",
        File { line: "fit @/measured -q -y -o OUT", input: "@/measured/run/workload.json" },
    ),
    (
        "flows",
        "output",
        File { line: "flows @/array -q -y --format csv -o OUT", input: "@/array/member0" },
    ),
    ("measure all", "targets", Target),
    ("measure all", "output", experiment("measure all sim:ideal -q --resume -o OUT")),
    ("measure apps", "targets", Target),
    ("measure apps", "demands", Input),
    ("measure apps", "output", experiment("measure apps sim:ideal -q --resume -o OUT")),
    ("measure fill", "targets", Target),
    ("measure fill", "output", experiment("measure fill sim:ideal -q --resume -o OUT")),
    ("measure import", "file", Input),
    (
        "measure import",
        "output",
        Folder {
            line: "measure import @/fio.json -o OUT",
            file: "run/workload.json",
            quick: false,
        },
    ),
    ("measure link", "targets", Target),
    ("measure link", "output", experiment("measure link sim:ideal -q --resume -o OUT")),
    ("measure mix", "targets", Target),
    ("measure mix", "output", experiment("measure mix sim:ideal -q --resume -o OUT")),
    ("measure neighbours", "targets", Target),
    ("measure neighbours", "output", experiment("measure neighbours sim:ideal -q --resume -o OUT")),
    ("measure replay", "trace", Input),
    ("measure replay", "targets", Target),
    (
        "measure replay",
        "output",
        Folder {
            line: "measure replay @/trace.csv sim:ideal -q --resume -o OUT",
            file: "run/1-sim-ideal.hlog",
            quick: true,
        },
    ),
    ("measure run", "targets", Target),
    (
        "measure run",
        "output",
        Folder {
            line: "measure run sim:ideal -q --write 1 --bytes 16MiB --resume -o OUT",
            file: "run/workload.hlog",
            quick: true,
        },
    ),
    ("measure run", "workload", Input),
    ("measure snia", "targets", Target),
    ("measure snia", "output", experiment("measure snia sim:ideal -q --resume -o OUT")),
    ("measure diskmark", "targets", Target),
    ("measure diskmark", "output", experiment("measure diskmark sim:ideal -q --resume -o OUT")),
    ("measure steady", "targets", Target),
    ("measure steady", "output", experiment("measure steady sim:ideal -q --resume -o OUT")),
    ("measure stream", "targets", Target),
    ("measure stream", "output", experiment("measure stream sim:ideal -q --resume -o OUT")),
    ("measure viewers", "targets", Target),
    ("measure viewers", "output", experiment("measure viewers sim:ideal -q --resume -o OUT")),
    (
        "plan",
        "html",
        File { line: "plan @/requirement.toml -y --html OUT", input: "@/requirement.toml" },
    ),
    ("plan", "requirement", Input),
    ("profiles import", "from", Input),
    (
        "profiles import",
        "output",
        File {
            line: "profiles import @/measured --name made --capacity 1TB -y -o OUT",
            input: "@/measured/run/workload.json",
        },
    ),
    ("profiles import", "overwrite_pass", Input),
    ("record", "config", Input),
    (
        "record",
        "metrics",
        File {
            line: "record --from @/packets.pcapng -q -y --keep-privileges -w @/again.pcapng --metrics OUT",
            input: "@/packets.pcapng",
        },
    ),
    (
        "record",
        "write",
        File { line: "record --from @/packets.pcapng -q -y -w OUT", input: "@/packets.pcapng" },
    ),
    (
        "report",
        "csv",
        Folder {
            line: "report @/measured -y -o @/page.html --csv OUT",
            file: "intervals.csv",
            quick: true,
        },
    ),
    ("report", "folders", Input),
    (
        "report",
        "output",
        File { line: "report @/measured -y -o OUT", input: "@/measured/run/workload.json" },
    ),
    (
        "report",
        "parquet",
        Folder {
            line: "report @/measured -y -o @/page.html --parquet OUT",
            file: "intervals.parquet",
            quick: true,
        },
    ),
    (
        "report",
        "svg",
        Folder {
            line: "report @/measured -y -o @/page.html --svg OUT",
            file: "run-rate-over-time.svg",
            quick: true,
        },
    ),
    (
        "reproduce",
        "output",
        Folder { line: "reproduce -q -o OUT", file: "report.html", quick: false },
    ),
    (
        "serve",
        "audit",
        File {
            line: "serve --listen 127.0.0.1:0 --array @/array --audit OUT",
            input: "@/array/member0",
        },
    ),
    ("serve", "tls_cert", Input),
    ("serve", "tls_key", Input),
    ("serve", "tls_client_ca", Input),
    ("serve", "tls_client_crl", Input),
    ("serve", "tokens", Input),
    ("sim check", "files", Input),
    (
        "sim new",
        "output",
        File { line: "sim new made --from @/drive.toml -y -o OUT", input: "@/drive.toml" },
    ),
    (
        "sweep",
        "csv",
        File { line: "sweep @/sweep.toml -q -y -o @/swept --csv OUT", input: "@/sweep.toml" },
    ),
    (
        "sweep",
        "output",
        Folder { line: "sweep @/sweep.toml -q -y -o OUT", file: "results.jsonl", quick: true },
    ),
    (
        "sweep",
        "parquet",
        File { line: "sweep @/sweep.toml -q -y -o @/swept --parquet OUT", input: "@/sweep.toml" },
    ),
    ("sweep", "spec", Input),
    ("sweep", "tls_ca_file", Input),
    ("sweep", "tls_cert", Input),
    ("sweep", "tls_key", Input),
    (
        "sweep expand",
        "output",
        Folder { line: "sweep expand @/sweep.toml -y -o OUT", file: "0.toml", quick: true },
    ),
    ("sweep expand", "spec", Input),
    ("sweep job", "job", Input),
    (
        "token",
        "file",
        File { line: "token create --name x --scope read --file OUT", input: "@/packets.pcapng" },
    ),
    // It is the output of `extract`, which the command becomes.
    ("wireshark extcap", "fifo", Target),
    (
        "wireshark install",
        "directory",
        Folder {
            line: "wireshark install --array @/array -y --directory OUT",
            file: "longtake",
            quick: true,
        },
    ),
];
