//! The stored weights of a run's teacher as a model. The weights alone do not describe their network; the run does.

use std::path::Path;

use burn::tensor::Device;
use speed_core::read_regular;
use speed_data::ImageShape;
use speed_nn::training::AnyClassifier;
use speed_teacher::Teacher;

use super::description::{Description, Network, Origin};
use super::file::{MAX_FILE, described_from_bytes};
use crate::error::ExperimentError;
use crate::stages::{TEACHERS, is_version_of_teachers, shape_and_classes};
use crate::store::{RunStore, config_path, models_in};

/// The first bytes of a teacher's stored weights.
const MAGIC: &[u8] = b"speed teacher ";

/// Returns whether bytes begin like a teacher's stored weights.
pub(super) fn is_teacher(bytes: &[u8]) -> bool {
    bytes.starts_with(MAGIC)
}

/// Reads the teacher `RUN/stages/teachers/teacher-0000.bin`: its description and its network on `device`.
pub(super) fn read(
    path: &Path,
    bytes: &[u8],
    datasets: Option<&Path>,
    device: &Device,
) -> Result<(Description, Box<dyn AnyClassifier>), ExperimentError> {
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
        None => shape_and_classes(&config, datasets)?,
    };
    let (shape, classes) = known.ok_or_else(no_run)?;
    let teacher = Teacher::from_bytes(architecture, shape, classes.len(), device, bytes);
    let teacher = teacher.map_err(|error| ExperimentError::input(path, error))?;
    let id = run.file_name().unwrap_or_default().to_string_lossy();
    let origin = Origin { teacher: Some(number), ..Origin::of_run(&config, &id) };
    let network = Network::Teacher { version: architecture.version(), config: config.teacher.clone() };
    let description = Description::of_run(&config, network, shape, classes, origin);
    description.check().map_err(|error| error.at(path))?;
    Ok((description, teacher.into_network()))
}

/// Returns the directory of the run of a teacher's file, and the teacher's index. A directory of teachers that was set aside
/// may have other settings than the run.
fn place(path: &Path) -> Option<(&Path, usize)> {
    let number = path.file_stem()?.to_str()?.strip_prefix("teacher-")?.parse().ok()?;
    let stage = path.parent().filter(|stage| stage.file_name().is_some_and(|name| name == TEACHERS))?;
    let run = stage.parent()?.parent()?;
    config_path(run).is_file().then_some((run, number))
}

/// Returns the shape of the images and the names of the classes of the run's first model of a student.
fn of_student(run: &Path) -> Option<(ImageShape, Vec<String>)> {
    let models = models_in(run).into_iter().filter_map(|path| read_regular(&path, MAX_FILE).ok());
    let mut described = models.filter_map(|bytes| described_from_bytes(&bytes).ok());
    described.next().map(|(description, _)| (description.shape(), description.classes))
}
