//! Shared helpers of the operations on Burn's `flex` backend: access to tensor values, and a short way to record a
//! gradient.

use std::fmt;
use std::marker::PhantomData;

use burn::backend::autodiff::checkpoint::{base::Checkpointer, strategy::CheckpointStrategy};
use burn::backend::autodiff::grads::Gradients;
use burn::backend::autodiff::ops::{Backward, Ops, OpsKind};
use burn::backend::tensor::FloatTensor;
use burn::backend::{Autodiff, DispatchDevice, Flex, TensorMetadata};
use burn::tensor::{Bytes, DType, Shape, Tensor, TensorData};

use crate::matrix::{self, Matrix, View};

/// A tensor of Flex: shared memory, a shape and strides.
pub type Array = FloatTensor<Flex>;

/// The same tensor with its node in the graph of gradients.
pub type Recorded<C> = FloatTensor<Autodiff<Flex, C>>;

/// Returns whether a tensor holds `f32` values on Flex, with or without gradients.
pub fn on_flex<const D: usize>(tensor: &Tensor<D>) -> bool {
    tensor.dtype() == DType::F32 && matches!(tensor.device().inner().as_dispatch(), DispatchDevice::Flex(_))
}

/// Creates a tensor from values in row-major order, without a copy.
pub fn array(values: Vec<f32>, shape: impl Into<Shape>) -> Array {
    Array::from_data(TensorData::from_bytes(Bytes::from_elems(values), shape.into(), DType::F32))
}

/// Creates a tensor from a matrix, without a copy.
pub fn from_matrix(matrix: Matrix) -> Array {
    let shape = [matrix.rows(), matrix.columns()];
    array(matrix.into_vec(), shape)
}

/// Returns the tensor with its values in row-major order. Copies only if they are in another order.
pub fn contiguous(tensor: Array) -> Array {
    if tensor.as_slice::<f32>().is_some() { tensor } else { tensor.to_contiguous() }
}

/// Returns the values of a [`contiguous`] tensor.
///
/// # Panics
/// If the tensor is not contiguous or not of `f32`.
pub fn values(tensor: &Array) -> &[f32] {
    tensor.as_slice().expect("a contiguous tensor of f32")
}

/// Returns mutable values in row-major order. Copies only if the memory is shared.
///
/// # Panics
/// If they are not `f32`.
pub fn values_mut(tensor: &mut Array) -> &mut [f32] {
    let is_whole = |values: &[f32]| size_of_val(values) == tensor.bytes().len();
    if !tensor.as_slice().is_some_and(is_whole) {
        *tensor = tensor.to_contiguous();
    }
    tensor.storage_mut()
}

/// Returns rows of `length` values each. If `length` is 0 there are no rows.
pub(crate) fn rows<T>(values: &[T], length: usize) -> std::slice::ChunksExact<'_, T> {
    values.chunks_exact(length.max(1))
}

/// Returns mutable [`rows`].
pub(crate) fn rows_mut<T>(values: &mut [T], length: usize) -> std::slice::ChunksExactMut<'_, T> {
    values.chunks_exact_mut(length.max(1))
}

/// Returns the number of rows and columns.
pub fn size(tensor: &Array) -> [usize; 2] {
    let shape = tensor.shape();
    [shape[0], shape[1]]
}

/// Passes a two-dimensional tensor to `read` as an operand of a product. Transposed tensors are not copied.
pub fn with_view<R>(tensor: &Array, read: impl FnOnce(View<'_>) -> R) -> R {
    let strides = tensor.layout().strides();
    match usize::try_from(strides[0]).ok().zip(usize::try_from(strides[1]).ok()) {
        Some((down, right)) if down > 0 && right > 0 && (down == 1 || right == 1) => {
            let values = &tensor.storage::<f32>()[tensor.layout().start_offset()..];
            read(View::new(values, size(tensor), [down, right]))
        }
        _ => read(View::of_rows(values(&tensor.to_contiguous()), size(tensor))),
    }
}

/// Returns `left right`.
///
/// # Panics
/// If their sizes do not match.
pub fn multiply(left: &Array, right: &Array) -> Array {
    with_view(left, |left| with_view(right, |right| from_matrix(matrix::product(left, right))))
}

/// Computes the requested gradients of an operation's `N` inputs from the gradient of its output.
pub type Gradient<S, const N: usize> = fn(S, Array, [bool; N]) -> [Option<Array>; N];

/// Runs an operation on Flex and records its gradient: `forward` returns the output and the state that `backward`
/// needs.
///
/// Inputs are passed by value, so an operation may write into those that are not shared ([`values_mut`]). If `forward`
/// keeps values that it also returns, or that another operation may write to, it must keep them as a tensor, because
/// this second owner prevents writes.
///
/// # Panics
/// If the graph of gradients is broken, like Burn's own operations.
pub fn record<C: CheckpointStrategy, S: Clone + Send + fmt::Debug + 'static, const N: usize>(
    inputs: [Recorded<C>; N],
    forward: impl FnOnce([Array; N]) -> (Array, S),
    backward: Gradient<S, N>,
) -> Recorded<C> {
    let (mut arrays, mut nodes) = (Vec::with_capacity(N), Vec::with_capacity(N));
    for input in inputs {
        let (array, node) = input.into_parts();
        arrays.push(array);
        nodes.push(node);
    }
    let nodes = nodes.try_into().expect("a node for each input");
    let (output, state) = forward(arrays.try_into().expect("an array for each input"));
    match BackwardPass::<S>(PhantomData).prepare::<C>(nodes).compute_bound().stateful() {
        OpsKind::Tracked(step) => step.finish((state, backward), output),
        OpsKind::UnTracked(step) => step.finish(output),
    }
}

/// The backward pass of an operation whose forward pass returned `S`.
struct BackwardPass<S>(PhantomData<S>);

impl<S> fmt::Debug for BackwardPass<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("BackwardPass")
    }
}

impl<S: Clone + Send + fmt::Debug + 'static, const N: usize> Backward<Flex, N> for BackwardPass<S> {
    type State = (S, Gradient<S, N>);

    fn backward(self, ops: Ops<Self::State, N>, gradients: &mut Gradients, _: &mut Checkpointer) {
        let gradient = gradients.consume::<Flex>(&ops.node);
        let (state, backward) = ops.state;
        let wanted = ops.parents.each_ref().map(Option::is_some);
        for (node, gradient) in ops.parents.into_iter().zip(backward(state, gradient, wanted)) {
            if let (Some(node), Some(gradient)) = (node, gradient) {
                gradients.register::<Flex>(node.id, gradient);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use burn::tensor::{Device, Tensor};
    use speed_core::random::Streams;

    use crate::init;
    use crate::ops::activation::Activation;
    use crate::ops::add_scaled::add_scaled;
    use crate::ops::product::product;
    use crate::ops::weight_norm::weight_norm_dense;
    use crate::test_support::{assert_close, values};

    /// Burn may discard activations and recompute them. Operations keep the values they need themselves and are not
    /// asked to recompute.
    #[test]
    fn gradient_checkpointing_changes_no_gradient() {
        let gradients = |device: &Device| {
            let tensor = |shape: [usize; 2], index| {
                init::normal(shape, 1.0, &mut Streams::new(1).stream("checkpointing", index), device).require_grad()
            };
            let (x, a, b) = (tensor([64, 80], 1), tensor([80, 96], 2), tensor([96, 64], 3));
            let ones = Tensor::<1>::ones([96], device);
            let parts = [ones.clone(), ones * 0.1];
            let hidden = weight_norm_dense(x.exp().log(), a.clone(), parts, Activation::Relu, 0.0);
            let noise = tensor([64, 96], 4).inner();
            let gradients = product(add_scaled(hidden, noise, 0.5), b.clone()).tanh().sum().backward();
            [a, b].map(|weight| values(weight.grad(&gradients).expect("a gradient")))
        };
        let plain = gradients(&Device::flex().autodiff());
        let again = gradients(&Device::flex().autodiff().gradient_checkpointing());
        for (found, expected) in again.iter().zip(&plain) {
            assert_close(found, expected);
        }
    }
}
