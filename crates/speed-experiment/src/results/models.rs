//! The models of a run's students, each with a description of its row, and their cards, which are views of its report.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use speed_accountant::Account;
use speed_core::{Digest, printable, printable_path, read_regular};

use super::publish::{model_of, read_report};
use crate::config::{AggregationKind, Config, RowConfig, Source};
use crate::error::ExperimentError;
use crate::model::{Description, MAX_FILE, Model, ModelEncoder, Network, Origin, of_weights_to_bytes};
use crate::picture;
use crate::report::{
    CARD_FORMAT, CardSource, EncoderFacts, ModelCard, ModelFile, NoiseSource, Participants, PartyPrivacy, Privacy,
    Report, ReportRow, Task, TrainingData, Versions, covers_labels,
};
use crate::stages::{Context, Subjects, data_independent, data_independent_party, is_encoder_of_run, kept_weights};
use crate::store::{
    RunStore, example_image, is_one_name, read_small, report_path, run_of_card, write_atomic, write_below,
};

const CARD: &str = "model-card.json";
const CARD_TEXT: &str = "model-card.md";

/// Writes the model of every student. Rows and runs may share a student, but a model belongs to one row of one run: otherwise it
/// would tell that the noise of one row changed no label of another.
///
/// A model that cannot be written is reported; the results of the run do not depend on it.
pub(crate) fn write_models(context: &Context<'_>, report: &Report) -> Result<(), ExperimentError> {
    let (config, run, Some(pictures)) = (context.config, context.store.folder(), context.pictures) else {
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
                Err(fault) => {
                    let row = printable(&row.name);
                    context.progress.note(&format!("no model of student {repeat} of row {row}: {fault}"));
                }
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

/// Returns the path of a model of the run in the directory `run`, for a first prediction, and the path of an image for it:
/// the first student of the first row with a finite data-independent claim, or else of the first row.
pub fn first_model(report: &Report, run: &Path) -> Option<(PathBuf, PathBuf)> {
    let mut rows: Vec<&ReportRow> = report.rows.iter().collect();
    rows.sort_by_key(|row| row.data_independent.is_none());
    let mut models = rows.into_iter().map(|row| run.join(model_of(report, &row.name, 0)));
    let (model, image) = (models.find(|model| model.is_file())?, example_image(run));
    image.is_file().then_some((model, image))
}

/// Returns the task of a model.
pub fn task(description: &Description) -> Task {
    Task {
        kind: "image-classification".into(),
        classes: description.classes.clone(),
        shape: description.shape,
        resizes: description.preprocessing.resizes,
    }
}

/// Returns the description of the student `repeat` of a row, whose labels have the claim `data_independent`.
fn describe(
    config: &Config,
    index: usize,
    repeat: usize,
    data_independent: Option<&Account>,
    Subjects { shape, encoder, classes }: Subjects,
    device: Option<String>,
) -> Description {
    let row = &config.rows[index];
    let method = config.method_of(row);
    let network = Network::Student { method, version: method.version(), config: Box::new(config.student.clone()) };
    let origin = Origin {
        row: Some(row.name.clone()),
        repeat: Some(repeat),
        device,
        publishable: Some(is_publishable(config, data_independent)),
        ..Origin::of_run(config, &RunStore::id_of(config))
    };
    Description::of_run(config, network, (shape, encoder), classes, origin)
}

fn is_publishable(config: &Config, data_independent: Option<&Account>) -> bool {
    !config.is_simulation() && covers_labels(data_independent)
}

/// Returns the noise of a row in one line: of its answers, and of the checks before them.
fn mechanism_of(row: &RowConfig) -> String {
    let answers = row.noise.mechanism().identifier();
    row.check
        .map_or(answers.clone(), |check| format!("{answers}, after checks with {}", check.mechanism().identifier()))
}

/// Returns the card of a row's models. `first` is the description of the first one. The numbers of teachers and queries, the
/// noise and the method are those of the config; only the rest is from the report.
fn card_of_row(
    config: &Config,
    report: &Report,
    index: usize,
    models: Vec<ModelFile>,
    first: &Description,
) -> ModelCard {
    let (row, source) = (&report.rows[index], &config.rows[config.labels_of(index)]);
    let teachers = config.ensemble.teachers;
    let queries = source.query_count(config.queries.count);
    let noise_source = if source.noise.is_central() {
        NoiseSource::Server
    } else if source.aggregation == AggregationKind::Trusted {
        NoiseSource::TrustedAggregator
    } else {
        NoiseSource::Teachers
    };
    let largest_party = u32::try_from(config.ensemble.largest_party()).unwrap_or(u32::MAX);
    let privacy = source.is_noisy().then(|| Privacy {
        data_dependent: row.data_dependent.clone().filter(|_| config.is_simulation()),
        party: PartyPrivacy::of_votes(largest_party, row.data_independent_party.clone()),
        ..Privacy::of_votes(mechanism_of(source), noise_source, row.data_independent.clone())
    });
    ModelCard {
        format: CARD_FORMAT,
        simulation: config.is_simulation(),
        publishable: Some(is_publishable(config, row.data_independent.as_ref())),
        models,
        task: task(first),
        training: TrainingData {
            method: config.method_of(&config.rows[index]).name().to_owned(),
            pool_images: report.ensemble.pool_images,
            queries,
            labelled: row.answered.unwrap_or(queries),
        },
        encoder: report.encoder.clone(),
        source: CardSource::Run {
            experiment: config.name.clone(),
            run: RunStore::id_of(config),
            row: config.rows[index].name.clone(),
        },
        participants: Some(Participants { teachers, counted: teachers, names: Vec::new() }),
        privacy,
        evaluation: row.classification.clone(),
        versions: Versions::from(&report.environment),
    }
}

/// Reads a card, and compares it with its Markdown form, if that is beside it.
///
/// # Errors
/// If the file is missing, not a card, or was changed, or the other form is of another card.
pub fn read_card(path: &Path) -> Result<ModelCard, ExperimentError> {
    let text = read_small(path).map_err(ExperimentError::unreadable(path))?;
    let card = ModelCard::from_json(&text).map_err(|error| error.at(path))?;
    // People read the other form.
    let other = path.with_extension("md");
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    match read_small(&other) {
        Ok(text) if text == card.to_markdown(&name).as_bytes() => Ok(card),
        Ok(_) => {
            let expected = "expected the text of the card in JSON beside it, found another text: it was changed";
            Err(ExperimentError::input(other, expected))
        }
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(card),
        Err(error) => Err(ExperimentError::unreadable(other)(error)),
    }
}

/// Reads the names, hashes and descriptions of a card's models, from the files beside the card.
///
/// # Errors
/// If a file is missing or not a model, or the card has none, names one twice, or names a file elsewhere.
pub fn models_of_card(path: &Path, card: &ModelCard) -> Result<Vec<(ModelFile, Description)>, ExperimentError> {
    let mut names = BTreeSet::new();
    let read = |ModelFile { file, .. }: &ModelFile| {
        if !is_one_name(file) || !names.insert(file.clone()) {
            return Err(other_file(path, file));
        }
        let place = path.with_file_name(file);
        let bytes = read_regular(&place, MAX_FILE).map_err(ExperimentError::unreadable_model(&place))?;
        let model = Model::from_bytes(&bytes).map_err(|error| error.at(place))?;
        let file = ModelFile { file: file.clone(), sha256: Digest::of(&bytes).to_hex() };
        Ok((file, model.description().clone()))
    };
    let models: Vec<_> = card.models.iter().map(read).collect::<Result<_, _>>()?;
    if models.is_empty() {
        return Err(other_file(path, "none"));
    }
    Ok(models)
}

/// The fields of a run's card that only the report of the run gives. Nothing else in the run determines them.
pub const OF_REPORT: [&str; 5] =
    ["training.pool_images", "training.labelled", "privacy.data_dependent", "evaluation", "versions"];

/// Verifies the card of a row of a run against the models beside it and the run's report. The data-independent epsilons
/// are computed again from the report's config alone. Returns the claim for one teacher.
///
/// # Errors
/// If a field of the card differs, a model is of another row or run, or a file is missing or damaged.
pub fn verify_run_card(path: &Path, card: &ModelCard, run: Option<&Path>) -> Result<Option<Account>, ExperimentError> {
    let CardSource::Run { row, .. } = &card.source else {
        return Ok(None);
    };
    let run = run.map(Path::to_path_buf).or_else(|| run_of_card(path)).ok_or_else(|| {
        let expected =
            "expected the card in its run's folder (RUN/models/ROW/model-card.json): give the run with --run";
        ExperimentError::input(path, expected)
    })?;
    let (place, mut report) = (report_path(&run), read_report(&run)?);
    let config = Config::load(&Source::new(printable_path(&place), report.config.to_toml()))?;
    let index = config.rows.iter().zip(&report.rows).position(|(own, there)| own.name == *row && there.name == *row);
    let index = index.ok_or_else(|| {
        ExperimentError::input(place, format_args!("expected a row called {}, found none", printable(row)))
    })?;
    // A run that left without its stages has no record of the vectors.
    let is_other = |encoder: &&EncoderFacts| is_encoder_of_run(&run, &encoder.digest) == Some(false);
    if let Some(encoder) = report.encoder.as_ref().filter(is_other) {
        let found =
            format_args!("expected the encoder of the run's vectors, found SHA-256 {}", printable(&encoder.digest));
        return Err(ExperimentError::input(report_path(&run), found));
    }
    let models = models_of_card(path, card)?;
    let first = models[0].1.clone();
    let source = &config.rows[config.labels_of(index)];
    let (queries, classes) = (source.query_count(config.queries.count), first.classes.len());
    let [claim, party] = if source.is_noisy() {
        let claim = data_independent(&config, source, queries, classes)?.ok();
        [claim, data_independent_party(&config, source, queries, classes)?.and_then(Result::ok)]
    } else {
        [None, None]
    };
    let names = if report.classes.is_empty() { &first.classes } else { &report.classes };
    for (file, description) in &models {
        let Origin { repeat, device, .. } = description.origin.clone();
        let pictures = first.encoder.as_ref().map_or([0; 3], |encoder| encoder.pictures);
        let encoder = report.encoder.clone().map(|facts| ModelEncoder { facts, pictures });
        let subjects = Subjects { shape: first.shape(), encoder, classes: names.clone() };
        let expected = describe(&config, index, repeat.unwrap_or_default(), claim.as_ref(), subjects, device);
        if *description != expected {
            return Err(ExperimentError::other_model(path.with_file_name(&file.file)));
        }
    }
    (report.rows[index].data_independent, report.rows[index].data_independent_party) = (claim.clone(), party);
    let files = models.into_iter().map(|(file, _)| file).collect();
    card.differing_field(&card_of_row(&config, &report, index, files, &first)).map_err(|error| error.at(path))?;
    Ok(claim)
}

fn other_file(path: &Path, found: &str) -> ExperimentError {
    let expected = "expected different names of files in the card's folder";
    ExperimentError::input(path, format_args!("{expected}, found {}", printable(found)))
}
