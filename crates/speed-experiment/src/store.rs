//! The run store: one directory per run, fingerprints of stages, atomic files and locks. Only this module knows the
//! names of a run's files.

mod atomic;
mod find;
mod fingerprint;
mod folder;
mod layout;
mod noise_key;
mod program;
mod read;
mod record;
mod run;
mod shard;
mod status;

pub use atomic::write_atomic;
pub(crate) use atomic::{json, remove_unfinished, write_below, write_folder, write_new, write_secret};
pub use find::{FoundResults, find_any_run, find_results, find_run, is_finished, run_in_use};
pub(crate) use fingerprint::{Fingerprint, Identity};
pub(crate) use folder::{StageFolder, unit_meta, unit_payload};
pub(crate) use layout::{
    ARITHMETIC, ASKED_PICTURES, ASKED_QUERIES, PUBLISHED, example_image, folders_in, is_called, is_current, is_id,
    model_name, models_in, progress_path, run_of_card, stages, sweep_folder, sweep_report_path, table_path,
};
pub use layout::{config_path, pages, report_path, slurm_folder};
pub(crate) use noise_key::NoiseKey;
pub use read::read_small;
pub(crate) use read::{is_one_name, read_report, read_stage_file, read_table, read_table_alone, read_text};
pub(crate) use record::{CHANGED, FinishedStage, StageRecord, StageRemains, part_of_stage, read_listed};
pub(crate) use run::{RunStore, StageState};
pub(crate) use shard::is_in_use;
pub use shard::{Lock, Shard};
pub(crate) use status::write_progress;
pub use status::{RunState, RunStatus};
