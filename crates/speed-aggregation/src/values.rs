//! The values that a teacher encrypts.

use speed_core::{EntropyError, Randomness, VoteShape};
use zeroize::Zeroizing;

use crate::privacy_noise::PrivacyNoiseShare;

/// Returns the values that a teacher encrypts (queries x classes, row major): its one-hot votes, each plus a draw of
/// its share of the privacy noise, if it adds any.
///
/// # Errors
/// If the operating system provides no randomness.
///
/// # Panics
/// If there is not one label below the number of classes for each query.
pub fn teacher_values(
    shape: VoteShape,
    labels: &[u8],
    noise: Option<(&PrivacyNoiseShare, &Randomness)>,
) -> Result<Zeroizing<Vec<i64>>, EntropyError> {
    assert_eq!(labels.len(), shape.queries(), "one label per query");
    let mut values = match noise {
        Some((share, randomness)) => share.draw(shape.counts(), randomness)?,
        None => Zeroizing::new(vec![0; shape.counts()]),
    };
    for (&label, values) in labels.iter().zip(values.chunks_exact_mut(shape.classes())) {
        values[usize::from(label)] += 1;
    }
    Ok(values)
}

/// Returns the values that a teacher encrypts for checks (queries x classes, row major): its one-hot votes, and for each
/// query one draw of its share of the privacy noise, which it adds to all classes.
///
/// # Errors
/// If the operating system provides no randomness.
///
/// # Panics
/// If there is not one label below the number of classes for each query.
pub fn check_values(
    shape: VoteShape,
    labels: &[u8],
    noise: Option<(&PrivacyNoiseShare, &Randomness)>,
) -> Result<Zeroizing<Vec<i64>>, EntropyError> {
    let mut values = teacher_values(shape, labels, None)?;
    if let Some((share, randomness)) = noise {
        let noise = share.draw(shape.queries(), randomness)?;
        for (values, noise) in values.chunks_exact_mut(shape.classes()).zip(noise.iter()) {
            values.iter_mut().for_each(|value| *value += noise);
        }
    }
    Ok(values)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::privacy_noise::PrivacyNoise;

    #[test]
    fn values_are_one_hot_votes_plus_the_share() {
        let shape = VoteShape::new(2, 2, 3).expect("a shape");
        let plain = teacher_values(shape, &[2, 0], None).expect("no entropy is needed");
        assert_eq!(*plain, [0, 0, 1, 1, 0, 0]);
        let share =
            PrivacyNoise::named("discrete-laplace", 0.2).and_then(|noise| Ok(noise.share_of(2)?)).expect("valid");
        let randomness = Randomness::simulation([4; 32]);
        let noisy = teacher_values(shape, &[2, 0], Some((&share, &randomness))).expect("no entropy is needed");
        let noise = share.draw(6, &randomness).expect("no entropy is needed");
        assert!(noise.iter().any(|&value| value != 0));
        assert!(noisy.iter().zip(noise.iter().zip(plain.iter())).all(|(noisy, (noise, vote))| *noisy == noise + vote));
        // A check has one draw for each query.
        let check = check_values(shape, &[2, 0], Some((&share, &randomness))).expect("no entropy is needed");
        let noise = share.draw(2, &randomness).expect("no entropy is needed");
        for (i, (value, vote)) in check.iter().zip(plain.iter()).enumerate() {
            assert_eq!(*value, noise[i / 3] + vote);
        }
    }
}
