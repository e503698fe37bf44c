//! The embedded default: a directory of member files, `member0`, `member1` and so on.

use std::fs;
use std::path::{Path, PathBuf};

use ::target::NewFiles;
use ::target::new_files::{self, check_space};
use anyhow::{Context, Result, anyhow, bail};
use base::units::counted;
use base::{ByteSize, Geometry};
use device::target::{self, Access, OpenTarget};
use device::{Options, Pages, Pool, UringBank};
use format::superblock::MEMBERS_MAX;
use format::{Layout, PAGE_BYTES};
use recorder::ArrayImage;
use recorder::create::{self, Plan};
use recorder::reader::Reader;

use super::builder::Builder;
use super::fits::Fits;
use super::observer::Observer;
use super::options::NewArray;
use crate::{Remark, names};

/// Size of a member file, unless the recording is known to need larger ones.
const MEMBER_BYTES_DEFAULT: u64 = 2 << 30;

/// Room in a member beside what the recording needs: a segment that is not full, superblocks and records.
const MEMBER_BYTES_EXTRA: u64 = (256 << 20) + (16 << 20);

/// What is left free of all the space: one part of so many.
const LEFT_FREE: u64 = 10;

impl NewArray {
    /// Bytes of each file.
    pub fn member_bytes(&self) -> u64 {
        self.member_size.map_or(MEMBER_BYTES_DEFAULT, |size| size.0) / PAGE_BYTES * PAGE_BYTES
    }

    /// Options that shape a new array and differ from this one, which exists. The number of members that is the default may not have been
    /// given; `--mode` isn't compared.
    pub fn without_effect_on(&self, existing: &ArrayImage) -> Vec<String> {
        let members = usize::from(self.members);
        let is_given = members != usize::from(Self::default().members);
        let other_members = is_given && members != existing.members.len();
        let member_size = self.member_size.map(|_| ByteSize(self.member_bytes()));
        let has_size =
            |bytes| existing.superblock.members.iter().any(|m| m.capacity_bytes == bytes);
        let has_layout = |is_such: &dyn Fn(&Layout) -> bool| {
            existing.members.iter().any(|member| is_such(&member.layout))
        };
        let differs = |option: &str, given: Option<ByteSize>, has: &dyn Fn(u64) -> bool| {
            given.filter(|size| !has(size.0)).map(|size| format!("{option} {size}"))
        };
        let all = [
            other_members.then(|| format!("--members {members}")),
            differs("--member-size", member_size, &has_size),
            differs("--segment", self.segment, &|bytes| {
                has_layout(&|layout| layout.segment_bytes == bytes)
            }),
            differs("--chunk", self.chunk, &|bytes| {
                has_layout(&|layout| u64::from(layout.chunk_max) == bytes)
            }),
        ];
        all.into_iter().flatten().collect()
    }

    /// The same array, with a member size for the data that is expected. An array that has a size keeps it, and so does one whose
    /// rate isn't known: the speed of a link is only an upper limit, and space for hours of it would be wasted.
    ///
    /// # Errors
    /// If the file system doesn't tell how much space there is.
    pub fn sized(&self, directory: &Path, fits: &Fits) -> Result<Self> {
        let needed = match (self.member_size, fits.needs_bytes) {
            (None, Some(needs)) if self.members > 0 && fits.is_certain() => {
                member_bytes_for(needs, self.members)
            }
            _ => return Ok(self.clone()),
        };
        if needed <= MEMBER_BYTES_DEFAULT {
            return Ok(self.clone());
        }
        let available = new_files::available_bytes(directory)?;
        let most = (available - available / LEFT_FREE) / u64::from(self.members);
        let bytes = needed.min(most).max(MEMBER_BYTES_DEFAULT);
        Ok(Self { member_size: Some(ByteSize(bytes)), ..self.clone() })
    }
}

/// Size of each of so many members that together take so many bytes. A twentieth more is for chunks that are cut short by time,
/// and for what lies between them.
fn member_bytes_for(bytes: u64, members: u16) -> u64 {
    let share = bytes.saturating_add(bytes / 20).div_ceil(u64::from(members));
    share.saturating_add(MEMBER_BYTES_EXTRA).next_multiple_of(1 << 20)
}

/// Checks everything about new member files that can be known before the first of them exists: the directory, the array's
/// limits, and the free space.
///
/// # Errors
/// If the directory holds anything, the members don't make an array, or there is no space.
pub fn check(directory: &Path, new: &NewArray) -> Result<()> {
    if !(1..=MEMBERS_MAX).contains(&usize::from(new.members)) {
        bail!("--members {}: an array has from 1 to {MEMBERS_MAX} members", new.members);
    }
    if let Some(Ok(entry)) = fs::read_dir(directory).ok().and_then(|mut entries| entries.next()) {
        bail!(
            "{} is not empty and holds no member files (there is {}): name a new directory",
            directory.display(),
            entry.file_name().display()
        );
    }
    let drives: Vec<Geometry> = (0..new.members)
        .map(|number| Geometry {
            name: format!("member{number}"),
            capacity_bytes: new.member_bytes(),
            block_bytes: PAGE_BYTES as u32,
            transfer_max_bytes: 0,
            depth_max: 0,
            trim_unit_bytes: None,
            trim_reads_zeros: false,
            writable: true,
        })
        .collect();
    create::layouts_of(&drives, &plan(directory, new)?)?;
    let remedy = "ask for fewer or smaller members (--members, --member-size)";
    Ok(check_space(directory, new.members.into(), new.member_bytes(), remedy)?)
}

/// Makes member files in a new or empty directory, and an array of them.
///
/// # Errors
/// If a file or the array can't be made, or the recording is asked to stop meanwhile.
pub fn create(
    directory: &Path,
    new: &NewArray,
    job: &Builder,
    created: &mut NewFiles,
    observer: &mut dyn Observer,
) -> Result<Vec<PathBuf>> {
    created.directory(directory)?;
    observer.remark(Remark::Note(format!(
        "creating {} of {} in {}",
        counted(u64::from(new.members), "member file"),
        ByteSize(new.member_bytes()),
        directory.display()
    )));
    let paths: Vec<PathBuf> =
        (0..new.members).map(|n| directory.join(format!("member{n}"))).collect();
    let mut targets = Vec::new();
    for path in &paths {
        job.go_on()?;
        created.file(path, new.member_bytes(), new.mode)?;
        targets.push(target::open(path, Access::Write { exclusive: true })?.0);
    }
    let plan = plan(directory, new)?;
    // In a thread of its own, so that the kernel's workers for it end with it.
    std::thread::scope(|scope| scope.spawn(|| make_array(targets, &plan)).join())
        .map_err(|_| anyhow!("making the array panicked"))??;
    job.go_on()?;
    Ok(paths)
}

/// Makes an array of open files.
fn make_array(targets: Vec<OpenTarget>, plan: &Plan) -> Result<()> {
    let (pool, _) = Pool::new(2, 1 << 20, Pages::Transparent)?;
    let (mut bank, _) = UringBank::open(targets, pool.clone(), Options::default())?;
    let buffers = pool.buffer_ids().collect();
    let mut reader = Reader { bank: &mut bank, memory: &pool, buffers };
    create::create(&mut reader, plan).context("the array was not made")?;
    Ok(())
}

fn plan(directory: &Path, new: &NewArray) -> Result<Plan> {
    let name = directory
        .canonicalize()
        .ok()
        .and_then(|d| d.file_name().map(|n| names::of_folder(&n.to_string_lossy())))
        .unwrap_or_else(|| "array".to_owned());
    Ok(Plan {
        uuid: uuid::Uuid::new_v4(),
        name,
        created: source::clock::now(),
        segment_bytes: new.segment.map(|s| s.0),
        chunk_max: new.chunk.map(|c| u32::try_from(c.0)).transpose().context("--chunk")?,
        identities: (0..new.members).map(|n| format!("file member{n}")).collect(),
        // The files are new: there is nothing to trim, and it would undo their preallocation.
        trim: false,
        parity: new.parity.unwrap_or(0),
    })
}

#[cfg(test)]
mod tests {
    use recorder::WhenFull;

    use super::*;
    use crate::recording::fits::Offered;
    use crate::recording::options::Options as RecordingOptions;

    fn fits(source: &str, hours: u64, new: &NewArray) -> Fits {
        let offered = Offered::of(&source.parse().unwrap(), &RecordingOptions::default());
        let limits = (WhenFull::Stop, Some(base::Duration::from_secs(3600 * hours)));
        let members = (usize::from(new.members), new.parity.unwrap_or(0));
        Fits::new(limits, 0, members, offered)
    }

    fn sized(source: &str, hours: u64, new: &NewArray) -> u64 {
        let folder = tempfile::tempdir().unwrap();
        let directory = folder.path().join("missing/yet");
        new.sized(&directory, &fits(source, hours, new)).unwrap().member_bytes()
    }

    #[test]
    fn members_are_as_large_as_the_rate_and_the_time_ask_for() {
        let needed = |source, hours, new: &NewArray| {
            let needs = fits(source, hours, new).needs_bytes.unwrap();
            member_bytes_for(needs, new.members) as f64
        };
        // A packet of 1,500 bytes takes 1,532 with its header.
        let hour = 10e6 * 3600.0 * (1532.0 / 1500.0) * 1.05;
        let extra = MEMBER_BYTES_EXTRA as f64;
        let new = NewArray::default();
        assert!((needed("synthetic:10MB/s", 1, &new) - hour / 4.0 - extra).abs() < 2e6);
        let parity = NewArray { parity: Some(1), members: 2, ..new };
        assert!((needed("synthetic:10MB/s", 2, &parity) - 2.0 * hour - extra).abs() < 2e6);
    }

    #[test]
    fn a_small_need_an_unknown_one_and_a_given_size_change_nothing() {
        let new = NewArray::default();
        assert_eq!(sized("synthetic:1MB/s", 1, &new), MEMBER_BYTES_DEFAULT);
        assert_eq!(sized("synthetic:max", 1000, &new), MEMBER_BYTES_DEFAULT);
        assert_eq!(sized("udp:127.0.0.1:5000", 1000, &new), MEMBER_BYTES_DEFAULT);
        let time = Some(base::Duration::from_secs(3600));
        let link = Offered::of_link(base::Rate(1.25e9));
        let link = Fits::new((recorder::WhenFull::Stop, time), 0, (4, 0), Some(link));
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(new.sized(folder.path(), &link).unwrap().member_bytes(), MEMBER_BYTES_DEFAULT);
        let given = NewArray { member_size: Some(ByteSize(64 << 20)), ..new };
        assert_eq!(sized("synthetic:1GB/s", 1000, &given), 64 << 20);
    }

    #[test]
    fn members_leave_a_part_of_the_space_free() {
        let new = NewArray::default();
        let folder = tempfile::tempdir().unwrap();
        let available = new_files::available_bytes(folder.path()).unwrap();
        let all = 4 * sized("synthetic:100GB/s", 1000, &new);
        // Other programs write meanwhile.
        let expected = (available / 100 * 80..available / 100 * 98).contains(&all);
        assert!(expected || all == 4 * MEMBER_BYTES_DEFAULT, "{all} of {available}");
    }
}
