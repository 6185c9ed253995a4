//! The completion of a stage: its output is read if it is recorded, and computed otherwise.

use std::time::{Duration, Instant};

use super::context::Context;
use super::machine;
use super::stage::{Stage, StageFacts};
use crate::error::ExperimentError;
use crate::store::{FinishedStage, Identity, StageState};

/// Returns the output of `stage`, and runs the stage unless it is finished with the same fingerprint. A shard runs no stage.
pub(crate) fn complete<S: Stage>(context: &Context<'_>, stage: &S) -> Result<S::Output, ExperimentError> {
    if context.store.is_shard() { find(context, stage) } else { Ok(perform(context, stage)?.0) }
}

const LOOK: Duration = Duration::from_secs(1);

/// Returns the output of a stage of another process, and waits for it up to the context's maximum time.
fn find<S: Stage>(context: &Context<'_>, stage: &S) -> Result<S::Output, ExperimentError> {
    let identity = identify(context, stage)?;
    let look = || match stage.facts().is_read_by_shards {
        true => context.store.done(&identity),
        false => context.store.recorded(&identity),
    };
    let done = look().or_else(|| wait_for(context, &identity.name, look));
    let done = done.ok_or_else(|| {
        let next = format!("first run `speed run CONFIG --stage {}`", identity.name);
        let fault = format!("is not done, and shards do not run earlier stages: {next}");
        ExperimentError::results(context.store.remains_of(&identity.name).folder(), fault)
    })?;
    stage.load(context, &done)
}

/// Polls for a stage, because a network file system may show another machine's writes late.
fn wait_for(context: &Context<'_>, stage: &str, look: impl Fn() -> Option<FinishedStage>) -> Option<FinishedStage> {
    let (start, wait) = (Instant::now(), context.latency_wait);
    if !wait.is_zero() {
        context.progress.note(&format!("{stage} is not seen done yet: waiting up to {} s for it", wait.as_secs()));
    }
    while start.elapsed() < wait {
        std::thread::sleep(LOOK.min(wait));
        if let Some(done) = look() {
            return Some(done);
        }
    }
    None
}

/// Returns the output of `stage` as [`complete`] does, but also runs the stage in a shard. Returns with it whether the stage
/// ran here.
pub(super) fn perform<S: Stage>(context: &Context<'_>, stage: &S) -> Result<(S::Output, bool), ExperimentError> {
    context.progress.started(stage.facts().name);
    let identity = identify(context, stage)?;
    let (done, is_new) = match open(context, stage, &identity)? {
        StageState::Done(done) => {
            stage.was_done(context);
            context.progress.finished(stage.facts().name, true);
            (done, false)
        }
        StageState::Outstanding(mut folder) => {
            let outputs = stage.run(context, &mut folder)?;
            let done = folder.finish(&outputs)?;
            context.progress.finished(stage.facts().name, false);
            (done, true)
        }
    };
    stage.clean_up(context, &identity)?;
    Ok((stage.load(context, &done)?, is_new))
}

fn open<S: Stage>(context: &Context<'_>, stage: &S, identity: &Identity) -> Result<StageState, ExperimentError> {
    let state = stage.open(context, identity)?;
    if let StageState::Outstanding(folder) = &state
        && let Some(kept) = folder.superseded()
    {
        context.progress.note(&format!("{}: the files for other inputs are kept as {kept}", identity.name));
    }
    if let StageState::Outstanding(folder) = &state
        && stage.facts().depends_on_machine
    {
        machine::note(context, folder)?;
    }
    Ok(state)
}

/// Opens a stage by its identity. If that fails and kinds of machines may be mixed, tries again with the stage's new
/// identity, because another kind of machine may have begun the stage meanwhile.
pub(super) fn identified<S: Stage, T>(
    context: &Context<'_>,
    stage: &S,
    identity: &Identity,
    open: impl Fn(&Identity) -> Result<T, ExperimentError>,
) -> Result<T, ExperimentError> {
    match open(identity) {
        Err(error) if context.mix_machines && stage.facts().depends_on_machine => match identify(context, stage)? {
            same if same.fingerprint == identity.fingerprint => Err(error),
            other => open(&other),
        },
        opened => opened,
    }
}

pub(super) fn identify<S: Stage>(context: &Context<'_>, stage: &S) -> Result<Identity, ExperimentError> {
    let inputs = stage.inputs(context)?;
    let StageFacts { name, kind, version, depends_on_machine, .. } = stage.facts();
    if depends_on_machine {
        machine::identify(context, name, version, inputs)
    } else {
        Ok(Identity::new(name, kind, version, inputs))
    }
}
