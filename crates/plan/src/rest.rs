//! What trimming ahead and letting members rest does for a ring: the highest rate that it sustains in overwrite without a loss, found
//! by simulating it at one rate after the other.

use std::ops::ControlFlow;

use base::{Duration, Rate};
use ssd::{Slot, Spec, Start};

use crate::mission::{Mission, MissionError};

/// A ring's settings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Setting {
    /// Segments trimmed ahead of the head.
    pub trim_ahead: u64,
    /// Members that rest at a time.
    pub rest: u32,
}

/// The settings that are compared. The first is the one without either.
pub const SETTINGS: [Setting; 5] = [
    Setting { trim_ahead: 0, rest: 0 },
    Setting { trim_ahead: 4, rest: 0 },
    Setting { trim_ahead: 64, rest: 0 },
    Setting { trim_ahead: 0, rest: 1 },
    Setting { trim_ahead: 4, rest: 1 },
];

/// What a setting comes to.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Effect {
    /// The setting.
    pub setting: Setting,
    /// The highest rate of all members together that lost nothing.
    pub rate: Rate,
    /// Media bytes for each of the host's, at that rate.
    pub amplification: f64,
}

/// How long a ring is simulated at each rate: every one of four members rests twice.
const TIME: Duration = Duration::from_secs(30);

/// How long a member rests at a time: beyond the second without a command after which most drives begin to use it.
const TURN: Duration = Duration::from_secs(3);

/// Halvings of the range of rates, which leave less than one percent of it.
const HALVINGS: u32 = 7;

/// The effects of all [`SETTINGS`] on a ring of so many drives that are full in the beginning. `step` is told before each simulation how
/// many are done of how many, and may break it off.
///
/// # Errors
/// [`MissionError`] if the drive can't be simulated.
pub fn effects(
    spec: &Spec,
    members: u32,
    mut step: impl FnMut(u32, u32) -> ControlFlow<()>,
) -> Result<Vec<Effect>, MissionError> {
    let steps = SETTINGS.len() as u32 * HALVINGS;
    let most = f64::from(members)
        * spec.cached_write_bytes_per_s().unwrap_or(0.0).max(spec.native_write_bytes_per_s())
        * 1.1;
    let mut found = Vec::new();
    for (number, setting) in (0..).zip(SETTINGS) {
        let (mut low, mut high) = (0.0, most);
        let mut amplification = 1.0;
        for halving in 0..HALVINGS {
            if step(number * HALVINGS + halving, steps).is_break() {
                return Ok(found);
            }
            let rate = (low + high) / 2.0;
            match sustained(spec, members, setting, Rate(rate))? {
                Some(media) => (low, amplification) = (rate, media),
                None => high = rate,
            }
        }
        found.push(Effect { setting, rate: Rate(low), amplification });
    }
    Ok(found)
}

/// The amplification at a rate, or None if something is lost.
fn sustained(
    spec: &Spec,
    members: u32,
    setting: Setting,
    rate: Rate,
) -> Result<Option<f64>, MissionError> {
    let slot = Slot { spec: spec.clone(), start: Start::Full, namespaces: vec![0], seed: 1 };
    let mut mission = Mission::new(vec![slot; members as usize], rate, TIME);
    mission.trim_ahead = setting.trim_ahead;
    mission.rest = setting.rest;
    mission.rest_turn = TURN;
    let outcome = mission.run(|progress| match progress.first_loss {
        Some(_) => ControlFlow::Break(()),
        None => ControlFlow::Continue(()),
    })?;
    let (written, media) = outcome.drives.iter().fold((0, 0), |(written, media), drive| {
        (written + drive.written_bytes, media + drive.media_written_bytes)
    });
    Ok(outcome.first_loss.is_none().then_some(media as f64 / written.max(1) as f64))
}
