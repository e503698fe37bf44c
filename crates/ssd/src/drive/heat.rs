//! The drive's temperature: looked at every now and then while it works, and what it lets through then.

use super::Drive;
use crate::earliest::NEVER;
use crate::heat::{LOOK_NS, Thermal, Work};

impl Drive {
    /// Looks at the temperature at a time, and lets as much through the link as it allows.
    #[cold]
    pub(super) fn look_at_heat(&mut self, now: u64) {
        let work = self.work();
        let Some(thermometer) = &mut self.thermometer else { return };
        let before = thermometer.thermal().throttling;
        if thermometer.look(now, work).throttling != before {
            let rate = thermometer.bytes_per_s(self.spec.link.bytes_per_s());
            self.to_host.set_rate(rate);
            self.from_host.set_rate(rate);
        }
        let working = self.under_way > 0 || self.dies.working();
        self.heat_at = if working { now + LOOK_NS } else { NEVER };
    }

    /// How warm it is at a time.
    pub(super) fn thermal(&self, now: u64) -> Option<Thermal> {
        let mut thermometer = self.thermometer.clone()?;
        Some(thermometer.look(now, self.work()))
    }

    fn work(&self) -> Work {
        Work {
            dies_ns: self.dies.busy_ns(),
            link_bytes: self.health.read_bytes + self.health.written_bytes,
        }
    }
}
