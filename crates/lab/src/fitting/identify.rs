//! What a measurement determines: each parameter is moved away from its best value, alone and then in pairs, until the
//! figures become noticeably worse. What can go far was not told by the measurement, however well everything fits.

use super::{Bench, Looked, Model, Scale};

/// The sum of squares (in deviations) that is noticed: two deviations of one figure.
const NOTICED: f64 = 4.0;
/// How far parameters varied by factors are moved, as logarithms: 5 %, 15 %, 50 %, 3 times, 20 times.
const FACTORS: [f64; 5] = [0.05, 0.14, 0.41, 1.1, 3.0];
/// How far those varied by differences are.
const DIFFERENCES: [f64; 4] = [0.02, 0.06, 0.2, 0.6];
/// Ends of a range are found to within this.
const BETWEEN: f64 = 0.3;
/// A parameter that can go no further than this to either side is determined.
const DETERMINED: (f64, f64) = (0.14, 0.06);
/// A pair is reported if both can go this far together.
const TOGETHER: f64 = 0.2;

/// How far a parameter can go alone, to the last value tried that made no noticeable difference.
#[derive(Clone, Debug, PartialEq)]
pub struct Reach {
    /// The least value; the bound of the search if that made no difference either.
    pub low: f64,
    /// The greatest.
    pub high: f64,
    /// The values nearest to it, below and above, that were tried and made a noticeable difference; None if none did.
    pub noticed: (Option<f64>, Option<f64>),
    /// It can't go far.
    pub determined: bool,
    /// The budget ended before it was known.
    pub unknown: bool,
}

impl Reach {
    fn holds(&self, value: f64) -> bool {
        (self.low..=self.high).contains(&value)
    }
}

/// Two parameters that can go far together, while each alone can't.
#[derive(Clone, Debug, PartialEq)]
pub struct Pair {
    /// The first, by place among the knobs.
    pub first: usize,
    /// The second.
    pub second: usize,
    /// Values of both that fit no worse than the best.
    pub example: (f64, f64),
}

/// Moves parameters away from `best`.
pub fn identify<M: Model>(
    bench: &mut Bench<'_, M>,
    best: &Looked,
) -> Result<(Vec<Reach>, Vec<Pair>), M::Error> {
    let limit = limit(bench, best);
    let mut reaches = Vec::new();
    let mut slopes = Vec::new();
    for index in 0..bench.knobs.len() {
        let knob = &bench.knobs[index];
        let mut ends = [best.place[index]; 2];
        let mut worse = [None::<f64>; 2];
        let mut slope = None;
        for ((end, worse), sign) in ends.iter_mut().zip(&mut worse).zip([-1.0, 1.0]) {
            // Where a far step is noticed, places between are tried.
            let mut noticed: Option<f64> = None;
            let mut further = distances(knob.scale).iter();
            loop {
                let away = match noticed {
                    None => further.next().copied(),
                    Some(at) if at - (*end - best.place[index]).abs() > BETWEEN => {
                        Some(f64::midpoint(at, (*end - best.place[index]).abs()))
                    }
                    Some(_) => None,
                };
                let Some(away) = away else { break };
                let to = knob.inside(best.place[index] + sign * away);
                if to == *end || bench.model.left() <= 0.0 {
                    break;
                }
                let mut place = best.place.clone();
                place[index] = to;
                let tried = bench.look(place)?;
                let moved = to - best.place[index];
                slope.get_or_insert_with(|| {
                    let pairs = tried.residuals.iter().zip(&best.residuals);
                    pairs.map(|(to, from)| (to - from) / moved).collect::<Vec<f64>>()
                });
                if tried.sum > limit {
                    noticed = Some(away);
                    *worse = Some(to);
                } else {
                    *end = to;
                }
            }
        }
        let far = match knob.scale {
            Scale::Factor { .. } => DETERMINED.0,
            Scale::Difference { .. } => DETERMINED.1,
        };
        let width = (best.place[index] - ends[0]).max(ends[1] - best.place[index]);
        let unknown = slope.is_none() || bench.model.left() <= 0.0;
        reaches.push(Reach {
            low: knob.value(ends[0]),
            high: knob.value(ends[1]),
            noticed: (worse[0].map(|at| knob.value(at)), worse[1].map(|at| knob.value(at))),
            determined: width < far && !unknown,
            unknown,
        });
        slopes.push(slope.unwrap_or_default());
    }
    let pairs = pairs(bench, best, &reaches, &slopes)?;
    Ok((reaches, pairs))
}

/// The sum of squares from which a place is noticeably worse. Where the model is off by more than the measurement's noise,
/// so much more is needed.
fn limit<M>(bench: &Bench<'_, M>, best: &Looked) -> f64 {
    best.sum + NOTICED * (best.sum / bench.targets.len().max(1) as f64).max(1.0)
}

fn distances(scale: Scale) -> &'static [f64] {
    match scale {
        Scale::Factor { .. } => &FACTORS,
        Scale::Difference { .. } => &DIFFERENCES,
    }
}

/// Pairs of parameters whose effects nearly cancel, so that both can go further than each alone; each confirmed by moving
/// them together.
fn pairs<M: Model>(
    bench: &mut Bench<'_, M>,
    best: &Looked,
    reaches: &[Reach],
    slopes: &[Vec<f64>],
) -> Result<Vec<Pair>, M::Error> {
    let limit = limit(bench, best);
    let mut found = Vec::new();
    for first in 0..bench.knobs.len() {
        for second in first + 1..bench.knobs.len() {
            let Some((a, b)) = cancelling(&slopes[first], &slopes[second]) else { continue };
            // Effects are not quite straight lines, so that half as far may pass where all of it doesn't.
            for part in [1.0, -1.0, 0.5, -0.5] {
                if bench.model.left() <= 0.0 {
                    return Ok(found);
                }
                let mut place = best.place.clone();
                place[first] = bench.knobs[first].inside(place[first] + part * a);
                place[second] = bench.knobs[second].inside(place[second] + part * b);
                let values = bench.values(&place);
                let moved = |index: usize| (place[index] - best.place[index]).abs();
                let alone = |index: usize| reaches[index].holds(values[index]);
                if moved(first).min(moved(second)) < TOGETHER / 3.0 || alone(first) || alone(second)
                {
                    continue;
                }
                if bench.look(place)?.sum <= limit {
                    let example = (values[first], values[second]);
                    found.push(Pair { first, second, example });
                    break;
                }
            }
        }
    }
    Ok(found)
}

/// Moves of two parameters, the lesser by [`TOGETHER`], whose effects cancel as far as slopes can tell; None if they don't.
fn cancelling(first: &[f64], second: &[f64]) -> Option<(f64, f64)> {
    let dot = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>();
    let (own, other, both) = (dot(first, first), dot(second, second), dot(first, second));
    if own <= 0.0 || other <= 0.0 {
        return None;
    }
    // The second's move that makes up best for one of the first.
    let answer = -both / other;
    if answer == 0.0 {
        return None;
    }
    let scale = TOGETHER / answer.abs().min(1.0);
    let left = (own + 2.0 * answer * both + answer * answer * other) * scale * scale;
    let far = scale * answer.abs().max(1.0);
    (left < 4.0 * NOTICED && far < 2.0).then_some((scale, answer * scale))
}
