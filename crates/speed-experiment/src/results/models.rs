//! The models of a run's students, each with a description of its row.

use std::path::{Path, PathBuf};

use speed_core::{Digest, printable};

use super::card::{CARD, CARD_TEXT, card_of_row, describe};
use crate::error::ExperimentError;
use crate::model::of_weights_to_bytes;
use crate::picture;
use crate::report::{ModelFile, Report, ReportRow};
use crate::stages::{Context, Subjects, folder_of_row, kept_weights};
use crate::store::{example_image, model_name, write_atomic, write_below};

/// Writes the model of every student. Rows and runs may share a student, but a model belongs to one row of one run: otherwise it
/// would tell that the noise of one row changed no label of another.
///
/// A model that cannot be written is reported; the results of the run do not depend on it.
pub(crate) fn write_models(context: &Context<'_>, report: &Report) -> Result<(), ExperimentError> {
    let (config, run, Some(pictures)) = (context.config, context.store.folder(), context.pictures()) else {
        return Ok(());
    };
    let Some(images) = context.images() else { return Ok(()) };
    let encoder = pictures.encoder.as_ref().map(|encoder| encoder.of_model(config, pictures.pool.shape().channels));
    let mut written = 0;
    for (index, row) in report.rows.iter().enumerate() {
        let mut models = Vec::new();
        let mut first = None;
        // A model of labels without a claim tells about the votes.
        let is_secret = report.is_protected() && row.data_independent.is_none();
        for (repeat, student) in row.students.iter().enumerate() {
            let Some(weights) = kept_weights(run, &student.stage)? else { continue };
            let subjects =
                Subjects { shape: images.pool.shape(), encoder: encoder.clone(), classes: images.class_names.clone() };
            let device = context.device.fingerprint.map(ToString::to_string);
            let claim = row.data_independent.as_ref();
            let description = describe(config, index, repeat, claim, subjects, device);
            match of_weights_to_bytes(&description, &weights) {
                Ok(bytes) => {
                    let path = run.join(model_of(report, &row.name, repeat));
                    write_below(&path, &bytes, is_secret)?;
                    let file = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
                    models.push(ModelFile { file, sha256: Digest::of(&bytes).to_hex() });
                    first.get_or_insert((description, path));
                    written += 1;
                }
                Err(fault) => context.progress.note(&not_kept(&row.name, repeat, &fault)),
            }
        }
        if let Some((description, path)) = first {
            let card = card_of_row(config, report, index, models, &description);
            for (name, text) in [(CARD, card.to_json()), (CARD_TEXT, card.to_markdown(CARD))] {
                write_below(&path.with_file_name(name), text.as_bytes(), is_secret)?;
            }
        }
    }
    if written > 0 {
        write_atomic(&example_image(run), &picture::of_image(&pictures.pool, 0)?)?;
    }
    Ok(())
}

/// Returns the path of the model of a row's student, relative to the run's directory.
pub(crate) fn model_of(report: &Report, row: &str, repeat: usize) -> String {
    model_name(&folder_of_row(row, report.rows.iter().map(|row| row.name.as_str())), repeat)
}

/// Returns the path of a model of the run in the directory `run`, for a first prediction, and the path of an image for it:
/// the first student of the first row with a finite data-independent claim, or else of the first row.
pub fn first_model(report: &Report, run: &Path) -> Option<(PathBuf, PathBuf)> {
    let mut rows: Vec<&ReportRow> = report.rows.iter().collect();
    rows.sort_by_key(|row| row.data_independent.is_none());
    let mut models = rows.into_iter().map(|row| run.join(model_of(report, &row.name, 0)));
    let (model, image) = (models.find(|model| model.is_file())?, example_image(run));
    image.is_file().then_some((model, image))
}

fn not_kept(row: &str, repeat: usize, error: &ExperimentError) -> String {
    format!("no model of student {repeat} of row {}: {error}", printable(row))
}
