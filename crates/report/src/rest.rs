//! What trimming ahead and letting members rest does to the rate that a ring sustains, as a table and as JSON.

use base::Rate;
use plan::rest::{Effect, SETTINGS, Setting};
use serde_json::{Value, json};

use crate::text::{table, trimmed};

/// What was found for a drive.
#[derive(Clone, Debug)]
pub struct Rested {
    /// Its name.
    pub drive: String,
    /// Members of the ring.
    pub members: u32,
    /// By setting, in the order of [`SETTINGS`].
    pub effects: Vec<Effect>,
}

impl Rested {
    fn of_member(&self, effect: &Effect) -> Rate {
        Rate(effect.rate.0 / f64::from(self.members))
    }

    /// As JSON.
    pub fn to_json(&self) -> Value {
        let effect = |effect: &Effect| {
            json!({
                "trim_ahead": effect.setting.trim_ahead, "rest": effect.setting.rest,
                "rate": effect.rate.0, "rate_per_member": self.of_member(effect).0,
                "amplification": effect.amplification,
            })
        };
        let effects: Vec<Value> = self.effects.iter().map(effect).collect();
        json!({"drive": self.drive, "members": self.members, "effects": effects})
    }
}

/// A line for each drive, and what the figures mean.
pub fn text(found: &[Rested], members: u32) -> String {
    let head = |setting: &Setting| match (setting.trim_ahead, setting.rest) {
        (0, 0) => "neither".to_owned(),
        (trim, 0) => format!("trim {trim}"),
        (0, rest) => format!("rest {rest}"),
        (trim, rest) => format!("trim {trim}, rest {rest}"),
    };
    let heads: Vec<String> = SETTINGS.iter().map(head).collect();
    let heads: Vec<&str> = ["drive"].into_iter().chain(heads.iter().map(String::as_str)).collect();
    let mut shown = table(&heads, &(1..heads.len()).collect::<Vec<_>>());
    for rested in found {
        let rates = rested.effects.iter();
        let cells = rates.map(|effect| format!("{:.2}", rested.of_member(effect).0 / 1e9));
        shown.add_row([rested.drive.clone()].into_iter().chain(cells));
    }
    format!(
        "{}\n\nThe highest rate that a ring of {members} drives in overwrite takes for half a minute without a loss, in GB/s a drive. \
         Trim: segments kept trimmed ahead of the head; rest: members that take no writes at a time, for 3 s each.",
        trimmed(&shown)
    )
}
