//! `tract-peer MODEL.onnx IMAGES CHANNELSxHEIGHTxWIDTH BATCH LOGITS`: runs a model on the bytes of images, a batch at a time on one
//! thread, writes the logits as little-endian float32, and prints the seconds of all runs.

use std::error::Error;
use std::time::Instant;

use tract_onnx::prelude::{Framework, InferenceModelExt, IntoRunnable, IntoTValue, Tensor, tvec};

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [model, images, shape, batch, out] = &arguments[..] else {
        return Err("usage: tract-peer MODEL.onnx IMAGES CHANNELSxHEIGHTxWIDTH BATCH LOGITS".into());
    };
    let shape = shape.split('x').map(str::parse).collect::<Result<Vec<usize>, _>>()?;
    let plan = tract_onnx::onnx().model_for_path(model)?.into_optimized()?.into_runnable()?;
    let (images, pixels, batch) = (std::fs::read(images)?, shape.iter().product::<usize>(), batch.parse::<usize>()?);
    let start = Instant::now();
    let mut logits = Vec::new();
    for images in images.chunks(batch * pixels) {
        let images = Tensor::from_shape(&[&[images.len() / pixels], &shape[..]].concat(), images)?;
        let outputs = plan.run(tvec!(images.into_tvalue()))?;
        let values = outputs.get(1).ok_or("expected two outputs")?.try_as_plain_ram()?.as_slice::<f32>()?;
        logits.extend(values.iter().flat_map(|value| value.to_le_bytes()));
    }
    println!("{}", start.elapsed().as_secs_f64());
    Ok(std::fs::write(out, logits)?)
}
