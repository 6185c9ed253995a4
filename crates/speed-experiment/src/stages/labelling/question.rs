//! The question that a labelling answers.

use speed_core::Votes;

use crate::config::RowConfig;
use crate::stages::truth::Truth;
use crate::store::Fingerprint;

/// The votes on a row's queries.
#[derive(Clone, Copy)]
pub(crate) struct Question<'a> {
    pub(crate) row: &'a RowConfig,
    pub(crate) votes: &'a Votes,
    /// The hash of the votes' stage.
    pub(crate) votes_hash: Fingerprint,
    /// Pool indices of the row's queries.
    pub(crate) queries: &'a [usize],
    /// The pool's true labels, if known.
    pub(crate) truth: Option<&'a Truth<'a>>,
}
