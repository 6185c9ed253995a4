//! The stored weights of a run's teacher as a model. The weights alone do not describe their network; the run does.

use std::path::Path;

use burn::tensor::Device;
use speed_data::ImageShape;
use speed_teacher::Teacher;

use super::Model;
use super::card::{ModelCard, Network, Origin};
use super::file;
use crate::config::{Config, Source};
use crate::error::{ExperimentError, ModelFault};
use crate::stages::{MODEL, shape_and_classes};
use crate::store::{config_path, folders_in, read_stage_file, stages};

/// The first bytes of a teacher's stored weights.
const MAGIC: &[u8] = b"speed teacher ";

/// Returns whether bytes begin like a teacher's stored weights.
pub(super) fn is_teacher(bytes: &[u8]) -> bool {
    bytes.starts_with(MAGIC)
}

/// Reads the teacher `RUN/stages/teachers/teacher-0000.bin`.
pub(super) fn read(path: &Path, bytes: &[u8], datasets: Option<&Path>) -> Result<Model, ExperimentError> {
    let failure = |fault| ExperimentError::Model { path: path.to_path_buf(), fault };
    let full = path.canonicalize().map_err(|error| failure(ModelFault::Unreadable(error)))?;
    let (run, number) = place(&full).ok_or_else(|| failure(ModelFault::NoRun))?;
    let config = Config::load(&Source::read(&config_path(run))?)?;
    let known = match kept(run) {
        Some(known) => Some(known),
        None => shape_and_classes(&config, datasets)?,
    };
    let (shape, classes) = known.ok_or_else(|| failure(ModelFault::NoRun))?;
    let (device, architecture) = (Device::flex(), config.teacher.architecture);
    let teacher = Teacher::from_bytes(architecture, shape, classes.len(), &device, bytes);
    let teacher = teacher.map_err(|error| failure(error.into()))?;
    let id = run.file_name().unwrap_or_default().to_string_lossy();
    let origin = Origin { number, ..Origin::of_run(&config, &id) };
    let network = Network::Teacher { version: architecture.version(), config: config.teacher.clone() };
    let card = ModelCard::of_run(&config, network, shape, classes, origin);
    Ok(Model { card, network: teacher.into_network(), device })
}

/// Returns the directory of the run of a teacher's file, and the teacher's index.
fn place(path: &Path) -> Option<(&Path, usize)> {
    let number = path.file_stem()?.to_str()?.strip_prefix("teacher-")?.parse().ok()?;
    let run = path.parent()?.parent()?.parent()?;
    config_path(run).is_file().then_some((run, number))
}

/// Returns the shape of the images and the names of the classes of a run's first kept student.
fn kept(run: &Path) -> Option<(ImageShape, Vec<String>)> {
    let names = folders_in(&stages(run)).into_iter();
    let mut students = names.filter_map(|name| read_stage_file(run, &name, MODEL));
    students.find_map(|bytes| file::from_bytes(&bytes).ok()).map(|(card, _)| (card.shape(), card.classes))
}
