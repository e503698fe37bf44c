//! Any text as a workload: what fits a drive stays on it, and all of it can be said as a fio job.

use base::Geometry;
use load::{Plan, Workload, fio_job};

const CAPACITY_BYTES: u64 = 1 << 30;

/// Reads it and fits it to two drives.
pub fn run(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let workload = match Workload::from_toml(text) {
        Ok(workload) => workload,
        Err(error) => return assert!(!error.to_string().is_empty()),
    };
    let printed = workload.to_toml();
    let again = Workload::from_toml(&printed).expect("what was printed reads");
    assert_eq!(again.to_toml(), printed);
    match Plan::new(&workload, &[drive(512), drive(4096)]) {
        Err(error) => assert!(!error.to_string().is_empty()),
        Ok(plan) => {
            assert!(plan.depth() > 0 && plan.buffer_bytes() > 0);
            assert!(!fio_job::job(&workload, &["one".to_owned(), "other".to_owned()]).is_empty());
        }
    }
}

fn drive(block_bytes: u32) -> Geometry {
    Geometry {
        name: "drive".to_owned(),
        capacity_bytes: CAPACITY_BYTES,
        block_bytes,
        transfer_max_bytes: 1 << 20,
        depth_max: 64,
        trim_unit_bytes: Some(4096),
        trim_reads_zeros: true,
        writable: true,
    }
}
