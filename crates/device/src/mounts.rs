//! What is mounted, in every mount namespace that can be seen.
//!
//! A container or a service with a private namespace can hold a file system that this process's own
//! table doesn't show, so one table is read for each namespace that any process lives in. Format:
//! proc_pid_mountinfo(5).

use std::collections::HashSet;
use std::fs;
use std::io::{self, Read};
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

use crate::sysfs::{DeviceNumber, System, is_digits, names_in};

/// One line of a mount table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Mount {
    /// The block device behind it.
    pub number: DeviceNumber,
    /// Where it is mounted.
    pub point: PathBuf,
    /// The file system's type.
    pub filesystem: String,
    /// A process in whose namespace it is, if not in ours.
    pub process: Option<u32>,
}

/// Every mount of a block device, and what could not be looked at.
#[derive(Debug, Default)]
pub(crate) struct Mounts {
    pub all: Vec<Mount>,
    pub unchecked: Vec<String>,
}

/// Most processes and namespaces that are looked at, and the longest table.
struct Limits {
    processes: usize,
    namespaces: usize,
    table_bytes: u64,
}

const LIMITS: Limits = Limits { processes: 100_000, namespaces: 4_096, table_bytes: 16 << 20 };

impl Mounts {
    /// Reads them.
    pub fn read(system: &System) -> Self {
        Self::read_within(system, &LIMITS)
    }

    fn read_within(system: &System, limits: &Limits) -> Self {
        let mut mounts = Self::default();
        let mut seen = HashSet::new();
        let own = system.proc.join("self");
        seen.extend(namespace_of(&own).ok());
        mounts.add(&own.join("mountinfo"), None, limits);

        let processes = names_in(&system.proc).unwrap_or_default();
        let processes: Vec<_> = processes.into_iter().filter(|name| is_digits(name)).collect();
        if processes.len() > limits.processes {
            let rest = processes.len() - limits.processes;
            mounts.unchecked.push(format!("mount namespaces of {rest} processes (too many)"));
        }
        let mut hidden = 0;
        for process in processes.iter().take(limits.processes) {
            let folder = system.proc.join(process);
            match namespace_of(&folder) {
                Ok(namespace) if seen.contains(&namespace) => {}
                Ok(_) if seen.len() >= limits.namespaces => hidden += 1,
                Ok(namespace) => {
                    seen.insert(namespace);
                    mounts.add(&folder.join("mountinfo"), process.parse().ok(), limits);
                }
                // A process that has ended has no namespace any more.
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(_) => hidden += 1,
            }
        }
        if hidden > 0 {
            mounts.unchecked.push(format!(
                "the mount namespaces of {hidden} process(es) that may not be looked at; what is \
                 mounted there still makes exclusive opening fail"
            ));
        }
        mounts
    }

    fn add(&mut self, table: &Path, process: Option<u32>, limits: &Limits) {
        let mut bytes = Vec::new();
        let read = fs::File::open(table)
            .and_then(|file| file.take(limits.table_bytes).read_to_end(&mut bytes));
        match read {
            Ok(length) => {
                if length as u64 == limits.table_bytes {
                    self.unchecked.push(format!("the end of {} (too long)", table.display()));
                }
                let text = String::from_utf8_lossy(&bytes);
                self.all.extend(text.lines().filter_map(|line| parse(line, process)));
            }
            Err(_) if process.is_some() && !table.exists() => {}
            Err(error) => self.unchecked.push(format!("{}: {error}", table.display())),
        }
    }
}

/// A name that is the same for all processes of one mount namespace.
fn namespace_of(process: &Path) -> io::Result<PathBuf> {
    fs::read_link(process.join("ns/mnt"))
}

/// `36 35 98:0 /mnt1 /mnt2 rw,noatime master:1 - ext3 /dev/root rw,errors=continue`
///
/// btrfs and others mount under a number that belongs to no device (major 0): then the source is
/// looked at.
fn parse(line: &str, process: Option<u32>) -> Option<Mount> {
    let (place, kind) = line.split_once(" - ")?;
    let mut place = place.split(' ');
    let number = DeviceNumber::parse(place.nth(2)?)?;
    let point = PathBuf::from(unescape(place.nth(1)?));
    let mut kind = kind.split(' ');
    let filesystem = kind.next()?.to_owned();
    let number = match number.major {
        0 => block_number(Path::new(&unescape(kind.next()?)))?,
        _ => number,
    };
    Some(Mount { number, point, filesystem, process })
}

/// The number of a block device node.
pub(crate) fn block_number(path: &Path) -> Option<DeviceNumber> {
    if !path.is_absolute() {
        return None;
    }
    let metadata = fs::metadata(path).ok()?;
    metadata.file_type().is_block_device().then(|| DeviceNumber::from_raw(metadata.rdev()))
}

/// Blanks and backslashes are written as three octal digits in tables of procfs.
pub(crate) fn unescape(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&first, tail)) = rest.split_first() {
        let octal = (first == b'\\')
            .then(|| tail.get(..3))
            .flatten()
            .and_then(|digits| std::str::from_utf8(digits).ok())
            .and_then(|digits| u8::from_str_radix(digits, 8).ok());
        match octal {
            Some(byte) => {
                bytes.push(byte);
                rest = &tail[3..];
            }
            None => {
                bytes.push(first);
                rest = tail;
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn any_line_is_a_mount_or_left_out(line in r"[0-9:/\\ a-z-]{0,80}", blank in any::<String>()) {
            if let Some(mount) = parse(&line, None) {
                prop_assert!(mount.number.major > 0);
            }
            prop_assert!(parse(&blank, None).is_none_or(|mount| mount.number.major > 0));
        }
    }

    #[test]
    fn a_mount_is_read_with_its_optional_fields_and_escapes() {
        let line = r"36 35 259:1 /sub /mnt/two\040words rw shared:7 master:1 - ext4 /dev/root rw";
        let expected = Mount {
            number: DeviceNumber { major: 259, minor: 1 },
            point: "/mnt/two words".into(),
            filesystem: "ext4".into(),
            process: Some(7),
        };
        assert_eq!(parse(line, Some(7)), Some(expected));
    }

    #[test]
    fn mounts_without_a_device_are_left_out() {
        assert_eq!(parse("24 27 0:6 / /dev rw - devtmpfs devtmpfs rw", None), None);
        assert_eq!(parse("24 27 0:99 / /x rw - tmpfs /dev/null rw", None), None);
        assert_eq!(parse("", None), None);
        assert_eq!(parse("1 2 3:4 - ", None), None);
    }

    #[test]
    fn each_namespace_is_read_once_and_named_by_a_process_in_it() {
        let root = tempfile::tempdir().unwrap();
        let system = System::at(root.path());
        for (process, namespace) in [("self", 1), ("10", 1), ("20", 2), ("21", 2)] {
            let folder = system.proc.join(process);
            fs::create_dir_all(folder.join("ns")).unwrap();
            std::os::unix::fs::symlink(format!("mnt:[{namespace}]"), folder.join("ns/mnt"))
                .unwrap();
            let line = format!("1 0 259:{namespace} / /here rw - ext4 /dev/x rw\n");
            fs::write(folder.join("mountinfo"), line).unwrap();
        }
        let mounts = Mounts::read(&system);
        let seen: Vec<_> = mounts.all.iter().map(|m| (m.number.minor, m.process)).collect();
        assert_eq!(seen, [(1, None), (2, Some(20))]);
        assert_eq!(mounts.unchecked, Vec::<String>::new());
    }

    #[test]
    fn a_namespace_that_can_not_be_seen_is_told_and_an_ended_process_has_none() {
        let root = tempfile::tempdir().unwrap();
        let system = System::at(root.path());
        fs::create_dir_all(system.proc.join("self")).unwrap();
        fs::write(system.proc.join("self/mountinfo"), "").unwrap();
        fs::create_dir_all(system.proc.join("43")).unwrap();
        assert_eq!(Mounts::read(&system).unchecked, Vec::<String>::new());
        // Anything but a link can't be read as one, as if it were another user's.
        fs::create_dir_all(system.proc.join("44/ns")).unwrap();
        fs::write(system.proc.join("44/ns/mnt"), "").unwrap();
        let unchecked = Mounts::read(&system).unchecked;
        assert!(unchecked.len() == 1 && unchecked[0].contains("1 process(es)"), "{unchecked:?}");
    }

    /// A system with this process's table and those of other processes, each in a namespace of its own.
    fn system(root: &Path, processes: &[u32]) -> System {
        let system = System::at(root);
        let line = |minor: u32| format!("1 0 259:{minor} / /here rw - ext4 /dev/x rw\n");
        for process in std::iter::once(0).chain(processes.iter().copied()) {
            let name = if process == 0 { "self".to_owned() } else { process.to_string() };
            let folder = system.proc.join(name);
            fs::create_dir_all(folder.join("ns")).unwrap();
            let namespace = format!("mnt:[{process}]");
            std::os::unix::fs::symlink(namespace, folder.join("ns/mnt")).unwrap();
            fs::write(folder.join("mountinfo"), line(process)).unwrap();
        }
        system
    }

    fn minors(mounts: &Mounts) -> Vec<u32> {
        mounts.all.iter().map(|mount| mount.number.minor).collect()
    }

    #[test]
    fn what_is_beyond_a_limit_is_told_and_what_just_reaches_it_is_read() {
        let root = tempfile::tempdir().unwrap();
        let system = system(root.path(), &[10, 20, 30]);
        let read = |limits: Limits| Mounts::read_within(&system, &limits);
        let all = read(Limits { processes: 3, namespaces: 4, ..LIMITS });
        assert_eq!((minors(&all), all.unchecked), (vec![0, 10, 20, 30], Vec::new()));

        let some = read(Limits { processes: 1, ..LIMITS });
        assert_eq!(minors(&some), [0, 10]);
        assert_eq!(some.unchecked, ["mount namespaces of 2 processes (too many)"]);

        let some = read(Limits { namespaces: 2, ..LIMITS });
        assert_eq!(minors(&some), [0, 10]);
        assert!(some.unchecked.len() == 1 && some.unchecked[0].contains("2 process(es)"));

        // The first line ends at byte 39 of this process's table: the second one is out of reach.
        let table = system.proc.join("self/mountinfo");
        let line = "1 0 259:0 / /here rw - ext4 /dev/x rw\n";
        fs::write(&table, line.repeat(2)).unwrap();
        let cut = read(Limits { table_bytes: line.len() as u64, processes: 0, ..LIMITS });
        assert_eq!(minors(&cut), [0]);
        let told = format!("the end of {} (too long)", table.display());
        assert!(cut.unchecked.contains(&told), "{:?}", cut.unchecked);
        let whole = read(Limits { table_bytes: 1 << 10, ..LIMITS });
        assert_eq!((minors(&whole), whole.unchecked), (vec![0, 0, 10, 20, 30], Vec::new()));
    }

    #[test]
    fn a_table_that_can_not_be_read_is_told_unless_its_process_has_ended() {
        let root = tempfile::tempdir().unwrap();
        let system = system(root.path(), &[10, 20]);
        let table = |name: &str| system.proc.join(name).join("mountinfo");
        // The process ended after its namespace was looked at.
        fs::remove_file(table("10")).unwrap();
        assert_eq!(Mounts::read(&system).unchecked, Vec::<String>::new());
        fs::remove_file(table("20")).unwrap();
        fs::create_dir(table("20")).unwrap();
        let unchecked = Mounts::read(&system).unchecked;
        let names = |name: &str| unchecked[0].starts_with(&table(name).display().to_string());
        assert!(unchecked.len() == 1 && names("20"), "{unchecked:?}");
        fs::remove_dir(table("20")).unwrap();
        fs::remove_file(table("self")).unwrap();
        let unchecked = Mounts::read(&system).unchecked;
        let names = |name: &str| unchecked[0].starts_with(&table(name).display().to_string());
        assert!(unchecked.len() == 1 && names("self"), "{unchecked:?}");
    }
}
