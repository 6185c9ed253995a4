//! Prints achieved and possible GFLOP/s of each operation of a training step: `roofline [NETWORK...]`. `scripts/roofline`
//! runs it on one core.
#![expect(clippy::print_stdout, reason = "the result")]

use std::hint::black_box;
use std::time::{Duration, Instant};

use burn::tensor::{Device, Tensor};
use pulp::{Arch, Simd, WithSimd};
use speed_core::random::Streams;
use speed_nn::convolution::Geometry;
use speed_nn::init;
use speed_nn::matrix::{View, product, product_unit};
use speed_nn::ops::pooled_conv::{PooledWindows, pooled_conv};

#[global_allocator]
static ALLOCATOR: speed_nn::allocator::Allocator = speed_nn::allocator::ALLOCATOR;

/// An operation is repeated this often at least, and for this long.
const REPETITIONS: usize = 5;
const LEAST_TIME: Duration = Duration::from_millis(200);
/// Rows of a network, and how many of them are also added up.
const ROWS: usize = 12;
const LONGEST: usize = 3;
/// More sums than two units can begin before the first one ends.
const SUMS: usize = 12;
const TERMS: usize = 1 << 15;

/// A layer with its number of outputs.
#[derive(Clone, Copy)]
enum Layer {
    Conv(Geometry, usize),
    /// The outputs are those of the convolution, so they are the inputs here.
    Transposed(Geometry, usize),
    Pooled(PooledWindows, usize),
    Dense(usize, usize),
}

const PASSES: [&str; 3] = ["forward", "gradient of inputs", "gradient of weights"];
/// How often a step runs each of the passes.
type Passes = [usize; 3];
/// Layers, their images and passes.
type Step = Vec<(Layer, usize, Passes)>;

/// All executions of an operation in a step.
struct Row {
    operation: String,
    pass: &'static str,
    flop: f64,
    seconds: f64,
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    speed_nn::allocator::keep_freed_memory();
    let chosen: Vec<String> = std::env::args().skip(1).collect();
    let (mut peak, mut tables) = (0.0_f64, Vec::new());
    for (name, layers) in networks().ok_or("a kernel is larger than its maps")? {
        if chosen.is_empty() || chosen.iter().any(|chosen| chosen == name) {
            tables.push((name, rows(&layers)));
            peak = peak.max(Arch::new().dispatch(Fused) / lowest(|| (), |()| Arch::new().dispatch(Fused)));
        }
    }
    let (unit, possible) = (product_unit(), peak / 1e9);
    println!(
        "Large products: {unit}. Possible: {possible:.1} GFLOP/s, by fused multiply-adds of vectors in registers.\n"
    );
    println!("| network | operation | pass | GFLOP | ms | GFLOP/s | share |\n|---|---|---|---:|---:|---:|---:|");
    for (name, rows) in tables {
        let print = |Row { operation, pass, flop, seconds }: &Row| {
            let (speed, share) = (flop / seconds / 1e9, 100.0 * flop / seconds / peak);
            let (flop, time) = (flop / 1e9, 1e3 * seconds);
            println!("| {name} | {operation} | {pass} | {flop:.3} | {time:.3} | {speed:.1} | {share:.0} % |");
        };
        rows.iter().take(ROWS).for_each(print);
        let (operation, longest) = (format!("**the {LONGEST} longest**"), rows.iter().take(LONGEST));
        let [flop, seconds] = longest.fold([0.0; 2], |[flop, s], row| [flop + row.flop, s + row.seconds]);
        print(&Row { operation, pass: "", flop, seconds });
    }
    println!(
        "\nThe {ROWS} longest operations of a step. GFLOP (two for each multiply-add of the definition) and milliseconds (lowest \
         of at least {REPETITIONS} repetitions) are for all executions in a step. The share of the possible GFLOP/s can exceed \
         100 %: minimal filtering needs fewer products than the definition, and tiles (AMX) are faster than vectors."
    );
    Ok(())
}

/// Returns the networks and batches of `scripts/peers/run` by name. `None` if a kernel does not fit.
fn networks() -> Option<[(&'static str, Step); 5]> {
    let pooled = |side, channels, outputs| Some(Layer::Pooled(PooledWindows::new(side, side, channels, 5)?, outputs));
    let half = |side, channels| Geometry::half([side, side, channels], 5, 2);
    let small = [vec![pooled(28, 1, 16)?, pooled(12, 16, 32)?], dense(&[512, 64, 10])].concat();
    let reference = [(Geometry::same([28, 28, 1], 5, 1)?, 64), (Geometry::same([14, 14, 64], 5, 1)?, 128)];
    let reference = reference.map(|(geometry, outputs)| Layer::Conv(geometry, outputs));
    let reference = [reference.to_vec(), dense(&[6272, 384, 192, 10])].concat();
    let deeper = [(3, 1, 96), (3, 1, 96), (3, 2, 96), (3, 1, 192), (3, 1, 192), (3, 2, 192), (5, 1, 192)];
    let deeper = [convolutions(Geometry::same, [32, 32, 3], &deeper)?, dense(&[12_288, 192, 192, 10])].concat();
    let blocks = [(3, 1, 64), (3, 1, 64), (3, 2, 64), (3, 1, 128), (3, 1, 128), (3, 2, 128)];
    let discriminator = [
        convolutions(Geometry::half, [32, 32, 3], &blocks)?,
        vec![Layer::Conv(Geometry::valid([8, 8, 128], 3)?, 128)],
        convolutions(Geometry::half, [6, 6, 128], &[(1, 1, 128), (1, 1, 128)])?,
    ];
    let transposed = [(half(8, 256)?, 512), (half(16, 128)?, 256), (half(32, 3)?, 128)];
    let transposed = transposed.map(|(geometry, inputs)| Layer::Transposed(geometry, inputs));
    let generator = [dense(&[100, 8192]), transposed.to_vec()].concat();
    Some([
        ("small", trained(&small, 128)),
        ("reference", trained(&reference, 128)),
        ("deeper", trained(&deeper, 64)),
        ("student", student(&dense(&[784, 1000, 500, 250, 250, 250]), &dense(&[100, 500, 500, 784]))),
        ("conv-student", student(&discriminator.concat(), &generator)),
    ])
}

type Padding = fn([usize; 3], usize, usize) -> Option<Geometry>;

/// Returns successive convolutions, from maps `[height, width, channels]`. Sizes are kernels, strides and outputs.
fn convolutions(padding: Padding, mut map: [usize; 3], sizes: &[(usize, usize, usize)]) -> Option<Vec<Layer>> {
    let layers = sizes.iter().map(|&(kernel, stride, outputs)| {
        let geometry = padding(map, kernel, stride)?;
        map = [geometry.results()[0], geometry.results()[1], outputs];
        Some(Layer::Conv(geometry, outputs))
    });
    layers.collect()
}

fn dense(sizes: &[usize]) -> Vec<Layer> {
    sizes.windows(2).map(|sizes| Layer::Dense(sizes[0], sizes[1])).collect()
}

/// Returns the layers of a network in training, whose images need no gradient.
fn trained(layers: &[Layer], images: usize) -> Step {
    (0..).zip(layers).map(|(index, layer)| (*layer, images, [1, index.min(1), 1])).collect()
}

/// Returns both networks of a student without the logits. The discriminator is trained on 300 images, 100 of them generated.
/// For the generator, it reads 100 images of the pool and 100 generated images, which need a gradient.
fn student(discriminator: &[Layer], generator: &[Layer]) -> Step {
    let with = |all: &[Layer], passes| -> Step { all.iter().map(|layer| (*layer, 100, passes)).collect() };
    let (learned, taught) = (trained(discriminator, 300), trained(generator, 100));
    [learned, with(generator, [1, 0, 0]), taught, with(discriminator, [2, 1, 0])].concat()
}

/// Measures a network's operations, longest first. Equal operations have one row.
fn rows(layers: &[(Layer, usize, Passes)]) -> Vec<Row> {
    let mut rows: Vec<Row> = Vec::new();
    for measured in layers.iter().flat_map(|(layer, images, passes)| measure(*layer, *images, *passes)) {
        match rows.iter_mut().find(|row| row.operation == measured.operation && row.pass == measured.pass) {
            Some(row) => (row.flop, row.seconds) = (row.flop + measured.flop, row.seconds + measured.seconds),
            None => rows.push(measured),
        }
    }
    rows.sort_by(|one, other| other.seconds.total_cmp(&one.seconds));
    rows
}

fn measure(layer: Layer, images: usize, passes: Passes) -> Vec<Row> {
    let row = |name: &str, pass, times: usize, products: usize, seconds| {
        let (flop, seconds) = (2.0 * times as f64 * products as f64, times as f64 * seconds);
        Row { operation: format!("{name}, {images} images"), pass, flop, seconds }
    };
    let rows = |name: &str, products, operations: [&dyn Fn() -> Vec<f32>; 3]| -> Vec<Row> {
        let wanted = PASSES.into_iter().zip(passes).zip(operations).filter(|((_, times), _)| *times > 0);
        wanted.map(|((pass, times), run)| row(name, pass, times, products, lowest(|| (), |()| run()))).collect()
    };
    match layer {
        Layer::Dense(inputs, outputs) => {
            let [x, w, y] = [[images, inputs], [inputs, outputs], [images, outputs]].map(values);
            let [x, y] = [(&x, inputs), (&y, outputs)].map(|(values, width)| View::of_rows(values, [images, width]));
            let w = View::of_rows(&w, [inputs, outputs]);
            let (forward, by_inputs) = (|| product(x, w).into_vec(), || product(y, w.transposed()).into_vec());
            let by_weights = || product(x.transposed(), y).into_vec();
            let (name, products) = (format!("dense {inputs} to {outputs}"), images * inputs * outputs);
            rows(&name, products, [&forward, &by_inputs, &by_weights])
        }
        Layer::Conv(geometry, outputs) | Layer::Transposed(geometry, outputs) => {
            let (places, depth) = (images * geometry.positions(), geometry.patch_len());
            let [maps, w, y] = [[images, geometry.map_len()], [depth, outputs], [places, outputs]].map(values);
            let weight = View::of_rows(&w, [depth, outputs]);
            let convolve = || geometry.forward(&maps, weight).into_vec();
            let transpose = || geometry.map_gradient(weight, &y);
            let by_weights = || geometry.weight_gradient(&maps, &y, outputs).into_vec();
            let ([height, width, channels], kernel, stride) = (geometry.map(), geometry.kernel(), geometry.stride());
            let name = format!("conv {kernel}x{kernel}, stride {stride}, {height}x{width}x{channels} to {outputs}");
            let products = places * depth * outputs;
            match layer {
                Layer::Conv(..) => rows(&name, products, [&convolve, &transpose, &by_weights]),
                _ => rows(&format!("transpose of {name}"), products, [&transpose, &convolve, &by_weights]),
            }
        }
        Layer::Pooled(windows, outputs) => {
            let ([height, width, channels], depth) = (windows.map(), windows.patch_len());
            let positions = 4 * windows.pooled().iter().product::<usize>();
            let (products, side) = (images * positions * depth * outputs, (depth / channels).isqrt());
            let name = format!("conv {side}x{side}, pool 2x2, {height}x{width}x{channels} to {outputs}");
            let maps = recorded([images, height, width, channels]);
            let (weight, bias) = (recorded([depth, outputs]), recorded([outputs]));
            let plain = || (maps.clone().inner(), weight.clone().inner(), bias.clone().inner());
            let forward = lowest(plain, |(maps, weight, bias)| pooled_conv(maps, weight, bias, windows));
            let maps = if passes[1] > 0 { maps } else { maps.inner() };
            let output = || pooled_conv(maps.clone(), weight.clone(), bias.clone(), windows).sum();
            // The kernel computes both gradients together.
            let gradients = lowest(output, |output| output.backward());
            let (pass, both) = if passes[1] > 0 { ("both gradients", 2 * products) } else { (PASSES[2], products) };
            vec![row(&name, PASSES[0], 1, products, forward), row(&name, pass, 1, both, gradients)]
        }
    }
}

/// Returns the lowest time in seconds. Neither preparation nor the end of the result is timed.
fn lowest<T, U>(prepare: impl Fn() -> T, mut run: impl FnMut(T) -> U) -> f64 {
    let (begin, mut repetitions, mut lowest) = (Instant::now(), 0, f64::MAX);
    while repetitions < REPETITIONS || begin.elapsed() < LEAST_TIME {
        let (input, start) = (prepare(), Instant::now());
        let _result = black_box(run(input));
        lowest = lowest.min(start.elapsed().as_secs_f64());
        repetitions += 1;
    }
    lowest
}

fn values(shape: [usize; 2]) -> Vec<f32> {
    (0..shape[0] * shape[1]).map(|index| (index % 1009) as f32 / 1009.0 - 0.5).collect()
}

fn recorded<const D: usize>(shape: [usize; D]) -> Tensor<D> {
    init::normal(shape, 1.0, &mut Streams::new(1).stream("values", 0), &Device::flex().autodiff()).require_grad()
}

/// Fused multiplications and additions in the widest vectors. Returns their FLOP.
struct Fused;

impl WithSimd for Fused {
    type Output = f64;

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) -> f64 {
        let [factor, term] = black_box([0.5, 1.0]).map(|value| simd.splat_f32s(value));
        // Equal sums would be computed once.
        let mut sums = black_box(std::array::from_fn::<f32, SUMS, _>(|sum| sum as f32)).map(|sum| simd.splat_f32s(sum));
        for _ in 0..TERMS {
            for sum in &mut sums {
                *sum = simd.mul_add_f32s(*sum, factor, term);
            }
        }
        black_box(sums.map(|sum| simd.reduce_sum_f32s(sum)));
        2.0 * (SUMS * TERMS * S::F32_LANES) as f64
    }
}
