//! Two hosts and the cable between them: network namespaces joined by veth, gone with their test.

use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};

use super::{Ran, run, tool};

/// The near host's address on the cable.
pub const NEAR: &str = "10.77.0.1";
/// The far host's address on the cable.
pub const FAR: &str = "10.77.0.2";

/// Two namespaces; each has its end of the cable, called `cable`, up and addressed.
#[derive(Debug)]
pub struct Hosts {
    near: String,
    far: String,
}

static MADE: AtomicU32 = AtomicU32::new(0);

impl Hosts {
    /// Makes them.
    #[track_caller]
    pub fn new() -> Self {
        let number = MADE.fetch_add(1, Ordering::Relaxed);
        let name = |end| format!("longtake-{}-{number}-{end}", std::process::id());
        let hosts = Self { near: name("near"), far: name("far") };
        for name in [&hosts.near, &hosts.far] {
            ip(&["netns", "add", name]);
        }
        ip(&[
            "link",
            "add",
            "cable",
            "netns",
            &hosts.near,
            "type",
            "veth",
            "peer",
            "name",
            "cable",
            "netns",
            &hosts.far,
        ]);
        // The near one, which sends first, comes last: it has its carrier at once, and not when the kernel comes to it.
        for (name, address) in [(&hosts.far, FAR), (&hosts.near, NEAR)] {
            // No neighbour discovery of IPv6: only what a test sends is to be seen.
            let off = "net.ipv6.conf.all.disable_ipv6=1";
            run(tool("ip", "iproute2").args(["netns", "exec", name, "sysctl", "-q", "-w", off]))
                .code(0);
            ip(&["-n", name, "address", "add", &format!("{address}/24"), "dev", "cable"]);
            ip(&["-n", name, "link", "set", "lo", "up"]);
            ip(&["-n", name, "link", "set", "cable", "up"]);
        }
        hosts
    }

    /// A command on the near host.
    pub fn near(&self, command: &Command) -> Command {
        inside(&self.near, command)
    }

    /// A command on the far host.
    pub fn far(&self, command: &Command) -> Command {
        inside(&self.far, command)
    }

    /// `ip` on the far host.
    #[track_caller]
    pub fn far_ip(&self, arguments: &[&str]) -> Ran {
        run(tool("ip", "iproute2").args(["-n", &self.far]).args(arguments)).code(0)
    }

    /// `ip` on the near host.
    #[track_caller]
    pub fn near_ip(&self, arguments: &[&str]) -> Ran {
        run(tool("ip", "iproute2").args(["-n", &self.near]).args(arguments)).code(0)
    }

    /// Sends one UDP datagram from near to far, to the discard port.
    #[track_caller]
    pub fn mark(&self, payload: &str) {
        let mut bash = tool("bash", "bash");
        bash.args(["-c", &format!("printf %s '{payload}' > /dev/udp/{FAR}/9")]);
        run(&mut self.near(&bash)).code(0);
    }
}

/// `ip netns exec` becomes the command, so that its process is the command's.
fn inside(namespace: &str, command: &Command) -> Command {
    let mut inside = tool("ip", "iproute2");
    inside.args(["netns", "exec", namespace]).arg(command.get_program()).args(command.get_args());
    inside
}

#[track_caller]
fn ip(arguments: &[&str]) -> Ran {
    run(tool("ip", "iproute2").args(arguments)).code(0)
}

impl Drop for Hosts {
    fn drop(&mut self) {
        for name in [&self.near, &self.far] {
            // Also after a failure: what was not made can't be removed.
            tool("ip", "iproute2").args(["netns", "del", name]).output().ok();
        }
    }
}
