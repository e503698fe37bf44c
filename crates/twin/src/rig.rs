//! Simulated drives to be measured, and the rigs that measure them. Nothing real is touched, so nothing needs to be confirmed.

mod error;

use std::sync::Arc;

use base::striped::{StripedError, StripedSet};
use base::{
    Bank, BankError, BufferId, Buffers, DriveId, Duration, Geometry, NoBuffers, StripedBank,
};
use device::facts::Facts;
use device::{Pages, Pool};
use lab::counters::Written;
use lab::rig::{Clock, PcieMode};
use lab::run::Subject;
use lab::{BankRig, Rig, RigError, Windows};
use load::workload::Content;
use load::{Plan, Workload};
use ssd::spec::Link;
use ssd::{SimBank, Spec, Window};
use target::{Profiles, SimDrives, SimTarget, Uplink};

use crate::known::{Known, subject, subject_of_set};

pub use error::SimulatedRigError;

/// How often, and how long apart, a drive is asked for a deterministic window before it counts as not having got one.
const WINDOW_TRIES: u32 = 1_000;
const WINDOW_TRY: Duration = Duration::from_millis(10);

/// Drives that can be simulated.
#[derive(Debug)]
pub struct SimulatedDrives {
    drives: SimDrives,
    bank: SimBank<NoBuffers>,
    /// What they tell of themselves, by place in the bank.
    facts: Vec<Facts>,
    /// All of them are one drive to workloads: this one.
    set: Option<(StripedSet, [Geometry; 1])>,
}

/// A striped set of drives that keep time and no data.
type TimeSet = StripedBank<SimBank<NoBuffers>>;
/// A striped set of drives that keep data, too.
type DataSet = StripedBank<SimBank<Arc<Pool>>, Arc<Pool>>;

/// Simulated drives with all that measures them.
#[derive(Debug)]
pub enum SimulatedRig {
    /// Drives that keep time and no data.
    Time(BankRig<SimBank<NoBuffers>, NoBuffers>),
    /// Drives that keep data, too, for a workload that verifies it.
    Data(BankRig<SimBank<Arc<Pool>>, Arc<Pool>>),
    /// A striped set of drives that keep time and no data.
    SetTime(BankRig<TimeSet, NoBuffers>),
    /// A striped set of drives that keep data, too.
    SetData(BankRig<DataSet, Arc<Pool>>),
}

impl SimulatedDrives {
    /// The drives that these targets name, as a striped set if there is one.
    ///
    /// # Errors
    /// If one can't be simulated, or they can't be a set.
    pub fn look(
        targets: &[SimTarget],
        set: Option<StripedSet>,
        uplink: Option<Uplink>,
        profiles: &Profiles,
    ) -> Result<Self, SimulatedRigError> {
        let drives = SimDrives::new(targets, uplink, profiles)?;
        let bank = drives.bank()?;
        let facts = drives.facts(&bank)?;
        let set = match set {
            Some(set) => {
                let geometry = set.geometry(bank.drives())?;
                Some((set, [geometry]))
            }
            None => None,
        };
        Ok(Self { drives, bank, facts, set })
    }

    /// Flash that the first drive has beyond its capacity, in percent of it.
    pub fn spare_percent(&self) -> f64 {
        100.0 * self.bank.spec(0).spare_share()
    }

    /// Geometry of each drive, in the order of the bank; a striped set is one drive.
    pub fn geometry(&self) -> &[Geometry] {
        self.set.as_ref().map_or(self.bank.drives(), |(_, geometry)| geometry)
    }

    /// What is known of each drive, in the order of the bank.
    pub fn known(&self) -> Vec<Known> {
        let all = self.drives.namespaces().iter().zip(&self.facts);
        let known: Vec<Known> = all
            .map(|(namespace, facts)| Known::of_simulated(facts, &self.drives.slot(namespace).spec))
            .collect();
        match &self.set {
            Some((set, _)) => vec![Known::of_set(&set.layout(known.len()), &known)],
            None => known,
        }
    }

    /// Description of each drive for reports, in the order of the bank.
    pub fn subjects(&self) -> Vec<Subject> {
        let all = self.facts.iter().zip(self.bank.drives());
        let kind = || "simulated".to_owned();
        let drives = all
            .map(|(facts, drive)| subject(drive.name.clone(), kind(), Some(facts), drive))
            .collect();
        match &self.set {
            Some((set, [geometry])) => vec![subject_of_set(set, drives, geometry)],
            None => drives,
        }
    }

    /// A rig, of time alone unless the workload looks at data.
    ///
    /// # Errors
    /// If the workload doesn't fit, or there is no memory for its buffers.
    pub fn open(self, workload: Option<&Workload>) -> Result<SimulatedRig, SimulatedRigError> {
        let verifies = |workload: &&Workload| {
            workload.streams.iter().any(|stream| stream.content == Content::Verify)
        };
        let Some(workload) = workload.filter(verifies) else {
            if let Some((set, _)) = self.set {
                return Ok(SimulatedRig::SetTime(striped(self.bank, &set)?));
            }
            let rig = BankRig::without_data(self.bank)
                .settling(SimBank::settle)
                .copying(SimBank::copy)
                .counting(written)
                .windowing(Windows { begin: begin_window, is_in: is_in_window });
            let drives = self.drives;
            return Ok(SimulatedRig::Time(rig.relinking(move |mode| relinked(&drives, mode))));
        };
        let plan = Plan::new(workload, self.geometry())?;
        let (own, bytes) = (plan.depth(), plan.buffer_bytes());
        let members = self.bank.drives().len();
        let spare = self.set.as_ref().map_or(0, |(set, _)| set.spare_buffers(own, members, bytes));
        let (pool, _) = Pool::new(own + spare, bytes as usize, Pages::Transparent)?;
        let bank = self.drives.bank_with_data(Arc::clone(&pool))?;
        let buffers = pool.buffer_ids().take(own as usize).collect();
        let Some((set, _)) = &self.set else {
            let rig = BankRig::new(bank, pool, buffers).counting(written);
            return Ok(SimulatedRig::Data(rig));
        };
        let spare = (own..own + spare).map(BufferId).collect();
        let bank = StripedBank::new(bank, set, Arc::clone(&pool), spare)?;
        let rig = BankRig::new(bank, pool, buffers).counting(|set| written(set.members()));
        Ok(SimulatedRig::SetData(rig))
    }
}

/// A rig of a striped set of drives that keep time and no data.
///
/// # Errors
/// If they can't be one.
pub(crate) fn striped(
    bank: SimBank<NoBuffers>,
    set: &StripedSet,
) -> Result<BankRig<TimeSet, NoBuffers>, StripedError> {
    let settle = |set: &mut TimeSet, block_bytes: u64| {
        // A longer write reaches each member in pieces.
        let pieces = block_bytes.min(set.layout().stripe_bytes);
        set.members_mut().settle(pieces);
    };
    let copy = |set: &TimeSet| set.members().copy().map(|bank| set.over(bank));
    let bank = StripedBank::without_data(bank, set)?;
    let counted = |set: &TimeSet| written(set.members());
    Ok(BankRig::without_data(bank).settling(settle).copying(copy).counting(counted))
}

/// Puts the sets of one of a bank's drives into whole deterministic windows, once they have recovered from the last.
fn begin_window<M: Buffers>(bank: &mut SimBank<M>, drive: u16) -> Result<bool, BankError> {
    let (slot, sets) = bank.sets_of(DriveId(drive));
    let Some(windows) = bank.spec(slot).predictable else { return Ok(false) };
    for &set in &sets {
        bank.set_window(slot, set, Some(Window::NonDeterministic));
    }
    let mut done = Vec::new();
    let mut recovered = bank.now() + Duration::from_secs_f64(windows.recovery_ms / 1e3);
    // What a drive has to do for itself may take longer than it said.
    for _ in 0..WINDOW_TRIES {
        while bank.now() < recovered {
            bank.wait(Some(recovered), &mut done)?;
        }
        let mut windows = sets.iter().map(|&set| {
            bank.set_window(slot, set, Some(Window::Deterministic)) == Some(Window::Deterministic)
        });
        if windows.all(|begun| begun) {
            break;
        }
        recovered = bank.now() + WINDOW_TRY;
    }
    Ok(true)
}

fn is_in_window<M: Buffers>(bank: &SimBank<M>, drive: u16) -> bool {
    let (slot, sets) = bank.sets_of(DriveId(drive));
    let health = bank.health(slot);
    let deterministic = |set: &u32| {
        health.sets[*set as usize].window.is_some_and(|it| it.window == Window::Deterministic)
    };
    sets.iter().all(deterministic)
}

/// What was written to all drives of a bank, exactly.
pub(crate) fn written<M: Buffers>(bank: &SimBank<M>) -> Written {
    let mut sum = Written::default();
    for slot in 0..bank.slots() {
        let health = bank.health(slot);
        sum.host_bytes += health.written_bytes;
        sum.media_bytes += health.sets.iter().map(|set| set.media_written_bytes).sum::<u64>();
    }
    sum
}

/// The same drives on a link of this mode, or on their own, with what was on them at the start.
fn relinked(drives: &SimDrives, mode: Option<PcieMode>) -> Result<SimBank<NoBuffers>, RigError> {
    let mut slots = drives.slots().to_vec();
    for slot in &mut slots {
        put_on(&mut slot.spec, mode)?;
    }
    SimBank::new(&slots, drives.uplink().map(Uplink::link))
        .map_err(|error| RigError::Open(error.to_string()))
}

/// Puts a drive on a PCIe link of this mode; without one, it stays on its own.
///
/// # Errors
/// If its own is no PCIe link.
pub(crate) fn put_on(spec: &mut Spec, mode: Option<PcieMode>) -> Result<(), RigError> {
    let Some(mode) = mode else { return Ok(()) };
    let Link::Pcie { generation, lanes, .. } = &mut spec.link else {
        let why = "its link isn't PCI Express, so it has no generation and lanes";
        return Err(RigError::Open(format!("putting {} on {mode} failed: {why}", spec.name)));
    };
    (*generation, *lanes) = (mode.generation, mode.lanes);
    Ok(())
}

impl SimulatedRig {
    /// What experiments run on.
    // Inlined into the program, it would take the simulator with it, and the program's own code is compiled without optimization.
    #[inline(never)]
    pub fn rig(&mut self) -> &mut dyn Rig {
        match self {
            Self::Time(rig) => rig,
            Self::Data(rig) => rig,
            Self::SetTime(rig) => rig,
            Self::SetData(rig) => rig,
        }
    }

    /// Its virtual time.
    pub fn clock(&self) -> Clock {
        match self {
            Self::Time(rig) => rig.clock(),
            Self::Data(rig) => rig.clock(),
            Self::SetTime(rig) => rig.clock(),
            Self::SetData(rig) => rig.clock(),
        }
    }
}
