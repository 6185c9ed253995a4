//! The way of every stage from its inputs to its output.

use super::context::Context;
use super::machine;
use super::stage::Stage;
use crate::error::ExperimentError;
use crate::store::{Identity, StageState};

/// Returns the output of `stage`, which is run unless it is done with the same fingerprint.
///
/// # Errors
/// If the stage fails.
pub(crate) fn complete<S: Stage>(context: &Context<'_>, stage: &S) -> Result<S::Output, ExperimentError> {
    context.progress.started(stage.name());
    let identity = identify(context, stage)?;
    let done = match open(context, stage, &identity)? {
        StageState::Done(done) => {
            stage.was_done(context);
            context.progress.finished(stage.name(), true);
            done
        }
        StageState::Outstanding(mut folder) => {
            let outputs = stage.run(context, &mut folder)?;
            let done = folder.finish(&outputs)?;
            context.progress.finished(stage.name(), false);
            done
        }
    };
    stage.clean_up(context, &identity)?;
    stage.load(context, &done)
}

fn open<S: Stage>(context: &Context<'_>, stage: &S, identity: &Identity) -> Result<StageState, ExperimentError> {
    let state = stage.open(context, identity)?;
    if let StageState::Outstanding(folder) = &state
        && let Some(kept) = folder.superseded()
    {
        context.progress.note(&format!("{}: what other inputs left here is kept as {kept}", identity.name));
    }
    if let StageState::Outstanding(folder) = &state
        && stage.depends_on_machine()
    {
        machine::note(context, folder)?;
    }
    Ok(state)
}

fn identify<S: Stage>(context: &Context<'_>, stage: &S) -> Result<Identity, ExperimentError> {
    let inputs = stage.inputs(context)?;
    let (name, kind, version) = (stage.name(), stage.kind(), stage.code_version());
    let identity = if stage.depends_on_machine() {
        machine::identify(context, name, version, inputs)?
    } else {
        Identity::new(name, kind, version, inputs)
    };
    Ok(identity.with_earlier(stage.earlier_version()))
}
