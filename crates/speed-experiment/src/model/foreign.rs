//! Models of other programs in ONNX's format, which vote as teachers.

use std::fmt::Display;
use std::num::NonZeroUsize;
use std::path::Path;

use speed_core::{printable, read_regular};
use speed_data::pictures::Preparation;
use speed_nn::onnx::{Classifier, MAX_MODEL};
use speed_nn::threads;
use speed_nn::training::greatest;

use super::inputs::{Image, Inputs};
use crate::error::ExperimentError;
use crate::report::check_class_names;

/// Number of images between two reports of progress.
const TOGETHER: usize = 16;

/// A classifier that another program trained. Its file is untrusted.
#[derive(Debug)]
pub struct ForeignModel {
    classifier: Classifier,
    classes: Vec<String>,
    /// Whether images are resized to the model's size and converted to its colours.
    fits: bool,
}

impl ForeignModel {
    /// Reads a model's file. The names of its classes are `classes`, or else a JSON list in its metadata entry `classes`.
    /// `fits` resizes images to the model's size and converts them to its colours; otherwise other images are refused.
    /// Fails if the file is missing or not a model that classifies images, or the names of its classes are missing, wrong or contradictory.
    pub(crate) fn read(path: &Path, classes: Option<&[String]>, fits: bool) -> Result<Self, ExperimentError> {
        let bytes = read_regular(path, MAX_MODEL).map_err(ExperimentError::unreadable_model(path))?;
        let classifier = Classifier::new(&bytes).map_err(|error| ExperimentError::input(path, error))?;
        let classes = names(&classifier, classes).map_err(|error| error.at(path))?;
        Ok(Self { classifier, classes, fits })
    }

    /// Returns the names of the classes in the order of the scores.
    pub(crate) fn classes(&self) -> &[String] {
        &self.classes
    }

    pub(crate) fn preparation(&self) -> Preparation {
        Preparation { shape: self.classifier.shape(), least_side: 1, resizes: self.fits, converts: self.fits }
    }

    /// Returns the class with the greatest score of every image, the lowest class on a tie. It does not depend on
    /// `threads`.
    /// Fails if a picture cannot be read or does not have the model's shape, the model fails, or a score is not finite.
    pub(crate) fn predict(
        &self,
        inputs: &Inputs,
        threads: NonZeroUsize,
        on_batch: &(dyn Fn(usize) + Sync),
    ) -> Result<Vec<u8>, ExperimentError> {
        let batches: Vec<&[Image]> = inputs.images().chunks(TOGETHER).collect();
        let classes = threads::map(&batches, threads.get(), |images, _| {
            let classes = images.iter().map(|image| self.class(image)).collect::<Result<Vec<u8>, _>>()?;
            on_batch(images.len());
            Ok::<_, ExperimentError>(classes)
        })?;
        Ok(classes.concat())
    }

    fn class(&self, image: &Image) -> Result<u8, ExperimentError> {
        let mut pixels = Vec::new();
        image.read(&self.preparation(), &mut pixels)?;
        let scores = self.classifier.scores(&pixels).map_err(|error| ExperimentError::input(image.name(), error))?;
        Ok(greatest(&scores))
    }
}

/// Returns the names of a model's classes: those that were given, which its metadata must not contradict, or else those of
/// its metadata.
fn names(classifier: &Classifier, given: Option<&[String]>) -> Result<Vec<String>, ExperimentError> {
    let not_valid = |error: &dyn Display| {
        let expected = "expected a JSON list of different names in the metadata entry `classes`, or --classes";
        ExperimentError::fault(format_args!("{expected}: {}", printable(&error.to_string())))
    };
    let own = classifier
        .metadata("classes")
        .map(|text| serde_json::from_str::<Vec<String>>(text).map_err(|error| not_valid(&error)));
    let own = own.transpose()?;
    if let (Some(expected), Some(found)) = (given, &own)
        && expected != *found
    {
        let (expected, found) = (printable(&expected.join(", ")), printable(&found.join(", ")));
        return Err(ExperimentError::fault(format_args!(
            "expected the classes {expected} of --classes, found {found} in its metadata: the order gives the labels their meaning"
        )));
    }
    let missing = "expected the names of the classes, found no metadata entry `classes`: give them with --classes";
    let names = own.or_else(|| given.map(<[_]>::to_vec)).ok_or_else(|| ExperimentError::fault(missing))?;
    check_class_names(&names).map_err(|error| not_valid(&error))?;
    let (expected, found) = (classifier.classes(), names.len());
    if found != expected {
        return Err(ExperimentError::fault(format_args!(
            "expected the names of its {expected} classes, found {found}"
        )));
    }
    Ok(names)
}
