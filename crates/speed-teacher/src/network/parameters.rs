//! Between Burn's parameters and plain arrays.

use crate::TeacherError;
use burn::module::{Module, ModuleVisitor, Param};
use burn::optim::GradientsParams;
use burn::tensor::{Device, Tensor, TensorData};
use speed_nn::dense::Dense;
use speed_nn::linear::Linear;
use speed_nn::matrix::Matrix;

/// Returns a copy of a parameter's values.
pub(super) fn values<const D: usize>(param: &Param<Tensor<D>>) -> Result<Vec<f32>, TeacherError> {
    param.val().into_data().try_to_vec().map_err(TeacherError::device)
}

/// Returns a copy of a dense layer's weight and bias.
pub(super) fn dense_values(layer: &Dense) -> Result<(Matrix, Vec<f32>), TeacherError> {
    let (weight, bias) = layer.parameters();
    let [rows, columns] = weight.val().dims();
    let mut matrix = Matrix::zeros(rows, columns);
    matrix.values_mut().copy_from_slice(&values(weight)?);
    Ok((matrix, values(bias)?))
}

/// Returns a dense layer with a copy of its parameters.
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

/// The values of one array of parameters.
#[derive(Clone, Debug, PartialEq)]
pub struct ParameterArray {
    /// `[inputs, outputs]` of weights (of a convolution, inputs are the values of a patch: kernel row, kernel column,
    /// channel), `[outputs]` of a bias.
    pub shape: Vec<usize>,
    /// In row-major order.
    pub values: Vec<f32>,
}

/// Returns a copy of every parameter of a network, in the order of its fields.
pub(crate) fn parameter_arrays(network: &impl Module) -> Result<Vec<ParameterArray>, TeacherError> {
    struct Visitor(Result<Vec<ParameterArray>, TeacherError>);
    impl ModuleVisitor for Visitor {
        fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
            let Ok(arrays) = &mut self.0 else { return };
            match values(param) {
                Ok(values) => arrays.push(ParameterArray { shape: param.val().dims().to_vec(), values }),
                Err(error) => self.0 = Err(error),
            }
        }
    }
    let mut visitor = Visitor(Ok(Vec::new()));
    network.visit(&mut visitor);
    visitor.0
}
