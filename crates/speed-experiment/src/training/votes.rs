//! The votes of models on public images, and their plurality in clear text.

use std::collections::HashMap;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};

use serde::Serialize;
use speed_core::vote_files::{
    NamedQueries, Pair, QueryNames, Question, csv_cell, parse_answer, parse_numbers, parse_pairs,
};
use speed_core::{Classes, Vote, VoteShape, Votes, VotesError, class_list, group_answer, printable_path};
use speed_data::pictures::{Preparation, find};

use super::queries::{positions, read_queries};
use super::{
    by_class, check_new, other_line, unknown_query, warn_of_missing, warn_of_one_class, write_output,
    write_private_output,
};
use crate::error::ExperimentError;
use crate::model::{ForeignModel, Inputs, Model, ModelEncoder, Predicting};
use crate::npy::{votes_below, votes_to_bytes};
use crate::patients::relative;
use crate::progress::Progress;
use crate::store::{read_text, write_folder};

/// The options of a vote.
#[derive(Clone, Debug)]
pub struct VoteOptions {
    /// The models: files, and directories of model files. Each is one teacher.
    pub models: Vec<PathBuf>,
    /// The form of the models if they are ONNX models; `None` for models of this program.
    pub onnx: Option<OnnxOptions>,
    /// The encoder of models of vectors.
    pub encoder: Option<PathBuf>,
    /// The public images: a directory of pictures, or an `.npy` array.
    pub images: PathBuf,
    /// The list of the queries by name, pictures or groups; `None` votes on all images in the order of their names.
    pub queries: Option<PathBuf>,
    /// Known answers that measure the models: lines `name,label` with names of queries and of classes.
    pub known: Option<PathBuf>,
    /// Number of threads. Votes do not depend on it.
    pub threads: NonZeroUsize,
    /// The new output: an `.npy` table of the numbers of classes, a `.csv` file with their names for one model, or else a directory with a
    /// `.csv` file for each model.
    pub out: PathBuf,
}

/// The form of ONNX models, which other programs trained.
#[derive(Clone, Debug)]
pub struct OnnxOptions {
    /// The names of the classes in the order of the scores; by default those of the file.
    pub classes: Option<Vec<String>>,
    /// Whether images are resized to the model's size and converted to its colours.
    pub fits: bool,
}

/// The result of a vote.
#[derive(Clone, Debug, Serialize)]
pub struct VoteReport {
    /// The output.
    pub out: PathBuf,
    /// The model files in order.
    pub models: Vec<PathBuf>,
    /// Number of queries.
    pub queries: usize,
    /// Number of images that each model classified.
    pub images: usize,
    /// The names of the classes in the order of the labels.
    pub class_names: Vec<String>,
    /// The share of each class among the votes of all models, 0 to 1.
    pub shares: Vec<f64>,
    /// The share of each model's votes that are empty, 0 to 1.
    pub empty: Vec<f64>,
    /// The share of the known answers that each model gives, 0 to 1; `None` without known answers.
    pub right: Option<Vec<f64>>,
}

const VALUES: &str = "the values of pixels that it expects, such as 0 to 1 or 0 to 255, unless nearly all its own images are of this class";

/// Lets models vote on images, and writes the votes. A model's answer to a group is the class that it gives most often to the
/// images of the group; the lowest on a tie. It is empty if more than half of its votes on these images are.
///
/// # Errors
/// If the output exists, a model or an image is wrong, models have different classes, or a query is not an image.
pub fn vote(options: &VoteOptions, progress: &dyn Progress) -> Result<VoteReport, ExperimentError> {
    let VoteOptions { images, queries, known, threads, out, onnx, .. } = options;
    check_new(out)?;
    let models = model_files(&options.models, if onnx.is_some() { "onnx" } else { "safetensors" })?;
    if models.len() > 1 && has_extension(out, "csv") {
        let models = models.len();
        let expected = "expected .npy, or a folder for one CSV file per model";
        return Err(ExperimentError::input(out, format_args!("{expected}, for the votes of {models} models")));
    }
    let queries = queries.as_deref().map(|path| Ok::<_, ExperimentError>((path, read_queries(path)?))).transpose()?;
    let known = known.as_deref().map(read_known).transpose()?;
    let (mut class_names, mut names, mut rows, mut classified) = (Vec::new(), Vec::new(), Vec::new(), 0);
    let (mut right, mut empty, mut vectors) = (Vec::new(), Vec::new(), None);
    for (index, path) in models.iter().enumerate() {
        let voter = Voter::read(path, onnx.as_ref())?;
        let found = voter.classes().to_vec();
        if index > 0 && found != class_names {
            let (expected, found) = (class_list(&class_names), class_list(&found));
            let next = "train all models with the same --classes";
            let fault = format_args!("expected a model of the classes {expected}, found {found}: {next}");
            return Err(ExperimentError::input(path, fault));
        }
        let find = || {
            let found = inputs(images, queries.as_ref(), &voter.preparation())?;
            if index == 0 {
                found.0.warnings().iter().for_each(|warning| progress.warn(warning));
                found.0.dark(&voter.preparation())?.iter().for_each(|warning| progress.warn(warning));
            }
            Ok::<_, ExperimentError>(found)
        };
        let pictures;
        let (inputs, all) = match voter.encoder(path, options.encoder.as_deref())? {
            None => {
                pictures = find()?;
                &pictures
            }
            Some(stated) => {
                let known = vectors.take().filter(|Vectors { of, .. }| serves(of, stated));
                let known = known.map_or_else(|| Vectors::new(path, options, queries.as_ref(), find, progress), Ok)?;
                &vectors.insert(known).inputs
            }
        };
        if index == 0 {
            progress.begin("vote", "images", (models.len() * inputs.len()) as u64, 0);
        }
        let on_batch = |images: usize| progress.advance(images as u64, "");
        let classes = voter.predict(inputs, *threads, &on_batch)?;
        classified = queries.as_ref().map_or(inputs.len(), |(_, queries)| queries.all_pictures().count());
        let (of_queries, labels) = in_order(images, queries.as_ref(), all.clone(), classes)?;
        let counts = by_class(labels.iter().flatten(), found.len());
        let unsure = labels.iter().filter(|vote| vote.is_none()).count();
        if unsure == labels.len() {
            progress
                .warn(&format!("all votes of {} are empty: in a round it adds only its noise", printable_path(path)));
        }
        empty.push(unsure as f64 / labels.len() as f64);
        warn_of_one_class((&counts, &[]), &found, &format!("{} votes", printable_path(path)), VALUES, progress);
        if let Some(known) = &known {
            right.push(share_right(known, images, &of_queries, &labels, &found)?);
        }
        (class_names, names) = (found, of_queries);
        rows.push(labels);
    }
    progress.end(&format!("{} models voted on {classified} images", models.len()));
    write(out, &models, &names, &rows, &class_names)?;
    let counts = by_class(rows.iter().flatten().flatten(), class_names.len());
    warn_of_missing(&counts, &class_names, "no vote for", progress);
    let shares = counts.iter().map(|count| *count as f64 / (rows.len() * names.len()) as f64).collect();
    let right = known.is_some().then_some(right);
    let queries = names.len();
    Ok(VoteReport { out: out.clone(), models, queries, images: classified, class_names, shares, empty, right })
}

type Known<'a> = (&'a Path, Vec<Pair>);

/// Reads known answers: lines `name,label` with the names of queries and of classes.
fn read_known(path: &Path) -> Result<Known<'_>, ExperimentError> {
    let parsed =
        parse_pairs(&read_text(path)?, &["name"], "label").map_err(|fault| ExperimentError::input(path, fault))?;
    Ok((path, parsed.pairs))
}

fn share_right(
    (path, known): &Known<'_>,
    images: &Path,
    queries: &[String],
    votes: &[Vote],
    classes: &[String],
) -> Result<f64, ExperimentError> {
    let places: HashMap<&String, usize> = queries.iter().zip(0..).collect();
    let mut right = 0;
    for Pair { line, key, value } in known {
        let place = places.get(key).copied().ok_or_else(|| unknown_query(path, key, images))?;
        let expected = || format!("the name of a class ({})", class_list(classes));
        let other = || other_line(path, *line, expected(), value);
        let class = classes.iter().position(|class| class == value).ok_or_else(other)?;
        right += usize::from(votes[place].is_some_and(|label| usize::from(label) == class));
    }
    Ok(right as f64 / known.len() as f64)
}

enum Voter {
    Own(Box<Model>),
    Foreign(Box<ForeignModel>),
}

impl Voter {
    fn read(path: &Path, onnx: Option<&OnnxOptions>) -> Result<Self, ExperimentError> {
        Ok(match onnx {
            None => Self::Own(Box::new(Model::read(path, None)?)),
            Some(OnnxOptions { classes, fits }) => {
                Self::Foreign(Box::new(ForeignModel::read(path, classes.as_deref(), *fits)?))
            }
        })
    }

    fn classes(&self) -> &[String] {
        match self {
            Self::Own(model) => &model.description().classes,
            Self::Foreign(model) => model.classes(),
        }
    }

    /// Returns the encoder that the model states. `given` is the encoder of the vote.
    fn encoder(&self, path: &Path, given: Option<&Path>) -> Result<Option<&ModelEncoder>, ExperimentError> {
        let stated = match self {
            Self::Own(model) => model.description().encoder.as_ref(),
            Self::Foreign(_) => None,
        };
        match (stated, given) {
            (Some(ModelEncoder { facts, .. }), None) => {
                let digest = &facts.digest;
                let fault = format_args!("expected its encoder, SHA-256 {digest}, found none: give it with --encoder");
                Err(ExperimentError::input(path, fault))
            }
            (None, Some(_)) => {
                let fault = "expected a model that was trained with --encoder, found one that reads pictures: leave --encoder out";
                Err(ExperimentError::input(path, fault))
            }
            _ => Ok(stated),
        }
    }

    fn preparation(&self) -> Preparation {
        match self {
            Self::Own(model) => model.preparation(),
            Self::Foreign(model) => model.preparation(),
        }
    }

    fn predict(
        &self,
        inputs: &Inputs,
        threads: NonZeroUsize,
        on_batch: &(dyn Fn(usize) + Sync),
    ) -> Result<Vec<Vote>, ExperimentError> {
        Ok(match self {
            Self::Own(model) => {
                let votes = Predicting { model, threads, on_batch }.votes(inputs)?;
                votes.into_iter().map(|(_, vote)| vote).collect()
            }
            Self::Foreign(model) => model.predict(inputs, threads, on_batch)?.into_iter().map(Some).collect(),
        })
    }
}

/// The vectors of a vote's images, which models of one encoder share.
struct Vectors {
    of: ModelEncoder,
    inputs: (Inputs, Vec<String>),
}

/// Returns whether the vectors of an encoder are those of another model's encoder. The name of the file is arbitrary.
fn serves(of: &ModelEncoder, other: &ModelEncoder) -> bool {
    (&of.facts.digest, of.pictures) == (&other.facts.digest, other.pictures)
}

impl Vectors {
    /// Computes the vectors of the images that `find` finds, for the model in the file `path`.
    fn new(
        path: &Path,
        options: &VoteOptions,
        queries: Option<&Queries<'_>>,
        find: impl Fn() -> Result<(Inputs, Vec<String>), ExperimentError>,
        progress: &dyn Progress,
    ) -> Result<Self, ExperimentError> {
        let model = Model::read_with_encoder(path, None, options.encoder.as_deref())?;
        let of = model.description().encoder.clone().expect("a model of vectors");
        if let Some((list, queries)) = queries.filter(|(_, queries)| queries.is_grouped())
            && let Some(expected) =
                queries.encoder().map(|digest| digest.to_hex()).filter(|hex| *hex != of.facts.digest)
        {
            let (list, found) = (printable_path(list), &of.facts.digest);
            let fault = format_args!(
                "expected the encoder of the groups in {list}, SHA-256 {expected}, found {found}: train and vote with the encoder of the round"
            );
            return Err(ExperimentError::input(options.encoder.as_deref().unwrap_or(path), fault));
        }
        let (inputs, names) = find()?;
        progress.begin("encode pictures", "pictures", inputs.len() as u64, 0);
        let on_batch = |images: usize| progress.advance(images as u64, "");
        let vectors = Predicting { model: &model, threads: options.threads, on_batch: &on_batch }.vectors(&inputs)?;
        progress.end(&format!("{} pictures encoded", inputs.len()));
        Ok(Self { of, inputs: (vectors.unwrap_or(inputs), names) })
    }
}

type Queries<'a> = (&'a Path, NamedQueries);

/// Finds the images of a vote: only those of the queries, if the images are pictures. Returns their names.
fn inputs(
    images: &Path,
    queries: Option<&Queries<'_>>,
    preparation: &Preparation,
) -> Result<(Inputs, Vec<String>), ExperimentError> {
    if !images.is_dir() {
        let inputs = Inputs::find(&[images.to_path_buf()], preparation)?;
        let names = (0..inputs.len()).map(|index| index.to_string()).collect();
        return Ok((inputs, names));
    }
    let Some((list, queries)) = queries else {
        let files = find(images)?.files;
        return Ok((Inputs::find(&[images.to_path_buf()], preparation)?, relative(images, &files)));
    };
    let files = find(images)?.files;
    let places = positions(list, queries.all_pictures(), images, &relative(images, &files))?;
    let files: Vec<PathBuf> = places.into_iter().map(|place| files[place].clone()).collect();
    Ok((Inputs::find(&files, preparation)?, queries.all_pictures().cloned().collect()))
}

/// Returns the names of the queries, and the answer to each, from the names and the votes on the images.
fn in_order(
    images: &Path,
    queries: Option<&Queries<'_>>,
    names: Vec<String>,
    votes: Vec<Vote>,
) -> Result<(Vec<String>, Vec<Vote>), ExperimentError> {
    let Some((list, queries)) = queries else { return Ok((names, votes)) };
    let places = positions(list, queries.all_pictures(), images, &names)?;
    let mut votes = places.into_iter().map(|place| votes[place]);
    let answer = |query| group_answer(votes.by_ref().take(queries.pictures(query).len()));
    let answers = (0..queries.names().len()).map(answer).collect();
    Ok((queries.names().to_vec(), answers))
}

fn model_files(paths: &[PathBuf], extension: &'static str) -> Result<Vec<PathBuf>, ExperimentError> {
    let mut files = Vec::new();
    for path in paths {
        if !path.is_dir() {
            files.push(path.clone());
            continue;
        }
        let entries = std::fs::read_dir(path).map_err(ExperimentError::io("read", path))?;
        let entries = entries.map(|entry| Ok(entry?.path())).collect::<std::io::Result<Vec<_>>>();
        let mut found = entries.map_err(ExperimentError::io("read", path))?;
        found.retain(|file| has_extension(file, extension));
        if found.is_empty() {
            let expected = format_args!("expected model files (*.{extension}) in the folder, found none");
            return Err(ExperimentError::input(path, expected));
        }
        found.sort();
        files.extend(found);
    }
    Ok(files)
}

fn has_extension(path: &Path, expected: &str) -> bool {
    path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case(expected))
}

fn write(
    out: &Path,
    models: &[PathBuf],
    names: &[String],
    rows: &[Vec<Vote>],
    classes: &[String],
) -> Result<(), ExperimentError> {
    let text = |row: &[Vote]| {
        let label = |vote: Vote| vote.map_or_else(String::new, |label| csv_cell(&classes[usize::from(label)]));
        let line = |(name, vote): (&String, &Vote)| format!("{},{}\n", csv_cell(name), label(*vote));
        "name,label\n".to_owned() + &names.iter().zip(row).map(line).collect::<String>()
    };
    if has_extension(out, "npy") {
        let shape = VoteShape::new(rows.len(), names.len(), classes.len()).map_err(VotesError::from)?;
        return write_private_output(out, &votes_to_bytes(&Votes::new(shape, rows.concat())?));
    }
    if has_extension(out, "csv") {
        return write_private_output(out, text(&rows[0]).as_bytes());
    }
    // Models of several directories may have the same name.
    let name = |index: usize, path: &Path| {
        format!("{index:04}-{}.csv", path.file_stem().unwrap_or_default().to_string_lossy())
    };
    let files: Vec<(String, String)> =
        models.iter().zip(rows).enumerate().map(|(index, (path, row))| (name(index, path), text(row))).collect();
    let files = files.iter().map(|(name, text)| (name.clone(), text.as_bytes()));
    if write_folder(out, files, true)? { Ok(()) } else { Err(super::exists(out)) }
}

/// The options of a plurality.
#[derive(Clone, Debug)]
pub struct PluralityOptions {
    /// Files of votes: of one teacher, or `.npy` tables of teachers x queries.
    pub votes: Vec<PathBuf>,
    /// The list of the queries by name.
    pub queries: PathBuf,
    /// The classes.
    pub classes: Classes,
    /// The new file of labels.
    pub out: PathBuf,
}

/// The result of a plurality.
#[derive(Clone, Debug, Serialize)]
pub struct PluralityReport {
    /// The file of labels.
    pub out: PathBuf,
    /// Number of teachers.
    pub teachers: usize,
    /// Number of queries.
    pub queries: usize,
    /// Number of queries on which all teachers agree.
    pub unanimous: usize,
    /// Number of queries on which all votes are empty, which get no label.
    pub unanswered: usize,
    /// Number of queries by label.
    pub labels: Vec<usize>,
}

/// Labels queries by the plurality of votes in clear text, without noise, and writes lines `query,label` with the names of classes. A query
/// on which all votes are empty has an empty label.
///
/// # Errors
/// If the output exists, or a file of votes is wrong.
pub fn plurality(options: &PluralityOptions) -> Result<PluralityReport, ExperimentError> {
    check_new(&options.out)?;
    let list = read_queries(&options.queries)?;
    let names = list.names();
    let known = QueryNames::Known(names);
    let question = Question { queries: names.len(), classes: &options.classes, form: None, names: known };
    let (mut votes, mut teachers) = (Vec::new(), 0);
    for path in &options.votes {
        let found = votes_of(path, &question)?;
        teachers += found.len() / names.len();
        votes.extend(found);
    }
    let shape = VoteShape::new(teachers, names.len(), options.classes.len()).map_err(VotesError::from)?;
    let votes = Votes::new(shape, votes)?;
    let mut report = PluralityReport {
        out: options.out.clone(),
        teachers,
        queries: names.len(),
        unanimous: 0,
        unanswered: 0,
        labels: vec![0; options.classes.len()],
    };
    let mut lines = "query,label\n".to_owned();
    for query in 0..names.len() {
        let Some(winner) = votes.plurality(query).map(usize::from) else {
            report.unanswered += 1;
            lines += &format!("{query},\n");
            continue;
        };
        report.labels[winner] += 1;
        report.unanimous += usize::from(votes.counts(query)[winner] as usize == teachers);
        lines += &format!("{query},{}\n", csv_cell(&options.classes.name(winner)));
    }
    write_output(&options.out, lines.as_bytes())?;
    Ok(report)
}

/// Reads the votes of one teacher, or of every row of a table.
fn votes_of(path: &Path, question: &Question<'_>) -> Result<Vec<Vote>, ExperimentError> {
    let bytes = read_text(path)?;
    let single = |fault| ExperimentError::input(path, fault);
    if !has_extension(path, "npy") || question.classes.names().is_some() {
        return parse_answer(&bytes, question).map_err(single);
    }
    let table = parse_numbers(&bytes).map_err(|fault| ExperimentError::input(path, fault))?;
    let [rows, columns] = table.shape[..] else { return parse_answer(&bytes, question).map_err(single) };
    // One teacher's table of queries x classes, or many teachers' table of teachers x queries.
    let classes = question.classes.len();
    let is_of_one = [rows, columns] == [question.queries, classes];
    if is_of_one && columns == question.queries {
        return Err(ExperimentError::input(
            path,
            format_args!(
                "expected votes of one form, found a table of {rows} x {rows}, which may be queries x classes of one teacher or teachers x \
                 queries: give one file for each teacher, as CSV"
            ),
        ));
    }
    if columns != question.queries {
        return parse_answer(&bytes, question).map_err(single);
    }
    votes_below(classes, table.values).map_err(|error| error.at(path))
}
