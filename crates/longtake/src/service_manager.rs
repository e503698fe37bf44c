//! Tells the service manager how a recording or a service goes: systemd's protocol of datagrams, sd_notify(3).
//!
//! The socket is connected before the recorder confines itself, because it can connect to nothing afterwards.
//! Nobody waits for a manager that doesn't read its socket.

use std::ffi::OsStr;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

/// Tries in the time between two signs of life, while the manager's queue is full.
const TRIES: u32 = 16;

/// A service manager that listens.
#[derive(Debug)]
pub struct ServiceManager {
    socket: UnixDatagram,
    /// How often this process tells the watchdog that it is alive: after half the time in which the watchdog would end it.
    alive_every: Option<Duration>,
    alive: Instant,
    /// When it was last tried to tell, heard or not.
    tried: Instant,
    stopping: bool,
}

impl ServiceManager {
    /// The one that started this process; None if there is none.
    ///
    /// # Errors
    /// If it can't be reached.
    pub fn from_environment() -> crate::Result<Option<Self>> {
        let address = std::env::var_os("NOTIFY_SOCKET").filter(|address| !address.is_empty());
        let Some(address) = address else { return Ok(None) };
        let socket = connect(&address).with_context(|| {
            format!("the service manager at NOTIFY_SOCKET={} hears nothing", address.display())
        })?;
        let alive_every = watchdog().map(|limit| limit / 2);
        let (alive, tried) = (Instant::now(), Instant::now());
        Ok(Some(Self { socket, alive_every, alive, tried, stopping: false }))
    }

    /// Returns whether the socket took it: its queue may be full.
    fn tell(&self, state: &str) -> bool {
        self.socket.send(state.as_bytes()).is_ok()
    }

    /// The work has started.
    pub fn ready(&self) {
        self.tell("READY=1");
    }

    /// A line that `systemctl status` shows.
    pub fn status(&self, line: &str) {
        self.tell(&format!("STATUS={}", line.replace('\n', "; ")));
    }

    /// How often it is to hear a sign of life; None if it doesn't watch this process.
    pub fn alive_every(&self) -> Option<Duration> {
        self.alive_every
    }

    /// A round of the work is over. To be called more often than the watchdog bites.
    pub fn alive(&mut self) {
        self.alive_at(Instant::now());
    }

    /// What a full queue did not take is tried again soon, so that it is heard before the watchdog bites if anybody listens.
    fn alive_at(&mut self, now: Instant) {
        let Some(every) = self.alive_every else { return };
        let due = now.saturating_duration_since(self.alive) >= every;
        if due && now.saturating_duration_since(self.tried) >= every / TRIES {
            self.tried = now;
            if self.tell("WATCHDOG=1") {
                self.alive = now;
            }
        }
    }

    /// The work ends.
    pub fn stopping(&mut self) {
        if !std::mem::replace(&mut self.stopping, true) {
            self.tell("STOPPING=1");
        }
    }
}

impl Drop for ServiceManager {
    fn drop(&mut self) {
        self.stopping();
    }
}

fn connect(address: &OsStr) -> Result<UnixDatagram> {
    let address = match address.as_bytes() {
        [b'/', ..] => SocketAddr::from_pathname(address)?,
        [b'@', name @ ..] => SocketAddr::from_abstract_name(name)?,
        _ => bail!("it is neither a path nor an abstract socket"),
    };
    let socket = UnixDatagram::unbound()?;
    socket.connect_addr(&address)?;
    socket.set_nonblocking(true)?;
    Ok(socket)
}

/// The time after which the manager ends a process that it doesn't hear from, if it watches this one.
fn watchdog() -> Option<Duration> {
    let number = |name| std::env::var(name).ok()?.parse::<u64>().ok();
    let ours = number("WATCHDOG_PID").is_none_or(|pid| pid == u64::from(std::process::id()));
    number("WATCHDOG_USEC").filter(|&limit| ours && limit > 0).map(Duration::from_micros)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sign_of_life_that_a_full_queue_did_not_take_is_repeated_before_the_watchdog_bites() {
        let (socket, manager) = UnixDatagram::pair().unwrap();
        socket.set_nonblocking(true).unwrap();
        manager.set_nonblocking(true).unwrap();
        while socket.send(b"STATUS=full").is_ok() {}
        let (start, every) = (Instant::now(), Duration::from_secs(3600));
        let (alive_every, alive, tried) = (Some(every), start, start);
        let mut told = ServiceManager { socket, alive_every, alive, tried, stopping: true };
        let hears = || {
            let mut bytes = [0; 64];
            let messages =
                std::iter::from_fn(|| manager.recv(&mut bytes).ok().map(|n| bytes[..n].to_vec()));
            messages.filter(|message| message == b"WATCHDOG=1").count()
        };
        told.alive_at(start + every);
        assert_eq!(hears(), 0, "the queue was full");
        told.alive_at(start + every + every / 64);
        assert_eq!(hears(), 0, "not every round tries");
        told.alive_at(start + every + every / 8);
        assert_eq!(hears(), 1);
        told.alive_at(start + every + every / 2);
        assert_eq!(hears(), 0, "it was heard");
    }
}
