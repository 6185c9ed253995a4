//! The cards of a run's models, and their verification.

use std::path::{Path, PathBuf};

use speed_accountant::Account;
use speed_core::Digest;
use speed_report::{
    CARD_FORMAT, CardSource, ModelCard, ModelFile, Participants, Privacy, Report, Task, TrainingData, Versions,
};

use super::file::read_report;
use crate::config::Config;
use crate::error::{ExperimentError, InputFault};
use crate::model::{Description, Model};
use crate::stages::data_independent;
use crate::store::{RunStore, config_path, read_small, run_of_card};

/// The name of a card in JSON.
pub const CARD: &str = "model-card.json";
/// The name of the same card in Markdown.
pub(crate) const CARD_TEXT: &str = "model-card.md";

/// Returns the task of a model.
#[must_use]
pub fn task(description: &Description) -> Task {
    Task {
        kind: "image-classification".into(),
        classes: description.classes.clone(),
        shape: description.shape,
        resizes: description.preprocessing.resizes,
    }
}

/// Returns the card of a row's models, which have this description, from the run's config and report.
pub(super) fn card_of_row(
    config: &Config,
    report: &Report,
    index: usize,
    models: Vec<ModelFile>,
    description: &Description,
) -> ModelCard {
    let (row, source) = (&report.rows[index], &config.rows[config.labels_of(index)]);
    let teachers = report.ensemble.teachers;
    let privacy = source.is_noisy().then(|| Privacy {
        data_dependent: row.data_dependent.clone().filter(|_| config.is_simulation()),
        ..Privacy::of_votes(
            source.noise.mechanism().identifier(),
            source.noise.is_central(),
            row.data_independent.clone(),
        )
    });
    ModelCard {
        format: CARD_FORMAT,
        simulation: config.is_simulation(),
        publishable: description.origin.publishable,
        models,
        task: task(description),
        training: TrainingData {
            method: row.method.clone(),
            pool_images: report.ensemble.pool_images,
            queries: row.queries,
            labelled: row.answered.unwrap_or(row.queries),
        },
        source: CardSource::Run {
            experiment: report.experiment.clone(),
            run: report.run.clone(),
            row: row.name.clone(),
        },
        participants: Some(Participants { teachers, counted: teachers, names: Vec::new() }),
        privacy,
        evaluation: row.classification.clone(),
        versions: Versions::from(&report.environment),
    }
}

/// Reads a card.
///
/// # Errors
/// If the file is missing, not a card, or was changed.
pub fn read_card(path: &Path) -> Result<ModelCard, ExperimentError> {
    let text = read_small(path).map_err(|error| at(path, InputFault::UnreadableText(error)))?;
    ModelCard::from_json(&text).map_err(|fault| at(path, Box::new(fault).into()))
}

/// Compares a card with `expected`, the card of the same files.
///
/// # Errors
/// The first field that differs.
pub fn check_card(path: &Path, card: &ModelCard, expected: &ModelCard) -> Result<(), ExperimentError> {
    card.differing_field(expected).map_err(|fault| at(path, Box::new(fault).into()))
}

/// Returns the files of a card and the description of the first model, from the files beside the card.
///
/// # Errors
/// If a file is missing or not a model, or the card has none or names a file elsewhere.
pub fn files_of_card(path: &Path, card: &ModelCard) -> Result<(Vec<ModelFile>, Description), ExperimentError> {
    let mut files = Vec::new();
    let mut first = None;
    for ModelFile { file, .. } in &card.models {
        let is_name = Path::new(file).components().eq([std::path::Component::Normal(file.as_ref())]);
        if !is_name {
            return Err(at(path, InputFault::CardFile { found: file.clone() }));
        }
        let file_path = path.with_file_name(file);
        let model = Model::read(&file_path, None)?;
        let bytes = crate::store::read_large(&file_path, crate::model::MAX_FILE);
        let bytes = bytes.map_err(ExperimentError::io("read", &file_path))?;
        files.push(ModelFile { file: file.clone(), sha256: Digest::of(&bytes).to_hex() });
        first.get_or_insert_with(|| model.description().clone());
    }
    let first = first.ok_or_else(|| at(path, InputFault::CardFile { found: "no file".into() }))?;
    Ok((files, first))
}

/// Verifies the card of a row of a run: the files beside it, the run's config and report, and the data-independent epsilon,
/// which is computed again from the config alone. Returns that claim.
///
/// # Errors
/// If a field of the card differs, or a file of the run is missing or damaged.
pub fn verify_run_card(path: &Path, card: &ModelCard, run: Option<&Path>) -> Result<Option<Account>, ExperimentError> {
    let CardSource::Run { row, .. } = &card.source else { return Ok(None) };
    let run = match run.or_else(|| run_of_card(path)) {
        Some(run) => run.to_path_buf(),
        None => return Err(at(path, InputFault::NoRunOfCard)),
    };
    let config = RunStore::config_in(&run)?;
    let mut report = read_report(&run)?;
    let found = report.rows.iter().position(|other| other.name == *row);
    let index = found.filter(|index| config.rows.get(*index).is_some_and(|other| other.name == *row));
    let index = index.ok_or_else(|| at(&config_path(&run), InputFault::NoRow { row: row.clone() }))?;
    let (files, description) = files_of_card(path, card)?;
    let source = &config.rows[config.labels_of(index)];
    if source.is_noisy() {
        let queries = report.rows[index].queries;
        let account = data_independent(&config, source, queries, description.classes.len())?;
        report.rows[index].data_independent = account.ok();
    }
    let expected = card_of_row(&config, &report, index, files, &description);
    check_card(path, card, &expected)?;
    let names = [Some(&report.run), Some(row)] == [description.origin.run.as_ref(), description.origin.row.as_ref()];
    if !names || description.origin.simulation != config.is_simulation() {
        return Err(at(path, InputFault::OtherModel));
    }
    Ok(report.rows[index].data_independent.clone())
}

fn at(path: &Path, fault: InputFault) -> ExperimentError {
    ExperimentError::Input { path: PathBuf::from(path), fault }
}
