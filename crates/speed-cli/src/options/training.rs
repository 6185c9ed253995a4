//! Options of trainings outside of runs.

use std::num::{NonZeroU16, NonZeroU32, NonZeroUsize};
use std::path::PathBuf;

use clap::{ArgGroup, Args};
use speed_accountant::Delta;
use speed_core::Classes;
use speed_experiment::report::csv;
use speed_experiment::training::Features;

use super::privacy::delta;

/// Largest seed, because configs have signed integers.
pub(super) const MAX_SEED: u64 = i64::MAX as u64;

/// The names of classes.
#[derive(Clone, Debug)]
pub(crate) struct ClassNames(pub(crate) Vec<String>);

/// Reads a list of names as a line of CSV, so a name with a comma is put in quotes; without the spaces that people write after commas.
fn class_names(text: &str) -> Result<ClassNames, String> {
    // CSV has quotes only at the beginning of a cell.
    let text = text.split(',').map(|part| if part.trim_start().starts_with('"') { part.trim_start() } else { part });
    let lines = csv::read(&text.collect::<Vec<_>>().join(","));
    let [names] = &lines[..] else { return Err(format!("expected one line of names, found {}", lines.len())) };
    match names.iter().find(|name| name.contains('"')) {
        Some(name) => Err(format!("expected names without quotes, found {name:?}")),
        None => Ok(ClassNames(names.iter().map(|name| name.trim().to_owned()).collect())),
    }
}

/// Reads the classes of a round: their names, or their number if they are called by their numbers from 0.
pub(super) fn classes(text: &str) -> Result<Classes, String> {
    let is_count = text.bytes().all(|letter| letter.is_ascii_digit());
    let count = text.parse().ok().filter(|_| is_count);
    let classes = count
        .map_or_else(|| class_names(text).map(|names| Classes::named(names.0)), |count| Ok(Classes::numbered(count)));
    classes?.map_err(|error| error.to_string())
}

/// The form of pictures and the seed of a training.
#[derive(Debug, Args)]
pub(crate) struct CommonTrainOptions {
    /// The names of the classes in the order of the labels, separated by commas (a name with a comma in double quotes); all parties of a round need the same
    /// [default: the names of the folders, in their order]
    #[arg(long, value_name = "NAMES", value_parser = class_names)]
    pub(crate) classes: Option<ClassNames>,
    /// Resize all pictures to HEIGHTxWIDTH; without it all must have the same size
    #[arg(long, value_name = "HxW")]
    pub(crate) size: Option<String>,
    /// Convert all pictures to grey
    #[arg(long)]
    pub(crate) grey: bool,
    /// Seed of the training [default: drawn, and printed]
    #[arg(long, value_name = "SEED", value_parser = clap::value_parser!(u64).range(..=MAX_SEED))]
    pub(crate) seed: Option<u64>,
    /// Print JSON (docs/json.md)
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct TeacherTrainOptions {
    /// A folder with one subfolder of PNG and JPEG pictures for each class, or an .npy array: images x height x width (x
    /// channels), uint8
    #[arg(long, value_name = "FOLDER")]
    pub(crate) images: PathBuf,
    /// The labels of an array: .npy, classes from 0
    #[arg(long, value_name = "FILE")]
    pub(crate) labels: Option<PathBuf>,
    /// Train this number of teachers on disjoint parts; --out is then a folder. A keyed hash of a group's name decides
    /// about its part. Needs --classes
    #[arg(long, value_name = "M")]
    pub(crate) parts: Option<NonZeroUsize>,
    /// With --parts: the key of the division. Keep it secret, and keep it for all rounds; it is made if it is missing
    #[arg(long, value_name = "FILE", default_value = "division.key")]
    pub(crate) division_key: PathBuf,
    /// Keep images together whose file names have the same beginning before this separator: for example, with "_" all
    /// pictures of the patient 07 whose names begin with 07_
    #[arg(long, value_name = "SEPARATOR", conflicts_with = "groups")]
    pub(crate) group_by_prefix: Option<String>,
    /// Keep images together that have the same group in this CSV file with the columns file and group
    #[arg(long, value_name = "FILE")]
    pub(crate) groups: Option<PathBuf>,
    /// Fraction of the groups of images that is held out to measure the teacher
    #[arg(long, value_name = "FRACTION", default_value_t = 0.2)]
    pub(crate) validation: f64,
    /// Passes over the training images [default: teacher.steps = 300 steps of 30 images]
    #[arg(long, value_name = "N")]
    pub(crate) epochs: Option<NonZeroUsize>,
    /// Change a key of [teacher] (configs/default.toml), for example --set teacher.architecture=deeper
    #[arg(long = "set", value_name = "KEY=VALUE")]
    pub(crate) sets: Vec<String>,
    /// Number of teachers that are trained at the same time; results do not depend on it [default: all processors]
    #[arg(long, value_name = "N")]
    pub(crate) threads: Option<NonZeroU16>,
    #[command(flatten)]
    pub(crate) common: CommonTrainOptions,
    /// The new model file, or with --parts the new folder of model files; only their owner can read them
    #[arg(long, value_name = "FILE")]
    pub(crate) out: PathBuf,
}

#[derive(Debug, Args)]
pub(crate) struct TeacherVoteOptions {
    /// The models: files, or folders of .safetensors files; each is one teacher
    #[arg(long, value_name = "FILE", required_unless_present = "onnx", num_args = 1..)]
    pub(crate) model: Vec<PathBuf>,
    /// ONNX models of other programs: files, or folders of .onnx files; each is one teacher. Input N x channels x height x
    /// width, uint8 or float32 from 0 to 1; first output N x classes, scores or probabilities. Use only models that you trust
    #[arg(long, value_name = "FILE", conflicts_with = "model", num_args = 1..)]
    pub(crate) onnx: Vec<PathBuf>,
    /// The names of the classes of ONNX models, in the order of their scores, separated by commas [default: the file's
    /// metadata entry classes, a JSON list]
    #[arg(long, value_name = "NAMES", value_parser = class_names, conflicts_with = "model")]
    pub(crate) classes: Option<ClassNames>,
    /// Resize images to the size of the ONNX model and convert them to its colours; without it, other images are refused
    #[arg(long, conflicts_with = "model")]
    pub(crate) fit: bool,
    /// The public images: a folder of pictures, or an .npy array
    #[arg(long, value_name = "FOLDER")]
    pub(crate) images: PathBuf,
    /// The round's list of queries, which names images by their paths in the folder; the votes have its order. If it has
    /// groups, the answer to a group is the most frequent class of its images [default: all images in the order of their
    /// names]
    #[arg(long, value_name = "FILE")]
    pub(crate) query_list: Option<PathBuf>,
    /// Known answers that measure the models, which are then reported beside the votes: a CSV file with the columns name (of an
    /// image or group among the queries) and label (the name of its class)
    #[arg(long, value_name = "FILE")]
    pub(crate) known: Option<PathBuf>,
    /// The new votes: .csv with lines of name,label for one model; .npy, teachers x queries; or otherwise a folder with a
    /// CSV file for each model
    #[arg(long, value_name = "FILE")]
    pub(crate) out: PathBuf,
    /// Number of threads; votes do not depend on it [default: all processors]
    #[arg(long, value_name = "N")]
    pub(crate) threads: Option<NonZeroU16>,
    /// Print JSON (docs/json.md)
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
#[command(group = ArgGroup::new("by cluster").args(["clusters", "groups"]).multiple(true))]
pub(crate) struct StudentQueriesOptions {
    /// The public images: a folder of pictures; with --clusters or --groups also an .npy array
    #[arg(long, value_name = "FOLDER")]
    pub(crate) pool: PathBuf,
    /// Number of queries
    #[arg(long, value_name = "N")]
    pub(crate) count: usize,
    /// Divide the pool into as many clusters of similar images, and choose the typical image of each [default: a random choice]
    #[arg(long)]
    pub(crate) clusters: bool,
    /// Divide the pool into as many clusters of similar images, and choose the core of each: a query is then a group of
    /// images, which get one label together
    #[arg(long)]
    pub(crate) groups: bool,
    /// The vectors by which images are similar: straightened (grey levels, centred and without slant, for handwriting on a
    /// dark background), gradients (directions of edges, for photographs) or pixels [default: straightened]
    #[arg(long, value_name = "NAME", requires = "by cluster")]
    pub(crate) features: Option<Features>,
    /// Resize all pictures to HEIGHTxWIDTH; without it all must have the same size. A random choice keeps all sizes
    #[arg(long, value_name = "HxW")]
    pub(crate) size: Option<String>,
    /// Convert all pictures to grey
    #[arg(long)]
    pub(crate) grey: bool,
    /// Seed of the choice [default: drawn, and printed]
    #[arg(long, value_name = "SEED")]
    pub(crate) seed: Option<u64>,
    /// Number of threads; the choice does not depend on it [default: all processors]
    #[arg(long, value_name = "N", requires = "by cluster")]
    pub(crate) threads: Option<NonZeroU16>,
    /// The new list of queries, for `student round --query-list`
    #[arg(long, value_name = "FILE")]
    pub(crate) out: PathBuf,
    /// Print JSON (docs/json.md)
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct PluralityOptions {
    /// Files of votes: CSV or .npy of one teacher, or .npy tables of teachers x queries
    #[arg(long, value_name = "FILE", required = true, num_args = 1..)]
    pub(crate) votes: Vec<PathBuf>,
    /// The list of queries that the teachers voted on
    #[arg(long, value_name = "FILE")]
    pub(crate) query_list: PathBuf,
    /// The names of the classes in their order, separated by commas; or their number, if they are called 0, 1 and so on
    #[arg(long, value_name = "NAMES", value_parser = classes)]
    pub(crate) classes: Classes,
    /// The new file of labels, lines of query,label
    #[arg(long, value_name = "FILE")]
    pub(crate) out: PathBuf,
    /// Print JSON (docs/json.md)
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct StudentTrainOptions {
    /// The public images without labels: a folder of pictures, or an .npy array
    #[arg(long, value_name = "FOLDER")]
    pub(crate) pool: PathBuf,
    /// The labels of `student open`, lines of query,label; or lines of name,label; labels are names of classes. Queries without a label are skipped, and
    /// the label of a group is the label of all its images
    #[arg(long, value_name = "FILE")]
    pub(crate) labels: PathBuf,
    /// The round's list of queries; without it, query 0 is the first image of the pool in the order of names, and so on
    #[arg(long, value_name = "FILE")]
    pub(crate) query_list: Option<PathBuf>,
    /// The round's file: its id is recorded in the model, its numbers of queries and classes are checked, and the model's
    /// card states its privacy cost
    #[arg(long, value_name = "FILE")]
    pub(crate) round: Option<PathBuf>,
    /// The round's result: the card states the cost for the teachers that were counted; without it, for the smallest number
    /// that the round accepts
    #[arg(long, value_name = "FILE", requires = "round")]
    pub(crate) result: Option<PathBuf>,
    /// Delta of the epsilon in the model's card
    #[arg(long, value_name = "D", default_value = "1e-5", value_parser = delta)]
    pub(crate) delta: Delta,
    /// Labelled images that measure the model, with one subfolder for each class, or an .npy array
    #[arg(long, value_name = "FOLDER")]
    pub(crate) test: Option<PathBuf>,
    /// The labels of a test array: .npy, classes from 0
    #[arg(long, value_name = "FILE", requires = "test")]
    pub(crate) test_labels: Option<PathBuf>,
    /// Epochs of 9000 images each [default: 40 for pseudo-labels, 100 for the GANs]
    #[arg(long, value_name = "N")]
    pub(crate) epochs: Option<NonZeroU32>,
    /// Change a key of [student] (configs/default.toml), for example --set student.method=gan [default method: pseudo-labels]
    #[arg(long = "set", value_name = "KEY=VALUE")]
    pub(crate) sets: Vec<String>,
    #[command(flatten)]
    pub(crate) common: CommonTrainOptions,
    /// The new model file, for `speed predict`; its card is written beside it, as -card.json and -card.md
    #[arg(long, value_name = "FILE")]
    pub(crate) out: PathBuf,
}
