//! The command line: every command, and where its options are.

use std::path::PathBuf;

use clap::{Parser, Subcommand};

use crate::arguments::{
    ArrayArguments, CreateArguments, DeleteArguments, DrivesArguments, ExtractArguments,
    FitArguments, FlowsArguments, IndexArguments, LedgerArguments, ListArguments, RebuildArguments,
    RecordArguments, ReplayArguments, ReportArguments, ScrubArguments, ShowArguments,
    TakesArguments,
};
use crate::measure::arguments::MeasureAction;
use crate::plan::arguments::PlanArguments;
use crate::profiles::arguments::ProfilesAction;
use crate::protect::{ProtectArguments, UnprotectArguments};
use crate::reproduce::ReproduceArguments;
use crate::serve::ServeArguments;
use crate::sim::arguments::SimAction;
use crate::sweep::arguments::SweepArguments;
use crate::token::TokenArguments;
use crate::wireshark::WiresharkAction;

/// Record packets and sensor streams on NVMe drives; measure drives, and plan how many a rate needs.
#[derive(Debug, Parser)]
#[command(name = "longtake", version, propagate_version = true)]
#[command(
    after_help = "Exit codes: 0 done; 1 failed; 2 wrong arguments; 3 done, but something was lost, is missing or damaged."
)]
pub struct Arguments {
    /// Folder of your own drive profiles. In `reproduce`, they replace drives of the library with the same names
    /// [default: $XDG_DATA_HOME/longtake/profiles, usually below ~/.local/share].
    #[arg(long, value_name = "DIR", global = true, hide_short_help = true)]
    pub profiles: Option<PathBuf>,
    /// What to do.
    #[command(subcommand)]
    pub verb: Verb,
}

/// The commands.
#[derive(Debug, Subcommand)]
pub enum Verb {
    /// Record a source to an array, or to a directory of member files.
    Record(Box<RecordArguments>),
    /// List, create, show, check, repair, rebuild or delete arrays.
    Array {
        /// What to do with it.
        #[command(subcommand)]
        action: ArrayAction,
    },
    /// List takes: time, packets, losses.
    Takes(TakesArguments),
    /// Show the ledger of a take: offered = stored + filtered + each kind of loss.
    Ledger(LedgerArguments),
    /// Extract packets by time and filter, as pcapng or pcap. Works during a recording.
    Extract(ExtractArguments),
    /// Count packets by flow, host or port: who talked to whom. Works during a recording.
    Flows(FlowsArguments),
    /// Send recorded packets to an interface or a UDP address.
    Replay(ReplayArguments),
    /// Serve takes, flows and packets over HTTP. Works during a recording.
    ///
    /// Without --require-token, every user of this machine can read what is served on a loopback address.
    Serve(ServeArguments),
    /// Create, list and revoke the tokens that clients of a service need.
    Token(TokenArguments),
    /// Add arrays to the interfaces of Wireshark and tshark.
    Wireshark {
        /// What to do.
        #[command(subcommand)]
        action: WiresharkAction,
    },
    /// Protect a span of time from being overwritten by a ring. Works during a recording.
    Protect(ProtectArguments),
    /// Release protected spans of time.
    Unprotect(UnprotectArguments),
    /// Measure drives: run one workload, or an experiment that answers a question.
    Measure {
        /// What to measure.
        #[command(subcommand)]
        action: MeasureAction,
    },
    /// Write a report of one or several measurements.
    Report(ReportArguments),
    /// Calculate how many drives a data rate needs, and which limit binds.
    Plan(Box<PlanArguments>),
    /// List the drives of this machine, and why one may not be written.
    Drives(DrivesArguments),
    /// Show simulated drives, and create files for your own.
    Sim {
        /// What to do with them.
        #[command(subcommand)]
        action: SimAction,
    },
    /// Show figures of drives with their sources, and import measurements.
    Profiles {
        /// What to do with them.
        #[command(subcommand)]
        action: ProfilesAction,
    },
    /// Compute many designs on all cores: a grid or a sample of requirements, drives and settings.
    Sweep(SweepArguments),
    /// Run published experiments on simulated drives, and compare the results.
    Reproduce(ReproduceArguments),
    /// Fit a simulated drive to a measured one, for use as sim:PATH.
    Fit(FitArguments),
    /// Print a completion script for a shell.
    Completions {
        /// Which shell.
        shell: clap_complete::Shell,
    },
}

/// What can be done with an array.
#[derive(Debug, Subcommand)]
pub enum ArrayAction {
    /// Create an array of drives or files. Their contents are lost.
    Create(CreateArguments),
    /// List the arrays on the drives of this machine, and in directories.
    List(ListArguments),
    /// Show members, fill, protected spans, and how to copy a member with dd.
    Show(ShowArguments),
    /// Describe an array in full: geometry, drives and their health, takes with their rates and interfaces.
    Info(ArrayArguments),
    /// Read all chunks and verify their checksums.
    Check(ArrayArguments),
    /// Verify checksums and parity, and repair damage from parity. Without --repair it works during a recording.
    Scrub(ScrubArguments),
    /// Index packets by host, port and flow, so that a search reads few chunks.
    Index(IndexArguments),
    /// Rebuild a lost member on another drive from parity. Works during a recording.
    Rebuild(RebuildArguments),
    /// Delete an array: remove its member files, or erase both superblocks on its drives. Without --yes nothing is changed.
    Delete(DeleteArguments),
}

#[cfg(test)]
mod manual;

#[cfg(test)]
mod readme;

#[cfg(test)]
#[path = "../tests/documents/lines.rs"]
mod document_lines;

#[cfg(test)]
#[path = "../tests/output_rig/options.rs"]
#[allow(dead_code, reason = "the test of outputs uses the rest")]
mod output_options;

#[cfg(test)]
mod tests {
    use std::any::TypeId;

    use clap::{Arg, Command, CommandFactory, Parser};
    use recorder::defaults;

    use super::{Arguments, Verb, output_options};

    /// Names that an output would have if its path were not of the type of paths.
    const OUTPUTS: [&str; 5] = ["output", "html", "svg", "csv", "parquet"];

    fn is_path(argument: &Arg) -> bool {
        argument.get_value_parser().type_id() == TypeId::of::<std::path::PathBuf>()
            || OUTPUTS.contains(&argument.get_id().as_str())
            || argument.get_short() == Some('o')
    }

    fn collect(command: &Command, name: &str, found: &mut Vec<(String, String)>) {
        let paths = command.get_arguments().filter(|argument| is_path(argument));
        found.extend(paths.map(|path| (name.to_owned(), path.get_id().to_string())));
        for verb in command.get_subcommands() {
            collect(verb, format!("{name} {}", verb.get_name()).trim(), found);
        }
    }

    #[test]
    fn a_recording_does_by_default_what_is_planned_and_proved() {
        let words = ["longtake", "record", "--from", "eth0", "--to", "array"];
        let Verb::Record(record) = Arguments::parse_from(words).verb else { panic!("{words:?}") };
        assert_eq!(record.memory.0, defaults::MEMORY_BYTES);
        assert_eq!(record.depth, defaults::DEPTH);
        assert_eq!(record.flush_interval, defaults::FLUSH_INTERVAL);
        assert_eq!(record.trim_rate, defaults::TRIM_RATE);
        assert_eq!((record.drift, record.trim_ahead, record.rest), (None, None, 0));
        assert_eq!((record.sets, record.rest_turn), (None, None));
    }

    #[test]
    fn every_path_on_the_command_line_is_known_to_the_test_of_outputs() {
        let mut found = Vec::new();
        collect(&Arguments::command(), "", &mut found);
        let known = output_options::PATHS.iter();
        let mut known: Vec<_> =
            known.map(|(command, id, _)| ((*command).to_owned(), (*id).to_owned())).collect();
        found.sort();
        known.sort();
        assert_eq!(found, known, "tests/output_rig/options.rs says what each path is for");
    }
}
