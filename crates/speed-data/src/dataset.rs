//! A pair of a training set and a test set.

use crate::{DataError, Split};

/// A named pair of training and test images of the same shape and classes; created by [`Dataset::new`].
///
/// In the paper's setting, `train` is distributed to the teachers. `test` belongs to the student, which splits it into
/// a public pool and a test set.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Dataset {
    /// The name in configurations, for example `mnist`.
    pub name: String,
    /// The training images.
    pub train: Split,
    /// The test images.
    pub test: Split,
    /// The name of every class: the directory of its pictures, the published name, or its number.
    pub class_names: Vec<String>,
}

impl Dataset {
    /// Joins the two halves.
    ///
    /// # Errors
    /// If their shapes or numbers of classes differ.
    pub fn new(name: impl Into<String>, train: Split, test: Split) -> Result<Self, DataError> {
        let (left, right) = ((train.shape(), train.classes()), (test.shape(), test.classes()));
        if left != right {
            return Err(DataError::Other(format!(
                "training images are {} with {} classes, test images {} with {} classes",
                left.0, left.1, right.0, right.1
            )));
        }
        let class_names = (0..train.classes()).map(|class| class.to_string()).collect();
        Ok(Self { name: name.into(), train, test, class_names })
    }

    /// Sets the names of the classes.
    ///
    /// # Panics
    /// If their number differs from the number of classes.
    #[must_use]
    pub fn with_class_names(self, class_names: Vec<String>) -> Self {
        assert_eq!(class_names.len(), self.train.classes(), "a name for every class");
        Self { class_names, ..self }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ImageShape;

    #[test]
    fn the_halves_must_have_the_same_shape_and_classes() {
        let split = |width, classes| {
            let shape = ImageShape { channels: 1, height: 2, width };
            Split::new(shape, classes, vec![0; 2 * width], vec![0]).expect("a valid split")
        };
        assert!(Dataset::new("a", split(3, 10), split(3, 10)).is_ok());
        for other in [split(4, 10), split(3, 9)] {
            let error = Dataset::new("a", split(3, 10), other).expect_err("refused").to_string();
            assert!(error.contains("with 10 classes, test images"), "{error}");
        }
    }
}
