//! Eigenvectors of symmetric matrices: of small ones by Jacobi's rotations, and orthonormal bases.

/// Returns the eigenvalues of a symmetric matrix of `size` rows, largest first, and its eigenvectors in the same order, vector after
/// vector, each of length 1 (Golub and Van Loan, "Matrix Computations", cyclic Jacobi).
pub(crate) fn symmetric(matrix: &[f64], size: usize) -> (Vec<f64>, Vec<f64>) {
    let mut a = matrix.to_vec();
    let mut vectors = vec![0.0; size * size];
    (0..size).for_each(|i| vectors[i * size + i] = 1.0);
    let total: f64 = a.iter().map(|value| value * value).sum();
    // Jacobi's sweeps converge quadratically: about ten reach the precision of f64.
    for _ in 0..60 {
        let off: f64 =
            (0..size).flat_map(|i| (0..i).map(move |j| (i, j))).map(|(i, j)| a[i * size + j] * a[i * size + j]).sum();
        if off <= 1e-30 * total {
            break;
        }
        for p in 0..size {
            for q in p + 1..size {
                rotate(&mut a, &mut vectors, size, p, q);
            }
        }
    }
    let mut order: Vec<usize> = (0..size).collect();
    order.sort_by(|&i, &j| a[j * size + j].total_cmp(&a[i * size + i]));
    let values = order.iter().map(|&i| a[i * size + i]).collect();
    let vectors = order.iter().flat_map(|&i| vectors[i * size..][..size].to_vec()).collect();
    (values, vectors)
}

/// Makes the entry `(p, q)` zero by a rotation of the two axes. Row `i` of `vectors` is the `i`-th eigenvector.
fn rotate(a: &mut [f64], vectors: &mut [f64], size: usize, p: usize, q: usize) {
    let entry = a[p * size + q];
    if entry == 0.0 {
        return;
    }
    let theta = (a[q * size + q] - a[p * size + p]) / (2.0 * entry);
    let t = theta.signum() / (theta.abs() + libm::sqrt(theta * theta + 1.0));
    let c = 1.0 / libm::sqrt(t * t + 1.0);
    let s = t * c;
    for k in 0..size {
        let (kp, kq) = (a[k * size + p], a[k * size + q]);
        (a[k * size + p], a[k * size + q]) = (c * kp - s * kq, s * kp + c * kq);
    }
    for k in 0..size {
        let (pk, qk) = (a[p * size + k], a[q * size + k]);
        (a[p * size + k], a[q * size + k]) = (c * pk - s * qk, s * pk + c * qk);
        let (pk, qk) = (vectors[p * size + k], vectors[q * size + k]);
        (vectors[p * size + k], vectors[q * size + k]) = (c * pk - s * qk, s * pk + c * qk);
    }
}

/// Returns the inner product of two vectors, in eight sums that are added in a fixed order.
pub(crate) fn dot(one: &[f64], other: &[f64]) -> f64 {
    let mut sums = [0.0_f64; 8];
    let (ones, others) = (one.chunks_exact(8), other.chunks_exact(8));
    let rest: f64 = ones.remainder().iter().zip(others.remainder()).map(|(x, y)| x * y).sum();
    for (x, y) in ones.zip(others) {
        for (sum, (x, y)) in sums.iter_mut().zip(x.iter().zip(y)) {
            *sum += x * y;
        }
    }
    sums.iter().sum::<f64>() + rest
}

/// Makes vectors of one length orthonormal, in their order, by the modified Gram-Schmidt process, twice (Giraud et al., 2005). A vector
/// that depends on earlier ones becomes zero.
pub(crate) fn orthonormalise(vectors: &mut [Vec<f64>]) {
    for last in 0..vectors.len() {
        let (earlier, rest) = vectors.split_at_mut(last);
        let vector = &mut rest[0];
        let before = libm::sqrt(dot(vector, vector));
        for _ in 0..2 {
            for other in earlier.iter() {
                let share = dot(vector, other);
                vector.iter_mut().zip(other).for_each(|(value, other)| *value -= share * other);
            }
        }
        let norm = libm::sqrt(dot(vector, vector));
        let factor = if norm > 1e-10 * before && norm > 0.0 { 1.0 / norm } else { 0.0 };
        vector.iter_mut().for_each(|value| *value *= factor);
    }
}

/// Replaces `vectors` by their combinations with the coefficients of each row of `coefficients`, row after row of as many values.
pub(crate) fn combine(vectors: &[Vec<f64>], coefficients: &[f64]) -> Vec<Vec<f64>> {
    let combination = |row: &[f64]| {
        let mut sum = vec![0.0; vectors[0].len()];
        for (vector, &coefficient) in vectors.iter().zip(row) {
            sum.iter_mut().zip(vector).for_each(|(sum, value)| *sum += coefficient * value);
        }
        sum
    };
    coefficients.chunks_exact(vectors.len()).map(combination).collect()
}

#[cfg(test)]
mod tests {
    use rand::RngExt;
    use speed_core::random::Streams;

    use super::*;

    #[test]
    fn eigenvectors_of_small_matrices() {
        // Eigenvalues 4, 2 and 1: [[3, 1, 0], [1, 3, 0], [0, 0, 1]].
        let (values, vectors) = symmetric(&[3.0, 1.0, 0.0, 1.0, 3.0, 0.0, 0.0, 0.0, 1.0], 3);
        for (found, expected) in values.iter().zip([4.0, 2.0, 1.0]) {
            assert!((found - expected).abs() < 1e-12, "{values:?}");
        }
        assert!((vectors[0].abs() - 0.5_f64.sqrt()).abs() < 1e-12 && (vectors[0] - vectors[1]).abs() < 1e-12);
        assert_eq!(symmetric(&[7.0], 1), (vec![7.0], vec![1.0]));
    }

    #[test]
    fn a_random_matrix_is_recovered_from_its_eigenvectors() {
        let (size, mut stream) = (12, Streams::new(1).stream("matrix", 0));
        let mut matrix = vec![0.0; size * size];
        for i in 0..size {
            for j in 0..=i {
                let value = stream.random_range(-1.0..1.0);
                (matrix[i * size + j], matrix[j * size + i]) = (value, value);
            }
        }
        let (values, vectors) = symmetric(&matrix, size);
        assert!(values.is_sorted_by(|one, next| one >= next));
        for i in 0..size {
            for j in 0..size {
                let found: f64 = (0..size).map(|k| values[k] * vectors[k * size + i] * vectors[k * size + j]).sum();
                assert!((found - matrix[i * size + j]).abs() < 1e-12, "{i} {j}");
            }
        }
    }

    #[test]
    fn dependent_vectors_become_zero() {
        let mut vectors = vec![vec![3.0, 4.0], vec![6.0, 8.0], vec![1.0, 0.0]];
        orthonormalise(&mut vectors);
        assert_eq!(vectors[1], [0.0, 0.0]);
        assert!((dot(&vectors[0], &vectors[0]) - 1.0).abs() < 1e-15 && dot(&vectors[0], &vectors[2]).abs() < 1e-15);
    }
}
