//! Between Burn's parameters and plain arrays.

use crate::TeacherError;
use burn::module::Param;
use burn::optim::GradientsParams;
use burn::tensor::{Device, Tensor, TensorData};
use speed_nn::dense::Dense;
use speed_nn::linear::Linear;
use speed_nn::matrix::Matrix;

/// A copy of a parameter's values.
pub(super) fn values<const D: usize>(param: &Param<Tensor<D>>) -> Result<Vec<f32>, TeacherError> {
    param.val().into_data().try_to_vec().map_err(TeacherError::device)
}

/// A copy of a dense layer's weight and bias.
pub(super) fn dense_values(layer: &Dense) -> Result<(Matrix, Vec<f32>), TeacherError> {
    let (weight, bias) = layer.parameters();
    let [rows, columns] = weight.val().dims();
    let mut matrix = Matrix::zeros(rows, columns);
    matrix.values_mut().copy_from_slice(&values(weight)?);
    Ok((matrix, values(bias)?))
}

/// A dense layer with a copy of its parameters.
pub(super) fn linear(layer: &Dense) -> Result<Linear, TeacherError> {
    let (weight, bias) = dense_values(layer)?;
    Ok(Linear::new(weight, bias))
}

/// Adds the gradient of a parameter, in the order of its values.
pub(super) fn register<const D: usize>(
    gradients: &mut GradientsParams,
    param: &Param<Tensor<D>>,
    values: &[f32],
    device: &Device,
) {
    let data = TensorData::new(values.to_vec(), param.val().dims());
    gradients.register(param.id, Tensor::<D>::from_data(data, device));
}
