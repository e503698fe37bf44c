//! Identify data put together byte by byte, as the specification draws it.

use super::*;

fn blank() -> Box<[u8; IDENTIFY_BYTES]> {
    Box::new([0; IDENTIFY_BYTES])
}

fn put(data: &mut [u8; IDENTIFY_BYTES], at: usize, bytes: &[u8]) {
    data[at..at + bytes.len()].copy_from_slice(bytes);
}

fn controller() -> Box<[u8; IDENTIFY_BYTES]> {
    let mut data = blank();
    put(&mut data, 0, &0x144Du16.to_le_bytes());
    put(&mut data, 2, &0xA801u16.to_le_bytes());
    put(&mut data, 4, b"S64GNE0R123456      ");
    put(&mut data, 24, b"Fast Drive 3840                         ");
    put(&mut data, 64, b"FW1.2   ");
    data[77] = 9;
    put(&mut data, 78, &6u16.to_le_bytes());
    put(&mut data, 80, &0x0002_0100u32.to_le_bytes());
    put(&mut data, 96, &(1u32 << 2 | 1 << 4 | 1 << 19).to_le_bytes());
    put(&mut data, 100, &0b1001u16.to_le_bytes());
    put(&mut data, 256, &0b1010u16.to_le_bytes());
    data[261] = 0b10_0100;
    data[262] = 63;
    data[263] = 1;
    put(&mut data, 266, &343u16.to_le_bytes());
    put(&mut data, 268, &358u16.to_le_bytes());
    put(&mut data, 280, &3_840_755_982_336u128.to_le_bytes());
    put(&mut data, 296, &1_000_000u128.to_le_bytes());
    data[322] = 1;
    put(&mut data, 324, &(273u16 + 30).to_le_bytes());
    put(&mut data, 326, &(273u16 + 80).to_le_bytes());
    put(&mut data, 328, &0b110u32.to_le_bytes());
    put(&mut data, 338, &16u16.to_le_bytes());
    put(&mut data, 340, &4u16.to_le_bytes());
    put(&mut data, 516, &32u32.to_le_bytes());
    put(&mut data, 520, &(1u16 << 2 | 1 << 3).to_le_bytes());
    data[525] = 0b111;
    put(&mut data, 768, b"nqn.2014.08.org.nvmexpress:fast");
    // State 0: 25 W, entered in 100 us; state 1: 50 mW in tenths of a milliwatt, not operational.
    put(&mut data, 2048, &2500u16.to_le_bytes());
    put(&mut data, 2052, &100u32.to_le_bytes());
    put(&mut data, 2080, &500u16.to_le_bytes());
    data[2083] = 3;
    put(&mut data, 2088, &2000u32.to_le_bytes());
    data
}

#[test]
fn a_controller_is_read_where_the_specification_puts_its_fields() {
    let found = ControllerIdentity::parse(&controller());
    let expected = ControllerIdentity {
        vendor_id: 0x144D,
        subsystem_vendor_id: 0xA801,
        serial: Some("S64GNE0R123456".to_owned()),
        model: Some("Fast Drive 3840".to_owned()),
        firmware: Some("FW1.2".to_owned()),
        controller_id: 6,
        version: Some("2.1.0".to_owned()),
        subsystem_nqn: Some("nqn.2014.08.org.nvmexpress:fast".to_owned()),
        transfer_max_exponent: 9,
        transfer_max_bytes: Some(2 << 20),
        capacity_bytes: Some(3_840_755_982_336),
        unallocated_bytes: Some(1_000_000),
        namespace_id_max: 32,
        volatile_write_cache: true,
        warning_temperature_celsius: Some(70),
        critical_temperature_celsius: Some(85),
        thermal_management: Some(ThermalManagement {
            min_celsius: Some(30),
            max_celsius: Some(80),
        }),
        nvm_set_id_max: 16,
        endurance_group_id_max: 4,
        error_log_entries_max: 64,
        attributes: vec![
            Attribute::NvmSets,
            Attribute::EnduranceGroups,
            Attribute::FlexibleDataPlacement,
        ],
        admin_commands: vec![
            OptionalAdminCommand::FormatNvm,
            OptionalAdminCommand::NamespaceManagement,
        ],
        nvm_commands: vec![OptionalCommand::DatasetManagement, OptionalCommand::WriteZeroes],
        log_abilities: vec![LogAbility::ExtendedLogs, LogAbility::SupportedLogPages],
        sanitize: vec![Sanitize::BlockErase, Sanitize::Overwrite],
        read_recovery_levels: vec![0, 3],
        power_states: vec![
            PowerState {
                max_milliwatts: Some(25_000),
                operational: true,
                entry_us: Some(100),
                exit_us: None,
            },
            PowerState {
                max_milliwatts: Some(50),
                operational: false,
                entry_us: None,
                exit_us: Some(2000),
            },
        ],
    };
    assert_eq!(found, expected);
}

#[test]
fn what_a_controller_leaves_at_zero_is_not_told_rather_than_zero() {
    let found = ControllerIdentity::parse(&blank());
    assert_eq!((found.capacity_bytes, found.unallocated_bytes), (None, None));
    assert_eq!((found.warning_temperature_celsius, found.thermal_management), (None, None));
    assert_eq!((found.transfer_max_bytes, found.version, found.serial), (None, None, None));
    assert_eq!(found.power_states.len(), 1);
    assert_eq!(found.power_states[0].max_milliwatts, None);
}

#[test]
fn no_controller_makes_the_reader_fail() {
    for byte in [0x00, 0x01, 0x7F, 0x80, 0xFF] {
        let data = Box::new([byte; IDENTIFY_BYTES]);
        assert!(ControllerIdentity::parse(&data).power_states.len() <= 32);
        if let Some(namespace) = NamespaceIdentity::parse(&data) {
            assert!(namespace.format().block_bytes >= 512);
        }
        assert!(parse_nvm_sets(&data).len() <= 31);
        assert!(parse_endurance_groups(&data).len() < IDENTIFY_BYTES / 2);
        assert!(parse_namespaces(&data).len() <= IDENTIFY_BYTES / 4);
    }
}

fn namespace() -> Box<[u8; IDENTIFY_BYTES]> {
    let mut data = blank();
    put(&mut data, 0, &1000u64.to_le_bytes());
    put(&mut data, 8, &900u64.to_le_bytes());
    put(&mut data, 16, &800u64.to_le_bytes());
    data[24] = 0b1_0101;
    data[25] = 1;
    data[26] = 0x11;
    data[30] = 1;
    data[33] = 0b1001;
    put(&mut data, 46, &256u16.to_le_bytes());
    put(&mut data, 48, &5_000_000u128.to_le_bytes());
    for (at, value) in [(64, 3u16), (66, 7), (68, 15), (70, 31), (72, 63)] {
        put(&mut data, at, &value.to_le_bytes());
    }
    put(&mut data, 100, &2u16.to_le_bytes());
    put(&mut data, 102, &1u16.to_le_bytes());
    put(&mut data, 128, &(9u32 << 16 | 2 << 24).to_le_bytes());
    put(&mut data, 132, &(12u32 << 16 | 8).to_le_bytes());
    data
}

#[test]
fn a_namespace_counts_in_blocks_of_the_format_in_use() {
    let found = NamespaceIdentity::parse(&namespace()).unwrap();
    let expected = NamespaceIdentity {
        size_bytes: 4_096_000,
        capacity_bytes: 3_686_400,
        used_bytes: 3_276_800,
        nvm_bytes: Some(5_000_000),
        thin_provisioned: true,
        deallocated_error: true,
        deallocated_reads: DeallocatedReads::Zeros,
        write_zeroes_deallocates: true,
        formats: vec![
            BlockFormat { block_bytes: 512, metadata_bytes: 0, relative_performance: 2 },
            BlockFormat { block_bytes: 4096, metadata_bytes: 8, relative_performance: 0 },
        ],
        format_in_use: 1,
        metadata_in_block: true,
        shared: true,
        nvm_set_id: Some(2),
        endurance_group_id: Some(1),
        io_boundary_bytes: Some(1 << 20),
        preferred: Some(Preferred {
            write_granularity_bytes: 16 << 10,
            write_alignment_bytes: 32 << 10,
            trim_granularity_bytes: 64 << 10,
            trim_alignment_bytes: 128 << 10,
            write_best_bytes: Some(256 << 10),
        }),
    };
    assert_eq!(found, expected);
    assert_eq!(found.format().block_bytes, 4096);
}

#[test]
fn what_a_namespace_leaves_at_zero_is_not_told_rather_than_zero() {
    let mut data = namespace();
    data[24] = 0;
    data[33] = 0;
    put(&mut data, 46, &[0; 18]);
    put(&mut data, 100, &[0; 4]);
    let found = NamespaceIdentity::parse(&data).unwrap();
    assert_eq!((found.preferred, found.io_boundary_bytes, found.nvm_bytes), (None, None, None));
    assert_eq!((found.nvm_set_id, found.endurance_group_id), (None, None));
    assert_eq!(found.deallocated_reads, DeallocatedReads::NotReported);
}

#[test]
fn more_than_sixteen_formats_are_numbered_with_the_upper_bits() {
    let mut data = namespace();
    data[25] = 33;
    data[26] = 0b0100_0001;
    put(&mut data, 128 + 4 * 33, &(13u32 << 16).to_le_bytes());
    let found = NamespaceIdentity::parse(&data).unwrap();
    assert_eq!((found.format_in_use, found.formats.len()), (33, 34));
    assert_eq!(found.format().block_bytes, 8192);
}

#[test]
fn a_namespace_that_is_not_active_is_none() {
    assert_eq!(NamespaceIdentity::parse(&blank()), None);
    let mut data = namespace();
    data[26] = 9;
    assert_eq!(NamespaceIdentity::parse(&data), None, "format 9 of 2");
}

#[test]
fn lists_are_read_to_their_count_or_their_zero() {
    let mut data = blank();
    for (n, id) in [1u32, 2, 7].into_iter().enumerate() {
        put(&mut data, 4 * n, &id.to_le_bytes());
    }
    assert_eq!(parse_namespaces(&data), [1, 2, 7]);
    let mut data = blank();
    put(&mut data, 0, &[2, 0, 1, 0, 3, 0, 9, 0]);
    assert_eq!(parse_endurance_groups(&data), [1, 3]);
}

#[test]
fn an_nvm_set_tells_its_group_its_latency_and_its_room() {
    let mut data = blank();
    data[0] = 1;
    put(&mut data, 128, &[5, 0, 2, 0]);
    put(&mut data, 136, &800u32.to_le_bytes());
    put(&mut data, 144, &1_000_000u128.to_le_bytes());
    put(&mut data, 160, &400u128.to_le_bytes());
    let expected = NvmSet {
        id: 5,
        endurance_group_id: 2,
        random_read_ns: Some(80_000),
        write_best_bytes: None,
        capacity_bytes: 1_000_000,
        unallocated_bytes: 400,
    };
    assert_eq!(parse_nvm_sets(&data), [expected]);
}
