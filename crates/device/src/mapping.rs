//! One anonymous mapping of memory in the largest pages that can be had. For a recording, every page
//! is present from the start, so that no page fault and no page walk of small pages falls into it.

use std::fmt;
use std::io;
use std::ptr::{self, NonNull};

use base::ByteSize;

use crate::warning::Warning;

/// Size of the huge pages asked for: the smallest that x86-64 and aarch64 (4 KiB granule) have.
const HUGE_PAGE_BYTES: usize = 2 << 20;

/// Pages that memory is made of; as a wish, the best to try.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Pages {
    /// Pages of the machine's base size, 4 KiB as a rule.
    Normal,
    /// Huge pages where the kernel finds them.
    Transparent,
    /// Huge pages of 2 MiB, reserved for this.
    Huge,
}

/// Why memory for the buffers can't be had.
#[derive(Debug)]
pub enum PoolError {
    /// A pool of no buffers, or of empty ones.
    Empty,
    /// More bytes than addresses.
    TooLarge {
        /// Buffers asked for.
        count: u32,
        /// Bytes asked for in each.
        size: usize,
    },
    /// Less memory is free than was asked for.
    NotEnoughMemory {
        /// Bytes asked for.
        wanted: u64,
        /// Bytes that the kernel holds to be available.
        available: u64,
    },
    /// The kernel refused.
    Map {
        /// Bytes asked for.
        wanted: u64,
        /// Its reason.
        reason: io::Error,
    },
}

impl fmt::Display for PoolError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Empty => f.write_str("a pool needs at least one buffer of at least one byte"),
            Self::TooLarge { count, size } => write!(
                f,
                "{count} buffers of {size} bytes are more than a process can address; ask for less"
            ),
            Self::NotEnoughMemory { wanted, available } => write!(
                f,
                "buffers need {} of memory and {} are available: ask for less, or free memory",
                ByteSize(*wanted),
                ByteSize(*available),
            ),
            Self::Map { wanted, reason } => write!(
                f,
                "mapping {wanted} bytes of memory for buffers failed: {reason}; use fewer or \
                 smaller buffers, or raise `ulimit -v`"
            ),
        }
    }
}

impl std::error::Error for PoolError {}

/// Owns the mapping; unmaps on drop.
#[derive(Debug)]
pub(crate) struct Mapping {
    start: NonNull<u8>,
    /// What was mapped, which for alignment can be more than what is used.
    whole: NonNull<u8>,
    whole_bytes: usize,
    pages: Pages,
    /// Whether its pages are present from the start.
    populated: bool,
}

// SAFETY: a mapping belongs to the process and not to a thread; the type hands out no references.
unsafe impl Send for Mapping {}
// SAFETY: as above; all methods that take `&self` only read plain fields.
unsafe impl Sync for Mapping {}

impl Mapping {
    /// At least `bytes` zeroed bytes, all present in memory, in pages no better than `best`.
    pub(crate) fn new(bytes: usize, best: Pages) -> Result<(Self, Vec<Warning>), PoolError> {
        let mut warnings = Vec::new();
        let needed = bytes.div_ceil(HUGE_PAGE_BYTES);
        let huge = HugePages::read();
        if best == Pages::Huge {
            // The mapping reserves its pages or fails; populating can still meet a cgroup's limit.
            let flags = libc::MAP_HUGETLB | libc::MAP_HUGE_2MB;
            if let Ok(mut mapping) = Self::map(needed * HUGE_PAGE_BYTES, flags, Pages::Huge)
                && mapping.populate().is_ok()
            {
                return Ok((mapping, warnings));
            }
        }
        let mut mapping = Self::aligned(bytes)?;
        if best >= Pages::Transparent {
            let setting = huge.total + (needed as u64).saturating_sub(huge.free);
            match mapping.ask_for_huge_pages(bytes) {
                Ok(()) => {
                    if best == Pages::Huge {
                        warnings.push(Warning::NoReservedHugePages {
                            needed: needed as u64,
                            free: huge.free,
                            setting,
                        });
                    }
                }
                Err(reason) => {
                    warnings.push(Warning::NoHugePages { setting, reason: reason.to_string() });
                }
            }
        }
        let wanted = bytes as u64;
        mapping.populate_first(bytes).map_err(|reason| PoolError::Map { wanted, reason })?;
        Ok((mapping, warnings))
    }

    /// At least `bytes` zeroed bytes, present when they are used, in huge pages where the kernel finds them.
    pub(crate) fn as_used(bytes: usize) -> Result<Self, PoolError> {
        let mut mapping = Self::aligned(bytes)?;
        drop(mapping.ask_for_huge_pages(bytes));
        Ok(mapping)
    }

    /// At least `bytes` from a multiple of a huge page on, none of them present yet.
    fn aligned(bytes: usize) -> Result<Self, PoolError> {
        let wanted = bytes as u64;
        if let Some(available) = available_bytes()
            && wanted > available
        {
            return Err(PoolError::NotEnoughMemory { wanted, available });
        }
        let error = |reason| PoolError::Map { wanted, reason };
        let length = bytes
            .div_ceil(HUGE_PAGE_BYTES)
            .checked_add(1)
            .and_then(|pages| pages.checked_mul(HUGE_PAGE_BYTES))
            .ok_or_else(|| error(io::Error::from_raw_os_error(libc::ENOMEM)))?;
        let mut mapping = Self::map(length, 0, Pages::Normal).map_err(error)?;
        mapping.align(HUGE_PAGE_BYTES);
        Ok(mapping)
    }

    /// The first byte that may be used, aligned to 4 KiB at least.
    pub(crate) fn start(&self) -> NonNull<u8> {
        self.start
    }

    /// Whether its pages are present from the start.
    pub(crate) fn is_populated(&self) -> bool {
        self.populated
    }

    /// What it was given.
    pub(crate) fn pages(&self) -> Pages {
        self.pages
    }

    fn map(bytes: usize, flags: libc::c_int, pages: Pages) -> io::Result<Self> {
        // SAFETY: a new anonymous private mapping at an address of the kernel's choice aliases
        // nothing.
        let address = unsafe {
            libc::mmap(
                ptr::null_mut(),
                bytes,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | flags,
                -1,
                0,
            )
        };
        if address == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let start = NonNull::new(address.cast::<u8>()).expect("mmap never returns address zero");
        Ok(Self { start, whole: start, whole_bytes: bytes, pages, populated: false })
    }

    /// Moves the start up to a multiple of `unit`, which the caller has mapped enough for.
    fn align(&mut self, unit: usize) {
        let skipped = self.start.as_ptr().align_offset(unit);
        debug_assert!(skipped < self.whole_bytes);
        // SAFETY: fewer bytes are skipped than were mapped (one unit more than is used).
        self.start = unsafe { self.start.add(skipped) };
    }

    /// Huge pages for the first `bytes`, and what is left of the last page.
    fn ask_for_huge_pages(&mut self, bytes: usize) -> io::Result<()> {
        let setting = std::fs::read_to_string("/sys/kernel/mm/transparent_hugepage/enabled")
            .unwrap_or_default();
        if setting.contains("[never]") {
            return Err(io::Error::other("/sys/kernel/mm/transparent_hugepage/enabled says never"));
        }
        self.advise(bytes.next_multiple_of(HUGE_PAGE_BYTES), libc::MADV_HUGEPAGE)?;
        self.pages = Pages::Transparent;
        Ok(())
    }

    fn populate(&mut self) -> io::Result<()> {
        self.populate_first(self.whole_bytes)
    }

    /// Makes the pages of the first `bytes` present.
    fn populate_first(&mut self, bytes: usize) -> io::Result<()> {
        self.populated = true;
        match self.advise(bytes, libc::MADV_POPULATE_WRITE) {
            // Linux before 5.14 doesn't know the advice: touch each page instead.
            Err(error) if error.raw_os_error() == Some(libc::EINVAL) => {
                for offset in (0..bytes).step_by(4096) {
                    // SAFETY: inside the mapping, which nobody else knows yet.
                    unsafe { self.start.add(offset).write_volatile(0) };
                }
                Ok(())
            }
            other => other,
        }
    }

    fn advise(&self, bytes: usize, advice: libc::c_int) -> io::Result<()> {
        loop {
            // SAFETY: the range lies inside the mapping, and neither advice changes its contents.
            if unsafe { libc::madvise(self.start.as_ptr().cast(), bytes, advice) } == 0 {
                return Ok(());
            }
            let error = io::Error::last_os_error();
            if !matches!(error.raw_os_error(), Some(libc::EINTR | libc::EAGAIN)) {
                return Err(error);
            }
        }
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: exactly what `map` got, and the owner of the last use is going away. A failure
        // would leave the memory mapped, which is safe.
        unsafe { libc::munmap(self.whole.as_ptr().cast(), self.whole_bytes) };
    }
}

/// Reserved huge pages of 2 MiB.
struct HugePages {
    total: u64,
    free: u64,
}

impl HugePages {
    fn read() -> Self {
        let number = |name: &str| {
            std::fs::read_to_string(format!("/sys/kernel/mm/hugepages/hugepages-2048kB/{name}"))
                .ok()
                .and_then(|text| text.trim().parse().ok())
                .unwrap_or(0)
        };
        Self { total: number("nr_hugepages"), free: number("free_hugepages") }
    }
}

/// What the kernel estimates can be allocated without swapping; None if it doesn't say.
fn available_bytes() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/meminfo").ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok().map(|kib| kib * 1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_aligned_whichever_pages_it_gets() {
        for best in [Pages::Normal, Pages::Transparent, Pages::Huge] {
            let (mapping, _) = Mapping::new(3 << 20, best).unwrap();
            assert_eq!(mapping.start().as_ptr().align_offset(HUGE_PAGE_BYTES), 0, "{best:?}");
            assert!(mapping.pages() <= best);
        }
    }

    #[test]
    fn each_step_down_from_huge_pages_says_what_to_set() {
        let (mapping, warnings) = Mapping::new(64 << 20, Pages::Huge).unwrap();
        match mapping.pages() {
            Pages::Huge => assert_eq!(warnings, []),
            _ => {
                assert_eq!(warnings.len(), 1);
                assert!(warnings[0].to_string().contains("sysctl vm.nr_hugepages="));
            }
        }
    }

    /// Bytes of a mapping that are in memory.
    fn present(mapping: &Mapping, bytes: usize) -> usize {
        let mut pages = vec![0_u8; bytes / 4096];
        // SAFETY: the range is mapped, and there is a byte of the answer for each of its pages.
        let asked =
            unsafe { libc::mincore(mapping.start().as_ptr().cast(), bytes, pages.as_mut_ptr()) };
        assert_eq!(asked, 0, "{}", io::Error::last_os_error());
        pages.iter().filter(|&&page| page & 1 != 0).count() * 4096
    }

    #[test]
    fn memory_is_there_from_the_start_or_as_it_is_used() {
        let bytes = 16 << 20;
        let (whole, _) = Mapping::new(bytes, Pages::Transparent).unwrap();
        assert_eq!(present(&whole, bytes), bytes);
        let used = Mapping::as_used(bytes).unwrap();
        assert_eq!(used.start().as_ptr().align_offset(HUGE_PAGE_BYTES), 0);
        assert_eq!(present(&used, bytes), 0);
        // SAFETY: the address lies within the mapping, and nothing else refers to it.
        unsafe { used.start().write_volatile(1) };
        assert!((4096..=HUGE_PAGE_BYTES).contains(&present(&used, bytes)));
    }

    #[test]
    fn more_memory_than_there_is_is_refused_before_the_machine_suffers() {
        for got in
            [Mapping::new(1 << 46, Pages::Normal).map(drop), Mapping::as_used(1 << 46).map(drop)]
        {
            let error = got.unwrap_err();
            assert!(matches!(error, PoolError::NotEnoughMemory { .. }), "{error}");
        }
    }
}
