//! Rounds of a measurement and its reference, taken in turn, so that what changes on the machine
//! meanwhile meets both.

use anyhow::Result;

/// Figures of several rounds, one a round.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Figures(pub Vec<f64>);

impl Figures {
    /// The middle one; the mean of the middle two if their number is even. NaN without any.
    pub fn median(&self) -> f64 {
        let mut sorted = self.0.clone();
        sorted.sort_by(f64::total_cmp);
        match sorted.len() {
            0 => f64::NAN,
            n if n % 2 == 1 => sorted[n / 2],
            n => f64::midpoint(sorted[n / 2 - 1], sorted[n / 2]),
        }
    }

    /// Each by the same factor.
    pub fn times(&self, factor: f64) -> Self {
        Self(self.0.iter().map(|figure| figure * factor).collect())
    }

    /// The least.
    pub fn min(&self) -> f64 {
        self.0.iter().copied().fold(f64::NAN, f64::min)
    }

    /// The greatest.
    pub fn max(&self) -> f64 {
        self.0.iter().copied().fold(f64::NAN, f64::max)
    }
}

/// One contestant: runs a round and gives its figure.
pub type Contestant<'a> = Box<dyn FnMut() -> Result<f64> + 'a>;

/// Runs a round of each contestant in turn, `rounds` times, after one of each that doesn't count if
/// `warm`. Who goes first changes with every round.
///
/// # Errors
/// The first error of any.
pub fn interleaved<const N: usize>(
    rounds: u32,
    warm: bool,
    contestants: [Contestant<'_>; N],
) -> Result<[Figures; N]> {
    let figures = in_turn(rounds, warm, Vec::from(contestants))?;
    Ok(figures.try_into().expect("each contestant has figures"))
}

/// The same for as many contestants as there are on this machine. Figures come in their order.
///
/// # Errors
/// The first error of any.
pub fn in_turn(
    rounds: u32,
    warm: bool,
    mut contestants: Vec<Contestant<'_>>,
) -> Result<Vec<Figures>> {
    let mut figures = vec![Figures::default(); contestants.len()];
    if warm {
        for contestant in &mut contestants {
            contestant()?;
        }
    }
    for round in 0..rounds as usize {
        for turn in 0..contestants.len() {
            let who = (round + turn) % contestants.len();
            figures[who].0.push(contestants[who]()?);
        }
    }
    Ok(figures)
}

/// Runs `rounds` rounds of something that has no reference, after one that doesn't count.
///
/// # Errors
/// The first error.
pub fn alone(rounds: u32, mut ours: impl FnMut() -> Result<f64>) -> Result<Figures> {
    ours()?;
    Ok(Figures((0..rounds).map(|_| ours()).collect::<Result<_>>()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_is_the_middle_figure_in_any_order() {
        assert_eq!(Figures(vec![3.0, 1.0, 2.0]).median(), 2.0);
        assert_eq!(Figures(vec![4.0, 1.0, 3.0, 2.0]).median(), 2.5);
        assert!(Figures::default().median().is_nan());
    }

    #[test]
    fn rounds_alternate_and_the_first_of_each_does_not_count() {
        let order = std::cell::RefCell::new(String::new());
        let turn = |who: char| -> Contestant<'_> {
            let order = &order;
            Box::new(move || {
                order.borrow_mut().push(who);
                Ok(order.borrow().len() as f64)
            })
        };
        let [ours, reference] =
            interleaved(3, true, [turn('a'), turn('b')]).expect("no round fails");
        assert_eq!(*order.borrow(), "ababbaab");
        assert_eq!(ours.0, [3.0, 6.0, 7.0]);
        assert_eq!(reference.0, [4.0, 5.0, 8.0]);
    }
}
