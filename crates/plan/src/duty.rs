//! How the load lies over the day: a link is rarely full for all of it.

const DAY_S: f64 = 86_400.0;

/// A day's load, as spans of time at a share of the full rate, one behind the other. Every day is the same.
#[derive(Clone, Debug, PartialEq)]
pub struct Duty {
    /// Seconds and share of each span; together a day.
    spans: Vec<(f64, f64)>,
}

impl Duty {
    /// The full rate all day.
    pub fn always() -> Self {
        Self { spans: vec![(DAY_S, 1.0)] }
    }

    /// The full rate for this share of the day, in one piece, which is the worst that it can be; nothing for the rest.
    ///
    /// # Panics
    /// If the share is not above 0 and at most 1.
    pub fn share(share: f64) -> Self {
        assert!(share > 0.0 && share <= 1.0, "a share of the day of {share}");
        Self { spans: vec![(DAY_S * share, 1.0), (DAY_S * (1.0 - share), 0.0)] }
    }

    /// A share of the full rate for each hour.
    ///
    /// # Panics
    /// If a share is not from 0 to 1, or all are 0.
    pub fn hours(shares: &[f64; 24]) -> Self {
        assert!(shares.iter().all(|share| (0.0..=1.0).contains(share)), "shares from 0 to 1");
        assert!(shares.iter().any(|share| *share > 0.0), "a load at some hour");
        Self { spans: shares.iter().map(|share| (3600.0, *share)).collect() }
    }

    /// The mean share over the day.
    pub fn mean(&self) -> f64 {
        self.spans.iter().map(|(seconds, share)| seconds * share).sum::<f64>() / DAY_S
    }

    /// The greatest share of any hour.
    pub fn peak(&self) -> f64 {
        self.spans.iter().map(|(_, share)| *share).fold(0.0, f64::max)
    }

    /// How many seconds at the full rate come to as much as the busiest span of so many seconds.
    pub fn busiest(&self, seconds: f64) -> f64 {
        let days = (seconds / DAY_S).floor();
        let rest = seconds - days * DAY_S;
        let start = self.busiest_start(rest);
        days * DAY_S * self.mean() + self.until(start + rest) - self.until(start)
    }

    /// The day's spans, in seconds with the share of the full rate, from where a span of so many seconds is busiest on.
    pub fn from_busiest(&self, seconds: f64) -> Vec<(f64, f64)> {
        let start = self.busiest_start(seconds.rem_euclid(DAY_S));
        let (mut before, mut after, mut edge) = (Vec::new(), Vec::new(), 0.0);
        for &(span, share) in &self.spans {
            let passed = (start - edge).clamp(0.0, span);
            before.push((passed, share));
            after.push((span - passed, share));
            edge += span;
        }
        after.into_iter().chain(before).filter(|(span, _)| *span > 0.0).collect()
    }

    /// Where in the day the busiest span of less than a day begins.
    ///
    /// A window over a load of steps is busiest where one of its ends lies on a step, so that those are all that is tried.
    fn busiest_start(&self, seconds: f64) -> f64 {
        let mut edge = 0.0;
        let (mut best, mut at) = (0.0, 0.0);
        for (span, _) in &self.spans {
            for start in [edge, (edge - seconds).rem_euclid(DAY_S)] {
                let comes = self.until(start + seconds) - self.until(start);
                if comes > best {
                    (best, at) = (comes, start);
                }
            }
            edge += span;
        }
        at
    }

    /// The longest span, in seconds, whose busiest occurrence comes to no more than so many seconds at the full rate.
    pub fn span_of(&self, full_s: f64) -> f64 {
        if !full_s.is_finite() {
            return f64::INFINITY;
        }
        let (mut low, mut high) = (0.0, full_s / self.mean() + DAY_S);
        for _ in 0..100 {
            let middle = f64::midpoint(low, high);
            if self.busiest(middle) <= full_s { low = middle } else { high = middle }
        }
        low
    }

    /// Seconds at the full rate from the day's start until `seconds` later.
    fn until(&self, seconds: f64) -> f64 {
        let days = (seconds / DAY_S).floor();
        let mut left = seconds - days * DAY_S;
        let mut sum = days * DAY_S * self.mean();
        for (span, share) in &self.spans {
            sum += left.min(*span) * share;
            left = (left - span).max(0.0);
        }
        sum
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_third_of_the_day_fills_its_busiest_hours_and_no_more_until_the_next() {
        let duty = Duty::share(1.0 / 3.0);
        assert!((duty.mean() - 1.0 / 3.0).abs() < 1e-12);
        assert_eq!(duty.busiest(4.0 * 3600.0), 4.0 * 3600.0);
        assert!((duty.busiest(12.0 * 3600.0) - 8.0 * 3600.0).abs() < 1e-6);
        assert!((duty.busiest(DAY_S + 3600.0) - 9.0 * 3600.0).abs() < 1e-6);
    }

    #[test]
    fn a_busy_window_is_found_across_midnight() {
        let mut shares = [0.1; 24];
        (shares[23], shares[0]) = (1.0, 0.8);
        let duty = Duty::hours(&shares);
        assert!((duty.busiest(2.0 * 3600.0) - 1.8 * 3600.0).abs() < 1e-6);
        assert!((duty.busiest(1800.0) - 1800.0).abs() < 1e-6);
        assert_eq!(duty.peak(), 1.0);
    }

    proptest! {
        #[test]
        fn no_window_is_busier_than_the_busiest(
            shares in prop::array::uniform24(0.0..=1.0f64),
            start in 0.0..DAY_S,
            length in 1.0..3.0 * DAY_S,
        ) {
            prop_assume!(shares.iter().any(|share| *share > 0.01));
            let duty = Duty::hours(&shares);
            let here = duty.until(start + length) - duty.until(start);
            prop_assert!(here <= duty.busiest(length) + 1e-3);
            let (mut left, mut first) = (length % DAY_S, 0.0);
            for (span, share) in duty.from_busiest(length) {
                first += left.min(span) * share;
                left = (left - span).max(0.0);
            }
            let days = (length / DAY_S).floor() * DAY_S * duty.mean();
            prop_assert!((days + first - duty.busiest(length)).abs() < 1e-3);
            // And the way back: the span that comes to that much is the one asked for, or a longer one.
            prop_assert!(duty.span_of(duty.busiest(length)) >= length - 1.0);
        }
    }
}
