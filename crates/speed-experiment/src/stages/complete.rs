//! The way of every stage from its inputs to its output.

use std::time::{Duration, Instant};

use super::context::Context;
use super::machine;
use super::stage::Stage;
use crate::error::{ExperimentError, ResultsFault};
use crate::store::{ARITHMETIC, FinishedStage, Identity, StageState};

/// Returns the output of `stage`, which is run unless it is done with the same fingerprint. A shard runs nothing: it reads what is done.
///
/// # Errors
/// If the stage fails, or a shard finds it not done.
pub(crate) fn complete<S: Stage>(context: &Context<'_>, stage: &S) -> Result<S::Output, ExperimentError> {
    if context.store.is_shard() { find(context, stage) } else { perform(context, stage) }
}

/// How long a shard sleeps between looks at an earlier stage.
const LOOK: Duration = Duration::from_secs(1);

/// Returns the output of a stage that another process did, and waits for it as long as the context says.
fn find<S: Stage>(context: &Context<'_>, stage: &S) -> Result<S::Output, ExperimentError> {
    let identity = identify(context, stage)?;
    let look = || match stage.is_read_by_shards() {
        true => context.store.done(&identity),
        false => context.store.recorded(&identity),
    };
    let done = look().or_else(|| wait_for(context, &identity.name, look));
    let done = done.ok_or_else(|| ExperimentError::Results {
        path: context.store.remains_of(&identity.name).folder().to_path_buf(),
        fault: ResultsFault::NotDone { stage: identity.name.clone() },
    })?;
    stage.load(context, &done)
}

/// Looks again and again, for as long as a file system may show late what another machine wrote.
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

/// Returns the output of `stage` likewise, in a shard as well.
///
/// # Errors
/// If the stage fails.
pub(super) fn perform<S: Stage>(context: &Context<'_>, stage: &S) -> Result<S::Output, ExperimentError> {
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

/// Opens a stage by its identity, and once more by the one that it has meanwhile: machines of several kinds that begin together are
/// of the kind of the first, where kinds may be mixed.
///
/// # Errors
/// Those of `open`.
pub(super) fn identified<S: Stage, T>(
    context: &Context<'_>,
    stage: &S,
    identity: Identity,
    open: impl Fn(&Identity) -> Result<T, ExperimentError>,
) -> Result<(T, Identity), ExperimentError> {
    match open(&identity) {
        Ok(opened) => Ok((opened, identity)),
        Err(error) if !(context.mix_machines && stage.depends_on_machine()) => Err(error),
        Err(error) => match identify(context, stage)? {
            same if same.fingerprint == identity.fingerprint => Err(error),
            other => Ok((open(&other)?, other)),
        },
    }
}

pub(super) fn identify<S: Stage>(context: &Context<'_>, stage: &S) -> Result<Identity, ExperimentError> {
    let inputs = stage.inputs(context)?;
    let (name, kind, version) = (stage.name(), stage.kind(), stage.code_version());
    let identity = if stage.depends_on_machine() {
        machine::identify(context, name, version, inputs)?
    } else {
        Identity::new(name, kind, version, inputs)
    };
    let mut side_files = stage.side_files();
    side_files.extend(stage.depends_on_machine().then_some(ARITHMETIC));
    Ok(identity.with_earlier(stage.earlier_version()).with_side_files(side_files))
}
