//! A fitted trace as the source of a stream's commands.

use std::sync::Arc;

use base::{Duration, Instant};
use serde::{Deserialize, Serialize};

use super::Request;

/// The requests of a trace, fitted to a drive, as a stream's commands. In files of results it is described, and its requests are
/// not kept.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Recorded {
    /// The file it was read from.
    pub source: String,
    /// The device whose requests they are.
    pub device: String,
    /// How many commands they make on this drive.
    pub commands: u64,
    /// Hash of all of them: time, place, length, direction.
    pub fingerprint: String,
    /// How many times as fast as recorded; None as fast as possible.
    pub speed: Option<f64>,
    #[serde(skip)]
    requests: Arc<Vec<Request>>,
}

impl PartialEq for Recorded {
    /// The fingerprint stands for the requests: those of a result that was read again are not there.
    fn eq(&self, other: &Self) -> bool {
        let said = |it: &Self| (it.commands, it.speed.map(f64::to_bits));
        said(self) == said(other)
            && self.source == other.source
            && self.device == other.device
            && self.fingerprint == other.fingerprint
    }
}

impl Recorded {
    /// Of these requests, which are in the order of their times.
    pub(super) fn new(
        source: String,
        device: String,
        speed: Option<f64>,
        requests: Vec<Request>,
    ) -> Self {
        let mut hash = Hash::default();
        for request in &requests {
            let kind = request.verb.index() as u64 * 2 + u64::from(request.fua);
            for part in [request.at_ns, request.offset, request.length.into(), kind] {
                hash.add(part);
            }
        }
        Self {
            source,
            device,
            commands: requests.len() as u64,
            fingerprint: format!("{:016x}", hash.0),
            speed,
            requests: Arc::new(requests),
        }
    }

    /// Its requests; None if this was read from a file, which has none.
    pub fn requests(&self) -> Option<&Arc<Vec<Request>>> {
        Some(&self.requests).filter(|requests| requests.len() as u64 == self.commands)
    }

    /// Whether commands have their recorded times (an open loop).
    pub const fn is_open(&self) -> bool {
        self.speed.is_some()
    }
}

/// FNV-1a over 64-bit words (draft-eastlake-fnv), which no version of a library changes.
struct Hash(u64);

impl Default for Hash {
    fn default() -> Self {
        Self(0xCBF2_9CE4_8422_2325)
    }
}

impl Hash {
    fn add(&mut self, word: u64) {
        for byte in word.to_le_bytes() {
            self.0 = (self.0 ^ u64::from(byte)).wrapping_mul(0x0100_0000_01B3);
        }
    }
}

/// The requests of a trace, one after the other.
#[derive(Clone, Debug)]
pub(crate) struct Playback {
    requests: Arc<Vec<Request>>,
    position: usize,
}

impl Playback {
    /// From the first on.
    pub fn new(requests: &Arc<Vec<Request>>) -> Self {
        Self { requests: Arc::clone(requests), position: 0 }
    }

    /// When the next is due in a run that began at `start`; never if there is none.
    pub fn due(&self, start: Instant) -> Instant {
        let next = self.requests.get(self.position);
        next.map_or(Instant::from_nanos(u64::MAX), |next| start + Duration::from_nanos(next.at_ns))
    }

    /// The next one, and goes on.
    pub fn take(&mut self) -> Option<Request> {
        let next = self.requests.get(self.position).copied();
        self.position += usize::from(next.is_some());
        next
    }
}
