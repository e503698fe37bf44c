//! Stenographer with the same packets: its recorder gets them from a cable, and its server answers queries. Its programs are those of
//! Debian's packages, unpacked and not installed.

use std::fs::{self, File};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::thread::sleep;
use std::time::{Duration, Instant, SystemTime};

use anyhow::{Context, Result, bail, ensure};
use serde_json::json;

use super::servers::{Certificates, Server, free_address};
use crate::bench::veth;

/// The share of their pace at which packets are sent: stenotype must not lose any.
const SPEED: f64 = 0.15;
/// A file of packets ends after this time at the latest, as by default; a block of packets is written after this one.
const FILE_AGE: Duration = Duration::from_secs(60);
const BLOCK_AGE: Duration = Duration::from_secs(1);

/// What it has recorded.
#[derive(Debug)]
pub struct Stenographer {
    /// Where its programs and libraries are.
    programs: PathBuf,
    /// Where its files are.
    folder: PathBuf,
}

impl Stenographer {
    /// Records the packets of an array into a folder.
    ///
    /// # Errors
    /// If stenotype fails or loses packets.
    pub fn record(programs: &Path, folder: &Path, longtake: &Path, array: &Path) -> Result<Self> {
        for name in ["PKT0", "IDX0", "tmp"] {
            fs::create_dir_all(folder.join(name))?;
        }
        let programs = programs.canonicalize();
        let programs = programs.context("the folder that --stenographer names")?;
        let this = Self { programs, folder: folder.canonicalize()? };
        veth::in_namespace(|| {
            let mut stenotype = this.stenotype()?;
            let recorded = this.fill(&mut stenotype, longtake, array);
            // It is killed, because told to end by a signal it may wait for a write for ever. Its files are complete.
            stenotype.kill().ok();
            stenotype.wait().ok();
            recorded
        })?;
        this.expect_no_loss()?;
        Ok(this)
    }

    /// Its server.
    ///
    /// # Errors
    /// If it does not start.
    pub fn serve(&self, certificates: &Certificates) -> Result<Server> {
        let address = free_address()?;
        // The server wants to start a recorder, and there is nothing to record any more.
        let idle = self.folder.join("idle");
        fs::write(&idle, "#!/bin/sh\nexec sleep infinity\n")?;
        fs::set_permissions(&idle, fs::Permissions::from_mode(0o755))?;
        let config = json!({
            "Threads": [{
                "PacketsDirectory": self.folder.join("PKT0"), "IndexDirectory": self.folder.join("IDX0"),
                "DiskFreePercentage": 1,
            }],
            "StenotypePath": idle, "Interface": "none", "Host": address.ip(), "Port": address.port(),
            "Flags": [], "CertPath": certificates.0,
        });
        let path = self.folder.join("config");
        fs::write(&path, config.to_string())?;
        let mut server = self.program("stenographer");
        server.arg(format!("--config={}", path.display())).arg("--syslog=false");
        server.env("TMPDIR", self.folder.join("tmp"));
        let log = File::create(self.folder.join("server.log"))?;
        Server::start(server.stdout(log.try_clone()?).stderr(log), address)
    }

    /// Bytes of its indexes.
    ///
    /// # Errors
    /// If they can't be read.
    pub fn index_bytes(&self) -> Result<u64> {
        let files = fs::read_dir(self.folder.join("IDX0"))?;
        files.map(|file| Ok(file?.metadata()?.len())).sum()
    }

    fn program(&self, name: &str) -> Command {
        let mut command = Command::new(self.programs.join("usr/sbin").join(name));
        let libraries = format!("usr/lib/{}-linux-gnu", std::env::consts::ARCH);
        command.env("LD_LIBRARY_PATH", self.programs.join(libraries));
        command
    }

    fn log(&self) -> PathBuf {
        self.folder.join("stenotype.log")
    }

    fn stenotype(&self) -> Result<Child> {
        let log = File::create(self.log())?;
        let mut stenotype = self.program("stenotype");
        stenotype.args(["-v", "--uid=root", "--gid=root", "--seccomp=none", "--no_watchdogs"]);
        stenotype.args(["--threads=1", "--blocks=512", "--stats_sec=1"]);
        stenotype.arg(format!("--fileage_sec={}", FILE_AGE.as_secs()));
        stenotype.arg(format!("--blockage_sec={}", BLOCK_AGE.as_secs()));
        stenotype.arg(format!("--dir={}", self.folder.display()));
        stenotype.arg(format!("--iface={}", veth::FAR));
        stenotype.stdout(log.try_clone()?).stderr(log);
        stenotype.spawn().with_context(|| format!("starting {stenotype:?}"))
    }

    /// Sends it all packets, and waits until their files are complete.
    fn fill(&self, stenotype: &mut Child, longtake: &Path, array: &Path) -> Result<()> {
        let started = || {
            let log = fs::read_to_string(self.log());
            log.is_ok_and(|log| log.contains("starting to process packets"))
        };
        wait(stenotype, "start", started)?;
        veth::replay(longtake, array, SPEED)?;
        let over = (SystemTime::now() + 2 * BLOCK_AGE).duration_since(SystemTime::UNIX_EPOCH)?;
        let complete = || are_complete(&self.names("PKT0"), &self.names("IDX0"), over.as_micros());
        wait(stenotype, "complete its files", complete)
    }

    fn names(&self, folder: &str) -> Vec<String> {
        let files = fs::read_dir(self.folder.join(folder)).into_iter().flatten();
        files.filter_map(|file| file.ok()?.file_name().into_string().ok()).collect()
    }

    fn expect_no_loss(&self) -> Result<()> {
        let log = fs::read_to_string(self.log())?;
        let mut drops =
            log.lines().filter_map(|line| line.split_once(" drops=")?.1.split(' ').next());
        let drops = drops.next_back().context("stenotype counted nothing")?;
        ensure!(drops == "0", "stenotype lost {drops} packets");
        Ok(())
    }
}

/// Whether all files of packets that were begun before a time, in microseconds since 1970, are complete, and have indexes. Both are named
/// by when they were begun, with a dot before it until they are complete.
fn are_complete(packets: &[String], indexes: &[String], before_us: u128) -> bool {
    let is_later = |name: &&String| {
        name.trim_start_matches('.').parse::<u128>().is_ok_and(|begun_us| begun_us > before_us)
    };
    let (later, full): (Vec<_>, Vec<_>) = packets.iter().partition(is_later);
    let is_complete = |name: &String| !name.starts_with('.') && indexes.contains(name);
    !later.is_empty() && full.into_iter().all(is_complete)
}

fn wait(stenotype: &mut Child, what: &str, until: impl Fn() -> bool) -> Result<()> {
    let begun = Instant::now();
    while !until() {
        if let Some(status) = stenotype.try_wait()? {
            bail!("stenotype ended: {status}");
        }
        ensure!(begun.elapsed() < 2 * FILE_AGE, "stenotype did not {what}");
        sleep(Duration::from_millis(100));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_complete_when_a_later_one_was_begun_and_they_have_lost_their_dots() {
        let names = |names: &[&str]| names.iter().map(|&name| name.to_owned()).collect::<Vec<_>>();
        let complete =
            |packets: &[&str], indexes: &[&str]| are_complete(&names(packets), &names(indexes), 50);
        assert!(complete(&["10", "20", ".60"], &["10", "20"]));
        assert!(!complete(&["10", ".20"], &["10"]), "none was begun later");
        assert!(!complete(&["10", ".20", ".60"], &["10", "20"]), "packets are not complete");
        assert!(!complete(&["10", "20", ".60"], &["10", ".20"]), "an index is not complete");
        assert!(!complete(&[], &[]));
    }
}
