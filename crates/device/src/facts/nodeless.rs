//! The facts of a drive that this machine has no node of, such as a simulated one: what it answers is
//! read as a real drive's answers are, and what only the kernel knows is told by who made it.

use std::path::{Path, PathBuf};

use super::{Facts, NvmeFacts, ask};
use crate::identity::{Drive, Kind, Namespace};
use crate::link::{Link, PcieLink};
use crate::nvme::{AdminError, Controller};
use crate::wear::{Health, Wear};

/// A SATA drive, as it is told: it has no log pages that are read here.
#[derive(Clone, Debug, PartialEq)]
pub struct SataDrive {
    /// What messages call it.
    pub path: PathBuf,
    /// The maker's name of the model.
    pub model: String,
    /// Serial number.
    pub serial: String,
    /// Firmware revision.
    pub firmware: String,
    /// Size in bytes.
    pub size_bytes: u64,
    /// Unit of addressing in bytes.
    pub block_bytes: u32,
    /// Speed of its link in Gb/s on the wire (1.5, 3 or 6).
    pub gbps: f64,
}

/// Asks a controller everything about itself and one of its namespaces, which messages call `path`. Its
/// link runs at its best, in a slot that allows as much.
///
/// # Errors
/// If it can't be asked what it is and what the namespace is. What else it doesn't tell is no error.
pub fn of_controller(
    path: &Path,
    controller: &Controller,
    nsid: u32,
    link: PcieLink,
) -> Result<Facts, AdminError> {
    let identity = controller.identity()?;
    let namespace = controller.namespace(nsid)?;
    let nvme = ask(controller, Some(nsid));
    let block_bytes = namespace.format().block_bytes;
    let drive = Drive {
        model: identity.model,
        serial: identity.serial,
        firmware: identity.firmware,
        size_bytes: namespace.size_bytes,
        logical_block_bytes: block_bytes,
        physical_block_bytes: namespace
            .preferred
            .map_or(block_bytes, |preferred| preferred.write_granularity_bytes),
        link: Some(Link::Pcie { now: link, best: link, slot: Some(link) }),
        nvme: Some(Namespace {
            id: Some(nsid),
            controllers: Vec::new(),
            subsystem: None,
            subsystem_nqn: identity.subsystem_nqn,
        }),
        wear: match nvme.smart.known() {
            Some(log) => Wear::Known(Health::from(log.clone())),
            None => Wear::unknown(nvme.smart.to_string()),
        },
        ..blank(path, Kind::Nvme)
    };
    Ok(facts(drive, Some(nvme)))
}

/// A SATA drive's facts. Its link runs at the port's best.
pub fn of_sata(told: SataDrive) -> Facts {
    let drive = Drive {
        model: Some(told.model),
        serial: Some(told.serial),
        firmware: Some(told.firmware),
        size_bytes: told.size_bytes,
        logical_block_bytes: told.block_bytes.into(),
        physical_block_bytes: told.block_bytes.into(),
        link: Some(Link::Sata { now_gbps: told.gbps, best_gbps: Some(told.gbps) }),
        ..blank(&told.path, Kind::Sata)
    };
    facts(drive, None)
}

fn facts(drive: Drive, nvme: Option<NvmeFacts>) -> Facts {
    let link_verdict = drive.link.as_ref().map(Link::verdict);
    Facts { drive, link_verdict, temperatures: Vec::new(), scheduler: None, nvme }
}

/// What every drive without a node has in common: nothing that the kernel could have put on it.
fn blank(path: &Path, kind: Kind) -> Drive {
    Drive {
        path: path.to_owned(),
        device: None,
        number: None,
        kind,
        partition_of: None,
        model: None,
        serial: None,
        firmware: None,
        wwid: None,
        size_bytes: 0,
        logical_block_bytes: 0,
        physical_block_bytes: 0,
        rotational: Some(false),
        read_only: false,
        link: None,
        nvme: None,
        backing: None,
        wear: Wear::unknown("Longtake reads it from NVMe drives only"),
        partitions: Vec::new(),
        holders: Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::facts::Answer;
    use crate::link::LinkVerdict;
    use crate::nvme::{Answers, CommandError, Question};

    const LINK: PcieLink = PcieLink { generation: 4, lanes: 4 };

    /// A drive with one namespace of 1,000 blocks, and no logs but SMART.
    #[derive(Debug)]
    struct Plain;

    impl Answers for Plain {
        fn ask(&self, question: Question, answer: &mut [u8]) -> Result<u32, CommandError> {
            match question {
                Question::Identify { cns: 1, .. } => {
                    answer[4..7].copy_from_slice(b"S-1");
                    answer[24..29].copy_from_slice(b"Model");
                }
                Question::Identify { cns: 0, nsid: 1, .. } => {
                    answer[..8].copy_from_slice(&1000u64.to_le_bytes());
                    answer[130] = 12;
                }
                Question::Identify { cns: 0, .. } => {}
                Question::Identify { cns: 2, nsid: 0, .. } => answer[0] = 1,
                Question::Log { page: 2, .. } => answer[5] = 7,
                _ => return Err(CommandError::Status(0x4002)),
            }
            Ok(0)
        }
    }

    #[test]
    fn whatever_answers_like_a_controller_has_facts_like_a_drive() {
        let path = Path::new("sim:plain");
        let controller = Controller::answered_by(path, Box::new(Plain));
        let facts = of_controller(path, &controller, 1, LINK).unwrap();
        let drive = &facts.drive;
        assert_eq!((drive.model.as_deref(), drive.serial.as_deref()), (Some("Model"), Some("S-1")));
        assert_eq!((drive.size_bytes, drive.logical_block_bytes), (4_096_000, 4096));
        assert_eq!((drive.wear.percent_used(), drive.kind), (Some(7), Kind::Nvme));
        assert_eq!(facts.link_verdict, Some(LinkVerdict::Full));
        assert_eq!(drive.confirmation(), None, "nothing can be lost on it");
        let nvme = facts.nvme.unwrap();
        assert_eq!(nvme.controller_node, path);
        assert_eq!(nvme.active_namespaces, Answer::Known(vec![1]));
        assert_eq!(nvme.nvm_sets, Answer::NotSupported);
    }

    /// The same drive with log pages C0h and C3h of OCP, or a vendor's own page in the place of C3h.
    #[derive(Debug)]
    struct Datacenter {
        vendors_own: bool,
    }

    impl Answers for Datacenter {
        fn ask(&self, question: Question, answer: &mut [u8]) -> Result<u32, CommandError> {
            let Question::Log { page: page @ (0xC0 | 0xC3), .. } = question else {
                return Plain.ask(question, answer);
            };
            answer[494] = 1;
            answer[..16].copy_from_slice(&5_000_000_000u128.to_le_bytes());
            if page == 0xC3 {
                answer[..16].copy_from_slice(&[1, 0, 2, 0, 4, 0, 0, 1, 2, 3, 0, 0, 0, 0, 0, 0]);
            }
            let guid: u128 = match page {
                0xC0 => 0xAFD5_14C9_7C6F_4F9C_A4F2_BFEA_2810_AFC5,
                _ if self.vendors_own => 0,
                _ => 0x85D4_5E58_D4E6_4370_9C6C_84D0_8CC0_7A92,
            };
            answer[496..].copy_from_slice(&guid.to_le_bytes());
            Ok(0)
        }
    }

    #[test]
    fn a_datacenter_drive_tells_what_its_medium_was_written_and_how_many_commands_were_slow() {
        let told = |answers: Box<dyn Answers>| {
            let path = Path::new("sim:datacenter");
            let controller = Controller::answered_by(path, answers);
            let nvme = of_controller(path, &controller, 1, LINK).unwrap().nvme.unwrap();
            let written = nvme.extended_health.known().map(|health| health.media_written_bytes);
            (written, nvme.latency_monitor)
        };
        let (written, monitor) = told(Box::new(Datacenter { vendors_own: false }));
        assert_eq!(written, Some(5_000_000_000));
        assert_eq!(monitor.known().map(|monitor| monitor.thresholds_ms), Some([5, 10, 15, 20]));
        let (written, monitor) = told(Box::new(Datacenter { vendors_own: true }));
        assert_eq!((written, monitor), (Some(5_000_000_000), Answer::NotSupported));
        assert_eq!(told(Box::new(Plain)), (None, Answer::NotSupported));
    }

    #[test]
    fn a_namespace_that_is_not_there_is_named_with_its_drive() {
        let path = Path::new("sim:plain");
        let controller = Controller::answered_by(path, Box::new(Plain));
        let error = of_controller(path, &controller, 2, LINK).unwrap_err();
        let text = error.to_string();
        assert!(text.contains("sim:plain") && text.contains("namespace 2"), "{text}");
    }

    #[test]
    fn a_sata_drive_has_model_serial_and_link_and_nothing_of_nvme() {
        let facts = of_sata(SataDrive {
            path: PathBuf::from("sim:sata"),
            model: "Disk".to_owned(),
            serial: "S-2".to_owned(),
            firmware: "1".to_owned(),
            size_bytes: 1 << 30,
            block_bytes: 512,
            gbps: 6.0,
        });
        assert_eq!((facts.drive.kind, facts.nvme), (Kind::Sata, None));
        assert_eq!(facts.drive.link.unwrap().to_string(), "SATA 6 Gb/s");
        assert_eq!(facts.link_verdict, Some(LinkVerdict::Full));
        assert_eq!(facts.drive.wear.percent_used(), None);
    }
}
