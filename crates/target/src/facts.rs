//! What simulated drives tell of themselves, asked and read as real drives are.

use std::path::{Path, PathBuf};

use device::facts::{self, Facts, SataDrive};
use device::link::PcieLink;
use device::nvme::{AdminError, Answers, CommandError, Controller, Question};
use ssd::admin::{Admin, Identity, Query};
use ssd::spec::Link;
use ssd::{Health, Slot};

/// The facts of a namespace (from 0) of the drive at `place` in its bank, which messages call `name`. With a default `health`
/// the drive is new.
///
/// # Errors
/// If the drive has no such namespace.
pub fn of(
    name: &str,
    slot: &Slot,
    place: usize,
    namespace: usize,
    health: Health,
) -> Result<Facts, AdminError> {
    let (spec, path) = (&slot.spec, Path::new(name));
    match spec.link {
        Link::Pcie { generation, lanes, .. } => {
            let admin = Admin::new(spec, health, slot.seed, place);
            let controller = Controller::answered_by(path, Box::new(Simulated(admin)));
            // Namespace identifiers count from 1.
            let nsid = u32::try_from(namespace).map_or(0, |index| index.saturating_add(1));
            facts::of_controller(path, &controller, nsid, PcieLink { generation, lanes })
        }
        Link::Sata { gbps, .. } => {
            let Identity { model, serial, firmware } = Identity::of(spec, slot.seed, place);
            Ok(facts::of_sata(SataDrive {
                path: PathBuf::from(name),
                model,
                serial,
                firmware,
                size_bytes: spec.capacity_bytes,
                block_bytes: spec.block_bytes,
                gbps,
            }))
        }
    }
}

/// A simulated drive where a controller is expected.
#[derive(Debug)]
struct Simulated(Admin);

impl Answers for Simulated {
    fn ask(&self, question: Question, answer: &mut [u8]) -> Result<u32, CommandError> {
        let query = match question {
            Question::Identify { cns, nsid, specific } => Query::Identify { cns, nsid, specific },
            Question::Log { page, specific } => Query::Log { page, specific },
            Question::Feature { id, cdw11 } => {
                return self.0.feature(id, cdw11).map_err(|status| CommandError::Status(status.0));
            }
        };
        let whole = self.0.answer(query).map_err(|status| CommandError::Status(status.0))?;
        let bytes = whole.len().min(answer.len());
        answer[..bytes].copy_from_slice(&whole[..bytes]);
        Ok(0)
    }
}
