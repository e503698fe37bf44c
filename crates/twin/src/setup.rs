//! From the names of drives to a rig, in two steps: a look, from which costs are stated, and opening. Drives are real or
//! simulated; experiments don't see the difference.

mod error;
mod real;

use std::fs;
use std::path::{Path, PathBuf};

use base::striped::StripedSet;
use base::{ByteSize, Geometry};
use device::facts::Facts;
use device::retrain::Port;
use lab::rig::Clock;
use lab::run::{Run, Subject};
use lab::{Cost, Go, Rig, RigError, ThreadOptions};
use load::Workload;
use target::profiles::is_path;
use target::real::OpenNotice;
use target::{NewFiles, Profiles, RealDrives, SimTarget, StripedTarget, Uplink};

use crate::known::{Known, subject_of_set};
use crate::rig::{SimulatedDrives, SimulatedRig};

pub use error::{SIZE_MIN, SetupError};
pub use real::RealRig;

/// Which drives are measured, and how they are driven.
#[derive(Clone, Debug, Default)]
pub struct SetupOptions {
    /// Block devices, NVMe generic devices and files (one that doesn't exist is made); or simulated drives (`sim:NAME`); or one
    /// striped set of either (`raid0:TARGET,TARGET`).
    pub targets: Vec<PathBuf>,
    /// Serial numbers of drives, and paths of files, whose contents may be lost.
    pub erase: Vec<String>,
    /// Permission bits of files that are made.
    pub mode: u32,
    /// Size of files that are made, in bytes.
    pub new_file_bytes: u64,
    /// Threads of the load engine, their processors, and whether they poll: for real drives.
    pub threads: ThreadOptions,
    /// Bandwidth of the link that all simulated drives share.
    pub uplink: Option<Uplink>,
    /// Serial number of the real drive whose link may be retrained.
    pub retrain: Option<String>,
}

/// The drives to be measured: looked at, and nothing done to them.
#[derive(Debug)]
pub struct Setup {
    options: SetupOptions,
    /// All drives are one to workloads.
    set: Option<StripedSet>,
    drives: Drives,
}

#[derive(Debug)]
enum Drives {
    /// Block devices and files; and the one drive that they are as a striped set.
    Real(RealDrives, Option<[Geometry; 1]>),
    /// Drives in virtual time.
    Simulated(Box<SimulatedDrives>),
}

/// Open drives with all that measures them.
#[derive(Debug)]
pub enum OpenRig {
    /// Block devices and files.
    Real(Box<RealRig>),
    /// Drives in virtual time.
    Simulated(Box<SimulatedRig>),
}

impl Setup {
    /// The drives as they are. Files that aren't there yet are thought of as they would be made.
    ///
    /// # Errors
    /// If a target can't be opened or simulated, or options don't suit the kind of drives.
    pub fn look(options: SetupOptions, profiles: &Profiles) -> Result<Self, SetupError> {
        let texts: Vec<String> =
            options.targets.iter().map(|path| path.to_string_lossy().into_owned()).collect();
        let striped = StripedTarget::only(&texts)?;
        let set = striped.as_ref().map(StripedTarget::set);
        let texts = striped.map_or(texts, |striped| striped.members);
        let drives = if let Some(targets) = SimTarget::all(&texts)? {
            suits_simulated(&options)?;
            let drives = SimulatedDrives::look(&targets, set.clone(), options.uplink, profiles)?;
            Drives::Simulated(Box::new(drives))
        } else if options.uplink.is_some() {
            return Err(SetupError::UplinkOfReal);
        } else {
            let is_model = |text: &&String| !Path::new(text).exists() && is_known(text, profiles);
            if let Some(name) = texts.iter().find(is_model) {
                return Err(SetupError::Model { name: name.clone() });
            }
            let paths = texts.into_iter().map(PathBuf::from).collect();
            let drives = RealDrives::look(paths, options.new_file_bytes)?;
            let whole = set.as_ref().map(|set| set.geometry(drives.geometry())).transpose()?;
            Drives::Real(drives, whole.map(|geometry| [geometry]))
        };
        Ok(Self { options, set, drives })
    }

    /// The striped set that the drives are, if they are one.
    pub const fn set(&self) -> Option<&StripedSet> {
        self.set.as_ref()
    }

    /// What they are like.
    pub fn geometry(&self) -> &[Geometry] {
        match &self.drives {
            Drives::Real(_, Some(set)) => set,
            Drives::Real(drives, None) => drives.geometry(),
            Drives::Simulated(drives) => drives.geometry(),
        }
    }

    /// Flash that the first of them has beyond its capacity, in percent of it. Drives don't tell, so of a real one it is what there is
    /// up to the next size that flash comes in: dies hold 2^n bytes, and drives have 2^n or 3 x 2^n of them. What it keeps free for
    /// itself counts, so it is rather less.
    pub fn spare_percent(&self) -> f64 {
        match &self.drives {
            Drives::Simulated(drives) => drives.spare_percent(),
            Drives::Real(..) => {
                let capacity = self.geometry()[0].capacity_bytes.max(1);
                let power = capacity.next_power_of_two();
                let flash = if power / 4 * 3 >= capacity { power / 4 * 3 } else { power };
                (flash as f64 / capacity as f64 - 1.0) * 100.0
            }
        }
    }

    /// What is known of them.
    pub fn known(&self) -> Vec<Known> {
        let known = |facts: &Option<Facts>| facts.as_ref().map(Known::of_facts).unwrap_or_default();
        match &self.drives {
            Drives::Real(drives, _) => {
                let known: Vec<Known> = drives.facts().iter().map(known).collect();
                match &self.set {
                    Some(set) => vec![Known::of_set(&set.layout(known.len()), &known)],
                    None => known,
                }
            }
            Drives::Simulated(drives) => drives.known(),
        }
    }

    /// What a report says of them.
    pub fn subjects(&self) -> Vec<Subject> {
        match &self.drives {
            Drives::Real(drives, whole) => {
                let drives = real::subjects(drives);
                match (&self.set, whole) {
                    (Some(set), Some([geometry])) => vec![subject_of_set(set, drives, geometry)],
                    _ => drives,
                }
            }
            Drives::Simulated(drives) => drives.subjects(),
        }
    }

    /// States what is about to happen to them, in words. A dry run adds why drives would be refused as they are.
    pub fn state_cost(&self, cost: &Cost, dry_run: bool) -> Vec<String> {
        match &self.drives {
            Drives::Real(drives, _) => {
                let mut lines = real::state_cost(drives, cost, self.set.as_ref());
                if dry_run && cost.written_bytes > 0 {
                    lines.extend(real::new_files(drives, self.options.new_file_bytes));
                    lines.extend(real::refusals(drives, &self.options.erase));
                }
                lines
            }
            Drives::Simulated(_) => vec![format!(
                "simulated: writes up to {}, reads about {}, takes about {} of virtual time; nothing real is touched",
                ByteSize(cost.written_bytes),
                ByteSize(cost.read_bytes),
                cost.time()
            )],
        }
    }

    /// Whether the link of the real drive may be retrained.
    pub const fn may_retrain(&self) -> bool {
        self.options.retrain.is_some()
    }

    /// Whether time is virtual.
    pub fn is_simulated(&self) -> bool {
        matches!(self.drives, Drives::Simulated(_))
    }

    /// The run that begins in a folder of results, or the one that is gone on with there: what it has found stays, and it must
    /// have been of the same drives. `version` is Longtake's.
    ///
    /// # Errors
    /// If the run there can't be read, or is of other drives.
    pub fn begin(&self, folder: &Path, version: &str) -> Result<Run, SetupError> {
        let run = Run {
            host: host().filter(|_| !self.is_simulated()),
            ..Run::begin(version, self.subjects())
        };
        let Some(before) = Run::begun(folder)? else { return Ok(run) };
        let folder = folder.to_owned();
        let is_gone = |target: &&String| !Path::new(target).exists();
        let targets = run.subjects.iter().flat_map(|subject| match subject.members.as_slice() {
            [] => std::slice::from_ref(&subject.target),
            members => members,
        });
        if let Some(target) = targets.clone().find(is_gone).filter(|_| !self.is_simulated()) {
            return Err(SetupError::Gone { folder, target: target.clone() });
        }
        let same = before.subjects.len() == run.subjects.len()
            && before.subjects.iter().zip(&run.subjects).all(|(before, now)| before.is(now));
        if !same {
            let targets = before.subjects.into_iter().map(|subject| subject.target).collect();
            return Err(SetupError::OtherDrives { folder, targets });
        }
        Ok(Run {
            outcomes: before.outcomes,
            left_out: before.left_out,
            started_ns: before.started_ns,
            ..run
        })
    }

    /// Makes ready the folder of a run that is gone on with. Real drives are as the steps before left them, and the steps
    /// that were done are not run again. Simulated ones begin anew: what these experiments did is simulated again, which
    /// comes out the same.
    ///
    /// # Errors
    /// If old steps can't be removed.
    pub fn go_on(&self, folder: &Path, experiments: &[&str]) -> Result<(), SetupError> {
        if !self.is_simulated() {
            return Ok(());
        }
        for name in experiments {
            let steps = folder.join(name);
            if steps.exists() {
                fs::remove_dir_all(&steps)
                    .map_err(|reason| SetupError::OldSteps { folder: steps, reason })?;
            }
        }
        Ok(())
    }

    /// Opens them, for writing only if `writes`. Makes files that don't exist, as part of `made`, and keeps them if all goes
    /// well and `stopped` says nothing else; `notice` hears what happens. `workload` is what will run, if that is known:
    /// simulated drives keep data only if it is looked at.
    ///
    /// # Errors
    /// Every refusal, or why a target can't be opened.
    pub fn open(
        self,
        writes: bool,
        workload: Option<&Workload>,
        made: &mut NewFiles,
        stopped: &dyn Fn() -> Go,
        notice: &mut dyn FnMut(OpenNotice<'_>),
    ) -> Result<OpenRig, SetupError> {
        match self.drives {
            Drives::Real(drives, _) => {
                let stopped = || stopped() == Go::Stop;
                // Before the drives are opened: who has them open then is somebody else.
                let port = |serial: &String| Port::above(&drives.paths()[0], serial);
                let port = self.options.retrain.as_ref().map(port).transpose()?;
                let mut rig = RealRig::open(&drives, self.options, writes, made, &stopped, notice)?;
                if let Some(set) = self.set {
                    rig.threads = rig.threads.striped(set)?;
                }
                Ok(OpenRig::Real(Box::new(rig.retraining(port.into_iter().collect()))))
            }
            Drives::Simulated(drives) => Ok(OpenRig::Simulated(Box::new(drives.open(workload)?))),
        }
    }
}

impl OpenRig {
    /// What experiments run on.
    #[inline(never)]
    pub fn rig(&mut self) -> &mut dyn Rig {
        match self {
            Self::Real(rig) => &mut **rig,
            Self::Simulated(rig) => rig.rig(),
        }
    }

    /// The clock, if it is not everybody's.
    pub fn clock(&self) -> Option<Clock> {
        match self {
            Self::Real(_) => None,
            Self::Simulated(rig) => Some(rig.clock()),
        }
    }

    /// Puts links that were retrained back to the speeds that they had. It happens in any case when the rig goes out of scope;
    /// this says whether it worked.
    ///
    /// # Errors
    /// If a link can't be restored.
    pub fn restore_links(&mut self) -> Result<(), RigError> {
        match self {
            Self::Real(rig) => rig.relink(None).map(drop),
            Self::Simulated(_) => Ok(()),
        }
    }

    /// What there was to warn of since the last call.
    pub fn take_warnings(&mut self) -> Vec<String> {
        match self {
            Self::Real(rig) => rig.threads.take_warnings(),
            Self::Simulated(_) => Vec::new(),
        }
    }
}

/// Whether a word is the name of a profile.
fn is_known(word: &str, profiles: &Profiles) -> bool {
    !is_path(word) && profiles.named(word).is_ok()
}

/// Refuses options that say how real drives are driven.
fn suits_simulated(options: &SetupOptions) -> Result<(), SetupError> {
    if options.retrain.is_some() {
        return Err(SetupError::RetrainOfSimulated);
    }
    let ThreadOptions { threads, cpus, poll } = &options.threads;
    let asked = [(*threads > 1, "--threads"), (!cpus.is_empty(), "--cpus"), (*poll, "--poll")];
    match asked.into_iter().find(|(asked, _)| *asked) {
        Some((_, option)) => Err(SetupError::OptionOfReal { option }),
        None => Ok(()),
    }
}

/// The machine and its kernel, in words.
fn host() -> Option<String> {
    let told = |name: &str| {
        let text = std::fs::read_to_string(Path::new("/proc/sys/kernel").join(name)).ok()?;
        Some(text.trim().to_owned())
    };
    Some(format!("{}, {} {}", told("hostname")?, told("ostype")?, told("osrelease")?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn look(options: SetupOptions) -> Result<Setup, SetupError> {
        Setup::look(options, &Profiles::in_folder("/nonexistent".into()))
    }

    fn of(target: &Path) -> SetupOptions {
        SetupOptions {
            targets: vec![target.to_owned()],
            new_file_bytes: 1 << 20,
            ..SetupOptions::default()
        }
    }

    #[test]
    fn options_of_the_other_kind_of_drives_are_refused() {
        let uplink = Some("1GB/s".parse().unwrap());
        let real = SetupOptions { uplink, ..of(Path::new("/tmp/none")) };
        assert!(matches!(look(real), Err(SetupError::UplinkOfReal)));
        let threads = ThreadOptions { poll: true, ..ThreadOptions::default() };
        let simulated = SetupOptions { threads, ..of(Path::new("sim:ideal")) };
        let refused = look(simulated).unwrap_err();
        assert!(refused.to_string().starts_with("--poll says how real drives"), "{refused}");
    }

    #[test]
    fn a_run_is_gone_on_with_on_the_same_drives_alone() {
        let folder = tempfile::tempdir().unwrap();
        let begin = |target: &str| {
            let setup = look(of(Path::new(target))).unwrap();
            setup.begin(folder.path(), "1")
        };
        let mut first = begin("sim:ideal").unwrap();
        first.leave_out("fill", "it takes too long".to_owned());
        first.keep(folder.path()).unwrap();
        let again = begin("sim:ideal").unwrap();
        assert_eq!((again.left_out, again.started_ns), (first.left_out, first.started_ns));
        let other = begin("sim:intel-dc-p3600-400gb").unwrap_err();
        assert!(matches!(other, SetupError::OtherDrives { .. }), "{other}");
        let missing = folder.path().join("missing");
        let gone = begin(missing.to_str().unwrap()).unwrap_err();
        assert!(matches!(gone, SetupError::Gone { .. }), "{gone}");
    }

    #[test]
    fn steps_of_simulated_drives_are_removed_before_they_are_simulated_again() {
        let folder = tempfile::tempdir().unwrap();
        for step in ["fill", "mix"] {
            fs::create_dir(folder.path().join(step)).unwrap();
        }
        let setup = look(of(Path::new("sim:ideal"))).unwrap();
        setup.go_on(folder.path(), &["fill"]).unwrap();
        let left = |step: &str| folder.path().join(step).exists();
        assert_eq!((left("fill"), left("mix")), (false, true));
    }
}
