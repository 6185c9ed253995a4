//! `speed predict`

use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};
use serde::Serialize;
use speed_core::printable;
use speed_experiment::model::{Inputs, Model, Predicting, Prediction};
use speed_experiment::npy;
use speed_experiment::report::{Table, csv};
use speed_experiment::training::{check_new, write_output, write_private_output};

use super::{Failure, mark, threads};
use crate::bar::{Bar, note, warn};
use crate::output::{SIMULATION, not_public, print_bytes, to_json};
use crate::terminal;

#[derive(Debug, Args)]
pub(crate) struct PredictOptions {
    /// The model: models/ROW/student-0.safetensors in a run's folder, or the weights of one of its teachers,
    /// stages/teachers/teacher-0000.bin
    #[arg(long, value_name = "FILE")]
    model: PathBuf,
    /// The encoder's ONNX file, for a model of an encoder's vectors: the file of the model's training
    #[arg(long, value_name = "FILE")]
    encoder: Option<PathBuf>,
    /// PNG and JPEG pictures, folders of pictures, and .npy arrays: images x height x width (x channels) or images x channels
    /// x height x width, uint8 or floating-point values of 0 to 1
    #[arg(required = true, value_name = "IMAGES")]
    images: Vec<PathBuf>,
    /// Format of the output: table, csv, json (docs/json.md), or npy, a float32 array of images x classes
    #[arg(long, value_name = "FORMAT", default_value = "table", hide_possible_values = true)]
    format: PredictionFormat,
    /// New file for the output [default: standard output]
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// Number of threads; predictions do not depend on it [default: all processors]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    threads: Option<u16>,
    /// Folder of datasets, for a teacher of a run that kept no students [default: SPEED_DATASETS, or ./datasets if it is not
    /// set]
    #[arg(long, value_name = "DIR")]
    datasets: Option<PathBuf>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum PredictionFormat {
    /// For people.
    Table,
    /// Comma-separated values.
    Csv,
    /// An object for programs.
    Json,
    /// The probabilities as a NumPy array.
    Npy,
}

/// The JSON output: the model and the predictions.
#[derive(Serialize)]
struct Output<'a> {
    /// The model's file, as given.
    model: String,
    /// `student` or `teacher`.
    kind: &'static str,
    simulation: bool,
    /// The names of the classes, in the order of the probabilities.
    class_names: &'a [String],
    predictions: Vec<Labelled<'a>>,
}

/// One prediction with the name of its class.
#[derive(Serialize)]
struct Labelled<'a> {
    #[serde(flatten)]
    prediction: &'a Prediction,
    label: &'a str,
}

pub(super) fn predict(options: &PredictOptions) -> Result<(), Failure> {
    options.out.as_deref().map(check_new).transpose()?;
    let model = Model::read_with_encoder(&options.model, options.datasets.as_deref(), options.encoder.as_deref())?;
    let inputs = Inputs::find(&options.images, &model.preparation())?;
    inputs.warnings().iter().for_each(|warning| warn(&printable(warning)));
    inputs.dark(&model.preparation())?.iter().for_each(|warning| warn(warning));
    notes(&model, options.format).into_iter().for_each(note);
    let threads = threads(options.threads);
    let predictions = {
        let bar = Bar::counting("images", inputs.len() as u64);
        let on_batch = |images: usize| bar.steps(images as u64);
        Predicting { model: &model, threads, on_batch: &on_batch }.predict(&inputs)?
    };
    let bytes = formatted(options.format, &options.model, &model, &predictions, options.out.is_none())?;
    match &options.out {
        // The predictions of a private model are as secret as it is.
        Some(path) if model.description().is_private() => Ok(write_private_output(path, &bytes)?),
        Some(path) => Ok(write_output(path, &bytes)?),
        None => print_bytes(&bytes),
    }
}

/// Returns notes on the model for the user.
fn notes(model: &Model, format: PredictionFormat) -> Vec<&'static str> {
    let description = model.description();
    let has_no_mark = matches!(format, PredictionFormat::Csv | PredictionFormat::Npy);
    let simulation = (description.origin.simulation && has_no_mark).then(|| SIMULATION.trim_end());
    not_public(description).into_iter().chain(simulation).collect()
}

/// Returns the output. A table on standard output fits the terminal.
fn formatted(
    format: PredictionFormat,
    path: &Path,
    model: &Model,
    predictions: &[Prediction],
    fits: bool,
) -> Result<Vec<u8>, Failure> {
    let names = &model.description().classes;
    let probabilities = |prediction: &Prediction| prediction.probabilities.iter().map(|p| format!("{p}")).collect();
    Ok(match format {
        PredictionFormat::Table => {
            let table = table(names, predictions);
            let text = if fits { terminal::table(&table) } else { table.to_text() };
            format!("{}{text}", mark(model.description().origin.simulation)).into_bytes()
        }
        PredictionFormat::Csv => {
            let head = ["image", "class", "label"].map(str::to_owned).into_iter();
            let head = head.chain(names.iter().map(|name| format!("p({})", printable(name))));
            let rows = predictions.iter().map(|prediction| {
                let columns: Vec<String> = probabilities(prediction);
                let label = printable(&names[prediction.class]);
                let image = printable(&prediction.image);
                [image, prediction.class.to_string(), label].into_iter().chain(columns).collect()
            });
            csv::write(head, rows.collect::<Vec<Vec<String>>>()).into_bytes()
        }
        PredictionFormat::Json => {
            let label = |prediction| Labelled { prediction, label: &names[prediction.class] };
            let output = Output {
                model: path.display().to_string(),
                kind: if model.description().is_teacher() { "teacher" } else { "student" },
                simulation: model.description().origin.simulation,
                class_names: names,
                predictions: predictions.iter().map(label).collect(),
            };
            to_json(&output)?.into_bytes()
        }
        PredictionFormat::Npy => {
            let values: Vec<f32> =
                predictions.iter().flat_map(|prediction| &prediction.probabilities).copied().collect();
            npy::reals_to_bytes(&values, names.len())
        }
    })
}

/// Returns the table for people: every image with its label and the probability of every class in percent.
fn table(names: &[String], predictions: &[Prediction]) -> Table {
    let head = ["image", "label"].map(str::to_owned).into_iter();
    let mut table = Table::new(head.chain(names.iter().map(|name| format!("{} %", printable(name)))));
    for Prediction { image, class, probabilities, .. } in predictions {
        let cells = [printable(image), printable(&names[*class])].into_iter();
        table.push(cells.chain(probabilities.iter().map(|p| format!("{:.1}", 100.0 * p))).collect());
    }
    table
}
