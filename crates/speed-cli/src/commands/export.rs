//! `speed export`

use std::path::PathBuf;

use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{Args, ValueEnum};
use serde::Serialize;
use speed_core::printable_path;
use speed_experiment::model::{IMAGES, LOGITS, Model, OnnxModel, PROBABILITIES, PixelType};
use speed_experiment::training::write_private_output;
use speed_round::write_once;

use super::{Failure, usage};
use crate::bar::note;
use crate::output::{mark, not_public, print_report};

#[derive(Debug, Args)]
pub(crate) struct ExportOptions {
    /// The model: models/ROW/student-0.safetensors in a run's folder, or the weights of one of its teachers,
    /// stages/teachers/teacher-0000.bin
    #[arg(long, value_name = "FILE")]
    model: PathBuf,
    /// The encoder's ONNX file, for a model of an encoder's vectors: an ONNX model contains it
    #[arg(long, value_name = "FILE")]
    encoder: Option<PathBuf>,
    /// Format: onnx, or safetensors, the model's own file
    #[arg(long, value_name = "FORMAT", default_value = "onnx", hide_possible_values = true)]
    to: ModelFormat,
    /// File for the model; another file of this name is not overwritten
    #[arg(long, value_name = "FILE")]
    out: PathBuf,
    /// Pixels that an ONNX model reads: uint8, values of 0 to 255, or float, values of 0 to 1
    #[arg(long, value_name = "TYPE", default_value = "uint8", value_parser = pixels(), hide_possible_values = true)]
    pixels: PixelType,
    /// Also write the names of the classes as a JSON list, for runtimes that do not show a model's metadata
    #[arg(long, value_name = "FILE")]
    classes: Option<PathBuf>,
    /// Folder of datasets, for a teacher of a run that kept no students [default: SPEED_DATASETS, or ./datasets if it is not
    /// set]
    #[arg(long, value_name = "DIR")]
    datasets: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ModelFormat {
    /// Open Neural Network Exchange.
    Onnx,
    /// The format of models in runs.
    Safetensors,
}

/// A choice of the pixels of an ONNX model.
fn pixels() -> impl TypedValueParser<Value = PixelType> {
    PossibleValuesParser::new(["uint8", "float"])
        .map(|pixels| if pixels == "float" { PixelType::Float } else { PixelType::Uint8 })
}

/// The JSON output: the model and its file.
#[derive(Serialize)]
struct Output<'a> {
    /// The model's file, as given.
    model: String,
    /// `student` or `teacher`.
    kind: &'static str,
    /// The method or architecture.
    network: &'static str,
    simulation: bool,
    /// The exported file, as given.
    out: String,
    /// `onnx` or `safetensors`.
    format: &'static str,
    bytes: usize,
    /// Channels, height and width of the images.
    shape: [usize; 3],
    /// The names of the classes, in the order of the probabilities.
    class_names: &'a [String],
    onnx: Option<Onnx>,
}

/// The parts of an ONNX model that a program needs to run it.
#[derive(Serialize)]
struct Onnx {
    input: &'static str,
    /// `uint8` or `float32`.
    pixels: &'static str,
    /// Whether the number of images is variable, or else 1.
    is_variable: bool,
    outputs: [&'static str; 2],
    /// The largest difference of a logit from that of the network, as a fraction of the largest logit.
    difference: f32,
}

pub(super) fn export(options: &ExportOptions) -> Result<(), Failure> {
    if options.classes.as_ref() == Some(&options.out) {
        return Err(usage("classes", "expected another file than --out"));
    }
    let datasets = options.datasets.as_deref();
    let model = match (&options.encoder, options.to) {
        // The model's own file names its encoder, and does not contain it.
        (None, ModelFormat::Safetensors) => Model::read(&options.model, datasets)?,
        (encoder, _) => Model::read_with_encoder(&options.model, datasets, encoder.as_deref())?,
    };
    let description = model.description();
    not_public(description).into_iter().for_each(note);
    let pixels = match options.pixels {
        PixelType::Uint8 => "uint8",
        PixelType::Float => "float32",
    };
    let (format, bytes, shape, onnx) = match options.to {
        ModelFormat::Onnx => {
            let OnnxModel { bytes, difference, shape, is_variable, .. } = model.to_onnx(options.pixels)?;
            let onnx = Onnx { input: IMAGES, pixels, is_variable, outputs: [PROBABILITIES, LOGITS], difference };
            ("onnx", bytes, shape, Some(onnx))
        }
        ModelFormat::Safetensors => {
            let bytes = model.to_bytes().map_err(|error| error.at(&options.model))?;
            ("safetensors", bytes, model.shape(), None)
        }
    };
    // Only the owner may read the weights of a private model. A repeat with the same bytes succeeds.
    if description.is_private() && options.out.symlink_metadata().is_err() {
        write_private_output(&options.out, &bytes)?;
    } else {
        write_once(&options.out, &bytes)?;
    }
    if let Some(path) = &options.classes {
        let mut names = serde_json::to_vec(&description.classes).unwrap_or_default();
        names.push(b'\n');
        write_once(path, &names)?;
    }
    let output = Output {
        model: printable_path(&options.model),
        kind: if description.is_teacher() { "teacher" } else { "student" },
        network: description.network.name(),
        simulation: description.origin.simulation,
        out: printable_path(&options.out),
        format,
        bytes: bytes.len(),
        shape: [shape.channels, shape.height, shape.width],
        class_names: &description.classes,
        onnx,
    };
    print_report(options.json, &output, || text(&output))
}

fn text(output: &Output<'_>) -> String {
    let Output { kind, network, out, bytes, shape: [channels, height, width], class_names, .. } = output;
    let kilobytes = bytes.div_ceil(1000);
    let first = format!("{}{out}: {kind} {network}, {kilobytes} kB\n", mark(output.simulation));
    match &output.onnx {
        None => first,
        Some(Onnx { input, pixels, is_variable, outputs: [probabilities, logits], difference }) => {
            let (images, classes) = (if *is_variable { "N" } else { "1" }, class_names.len());
            format!(
                "{first}input {input}: {pixels}, {images} x {channels} x {height} x {width}; outputs {probabilities} and {logits}: \
                 float32, {images} x {classes}\nlogits differ from the network's by at most {difference:.0e} of the largest, on random images\n"
            )
        }
    }
}
