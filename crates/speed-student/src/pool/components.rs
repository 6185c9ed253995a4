//! Principal components of vectors.

use rand_distr::{Distribution, StandardNormal};
use speed_core::random::Stream;

use crate::pool::eigen::{combine, dot, orthonormalise, symmetric};
use crate::pool::rows::{Queued, Rows, in_blocks};

/// Vectors from which the components are computed, at most.
const SAMPLE: usize = 4000;
/// Further vectors of the basis, which speed up the convergence.
const SPARE: usize = 8;
/// Rounds of the subspace iteration. After each the error falls by the ratio of the variances outside and inside the basis.
const ROUNDS: usize = 6;
/// Vectors that one thread adds up at a time.
const BLOCK: usize = 500;

/// The mean of vectors, and the orthonormal directions of their largest variances.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Components {
    mean: Vec<f64>,
    directions: Vec<Vec<f64>>,
}

impl Components {
    /// Reads the rows that [`Self::to_rows`] returned.
    pub(crate) fn from_rows(width: usize, rows: &[f32]) -> Self {
        let mut rows = rows.chunks_exact(width).map(|row| row.iter().map(|&value| f64::from(value)).collect());
        Self { mean: rows.next().unwrap_or_default(), directions: rows.collect() }
    }

    pub(crate) fn to_rows(&self) -> Vec<f32> {
        std::iter::once(&self.mean).chain(&self.directions).flatten().map(|&value| value as f32).collect()
    }

    /// Computes at most `count` components of `vectors` by subspace iteration from a random basis (Halko, Martinsson and Tropp, 2011,
    /// Algorithm 4.4). Uses at most [`SAMPLE`] vectors, at equal distances.
    pub(crate) fn fit(vectors: &Rows<f32>, count: usize, stream: &mut Stream, threads: usize) -> Queued<Self> {
        let width = vectors.width;
        let step = vectors.len().div_ceil(SAMPLE).max(1);
        let sample: Vec<usize> = (0..vectors.len()).step_by(step).collect();
        let mut mean = vec![0.0; width];
        for &i in &sample {
            mean.iter_mut().zip(vectors.row(i)).for_each(|(sum, &value)| *sum += f64::from(value));
        }
        mean.iter_mut().for_each(|sum| *sum /= sample.len() as f64);
        let centred: Vec<Vec<f64>> = sample.iter().map(|&i| centre(vectors.row(i), &mean)).collect();

        let size = (count + SPARE).min(width).min(sample.len());
        let mut basis: Vec<Vec<f64>> =
            (0..size).map(|_| (0..width).map(|_| StandardNormal.sample(stream)).collect()).collect();
        orthonormalise(&mut basis);
        for _ in 0..ROUNDS {
            basis = covariance(&centred, &basis, threads)?;
            orthonormalise(&mut basis);
        }
        // The variances along the basis, and the combinations in which they are largest.
        let image = covariance(&centred, &basis, threads)?;
        let products: Vec<f64> = basis.iter().flat_map(|one| image.iter().map(move |other| dot(one, other))).collect();
        let (_, rotation) = symmetric(&products, size);
        let mut directions = combine(&basis, &rotation);
        directions.truncate(count.min(size));
        directions.iter_mut().for_each(|direction| fix_sign(direction));
        // In single precision, like a map that is read from its parts.
        mean.iter_mut().chain(directions.iter_mut().flatten()).for_each(|value| *value = f64::from(*value as f32));
        Ok(Self { mean, directions })
    }

    /// Returns the coordinates of a vector along the components.
    pub(crate) fn project(&self, vector: &[f32]) -> Vec<f32> {
        let centred = centre(vector, &self.mean);
        self.directions.iter().map(|direction| dot(&centred, direction) as f32).collect()
    }

    pub(crate) fn count(&self) -> usize {
        self.directions.len()
    }
}

fn centre(vector: &[f32], mean: &[f64]) -> Vec<f64> {
    vector.iter().zip(mean).map(|(&value, mean)| f64::from(value) - mean).collect()
}

/// Makes the value with the largest magnitude positive, because an eigenvector has no sign of its own.
pub(crate) fn fix_sign(vector: &mut [f64]) {
    let largest =
        vector.iter().fold(0.0_f64, |largest, &value| if value.abs() > largest.abs() { value } else { largest });
    if largest < 0.0 {
        vector.iter_mut().for_each(|value| *value = -*value);
    }
}

/// Returns the products of the covariance matrix of `vectors` (times their number) with each vector of `basis`.
fn covariance(vectors: &[Vec<f64>], basis: &[Vec<f64>], threads: usize) -> Queued<Vec<Vec<f64>>> {
    let zeros = || vec![vec![0.0; basis[0].len()]; basis.len()];
    let parts = in_blocks(vectors.len(), BLOCK, threads, |block| {
        let mut sums = zeros();
        for vector in &vectors[block] {
            for (sum, direction) in sums.iter_mut().zip(basis) {
                let share = dot(vector, direction);
                sum.iter_mut().zip(vector).for_each(|(sum, value)| *sum += share * value);
            }
        }
        sums
    })?;
    let mut all = zeros();
    for part in parts {
        for (sum, part) in all.iter_mut().zip(part) {
            sum.iter_mut().zip(part).for_each(|(sum, value)| *sum += value);
        }
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use speed_core::random::Streams;

    use super::*;

    #[test]
    fn the_directions_are_those_of_the_largest_variances() {
        let mut stream = Streams::new(3).stream("points", 0);
        // Deviations 5, 3 and 1 along a rotated frame, and 0.1 along other axes, around a mean.
        let (c, s) = (0.8, 0.6);
        let mut values = Vec::new();
        for _ in 0..3000 {
            let mut normal = |deviation: f64| deviation * Distribution::<f64>::sample(&StandardNormal, &mut stream);
            let (a, b, d) = (normal(5.0), normal(3.0), normal(1.0));
            values.extend([c * a - s * b + 7.0, s * a + c * b, d - 2.0, normal(0.1), normal(0.1)].map(|v| v as f32));
        }
        let rows = Rows::new(5, values);
        let found = Components::fit(&rows, 2, &mut stream, 2).expect("threads");
        let expected = [[c, s, 0.0, 0.0, 0.0], [-s, c, 0.0, 0.0, 0.0]];
        for (found, expected) in found.directions.iter().zip(expected) {
            assert!(dot(found, &expected).abs() > 0.999, "{found:?}");
        }
        let again = Components::fit(&rows, 2, &mut Streams::new(9).stream("other", 0), 1).expect("threads");
        let (one, other) = (found.project(rows.row(5)), again.project(rows.row(5)));
        assert!(one.iter().zip(&other).all(|(x, y)| (x - y).abs() < 1e-4), "{one:?} {other:?}");
    }

    #[test]
    fn fewer_directions_than_requested_exist_in_a_small_space() {
        let rows = Rows::new(2, vec![0.0, 0.0, 1.0, 1.0]);
        let found = Components::fit(&rows, 40, &mut Streams::new(1).stream("x", 0), 1).expect("threads");
        assert!(found.count() <= 2 && found.project(rows.row(0)).iter().all(|value| value.is_finite()));
    }
}
