//! Stages whose work is divided into units that several processes share.

use super::complete::{identified, identify};
use super::context::Context;
use super::machine;
use super::stage::Stage;
use crate::error::ExperimentError;
use crate::store::{Identity, StageFolder, StageState};

/// A stage whose work is divided into units.
pub(crate) trait Divided: Stage {
    /// Returns the number of its units.
    fn units(&self, context: &Context<'_>) -> usize;

    /// Returns the names of the files that exist once a unit is done.
    fn files(&self, unit: usize) -> Vec<String>;

    /// Ensures that these units are done, and returns how many this process did.
    ///
    /// # Errors
    /// If the work fails; saved units stay.
    fn share(&self, context: &Context<'_>, folder: &StageFolder, units: &[usize]) -> Result<usize, ExperimentError>;
}

/// Returns the identity of a stage, which settings of a sweep may share.
///
/// # Errors
/// If its inputs cannot be read.
pub(crate) fn identity<S: Stage>(context: &Context<'_>, stage: &S) -> Result<Identity, ExperimentError> {
    identify(context, stage)
}

/// Does a share of a stage's units, unless the stage is done. Returns how many this process did, and the identity of
/// their stage: the identity of the first kind of machine, if another process began the stage meanwhile.
///
/// # Errors
/// If the work fails, or the stage's directory has other content.
pub(crate) fn do_share<S: Divided>(
    context: &Context<'_>,
    stage: &S,
    identity: Identity,
    units: &[usize],
) -> Result<(usize, Identity), ExperimentError> {
    if context.store.recorded(&identity).is_some() || units.is_empty() {
        return Ok((0, identity));
    }
    context.progress.started(stage.name());
    let (state, identity) = identified(context, stage, identity, |identity| stage.open(context, identity))?;
    let done = match state {
        StageState::Done(_) => 0,
        StageState::Outstanding(folder) => {
            if stage.depends_on_machine() {
                machine::note(context, &folder)?;
            }
            stage.share(context, &folder, units)?
        }
    };
    context.progress.finished(stage.name(), false);
    Ok((done, identity))
}
