//! Identify data: what a controller, its namespaces, NVM Sets and endurance groups are.
//!
//! Byte offsets: NVM Express Base Specification 2.0, section 5.17.2; for namespaces NVM Command Set
//! Specification 1.0, section 4.1.5.1. The specification's own abbreviations are in the comments.

use serde::Serialize;

use super::admin::IDENTIFY_BYTES;
use super::fields::{Fields, names};

/// Identify Controller (figure 275).
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ControllerIdentity {
    /// PCI vendor.
    pub vendor_id: u16,
    /// PCI subsystem vendor.
    pub subsystem_vendor_id: u16,
    /// Serial number.
    pub serial: Option<String>,
    /// Model.
    pub model: Option<String>,
    /// Firmware revision.
    pub firmware: Option<String>,
    /// Controller identifier within its subsystem.
    pub controller_id: u16,
    /// Version of the specification it complies with, `1.4.0`; None before 1.2, where it isn't told.
    pub version: Option<String>,
    /// The subsystem's qualified name.
    pub subsystem_nqn: Option<String>,
    /// MDTS: the longest transfer as a power of two of the controller's smallest memory page; 0: no limit.
    pub transfer_max_exponent: u8,
    /// The same in bytes for the usual page of 4 KiB; None: no limit.
    pub transfer_max_bytes: Option<u64>,
    /// Size of all NVM in bytes; None: not reported.
    pub capacity_bytes: Option<u64>,
    /// What of it is in no namespace, in bytes; None where `capacity_bytes` isn't reported.
    pub unallocated_bytes: Option<u64>,
    /// Highest namespace identifier.
    pub namespace_id_max: u32,
    /// Whether it has a volatile write cache, so that what was written is durable after a flush only.
    pub volatile_write_cache: bool,
    /// Composite temperature from which it warns, in degrees Celsius.
    pub warning_temperature_celsius: Option<i32>,
    /// Composite temperature from which it may stop or shut down, in degrees Celsius.
    pub critical_temperature_celsius: Option<i32>,
    /// Between which temperatures (degrees Celsius) the host may set where it slows down.
    pub thermal_management: Option<ThermalManagement>,
    /// Highest NVM Set identifier.
    pub nvm_set_id_max: u16,
    /// Highest endurance group identifier.
    pub endurance_group_id_max: u16,
    /// How many entries its error log holds.
    pub error_log_entries_max: u16,
    /// What it can do beyond the basics.
    pub attributes: Vec<Attribute>,
    /// Which optional admin commands it knows.
    pub admin_commands: Vec<OptionalAdminCommand>,
    /// Which optional commands of the NVM command set it knows.
    pub nvm_commands: Vec<OptionalCommand>,
    /// What it can do with log pages.
    pub log_abilities: Vec<LogAbility>,
    /// Ways to erase itself.
    pub sanitize: Vec<Sanitize>,
    /// Which read recovery levels it knows, 0 to 15: the higher, the sooner it gives up.
    pub read_recovery_levels: Vec<u8>,
    /// Power states, from 0.
    pub power_states: Vec<PowerState>,
}

/// Host controlled thermal management (MNTMT, MXTMT).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct ThermalManagement {
    /// Lowest threshold in degrees Celsius.
    pub min_celsius: Option<i32>,
    /// Highest threshold in degrees Celsius.
    pub max_celsius: Option<i32>,
}

/// Controller attributes (CTRATT) that matter to who measures or places data.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Attribute {
    /// Divides its NVM into sets that don't disturb each other.
    NvmSets,
    /// Can be told how hard to try when a read fails.
    ReadRecoveryLevels,
    /// Counts wear by group.
    EnduranceGroups,
    /// Can announce windows without housekeeping.
    PredictableLatencyMode,
    /// Reports the granularity of namespaces.
    NamespaceGranularity,
    /// Ties submission queues to NVM Sets.
    QueueAssociations,
    /// Capacity is managed in fixed configurations.
    FixedCapacityManagement,
    /// Endurance groups and NVM Sets can be made freely.
    VariableCapacityManagement,
    /// Endurance groups can be deleted.
    DeleteEnduranceGroup,
    /// NVM Sets can be deleted.
    DeleteNvmSet,
    /// Has more than 16 LBA formats, or protection information in new formats.
    ExtendedLbaFormats,
    /// Places data by reclaim unit as the host says.
    FlexibleDataPlacement,
}

const ATTRIBUTES: [(u32, Attribute); 12] = [
    (2, Attribute::NvmSets),
    (3, Attribute::ReadRecoveryLevels),
    (4, Attribute::EnduranceGroups),
    (5, Attribute::PredictableLatencyMode),
    (7, Attribute::NamespaceGranularity),
    (8, Attribute::QueueAssociations),
    (11, Attribute::FixedCapacityManagement),
    (12, Attribute::VariableCapacityManagement),
    (13, Attribute::DeleteEnduranceGroup),
    (14, Attribute::DeleteNvmSet),
    (15, Attribute::ExtendedLbaFormats),
    // Technical Proposal 4146, in Base Specification 2.1.
    (19, Attribute::FlexibleDataPlacement),
];

/// Optional admin commands (OACS).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum OptionalAdminCommand {
    /// Security Send and Receive.
    Security,
    /// Format NVM.
    FormatNvm,
    /// Firmware download and commit.
    Firmware,
    /// Making and deleting namespaces.
    NamespaceManagement,
    /// Device Self-test.
    DeviceSelfTest,
    /// Directives.
    Directives,
    /// Management interface.
    NvmeMi,
    /// Virtualization Management.
    VirtualizationManagement,
    /// Doorbell Buffer Config.
    DoorbellBufferConfig,
    /// Get LBA Status.
    GetLbaStatus,
    /// Lockdown.
    Lockdown,
}

const OPTIONAL_ADMIN_COMMANDS: [(u32, OptionalAdminCommand); 11] = [
    (0, OptionalAdminCommand::Security),
    (1, OptionalAdminCommand::FormatNvm),
    (2, OptionalAdminCommand::Firmware),
    (3, OptionalAdminCommand::NamespaceManagement),
    (4, OptionalAdminCommand::DeviceSelfTest),
    (5, OptionalAdminCommand::Directives),
    (6, OptionalAdminCommand::NvmeMi),
    (7, OptionalAdminCommand::VirtualizationManagement),
    (8, OptionalAdminCommand::DoorbellBufferConfig),
    (9, OptionalAdminCommand::GetLbaStatus),
    (10, OptionalAdminCommand::Lockdown),
];

/// Optional commands of the NVM command set (ONCS).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum OptionalCommand {
    /// Compare.
    Compare,
    /// Write Uncorrectable.
    WriteUncorrectable,
    /// Dataset Management: deallocate, which is trim.
    DatasetManagement,
    /// Write Zeroes.
    WriteZeroes,
    /// Saving and selecting feature values.
    SaveFeatures,
    /// Reservations.
    Reservations,
    /// The time stamp feature.
    Timestamp,
    /// Verify.
    Verify,
    /// Copy.
    Copy,
}

const OPTIONAL_COMMANDS: [(u32, OptionalCommand); 9] = [
    (0, OptionalCommand::Compare),
    (1, OptionalCommand::WriteUncorrectable),
    (2, OptionalCommand::DatasetManagement),
    (3, OptionalCommand::WriteZeroes),
    (4, OptionalCommand::SaveFeatures),
    (5, OptionalCommand::Reservations),
    (6, OptionalCommand::Timestamp),
    (7, OptionalCommand::Verify),
    (8, OptionalCommand::Copy),
];

/// Log page attributes (LPA).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum LogAbility {
    /// A SMART log by namespace.
    SmartByNamespace,
    /// The log of commands and their effects.
    CommandEffects,
    /// Logs longer than 16 KiB, from any offset.
    ExtendedLogs,
    /// Telemetry logs.
    Telemetry,
    /// The persistent event log.
    PersistentEvents,
    /// The log of supported log pages.
    SupportedLogPages,
}

const LOG_ABILITIES: [(u32, LogAbility); 6] = [
    (0, LogAbility::SmartByNamespace),
    (1, LogAbility::CommandEffects),
    (2, LogAbility::ExtendedLogs),
    (3, LogAbility::Telemetry),
    (4, LogAbility::PersistentEvents),
    (5, LogAbility::SupportedLogPages),
];

/// Sanitize capabilities (SANICAP).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Sanitize {
    /// Changing its encryption key.
    CryptoErase,
    /// Erasing every block.
    BlockErase,
    /// Writing over everything.
    Overwrite,
}

const SANITIZE: [(u32, Sanitize); 3] =
    [(0, Sanitize::CryptoErase), (1, Sanitize::BlockErase), (2, Sanitize::Overwrite)];

/// A power state descriptor (figure 276).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct PowerState {
    /// Greatest power in milliwatts, rounded down; None: not reported.
    pub max_milliwatts: Option<u32>,
    /// Whether it does I/O in this state.
    pub operational: bool,
    /// Longest time to enter it in microseconds; None: not reported.
    pub entry_us: Option<u32>,
    /// Longest time to leave it in microseconds; None: not reported.
    pub exit_us: Option<u32>,
}

/// Identify Namespace (NVM Command Set Specification 1.0, figure 97).
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct NamespaceIdentity {
    /// NSZE in bytes: what can be addressed.
    pub size_bytes: u64,
    /// NCAP in bytes: what may be allocated at one time.
    pub capacity_bytes: u64,
    /// NUSE in bytes: what is allocated.
    pub used_bytes: u64,
    /// NVMCAP: NVM that it takes, in bytes; None: not reported.
    pub nvm_bytes: Option<u64>,
    /// Whether capacity may be smaller than size.
    pub thin_provisioned: bool,
    /// Whether it tells of used blocks that are deallocated, by an error of their reads.
    pub deallocated_error: bool,
    /// What a deallocated block reads as.
    pub deallocated_reads: DeallocatedReads,
    /// Whether Write Zeroes may deallocate.
    pub write_zeroes_deallocates: bool,
    /// The block formats that it can be formatted with.
    pub formats: Vec<BlockFormat>,
    /// The format in use, an index of `formats`.
    pub format_in_use: u8,
    /// Whether metadata lies at the end of each block, not in a buffer of its own.
    pub metadata_in_block: bool,
    /// Whether several controllers reach it at once.
    pub shared: bool,
    /// The NVM Set it is in; None: not reported.
    pub nvm_set_id: Option<u16>,
    /// The endurance group it is in; None: not reported.
    pub endurance_group_id: Option<u16>,
    /// NOIOB in bytes: commands that don't cross its multiples are faster; None: not reported.
    pub io_boundary_bytes: Option<u64>,
    /// What suits its writes and trims; None: not reported.
    pub preferred: Option<Preferred>,
}

/// Preferred granularities and alignments (NSFEAT bit 4, OPTPERF).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Preferred {
    /// NPWG: writes are multiples of this, in bytes.
    pub write_granularity_bytes: u64,
    /// NPWA: writes start at multiples of this, in bytes.
    pub write_alignment_bytes: u64,
    /// NPDG: trims are multiples of this, in bytes.
    pub trim_granularity_bytes: u64,
    /// NPDA: trims start at multiples of this, in bytes.
    pub trim_alignment_bytes: u64,
    /// NOWS: the best length of a write, in bytes; None: not reported.
    pub write_best_bytes: Option<u64>,
}

/// DLFEAT bits 2:0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum DeallocatedReads {
    /// Not reported: anything, also old contents.
    NotReported,
    /// Every byte zero.
    Zeros,
    /// Every byte FFh.
    Ones,
}

/// An LBA format (NVM Command Set Specification 1.0, figure 98).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct BlockFormat {
    /// Block size in bytes.
    pub block_bytes: u64,
    /// Metadata for each block, in bytes.
    pub metadata_bytes: u16,
    /// How fast it is beside the others: 0 is best, 3 degraded.
    pub relative_performance: u8,
}

/// An entry of the NVM Set List.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct NvmSet {
    /// Its identifier.
    pub id: u16,
    /// The endurance group it is in.
    pub endurance_group_id: u16,
    /// A random read of 4 KiB that meets nothing else, typically, in nanoseconds; None: not reported.
    pub random_read_ns: Option<u64>,
    /// Best length of writes in bytes; None: not reported.
    pub write_best_bytes: Option<u32>,
    /// Size in bytes.
    pub capacity_bytes: u64,
    /// What of it is in no namespace, in bytes.
    pub unallocated_bytes: u64,
}

/// The smallest memory page that CAP.MPSMIN can name, which every controller for PC hosts has. The
/// register itself isn't shown by the kernel.
const PAGE_BYTES: u64 = 4096;

impl ControllerIdentity {
    /// Reads Identify Controller.
    pub fn parse(data: &[u8; IDENTIFY_BYTES]) -> Self {
        let data = Fields(data);
        let capacity = Some(data.count(280)).filter(|&n| n > 0); // TNVMCAP
        let mdts = data.u8(77);
        Self {
            vendor_id: data.u16(0),
            subsystem_vendor_id: data.u16(2),
            serial: data.text(4, 20),
            model: data.text(24, 40),
            firmware: data.text(64, 8),
            controller_id: data.u16(78),
            version: version(data.u32(80)),
            subsystem_nqn: data.text(768, 256),
            transfer_max_exponent: mdts,
            transfer_max_bytes: (mdts > 0)
                .then(|| 1u64.checked_shl(mdts.into()).unwrap_or(u64::MAX))
                .map(|pages| pages.saturating_mul(PAGE_BYTES)),
            capacity_bytes: capacity,
            unallocated_bytes: capacity.map(|_| data.count(296)), // UNVMCAP
            namespace_id_max: data.u32(516),                      // NN
            volatile_write_cache: data.u8(525) & 1 == 1,          // VWC
            warning_temperature_celsius: data.celsius(266),       // WCTEMP
            critical_temperature_celsius: data.celsius(268),      // CCTEMP
            thermal_management: (data.u16(322) & 1 == 1).then(|| ThermalManagement {
                min_celsius: data.celsius(324), // MNTMT
                max_celsius: data.celsius(326), // MXTMT
            }),
            nvm_set_id_max: data.u16(338),         // NSETIDMAX
            endurance_group_id_max: data.u16(340), // ENDGIDMAX
            error_log_entries_max: u16::from(data.u8(262)) + 1, // ELPE
            attributes: names(data.u32(96), &ATTRIBUTES), // CTRATT
            admin_commands: names(data.u16(256).into(), &OPTIONAL_ADMIN_COMMANDS), // OACS
            nvm_commands: names(data.u16(520).into(), &OPTIONAL_COMMANDS), // ONCS
            log_abilities: names(data.u8(261).into(), &LOG_ABILITIES), // LPA
            sanitize: names(data.u32(328), &SANITIZE), // SANICAP
            read_recovery_levels: (0..16).filter(|n| data.u16(100) >> n & 1 == 1).collect(), // RRLS
            // NPSS, counted from 0; 32 states at most.
            power_states: (0..=usize::from(data.u8(263)).min(31))
                .map(|n| PowerState::parse(Fields(&data.0[2048 + 32 * n..][..32])))
                .collect(),
        }
    }

    /// Whether it has an attribute.
    pub fn has(&self, attribute: Attribute) -> bool {
        self.attributes.contains(&attribute)
    }
}

/// VER: major in the upper half, then minor and tertiary.
fn version(raw: u32) -> Option<String> {
    (raw != 0).then(|| format!("{}.{}.{}", raw >> 16, raw >> 8 & 0xFF, raw & 0xFF))
}

impl PowerState {
    fn parse(state: Fields<'_>) -> Self {
        let (power, flags) = (u32::from(state.u16(0)), state.u8(3));
        let reported = |n: u32| (n > 0).then_some(n);
        Self {
            // MP is in 0.01 W, or with MXPS in 0.0001 W.
            max_milliwatts: reported(power)
                .map(|n| if flags & 1 == 1 { n / 10 } else { n.saturating_mul(10) }),
            operational: flags & 2 == 0,
            entry_us: reported(state.u32(4)),
            exit_us: reported(state.u32(8)),
        }
    }
}

impl NamespaceIdentity {
    /// Reads Identify Namespace; None if the namespace is not active (it then is all zeros) or its format
    /// in use is none of its formats.
    pub fn parse(data: &[u8; IDENTIFY_BYTES]) -> Option<Self> {
        let data = Fields(data);
        let features = data.u8(24); // NSFEAT
        let flbas = data.u8(26);
        // NLBAF counts from 0; more than 16 are numbered with FLBAS bits 6:5.
        let count = usize::from(data.u8(25)) + 1;
        let format_in_use = flbas & 0xF | if count > 16 { flbas >> 1 & 0x30 } else { 0 };
        let formats: Vec<_> =
            (0..count.min(64)).map(|n| BlockFormat::parse(data.u32(128 + 4 * n))).collect();
        let block = formats.get(usize::from(format_in_use))?.block_bytes;
        if data.u64(0) == 0 || block == 0 {
            return None;
        }
        let blocks = |at| data.u64(at).saturating_mul(block);
        // Counts from 0: the value 7 is eight blocks.
        let counted = |at| (u64::from(data.u16(at)) + 1) * block;
        let reported = |at| Some(u64::from(data.u16(at))).filter(|&n| n > 0);
        Some(Self {
            size_bytes: blocks(0),                              // NSZE
            capacity_bytes: blocks(8),                          // NCAP
            used_bytes: blocks(16),                             // NUSE
            nvm_bytes: Some(data.count(48)).filter(|&n| n > 0), // NVMCAP
            thin_provisioned: features & 1 == 1,
            deallocated_error: features >> 2 & 1 == 1,
            deallocated_reads: match data.u8(33) & 0b111 {
                1 => DeallocatedReads::Zeros,
                2 => DeallocatedReads::Ones,
                _ => DeallocatedReads::NotReported,
            },
            write_zeroes_deallocates: data.u8(33) >> 3 & 1 == 1,
            formats,
            format_in_use,
            metadata_in_block: flbas >> 4 & 1 == 1,
            shared: data.u8(30) & 1 == 1, // NMIC
            nvm_set_id: reported(100).map(|n| n as u16),
            endurance_group_id: reported(102).map(|n| n as u16),
            io_boundary_bytes: reported(46).map(|n| n * block), // NOIOB
            preferred: (features >> 4 & 1 == 1).then(|| Preferred {
                write_granularity_bytes: counted(64),
                write_alignment_bytes: counted(66),
                trim_granularity_bytes: counted(68),
                trim_alignment_bytes: counted(70),
                // Also counted from 0; but whoever has nothing to report leaves it 0, and one block is
                // no optimum worth telling.
                write_best_bytes: reported(72).map(|n| (n + 1) * block),
            }),
        })
    }

    /// The format in use.
    pub fn format(&self) -> BlockFormat {
        self.formats[usize::from(self.format_in_use)]
    }
}

impl BlockFormat {
    /// MS in bits 15:0, LBADS (a power of two, 0 for an unused format) in 23:16, RP in 25:24.
    fn parse(raw: u32) -> Self {
        let exponent = raw >> 16 & 0xFF;
        Self {
            // Below 512 bytes the specification knows none.
            block_bytes: if (9..64).contains(&exponent) { 1 << exponent } else { 0 },
            metadata_bytes: raw as u16,
            relative_performance: (raw >> 24 & 3) as u8,
        }
    }
}

/// How many identifiers a full list has.
pub const NAMESPACES_A_LIST: usize = IDENTIFY_BYTES / 4;

/// Reads a list of namespace identifiers, which a zero ends.
pub fn parse_namespaces(data: &[u8; IDENTIFY_BYTES]) -> Vec<u32> {
    let data = Fields(data);
    (0..NAMESPACES_A_LIST).map(|n| data.u32(4 * n)).take_while(|&id| id != 0).collect()
}

/// Reads the NVM Set List: a count, then up to 31 entries of 128 bytes.
pub fn parse_nvm_sets(data: &[u8; IDENTIFY_BYTES]) -> Vec<NvmSet> {
    let entry = |n: usize| Fields(&data[128 * (n + 1)..][..128]);
    let parse = |entry: Fields<'_>| NvmSet {
        id: entry.u16(0),
        endurance_group_id: entry.u16(2),
        // RR4KT, in units of 100 ns.
        random_read_ns: Some(u64::from(entry.u32(8)) * 100).filter(|&n| n > 0),
        write_best_bytes: Some(entry.u32(12)).filter(|&n| n > 0), // OWS
        capacity_bytes: entry.count(16),
        unallocated_bytes: entry.count(32),
    };
    (0..usize::from(data[0]).min(31)).map(|n| parse(entry(n))).collect()
}

/// Reads the Endurance Group List: a count, then identifiers.
pub fn parse_endurance_groups(data: &[u8; IDENTIFY_BYTES]) -> Vec<u16> {
    let data = Fields(data);
    let count = usize::from(data.u16(0)).min(IDENTIFY_BYTES / 2 - 1);
    (1..=count).map(|n| data.u16(2 * n)).collect()
}

#[cfg(test)]
#[path = "identify_tests.rs"]
mod tests;
