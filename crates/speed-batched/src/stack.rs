//! Arrays of several models as one tensor, and back.

use burn::tensor::{Device, Tensor, TensorData};

use crate::DeviceError;

/// `[models, rows, columns]` from one array `[rows, columns]` of each model, in row-major order.
///
/// # Panics
/// When an array is of another size.
pub(crate) fn stack<'a>(
    arrays: impl ExactSizeIterator<Item = &'a [f32]>,
    [rows, columns]: [usize; 2],
    device: &Device,
) -> Tensor<3> {
    let models = arrays.len();
    let mut values = Vec::with_capacity(models * rows * columns);
    for array in arrays {
        assert_eq!(array.len(), rows * columns, "values of an array");
        values.extend_from_slice(array);
    }
    Tensor::from_data(TensorData::new(values, [models, rows, columns]), device)
}

/// Returns the array of every model.
pub(crate) fn unstack(tensor: &Tensor<3>) -> Result<Vec<Vec<f32>>, DeviceError> {
    let [_, rows, columns] = tensor.dims();
    Ok(read(tensor)?.chunks_exact(rows * columns).map(<[f32]>::to_vec).collect())
}

/// Returns all values in row-major order.
pub(crate) fn read<const D: usize>(tensor: &Tensor<D>) -> Result<Vec<f32>, DeviceError> {
    tensor.try_to_vec_as().map_err(DeviceError::failed)
}
