//! Making an array of drives or files.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use ::target::real::open_proven;
use ::target::{SimTarget, authorize, wear};
use anyhow::{Context, Result, bail};
use base::{Bank, ByteSize};
use device::safety::{Authorized, Purpose};
use device::shell::quoted;
use device::target::Access;
use device::{Options, Pages, Pool, UringBank};
use format::Layout;
use recorder::create::{self, Plan};
use recorder::reader::Reader;
use uuid::Uuid;

use crate::Remark;

/// How to create an array.
#[derive(Clone, Debug)]
pub struct CreateOptions {
    /// The array's name, at most 64 bytes.
    pub name: String,
    /// Serial numbers of drives whose contents may be lost. A drive that is not named here is refused if it may hold anything.
    pub erase: Vec<String>,
    /// Whether members of another array may be taken too.
    pub replace_array: bool,
    /// Length of a segment, the unit of ring reuse, trim and protection; None for 256 MiB, less on small drives.
    pub segment: Option<ByteSize>,
    /// Length of the longest chunk in bytes, the unit of writing; None for 4 MiB less 4 KiB.
    pub chunk_bytes: Option<u32>,
    /// Parity chunks for each group of chunks: 0, 1 or 2. As many members may fail without loss; parity takes as many members'
    /// capacity and rate.
    pub parity: u8,
    /// Whether drives are trimmed.
    pub trim: bool,
    /// Whether to find out what would be done and write nothing.
    pub dry_run: bool,
}

impl Default for CreateOptions {
    fn default() -> Self {
        Self {
            name: "array".to_owned(),
            erase: Vec::new(),
            replace_array: false,
            segment: None,
            chunk_bytes: None,
            parity: 0,
            trim: true,
            dry_run: false,
        }
    }
}

/// What was created, or would be.
#[derive(Clone, Debug)]
pub struct CreateReport {
    /// The new array's identity.
    pub uuid: Uuid,
    /// Its name.
    pub name: String,
    /// Parity chunks for each group of chunks.
    pub parity: u8,
    /// Whether nothing was written.
    pub dry_run: bool,
    /// Its members, by number.
    pub members: Vec<NewMember>,
}

/// A member of an array that is created.
#[derive(Clone, Debug)]
pub struct NewMember {
    /// Its file or device.
    pub target: String,
    /// Size of the drive or file in bytes.
    pub capacity_bytes: u64,
    /// Number of segments.
    pub segments: u64,
    /// Length of a segment in bytes.
    pub segment_bytes: u64,
    /// Length of the longest chunk in bytes.
    pub chunk_max: u32,
    /// Whether it is trimmed whole.
    pub trimmed: bool,
    /// Bytes that creating the array writes to it.
    pub writes_bytes: u64,
    /// The share of the drive's rated life that this takes, in words; None for a file.
    pub share_of_life: Option<String>,
}

/// An array that can be created: every target is allowed, open and large enough. Nothing is written yet.
pub struct CreatePlan {
    bank: UringBank,
    pool: Arc<Pool>,
    plan: Plan,
    report: CreateReport,
    /// Keeps others off the drives.
    _authorized: Vec<Option<Authorized>>,
}

impl CreatePlan {
    /// Looks at the targets, and opens them unless this is a dry run. Warnings go to `tell`.
    ///
    /// # Errors
    /// If any target is refused, can't be opened or is too small.
    pub fn new(
        targets: &[PathBuf],
        options: &CreateOptions,
        tell: &mut dyn FnMut(Remark),
    ) -> crate::Result<Self> {
        Ok(Self::of(targets, options, tell)?)
    }

    /// What [`CreatePlan::run`] would create.
    pub fn report(&self) -> &CreateReport {
        &self.report
    }

    /// Creates the array, unless this is a dry run.
    ///
    /// # Errors
    /// If a target can't be written.
    pub fn run(mut self) -> crate::Result<CreateReport> {
        if !self.report.dry_run {
            let buffers = self.pool.buffer_ids().collect();
            let mut reader = Reader { bank: &mut self.bank, memory: &self.pool, buffers };
            create::create(&mut reader, &self.plan).context("the array was not made")?;
        }
        Ok(self.report)
    }

    fn of(
        targets: &[PathBuf],
        options: &CreateOptions,
        tell: &mut dyn FnMut(Remark),
    ) -> Result<Self> {
        refuse_simulated(targets)?;
        let purpose = if options.replace_array { Purpose::Replace } else { Purpose::Create };
        let authorized = authorize(targets, &options.erase, purpose, options.dry_run)?;
        let access =
            if options.dry_run { Access::Read } else { Access::Write { exclusive: false } };
        let mut open = Vec::new();
        for (path, proof) in targets.iter().zip(&authorized) {
            let (target, warnings) = open_proven(path, access, proof.as_ref())?;
            warnings.into_iter().for_each(|w| tell(Remark::Warning(w.to_string())));
            open.push(target);
        }
        let plan = Plan {
            uuid: Uuid::new_v4(),
            name: options.name.clone(),
            created: source::clock::now(),
            segment_bytes: options.segment.map(|s| s.0),
            chunk_max: options.chunk_bytes,
            identities: targets.iter().map(|path| identity(path)).collect(),
            trim: options.trim,
            parity: options.parity,
        };
        let (pool, _) = Pool::new(2, 1 << 20, Pages::Transparent)?;
        let (bank, _) = UringBank::open(open, pool.clone(), Options::default())?;
        let layouts = create::layouts(&bank, &plan)?;
        let report = CreateReport {
            uuid: plan.uuid,
            name: plan.name.clone(),
            parity: plan.parity,
            dry_run: options.dry_run,
            members: members(targets, &bank, &layouts, plan.trim),
        };
        Ok(Self { bank, pool, plan, report, _authorized: authorized })
    }
}

fn refuse_simulated(targets: &[PathBuf]) -> Result<()> {
    let texts: Vec<String> =
        targets.iter().map(|path| path.to_string_lossy().into_owned()).collect();
    if SimTarget::all(&texts)?.is_some() {
        bail!(
            "simulated drives exist only while a command runs, so an array on them would be lost when this one ends: `longtake record --to \
             {}` makes one and records on it",
            quoted(&texts.join(","))
        );
    }
    Ok(())
}

fn members(
    targets: &[PathBuf],
    bank: &UringBank,
    layouts: &[Layout],
    trim: bool,
) -> Vec<NewMember> {
    let drives = bank.drives().iter().zip(layouts).zip(targets);
    let members = drives.map(|((drive, layout), target)| NewMember {
        target: drive.name.clone(),
        capacity_bytes: drive.capacity_bytes,
        segments: layout.segments,
        segment_bytes: layout.segment_bytes,
        chunk_max: layout.chunk_max,
        trimmed: trim && drive.trim_unit_bytes.is_some(),
        writes_bytes: create::WRITTEN_BYTES,
        share_of_life: wear(target, create::WRITTEN_BYTES),
    });
    members.collect()
}

/// What tells a drive from others, for people: model and serial, or its path.
pub(super) fn identity(path: &Path) -> String {
    let drive = device::identity::describe(path).ok();
    let words = drive.and_then(|d| match (d.model, d.serial) {
        (Some(model), Some(serial)) => Some(format!("{model} {serial}")),
        (None, Some(word)) | (Some(word), None) => Some(word),
        (None, None) => None,
    });
    words.unwrap_or_else(|| path.display().to_string())
}
