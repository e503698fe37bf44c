//! Real drives to be measured: what measuring them costs, and the threads and sensors that measure them.

use std::path::PathBuf;

use base::striped::StripedSet;
use base::{ByteSize, Duration, Geometry};
use device::retrain::Port;
use device::safety::{self, Authorized, Purpose};
use lab::counters::{self, Counters};
use lab::rig::{PcieMode, Watch};
use lab::run::Subject;
use lab::threads::ThreadRig;
use lab::{Cost, Go, Rig, RigError, sensors};
use load::{Measurement, Workload};
use target::real::{OpenDrives, OpenError, OpenNotice, RealOptions, Scratch};
use target::{NewFiles, RealDrives, wear};

use super::SetupOptions;
use crate::known::subject;

/// Open drives with all that measures them.
#[derive(Debug)]
pub struct RealRig {
    /// What workloads run on.
    pub threads: ThreadRig,
    /// The ports whose links may be retrained. When the rig goes out of scope, links are as they were.
    ports: Vec<Port>,
    /// The proof that they may be written, where that is wanted: claims that keep others off while they live.
    _scratch: Scratch,
    _claims: Vec<Option<Authorized>>,
}

/// What a report says of the drives.
pub fn subjects(drives: &RealDrives) -> Vec<Subject> {
    let all = drives.paths().iter().zip(drives.facts()).zip(drives.geometry());
    let described = all.map(|((path, facts), geometry)| {
        let kind = facts.as_ref().map_or_else(|| "file".to_owned(), |f| f.drive.kind.to_string());
        subject(path.display().to_string(), kind, facts.as_ref(), geometry)
    });
    described.collect()
}

/// States what is about to happen to the drives, in words.
pub fn state_cost(drives: &RealDrives, cost: &Cost, set: Option<&StripedSet>) -> Vec<String> {
    let mut lines = vec![format!(
        "writes up to {}, reads about {}, takes about {}",
        ByteSize(cost.written_bytes),
        ByteSize(cost.read_bytes),
        cost.time()
    )];
    if cost.written_bytes == 0 {
        lines.push("nothing is written".to_owned());
        return lines;
    }
    let paths = drives.paths();
    // A small write takes as long a write of each parity.
    let parities = set.map_or(0, |set| set.level.parities() as u64);
    if parities > 0 {
        lines.push(format!(
            "parity: up to {} more are written to its place on the drives",
            ByteSize(cost.written_bytes * parities)
        ));
    }
    let each = cost.written_bytes * (1 + parities) / paths.len().max(1) as u64;
    for path in paths {
        if let Some(share) = wear(path, each) {
            lines.push(format!("{}: {share}", path.display()));
        }
    }
    lines
}

/// The files that would be made, in words.
pub fn new_files(drives: &RealDrives, bytes: u64) -> Vec<String> {
    let new = drives.paths().iter().filter(|path| !path.exists());
    new.map(|path| format!("{} would be made, a file of {}", path.display(), ByteSize(bytes)))
        .collect()
}

/// Why drives would be refused as they are, in words.
pub fn refusals(drives: &RealDrives, erase: &[String]) -> Vec<String> {
    // Authorizing claims a drive and writes nothing; the claim ends at once.
    let refused = |path: &PathBuf| safety::authorize_for(path, erase, Purpose::Create).err();
    let all = drives.paths().iter().filter_map(refused).flatten();
    all.map(|refusal| format!("as it stands it would be refused: {refusal}")).collect()
}

impl RealRig {
    /// Opens the drives, for writing only if `writes`. Files that don't exist are made as part of `made`, and kept once all is
    /// open and `stopped` says nothing else.
    ///
    /// # Errors
    /// Every refusal, or why a target can't be opened.
    pub(super) fn open(
        drives: &RealDrives,
        options: SetupOptions,
        writes: bool,
        made: &mut NewFiles,
        stopped: &dyn Fn() -> bool,
        notice: &mut dyn FnMut(OpenNotice<'_>),
    ) -> Result<Self, OpenError> {
        let SetupOptions { erase, mode, threads, .. } = options;
        let opened = RealOptions { writes, erase: &erase, mode };
        let OpenDrives { targets, claims, scratch } = drives.open(opened, made, stopped, notice)?;
        let paths = drives.paths();
        let threads =
            ThreadRig::new(targets, threads, sensors::of(paths)).counting(counters::of(paths));
        if stopped() {
            return Err(OpenError::Stopped);
        }
        made.keep();
        Ok(Self { threads, ports: Vec::new(), _scratch: scratch, _claims: claims })
    }

    /// The same, with ports whose links may be retrained.
    #[must_use]
    pub fn retraining(self, ports: Vec<Port>) -> Self {
        Self { ports, ..self }
    }
}

impl Rig for RealRig {
    fn drives(&self) -> &[Geometry] {
        self.threads.drives()
    }

    fn run(&mut self, workload: &Workload, watch: &mut Watch<'_>) -> Result<Measurement, RigError> {
        self.threads.run(workload, watch)
    }

    fn rest(
        &mut self,
        time: Duration,
        tick: &mut dyn FnMut(Duration) -> Go,
    ) -> Result<(), RigError> {
        self.threads.rest(time, tick)
    }

    fn counters(&mut self) -> Counters {
        self.threads.counters()
    }

    /// What is on the drives stays, and so do the lanes: a link is trained to another speed.
    fn relink(&mut self, mode: Option<PcieMode>) -> Result<bool, RigError> {
        for port in &mut self.ports {
            match mode {
                Some(mode) => port.set(mode.generation),
                None => port.restore(),
            }
            .map_err(|error| RigError::Open(error.to_string()))?;
        }
        Ok(!self.ports.is_empty())
    }
}

#[cfg(test)]
mod tests {
    //! A sweep of a real rig, on a file, whose link is a made-up port: registers in a file, and a link that does what they say.

    use std::fs;
    use std::os::unix::fs::FileExt;
    use std::path::{Path, PathBuf};
    use std::sync::{Arc, Mutex};

    use lab::experiment::Scope;
    use lab::experiment::link::{Link, LinkResult, Sweep};
    use lab::{Lab, LabError, Progress};

    use super::*;

    /// Configuration space of a root port with its PCI Express capability at 0x40: 16 GT/s x4.
    fn config() -> Vec<u8> {
        let mut bytes = vec![0; 256];
        bytes[0x06] = 0x10;
        bytes[0x34] = 0x40;
        bytes[0x40] = 0x10;
        bytes[0x42] = 0x42;
        bytes[0x4C] = 0x44;
        bytes[0x52] = 0x44;
        bytes[0x6C] = 0x1E;
        bytes[0x70] = 0x04;
        bytes
    }

    /// A port above a function in this folder, and the speeds that its link was trained to.
    fn port(folder: &Path) -> (Port, PathBuf, Arc<Mutex<Vec<u8>>>) {
        let function = folder.join("0000:00:01.0/0000:01:00.0");
        fs::create_dir_all(&function).unwrap();
        for (name, value) in [("link_speed", "16.0 GT/s PCIe"), ("link_width", "4")] {
            for which in ["current", "max"] {
                fs::write(function.join(format!("{which}_{name}")), value).unwrap();
            }
        }
        let registers = folder.join("0000:00:01.0/config");
        fs::write(&registers, config()).unwrap();
        let trained = Arc::<Mutex<Vec<u8>>>::default();
        let (path, heard) = (registers.clone(), Arc::clone(&trained));
        let hardware = Box::new(move |_| {
            let bytes = fs::read(&path).unwrap();
            if bytes[0x50] & 0x20 != 0 {
                let file = fs::OpenOptions::new().write(true).open(&path).unwrap();
                file.write_all_at(&[bytes[0x50] & !0x20], 0x50).unwrap();
                file.write_all_at(&[0x40 | bytes[0x70]], 0x52).unwrap();
                heard.lock().unwrap().push(bytes[0x70]);
            }
        });
        (Port::of_function(&function, hardware).unwrap(), registers, trained)
    }

    /// Sweeps two speeds; `go` is asked at every interval, with the step's name.
    fn sweep(
        folder: &Path,
        generations: Vec<u8>,
        go: &mut dyn FnMut(&str) -> Go,
    ) -> (Result<LinkResult, LabError>, PathBuf, Vec<u8>) {
        let drives = RealDrives::look(vec![folder.join("drive.bin")], 4 << 20).unwrap();
        let (mut made, options) =
            (NewFiles::default(), SetupOptions { mode: 0o600, ..SetupOptions::default() });
        let rig = RealRig::open(&drives, options, true, &mut made, &|| false, &mut |_| ()).unwrap();
        let (port, registers, trained) = port(folder);
        let mut rig = rig.retraining(vec![port]);
        let scope = Scope {
            point: Duration::from_millis(20),
            interval: Duration::from_millis(10),
            region: Some(4 << 20),
            ..Scope::default()
        };
        let sweep = Sweep { generations, lanes: vec![4], depths: vec![1] };
        let link = Link { scope, sweep: Some(sweep), ..Link::default() };
        let mut watch = |progress: &Progress<'_>| go(progress.step);
        let mut lab = Lab::new(&mut rig, &folder.join("results"), &mut watch).unwrap();
        let result = link.run(&mut lab);
        drop(rig);
        let trained = trained.lock().unwrap().clone();
        (result, registers, trained)
    }

    #[test]
    fn a_real_link_is_swept_over_its_speeds_and_restored() {
        let folder = tempfile::tempdir().unwrap();
        let (result, registers, trained) = sweep(folder.path(), vec![1, 3], &mut |_| Go::On);
        let swept = result.unwrap().sweep.unwrap();
        let modes: Vec<String> = swept.links.iter().map(|link| link.mode.to_string()).collect();
        assert_eq!(modes, ["PCIe 1.0 x4", "PCIe 3.0 x4"]);
        // On a busy machine, a point of so short a time may be over before a read is.
        assert!(swept.links.iter().all(|link| !link.points.is_empty()));
        assert_eq!(trained, [1, 3, 4]);
        assert_eq!(fs::read(registers).unwrap(), config());
    }

    #[test]
    fn a_sweep_that_is_stopped_or_fails_restores_the_link() {
        let folder = tempfile::tempdir().unwrap();
        let mut go = |step: &str| if step.starts_with("3.0x4-") { Go::Stop } else { Go::On };
        let (result, registers, trained) = sweep(folder.path(), vec![1, 3], &mut go);
        assert!(matches!(result, Err(LabError::Interrupted)), "{result:?}");
        assert_eq!(trained, [1, 3, 4]);
        assert_eq!(fs::read(registers).unwrap(), config());
        let folder = tempfile::tempdir().unwrap();
        let (result, registers, trained) = sweep(folder.path(), vec![2, 5], &mut |_| Go::On);
        let error = result.unwrap_err().to_string();
        assert!(error.contains("up to 4.0"), "{error}");
        assert_eq!(trained, [2, 4]);
        assert_eq!(fs::read(registers).unwrap(), config());
    }
}
