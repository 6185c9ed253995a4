//! Models of other programs in ONNX's format, which vote as teachers.

use std::num::NonZeroUsize;
use std::path::Path;

use crate::report::check_class_names;
use speed_core::read_regular;
use speed_data::pictures::Preparation;
use speed_nn::onnx::{Classifier, MAX_MODEL, OnnxError};
use speed_nn::threads;
use speed_nn::training::greatest;

use super::inputs::{Image, Inputs};
use crate::error::{ExperimentError, ModelFault};

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
    ///
    /// # Errors
    /// [`ExperimentError::Model`] if the file is missing or not a model that classifies images, or the names of its classes
    /// are missing, wrong or contradictory.
    pub fn read(path: &Path, classes: Option<&[String]>, fits: bool) -> Result<Self, ExperimentError> {
        let read = || {
            let bytes = read_regular(path, MAX_MODEL).map_err(ModelFault::Unreadable)?;
            let classifier = Classifier::new(&bytes)?;
            let classes = names(&classifier, classes)?;
            Ok(Self { classifier, classes, fits })
        };
        read().map_err(|fault| ExperimentError::Model { path: path.to_path_buf(), fault })
    }

    /// Returns the names of the classes in the order of the scores.
    #[must_use]
    pub fn classes(&self) -> &[String] {
        &self.classes
    }

    /// Returns the preparation of its images.
    #[must_use]
    pub fn preparation(&self) -> Preparation {
        Preparation { shape: self.classifier.shape(), resizes: self.fits, converts: self.fits }
    }

    /// Returns the class with the greatest score of every image, the lowest class on a tie. It does not depend on
    /// `threads`.
    ///
    /// # Errors
    /// If a picture cannot be read or does not have the model's shape, the model fails, or a score is not finite.
    pub fn predict(
        &self,
        inputs: &Inputs,
        threads: NonZeroUsize,
        on_batch: &(dyn Fn(usize) + Sync),
    ) -> Result<Vec<u8>, ExperimentError> {
        let images = inputs.images();
        let batches: Vec<&[Image<'_>]> = images.chunks(TOGETHER).collect();
        let classes = threads::map(&batches, threads.get(), |images, _| {
            let classes = images.iter().map(|image| self.class(image)).collect::<Result<Vec<u8>, _>>()?;
            on_batch(images.len());
            Ok::<_, ExperimentError>(classes)
        })?;
        Ok(classes.concat())
    }

    fn class(&self, image: &Image<'_>) -> Result<u8, ExperimentError> {
        let mut pixels = Vec::new();
        image.read(&self.preparation(), &mut pixels)?;
        let fault = |error: OnnxError| ExperimentError::Model { path: image.name().into(), fault: error.into() };
        Ok(greatest(&self.classifier.scores(&pixels).map_err(fault)?))
    }
}

/// Returns the names of a model's classes: those that were given, which its metadata must not contradict, or else those of
/// its metadata.
fn names(classifier: &Classifier, given: Option<&[String]>) -> Result<Vec<String>, ModelFault> {
    let own = classifier.metadata("classes").map(|text| {
        serde_json::from_str::<Vec<String>>(text).map_err(|error| ModelFault::ClassList { reason: error.to_string() })
    });
    let own = own.transpose()?;
    if let (Some(expected), Some(found)) = (given, &own)
        && expected != *found
    {
        return Err(ModelFault::OtherClasses { expected: expected.to_vec(), found: found.clone() });
    }
    let names = own.or_else(|| given.map(<[_]>::to_vec)).ok_or(ModelFault::NoClassNames)?;
    check_class_names(&names).map_err(|error| ModelFault::ClassList { reason: error.to_string() })?;
    if names.len() != classifier.classes() {
        return Err(ModelFault::ClassCount { expected: classifier.classes(), found: names.len() });
    }
    Ok(names)
}
