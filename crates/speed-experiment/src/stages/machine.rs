//! Stages that compute networks. Their bits depend on the kind of machine, which is part of their fingerprints.
//!
//! A stage cannot resume on a different kind of machine, unless kinds may be mixed. The stage's file `arithmetic` names
//! the first kind, which is in the fingerprint, and a file `arithmetic-...` names each other kind that took part. Each
//! unit records its kind.

use std::collections::BTreeSet;
use std::path::Path;

use serde_json::{Value, json};
use speed_core::Digest;

use super::context::Context;
use crate::error::ExperimentError;
use crate::store::{ARITHMETIC, Identity, RunStore, StageFolder};

/// Returns the identity of a stage that computes networks, with the kind of machine among its inputs.
pub(super) fn identify(
    context: &Context<'_>,
    stage: &str,
    code_version: u32,
    mut inputs: Value,
) -> Result<Identity, ExperimentError> {
    // With real noise, other runs of the experiment count too: retrained teachers would give other votes, and answers
    // would be paid again.
    let mut all = vec![context.store.remains_of(stage)];
    if !context.config.is_simulation() {
        all.extend(context.store.remains(stage));
    }
    let here = context.arithmetic;
    for remains in all {
        let kinds = remains.read(ARITHMETIC).unwrap_or_default();
        let Some(first) = kinds.lines().next().filter(|first| *first != here) else { continue };
        inputs[ARITHMETIC] = json!(first);
        let identity = Identity::new(stage, stage, code_version, inputs.clone());
        if remains.is_of(identity.fingerprint) {
            if !context.mix_machines {
                return Err(other_machine(remains.folder(), first, here));
            }
            // A directory is untrusted input, so its text is escaped for terminal output.
            let first = first.escape_debug();
            context.progress.note(&format!("{stage}: begun on another kind of machine ({first}, here {here})"));
            return Ok(identity);
        }
    }
    inputs[ARITHMETIC] = json!(here);
    Ok(Identity::new(stage, stage, code_version, inputs))
}

/// Records in a stage's directory that this kind of machine takes part.
pub(super) fn note(context: &Context<'_>, folder: &StageFolder) -> Result<(), ExperimentError> {
    let kind = format!("{}\n", context.arithmetic);
    let is_noted = |name: &str| {
        folder
            .read_partial(name)
            .is_some_and(|text| String::from_utf8_lossy(&text).lines().any(|line| line == kind.trim_end()))
    };
    if is_noted(ARITHMETIC) {
        return Ok(());
    }
    // One file for each kind, so that concurrent machines of different kinds never write the same file.
    let own = format!("{ARITHMETIC}-{}", &Digest::of(context.arithmetic).to_hex()[..8]);
    if is_noted(&own) { Ok(()) } else { folder.write(&own, kind.as_bytes()) }
}

pub(crate) fn kinds(store: &RunStore) -> Vec<String> {
    let stages = store.stage_names().into_iter().flat_map(|name| store.remains_of(&name).read_all(ARITHMETIC));
    let kinds: BTreeSet<String> = stages.flat_map(|text| text.lines().map(str::to_owned).collect::<Vec<_>>()).collect();
    kinds.into_iter().collect()
}

/// Returns the error of a stage that another kind of machine started; its name `first` is untrusted text from the directory.
fn other_machine(folder: &Path, first: &str, here: &str) -> ExperimentError {
    let first = first.escape_debug();
    ExperimentError::results(
        folder,
        format_args!(
            "was started on another kind of machine ({first}, here {here}), whose last bits differ. Resume it there, or mix both kinds with \
             --mix-machines, or start again under another --results (this charges real noise again); arithmetic = \"portable\" in a config \
             gives the same bits on every machine. `speed show` prints a finished run's table anywhere"
        ),
    )
}

#[cfg(test)]
mod tests {
    use std::num::NonZeroUsize;
    use std::sync::OnceLock;
    use std::time::Duration;

    use speed_core::random::Streams;

    use super::*;
    use crate::config::{ComputeDevice, Config, Source};
    use crate::device::Device;
    use crate::environment::current_environment;
    use crate::progress::Silent;
    use crate::stages::complete::{self, identified};
    use crate::stages::stage::{JsonStage, StageFacts};
    use crate::store::Shard;
    use speed_core::ExitCode;

    /// Returns the context of a process on a machine without a kind.
    fn context<'a>(config: &'a Config, store: &'a RunStore, device: &'a Device) -> Context<'a> {
        Context {
            config,
            store,
            pictures: None,
            vectors: OnceLock::new(),
            truth: None,
            streams: Streams::new(1),
            threads: NonZeroUsize::MIN,
            device,
            arithmetic: "",
            mix_machines: false,
            latency_wait: Duration::ZERO,
            progress: &Silent,
        }
    }

    #[test]
    fn another_kind_of_machine_does_not_resume_without_an_override() {
        let config = Config::load(&Source::new("test.toml", "")).expect("defaults");
        let results = tempfile::tempdir().expect("a folder");
        let store = RunStore::open(results.path(), &config, &current_environment("test")).expect("a store");
        let device = Device::open(ComputeDevice::Cpu).expect("a processor");
        let on = |arithmetic, mix_machines| Context { arithmetic, mix_machines, ..context(&config, &store, &device) };
        let inputs = |context: &Context<'_>, images: u32| identify(context, "teachers", 1, json!({ "images": images }));
        let begin = |context: &Context<'_>, images: u32| {
            let folder = store.unfinished(&inputs(context, images).expect("one kind")).expect("a folder");
            note(context, &folder).expect("written");
        };
        let on_kind = |images: u32, kind: &str| {
            Identity::new("teachers", "teachers", 1, json!({ "images": images, "arithmetic": kind })).fingerprint
        };
        let (here, there) = (on("tiles-1", false), on("vectors-2", false));
        begin(&here, 7);
        begin(&here, 7);
        let error = inputs(&there, 7).expect_err("another kind");
        assert_eq!(error.exit_code(), ExitCode::Results);
        assert!(
            ["tiles-1", "vectors-2", "--mix-machines"].iter().all(|part| error.to_string().contains(part)),
            "{error}"
        );
        // If kinds may be mixed, it resumes exactly that work, and reports it.
        let mixing = on("vectors-2", true);
        assert_eq!(inputs(&mixing, 7).expect("told to").fingerprint, on_kind(7, "tiles-1"));
        begin(&mixing, 7);
        assert_eq!(kinds(&store), ["tiles-1", "vectors-2"]);
        assert_eq!(inputs(&here, 7).expect("its own").fingerprint, on_kind(7, "tiles-1"));
        // Other work has its own identity, wherever it was begun.
        assert_eq!(inputs(&there, 8).expect("other images").fingerprint, on_kind(8, "vectors-2"));
        begin(&there, 8);
        assert_eq!(kinds(&store), ["vectors-2"]);
        // The same holds if the first kind has only just begun and recorded nothing yet.
        store.unfinished(&inputs(&here, 9).expect("one kind")).expect("a folder");
        assert_eq!(inputs(&mixing, 9).expect("told to").fingerprint, on_kind(9, "tiles-1"));
        assert!(inputs(&there, 9).is_err());
        begin(&there, 8);
        // With real noise, another run of the experiment counts too, because its answers would be given and paid again.
        assert!(!config.is_simulation());
        let seeded = Source::new("test.toml", "").with_overrides(&["student.epochs=7".to_owned()]).expect("a key");
        let other = Config::load(&seeded).expect("another run");
        let store = RunStore::open(results.path(), &other, &current_environment("test")).expect("a store");
        let inputs = |arithmetic| {
            let context = Context { store: &store, config: &other, ..on(arithmetic, false) };
            identify(&context, "teachers", 1, json!({ "images": 8 }))
        };
        assert!(
            inputs("tiles-1").is_err_and(|error| error.exit_code() == ExitCode::Results) && inputs("vectors-2").is_ok()
        );
    }

    #[test]
    fn the_second_of_two_concurrent_kinds_of_machines_joins_the_first() {
        let config = Config::load(&Source::new("test.toml", "")).expect("defaults");
        let results = tempfile::tempdir().expect("a folder");
        let shard = Shard { stage: "teachers".into(), number: 1, of: 2 };
        let store = RunStore::join(results.path(), &config, shard, true);
        let device = Device::open(ComputeDevice::Cpu).expect("a processor");
        let on = |arithmetic, mix_machines| Context { arithmetic, mix_machines, ..context(&config, &store, &device) };
        let stage = JsonStage {
            facts: StageFacts { depends_on_machine: true, ..StageFacts::new("teachers") },
            file: "nothing.json",
            inputs: json!({ "images": 7 }),
            work: || Ok(()),
        };
        let (first, second) = (on("tiles-1", true), on("vectors-2", true));
        // Both check before either begins.
        let [one, other] = [&first, &second].map(|context| complete::identify(context, &stage).expect("its own"));
        assert_ne!(one.fingerprint, other.fingerprint);
        let open = |identity: &Identity| store.unfinished(identity).map(|_| identity.fingerprint);
        let begun = identified(&first, &stage, &one, open).expect("the first");
        let joined = identified(&second, &stage, &other, open).expect("the second");
        assert_eq!([begun, joined], [one.fingerprint; 2]);
        assert!(identified(&on("vectors-2", false), &stage, &other, open).is_err());
    }
}
