//! An identifier of the results of one kind of machine.

use crate::matrix::{Matrix, ProductUnit, multiply, on_vectors, product_unit};
use crate::winograd::{Winograd, WinogradBuffers};

/// Returns the kind of machine, as far as the bits of products and convolutions show it: the unit in use, and digits of
/// a hash of some. Machines of one kind reproduce each other's trainings.
///
/// Blocks of sums depend on the cache sizes, so processors with the same instructions can differ.
pub fn kind() -> String {
    let unit = match product_unit() {
        ProductUnit::Portable => return "portable".to_owned(),
        ProductUnit::Vectors => "vectors",
        ProductUnit::Tiles => "tiles",
    };
    format!("{unit}-{:08x}", probe() as u32)
}

/// Returns FNV-1a over products of sizes that occur in training, with small and large inner dimensions, and over
/// 3x3 and 5x5 convolutions and the gradients of their weights.
fn probe() -> u64 {
    let mut state = 1u32;
    // Any values with many significant bits will do.
    let mut next = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 8) as f32 / 16_777_216.0 - 0.5
    };
    let mut hash = 0xcbf2_9ce4_8422_2325_u64;
    let mut add = |values: &[f32]| {
        values.iter().for_each(|value| hash = (hash ^ u64::from(value.to_bits())).wrapping_mul(0x100_0000_01b3));
    };
    for [rows, inner, columns] in [[16, 9000, 24], [100, 784, 200], [10, 250, 100], [300, 70, 48]] {
        let (left, right) = (Matrix::from_fn(rows, inner, &mut next), Matrix::from_fn(inner, columns, &mut next));
        let mut out = Matrix::default();
        multiply(&mut out, left.view(), right.view());
        add(out.values());
        on_vectors(|| multiply(&mut out, left.view(), right.view()));
        add(out.values());
    }
    for kernel in [3, 5] {
        let (channels, outputs, results) = (32, 48, 11 - kernel);
        let mut work = WinogradBuffers::default();
        let maps = Matrix::from_fn(100, channels, &mut next);
        let weight = Matrix::from_fn(kernel * kernel * channels, outputs, &mut next);
        let convolution = Winograd::new([10, 10, channels], [0; 2], [kernel, 1], [results; 2], outputs);
        if let Some(convolution) = convolution {
            let out = convolution.forward(maps.values(), weight.view(), &mut work);
            add(&out);
            add(convolution.weight_gradient(maps.values(), &out, &mut work).values());
        }
    }
    hash ^ hash >> 32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kind_repeats_itself() {
        assert_eq!(kind(), kind());
        let (unit, digits) = kind().split_once('-').map(|(a, b)| (a.to_owned(), b.to_owned())).expect("two parts");
        assert!(["tiles", "vectors"].contains(&unit.as_str()) && digits.len() == 8, "{unit} {digits}");
    }
}
