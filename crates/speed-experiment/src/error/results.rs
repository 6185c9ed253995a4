//! Faults of folders and files of results.

use std::path::PathBuf;

use speed_accountant::round_up;
use speed_core::{printable, printable_path};

/// The fault of a folder or file of results, and the way on.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ResultsFault {
    /// Another process works in the folder.
    #[error("another `speed` works in this folder: wait for it, or use another --results")]
    InUse,
    /// The folder belongs to another config, or its config was changed.
    #[error(
        "this results folder belongs to another config, or this file was changed: expected the config whose SHA-256 begins with {expected}, \
         found one whose begins with {found}: move the folder away, or use another --results"
    )]
    OtherConfig {
        /// The run's id.
        expected: String,
        /// The id of the config that is there.
        found: String,
    },
    /// A file in the place of a folder of results.
    #[error("is a file, expected a folder of results: give another --results")]
    NotFolder,
    /// A value that has no form in JSON.
    #[error("cannot be written as JSON: {0}")]
    Unwritable(#[source] serde_json::Error),
    /// A file of a stage does not have the form of its name.
    #[error(
        "not a file that this version wrote: expected a value in JSON, found {found}; --force {stage} does the stage again"
    )]
    NotOurs {
        /// What the file holds.
        found: String,
        /// The stage.
        stage: String,
    },
    /// A table of a stage that is not whole.
    #[error("expected {expected}, found {found}; --force {stage} does the stage again")]
    Table {
        /// What was expected.
        expected: String,
        /// What was found.
        found: String,
        /// The stage.
        stage: String,
    },
    /// A report does not have the form of one.
    #[error(
        "not a report that this version wrote: expected a report in JSON, found {found}; `speed run` with the same config writes it again"
    )]
    NoReport {
        /// What the file holds.
        found: String,
    },
    /// A file of a run's page is damaged.
    #[error("{damage}, expected the file that the run wrote; `speed run` with the same config writes it again")]
    Page {
        /// The damage.
        damage: Damage,
    },
    /// A run has no report.
    #[error(
        "no finished run here: expected its report, which cannot be read ({0}); `speed list` shows which runs there are"
    )]
    Unfinished(#[source] std::io::Error),
    /// The mark of charged answers is damaged.
    #[error(
        "expected the 32 hexadecimal digits of the noise that answers were charged with, found {found}: take the file from a copy"
    )]
    Mark {
        /// What the file holds.
        found: String,
    },
    /// A run lacks its report.
    #[error("is not there: the run is not finished, or its report was lost; `speed run` with the same config makes it")]
    NotFinished,
    /// No run has this name.
    #[error(
        "no {}run of this name: expected a run's folder, an experiment's with one run, or, below {}, an experiment's name or \
         the beginning of a run's id; {}`speed list` shows which there are",
        if *finished { "finished " } else { "" },
        printable_path(results),
        instead.as_ref().map_or_else(String::new, |name| format!("did you mean {}? ", printable(name)))
    )]
    NoRun {
        /// True where only finished runs were looked for.
        finished: bool,
        /// The folder of results that was searched.
        results: PathBuf,
        /// The experiment that was probably meant.
        instead: Option<String>,
    },
    /// Several runs have this name.
    #[error("{} runs of this name, expected one: {}", found.len(), folders(found))]
    SeveralRuns {
        /// Their folders.
        found: Vec<PathBuf>,
    },
    /// A report is larger than any.
    #[error("not a report that this version wrote: expected a file of at most {max} bytes, found {found}")]
    ReportSize {
        /// Bytes of a report at most.
        max: u64,
        /// Its length, as far as it was read.
        found: u64,
    },
    /// A report is of no run that a config can ask for.
    #[error("not a report that this version wrote: expected {expected}, found {found}")]
    Unlikely {
        /// What was expected.
        expected: String,
        /// What was found.
        found: String,
    },
    /// There is no folder of results.
    #[error("there is no such folder of results: expected the --results of a run")]
    NoFolder,
    /// Another kind of machine began the stage.
    #[error(
        "was begun on another kind of machine ({}, here {here}): its last bits would not be repeated. Go on there, or mix both \
         with --mix-machines, or begin anew under another --results (real noise is then paid anew); arithmetic = \"portable\" in \
         a config gives the same bits on every machine. `speed show` prints a finished run's table anywhere", first.escape_debug()
    )]
    OtherMachine {
        /// The kind of machine that began it, as it stands in a folder that may be from anywhere.
        first: String,
        /// This machine's kind.
        here: String,
    },
    /// Another process works on a stage that would be set aside.
    #[error("{holder} works on it: wait until it is done, or end it")]
    Leased {
        /// The process, as its lease names it.
        holder: String,
    },
    /// A stage's folder holds work of other inputs.
    #[error(
        "holds work of other inputs ({}). A shard sets nothing aside: `speed run` with the same config and --stage does",
        if differs.is_empty() { "or of another version".to_owned() } else { format!("these differ: {}", differs.join(", ")) }
    )]
    OtherInputs {
        /// The names of the inputs that differ, as far as the folder tells.
        differs: Vec<String>,
    },
    /// Another program began the stage.
    #[error(
        "was begun by another program ({first}; here {here}): shards of one stage are to be of one. Use the same binary everywhere, or, if both compute the same, --mix-machines"
    )]
    OtherProgram {
        /// The program that began it.
        first: String,
        /// This one.
        here: String,
    },
    /// A stage that a shard reads is not done.
    #[error("is not done, and a shard does nothing but its units: first `speed run CONFIG --stage {stage}`")]
    NotDone {
        /// The stage.
        stage: String,
    },
    /// A finished stage is damaged, and a shard does not do it again.
    #[error("{damage}: `speed run` with the same config does the stage again")]
    Damaged {
        /// The damage.
        damage: Damage,
    },
    /// A stage's folder was renamed, or removed, under who worked in it.
    #[error("was set aside by a run with other inputs while this one worked in it: run again")]
    SetAside,
    /// A stage that was done is gone.
    #[error("was taken away by another run of the experiment: run again")]
    TakenAway,
    /// The secret beside the ledger is gone.
    #[error("is missing: without it nobody knows which answers the ledger's charges are for. Take it from a copy")]
    NoLedgerKey,
    /// The secret beside the ledger was cut.
    #[error("has {found} bytes, expected 32: take it from a copy")]
    LedgerKeyLength {
        /// Its length.
        found: usize,
    },
    /// A charge that was made is not in the ledger.
    #[error(
        "the charge for the answers in {} is missing: the ledger was lost, cut or replaced. Take it from a copy; without it nobody \
         knows what was spent",
        printable_path(answers)
    )]
    NoCharge {
        /// The folder of the answers.
        answers: PathBuf,
    },
    /// Charged answers are not there as they were: to answer again would be paid again.
    #[error(
        "{damage}, and the {queries} answers of row {row:?} were charged: put it back, or --force {stage} to answer again and to \
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
        /// Epsilon of the ledger as it is, and after another charge.
        price: Result<(f64, f64), Box<dyn std::error::Error + Send + Sync>>,
    },
}

/// The damage of a finished stage.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Damage {
    /// The record cannot be read.
    #[error("is no record of a stage")]
    NoRecord,
    /// The record is that of other inputs.
    #[error("is of other votes, queries or settings, or of another version")]
    OtherInputs,
    /// An output was changed.
    #[error("was changed")]
    Changed,
    /// An output is missing.
    #[error("is missing")]
    Missing,
    /// The folder holds noise of another question.
    #[error("holds the noise of charged answers to other votes, queries or settings")]
    OtherNoise,
    /// The folder is missing or was changed.
    #[error("is missing or was changed")]
    Gone,
}

/// Says what bytes hold in place of a value in JSON.
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
