//! Models that run, in tract.

use std::sync::Arc;

use speed_data::ImageShape;
use tract_onnx::pb::ModelProto;
use tract_onnx::prelude::{Framework, InferenceModelExt, IntoRunnable, IntoTValue, Tensor, TypedRunnableModel, tvec};

use crate::onnx::OnnxError;

/// The type of the pixels that a model reads.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PixelType {
    /// Bytes of 0 to 255.
    #[default]
    Uint8,
    /// 32-bit floating-point numbers of 0 to 1.
    Float,
}

/// A model of [`Export`](crate::onnx::Export), ready to run.
#[derive(Debug)]
pub struct Runtime {
    plan: Arc<TypedRunnableModel>,
}

impl Runtime {
    /// Reads the bytes of a model.
    ///
    /// # Errors
    /// If tract refuses them.
    pub fn new(bytes: &[u8]) -> Result<Self, OnnxError> {
        let mut bytes = bytes;
        let model = tract_onnx::onnx().proto_model_for_read(&mut bytes);
        Self::of(&model.map_err(OnnxError::refused)?)
    }

    pub(crate) fn of(model: &ModelProto) -> Result<Self, OnnxError> {
        let model = tract_onnx::onnx().model_for_proto_model(model);
        let plan = model.and_then(InferenceModelExt::into_optimized).and_then(IntoRunnable::into_runnable);
        Ok(Self { plan: plan.map_err(OnnxError::refused)? })
    }

    /// Returns the logits of images, image after image. Their bytes are ordered image, channel, row, column.
    ///
    /// # Errors
    /// If tract refuses the images.
    pub fn logits(&self, bytes: &[u8], shape: ImageShape, pixels: PixelType) -> Result<Vec<f32>, OnnxError> {
        let [logits] = self.outputs([1], bytes, shape, pixels)?;
        Ok(logits)
    }

    /// Returns some of the model's outputs on images, by their places.
    pub(crate) fn outputs<const N: usize>(
        &self,
        places: [usize; N],
        bytes: &[u8],
        shape: ImageShape,
        pixels: PixelType,
    ) -> Result<[Vec<f32>; N], OnnxError> {
        let axes = [bytes.len() / shape.pixels().max(1), shape.channels, shape.height, shape.width];
        let images = match pixels {
            PixelType::Uint8 => Tensor::from_shape(&axes, bytes),
            PixelType::Float => {
                let reals: Vec<f32> = bytes.iter().map(|&byte| f32::from(byte) / 255.0).collect();
                Tensor::from_shape(&axes, &reals)
            }
        };
        let outputs =
            images.and_then(|images| self.plan.run(tvec!(images.into_tvalue()))).map_err(OnnxError::refused)?;
        let mut found = [const { Vec::new() }; N];
        for (place, found) in places.into_iter().zip(&mut found) {
            let values = outputs.get(place).ok_or_else(|| OnnxError::logits(format!("{} outputs", outputs.len())))?;
            let values = values.try_as_plain_ram().and_then(|plain| plain.as_slice::<f32>().map(<[f32]>::to_vec));
            *found = values.map_err(OnnxError::refused)?;
        }
        Ok(found)
    }
}
