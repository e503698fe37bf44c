//! The same drive in fewer, larger parts: what long sequential runs are simulated on, hours of them in seconds.

use super::{Flash, Media, Spec};

/// Bytes that one program of a coarse drive writes at most: a fraction of the chunks that recorders write.
const PROGRAM_BYTES_MAX: u64 = 4 << 20;

/// Dies that are left at least, so that programs still follow one another without a gap, and work of the drive's own delays as small a
/// part of what is written as on the fine one.
const DIES_MIN: u32 = 8;

/// Bytes that one access of a coarse drive that writes in place moves at most: what chunks are multiples of, so that none is in part.
const ACCESS_BYTES_MAX: u32 = 4 << 10;

impl Spec {
    /// This drive in larger parts that take as long in proportion: the same rates of flash and channels, the same superblocks, fewer
    /// programs to simulate. Sequential writing comes out the same; reads beside it meet fewer, larger dies, so latencies and random
    /// reads are not for it. A drive with several sets stays as it is.
    pub fn coarsened(&self) -> Self {
        let mut spec = self.clone();
        if self.sets.count > 1 {
            return spec;
        }
        let coarser = match self.flash.media {
            Media::Nand => joined,
            Media::InPlace => longer,
        };
        while let Some(coarser) = coarser(&spec.flash) {
            spec.flash = coarser;
        }
        // A die stands for several, and takes their power.
        if let Some(heat) = &mut spec.heat {
            heat.die_w *= f64::from(self.flash.dies()) / f64::from(spec.flash.dies());
        }
        spec
    }
}

/// Dies joined by the smallest number that divides them: of neighbouring channels, which join too, or else of one channel.
fn joined(flash: &Flash) -> Option<Flash> {
    let smallest = |n: u32| (2..=n).find(|divisor| n.is_multiple_of(*divisor));
    let channels = smallest(flash.channels).map(|by| (by, true));
    let (by, joins) = channels.or(smallest(flash.dies_per_channel).map(|by| (by, false)))?;
    let dies = flash.dies() / by;
    if dies < DIES_MIN || flash.program_bytes() * u64::from(by) > PROGRAM_BYTES_MAX {
        return None;
    }
    let mut coarse = *flash;
    coarse.planes *= by;
    if joins {
        coarse.channels /= by;
        coarse.channel_mb_s *= f64::from(by);
    } else {
        coarse.dies_per_channel /= by;
    }
    Some(coarse)
}

/// Accesses of twice the length, each taking twice as long.
fn longer(flash: &Flash) -> Option<Flash> {
    (flash.page_bytes < ACCESS_BYTES_MAX).then(|| Flash {
        page_bytes: flash.page_bytes * 2,
        read_us: flash.read_us * 2.0,
        program_us: flash.program_us * 2.0,
        ..*flash
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_coarse_drive_has_the_rates_and_sizes_of_the_fine_one() {
        for name in profile::library::names() {
            let fine = Spec::from_profile(&profile::library::get(name).unwrap()).unwrap();
            let coarse = fine.coarsened();
            assert_eq!(coarse.check(), Ok(()), "{name}");
            let rates = |spec: &Spec| {
                let channels = f64::from(spec.flash.channels) * spec.flash.channel_mb_s;
                (spec.flash.program_bytes_per_s(), channels)
            };
            let ((program, channels), fine_rates) = (rates(&coarse), rates(&fine));
            assert!((program / fine_rates.0 - 1.0).abs() < 1e-9, "{name}");
            assert!((channels / fine_rates.1 - 1.0).abs() < 1e-9, "{name}");
            if fine.flash.media == Media::Nand {
                assert_eq!(coarse.physical_bytes(), fine.physical_bytes(), "{name}");
                assert_eq!(coarse.superblocks_of_set(), fine.superblocks_of_set(), "{name}");
            }
        }
    }
}
