//! The stored weights of a run's teacher as a model. The weights alone do not describe their network; the run does.

use std::path::Path;

use burn::tensor::Device;
use speed_core::read_regular;
use speed_teacher::Teacher;

use super::description::{Description, ModelEncoder, Network, Origin};
use super::file::{MAX_FILE, described_from_bytes};
use crate::error::ExperimentError;
use crate::stages::{Subjects, TEACHERS, is_encoder_of_run, is_version_of_teachers};
use crate::store::{RunStore, config_path, models_in};

/// The first bytes of a teacher's stored weights.
pub(super) const MAGIC: &[u8] = b"speed teacher ";

/// Reads the teacher `RUN/stages/teachers/teacher-0000.bin`: its description, and the teacher on `device`.
pub(super) fn read(
    path: &Path,
    bytes: &[u8],
    datasets: Option<&Path>,
    device: &Device,
) -> Result<(Description, Teacher), ExperimentError> {
    let no_run = || {
        let expected =
            "expected a teacher in its run's directory (RUN/stages/teachers/teacher-0000.bin with RUN/config.toml)";
        ExperimentError::input(
            path,
            format_args!("{expected}, because the weights alone do not describe their network"),
        )
    };
    let full = path.canonicalize().map_err(ExperimentError::unreadable_model(path))?;
    let (run, number) = place(&full).ok_or_else(no_run)?;
    let config = RunStore::config_in(run)?;
    let architecture = config.teacher.architecture;
    if !is_version_of_teachers(run, architecture.version()) {
        let (name, expected) = (architecture.name(), architecture.version());
        let other = "found another version: use the version of speed that trained them";
        let fault = format_args!("expected teachers of version {expected} of the network {name}, {other}");
        return Err(ExperimentError::input(path, fault));
    }
    let known = match of_student(run) {
        Some(known) => Some(known),
        None => Subjects::find(&config, datasets)?,
    };
    let Subjects { shape, encoder, classes } = known.ok_or_else(no_run)?;
    if let Some(ModelEncoder { facts, .. }) = &encoder
        && is_encoder_of_run(run, &facts.digest) != Some(true)
    {
        let expected = "expected the encoder of the run's vectors in its config's features.encoder";
        let found = format_args!("{expected}, found another one, SHA-256 {}: put the first one back", facts.digest);
        return Err(ExperimentError::input(path, found));
    }
    let teacher = Teacher::from_bytes(architecture, shape, classes.len(), device, bytes);
    let teacher = teacher.map_err(|error| ExperimentError::input(path, error))?;
    let id = run.file_name().unwrap_or_default().to_string_lossy();
    let origin = Origin { teacher: Some(number), ..Origin::of_run(&config, &id) };
    let network = Network::Teacher { version: architecture.version(), config: config.teacher.clone() };
    let description = Description::of_run(&config, network, (shape, encoder), classes, origin);
    description.check().map_err(|error| error.at(path))?;
    Ok((description, teacher))
}

/// Returns the directory of the run of a teacher's file, and the teacher's index. A directory of teachers that was set aside
/// may have other settings than the run.
fn place(path: &Path) -> Option<(&Path, usize)> {
    let number = path.file_stem()?.to_str()?.strip_prefix("teacher-")?.parse().ok()?;
    let stage = path.parent().filter(|stage| stage.file_name().is_some_and(|name| name == TEACHERS))?;
    let run = stage.parent()?.parent()?;
    config_path(run).is_file().then_some((run, number))
}

/// Returns what the run's first model of a student classifies.
fn of_student(run: &Path) -> Option<Subjects> {
    let models = models_in(run).into_iter().filter_map(|path| read_regular(&path, MAX_FILE).ok());
    let mut described = models.filter_map(|bytes| described_from_bytes(&bytes).ok());
    let (description, _) = described.next()?;
    Some(Subjects { shape: description.shape(), encoder: description.encoder, classes: description.classes })
}
