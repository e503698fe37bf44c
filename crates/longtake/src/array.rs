//! An array: created, opened, listed, read, protected, checked and repaired.
//!
//! ```no_run
//! use std::ops::ControlFlow;
//! use std::path::PathBuf;
//!
//! use longtake::array::{CreateOptions, ScrubOptions};
//! use longtake::{Array, FileFormat, Selection};
//!
//! let targets = [PathBuf::from("/dev/nvme0n1"), PathBuf::from("/dev/nvme1n1")];
//! let erase = vec!["S4EVNX0R1".to_owned(), "S4EVNX0R2".to_owned()];
//! Array::create(&targets, &CreateOptions { name: "radar".to_owned(), erase, ..Default::default() })?;
//! // ... record on it, then, even while that goes on:
//! let mut array = Array::open("radar")?;
//! for take in array.takes()? {
//!     println!("{} has {} packets, {} missing", take.id.uuid, take.stored.packets, take.missing().packets);
//! }
//!
//! let selection =
//!     Selection { take: Some("last".to_owned()), filter: "udp port 5000".to_owned(), ..Default::default() };
//! let mut bytes = 0;
//! let extracted = array.extract(&selection, |packet| {
//!     bytes += packet.data.len();
//!     ControlFlow::Continue(())
//! })?;
//! assert!(extracted.is_complete(), "{:?}", extracted.read);
//! let mut pcapng = Vec::new();
//! array.extract_to(&selection, FileFormat::Pcapng, &mut pcapng)?;
//!
//! let take = array.ledger("last")?;
//! array.protect(take.range(), "overflight")?;
//! let report = array.scrub(&ScrubOptions::default(), |progress| {
//!     println!("{} of {} bytes", progress.done, progress.total);
//! })?;
//! assert!(report.is_sound(), "{:?}", report.findings);
//! # Ok::<(), longtake::Error>(())
//! ```

mod account;
mod arrow_table;
mod candidates;
mod check;
pub mod columns;
mod completeness;
mod compress;
mod contents;
mod courtesy;
mod create;
mod delete;
mod description;
mod encode;
mod extract;
mod file_format;
mod filter;
pub(crate) mod flow_columns;
mod flow_format;
mod flow_index;
mod flows;
mod follow;
mod found;
mod info;
pub mod open;
mod options;
mod packet_flow;
mod packet_table;
pub mod protect;
mod rates;
mod rebuild;
mod replay;
mod scrub;
mod select;

use std::io::Write;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use ::target::AnyBank;
use device::safety::Authorized;
use uuid::Uuid;

use crate::Result;
use open::Opened;

pub use account::{OverwrittenPackets, ReadAccount, RecoveredChunks, UnreadablePackets};
pub use candidates::IndexUse;
pub use check::{CheckReport, DamagedChunk};
pub use completeness::{Completeness, Members};
pub use contents::{Contents, ParityCoverage, Released, Take, TakeError, TakeState, matches_take};
pub use create::{CreateOptions, CreatePlan, CreateReport, NewMember};
pub use delete::{DeleteOptions, DeletePlan, DeleteReport, DeletedMember};
pub use description::{Description, TakeDetails, link_name};
pub use extract::{Extracted, PacketRef};
pub use file_format::{Compression, FileFormat, FormatError, OutputFormat};
pub use flow_format::FlowFormat;
pub use flow_index::{IndexOptions, IndexReport};
pub use flows::{FlowOptions, Flows};
pub use follow::Followed;
pub use found::{FoundArray, FoundState, list};
pub use info::{Extent, Info, MemberInfo, StaleMember};
pub use options::{ArrayOptions, Seen};
pub use rates::TakeRates;
pub use rebuild::{RebuildOptions, RebuildPlan, RebuildReport};
pub use replay::Replayed;
pub use scrub::{MissingMember, ScrubFinding, ScrubOptions, ScrubReport};
pub use select::{READ_RATE_DURING_RECORDING, Selected, Selection};

pub use device::wear::Health;
pub use format::export::MixedLinkTypes;
pub use format::superblock::Protected;
pub use recorder::extract::Unreadable;
pub use recorder::scrub::{Fault, Repair};
pub use recorder::takes::{Entry as Chunk, Gap};
pub use search::{CommunityId, FLOWS_MAX, Group, Order, PacketTest};
pub use source::filter::FilterError;
pub use source::pace::Pace;
pub use source::replay::ReplaySummary;
pub use source::transmit::{InterfaceSender, InterfaceSenderOptions, Sender, UdpSender};

/// How far a call has come.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    /// What is done, in the unit that the call names.
    pub done: u64,
    /// What there is to do, in the same unit.
    pub total: u64,
}

/// An open array.
///
/// Its members are read without being locked, so that it may be recorded on at the same time. What is listed and read is what the
/// array held when it was opened. If somebody was recording on it then, each call looks for what has been recorded since;
/// else [`Array::refresh`] does.
pub struct Array {
    opened: Opened,
    /// The name that it was opened by.
    name: String,
    targets: Vec<PathBuf>,
    degraded: bool,
    memory_bytes: u64,
    /// What keeps others off the drives, if it was opened for repair.
    repair: Option<Vec<Option<Authorized>>>,
}

impl std::fmt::Debug for Array {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Array").field("name", &self.name).finish_non_exhaustive()
    }
}

impl Array {
    /// Makes an array of block devices or existing files. What they hold is lost.
    ///
    /// With [`CreateOptions::dry_run`] nothing is written, and the report says what would be.
    ///
    /// # Errors
    /// If any target is refused, in which case nothing is written; or if one can't be written.
    pub fn create(targets: &[PathBuf], options: &CreateOptions) -> Result<CreateReport> {
        CreatePlan::new(targets, options, &mut |_| ())?.run()
    }

    /// Opens an array for reading by its name: a directory of member files, targets with commas between them, or the name or UUID
    /// that drives of this machine carry.
    ///
    /// # Errors
    /// If nothing of that name is found, a member can't be opened, or one is missing.
    pub fn open(name: &str) -> Result<Self> {
        Self::options().open(name)
    }

    /// Other ways to open an array.
    pub fn options() -> ArrayOptions {
        ArrayOptions::default()
    }

    /// Opens the array again, to see what has changed since it was opened.
    ///
    /// # Errors
    /// As [`Array::open`].
    pub fn refresh(&mut self) -> Result<()> {
        Ok(self.reopen()?)
    }

    /// What it held when it was last looked at, with which [`ArrayOptions::seen`] opens it faster.
    pub fn seen(&self) -> Seen {
        Seen(Arc::new(self.opened.image.clone()))
    }

    /// The array's identity.
    pub fn uuid(&self) -> Uuid {
        self.opened.image.uuid
    }

    /// The array on simulated drives that a recording has left.
    pub(crate) fn simulated(opened: Opened, name: &str) -> Self {
        Self {
            opened,
            name: name.to_owned(),
            targets: Vec::new(),
            degraded: false,
            memory_bytes: 0,
            repair: None,
        }
    }

    /// Whether its drives are simulated: it is gone when this is dropped.
    pub fn is_simulated(&self) -> bool {
        matches!(self.opened.bank, AnyBank::Simulated(_))
    }

    /// Whether somebody was recording on it when it was opened.
    pub fn is_recording(&self) -> bool {
        self.opened.recording
    }

    /// What the array is made of, how full it is, and what is protected.
    pub fn info(&self) -> Info {
        Info::of(&self.opened)
    }

    /// Which members there are.
    pub fn members(&self) -> Members {
        Members::of(&self.opened)
    }

    /// How complete takes are that were listed when the array was last looked at.
    pub fn completeness(&self, takes: &[Take]) -> Completeness {
        Completeness::of_takes(&self.opened, takes)
    }

    /// Members that were missing while others were recorded on, and were never rebuilt.
    pub fn stale_members(&self) -> Vec<StaleMember> {
        info::stale_members(&self.opened)
    }

    /// Chunks in the last listing that come from an out-of-date member although the ring has overwritten them since.
    pub fn overwritten_chunks(&self) -> u64 {
        self.opened.overwritten
    }

    /// Reads the indexes: every take, every chunk, and how much of it parity covers.
    ///
    /// # Errors
    /// If a drive can't be read.
    pub fn contents(&mut self) -> Result<Contents> {
        Ok(Contents::read(&mut self.opened)?)
    }

    /// The takes, in the order in which they were recorded.
    ///
    /// # Errors
    /// If a drive can't be read.
    pub fn takes(&mut self) -> Result<Vec<Take>> {
        Ok(self.contents()?.takes)
    }

    /// One take with its ledger. `take` is its UUID, the beginning of that, or `last`.
    ///
    /// # Errors
    /// If there is no such take, or more than one, or if a drive can't be read.
    pub fn ledger(&mut self, take: &str) -> Result<Take> {
        Ok(contents::find(self.takes()?, take).map_err(anyhow::Error::from)?)
    }

    /// Finds the chunks that may hold the selected packets. Packets are read when the result is asked for them.
    ///
    /// # Errors
    /// If the selection matches no take, its span ends before it begins, it can't be held, or a drive can't be read.
    pub fn select(&mut self, selection: &Selection) -> Result<Selected<'_>> {
        Ok(Selected::new(&mut self.opened, selection)?)
    }

    /// Hands the selected packets to `each`, in order of time within a take, until it breaks.
    ///
    /// # Errors
    /// As [`Array::select`], or if the filter can't be compiled or a bank fails. Chunks that can't be read are in the account.
    pub fn extract(
        &mut self,
        selection: &Selection,
        each: impl FnMut(PacketRef<'_>) -> ControlFlow<()>,
    ) -> Result<Extracted> {
        self.select(selection)?.for_each(each)
    }

    /// Counts the selected packets by flow, host or port.
    ///
    /// # Errors
    /// As [`Array::extract`].
    pub fn flows(&mut self, selection: &Selection, options: &FlowOptions) -> Result<Flows> {
        self.select(selection)?.flows(options, |_| ControlFlow::Continue(()))
    }

    /// Writes the selected packets as a file.
    ///
    /// # Errors
    /// As [`Array::extract`], or if `out` can't be written.
    pub fn extract_to(
        &mut self,
        selection: &Selection,
        format: impl Into<OutputFormat>,
        out: impl Write,
    ) -> Result<Extracted> {
        self.select(selection)?.write_to(format, out, |_| ControlFlow::Continue(()))
    }

    /// Sends the selected packets at a pace, until `stop` is set.
    ///
    /// # Errors
    /// As [`Array::extract`], or if the sender fails.
    pub fn replay(
        &mut self,
        selection: &Selection,
        sender: impl Sender,
        pace: Pace,
        stop: &AtomicBool,
    ) -> Result<Replayed> {
        self.select(selection)?.replay(sender, pace, stop)
    }

    /// Reads everything back and verifies every checksum. `progress` counts bytes.
    ///
    /// # Errors
    /// If a bank fails. Damage is in the report.
    pub fn check(&mut self, mut progress: impl FnMut(Progress)) -> Result<CheckReport> {
        Ok(check::check(&mut self.opened, &mut progress)?)
    }

    /// Reads everything back, compares it with its checksums and its parity, and repairs what parity allows if that is wanted.
    /// `progress` counts bytes.
    ///
    /// # Errors
    /// If a bank fails or a repair can't be written; for a repair also if somebody is recording on the array.
    /// Damage is in the report.
    pub fn scrub(
        &mut self,
        options: &ScrubOptions,
        mut progress: impl FnMut(Progress),
    ) -> Result<ScrubReport> {
        if options.repair && self.repair.is_none() {
            self.reopen_for_repair()?;
        }
        Ok(scrub::scrub(&mut self.opened, options, &mut progress)?)
    }

    /// Plans how a missing member is rebuilt onto another drive or file; writes nothing yet.
    ///
    /// # Errors
    /// If the array has no parity, the member is not missing, the target is refused, or a drive can't be read.
    pub fn plan_rebuild(
        &mut self,
        member: u16,
        onto: &Path,
        options: &RebuildOptions,
    ) -> Result<RebuildPlan<'_>> {
        self.reopen_to_read()?;
        Ok(RebuildPlan::new(self, member, onto, options)?)
    }

    /// Rebuilds a missing member onto another drive or file, also while the others are recorded on. `progress` counts bytes; see
    /// [`RebuildPlan::run`].
    ///
    /// # Errors
    /// As [`Array::plan_rebuild`], or if the target can't be written, or `stop` was set.
    pub fn rebuild(
        &mut self,
        member: u16,
        onto: &Path,
        options: &RebuildOptions,
        stop: &AtomicBool,
        progress: impl FnMut(Progress),
    ) -> Result<RebuildReport> {
        self.plan_rebuild(member, onto, options)?.run(stop, progress)
    }
}
