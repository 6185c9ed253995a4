//! The disjoint partitions of the teachers.

use crate::DataError;
use std::ops::Range;

/// Shares `images` training images out to `teachers` teachers: consecutive blocks of the training file, in the order
/// of the teachers, every image in exactly one block (the paper's published code).
///
/// Remainder: when `images % teachers = r`, the first `r` blocks get one image more than the others. (The published
/// code drops the last `r` images instead; with 60000 images and 250 teachers `r` is 0 and both give blocks of 240.)
///
/// Disjointness is what the privacy analysis rests on: changing one image then changes at most one teacher's vote.
///
/// # Errors
/// [`DataError::NoTeachers`] for zero teachers, [`DataError::TooManyTeachers`] when a teacher would have no image.
///
/// ```
/// let blocks = speed_data::partition::blocks(11, 4)?;
/// assert_eq!(blocks, [0..3, 3..6, 6..9, 9..11]);
/// # Ok::<(), speed_data::DataError>(())
/// ```
pub fn blocks(images: usize, teachers: usize) -> Result<Vec<Range<usize>>, DataError> {
    if teachers == 0 {
        return Err(DataError::NoTeachers);
    }
    if teachers > images {
        return Err(DataError::TooManyTeachers { teachers, images });
    }
    let (size, longer) = (images / teachers, images % teachers);
    let start = |teacher: usize| teacher * size + teacher.min(longer);
    Ok((0..teachers).map(|teacher| start(teacher)..start(teacher + 1)).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_image_is_in_exactly_one_block_of_the_right_size() {
        for images in 1..=60 {
            for teachers in 1..=images {
                let blocks = blocks(images, teachers).expect("enough images");
                assert_eq!(blocks.len(), teachers);
                let mut owners = vec![0; images];
                for (teacher, block) in blocks.iter().enumerate() {
                    let extra = usize::from(teacher < images % teachers);
                    assert_eq!(block.len(), images / teachers + extra, "{images} images, teacher {teacher}/{teachers}");
                    block.clone().for_each(|image| owners[image] += 1);
                }
                assert!(owners.iter().all(|&count| count == 1), "{images} images, {teachers} teachers");
                assert!(blocks.windows(2).all(|pair| pair[0].end == pair[1].start));
            }
        }
    }

    #[test]
    fn the_papers_250_blocks_have_240_images() {
        let blocks = blocks(60_000, 250).expect("enough images");
        assert!(blocks.iter().enumerate().all(|(i, block)| *block == (240 * i..240 * (i + 1))));
    }

    #[test]
    fn no_teacher_and_a_teacher_without_image_are_refused() {
        assert!(matches!(blocks(10, 0), Err(DataError::NoTeachers)));
        assert!(matches!(blocks(0, 0), Err(DataError::NoTeachers)));
        assert!(matches!(blocks(10, 11), Err(DataError::TooManyTeachers { teachers: 11, images: 10 })));
        assert!(matches!(blocks(0, 1), Err(DataError::TooManyTeachers { teachers: 1, images: 0 })));
    }
}
