//! The epochs of students: passes over the pool, or a number of images that does not depend on the pool.

use speed_student::{StudentConfig, StudentMethod};

use super::document::Source;

/// Returns the images of an epoch in one section.
type EpochImages = fn(&mut StudentConfig) -> &mut usize;

/// The sections that have epochs, and their images of an epoch.
const SECTIONS: [(&str, EpochImages); 2] = [
    ("student", |student| &mut student.epoch_images),
    ("student.pseudo_labels", |student| &mut student.pseudo_labels.epoch_images),
];

/// Decides the images of an epoch (`epoch_images`) for a table whose students are trained by `methods`, on a pool of `pool` images.
///
/// - A config that sets `epochs` and not `epoch_images` counts passes over its pool, as it did before there was such a key.
/// - A number that changes no training becomes 0, which the resolved config leaves out: the size of the pool, or the number of a section
///   that no method reads. So runs of earlier configs keep their ids.
pub(super) fn settle_epochs(student: &mut StudentConfig, source: &Source, methods: &[StudentMethod], pool: usize) {
    if student.check().is_err() {
        // Refused as it is written, by the checks of the config.
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
