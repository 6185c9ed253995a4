//! Axes whose length depends on the number of images.
//!
//! A trace has numbers only. Two traces with different numbers of images differ exactly where a length depends on it.

use std::collections::HashMap;

use burn::backend::ir::{OperationIr, TensorId, TensorIr};

use crate::onnx::OnnxError;
use crate::training::Trace;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Length {
    /// The same for every number of images.
    Fixed(usize),
    /// Another one for another number of images.
    Batch,
}

/// The axes of every tensor of a trace.
#[derive(Debug)]
pub(crate) struct Shapes(HashMap<TensorId, Vec<Length>>);

impl Shapes {
    /// Compares two traces of one network with different numbers of images.
    pub(crate) fn new(trace: &Trace, other: &Trace) -> Result<Self, OnnxError> {
        let depends =
            |found: String| OnnxError::form("a network with the same operations for every number of images", found);
        let (first, second) = (&trace.captured.graph.operations, &other.captured.graph.operations);
        if first.len() != second.len() {
            return Err(depends(format!("{} or {} operations", first.len(), second.len())));
        }
        let mut shapes = HashMap::new();
        for (operation, other) in first.iter().zip(second) {
            let (tensors, others) = (operation.nodes(), other.nodes());
            if std::mem::discriminant(operation) != std::mem::discriminant(other) || tensors.len() != others.len() {
                return Err(depends(name(operation)));
            }
            for (tensor, other) in tensors.into_iter().zip(others) {
                if tensor.shape.num_dims() != other.shape.num_dims() {
                    return Err(depends(name(operation)));
                }
                shapes.insert(tensor.id, lengths(tensor, other));
            }
        }
        Ok(Self(shapes))
    }

    pub(crate) fn of(&self, tensor: &TensorIr) -> Vec<Length> {
        let fixed = || tensor.shape.iter().map(|&length| Length::Fixed(length)).collect();
        self.0.get(&tensor.id).cloned().unwrap_or_else(fixed)
    }

    /// Returns the shape of a tensor if it is the same for every number of images.
    pub(crate) fn fixed(&self, tensor: &TensorIr) -> Option<Vec<usize>> {
        let lengths = self.of(tensor).into_iter().map(|length| match length {
            Length::Fixed(length) => Some(length),
            Length::Batch => None,
        });
        lengths.collect()
    }
}

fn lengths(tensor: &TensorIr, other: &TensorIr) -> Vec<Length> {
    let pairs = tensor.shape.iter().zip(other.shape.iter());
    pairs.map(|(length, other)| if length == other { Length::Fixed(*length) } else { Length::Batch }).collect()
}

/// Returns Burn's name of an operation.
pub(crate) fn name(operation: &OperationIr) -> String {
    let text = format!("{operation:?}");
    let words = text.split([' ', '{']).next().unwrap_or_default();
    match operation {
        // The type of the numbers comes first.
        OperationIr::NumericFloat(..) | OperationIr::NumericInt(..) | OperationIr::Float(..) => {
            text.split(['(', ',']).nth(2).unwrap_or(words).trim().to_owned()
        }
        _ => words.split('(').nth(1).unwrap_or(words).to_owned(),
    }
}
