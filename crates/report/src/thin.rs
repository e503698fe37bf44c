//! Long series in few points, for drawing: every stretch keeps its first, least, greatest and last
//! value, and no line is drawn across a gap that was there.

use crate::picture::Point;

/// Points kept of one stretch, gaps not counted.
const KEPT_PER_BUCKET: usize = 4;

/// At most about `points_max` of these points (twice that if there is a gap between all of them). A
/// series that is short enough comes back whole; in one that isn't, the extremes of each stretch of
/// equal count are what is kept, in their places.
pub fn thin(points: &[Point], points_max: usize) -> Vec<Point> {
    if points.len() <= points_max {
        return points.to_vec();
    }
    let buckets = (points_max / KEPT_PER_BUCKET).max(1);
    let mut thinned = Vec::with_capacity(points_max + buckets);
    let mut kept_before: Option<usize> = None;
    for bucket in 0..buckets {
        let start = bucket * points.len() / buckets;
        let end = (bucket + 1) * points.len() / buckets;
        for index in extremes(points, start, end) {
            let from = kept_before.map_or(0, |before| before + 1);
            if let Some(gap) = points[from..index].iter().find(|p| known(p).is_none()) {
                thinned.push(Point::gap(gap.x));
            }
            thinned.push(points[index]);
            kept_before = Some(index);
        }
    }
    let tail = kept_before.map_or(0, |before| before + 1);
    thinned.extend(points[tail..].last().map(|p| Point::gap(p.x)));
    thinned
}

/// The first, least, greatest and last known points of a stretch, in order, each once.
fn extremes(points: &[Point], start: usize, end: usize) -> Vec<usize> {
    let stretch = || (start..end).filter_map(|i| known(&points[i]).map(|y| (i, y)));
    let by_value = |a: &(usize, f64), b: &(usize, f64)| a.1.total_cmp(&b.1);
    let mut kept: Vec<usize> = [
        stretch().next(),
        stretch().min_by(by_value),
        stretch().max_by(by_value),
        stretch().next_back(),
    ]
    .into_iter()
    .flatten()
    .map(|(i, _)| i)
    .collect();
    kept.sort_unstable();
    kept.dedup();
    kept
}

fn known(point: &Point) -> Option<f64> {
    point.y.filter(|y| y.is_finite() && point.x.is_finite())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wave(count: usize) -> Vec<Point> {
        (0..count).map(|i| Point::new(i as f64, (i as f64 / 500.0).sin())).collect()
    }

    #[test]
    fn a_short_series_stays_whole() {
        let points = wave(100);
        assert_eq!(thin(&points, 100), points);
    }

    #[test]
    fn one_dip_among_a_hundred_thousand_points_survives() {
        for at in [0, 1, 31_415, 99_998, 99_999] {
            let mut points = wave(100_000);
            points[at].y = Some(-7.0);
            let thinned = thin(&points, 2_000);
            assert!(thinned.len() <= 2_000, "{}", thinned.len());
            assert!(thinned.contains(&points[at]), "{at}");
            assert_eq!(thinned.first(), points.first());
            assert_eq!(thinned.last(), points.last());
            assert!(thinned.is_sorted_by(|a, b| a.x < b.x));
        }
    }

    #[test]
    fn no_line_crosses_a_gap_of_a_single_point() {
        let mut points = wave(50_000);
        for at in [0, 20_000, 20_001, 49_999] {
            points[at].y = None;
        }
        let thinned = thin(&points, 1_000);
        let gaps: Vec<f64> = thinned.iter().filter(|p| p.y.is_none()).map(|p| p.x).collect();
        assert_eq!(gaps, [0.0, 20_000.0, 49_999.0]);
    }

    #[test]
    fn a_series_of_which_nothing_is_known_is_a_gap() {
        let points: Vec<Point> = (0..10_000).map(|i| Point::gap(f64::from(i))).collect();
        assert!(thin(&points, 100).iter().all(|p| p.y.is_none()));
    }
}
