//! A network namespace with a veth pair, for benchmarks that capture from an interface: no other traffic gets in.

use std::path::Path;
use std::process::Command;
use std::thread;

use anyhow::{Context, Result, anyhow, ensure};
use nix::sched::{CloneFlags, unshare};
use serde_json::Value;

use super::program;

/// The end of the cable that packets are sent on.
const NEAR: &str = "near";
/// The end of the cable that packets arrive at.
pub const FAR: &str = "far";
/// Longer than any packet of generated traffic, tunnels included.
const MTU: &str = "9000";

/// Runs something in a namespace that ends with it. Programs that it starts are in the namespace, too.
///
/// # Errors
/// Its own, or that the namespace can't be made (it takes root).
pub fn in_namespace<T: Send>(run: impl FnOnce() -> Result<T> + Send) -> Result<T> {
    thread::scope(|scope| {
        let inside = || {
            unshare(CloneFlags::CLONE_NEWNET)
                .context("making a network namespace (it takes root)")?;
            lay_cable()?;
            run()
        };
        scope.spawn(inside).join().map_err(|_| anyhow!("the benchmark panicked"))?
    })
}

fn lay_cable() -> Result<()> {
    let ip = |words: &str| program::run(Command::new("ip").args(words.split(' ')));
    ip(&format!("link add {NEAR} type veth peer name {FAR}"))?;
    for end in [FAR, NEAR] {
        // Without addresses of IPv6 the kernel sends nothing of its own.
        ip(&format!("link set {end} mtu {MTU} addrgenmode none"))?;
        ip(&format!("link set {end} up"))?;
    }
    Ok(())
}

/// Sends all packets of an array on the cable, at this share of the pace at which they were recorded. Returns how many there were.
///
/// # Errors
/// If one could not be sent.
pub fn replay(longtake: &Path, array: &Path, speed: f64) -> Result<u64> {
    let mut replay = Command::new(longtake);
    replay.args(["replay", "--json", "--interface", NEAR, "--speed", &speed.to_string()]);
    let said: Value = serde_json::from_slice(&program::run(replay.arg(array))?)
        .context("what longtake replay said")?;
    let count = |field: &str| said[field].as_u64().with_context(|| format!("no {field}"));
    for kept_back in ["oversize", "truncated", "other_link_type", "unsent"] {
        ensure!(count(kept_back)? == 0, "not all packets were sent: {said}");
    }
    count("packets")
}
