//! The search: least squares by differences (Levenberg, 1944; Marquardt, 1963), and a pattern search (Hooke and Jeeves,
//! "Direct search", 1961) over the kinks where that gets no further. Models have such kinks: the slowest of several parts
//! is the limit, and then the others' parameters change nothing.

use super::{Bench, Looked, Model};

/// Rounds of least squares, at most.
const ROUNDS: usize = 8;
/// Dampings that are tried in a round, at most.
const DAMPINGS: usize = 5;
const DAMPING_FIRST: f64 = 1e-2;
const DAMPING_FACTOR: f64 = 8.0;
/// A round that makes the sum of squares smaller by less than this share is the last.
const GAIN_MIN: f64 = 0.01;
/// No parameter is moved by more than so many of its steps at once.
const STEPS_MAX: f64 = 15.0;
/// Rounds of the pattern search, each with half the step of the one before.
const PATTERN_ROUNDS: u32 = 4;
/// The pattern search begins with so many of a parameter's steps.
const PATTERN_STEPS: f64 = 2.0;
/// The search leaves this share of the budget.
const LEAVES: f64 = 0.35;
/// A mean square of residuals below this is close enough: the measurement itself isn't as sure.
const CLOSE: f64 = 1e-3;

/// The best place found from a beginning, and whether the search ended by itself.
pub fn search<M: Model>(
    bench: &mut Bench<'_, M>,
    from: &[f64],
) -> Result<(Looked, bool), M::Error> {
    let mut best = bench.look(from.to_vec())?;
    // What a kink hides from least squares the pattern search finds, and then there may be a slope again.
    for _ in 0..2 {
        least_squares(bench, &mut best)?;
        let before = best.sum;
        pattern(bench, &mut best)?;
        if best.sum > before * (1.0 - GAIN_MIN) {
            break;
        }
    }
    let settled = bench.model.left() > LEAVES || is_close(bench, &best);
    Ok((best, settled))
}

fn is_close<M>(bench: &Bench<'_, M>, best: &Looked) -> bool {
    best.sum < CLOSE * bench.targets.len() as f64
}

fn is_over<M: Model>(bench: &Bench<'_, M>, best: &Looked) -> bool {
    bench.model.left() <= LEAVES || is_close(bench, best)
}

fn least_squares<M: Model>(bench: &mut Bench<'_, M>, best: &mut Looked) -> Result<(), M::Error> {
    let mut damping = DAMPING_FIRST;
    for _ in 0..ROUNDS {
        let before = best.sum;
        let Some(slopes) = slopes(bench, best)? else { return Ok(()) };
        for _ in 0..DAMPINGS {
            if is_over(bench, best) {
                return Ok(());
            }
            let place = proposal(bench, best, &slopes, damping);
            let tried = bench.look(place)?;
            if tried.sum < best.sum {
                *best = tried;
                damping /= DAMPING_FACTOR;
                break;
            }
            damping *= DAMPING_FACTOR;
        }
        if best.sum > before * (1.0 - GAIN_MIN) {
            return Ok(());
        }
    }
    Ok(())
}

/// How each residual changes with each parameter, by a difference of one step: one column for each parameter. None if the
/// budget ends before.
fn slopes<M: Model>(
    bench: &mut Bench<'_, M>,
    best: &mut Looked,
) -> Result<Option<Vec<Vec<f64>>>, M::Error> {
    let mut columns = Vec::new();
    let from = best.clone();
    for (index, knob) in bench.knobs.iter().enumerate() {
        if is_over(bench, best) {
            return Ok(None);
        }
        let mut place = from.place.clone();
        place[index] = knob.inside(from.place[index] + knob.step());
        if place[index] - from.place[index] < knob.step() / 2.0 {
            place[index] = knob.inside(from.place[index] - knob.step());
        }
        let moved = place[index] - from.place[index];
        if moved == 0.0 {
            columns.push(vec![0.0; from.residuals.len()]);
            continue;
        }
        let tried = bench.look(place)?;
        let pairs = tried.residuals.iter().zip(&from.residuals);
        columns.push(pairs.map(|(to, from)| (to - from) / moved).collect());
        if tried.sum < best.sum {
            *best = tried;
        }
    }
    // The proposal starts where the slopes were taken, unless one of the steps was better by itself.
    Ok(Some(columns))
}

/// Where the damped equations say that the residuals are least.
fn proposal<M: Model>(
    bench: &Bench<'_, M>,
    best: &Looked,
    slopes: &[Vec<f64>],
    damping: f64,
) -> Vec<f64> {
    let dot = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>();
    let count = slopes.len();
    let mut matrix = vec![vec![0.0; count + 1]; count];
    for row in 0..count {
        for column in 0..count {
            matrix[row][column] = dot(&slopes[row], &slopes[column]);
        }
        // A parameter without effect stays where it is.
        let step = bench.knobs[row].step();
        matrix[row][row] += damping * matrix[row][row] + 1e-6 / (step * step);
        matrix[row][count] = -dot(&slopes[row], &best.residuals);
    }
    let moves = solve(matrix);
    let all = bench.knobs.iter().zip(&best.place).zip(moves);
    all.map(|((knob, at), by)| {
        let most = STEPS_MAX * knob.step();
        knob.inside(at + by.clamp(-most, most))
    })
    .collect()
}

/// Gauss's elimination of a positive definite matrix, the right side in the last column.
fn solve(mut matrix: Vec<Vec<f64>>) -> Vec<f64> {
    let count = matrix.len();
    for pivot in 0..count {
        for row in pivot + 1..count {
            let factor = matrix[row][pivot] / matrix[pivot][pivot];
            let (above, below) = matrix.split_at_mut(row);
            for (value, of_pivot) in below[0].iter_mut().zip(&above[pivot]).skip(pivot) {
                *value -= factor * of_pivot;
            }
        }
    }
    let mut solution = vec![0.0; count];
    for row in (0..count).rev() {
        let known: f64 =
            (row + 1..count).map(|column| matrix[row][column] * solution[column]).sum();
        solution[row] = (matrix[row][count] - known) / matrix[row][row];
    }
    solution
}

/// Tries each parameter alone, a step up and a step down, with smaller and smaller steps.
fn pattern<M: Model>(bench: &mut Bench<'_, M>, best: &mut Looked) -> Result<(), M::Error> {
    let mut scale = PATTERN_STEPS;
    for _ in 0..PATTERN_ROUNDS {
        let before = best.sum;
        for (index, knob) in bench.knobs.iter().enumerate() {
            for sign in [1.0, -1.0] {
                if is_over(bench, best) {
                    return Ok(());
                }
                let mut place = best.place.clone();
                place[index] = knob.inside(place[index] + sign * scale * knob.step());
                if place == best.place {
                    continue;
                }
                let tried = bench.look(place)?;
                if tried.sum < best.sum {
                    *best = tried;
                    break;
                }
            }
        }
        if best.sum > before * (1.0 - GAIN_MIN) {
            scale /= 2.0;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn linear_equations_are_solved() {
        // 2x + y = 5, x + 3y = 10.
        let solution = solve(vec![vec![2.0, 1.0, 5.0], vec![1.0, 3.0, 10.0]]);
        assert!((solution[0] - 1.0).abs() < 1e-12 && (solution[1] - 3.0).abs() < 1e-12);
    }
}
