//! The space in which vectors of an encoder are compared: frequent differences count less.

use speed_core::random::Streams;
use speed_data::Images;

use crate::pool::components::Components;
use crate::pool::features::Features;
use crate::pool::rows::Rows;

/// The power of the variance along a component by which coordinates are divided: 0 leaves distances as they are, 1/2 makes all
/// components count equally. Chosen on training images of CIFAR-10 by the votes of teachers with 8 images, whose plurality is right more
/// often with a larger power, and leads by less.
const POWER: f64 = 0.35;
/// The least variance, as a fraction of the greatest.
const LEAST: f64 = 1e-3;

/// The mean and the scaled principal directions of vectors.
pub(crate) struct Whitening {
    /// The mean, one number for each value of a vector.
    pub(crate) mean: Vec<f32>,
    /// The directions as columns, values x components; unused components are 0.
    pub(crate) directions: Vec<f32>,
}

impl Whitening {
    /// Computes `count` directions from the vectors of a pool.
    pub(crate) fn of_pool(pool: Images<'_>, count: usize, streams: &Streams) -> Self {
        let width = Features::Encoded.width(pool.shape());
        let vectors = Rows::new(width, (0..pool.len()).flat_map(|i| Features::Encoded.vector(pool, i)).collect());
        let fitted =
            Components::fit(&vectors, count, &mut streams.stream("components", 0), 1).expect("no thread is started");
        let coordinates = vectors.iter().flat_map(|vector| fitted.project(vector)).collect();
        let factors = factors(&Rows::new(fitted.count(), coordinates));
        let rows = fitted.to_rows();
        let (mean, fitted) = rows.split_at(width);
        let mut directions = vec![0.0; width * count];
        for (component, (direction, factor)) in fitted.chunks_exact(width).zip(factors).enumerate() {
            direction
                .iter()
                .enumerate()
                .for_each(|(value, entry)| directions[value * count + component] = entry * factor);
        }
        Self { mean: mean.to_vec(), directions }
    }
}

/// Returns the factor for each coordinate of points whose mean is about 0.
pub(crate) fn factors(points: &Rows<f32>) -> Vec<f32> {
    let mut variances = vec![0.0_f64; points.width];
    for point in points.iter() {
        variances.iter_mut().zip(point).for_each(|(sum, &value)| *sum += f64::from(value) * f64::from(value));
    }
    let greatest = variances.iter().copied().fold(f64::MIN_POSITIVE, f64::max);
    variances.iter().map(|variance| libm::pow((variance / greatest).max(LEAST), -POWER) as f32).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frequent_differences_are_divided_by_a_power_of_their_variance() {
        let found = factors(&Rows::new(3, vec![4.0, 1.0, 0.0, -4.0, -1.0, 0.0]));
        let expected = [1.0, libm::pow(1.0 / 16.0, -POWER), libm::pow(LEAST, -POWER)];
        assert!(
            found.iter().zip(expected).all(|(&found, expected)| (f64::from(found) - expected).abs() < 1e-5),
            "{found:?}"
        );
    }
}
