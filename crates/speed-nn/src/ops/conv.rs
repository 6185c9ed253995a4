//! Convolution of any stride and padding, and its transpose, without bias and activation.

use burn::backend::Dispatch;
use burn::tensor::ops::{ConvOptions, ConvTransposeOptions};
use burn::tensor::{Tensor, module};

pub use crate::convolution::Geometry;

use crate::flex::{Array, array, contiguous, from_matrix, on_flex, size, values};
use crate::matrix::View;

operation!(ConvOps: conv([maps, weight], geometry: Geometry), conv_forward, conv_backward);
operation!(
    ConvTransposedOps: conv_transposed([results, weight], geometry: Geometry), transposed_forward, transposed_backward
);

/// Convolves maps `[images, height, width, channels]` with weights `[kernel * kernel * channels, outputs]`, in the order kernel row,
/// kernel column, channel: `[images, rows, columns, outputs]`.
pub fn conv(maps: Tensor<4>, weight: Tensor<2>, geometry: Geometry) -> Tensor<4> {
    assert_eq!(maps.dims()[1..], geometry.map(), "maps of a convolution");
    if !on_flex(&maps) {
        return conv_in_burn(maps, weight, geometry);
    }
    Tensor::from_dispatch(Dispatch::conv(maps.into_dispatch(), weight.into_dispatch(), geometry))
}

/// Applies the transposed convolution, from results `[images, rows, columns, outputs]` to maps
/// `[images, height, width, channels]`: the gradient of [`conv`](fn@conv) with respect to its maps, with the same
/// weights.
pub fn conv_transposed(results: Tensor<4>, weight: Tensor<2>, geometry: Geometry) -> Tensor<4> {
    assert_eq!(results.dims()[1..3], geometry.results(), "results of a convolution");
    if !on_flex(&results) {
        return conv_transposed_in_burn(results, weight, geometry);
    }
    Tensor::from_dispatch(Dispatch::conv_transposed(results.into_dispatch(), weight.into_dispatch(), geometry))
}

/// Returns the weights in Burn's layout, `[outputs, channels, kernel, kernel]`.
fn weight_in_burn(weight: Tensor<2>, geometry: Geometry) -> Tensor<4> {
    let ([_, outputs], [_, _, channels]) = (weight.dims(), geometry.map());
    weight.reshape([geometry.kernel(), geometry.kernel(), channels, outputs]).permute([3, 2, 0, 1])
}

/// Computes [`conv`](fn@conv) with Burn's own operations.
pub fn conv_in_burn(maps: Tensor<4>, weight: Tensor<2>, geometry: Geometry) -> Tensor<4> {
    let [[above, below], [left, right]] = geometry.padding();
    let maps = maps.permute([0, 3, 1, 2]).pad([(above, below), (left, right)], 0.0);
    let options = ConvOptions::new([geometry.stride(); 2], [0; 2], [1, 1], 1);
    module::conv2d(maps, weight_in_burn(weight, geometry), None, options).permute([0, 2, 3, 1])
}

/// Computes [`conv_transposed`](fn@conv_transposed) with Burn's own operations.
pub fn conv_transposed_in_burn(results: Tensor<4>, weight: Tensor<2>, geometry: Geometry) -> Tensor<4> {
    let ([height, width, _], [[above, below], [left, right]]) = (geometry.map(), geometry.padding());
    let options = ConvTransposeOptions::new([geometry.stride(); 2], [0; 2], [0; 2], [1, 1], 1);
    let framed =
        module::conv_transpose2d(results.permute([0, 3, 1, 2]), weight_in_burn(weight, geometry), None, options);
    // Pixels that no window reached are zero.
    let [_, _, rows, columns] = framed.dims();
    let missing = [(height + above + below).saturating_sub(rows), (width + left + right).saturating_sub(columns)];
    let framed = framed.pad([(0, missing[0]), (0, missing[1])], 0.0);
    framed.narrow(2, above, height).narrow(3, left, width).permute([0, 2, 3, 1])
}

fn view(weight: &Array) -> View<'_> {
    View::of_rows(values(weight), size(weight))
}

fn forward(maps: &Array, weight: &Array, geometry: Geometry) -> Array {
    let out = geometry.forward(values(maps), view(weight)).into_vec();
    let (images, [rows, columns]) = (values(maps).len() / geometry.map_len(), geometry.results());
    array(out, [images, rows, columns, size(weight)[1]])
}

fn transposed(results: &Array, weight: &Array, geometry: Geometry) -> Array {
    let maps = geometry.map_gradient(view(weight), values(results));
    let [height, width, channels] = geometry.map();
    let images = maps.len() / geometry.map_len();
    array(maps, [images, height, width, channels])
}

/// Returns the gradient of the weights from maps and from the gradient of results, whichever of the two was the input.
fn by_weight(maps: &Array, results: &Array, weight: &Array, geometry: Geometry) -> Array {
    from_matrix(geometry.weight_gradient(values(maps), values(results), size(weight)[1]))
}

/// The maps or the results that an operation was given, and the weights.
type Saved = ([Array; 2], Geometry);

fn conv_forward(inputs: [Array; 2], geometry: Geometry) -> (Array, Saved) {
    let [maps, weight] = inputs.map(contiguous);
    (forward(&maps, &weight, geometry), ([maps, weight], geometry))
}

fn conv_backward(
    ([maps, weight], geometry): Saved,
    gradient: Array,
    [maps_wanted, weight_wanted]: [bool; 2],
) -> [Option<Array>; 2] {
    let gradient = contiguous(gradient);
    let by_maps = maps_wanted.then(|| transposed(&gradient, &weight, geometry));
    [by_maps, weight_wanted.then(|| by_weight(&maps, &gradient, &weight, geometry))]
}

fn transposed_forward(inputs: [Array; 2], geometry: Geometry) -> (Array, Saved) {
    let [results, weight] = inputs.map(contiguous);
    (transposed(&results, &weight, geometry), ([results, weight], geometry))
}

fn transposed_backward(
    ([results, weight], geometry): Saved,
    gradient: Array,
    [results_wanted, weight_wanted]: [bool; 2],
) -> [Option<Array>; 2] {
    let gradient = contiguous(gradient);
    let by_results = results_wanted.then(|| forward(&gradient, &weight, geometry));
    [by_results, weight_wanted.then(|| by_weight(&gradient, &results, &weight, geometry))]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::matrix::on_vectors;
    use crate::test_support::{agree, random};

    #[test]
    fn convolutions_agree_with_burn() {
        check_convolutions();
        on_vectors(check_convolutions);
    }

    fn check_convolutions() {
        for (map, kernel, stride, outputs) in [
            ([9, 8, 3], 3, 1, 5),
            ([5, 6, 2], 5, 1, 4),
            ([2, 1, 1], 5, 1, 2),
            ([14, 14, 40], 5, 1, 48),
            ([7, 9, 4], 3, 2, 6),
            ([8, 8, 3], 5, 2, 8),
            ([9, 7, 2], 1, 3, 3),
            // For tiles, if available: one block and several, even and odd maps.
            ([6, 7, 16], 3, 1, 32),
            ([17, 16, 64], 5, 1, 128),
            ([8, 8, 16], 3, 2, 32),
            // With fewer products, without tiles: one result, odd and even numbers of results, and more than a block.
            ([3, 3, 16], 3, 1, 16),
            ([6, 9, 32], 3, 1, 16),
            ([32, 33, 16], 3, 1, 48),
            ([2, 1, 16], 5, 1, 16),
            ([5, 7, 16], 5, 1, 16),
            ([20, 21, 16], 5, 1, 48),
            // The same for maps that are folded, with many more pixels than results and not.
            ([16, 15, 4], 5, 2, 16),
            ([19, 17, 8], 5, 2, 32),
        ] {
            let geometries = [
                Geometry::same(map, kernel, stride),
                Geometry::half(map, kernel, stride),
                Geometry::valid(map, kernel),
            ];
            for geometry in geometries.into_iter().flatten() {
                let [rows, columns] = geometry.results();
                let maps = random([5, map[0], map[1], map[2]], 1);
                let weight = random([geometry.patch_len(), outputs], 2);
                let results = random([5, rows, columns, outputs], 3);
                agree(
                    [maps.clone()],
                    |[maps]| conv(maps, weight.clone(), geometry),
                    |[maps]| conv_in_burn(maps, weight.clone(), geometry),
                );
                agree(
                    [weight.clone()],
                    |[weight]| conv(maps.clone(), weight, geometry),
                    |[weight]| conv_in_burn(maps.clone(), weight, geometry),
                );
                agree(
                    [results.clone()],
                    |[results]| conv_transposed(results, weight.clone(), geometry),
                    |[results]| conv_transposed_in_burn(results, weight.clone(), geometry),
                );
                agree(
                    [weight],
                    |[weight]| conv_transposed(results.clone(), weight, geometry),
                    |[weight]| conv_transposed_in_burn(results.clone(), weight, geometry),
                );
            }
        }
    }

    #[test]
    fn sizes_without_a_window_have_no_geometry() {
        assert!(Geometry::valid([4, 9, 1], 5).is_none() && Geometry::valid([9, 4, 1], 5).is_none());
        assert!(Geometry::valid([4, 4, 0], 3).is_none() && Geometry::valid([4, 4, 1], 0).is_none());
        assert!(Geometry::same([0, 4, 1], 3, 1).is_none() && Geometry::same([4, 4, 1], 3, 0).is_none());
        assert_eq!(Geometry::valid([5, 6, 1], 5).map(|windows| windows.results()), Some([1, 2]));
        assert_eq!(Geometry::same([5, 6, 1], 5, 2).map(|windows| windows.results()), Some([3, 3]));
    }
}
