//! Identify data: Base Specification 2.0, section 5.17.2; for namespaces NVM Command Set Specification 1.0,
//! section 4.1.5.1.

use super::fields::Fields;
use super::log::kelvin;
use super::{Admin, Status};

/// Every data structure's length.
const BYTES: usize = 4096;

/// Entries of an NVM Set List.
const SETS_MAX: usize = 31;

/// The composite temperature that the specification recommends as the least for a warning, in kelvins: 70 degrees Celsius.
const WARNING_KELVIN: u16 = 0x157;
/// 85 degrees Celsius in kelvins, where drives on the market stop. Drives have to report a limit, even one whose heat isn't simulated.
const CRITICAL_KELVIN: u16 = 273 + 85;

/// Block formats: binary logarithm of their size.
const FORMATS: [u8; 2] = [9, 12];

impl Admin {
    /// Identify Controller (figure 275).
    pub(super) fn identify_controller(&self) -> Vec<u8> {
        let (spec, identity) = (&self.spec, &self.identity);
        let namespaces = &spec.sets.namespaces;
        let allocated: u64 = namespaces.iter().map(|it| spec.namespace_bytes(it)).sum();
        let sets = spec.sets.count.max(1) as u16;
        let (warning, critical) = spec.heat.map_or((WARNING_KELVIN, CRITICAL_KELVIN), |heat| {
            (kelvin(heat.light_c), kelvin(heat.heavy_c))
        });
        let placement = u32::from(spec.placement.is_some());
        let predictable = u32::from(spec.predictable.is_some());
        let mut data = Fields::new(BYTES);
        data.text(4, 20, &identity.serial) // SN
            .text(24, 40, &identity.model) // MN
            .text(64, 8, &identity.firmware) // FR
            .u8(77, 0) // MDTS: no limit; it is the host that splits transfers
            .u32(80, 0x0002_0000) // VER: 2.0
            // CTRATT: endurance groups, NVM Sets, Predictable Latency Mode, FDPS
            .u32(
                96,
                1 << 4 | u32::from(self.tells_sets()) << 2 | predictable << 5 | placement << 19,
            )
            .u8(111, 1) // CNTRLTYPE: I/O controller
            .u8(260, 1 << 1 | 1) // FRMW: one firmware slot, read-only
            .u8(261, 1 << 5 | 1 << 2) // LPA: supported log pages, long logs
            .u16(266, warning) // WCTEMP
            .u16(268, critical) // CCTEMP
            .count(280, spec.capacity_bytes) // TNVMCAP
            .count(296, spec.capacity_bytes.saturating_sub(allocated)) // UNVMCAP
            .u16(338, if self.tells_sets() { sets } else { 0 }) // NSETIDMAX
            .u16(340, sets) // ENDGIDMAX
            .u8(512, 0x66) // SQES: entries of 64 bytes
            .u8(513, 0x44) // CQES: entries of 16 bytes
            .u16(514, u16::try_from(spec.controller.depth).unwrap_or(0)) // MAXCMD; 0: not reported
            .u32(516, namespaces.len() as u32) // NN
            .u16(520, 1 << 2) // ONCS: Dataset Management, which is trim
            .u8(525, 0b10 << 1 | u8::from(self.volatile())) // VWC; a flush is of one namespace
            .put(768, self.qualified_name().as_bytes()); // SUBNQN
        data.bytes()
    }

    /// Identify Namespace (figure 97).
    pub(super) fn identify_namespace(&self, nsid: u32) -> Result<Vec<u8>, Status> {
        let spec = &self.spec;
        let index = (nsid as usize).checked_sub(1).ok_or(Status::INVALID_NAMESPACE)?;
        let namespace = spec.sets.namespaces.get(index).ok_or(Status::INVALID_NAMESPACE)?;
        let block = u64::from(spec.block_bytes);
        let size_bytes = spec.namespace_bytes(namespace);
        let in_use = FORMATS.iter().position(|&exponent| 1 << exponent == block).unwrap_or(0);
        // The set of a namespace is told where it is one: no drive of the specification has a namespace in several.
        let set = match namespace.sets[..] {
            [set] => set as u16 + 1,
            _ => 0,
        };
        let unit = u64::from(spec.mapping.unit_bytes).max(block);
        // Counts from 0: the value 7 is eight blocks.
        let counted = |bytes: u64| u16::try_from((bytes / block).saturating_sub(1)).unwrap_or(0);
        let best = self.stripe_bytes(&namespace.sets) / unit * unit;
        let mut data = Fields::new(BYTES);
        data.u64(0, size_bytes / block) // NSZE
            .u64(8, size_bytes / block) // NCAP
            .u64(16, size_bytes / block) // NUSE: all of it; the space is the namespace's own
            .u8(24, 1 << 4) // NSFEAT: OPTPERF, the fields from 64 on
            .u8(25, FORMATS.len() as u8 - 1) // NLBAF
            .u8(26, in_use as u8) // FLBAS
            .u8(33, spec.mapping.trim_reads_zeros.into()) // DLFEAT
            .count(48, size_bytes) // NVMCAP
            .u16(64, counted(unit)) // NPWG
            .u16(66, counted(unit)) // NPWA
            .u16(68, counted(unit)) // NPDG
            .u16(70, counted(unit)) // NPDA
            .u16(72, counted(best)) // NOWS
            .u16(100, if self.tells_sets() { set } else { 0 }) // NVMSETID
            .u16(102, set); // ENDGID
        for (n, exponent) in FORMATS.into_iter().enumerate() {
            // LBADS, and RP: 0 for the best, 2 for one that makes the drive read before it writes.
            let reads_first = 1u64 << exponent < u64::from(spec.mapping.unit_bytes);
            let performance = if reads_first { 2 } else { 0 };
            data.u32(128 + 4 * n, performance << 24 | u32::from(exponent) << 16);
        }
        Ok(data.bytes())
    }

    /// Active namespaces above one.
    pub(super) fn active_namespaces(&self, above: u32) -> Result<Vec<u8>, Status> {
        if above >= 0xFFFF_FFFE {
            return Err(Status::INVALID_NAMESPACE);
        }
        let mut data = Fields::new(BYTES);
        let ids = above + 1..=self.spec.sets.namespaces.len() as u32;
        for (n, id) in ids.take(BYTES / 4).enumerate() {
            data.u32(4 * n, id);
        }
        Ok(data.bytes())
    }

    /// The NVM Set List (figure 281) from a set on.
    pub(super) fn nvm_sets(&self, from: u16) -> Vec<u8> {
        let mut data = Fields::new(BYTES);
        let sets = (1u16..).zip(&self.health.sets).filter(|(id, _)| *id >= from).take(SETS_MAX);
        let mut count = 0;
        for (id, set) in sets {
            count += 1;
            let at = 128 * usize::from(count);
            data.u16(at, id)
                .u16(at + 2, id) // ENDGID
                .u32(at + 8, (self.random_read_us() * 10.0).round() as u32) // RR4KT: 100 ns
                .u32(at + 12, u32::try_from(self.stripe_bytes(&[u32::from(id) - 1])).unwrap_or(0)) // OWS
                .count(at + 16, set.capacity_bytes + set.unallocated_bytes) // TNSETCAP
                .count(at + 32, set.unallocated_bytes); // UNSETCAP
        }
        data.u8(0, count);
        data.bytes()
    }

    /// The Endurance Group List (figure 284) from a group on.
    pub(super) fn endurance_groups(&self, from: u16) -> Vec<u8> {
        let mut data = Fields::new(BYTES);
        let ids = (from.max(1)..=self.health.sets.len() as u16).take(BYTES / 2 - 1);
        let mut count = 0;
        for id in ids {
            count += 1;
            data.u16(2 * usize::from(count), id);
        }
        data.u16(0, count);
        data.bytes()
    }

    /// A read of 4 KiB that meets nothing else, in microseconds: each step of its way after the other.
    fn random_read_us(&self) -> f64 {
        let (flash, bytes) = (&self.spec.flash, 4096.0);
        self.spec.controller.read_us
            + flash.read_us
            + bytes / flash.channel_mb_s
            + bytes / self.spec.link.bytes_per_s() * 1e6
    }

    /// By UUID (Base Specification 2.0, section 4.5), of the version whose bits are the maker's own (RFC 9562: 8).
    fn qualified_name(&self) -> String {
        let [first, second] = self.mark;
        format!(
            "nqn.2014-08.org.nvmexpress:uuid:{:08x}-{:04x}-8{:03x}-{:04x}-{:012x}",
            first >> 32,
            first >> 16 & 0xFFFF,
            first & 0xFFF,
            second >> 48 & 0x3FFF | 0x8000,
            second & 0xFFFF_FFFF_FFFF
        )
    }
}
