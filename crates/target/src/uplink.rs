//! A link that all simulated drives of a bank share, such as a chipset's.

use std::str::FromStr;

use base::{ParseUnitError, Rate};

/// Rates of a shared link: `7GB/s`, or `7GB/s,6GB/s` if the directions differ.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Uplink {
    /// Bandwidth of reads, from the drives to the host.
    pub to_host: Rate,
    /// Bandwidth of writes, from the host to the drives.
    pub to_drives: Rate,
}

impl FromStr for Uplink {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let rate = |text: &str| {
            let rate: Rate =
                text.trim().parse().map_err(|error: ParseUnitError| error.to_string())?;
            if rate.0 > 0.0 { Ok(rate) } else { Err("an uplink needs a rate above 0".to_owned()) }
        };
        let (to_host, to_drives) = text.split_once(',').unwrap_or((text, text));
        Ok(Self { to_host: rate(to_host)?, to_drives: rate(to_drives)? })
    }
}

impl Uplink {
    /// As the simulation takes it.
    pub fn link(self) -> ssd::Uplink {
        ssd::Uplink { read_bytes_per_s: self.to_host.0, write_bytes_per_s: self.to_drives.0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_rate_is_for_both_directions_and_two_are_to_host_and_to_drives() {
        let both = Uplink { to_host: Rate(7e9), to_drives: Rate(7e9) };
        assert_eq!("7GB/s".parse(), Ok(both));
        let apart = Uplink { to_host: Rate(7e9), to_drives: Rate(5e8) };
        assert_eq!("7GB/s, 4Gb/s".parse(), Ok(apart));
        for wrong in ["", "7", "0GB/s", "7GB/s,", "1GB/s,1GB/s,1GB/s"] {
            assert!(wrong.parse::<Uplink>().is_err(), "{wrong}");
        }
    }
}
