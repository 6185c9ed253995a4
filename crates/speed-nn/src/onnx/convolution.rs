//! Convolutions of other programs' models on maps whose channels are last, several times as fast as tract's own.
//!
//! [`replace`] exchanges tract's convolutions for [`Convolutions`]. tract's maps are channels x height x width; with the
//! channels last, every vector of the processor holds outputs of one place, so that maps of 5 x 5 fill vectors as well as large
//! ones, and a window at the border leaves out its absent taps.

use std::collections::BTreeSet;
use std::mem::swap;
use std::sync::{Arc, Mutex, PoisonError};

use tract_onnx::prelude::{IntoTValue, OutletId, TValue, TVec, Tensor, TractResult, TypedFact, TypedModel, tvec};
use tract_onnx::tract_core::internal::{
    AxisOp, DatumExt, EvalContext, EvalOp, Op, StaticName, TypedModelPatch, TypedNode, TypedOp, as_op, op_as_typed_op,
    op_out_of_plan,
};
use tract_onnx::tract_core::ops::binary::TypedBinOp;
use tract_onnx::tract_core::ops::cnn::Conv;
use tract_onnx::tract_core::ops::math::{Max, Min};

use kernels::{lanes, run};
use packed::{Aligned, Convolution, reals};

mod kernels;
mod packed;
#[cfg(test)]
mod tests;

/// Maximum number of weights of a model's convolutions, with those that fill their last vectors: 1 GiB, as of a model's file. A
/// file may give the same weights to many convolutions.
const MAX_WEIGHTS: usize = 1 << 28;
/// Convolutions that follow one another, as an operation of tract.
#[derive(Debug)]
struct Steps {
    steps: Vec<Convolution>,
    spare: Spare,
}

/// Buffers of maps between two steps: a pair for each run of the model at a time, for all its operations. Fresh memory for every
/// map costs as much time as a small convolution.
type Spare = Arc<Mutex<Vec<[Aligned; 2]>>>;

#[derive(Clone, Debug)]
struct Convolutions(Arc<Steps>);

impl Steps {
    fn run(&self, map: &[f32], result: &mut [f32]) {
        let mut spare = self.spare.lock().unwrap_or_else(PoisonError::into_inner).pop().unwrap_or_default();
        let [from, to] = &mut spare;
        let (last, others) = self.steps.split_last().expect("a step");
        let mut length = None;
        for step in others {
            // Earlier values may stay, because a step writes every value of its result.
            run(step, length.map_or(map, |length| from.of(length)), to.of(step.len()));
            swap(from, to);
            length = Some(step.len());
        }
        run(last, length.map_or(map, |length| from.of(length)), result);
        self.spare.lock().unwrap_or_else(PoisonError::into_inner).push(spare);
    }

    fn axes(&self) -> [usize; 4] {
        let last = self.steps.last().expect("a step");
        [1, last.output[0], last.output[1], last.groups * last.outputs]
    }
}

impl PartialEq for Convolutions {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Eq for Convolutions {}

impl Op for Convolutions {
    fn name(&self) -> StaticName {
        "Convolutions".into()
    }

    op_as_typed_op!();
}

impl EvalOp for Convolutions {
    op_out_of_plan!();

    fn eval(&self, _: &EvalContext, inputs: TVec<TValue>) -> TractResult<TVec<TValue>> {
        let mut result = Tensor::zero::<f32>(&self.0.axes())?;
        let map = inputs[0].try_as_plain_ram()?.as_slice::<f32>()?;
        self.0.run(map, result.try_as_plain_ram_mut()?.as_slice_mut::<f32>()?);
        Ok(tvec!(result.into_tvalue()))
    }
}

impl TypedOp for Convolutions {
    fn output_facts(&self, _: &[&TypedFact]) -> TractResult<TVec<TypedFact>> {
        Ok(tvec!(f32::fact(self.0.axes())))
    }

    as_op!();
}

/// Exchanges the convolutions of a model that this module computes. Axes move before and after them; tract removes moves that
/// cancel each other.
pub(crate) fn replace(model: &mut TypedModel) -> TractResult<()> {
    replace_with(model, lanes())
}

fn replace_with(model: &mut TypedModel, lanes: usize) -> TractResult<()> {
    // A processor without vectors computes the multiplications and additions of these kernels in software.
    if lanes == 1 {
        return Ok(());
    }
    model.prop_consts()?;
    let (mut replaced, mut left, spare) = (BTreeSet::new(), MAX_WEIGHTS, Spare::default());
    for id in 0..model.nodes.len() {
        let (mut steps, mut last, mut next) = (Vec::new(), id, Some(id));
        while let Some(id) = next.filter(|id| !replaced.contains(id)) {
            let Some((step, end)) = bounded(model, id, lanes, &mut left) else { break };
            replaced.insert(id);
            steps.push(step);
            last = end;
            next = model.single_succ(end)?.map(|node| node.id);
        }
        if steps.is_empty() {
            continue;
        }
        let node = &model.nodes[id];
        let (name, map) = (node.name.clone(), node.inputs[0]);
        let mut patch = TypedModelPatch::default();
        let map = patch.tap_model(model, map)?;
        let map = patch.wire_node(format!("{name}.channels_last"), AxisOp::Move(1, 3), &[map])?;
        let steps = Convolutions(Arc::new(Steps { steps, spare: Arc::clone(&spare) }));
        let result = patch.wire_node(format!("{name}.convolutions"), steps, &map)?;
        let result = patch.wire_node(format!("{name}.channels_first"), AxisOp::Move(3, 1), &result)?[0];
        patch.shunt_outside(model, OutletId::new(last, 0), result)?;
        patch.apply(model)?;
    }
    Ok(())
}

/// Returns a convolution with the bounds that follow it, and the last of these nodes.
fn bounded(model: &TypedModel, id: usize, lanes: usize, left: &mut usize) -> Option<(Convolution, usize)> {
    let mut bounds = [f32::NEG_INFINITY, f32::INFINITY];
    model.nodes[id].op_as::<Conv>()?;
    let mut last = id;
    while let Ok(Some(next)) = model.single_succ(last) {
        match bound(model, next) {
            // A lower bound after an upper one wins if they cross, and is left to tract.
            Some((true, low)) if bounds == [f32::NEG_INFINITY, f32::INFINITY] => bounds[0] = low,
            Some((false, high)) if bounds[1] == f32::INFINITY => bounds[1] = high,
            _ => break,
        }
        last = next.id;
    }
    Some((Convolution::of(model, &model.nodes[id], bounds, lanes, left)?, last))
}

/// Returns a bound of a node's values, and whether it is the lower one.
fn bound(model: &TypedModel, node: &TypedNode) -> Option<(bool, f32)> {
    let operation = &node.op_as::<TypedBinOp>()?.0;
    let is_low = operation.is::<Max>();
    if !is_low && !operation.is::<Min>() {
        return None;
    }
    let constant = node.inputs.iter().find_map(|input| model.outlet_fact(*input).ok()?.konst.clone())?;
    match reals(&constant)?[..] {
        [bound] if !bound.is_nan() => Some((is_low, bound)),
        _ => None,
    }
}
