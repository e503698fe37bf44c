//! A drive that is not in the library, described by three figures: its size, the rate that it sustains, and how often it may be written.
//! What follows from these is planned, each assumption is stated, and what doesn't follow is called unknown.

use base::{ByteSize, Rate};
use profile::{Known, Profile, Source, SourceKind, Unit, name};

use crate::explain::{bytes, factor, rate};
use crate::requirement::Requirement;

/// Years of warranty that drive writes a day are taken to be counted over, unless said otherwise: the usual ones of data center drives.
pub const WARRANTY_YEARS: f64 = 5.0;

/// A drive as its buyer describes it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Described {
    /// Bytes that can be addressed.
    pub size: ByteSize,
    /// What it is said to write for as long as anybody wants.
    pub rate: Rate,
    /// How often a day all of it may be written; None if that isn't given.
    pub dwpd: Option<f64>,
    /// Years over which drive writes a day are counted; None for [`WARRANTY_YEARS`].
    pub warranty_years: Option<f64>,
}

impl Described {
    /// What it is called in tables and prices: `described-15.36tb`.
    pub fn name(&self) -> String {
        let size = self.size.0 as f64;
        let (unit, word) = if size < 1e12 { (1e9, "gb") } else { (1e12, "tb") };
        let digits = format!("{:.2}", size / unit);
        format!("described-{}{word}", digits.trim_end_matches('0').trim_end_matches('.'))
    }

    /// Bytes that may be written to it; None if drive writes a day are not given.
    pub fn endurance_bytes(&self) -> Option<f64> {
        Some(self.dwpd? * self.size.0 as f64 * 365.0 * self.years())
    }

    fn years(&self) -> f64 {
        self.warranty_years.unwrap_or(WARRANTY_YEARS)
    }

    /// The figures as a profile: the rate in every phase, over stale data and in the slowest second.
    pub fn profile(&self) -> Profile {
        let mut profile =
            Profile::new(&self.name(), "as described by options", "nvme", self.size.0);
        let mut figure = |name: &str, value: f64, unit: Unit, origin: &str| {
            let source =
                Source { kind: SourceKind::Assumed, origin: origin.to_owned(), when: None };
            let (range, confidence, note) = (None, None, String::new());
            let known = Known { value, unit, range, confidence, note, source };
            profile.figures.insert(name.to_owned(), known);
        };
        for phase in [
            name::WRITE_NATIVE,
            name::WRITE_OVERWRITE,
            name::WRITE_SUSTAINED,
            name::WRITE_WORST_SECOND,
        ] {
            figure(phase, self.rate.0, Unit::BytesPerSecond, "--drive-rate");
        }
        if let Some(endurance) = self.endurance_bytes() {
            figure(name::ENDURANCE, endurance, Unit::Bytes, "--dwpd over the warranty");
        }
        profile
    }

    /// What a plan takes for granted with it, a sentence each.
    pub fn assumed(&self) -> Vec<String> {
        let mut assumed = vec![format!(
            "it writes {} at all times (--drive-rate): empty, full, over stale data, and in its slowest second",
            rate(self.rate.0)
        )];
        if let (Some(dwpd), Some(endurance)) = (self.dwpd, self.endurance_bytes()) {
            let years = factor(self.years());
            let given =
                if self.warranty_years.is_some() { "" } else { " (--warranty is not given)" };
            assumed.push(format!(
                "{} may be written to it: {} drive writes a day (--dwpd) over {years} years of 365 days{given}",
                bytes(endurance),
                factor(dwpd),
            ));
        }
        assumed.push("its own link carries that rate, and nothing else slows it down".to_owned());
        assumed.push(
            "chunks are striped over the drives, so the number relies on no buffer".to_owned(),
        );
        assumed
    }

    /// What can't be told from these figures, a sentence each.
    pub fn unknown(&self, requirement: &Requirement) -> Vec<String> {
        let mut unknown = vec![
            "its latencies, its cache and its dips, and so what adaptive placement would save; nor can it be recorded on in a \
             simulation (--prove): `longtake measure fill DRIVE` finds them out, or name a drive of the library"
                .to_owned(),
        ];
        if self.dwpd.is_none() {
            unknown.push("how long it lasts: give --dwpd".to_owned());
        }
        if requirement.host.lanes.is_some() || requirement.host.generation.is_some() {
            unknown.push(
                "whether the host's lanes are fast enough: its own link is not described; each drive is given one lane at least"
                    .to_owned(),
            );
        }
        unknown
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn drive(size: &str, dwpd: Option<f64>) -> Described {
        let (size, rate) = (size.parse().unwrap(), Rate(5e9));
        Described { size, rate, dwpd, warranty_years: None }
    }

    #[test]
    fn a_described_drive_is_called_by_its_size() {
        for (size, name) in [
            ("15.36TB", "described-15.36tb"),
            ("4TB", "described-4tb"),
            ("960GB", "described-960gb"),
            ("61.44TB", "described-61.44tb"),
        ] {
            assert_eq!(drive(size, None).name(), name);
        }
    }

    #[test]
    fn its_endurance_is_plain_multiplication_and_its_profile_can_be_written() {
        let described = drive("10TB", Some(0.5));
        assert_eq!(described.endurance_bytes(), Some(0.5 * 1e13 * 365.0 * 5.0));
        let ten = Described { warranty_years: Some(10.0), ..described };
        assert_eq!(ten.endurance_bytes(), Some(0.5 * 1e13 * 365.0 * 10.0));
        assert_eq!(drive("10TB", None).endurance_bytes(), None);
        let profile = described.profile();
        assert_eq!(Profile::from_toml(&profile.to_toml().unwrap()).unwrap(), profile);
        assert!(drive("10TB", None).profile().known(name::ENDURANCE).is_none());
    }
}
