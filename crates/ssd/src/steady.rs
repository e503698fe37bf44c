//! What endless uniform random writing makes of a drive, computed instead of simulated: its write amplification, and how many
//! valid units its blocks hold.
//!
//! `rho` is user data as a share of the flash that holds it: valid units / (closed blocks x units of a block). Open blocks
//! and the free reserve do not count.

use lambert_w::lambert_w0;

use crate::spec::Collector;

/// The steady state of uniform random writes of single units.
#[derive(Clone, Debug, PartialEq)]
pub struct SteadyState {
    /// Units programmed for each unit that the host writes.
    pub write_amplification: f64,
    /// Share of closed blocks that have exactly i valid units, for i from 0 to the units of a block. Blocks of more than
    /// [`BINS_MAX`] units are told in so many equal parts instead.
    pub valid: Vec<f64>,
}

/// Bins of a distribution at most. Larger blocks behave as blocks of so many units within 0.2 % of the write amplification at
/// 7 % spare area, and closer with more: what finite blocks change falls with 1 / units.
pub const BINS_MAX: u32 = 4096;

/// The fullest drive that is computed; the write amplification has no bound as `rho` approaches 1.
const RHO_MAX: f64 = 0.9999;

/// The steady state of a collector.
///
/// Cost-benefit counts as greedy: under uniform writes a block's age and its valid units order blocks alike, but for the
/// spread of the latter.
pub fn steady_state(collector: Collector, rho: f64, units_per_block: u32) -> SteadyState {
    match collector {
        Collector::Greedy | Collector::CostBenefit => greedy(rho, units_per_block),
        Collector::Fifo => fifo(rho),
        Collector::Choices(choices) => d_choices(rho, units_per_block, choices),
        Collector::Random => random(rho, units_per_block),
    }
}

/// The victim is the emptiest of so many blocks drawn at random.
///
/// The mean field of Van Houdt, "A mean field model for a class of garbage collection algorithms in flash-based solid state
/// drives" (SIGMETRICS 2013); see [`mean_field`].
pub fn d_choices(rho: f64, units_per_block: u32, choices: u32) -> SteadyState {
    mean_field(rho, units_per_block, Some(choices.max(1)))
}

/// The victim is the emptiest block.
///
/// The write amplification is Desnoyers' for blocks of b units, "Analytic modeling of SSD write performance" (SYSTOR 2012):
/// with a = 1 / rho, k = 1 + 1 / 2b, X0 = 1/2 - (b / a) W0(-k a e^(-k a)), it is b / (b - (X0 - 1)). The distribution is the
/// mean field with choices without end, whose own write amplification differs by less than 0.2 %.
pub fn greedy(rho: f64, units_per_block: u32) -> SteadyState {
    let units = f64::from(units_per_block.max(1));
    let spread = (1.0 + 0.5 / units) / share(rho);
    let fewest = 0.5 - units * share(rho) * lambert_w0(-spread * (-spread).exp());
    SteadyState {
        // Little user data leaves the emptiest block with nothing, where the approximation of a sum by X0 ends.
        write_amplification: (units / (units - (fewest - 1.0))).max(1.0),
        valid: mean_field(rho, units_per_block, None).valid,
    }
}

/// The victim is the oldest block.
///
/// Desnoyers (SYSTOR 2012); Xiang and Kurkoski, arXiv 1110.4245: A = a / (a + W0(-a e^-a)) with a = 1 / rho.
///
/// The distribution: the blocks are a queue. Between a block's closing and the moment when a share s of all blocks is younger,
/// the host has written s T / A units to U addresses, and one of the block's units is still valid with probability
/// e^(-s a / A). With blocks large enough for that to be its share of valid units, this is also what greedy does to large
/// blocks, and it is computed as such. Blocks of few units spread about it (binomially), which changes no mean.
pub fn fifo(rho: f64) -> SteadyState {
    let spread = 1.0 / share(rho);
    SteadyState {
        write_amplification: spread / (spread + lambert_w0(-spread * (-spread).exp())),
        valid: mean_field(rho, BINS_MAX, None).valid,
    }
}

/// The victim is any block: A = 1 / (1 - rho), as a victim has the mean share of valid units. One choice, in other words.
pub fn random(rho: f64, units_per_block: u32) -> SteadyState {
    SteadyState {
        write_amplification: 1.0 / (1.0 - share(rho)),
        valid: mean_field(rho, units_per_block, Some(1)).valid,
    }
}

/// The share of valid units (0 to 1) of each of so many closed blocks, from the emptiest (with FIFO: the oldest) to the fullest.
///
/// Each share is a whole number of units, and together they are the user data: `rho` of all units, to the nearest one.
pub fn valid_shares(
    collector: Collector,
    rho: f64,
    units_per_block: u32,
    blocks: usize,
) -> Vec<f64> {
    let units = u64::from(units_per_block.max(1));
    let data = (rho.clamp(0.0, 1.0) * units as f64 * blocks as f64).round();
    let valid = steady_state(collector, rho, units_per_block).valid;
    let mean: f64 = valid.iter().enumerate().map(|(i, share)| i as f64 * share).sum();

    // Block after block from the fullest takes its slice of the distribution. What rounding leaves over goes to the next, so
    // the sum stays true; the last and emptiest has room for what is left.
    let (mut bin, mut left_in_bin) = (valid.len() - 1, valid[valid.len() - 1]);
    let (mut seen, mut given) = (0.0, 0);
    let mut shares: Vec<u64> = Vec::with_capacity(blocks);
    for block in 0..blocks {
        let mut wanted = 1.0 / blocks as f64;
        while left_in_bin < wanted && bin > 0 {
            seen += left_in_bin * bin as f64;
            wanted -= left_in_bin;
            bin -= 1;
            left_in_bin = valid[bin];
        }
        left_in_bin -= wanted;
        seen += wanted * bin as f64;
        let due = if block + 1 == blocks { data } else { (data * seen / mean).round().min(data) };
        let whole = if mean > 0.0 { (due as u64).saturating_sub(given).min(units) } else { 0 };
        given += whole;
        shares.push(whole);
    }
    shares.sort_unstable();
    shares.into_iter().map(|whole| whole as f64 / units as f64).collect()
}

/// `rho` within what can be computed.
fn share(rho: f64) -> f64 {
    rho.clamp(1e-9, RHO_MAX)
}

/// The mean field of d choices, or of choices without end, for b units a block.
///
/// Let x_i be the share of blocks with i valid units, S_i that of blocks with i or more, and W the units that the host writes
/// between two collections. In the steady state as many blocks fall below i by overwriting, i x_i W / (b rho), as rise to b
/// because a victim had fewer than i, which is the case with probability 1 - S_i^d:
///
/// ```text
/// i x_i W = b rho (1 - S_i^d),   S_i = S_(i+1) + x_i,   i = b down to 1
/// ```
///
/// For a given W, each x_i follows from those above. The right W makes the mean of i equal b rho, which is the same as
/// W = sum of (1 - S_i^d), the units that a victim lacks. The mean falls with W, so W is found by halving.
fn mean_field(rho: f64, units_per_block: u32, choices: Option<u32>) -> SteadyState {
    let rho = share(rho);
    let bins = units_per_block.clamp(1, BINS_MAX) as usize;
    let data = bins as f64 * rho;
    // Any collector gains at least what one that takes any block does, and a whole block at most.
    let (mut least, mut most) = (bins as f64 * (1.0 - rho), bins as f64);
    let mut valid = vec![0.0; bins + 1];
    while most - least > 1e-12 * bins as f64 {
        let gain = f64::midpoint(least, most);
        if fall(gain, data, choices, &mut valid) > data {
            least = gain;
        } else {
            most = gain;
        }
    }
    fall(most, data, choices, &mut valid);
    SteadyState { write_amplification: bins as f64 / most, valid }
}

/// Fills `valid` with the x_i that belong to a W, from the top, and returns the mean of i.
fn fall(gain: f64, data: f64, choices: Option<u32>, valid: &mut [f64]) -> f64 {
    let (mut above, mut mean) = (0.0, 0.0);
    for i in (1..valid.len()).rev() {
        let rate = i as f64 * gain;
        // No victims among the fullest: the most that x_i can be.
        let limit = (data / rate).min(1.0 - above);
        valid[i] = choices.map_or(limit, |choices| root(rate, data, above, choices, limit));
        above = (above + valid[i]).min(1.0);
        mean += above;
    }
    valid[0] = 1.0 - above;
    mean
}

/// The x between 0 and `limit` with rate x = data (1 - (above + x)^d). The difference of the sides grows with x and is convex, so
/// Newton's method comes down to it from the limit without ever passing it.
fn root(rate: f64, data: f64, above: f64, choices: u32, limit: f64) -> f64 {
    let choices = choices.min(i32::MAX as u32) as i32;
    let mut x = limit;
    loop {
        let power = (above + x).powi(choices - 1);
        let excess = rate * x - data * (1.0 - power * (above + x));
        let next = (x - excess / (rate + data * f64::from(choices) * power)).max(0.0);
        if x - next <= 1e-15 * limit {
            return next;
        }
        x = next;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const COLLECTORS: [Collector; 6] = [
        Collector::Greedy,
        Collector::CostBenefit,
        Collector::Fifo,
        Collector::Choices(2),
        Collector::Choices(10),
        Collector::Random,
    ];

    fn mean(state: &SteadyState) -> f64 {
        let units = (state.valid.len() - 1) as f64;
        state.valid.iter().enumerate().map(|(i, share)| i as f64 / units * share).sum()
    }

    #[test]
    fn write_amplification_is_what_the_literature_says() {
        // Spare area as physical over user units, then greedy with 64 and 256 units a block, FIFO, ten choices with 256, random.
        let table = [
            (1.07, [7.001, 7.596, 7.817, 7.828, 15.29]),
            (1.15, [3.799, 3.959, 4.016, 4.066, 7.667]),
            (1.28, [2.402, 2.461, 2.481, 2.520, 4.571]),
            (1.50, [1.681, 1.707, 1.716, 1.742, 3.000]),
        ];
        for (alpha, expected) in table {
            let rho = 1.0 / alpha;
            let found = [
                greedy(rho, 64),
                greedy(rho, 256),
                fifo(rho),
                d_choices(rho, 256, 10),
                random(rho, 64),
            ];
            for (found, expected) in found.iter().map(|s| s.write_amplification).zip(expected) {
                let digit = if expected < 10.0 { 0.001 } else { 0.01 };
                assert!((found - expected).abs() < 0.6 * digit, "{alpha}: {found} {expected}");
            }
        }
    }

    #[test]
    fn closed_forms_are_limits_of_the_mean_field() {
        for rho in [0.3, 0.67, 0.87, 0.93] {
            let near = |a: f64, b: f64| assert!((a / b - 1.0).abs() < 0.003, "{rho}: {a} {b}");
            near(d_choices(rho, 64, 1).write_amplification, 1.0 / (1.0 - rho));
            near(d_choices(rho, 64, 3000).write_amplification, greedy(rho, 64).write_amplification);
            near(d_choices(rho, 4096, 3000).write_amplification, fifo(rho).write_amplification);
        }
    }

    #[test]
    fn old_blocks_of_a_queue_have_lost_exponentially_many_units() {
        let rho = 1.0 / 1.15;
        let blocks = 1000;
        let decay = 1.0 / (rho * fifo(rho).write_amplification);
        let shares = valid_shares(Collector::Fifo, rho, 1_000_000, blocks);
        for (rank, share) in shares.iter().rev().enumerate() {
            let expected = (-(rank as f64 + 0.5) / blocks as f64 * decay).exp();
            assert!((share - expected).abs() < 0.001, "{rank}: {share} {expected}");
        }
    }

    #[test]
    fn an_empty_drive_has_nothing_to_move_and_a_full_one_no_room() {
        for collector in COLLECTORS {
            let state = steady_state(collector, 0.0, 64);
            assert!((state.write_amplification - 1.0).abs() < 1e-6, "{collector:?}");
            assert_eq!(valid_shares(collector, 0.0, 64, 3), [0.0; 3]);
        }
        assert_eq!(valid_shares(Collector::Greedy, 1.0, 64, 3), [1.0; 3]);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(100))]

        #[test]
        fn distributions_hold_the_user_data(
            rho in 0.01..0.99f64, units in 1..3000u32, which in 0..COLLECTORS.len()
        ) {
            let state = steady_state(COLLECTORS[which], rho, units);
            prop_assert!(state.valid.iter().all(|share| (0.0..=1.0).contains(share)));
            prop_assert!((state.valid.iter().sum::<f64>() - 1.0).abs() < 1e-9);
            prop_assert!((mean(&state) - rho).abs() < 1e-9, "{}", mean(&state));
        }

        #[test]
        fn shares_are_whole_units_in_order_and_sum_to_the_data(
            rho in 0.0..=1.0f64, units in 1..2_000_000u32, blocks in 1..600usize, which in 0..COLLECTORS.len()
        ) {
            let shares = valid_shares(COLLECTORS[which], rho, units, blocks);
            prop_assert_eq!(shares.len(), blocks);
            prop_assert!(shares.is_sorted());
            let mut sum = 0;
            for share in shares {
                let whole = share * f64::from(units);
                prop_assert!((whole - whole.round()).abs() < 1e-6);
                prop_assert!((0.0..=1.0).contains(&share));
                sum += whole.round() as u64;
            }
            prop_assert_eq!(sum, (rho * f64::from(units) * blocks as f64).round() as u64);
        }
    }
}
