//! A convolution with its weights in the order in which the kernels read them.

use std::ops::{Deref, Range};

use tract_onnx::prelude::{DatumType, Tensor, TypedFact, TypedModel};
use tract_onnx::tract_core::internal::TypedNode;
use tract_onnx::tract_core::ops::cnn::{Conv, KernelFormat};
use tract_onnx::tract_core::ops::nn::DataFormat;

/// Number of values of a cache line.
const LINE: usize = 16;
/// Maximum number of weights of one output, which limits the windows that are copied at a time to 48 MiB.
const MAX_DEPTH: usize = 1 << 20;
/// Maximum length, stride, dilation and padding of an axis, so that no product of two overflows.
const MAX_AXIS: usize = 1 << 26;

/// Values that start at a cache line, because a vector in two lines takes twice the time.
#[derive(Debug, Default)]
pub(super) struct Aligned {
    values: Vec<f32>,
    start: usize,
}

/// A convolution of one picture's map with constant weights, and the bounds of its results.
#[derive(Debug)]
pub(super) struct Convolution {
    pub(super) groups: usize,
    /// Number of channels that an output reads: those of one group.
    pub(super) channels: usize,
    /// Number of outputs of one group.
    pub(super) outputs: usize,
    /// Height and width of the map.
    pub(super) input: [usize; 2],
    /// Height and width of the result.
    pub(super) output: [usize; 2],
    pub(super) kernel: [usize; 2],
    pub(super) strides: [usize; 2],
    pub(super) dilations: [usize; 2],
    /// Numbers of rows and columns of zeros before the map.
    pub(super) before: [usize; 2],
    /// Of every channel: tap x channel. Otherwise: group x panel x tap x channel x output of the panel, where a panel is
    /// one vector of outputs. Zeros complete a group's last panel.
    pub(super) weights: Aligned,
    /// In the order of the outputs, with zeros as in `weights`.
    pub(super) bias: Vec<f32>,
    /// The smallest and the largest result.
    pub(super) bounds: [f32; 2],
    /// Number of values of a vector.
    pub(super) lanes: usize,
}

impl Convolution {
    /// Returns a convolution of tract with its bounds, or nothing if it has another form or size than this module computes. Takes
    /// its weights from the number that is `left`.
    pub(super) fn of(
        model: &TypedModel,
        node: &TypedNode,
        bounds: [f32; 2],
        lanes: usize,
        left: &mut usize,
    ) -> Option<Self> {
        let conv = node.op_as::<Conv>()?;
        let facts = model.node_input_facts(node.id).ok()?;
        let [map, kernel, bias] = facts[..] else { return None };
        let &[1, read, height, width] = map.shape.as_concrete()? else { return None };
        let &[1, written, rows, columns] = node.outputs.first()?.fact.shape.as_concrete()? else { return None };
        let &[all, channels, ..] = kernel.shape.as_concrete()? else { return None };
        let spec = &conv.pool_spec;
        let is_real = facts.iter().all(|fact| fact.datum_type == DatumType::F32) && conv.q_params.is_none();
        if !is_real || conv.kernel_fmt != KernelFormat::OIHW || spec.data_format != DataFormat::NCHW {
            return None;
        }
        // A file's attributes may contradict its weights.
        let sizes = [conv.group.checked_mul(channels)?, all, all.checked_rem(conv.group)?];
        if sizes != [read, written, 0] || kernel.shape.as_concrete()?.get(2..) != Some(&spec.kernel_shape[..]) {
            return None;
        }
        let input = [height, width];
        let pads = spec.computed_padding(&input[..]);
        let mut convolution = Self {
            groups: conv.group,
            channels,
            outputs: all / conv.group,
            input,
            output: [rows, columns],
            kernel: spec.kernel_shape[..].try_into().ok()?,
            strides: spec.strides()[..].try_into().ok()?,
            dilations: spec.dilations()[..].try_into().ok()?,
            before: [pads.first()?.pad_before, pads.get(1)?.pad_before],
            weights: Aligned::default(),
            bias: Vec::new(),
            bounds,
            lanes,
        };
        let reals = |fact: &TypedFact| reals(fact.konst.as_deref()?);
        convolution.pack(&reals(kernel)?, &reals(bias)?, left).then_some(convolution)
    }

    /// Orders the weights, output x channel x tap, and a bias for every output or for all. Returns whether the sizes agree and
    /// are within the limits.
    fn pack(&mut self, kernel: &[f32], bias: &[f32], left: &mut usize) -> bool {
        let (taps, depth, lanes) = (self.taps(), self.depth(), self.lanes);
        let axes = [self.input, self.output, self.kernel, self.strides, self.dilations, self.before];
        let all = self.groups * self.outputs;
        let panels = if self.is_depthwise() { 1 } else { self.outputs.div_ceil(lanes) * lanes };
        let padded = self.groups.checked_mul(panels).and_then(|outputs| outputs.checked_mul(depth));
        if axes.as_flattened().iter().any(|axis| *axis > MAX_AXIS)
            || [self.input, self.output, self.strides, self.dilations].as_flattened().contains(&0)
            || !(1..=MAX_DEPTH).contains(&depth)
            || ![1, all].contains(&bias.len())
            // A product of zero with them is not zero, so that absent taps would count in some vectors and not in others.
            || kernel.iter().chain(bias).any(|value| !value.is_finite())
        {
            return false;
        }
        let Some(rest) = padded.and_then(|count| left.checked_sub(count)) else { return false };
        *left = rest;
        let bias = |output: usize| bias[output % bias.len()];
        if self.is_depthwise() {
            let weights = self.weights.of(kernel.len()).chunks_exact_mut(all).enumerate();
            for (tap, weights) in weights {
                for (to, from) in weights.iter_mut().zip(kernel.iter().skip(tap).step_by(taps)) {
                    *to = *from;
                }
            }
            self.bias = (0..all).map(bias).collect();
            return true;
        }
        let panels = self.outputs.div_ceil(lanes);
        let weights = self.weights.of(self.groups * panels * depth * lanes);
        for (number, weights) in weights.chunks_exact_mut(depth * lanes).enumerate() {
            let (group, first) = (number / panels, number % panels * lanes);
            // The outputs of this vector. The others stay zero.
            let outputs = group * self.outputs + first..group * self.outputs + self.outputs.min(first + lanes);
            for (lane, output) in outputs.clone().enumerate() {
                for (place, weight) in kernel[output * depth..][..depth].iter().enumerate() {
                    let (channel, tap) = (place / taps, place % taps);
                    weights[(tap * self.channels + channel) * lanes + lane] = *weight;
                }
            }
            self.bias.extend(outputs.map(bias));
            self.bias.resize((number + 1) * lanes, 0.0);
        }
        true
    }

    pub(super) fn taps(&self) -> usize {
        self.kernel[0] * self.kernel[1]
    }

    pub(super) fn depth(&self) -> usize {
        self.channels * self.taps()
    }

    /// Returns whether every output reads one channel of its own, and the channels fill a vector.
    pub(super) fn is_depthwise(&self) -> bool {
        self.channels == 1 && self.outputs == 1 && self.groups >= self.lanes
    }

    /// Returns whether the map's places are the windows already.
    pub(super) fn is_pointwise(&self) -> bool {
        let ones = [self.kernel, self.strides];
        ones == [[1; 2]; 2] && self.before == [0; 2] && self.input == self.output && self.groups == 1
    }

    pub(super) fn len(&self) -> usize {
        self.output[0] * self.output[1] * self.groups * self.outputs
    }

    /// Returns the taps along an axis that lie within the map for an output's place, and the first one's place in the map.
    pub(super) fn within(&self, axis: usize, place: usize) -> (Range<usize>, usize) {
        let (start, step, before) = (place * self.strides[axis], self.dilations[axis], self.before[axis]);
        let first = before.saturating_sub(start).div_ceil(step).min(self.kernel[axis]);
        let end = (self.input[axis] + before).saturating_sub(start).div_ceil(step).min(self.kernel[axis]);
        (first..end.max(first), (start + first * step).saturating_sub(before))
    }

    /// Copies the window of a group's outputs at a place: tap x channel, with zeros outside the map.
    pub(super) fn copy_window(&self, map: &[f32], group: usize, place: usize, window: &mut [f32]) {
        let (all, channels, step) = (self.groups * self.channels, self.channels, self.dilations[1]);
        let (rows, top) = self.within(0, place / self.output[1]);
        let (columns, left) = self.within(1, place % self.output[1]);
        for (tap, row) in window.chunks_exact_mut(self.kernel[1] * channels).enumerate() {
            if !rows.contains(&tap) || columns.is_empty() {
                row.fill(0.0);
                continue;
            }
            let at = top + (tap - rows.start) * self.dilations[0];
            let from = &map[(at * self.input[1] + left) * all + group * channels..];
            row[..columns.start * channels].fill(0.0);
            row[columns.end * channels..].fill(0.0);
            let row = &mut row[columns.start * channels..columns.end * channels];
            if channels == all && step == 1 {
                row.copy_from_slice(&from[..row.len()]);
                continue;
            }
            for (to, from) in row.chunks_exact_mut(channels).zip(from.chunks(step * all)) {
                to.copy_from_slice(&from[..channels]);
            }
        }
    }
}

impl Aligned {
    /// Returns the first `length` values, which are zero if the buffer had to grow, and as they were otherwise.
    pub(super) fn of(&mut self, length: usize) -> &mut [f32] {
        if self.values.len() < self.start + length {
            *self = Self { values: vec![0.0; length + LINE], start: 0 };
            self.start = self.values.as_ptr().align_offset(LINE * size_of::<f32>()).min(LINE);
        }
        &mut self.values[self.start..][..length]
    }
}

impl Deref for Aligned {
    type Target = [f32];

    fn deref(&self) -> &[f32] {
        &self.values[self.start..]
    }
}

pub(super) fn reals(tensor: &Tensor) -> Option<Vec<f32>> {
    tensor.try_as_plain_ram().ok()?.as_slice::<f32>().ok().map(<[f32]>::to_vec)
}
