//! Rows of length 1.

use burn::tensor::Tensor;

use crate::ops::sums::row_sums;

/// Added to the squared length of a row, so that a row of zeros stays one.
const LEAST: f64 = 1e-12;

/// Divides each row of `[n, k]` by its Euclidean length.
pub fn unit_rows(rows: Tensor<2>) -> Tensor<2> {
    let lengths = row_sums(rows.clone() * rows.clone()).add_scalar(LEAST).sqrt();
    rows / lengths
}

#[cfg(test)]
mod tests {
    use burn::tensor::Device;

    use super::*;
    use crate::device::values;

    #[test]
    fn rows_have_length_one_and_zeros_stay() {
        let rows = Tensor::<2>::from_floats([[3.0, -4.0], [0.0, 0.0]], &Device::flex());
        let found = values(unit_rows(rows)).expect("values");
        assert!(found.iter().zip([0.6, -0.8, 0.0, 0.0]).all(|(found, expected)| (found - expected).abs() < 1e-6));
    }
}
