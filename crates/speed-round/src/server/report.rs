//! The report of a server, and its progress events.

use std::path::PathBuf;

use serde::Serialize;

use crate::influence::Influence;
use crate::refusal::Refusal;

/// Events while a server works.
pub trait Progress: Sync {
    /// Reports that a file was refused.
    fn refused(&self, refusal: &Refusal);
    /// Reports that the argmax begins: the number of queries of the round, and how many were answered before an
    /// interruption.
    fn begin(&self, queries: usize, done: usize);
    /// Reports that `queries` more queries are answered.
    fn advance(&self, queries: usize);
}

/// The report of a server.
#[derive(Debug, Serialize)]
#[non_exhaustive]
pub struct ServerReport {
    /// The round's id.
    pub round: String,
    /// The round's name.
    pub name: String,
    /// True if the round is a simulation.
    pub simulation: bool,
    /// Number of queries.
    pub queries: usize,
    /// Number of teachers of the round.
    pub teachers: usize,
    /// Number of teachers that had to answer.
    pub minimum: usize,
    /// Number of parties of the round, each of which sends one message for its teachers.
    pub parties: usize,
    /// Number of teachers in the sum. A party counts with all its teachers.
    pub counted: usize,
    /// The largest honest ratio that an accountant may use: see
    /// [`AnswerList::honest_ratio`](speed_aggregation::protocol::AnswerList::honest_ratio).
    pub honest_ratio: f64,
    /// True if the messages in the sum are proved to be well formed.
    pub proven: bool,
    /// The influence of one proven teacher on a count; `None` without proofs.
    pub one_teacher: Option<Influence>,
    /// True if the server added the noise.
    pub noise_by_server: bool,
    /// Files that were not counted, with the reasons.
    pub refused: Vec<Refusal>,
    /// Indices of the parties without any message when the sum was closed.
    pub missing: Vec<usize>,
    /// Queries that an earlier, interrupted run had answered.
    pub resumed: usize,
    /// The path of the result.
    pub out: PathBuf,
    /// The result's length in bytes.
    pub bytes: usize,
}
