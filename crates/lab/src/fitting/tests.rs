//! Fits of models that are formulas: what they recover, what they call undetermined.

use std::convert::Infallible;

use super::*;

struct Formula<F> {
    figures: F,
    measured: usize,
    allowed: usize,
}

impl<F: Fn(&[f64]) -> Vec<Option<f64>>> Model for Formula<F> {
    type Error = Infallible;

    fn measure(&mut self, values: &[f64]) -> Result<Vec<Option<f64>>, Infallible> {
        self.measured += 1;
        Ok((self.figures)(values))
    }

    fn left(&self) -> f64 {
        1.0 - self.measured as f64 / self.allowed as f64
    }
}

fn formula<F: Fn(&[f64]) -> Vec<Option<f64>>>(allowed: usize, figures: F) -> Formula<F> {
    Formula { figures, measured: 0, allowed }
}

fn factor(name: &str, guess: f64) -> Knob {
    let scale = Scale::Factor { step: 0.03 };
    Knob { name: name.to_owned(), guess, bounds: (guess / 100.0, guess * 100.0), scale }
}

fn share(name: &str, guess: f64) -> Knob {
    let scale = Scale::Difference { step: 0.02 };
    Knob { name: name.to_owned(), guess, bounds: (0.0, 1.0), scale }
}

fn targets(values: &[f64]) -> Vec<Target> {
    let target = |(index, &value): (usize, &f64)| Target {
        name: format!("figure {index}"),
        value,
        unit: Unit::Count,
        noise: 0.02,
    };
    values.iter().enumerate().map(target).collect()
}

/// A drive in three lines: the link or the dies limit large reads, latency is a sum, the third parameter a share.
fn drive(values: &[f64]) -> Vec<Option<f64>> {
    let [link, dies, wait, fill] = values else { unreachable!("four parameters") };
    let latency = |bytes: f64| wait + bytes / link;
    vec![
        Some(link.min(*dies)),
        Some(latency(10.0)),
        Some(latency(1000.0)),
        Some(1.0 + 3.0 * fill),
        (*fill < 0.9).then_some(dies / 2.0),
    ]
}

#[test]
fn parameters_are_recovered_over_kinks_and_from_far() {
    let truth = [3.0, 8.0, 40.0, 0.7];
    let measured: Vec<f64> = drive(&truth).into_iter().map(Option::unwrap).collect();
    let knobs =
        [factor("link", 9.0), factor("dies", 2.0), factor("wait", 100.0), share("fill", 0.95)];
    let mut model = formula(400, drive);
    let found = fit(&knobs, &targets(&measured), &mut model).unwrap();
    assert!(found.settled && found.misfit < 0.01, "{found:?}");
    for (found, expected) in found.values.iter().zip(truth) {
        assert!((found / expected - 1.0).abs() < 0.02, "{found} for {expected}");
    }
    assert!(found.reaches.iter().all(|reach| reach.determined && !reach.unknown), "{found:?}");
    assert_eq!(found.pairs, []);
}

#[test]
fn a_parameter_without_effect_is_not_determined_and_its_range_is_told() {
    // The second only matters as long as it is the least.
    let figures = |v: &[f64]| vec![Some(v[0].min(v[1])), Some(v[0] * 2.0)];
    let knobs = [factor("limit", 1.0), factor("ample", 30.0)];
    let found = fit(&knobs, &targets(&[2.0, 4.0]), &mut formula(300, figures)).unwrap();
    assert!((found.values[0] / 2.0 - 1.0).abs() < 0.01, "{found:?}");
    let ample = &found.reaches[1];
    assert!(!ample.determined && ample.high > 300.0, "{ample:?}");
    assert!((1.9..2.8).contains(&ample.low), "{ample:?}");
    let (below, above) = ample.noticed;
    assert!(below.is_some_and(|below| below < ample.low) && above.is_none(), "{ample:?}");
    let limit = &found.reaches[0];
    let (below, above) = (limit.noticed.0.unwrap(), limit.noticed.1.unwrap());
    assert!(limit.determined && below < limit.low && limit.high < above, "{limit:?}");
    assert!(1.7 < below && above < 2.35, "{limit:?}");
}

#[test]
fn two_that_can_only_be_told_as_a_sum_are_a_pair() {
    let figures = |v: &[f64]| vec![Some(v[0] + v[1]), Some(v[2])];
    let knobs = [factor("firmware", 20.0), factor("medium", 45.0), factor("other", 1.0)];
    let found = fit(&knobs, &targets(&[80.0, 3.0]), &mut formula(300, figures)).unwrap();
    assert!((found.values[0] + found.values[1] - 80.0).abs() < 1.0, "{found:?}");
    let [pair] = found.pairs.as_slice() else { panic!("{found:?}") };
    assert_eq!((pair.first, pair.second), (0, 1));
    let (firmware, medium) = pair.example;
    assert!((firmware + medium - 80.0).abs() < 4.0, "{pair:?}");
    assert!((firmware / found.values[0]).ln().abs() > 0.09, "{pair:?}");
}

#[test]
fn noise_of_the_figures_moves_values_by_no_more_than_itself() {
    let truth = [3.0, 8.0, 40.0, 0.7];
    let measured: Vec<f64> = drive(&truth).into_iter().map(Option::unwrap).collect();
    let noisy: Vec<f64> =
        measured.iter().zip([1.02, 0.98, 1.03, 0.97, 1.02]).map(|(m, n)| m * n).collect();
    let knobs =
        [factor("link", 5.0), factor("dies", 5.0), factor("wait", 60.0), share("fill", 0.5)];
    let found = fit(&knobs, &targets(&noisy), &mut formula(400, drive)).unwrap();
    for (found, expected) in found.values.iter().zip(truth) {
        assert!((found / expected - 1.0).abs() < 0.05, "{found} for {expected}");
    }
}

#[test]
fn a_budget_that_ends_gives_the_best_so_far_and_says_what_is_not_known() {
    let knobs = [factor("a", 1.0), factor("b", 1.0)];
    let figures = |v: &[f64]| vec![Some(v[0]), Some(v[1] * v[0])];
    let mut model = formula(4, figures);
    let found = fit(&knobs, &targets(&[50.0, 70.0]), &mut model).unwrap();
    assert!(model.measured <= 5, "{}", model.measured);
    assert!(!found.settled && found.reaches.iter().any(|reach| reach.unknown), "{found:?}");
}

#[test]
fn a_figure_that_the_model_does_not_show_costs_a_bounded_much() {
    let target = &targets(&[2.0])[0];
    assert!(residual(target, None).abs() < 25.0);
    assert!(residual(target, None).abs() > residual(target, Some(3.0)).abs());
    assert_eq!(difference(target, Some(3.0)), Some(0.5));
}
