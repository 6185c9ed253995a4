//! The epochs of students: passes over the pool, or a number of images that does not depend on the pool.

use speed_student::{StudentConfig, StudentMethod};

use super::document::Source;

/// A function that returns the key `epoch_images` of a section.
type EpochImages = fn(&mut StudentConfig) -> &mut usize;

const SECTIONS: [(&str, EpochImages); 2] = [
    ("student", |student| &mut student.epoch_images),
    ("student.pseudo_labels", |student| &mut student.pseudo_labels.epoch_images),
];

/// Determines the images per epoch (`epoch_images`) of a table whose students are trained by `methods` on a pool of
/// `pool` images.
///
/// - A config that sets `epochs` but not `epoch_images` counts passes over its pool.
/// - A number that changes no training becomes 0, which is not written to the resolved config: a number equal to the size
///   of the pool, and the number of a section that no method reads. So configs with the same trainings are one run.
pub(super) fn settle_epochs(student: &mut StudentConfig, source: &Source, methods: &[StudentMethod], pool: usize) {
    if student.check().is_err() {
        // The checks of the config refuse it as written.
        return;
    }
    for (section, images) in SECTIONS {
        let counts_passes =
            source.sets(&format!("{section}.epochs")) && !source.sets(&format!("{section}.epoch_images"));
        let mut passes = student.clone();
        *images(&mut passes) = 0;
        let is_read = methods.iter().any(|method| method.settings(student) != method.settings(&passes));
        if counts_passes || !is_read || *images(student) == pool {
            *student = passes;
        }
    }
}
