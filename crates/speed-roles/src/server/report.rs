//! The report of a server, and the view of those who watch it.

use std::path::PathBuf;

use serde::Serialize;

use crate::refusal::Refusal;

/// Events while a server works.
pub trait Progress: Sync {
    /// Tells that a file was refused.
    fn refused(&self, refusal: &Refusal);
    /// Tells that the argmax begins: queries of the round, and how many were answered before an interruption.
    fn begin(&self, queries: usize, done: usize);
    /// Tells that so many more queries are answered.
    fn advance(&self, queries: usize);
}

/// The report of a server.
#[derive(Debug, Serialize)]
pub struct ServerReport {
    /// The round's id.
    pub round: String,
    /// The round's name.
    pub name: String,
    /// True if the round is a simulation.
    pub simulation: bool,
    /// Number of queries.
    pub queries: usize,
    /// Teachers of the round.
    pub teachers: usize,
    /// Teachers that had to answer.
    pub minimum: usize,
    /// Teachers in the sum.
    pub counted: usize,
    /// The largest honest ratio that an accountant may use: see
    /// [`AnswerList::honest_ratio`](speed_aggregation::AnswerList::honest_ratio).
    pub honest_ratio: f64,
    /// True if the messages in the sum are proved to be well formed.
    pub proven: bool,
    /// True if the server added the noise.
    pub noise_by_server: bool,
    /// Files that were not counted, and why.
    pub refused: Vec<Refusal>,
    /// Teachers without any message when the sum was closed.
    pub missing: Vec<usize>,
    /// Queries that an earlier, interrupted run had answered.
    pub resumed: usize,
    /// The result.
    pub out: PathBuf,
    /// Its length.
    pub bytes: usize,
}
