//! The distance within which a point is like some others.

/// The share of points that are farther than the reach from all others. Chosen on encoder vectors of CIFAR-10 and on MNIST's training
/// images, divided among ten unequal parties: with a smaller share more points of unknown classes are within reach, with a larger one
/// fewer of known classes.
const LOST: f64 = 0.2;

/// Returns the distance within which all but a fifth of `count` points have another one of them; `distance` is the distance of two
/// points, in either order. `None` for fewer than two points, which say nothing about their distances.
pub fn reach(count: usize, distance: impl Fn(usize, usize) -> f64) -> Option<f64> {
    if count < 2 {
        return None;
    }
    let mut all = vec![f64::INFINITY; count];
    for one in 1..count {
        for other in 0..one {
            let distance = distance(one, other);
            [one, other].into_iter().for_each(|point| all[point] = all[point].min(distance));
        }
    }
    all.sort_by(f64::total_cmp);
    Some(all[count - 1 - (LOST * count as f64) as usize])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fifth_of_the_points_is_beyond_the_reach() {
        // Distances to the nearest point: 1, 1, 2, 3, 4, 5, 6, 7, 8, 9.
        let points = [0.0, 1.0, 3.0, 6.0, 10.0, 15.0, 21.0, 28.0, 36.0, 45.0];
        let of = |count| reach(count, |one, other| f64::abs(points[one] - points[other]));
        assert_eq!(of(10), Some(7.0));
        assert_eq!(of(4), Some(3.0));
        assert_eq!([of(2), of(1), of(0)], [Some(1.0), None, None]);
    }
}
