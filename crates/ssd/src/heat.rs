//! How warm a drive is. One mass is warmed by the drive's power and cooled by its surroundings:
//! `joules_per_k` dT/dt = power - (T - ambient) / `kelvin_per_w`. While the power stays the same, the temperature approaches
//! ambient + power x `kelvin_per_w` exponentially, so that any time is computed in one step.

use base::Duration;

use crate::spec::Heat;

/// How often the temperature is looked at while the drive works, in nanoseconds.
pub const LOOK_NS: u64 = 100_000_000;

/// How much a drive lets through because of its temperature.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Throttling {
    /// All.
    #[default]
    None,
    /// Less: thermal management temperature 1.
    Light,
    /// Much less: thermal management temperature 2.
    Heavy,
}

/// How warm a drive is and was.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Thermal {
    /// Its temperature in degrees Celsius.
    pub celsius: f64,
    /// The highest so far.
    pub highest_celsius: f64,
    /// How it is throttled.
    pub throttling: Throttling,
    /// Light throttling so far.
    pub light: Throttled,
    /// Heavy throttling so far.
    pub heavy: Throttled,
}

/// How often a drive began to be throttled in some way, and for how long it was.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Throttled {
    /// Times that it began.
    pub times: u64,
    /// How long, in all.
    pub time: Duration,
}

/// What a drive has done in all, as far as it takes power.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Work {
    /// Time that dies were busy, summed over dies, in nanoseconds.
    pub dies_ns: u64,
    /// Bytes that passed the link.
    pub link_bytes: u64,
}

/// The temperature of a drive in time.
#[derive(Clone, Debug)]
pub struct Thermometer {
    heat: Heat,
    /// Energy of a byte that passes the link, in joules.
    byte_j: f64,
    at_ns: u64,
    done: Work,
    thermal: Thermal,
}

impl Thermometer {
    /// As warm as its surroundings at time 0.
    pub fn new(heat: Heat, link_bytes_per_s: f64) -> Self {
        let thermal = Thermal {
            celsius: heat.ambient_c,
            highest_celsius: heat.ambient_c,
            throttling: Throttling::None,
            light: Throttled::default(),
            heavy: Throttled::default(),
        };
        let byte_j = heat.transfer_w / link_bytes_per_s;
        Self { heat, byte_j, at_ns: 0, done: Work::default(), thermal }
    }

    /// How warm it was when it was looked at last.
    pub const fn thermal(&self) -> Thermal {
        self.thermal
    }

    /// How warm it is at a time, after all that was done until then. Throttling changes when it is looked at, not before.
    pub fn look(&mut self, now_ns: u64, done: Work) -> Thermal {
        let Heat { idle_w, die_w, .. } = self.heat;
        let elapsed_ns = now_ns.saturating_sub(self.at_ns);
        if elapsed_ns > 0 {
            let elapsed_s = elapsed_ns as f64 / 1e9;
            let dies_s = (done.dies_ns - self.done.dies_ns) as f64 / 1e9;
            let bytes = (done.link_bytes - self.done.link_bytes) as f64;
            let watts = idle_w + (die_w * dies_s + self.byte_j * bytes) / elapsed_s;
            self.pass(elapsed_s, watts);
            self.count(Duration::from_nanos(elapsed_ns));
            (self.at_ns, self.done) = (now_ns, done);
        }
        self.decide();
        self.thermal
    }

    fn pass(&mut self, elapsed_s: f64, watts: f64) {
        let end = self.heat.steady_c(watts);
        let left = (-elapsed_s / self.heat.time_constant_s()).exp();
        let thermal = &mut self.thermal;
        thermal.celsius = end + (thermal.celsius - end) * left;
        thermal.highest_celsius = thermal.highest_celsius.max(thermal.celsius);
    }

    fn count(&mut self, elapsed: Duration) {
        match self.thermal.throttling {
            Throttling::None => {}
            Throttling::Light => self.thermal.light.time = self.thermal.light.time + elapsed,
            Throttling::Heavy => self.thermal.heavy.time = self.thermal.heavy.time + elapsed,
        }
    }

    fn decide(&mut self) {
        let Heat { light_c, heavy_c, hysteresis_k, .. } = self.heat;
        let Thermal { celsius, throttling: before, .. } = self.thermal;
        let reached = |limit: f64, from: Throttling| {
            celsius >= if before >= from { limit - hysteresis_k } else { limit }
        };
        let now = if reached(heavy_c, Throttling::Heavy) {
            Throttling::Heavy
        } else if reached(light_c, Throttling::Light) {
            Throttling::Light
        } else {
            Throttling::None
        };
        if now != before {
            match now {
                Throttling::None => {}
                Throttling::Light => self.thermal.light.times += 1,
                Throttling::Heavy => self.thermal.heavy.times += 1,
            }
        }
        self.thermal.throttling = now;
    }

    /// What passes the link in each direction at most, in bytes a second.
    pub fn bytes_per_s(&self, link_bytes_per_s: f64) -> f64 {
        match self.thermal.throttling {
            Throttling::None => link_bytes_per_s,
            Throttling::Light => self.heat.light_mb_s * 1e6,
            Throttling::Heavy => self.heat.heavy_mb_s * 1e6,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEAT: Heat = Heat {
        idle_w: 1.0,
        die_w: 0.1,
        transfer_w: 2.0,
        joules_per_k: 10.0,
        kelvin_per_w: 10.0,
        ambient_c: 20.0,
        light_c: 60.0,
        light_mb_s: 500.0,
        heavy_c: 70.0,
        heavy_mb_s: 100.0,
        hysteresis_k: 5.0,
    };

    /// So many seconds after the last look, in which ten dies were busy and half of what the link can move passed.
    fn busy(thermometer: &mut Thermometer, s: u64) -> Thermal {
        let Work { dies_ns, link_bytes } = thermometer.done;
        let work = Work {
            dies_ns: dies_ns + 10 * s * 1_000_000_000,
            link_bytes: link_bytes + s * 500_000_000,
        };
        thermometer.look(thermometer.at_ns + s * 1_000_000_000, work)
    }

    #[test]
    fn constant_power_warms_it_exponentially_however_often_it_is_looked_at() {
        // 1 W + 10 dies x 0.1 W + 2 W / 2 = 3 W: 20 + 30 degrees in the end, with a time constant of 100 s.
        let expected = |s: f64| 20.0 + 30.0 * (1.0 - (-s / 100.0).exp());
        let mut once = Thermometer::new(HEAT, 1e9);
        assert!((busy(&mut once, 150).celsius - expected(150.0)).abs() < 1e-9);
        let mut often = Thermometer::new(HEAT, 1e9);
        for s in 1..=150 {
            assert!((busy(&mut often, 1).celsius - expected(s as f64)).abs() < 1e-9);
        }
        assert_eq!(often.thermal().throttling, Throttling::None);
        // Without work it cools towards what idling takes.
        let idle = often.look(often.at_ns + 100_000_000_000_000, often.done);
        assert!((idle.celsius - 30.0).abs() < 1e-9 && idle.highest_celsius > 43.0, "{idle:?}");
    }

    #[test]
    fn it_is_throttled_from_each_temperature_on_until_it_is_cooler_by_the_hysteresis() {
        let mut thermometer = Thermometer::new(HEAT, 1e9);
        let mut at = |celsius: f64| {
            thermometer.thermal.celsius = celsius;
            let thermal = thermometer.look(thermometer.at_ns, thermometer.done);
            (thermal.throttling, thermometer.bytes_per_s(1e9))
        };
        assert_eq!(at(59.9), (Throttling::None, 1e9));
        assert_eq!(at(60.0), (Throttling::Light, 500e6));
        assert_eq!(at(55.1), (Throttling::Light, 500e6));
        assert_eq!(at(70.0), (Throttling::Heavy, 100e6));
        assert_eq!(at(65.1), (Throttling::Heavy, 100e6));
        assert_eq!(at(64.9), (Throttling::Light, 500e6));
        assert_eq!(at(54.9), (Throttling::None, 1e9));
        let Thermal { light, heavy, .. } = thermometer.thermal();
        assert_eq!((light.times, heavy.times), (2, 1));
    }

    #[test]
    fn the_time_that_it_is_throttled_is_counted() {
        let hot = Heat { kelvin_per_w: 30.0, ..HEAT };
        let mut thermometer = Thermometer::new(hot, 1e9);
        for _ in 0..2_000 {
            busy(&mut thermometer, 1);
        }
        // 20 + 90 degrees in the end, with a time constant of 300 s: 60 degrees after 176 s, 70 after 243 s.
        let Thermal { light, heavy, .. } = thermometer.thermal();
        assert_eq!((light.times, heavy.times), (1, 1));
        assert!(light.time.as_secs_f64().abs() - 68.0 < 2.0, "{light:?}");
        assert_eq!((light.time + heavy.time).as_secs_f64(), 2_000.0 - 177.0);
    }
}
