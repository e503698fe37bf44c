//! Rates as they read back from a result: a step counts as measured only if its workload is the same to the last bit.

use load::quantity::Pace;

/// Rounds until a rate reads back as itself; the second does, in practice.
const ROUNDS_MAX: u32 = 8;

/// The nearest rate in bytes a second that is the same after it was written down and read.
pub(super) fn kept(bytes_per_s: f64) -> Pace {
    let mut pace = Pace::Bytes(bytes_per_s);
    for _ in 0..ROUNDS_MAX {
        match pace.to_string().parse() {
            Ok(read) if read != pace => pace = read,
            _ => break,
        }
    }
    pace
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kept_rate_reads_back_as_itself_and_is_the_same_but_for_rounding() {
        let mut random = base::Random::new(7);
        for _ in 0..10_000 {
            let rate = random.below(20_000_000_000) as f64 / 3.0 + 0.1;
            let pace = kept(rate);
            assert_eq!(pace.to_string().parse(), Ok(pace), "{rate}");
            let Pace::Bytes(found) = pace else { panic!("{pace}") };
            assert!((found / rate - 1.0).abs() < 1e-12, "{rate} {found}");
        }
    }
}
