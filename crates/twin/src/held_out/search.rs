//! Solving for several parameters at once, each for a figure of its own: Broyden's method on logarithms.

/// Where a search for one parameter begins and what it may take.
#[derive(Clone, Copy, Debug)]
pub(super) struct Unknown {
    /// The first value.
    pub(super) from: f64,
    /// The least and the greatest value.
    pub(super) within: (f64, f64),
    /// Whether the figure rises with the parameter.
    pub(super) rises: bool,
}

/// What a search ended with.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Found {
    /// The parameters' values.
    pub(super) values: Vec<f64>,
    /// How far each figure still is from its goal: the logarithm of their ratio, so 0.01 is a hundredth too high.
    pub(super) errors: Vec<f64>,
    /// How often figures were measured.
    pub(super) trials: u32,
}

/// A figure this near to its goal is met: logarithm of their ratio.
pub(super) const NEAR: f64 = 0.003;
/// Measuring ends after so many trials.
pub(super) const TRIALS_MAX: u32 = 16;
/// In one step a parameter changes by at most this factor's logarithm.
const STEP_MAX: f64 = 0.7;
/// A figure is taken to follow its parameter at least this much: power of the one that the other is.
const SLOPE_MIN: f64 = 0.15;

/// Values at which `measure` returns errors near 0, or the nearest that were found.
///
/// # Errors
/// What `measure` stops with.
pub(super) fn search<E>(
    unknowns: &[Unknown],
    mut measure: impl FnMut(u32, &[f64]) -> Result<Vec<f64>, E>,
) -> Result<Found, E> {
    let mut at: Vec<f64> = unknowns.iter().map(|unknown| unknown.from.ln()).collect();
    let mut slopes = diagonal(unknowns);
    let mut trial = 1;
    let mut errors = run(&mut measure, trial, &at)?;
    let (mut best, mut reach) = ((at.clone(), errors.clone()), STEP_MAX);
    while size(&best.1) > NEAR && trial < TRIALS_MAX {
        let step = step(unknowns, &slopes, &at, &errors, reach);
        let next: Vec<f64> = at.iter().zip(&step).map(|(at, step)| at + step).collect();
        trial += 1;
        let measured = run(&mut measure, trial, &next)?;
        learn(unknowns, &mut slopes, &step, &errors, &measured);
        if size(&measured) < size(&errors) + NEAR {
            // Onward, too, where nothing changes: something else may hide the figure up to a point.
            (at, errors, reach) = (next, measured, STEP_MAX);
        } else {
            // Again from here, less boldly, with what this taught.
            reach /= 2.0;
        }
        if size(&errors) < size(&best.1) {
            best = (at.clone(), errors.clone());
        }
    }
    let (at, errors) = best;
    Ok(Found { values: at.into_iter().map(f64::exp).collect(), errors, trials: trial })
}

fn run<E>(
    measure: &mut impl FnMut(u32, &[f64]) -> Result<Vec<f64>, E>,
    trial: u32,
    at: &[f64],
) -> Result<Vec<f64>, E> {
    let values: Vec<f64> = at.iter().map(|at| at.exp()).collect();
    measure(trial, &values)
}

/// The largest error.
fn size(errors: &[f64]) -> f64 {
    errors.iter().fold(0.0, |most, error| most.max(error.abs()))
}

/// Each figure follows its own parameter in proportion, and no other.
fn diagonal(unknowns: &[Unknown]) -> Vec<Vec<f64>> {
    let row = |own: usize| {
        let slope = |column| match column == own {
            true if unknowns[own].rises => 1.0,
            true => -1.0,
            false => 0.0,
        };
        (0..unknowns.len()).map(slope).collect()
    };
    (0..unknowns.len()).map(row).collect()
}

/// The step that would end all errors, cut to what parameters may take.
fn step(
    unknowns: &[Unknown],
    slopes: &[Vec<f64>],
    at: &[f64],
    errors: &[f64],
    reach: f64,
) -> Vec<f64> {
    let wanted: Vec<f64> = errors.iter().map(|error| -error).collect();
    let solved = solved(slopes, &wanted).or_else(|| solved(&diagonal(unknowns), &wanted));
    let solved = solved.unwrap_or_else(|| vec![0.0; errors.len()]);
    let cut = |((unknown, at), step): ((&Unknown, &f64), f64)| {
        let (least, greatest) = unknown.within;
        (at + step.clamp(-reach, reach)).clamp(least.ln(), greatest.ln()) - at
    };
    unknowns.iter().zip(at).zip(solved).map(cut).collect()
}

/// Changes slopes by the least that agrees with what a step did (Broyden, Mathematics of Computation 19, 1965). A figure's slope over
/// its own parameter keeps its sign and a least size, as limits that hide it have an end.
fn learn(
    unknowns: &[Unknown],
    slopes: &mut [Vec<f64>],
    step: &[f64],
    before: &[f64],
    after: &[f64],
) {
    let square: f64 = step.iter().map(|step| step * step).sum();
    if square == 0.0 {
        return;
    }
    for (own, row) in slopes.iter_mut().enumerate() {
        let expected: f64 = row.iter().zip(step).map(|(slope, step)| slope * step).sum();
        let missed = after[own] - before[own] - expected;
        for (slope, step) in row.iter_mut().zip(step) {
            *slope += missed * step / square;
        }
        let sign = if unknowns[own].rises { 1.0 } else { -1.0 };
        row[own] = sign * (sign * row[own]).max(SLOPE_MIN);
    }
}

/// The solution of linear equations by elimination with pivots; None if there is no single one.
fn solved(rows: &[Vec<f64>], wanted: &[f64]) -> Option<Vec<f64>> {
    let count = rows.len();
    let with_goal = |(row, goal): (&Vec<f64>, &f64)| row.iter().copied().chain([*goal]).collect();
    let mut rows: Vec<Vec<f64>> = rows.iter().zip(wanted).map(with_goal).collect();
    for column in 0..count {
        let by_size =
            |&a: &usize, &b: &usize| rows[a][column].abs().total_cmp(&rows[b][column].abs());
        let pivot = (column..count).max_by(by_size)?;
        rows.swap(column, pivot);
        let (above, below) = rows.split_at_mut(column + 1);
        let pivot = &above[column];
        if pivot[column].abs() < 1e-9 {
            return None;
        }
        for row in below {
            let factor = row[column] / pivot[column];
            row.iter_mut().zip(pivot).for_each(|(value, pivot)| *value -= factor * pivot);
        }
    }
    let mut found = vec![0.0; count];
    for own in (0..count).rev() {
        let known: f64 = (own + 1..count).map(|other| rows[own][other] * found[other]).sum();
        found[own] = (rows[own][count] - known) / rows[own][own];
    }
    Some(found)
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use super::*;

    const fn unknown(from: f64, within: (f64, f64), rises: bool) -> Unknown {
        Unknown { from, within, rises }
    }

    fn found(unknowns: &[Unknown], errors: impl Fn(&[f64]) -> Vec<f64>) -> Found {
        let outcome: Result<_, Infallible> = search(unknowns, |_, values| Ok(errors(values)));
        outcome.unwrap()
    }

    #[test]
    fn parameters_that_share_figures_are_found() {
        // A time with a fixed part, a rate that is the lesser of two limits, and one that both slow down.
        let unknowns = [
            unknown(100.0, (20.0, 200.0), false),
            unknown(140.0, (60.0, 400.0), true),
            unknown(1600.0, (800.0, 5000.0), false),
        ];
        let figures = |v: &[f64]| {
            let chunk = 1000.0 / v[1];
            let small = 1.0 / (v[0] + 3.0 * chunk + 25.0);
            let large = 1.0 / (v[0] / 16.0 + chunk + 1.0);
            [small, large, 1.0 / (v[2] / 4.0 + 5.0 * chunk)]
        };
        let goal = figures(&[60.0, 118.0, 2450.0]);
        let errors = |v: &[f64]| {
            figures(v).iter().zip(goal).map(|(figure, goal)| (figure / goal).ln()).collect()
        };
        let found = found(&unknowns, errors);
        assert!(size(&found.errors) <= NEAR, "{found:?}");
        assert!((found.values[2] / 2450.0 - 1.0).abs() < 0.05, "{found:?}");
        assert!(found.trials <= 12, "{found:?}");
    }

    #[test]
    fn a_figure_that_something_else_limits_at_first_is_found_beyond() {
        let unknowns = [unknown(10.0, (1.0, 1000.0), true)];
        let errors = |v: &[f64]| vec![(v[0].max(40.0) / 100.0).ln()];
        let found = found(&unknowns, errors);
        assert!((found.values[0] / 100.0 - 1.0).abs() < 0.01, "{found:?}");
    }

    #[test]
    fn out_of_range_the_nearest_end_is_found_with_its_error() {
        let unknowns = [unknown(10.0, (1.0, 50.0), true)];
        let found = found(&unknowns, |v| vec![(v[0] / 100.0).ln()]);
        assert!((found.values[0] - 50.0).abs() < 0.1, "{found:?}");
        assert!((found.errors[0] - 0.5f64.ln()).abs() < 0.01, "{found:?}");
        assert_eq!(found.trials, TRIALS_MAX);
    }

    #[test]
    fn a_search_ends_with_the_error_of_what_it_measures() {
        let unknowns = [unknown(10.0, (1.0, 50.0), true)];
        let outcome: Result<Found, &str> = search(&unknowns, |_, _| Err("stopped"));
        assert_eq!(outcome, Err("stopped"));
    }
}
