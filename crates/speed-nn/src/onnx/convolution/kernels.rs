//! The sums of a convolution in the processor's vectors. Each output is the sum of its products in one fixed order, with fused
//! multiplications and additions, so that its bits depend neither on the length of a vector nor on the number of threads.

use std::ops::Range;

use pulp::{Arch, Simd, WithSimd};

use super::packed::{Aligned, Convolution};

/// The numbers of windows whose sums are computed at a time.
const TILES: [usize; 7] = [12, 10, 9, 6, 5, 3, 1];
/// Number of values of windows that are copied at a time, which stay in a processor's second cache.
const COPIED: usize = 1 << 18;
/// Number of neighbouring windows of a channel that share the loads of its weights.
const NEIGHBOURS: usize = 4;

struct Lanes;

impl WithSimd for Lanes {
    type Output = usize;

    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) -> usize {
        S::F32_LANES
    }
}

/// Returns the number of values of a vector, which is 1 on a processor without vectors.
pub(super) fn lanes() -> usize {
    Arch::new().dispatch(Lanes)
}

struct Run<'a> {
    convolution: &'a Convolution,
    map: &'a [f32],
    result: &'a mut [f32],
}

/// Computes the result of a map, both height x width x channels. Every value of `result` is written.
pub(super) fn run(convolution: &Convolution, map: &[f32], result: &mut [f32]) {
    let run = Run { convolution, map, result };
    // Tests compare the lengths of vectors.
    #[cfg(target_arch = "x86_64")]
    if let (8, Some(short)) = (convolution.lanes, pulp::x86::V3::try_new()) {
        return Simd::vectorize(short, Short { short, run });
    }
    Arch::new().dispatch(run);
}

#[cfg(target_arch = "x86_64")]
struct Short<'a> {
    short: pulp::x86::V3,
    run: Run<'a>,
}

#[cfg(target_arch = "x86_64")]
impl pulp::NullaryFnOnce for Short<'_> {
    type Output = ();

    #[inline(always)]
    fn call(self) {
        self.run.with_simd(self.short);
    }
}

// Inline everything: a separate function would be compiled for the baseline target features.
impl WithSimd for Run<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let Self { convolution, map, result } = self;
        assert_eq!(convolution.lanes, S::F32_LANES, "the weights are packed for other vectors");
        if convolution.is_depthwise() {
            return depthwise(simd, convolution, map, result);
        }
        if convolution.is_pointwise() {
            return products(simd, convolution, 0, map, result);
        }
        let (places, depth) = (convolution.output[0] * convolution.output[1], convolution.depth());
        let outputs = convolution.groups * convolution.outputs;
        let count = (COPIED / depth / TILES[0]).clamp(1, 20) * TILES[0];
        let mut windows = Aligned::default();
        for first in (0..places).step_by(count) {
            let count = count.min(places - first);
            let windows = windows.of(count * depth);
            for group in 0..convolution.groups {
                for (place, window) in (first..).zip(windows.chunks_exact_mut(depth)) {
                    convolution.copy_window(map, group, place, window);
                }
                products(simd, convolution, group, windows, &mut result[first * outputs..][..count * outputs]);
            }
        }
    }
}

#[inline(always)]
fn products<S: Simd>(simd: S, convolution: &Convolution, group: usize, windows: &[f32], result: &mut [f32]) {
    let count = windows.len() / convolution.depth();
    // Two sums of each window, and three operands, are in registers.
    let most = S::REGISTER_COUNT.saturating_sub(3) / 2;
    // A tile also loads weights.
    let time = |size: &usize| count.div_ceil(*size) * (2 * size + 3);
    let size = TILES.into_iter().filter(|size| *size <= most.min(count)).min_by_key(time).unwrap_or(1);
    macro_rules! tiles {
        ($($size:literal)*) => {
            match size {
                $($size => tiles::<S, $size>(simd, convolution, group, windows, result),)*
                _ => unreachable!("a size of TILES"),
            }
        };
    }
    tiles!(12 10 9 6 5 3 1);
}

/// Computes the results of windows, `N` at a time. Windows are the inner loop, because the weights of two panels are in the first
/// or second cache, and those of all panels may be in none.
#[inline(always)]
fn tiles<S: Simd, const N: usize>(
    simd: S,
    convolution: &Convolution,
    group: usize,
    windows: &[f32],
    result: &mut [f32],
) {
    let panels = convolution.outputs.div_ceil(S::F32_LANES);
    let count = windows.len() / convolution.depth();
    for panel in (0..panels).step_by(2) {
        for first in (0..count).step_by(N) {
            // The last windows are computed again if they do not fill a tile.
            let at = At { group, panel, first: first.min(count - N) };
            if panel + 1 < panels {
                tile::<S, N, 2>(simd, convolution, at, windows, result);
            } else {
                tile::<S, N, 1>(simd, convolution, at, windows, result);
            }
        }
    }
}

struct At {
    group: usize,
    panel: usize,
    first: usize,
}

/// Computes the results of `N` windows for `V` panels of outputs.
#[inline(always)]
fn tile<S: Simd, const N: usize, const V: usize>(
    simd: S,
    convolution: &Convolution,
    At { group, panel, first }: At,
    windows: &[f32],
    result: &mut [f32],
) {
    let (depth, outputs, lanes) = (convolution.depth(), convolution.outputs, S::F32_LANES);
    let place = group * outputs.div_ceil(lanes) + panel;
    let (weights, _) = S::as_simd_f32s(&convolution.weights);
    let (bias, _) = S::as_simd_f32s(&convolution.bias);
    let mut panels = [&weights[..0]; V];
    let mut start = [simd.splat_f32s(0.0); V];
    for (v, (panel, start)) in panels.iter_mut().zip(&mut start).enumerate() {
        *panel = &weights[(place + v) * depth..][..depth];
        *start = bias[place + v];
    }
    let mut from = [&windows[..0]; N];
    for (n, from) in from.iter_mut().enumerate() {
        *from = &windows[(first + n) * depth..][..depth];
    }
    let sums = sums::<S, N, V>(simd, start, from, panels);
    let bounds = convolution.bounds.map(|bound| simd.splat_f32s(bound));
    for (window, sums) in (first..).zip(sums) {
        let result = &mut result[(window * convolution.groups + group) * outputs..][..outputs];
        let mut rest = &mut result[panel * lanes..];
        for sum in sums {
            let (to, others) = rest.split_at_mut(lanes.min(rest.len()));
            store(simd, bounds, sum, to);
            rest = others;
        }
    }
}

/// Adds the products of `N` windows with `V` panels. Sums in an array of this function's own are in registers; those of an array
/// that is also indexed by a variable would be in memory.
#[inline(always)]
fn sums<S: Simd, const N: usize, const V: usize>(
    simd: S,
    start: [S::f32s; V],
    windows: [&[f32]; N],
    panels: [&[S::f32s]; V],
) -> [[S::f32s; V]; N] {
    let mut all = [start; N];
    let depth = panels[0].len();
    // One check of each length here instead of one in every step.
    assert!(windows.iter().all(|window| window.len() == depth) && panels.iter().all(|panel| panel.len() == depth));
    for place in 0..depth {
        for (sums, window) in all.iter_mut().zip(&windows) {
            let value = simd.splat_f32s(window[place]);
            for (sum, panel) in sums.iter_mut().zip(&panels) {
                *sum = simd.mul_add_f32s(value, panel[place], *sum);
            }
        }
    }
    all
}

/// Computes results that read one channel each: for each row of the result and two vectors of channels, window after window.
#[inline(always)]
fn depthwise<S: Simd>(simd: S, convolution: &Convolution, map: &[f32], result: &mut [f32]) {
    let channels = convolution.groups;
    let across: Vec<_> = (0..convolution.output[1]).map(|column| convolution.within(1, column)).collect();
    for (row, result) in result.chunks_exact_mut(across.len() * channels).enumerate() {
        let down = convolution.within(0, row);
        let mut channel = 0;
        while channel + 2 * S::F32_LANES <= channels {
            windows::<S, 2>(simd, convolution, channel, &down, &across, map, result);
            channel += 2 * S::F32_LANES;
        }
        while channel < channels {
            // The last vector repeats some channels if they do not fill it.
            let first = channel.min(channels - S::F32_LANES);
            windows::<S, 1>(simd, convolution, first, &down, &across, map, result);
            channel += S::F32_LANES;
        }
    }
}

/// The taps along an axis that lie within the map, and the first one's place in the map.
type Within = (Range<usize>, usize);

/// Computes a row of results for `V` vectors of channels.
#[inline(always)]
fn windows<S: Simd, const V: usize>(
    simd: S,
    convolution: &Convolution,
    channel: usize,
    down: &Within,
    across: &[Within],
    map: &[f32],
    result: &mut [f32],
) {
    let mut column = 0;
    while let Some(first) = across.get(column) {
        // Windows with all taps are neighbours in the map.
        let is_inner = |within: &Within| within.0.len() == convolution.kernel[1];
        let has_neighbours = is_inner(first) && across.get(column + NEIGHBOURS - 1).is_some_and(is_inner);
        let result = &mut result[column * convolution.groups..];
        if has_neighbours {
            neighbours::<S, NEIGHBOURS, V>(simd, convolution, channel, [down, first], map, result);
            column += NEIGHBOURS;
        } else {
            neighbours::<S, 1, V>(simd, convolution, channel, [down, first], map, result);
            column += 1;
        }
    }
}

/// Computes the results of `N` neighbouring windows for `V` vectors of channels.
#[inline(always)]
fn neighbours<S: Simd, const N: usize, const V: usize>(
    simd: S,
    convolution: &Convolution,
    channel: usize,
    [(rows, top), (columns, left)]: [&Within; 2],
    map: &[f32],
    result: &mut [f32],
) {
    let (channels, length) = (convolution.groups, V * S::F32_LANES);
    let steps = [convolution.dilations[0] * convolution.input[1] * channels, convolution.dilations[1] * channels];
    let is_empty = rows.is_empty() || columns.is_empty();
    let (rows, columns) = if is_empty { (0..0, 0..0) } else { (rows.clone(), columns.clone()) };
    let reach = if is_empty { 0 } else { (rows.len() - 1) * steps[0] + (columns.len() - 1) * steps[1] + length };
    let mut from = [&map[..0]; N];
    for (n, from) in from.iter_mut().enumerate() {
        let place = top * convolution.input[1] + left + n * convolution.strides[1];
        *from = if is_empty { from } else { &map[place * channels + channel..][..reach] };
    }
    let sums = neighbouring_sums::<S, N, V>(simd, convolution, channel, [rows, columns], steps, from);
    let bounds = convolution.bounds.map(|bound| simd.splat_f32s(bound));
    for (result, sums) in result.chunks_mut(channels).zip(sums) {
        let (to, _) = S::as_mut_simd_f32s(&mut result[channel..][..length]);
        for (to, sum) in to.iter_mut().zip(sums) {
            *to = bounded(simd, bounds, sum);
        }
    }
}

/// Adds the products of `N` windows with the weights of `V` vectors of channels. See [`sums`].
#[inline(always)]
fn neighbouring_sums<S: Simd, const N: usize, const V: usize>(
    simd: S,
    convolution: &Convolution,
    channel: usize,
    [rows, columns]: [Range<usize>; 2],
    [down, right]: [usize; 2],
    windows: [&[f32]; N],
) -> [[S::f32s; V]; N] {
    let (channels, length, reach) = (convolution.groups, V * S::F32_LANES, windows[0].len());
    assert!(windows.iter().all(|window| window.len() == reach));
    let mut start = [simd.splat_f32s(0.0); V];
    for (start, bias) in start.iter_mut().zip(S::as_simd_f32s(&convolution.bias[channel..][..length]).0) {
        *start = *bias;
    }
    let mut all = [start; N];
    for (row, tap) in rows.enumerate() {
        let weights = &convolution.weights[tap * convolution.kernel[1] * channels + channel..];
        for (column, tap) in columns.clone().enumerate() {
            let (weights, _) = S::as_simd_f32s(&weights[tap * channels..][..length]);
            let at = row * down + column * right;
            for (sums, window) in all.iter_mut().zip(&windows) {
                let (values, _) = S::as_simd_f32s(&window[at..at + length]);
                for ((sum, value), weight) in sums.iter_mut().zip(values).zip(weights) {
                    *sum = simd.mul_add_f32s(*value, *weight, *sum);
                }
            }
        }
    }
    all
}

/// Returns a sum within the bounds. A sum that is not a number stays so, because it is the second operand.
#[inline(always)]
fn bounded<S: Simd>(simd: S, [low, high]: [S::f32s; 2], sum: S::f32s) -> S::f32s {
    simd.min_f32s(high, simd.max_f32s(low, sum))
}

#[inline(always)]
fn store<S: Simd>(simd: S, bounds: [S::f32s; 2], sum: S::f32s, result: &mut [f32]) {
    let sum = bounded(simd, bounds, sum);
    if result.len() == S::F32_LANES {
        S::as_mut_simd_f32s(result).0[0] = sum;
    } else {
        simd.partial_store_f32s(result, sum);
    }
}
