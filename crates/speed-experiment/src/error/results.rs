//! Faults of directories and files of results.

use std::path::PathBuf;

use crate::report::Implausible;
use speed_accountant::round_up;
use speed_core::{printable, printable_path};

/// The fault of a directory or file of results, and the next step.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ResultsFault {
    /// Another process works in the directory.
    #[error("another `speed` works in this folder: wait for it, or use another --results")]
    InUse,
    /// A shard works in the directory.
    #[error("{shard} works in this folder: wait until it finishes, or stop it")]
    ShardAtWork {
        /// The shard in words.
        shard: String,
    },
    /// The directory belongs to another config, or its config was changed.
    #[error(
        "this results folder belongs to another config, or this file was changed: expected a config with a SHA-256 that begins with {expected}, \
         found {found}: move the folder away, or use another --results"
    )]
    OtherConfig {
        /// The run's id.
        expected: String,
        /// The id of the config in the directory.
        found: String,
    },
    /// The path of the results is a file.
    #[error("is a file, expected a folder of results: give another --results")]
    NotFolder,
    /// An output that exists.
    #[error("already exists and is never overwritten: move it away, or give another name")]
    Exists,
    /// A value that JSON cannot represent.
    #[error("cannot be written as JSON: {0}")]
    Unwritable(#[source] serde_json::Error),
    /// A file of a stage does not have the expected format.
    #[error(
        "not a file that this version wrote: expected a value in JSON, found {found}; --force {stage} repeats the stage"
    )]
    NotOurs {
        /// The content that was found.
        found: String,
        /// The stage.
        stage: String,
    },
    /// A table of a stage is incomplete.
    #[error("expected {expected}, found {found}; --force {stage} repeats the stage")]
    Table {
        /// The expected content.
        expected: String,
        /// The content that was found.
        found: String,
        /// The stage.
        stage: String,
    },
    /// A report does not have the expected format.
    #[error(
        "not a report that this version wrote: expected a report in JSON, found {found}; `speed run` with the same config writes it again"
    )]
    NoReport {
        /// The content that was found.
        found: String,
    },
    /// A file of a run's page is damaged.
    #[error("{damage}, expected the file that the run wrote; `speed run` with the same config writes it again")]
    Page {
        /// The damage.
        damage: Damage,
    },
    /// A run has no report.
    #[error("no finished run here: expected its report, which cannot be read ({0}); `speed list` shows the runs")]
    Unfinished(#[source] std::io::Error),
    /// The mark of charged answers is damaged.
    #[error(
        "expected the 32 hexadecimal digits that identify the noise of charged answers, found {found}: restore the file from a copy"
    )]
    Mark {
        /// The content that was found.
        found: String,
    },
    /// A run's report is missing.
    #[error("is missing: the run is not finished, or its report was lost; `speed run` with the same config writes it")]
    NotFinished,
    /// No run has this name.
    #[error(
        "no {}run of this name: expected the folder of a run or of an experiment with one run, or, below {}, the name of an experiment \
         or the beginning of a run's id; {}`speed list` shows them",
        if *finished { "finished " } else { "" },
        printable_path(results),
        instead.as_ref().map_or_else(String::new, |name| format!("did you mean {}? ", printable(name)))
    )]
    NoRun {
        /// True if only finished runs were searched.
        finished: bool,
        /// The directory of results that was searched.
        results: PathBuf,
        /// The experiment with the most similar name.
        instead: Option<String>,
    },
    /// Several runs have this name.
    #[error("{} runs of this name, expected one: {}", found.len(), folders(found))]
    SeveralRuns {
        /// Their directories.
        found: Vec<PathBuf>,
    },
    /// A file of another version.
    #[error(
        "found {}, this program reads format {expected}: use the version of speed that wrote it, or move it away and run again",
        found.map_or_else(|| "a file without a format".to_owned(), |found| format!("format {found}"))
    )]
    Format {
        /// The version that this program reads.
        expected: u32,
        /// The version found; `None` if the file states none.
        found: Option<u32>,
    },
    /// A report exceeds the size limit.
    #[error("not a report that this version wrote: expected a file of at most {max} bytes, found {found}")]
    ReportSize {
        /// The size limit, in bytes.
        max: u64,
        /// Its length in bytes, as far as it was read.
        found: u64,
    },
    /// A report describes a run that no config allows.
    #[error("not a report that this version wrote: expected {expected}, found {found}")]
    Unlikely {
        /// The expected value.
        expected: String,
        /// The value that was found.
        found: String,
    },
    /// The directory of results does not exist.
    #[error("there is no such folder of results: expected the --results of a run")]
    NoFolder,
    /// Another kind of machine started the stage.
    #[error(
        "was started on another kind of machine ({}, here {here}), whose last bits differ. Resume it there, or mix both kinds \
         with --mix-machines, or start again under another --results (this charges real noise again); arithmetic = \"portable\" in \
         a config gives the same bits on every machine. `speed show` prints a finished run's table anywhere", first.escape_debug()
    )]
    OtherMachine {
        /// The kind of machine that started it; untrusted text from the directory.
        first: String,
        /// This machine's kind.
        here: String,
    },
    /// A stage's directory holds work with other inputs.
    #[error(
        "holds work with other inputs ({}). A shard does not set it aside: first run `speed run` with the same config and --stage",
        if differs.is_empty() { "or of another version".to_owned() } else { format!("these differ: {}", differs.join(", ")) }
    )]
    OtherInputs {
        /// The names of the inputs that differ, if the directory contains them.
        differs: Vec<String>,
    },
    /// Another program started the stage.
    #[error(
        "was started by another program ({first}; here {here}): all shards of a stage must run one program. Use the same binary everywhere, or use --mix-machines if both compute the same"
    )]
    OtherProgram {
        /// The program that started it.
        first: String,
        /// This program.
        here: String,
    },
    /// A stage that a shard reads is not finished.
    #[error("is not done, and shards do not run earlier stages: first run `speed run CONFIG --stage {stage}`")]
    NotDone {
        /// The stage.
        stage: String,
    },
    /// A finished stage is damaged, and a shard does not repeat it.
    #[error("{damage}: `speed run` with the same config repeats the stage")]
    Damaged {
        /// The damage.
        damage: Damage,
    },
    /// A stage's directory was renamed or removed while a process worked in it.
    #[error("was set aside by a run with other inputs while this run worked in it: run again")]
    SetAside,
    /// The groups of a finished stage are damaged.
    #[error("is not a list of groups of this run: remove the directory of the stage and run again")]
    DamagedGroups,
    /// A finished stage has disappeared.
    #[error("was removed by another run of the experiment: run again")]
    TakenAway,
    /// The ledger's secret is missing.
    #[error("is missing: the ledger's charges cannot be matched to answers without it. Restore it from a copy")]
    NoLedgerKey,
    /// The ledger's secret is truncated.
    #[error("has {found} bytes, expected 32: restore it from a copy")]
    LedgerKeyLength {
        /// Its length in bytes.
        found: usize,
    },
    /// The ledger lacks an earlier charge.
    #[error(
        "the charge for the answers in {} is missing: the ledger was lost, truncated or replaced. Restore it from a copy; \
         the spent budget is unknown without it",
        printable_path(answers)
    )]
    NoCharge {
        /// The directory of the answers.
        answers: PathBuf,
    },
    /// Charged answers are missing or changed: answering again would charge again.
    #[error(
        "{damage}, and the {queries} answers of row {row:?} were charged: restore it, or use --force {stage} to answer again and \
         pay again, {} in all",
        price_text(price)
    )]
    PaidAnswers {
        /// The damage of the answers.
        damage: Damage,
        /// Number of queries.
        queries: usize,
        /// The row.
        row: String,
        /// Its stage.
        stage: String,
        /// Epsilon of the ledger now, and after another charge.
        price: Result<(f64, f64), Box<dyn std::error::Error + Send + Sync>>,
    },
}

impl From<Implausible> for ResultsFault {
    fn from(Implausible { expected, found }: Implausible) -> Self {
        Self::Unlikely { expected, found }
    }
}

/// The damage of a finished stage.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Damage {
    /// The record cannot be read.
    #[error("is not a record of a stage that this version reads")]
    NoRecord,
    /// The record is for other inputs.
    #[error("belongs to other votes, queries or settings, or to another version")]
    OtherInputs,
    /// An output was changed.
    #[error("was changed")]
    Changed,
    /// An output is missing.
    #[error("is missing")]
    Missing,
    /// The directory holds noise of another question.
    #[error("holds the noise of charged answers to other votes, queries or settings")]
    OtherNoise,
    /// The directory is missing or was changed.
    #[error("is missing or was changed")]
    Gone,
}

/// Describes bytes that are not the expected JSON value.
#[must_use]
pub fn found_instead(bytes: &[u8], error: &serde_json::Error) -> String {
    match bytes.len() {
        0 => "an empty file".to_owned(),
        length if error.is_eof() => format!("{length} bytes that end early"),
        _ => error.to_string(),
    }
}

fn folders(found: &[PathBuf]) -> String {
    found.iter().map(|folder| printable_path(folder)).collect::<Vec<_>>().join(", ")
}

fn price_text(price: &Result<(f64, f64), Box<dyn std::error::Error + Send + Sync>>) -> String {
    match price {
        Ok((before, after)) => format!("epsilon {:.2} instead of {:.2}", round_up(*after, 2), round_up(*before, 2)),
        Err(error) => format!("({error})"),
    }
}
