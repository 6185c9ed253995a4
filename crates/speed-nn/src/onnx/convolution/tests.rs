//! Results against tract's own convolutions, for any shapes, bounds and lengths of vectors.

use tract_onnx::prelude::{IntoRunnable, SpecialOps, tvec};
use tract_onnx::tract_core::ops::cnn::{KernelFormat, PaddingSpec, PoolSpec};
use tract_onnx::tract_core::ops::math;
use tract_onnx::tract_core::ops::nn::DataFormat;

use super::*;

struct Numbers(u64);

impl Numbers {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
        self.0 >> 33
    }

    fn among(&mut self, range: std::ops::RangeInclusive<usize>) -> usize {
        range.start() + self.next() as usize % (range.end() - range.start() + 1)
    }

    fn tensor(&mut self, axes: &[usize]) -> Tensor {
        let values: Vec<f32> = (0..axes.iter().product()).map(|_| self.next() as f32 / 2e9 - 0.5).collect();
        Tensor::from_shape(axes, &values).expect("a tensor")
    }
}

/// Adds a convolution: groups, channels and outputs of a group, kernel, and padding.
fn convolution(
    model: &mut TypedModel,
    map: OutletId,
    [groups, channels, outputs]: [usize; 3],
    kernel: [usize; 2],
    padding: PaddingSpec,
    numbers: &mut Numbers,
) -> OutletId {
    let name = format!("convolution {}", model.nodes.len());
    let weights = numbers.tensor(&[groups * outputs, channels, kernel[0], kernel[1]]);
    let weights = model.add_const(format!("weights of {name}"), weights).expect("weights");
    // A missing bias is one zero.
    let bias = match numbers.among(0..=3) {
        0 => Tensor::from_shape(&[], &[0.0_f32]).expect("a bias"),
        _ => numbers.tensor(&[groups * outputs]),
    };
    let bias = model.add_const(format!("bias of {name}"), bias).expect("a bias");
    let mut two = |most| tvec!(numbers.among(1..=most), numbers.among(1..=most));
    let (dilations, strides) = (two(2), two(3));
    let pool_spec = PoolSpec::new(
        DataFormat::NCHW,
        tvec!(kernel[0], kernel[1]),
        padding,
        Some(dilations),
        Some(strides),
        groups * channels,
        groups * outputs,
    );
    let conv = Conv { pool_spec, kernel_fmt: KernelFormat::OIHW, group: groups, q_params: None };
    model.wire_node(name, conv, &[map, weights, bias]).expect("a convolution")[0]
}

fn bound(model: &mut TypedModel, map: OutletId, is_low: bool, value: f32) -> OutletId {
    let name = format!("bound {}", model.nodes.len());
    let value = Tensor::from_shape(&[1, 1, 1, 1], &[value]).expect("a bound");
    let value = model.add_const(format!("value of {name}"), value).expect("a bound");
    let operation = if is_low { math::max() } else { math::min() };
    model.wire_node(name, operation, &[map, value]).expect("a bound")[0]
}

fn source(axes: [usize; 4]) -> (TypedModel, OutletId) {
    let mut model = TypedModel::default();
    let map = model.add_source("map", f32::fact(axes)).expect("a source");
    (model, map)
}

fn result(model: TypedModel, map: &Tensor) -> Vec<f32> {
    let results = model.into_runnable().and_then(|plan| plan.run(tvec!(map.clone().into_tvalue()))).expect("a result");
    reals(&results[0]).expect("reals")
}

/// Returns the numbers of convolutions of tract and of this module.
fn counts(model: &TypedModel) -> [usize; 2] {
    let count = |is_counted: fn(&TypedNode) -> bool| model.nodes().iter().filter(|node| is_counted(node)).count();
    [count(|node| node.op_is::<Conv>()), count(|node| node.op_is::<Convolutions>())]
}

/// Compares all results with tract's, and their bits for different vectors. Returns the exchanged and optimised model.
fn check(mut model: TypedModel, output: OutletId, map: &Tensor, case: &str) -> TypedModel {
    model.select_output_outlets(&[output]).expect("an output");
    let expected = result(model.clone(), map);
    let largest = expected.iter().fold(1.0_f32, |largest, value| largest.max(value.abs()));
    let mut exchanged = Vec::new();
    let mut bits = Vec::new();
    let short = if cfg!(target_arch = "x86_64") { 8 } else { lanes() };
    for lanes in [lanes(), lanes().min(short)] {
        let mut changed = model.clone();
        replace_with(&mut changed, lanes).expect("exchanged");
        let changed = changed.into_optimized().expect("optimised");
        let found = result(changed.clone(), map);
        assert_eq!(found.len(), expected.len(), "{case}");
        for (found, expected) in found.iter().zip(&expected) {
            assert!((found - expected).abs() <= 1e-5 * largest, "{case}: {found} instead of {expected}");
        }
        bits.push(found.into_iter().map(f32::to_bits).collect::<Vec<_>>());
        exchanged.push(changed);
    }
    assert!(bits[0] == bits[1], "{case}: other bits for other vectors");
    exchanged.swap_remove(0)
}

#[test]
fn results_are_those_of_tract() {
    let mut numbers = Numbers(1);
    for number in 0..400 {
        let sizes = match number % 5 {
            // Depthwise, pointwise, dense, groups, and groups that read one channel each.
            0 => [numbers.among(1..=70), 1, 1],
            1 | 2 => [1, numbers.among(1..=40), numbers.among(1..=70)],
            3 => [numbers.among(2..=5), numbers.among(2..=6), numbers.among(1..=20)],
            _ => [numbers.among(2..=20), 1, numbers.among(2..=3)],
        };
        let kernel = if number % 5 == 1 { [1, 1] } else { [numbers.among(1..=5), numbers.among(1..=5)] };
        let mut side = || if numbers.among(0..=3) == 0 { numbers.among(1..=5) } else { numbers.among(1..=40) };
        let [height, width] = [side(), side()];
        let mut two = |most| tvec!(numbers.among(0..=most), numbers.among(0..=most));
        let fits = height > 2 * kernel[0] && width > 2 * kernel[1];
        let padding = match number % 3 {
            0 if fits => PaddingSpec::Explicit(two(2), two(3)),
            1 if fits => PaddingSpec::Valid,
            2 => PaddingSpec::SameLower,
            _ => PaddingSpec::SameUpper,
        };
        let (mut model, map) = source([1, sizes[0] * sizes[1], height, width]);
        let mut output = convolution(&mut model, map, sizes, kernel, padding.clone(), &mut numbers);
        // Also bounds that cross.
        let bounds = [(true, -0.3), (false, 0.4), (true, 0.6), (false, -0.5)];
        for _ in 0..numbers.among(0..=3) {
            let (is_low, value) = bounds[numbers.among(0..=3)];
            output = bound(&mut model, output, is_low, value);
        }
        let picture = numbers.tensor(&[1, sizes[0] * sizes[1], height, width]);
        let case = format!(
            "{number}: groups, channels, outputs {sizes:?}, kernel {kernel:?}, {padding:?}, {height} x {width}"
        );
        let changed = check(model, output, &picture, &case);
        assert_eq!(counts(&changed), if lanes() > 1 { [0, 1] } else { [1, 0] }, "{case}");
    }
}

/// A block of a mobile network: the middle is one operation, and axes move at its ends only.
#[test]
fn steps_share_buffers_and_give_the_same_bits_in_every_thread() {
    let mut numbers = Numbers(2);
    let (mut model, map) = source([1, 24, 9, 11]);
    let mut output = map;
    for sizes in [[1, 24, 40], [40, 1, 1], [1, 40, 24]] {
        output = convolution(&mut model, output, sizes, [3, 3], PaddingSpec::SameUpper, &mut numbers);
        output = bound(&mut model, output, true, 0.0);
        output = bound(&mut model, output, false, 6.0);
    }
    let pictures = [0; 4].map(|_| numbers.tensor(&[1, 24, 9, 11]));
    let changed = check(model, output, &pictures[0], "a block");
    assert_eq!(counts(&changed), if lanes() > 1 { [0, 1] } else { [3, 0] });
    let plan = changed.into_runnable().expect("a plan");
    let run = |picture: &Tensor| {
        let results = plan.run(tvec!(picture.clone().into_tvalue())).expect("a result");
        reals(&results[0]).expect("reals").into_iter().map(f32::to_bits).collect::<Vec<_>>()
    };
    let alone = pictures.each_ref().map(run);
    std::thread::scope(|scope| {
        let threads = pictures.each_ref().map(|picture| scope.spawn(move || [0; 20].map(|_| run(picture))));
        for (thread, alone) in threads.into_iter().zip(&alone) {
            assert!(thread.join().expect("joined").iter().all(|found| found == alone));
        }
    });
}

#[test]
fn other_forms_are_left_to_tract() {
    // Two pictures, weights that are not constant, a dilation of which products overflow, and infinite weights.
    let mut numbers = Numbers(3);
    for form in 0..4 {
        let (mut model, map) = source([if form == 0 { 2 } else { 1 }, 3, 6, 6]);
        let weights = if form == 1 {
            model.add_source("weights", f32::fact([4, 3, 1, 1])).expect("a source")
        } else if form == 3 {
            let infinite = Tensor::from_shape(&[4, 3, 1, 1], &[f32::INFINITY; 12]).expect("weights");
            model.add_const("weights", infinite).expect("weights")
        } else {
            model.add_const("weights", numbers.tensor(&[4, 3, 1, 1])).expect("weights")
        };
        let bias = model.add_const("bias", numbers.tensor(&[4])).expect("a bias");
        let dilations = Some(tvec!(if form == 2 { 1 << 40 } else { 1 }; 2));
        let (kernel, padding) = (tvec!(1, 1), PaddingSpec::Valid);
        let pool_spec = PoolSpec::new(DataFormat::NCHW, kernel, padding, dilations, None, 3, 4);
        let conv = Conv { pool_spec, kernel_fmt: KernelFormat::OIHW, group: 1, q_params: None };
        let output = model.wire_node("convolution", conv, &[map, weights, bias]).expect("a convolution");
        model.select_output_outlets(&output).expect("an output");
        replace(&mut model).expect("unchanged");
        assert_eq!(counts(&model), [1, 0], "{form}");
    }
}

#[test]
fn sums_that_are_not_numbers_stay_so() {
    let mut numbers = Numbers(4);
    for sizes in [[1, 3, 4], [70, 1, 1]] {
        let axes = [1, sizes[0] * sizes[1], 6, 6];
        let (mut model, map) = source(axes);
        let mut output = convolution(&mut model, map, sizes, [1, 1], PaddingSpec::Valid, &mut numbers);
        for (is_low, value) in [(true, 0.0), (false, 6.0)] {
            output = bound(&mut model, output, is_low, value);
        }
        model.select_output_outlets(&[output]).expect("an output");
        replace(&mut model).expect("exchanged");
        let map = Tensor::from_shape(&axes, &vec![f32::NAN; axes.iter().product()]).expect("a map");
        assert!(lanes() == 1 || result(model, &map).iter().all(|value| value.is_nan()), "{sizes:?}");
    }
}

#[test]
fn weights_count_with_those_that_fill_vectors() {
    let (mut model, map) = source([1, 3, 6, 6]);
    let output = convolution(&mut model, map, [1, 3, 4], [1, 1], PaddingSpec::Valid, &mut Numbers(5));
    // Four outputs fill a vector of eight, and each reads three channels.
    for (mut left, fits) in [(23, false), (24, true)] {
        assert_eq!(bounded(&model, output.node, 8, &mut left).is_some(), fits);
        assert_eq!(left, if fits { 0 } else { 23 });
    }
}
