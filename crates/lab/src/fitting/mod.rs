//! Fitting: the values of a model's parameters with which it comes closest to what was measured, and which of them the
//! measurement couldn't tell. What the model is, and how it is measured, is the caller's: the search sees numbers alone.

mod identify;
mod search;
pub mod trials;

pub use identify::{Pair, Reach};

use crate::answer::Unit;

/// A residual beyond this many deviations counts by its size, not its square (Huber, "Robust estimation of a location
/// parameter", 1964): one figure that the model can't show must not outweigh all others.
const SQUARE_UP_TO: f64 = 5.0;
/// A figure that was measured and that the model doesn't show at all is as far off as this many deviations.
const NOT_SHOWN: f64 = 40.0;

/// A measured figure to come close to.
#[derive(Clone, Debug, PartialEq)]
pub struct Target {
    /// Its name, as in results.
    pub name: String,
    /// What was measured; more than 0.
    pub value: f64,
    /// What it counts.
    pub unit: Unit,
    /// Standard deviation that the value is thought to have, as a share of it. It is also the figure's weight: what is
    /// known within 1 % counts twice as much as what is known within 2 %.
    pub noise: f64,
}

/// A parameter of the model.
#[derive(Clone, Debug, PartialEq)]
pub struct Knob {
    /// Its name, as people know it.
    pub name: String,
    /// Where the search begins.
    pub guess: f64,
    /// Least and greatest value.
    pub bounds: (f64, f64),
    /// How it is varied.
    pub scale: Scale,
}

/// How a parameter is varied.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Scale {
    /// By factors: times, rates and sizes. The step is one of its logarithm: 0.03 is about 3 %.
    Factor {
        /// The least step that the model is sure to notice.
        step: f64,
    },
    /// By differences: shares between 0 and 1.
    Difference {
        /// The least step that the model is sure to notice.
        step: f64,
    },
}

/// A model that can be measured with any values of its parameters.
pub trait Model {
    /// Why it can't be.
    type Error;

    /// The figures of the targets, in their order, with these values of the parameters; None for one that it doesn't show.
    ///
    /// # Errors
    /// What ends the fit.
    fn measure(&mut self, values: &[f64]) -> Result<Vec<Option<f64>>, Self::Error>;

    /// How much of the budget is left, from 1 to 0. The search ends at a part of it, to leave some for telling what is
    /// determined; at 0 everything does.
    fn left(&self) -> f64;
}

/// What a fit found.
#[derive(Clone, Debug, PartialEq)]
pub struct Fit {
    /// The parameters' values, in the order of the knobs.
    pub values: Vec<f64>,
    /// The model's figures with them, in the order of the targets.
    pub figures: Vec<Option<f64>>,
    /// Mean square of the residuals, in deviations: 1 or less is as close as the measurement is sure.
    pub misfit: f64,
    /// The search ended because nothing became better, not because the budget did.
    pub settled: bool,
    /// How far each parameter can go alone without it being noticed, in the order of the knobs.
    pub reaches: Vec<Reach>,
    /// Pairs, by place among the knobs, that can go much further together than each alone.
    pub pairs: Vec<Pair>,
}

/// Searches the values, and then looks which of them matter. The same model gives the same fit: nothing is random.
///
/// # Errors
/// What the model fails with.
pub fn fit<M: Model>(knobs: &[Knob], targets: &[Target], model: &mut M) -> Result<Fit, M::Error> {
    let mut bench = Bench { knobs, targets, model };
    let guess: Vec<f64> = knobs.iter().map(|knob| knob.inside(knob.place(knob.guess))).collect();
    let (best, settled) = search::search(&mut bench, &guess)?;
    let (reaches, pairs) = identify::identify(&mut bench, &best)?;
    Ok(Fit {
        values: bench.values(&best.place),
        misfit: best.sum / targets.len().max(1) as f64,
        figures: best.figures,
        settled,
        reaches,
        pairs,
    })
}

/// How far a figure is off as a share of what was measured; None if the model doesn't show it.
pub fn difference(target: &Target, figure: Option<f64>) -> Option<f64> {
    Some(figure? / target.value - 1.0)
}

/// How far a figure is off, in deviations, large ones flattened.
fn residual(target: &Target, figure: Option<f64>) -> f64 {
    let off = match figure {
        Some(value) if value > 0.0 => (value / target.value).ln() / target.noise,
        _ => -NOT_SHOWN,
    };
    if off.abs() <= SQUARE_UP_TO {
        return off;
    }
    (2.0 * SQUARE_UP_TO * off.abs() - SQUARE_UP_TO * SQUARE_UP_TO).sqrt().copysign(off)
}

/// The model with some values of its parameters.
#[derive(Clone, Debug)]
struct Looked {
    /// The values as the search varies them: logarithms where they are varied by factors.
    place: Vec<f64>,
    figures: Vec<Option<f64>>,
    residuals: Vec<f64>,
    /// Sum of the residuals' squares.
    sum: f64,
}

struct Bench<'a, M> {
    knobs: &'a [Knob],
    targets: &'a [Target],
    model: &'a mut M,
}

impl<M: Model> Bench<'_, M> {
    fn values(&self, place: &[f64]) -> Vec<f64> {
        self.knobs.iter().zip(place).map(|(knob, &at)| knob.value(at)).collect()
    }

    fn look(&mut self, place: Vec<f64>) -> Result<Looked, M::Error> {
        let figures = self.model.measure(&self.values(&place))?;
        let residuals: Vec<f64> = self
            .targets
            .iter()
            .zip(figures.iter().chain(std::iter::repeat(&None)))
            .map(|(target, &figure)| residual(target, figure))
            .collect();
        let sum = residuals.iter().map(|r| r * r).sum();
        Ok(Looked { place, figures, residuals, sum })
    }
}

impl Knob {
    const fn step(&self) -> f64 {
        match self.scale {
            Scale::Factor { step } | Scale::Difference { step } => step,
        }
    }

    fn place(&self, value: f64) -> f64 {
        match self.scale {
            Scale::Factor { .. } => value.ln(),
            Scale::Difference { .. } => value,
        }
    }

    fn value(&self, place: f64) -> f64 {
        match self.scale {
            Scale::Factor { .. } => place.exp(),
            Scale::Difference { .. } => place,
        }
    }

    /// The nearest place within the bounds.
    fn inside(&self, place: f64) -> f64 {
        let (low, high) = self.bounds;
        place.clamp(self.place(low), self.place(high))
    }
}

#[cfg(test)]
mod tests;
