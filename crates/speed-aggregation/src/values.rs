//! The values that a teacher encrypts.

use speed_core::{EntropyError, Randomness, Vote, VoteShape};
use zeroize::Zeroizing;

use crate::privacy_noise::PrivacyNoiseShare;

/// Returns the values that a teacher encrypts (queries x classes, row major): its one-hot votes, each plus a draw of
/// its share of the privacy noise, if it adds any. An empty vote is zeros, and gets the same noise.
///
/// # Errors
/// If the operating system provides no randomness.
///
/// # Panics
/// If there is not one vote for each query, each empty or a label below the number of classes.
pub fn teacher_values<V: Copy + Into<Vote>>(
    shape: VoteShape,
    votes: &[V],
    noise: Option<(&PrivacyNoiseShare, &Randomness)>,
) -> Result<Zeroizing<Vec<i64>>, EntropyError> {
    assert_eq!(votes.len(), shape.queries(), "one vote per query");
    let mut counts = Zeroizing::new(vec![0; shape.counts()]);
    for (vote, counts) in votes.iter().zip(counts.chunks_exact_mut(shape.classes())) {
        let vote: Vote = (*vote).into();
        if let Some(label) = vote {
            counts[usize::from(label)] = 1;
        }
    }
    party_values(shape, &counts, 1, noise)
}

/// Returns the values that a party of `teachers` teachers encrypts (queries x classes, row major): for each query how many
/// of its teachers chose each class, plus the sum of as many draws of a teacher's share of the privacy noise, if it adds any.
///
/// # Errors
/// If the operating system provides no randomness.
///
/// # Panics
/// If there is not one count for each query and class, or the counts of a query add up to more than `teachers`.
pub fn party_values(
    shape: VoteShape,
    counts: &[u32],
    teachers: usize,
    noise: Option<(&PrivacyNoiseShare, &Randomness)>,
) -> Result<Zeroizing<Vec<i64>>, EntropyError> {
    assert_eq!(counts.len(), shape.counts(), "one count per query and class");
    let of_query = |counts: &[u32]| counts.iter().map(|&count| u64::from(count)).sum::<u64>();
    let are_single = counts.chunks_exact(shape.classes()).all(|counts| of_query(counts) <= teachers as u64);
    assert!(are_single, "every teacher votes at most once on every query");
    let mut values = match noise {
        Some((share, randomness)) => share.draw_of(teachers, shape.counts(), randomness)?,
        None => Zeroizing::new(vec![0; shape.counts()]),
    };
    values.iter_mut().zip(counts).for_each(|(value, &count)| *value += i64::from(count));
    Ok(values)
}

/// Returns the values that a teacher encrypts for checks (queries x classes, row major): its one-hot or empty votes, and for each
/// query one draw of its share of the privacy noise, which it adds to all classes.
///
/// # Errors
/// If the operating system provides no randomness.
///
/// # Panics
/// If there is not one vote for each query, each empty or a label below the number of classes.
pub fn check_values<V: Copy + Into<Vote>>(
    shape: VoteShape,
    votes: &[V],
    noise: Option<(&PrivacyNoiseShare, &Randomness)>,
) -> Result<Zeroizing<Vec<i64>>, EntropyError> {
    let mut values = teacher_values(shape, votes, None)?;
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
        let votes = [2_u8, 0];
        let plain = teacher_values(shape, &votes, None).expect("no entropy is needed");
        assert_eq!(*plain, [0, 0, 1, 1, 0, 0]);
        let share =
            PrivacyNoise::named("discrete-laplace", 0.2).and_then(|noise| Ok(noise.share_of(2)?)).expect("valid");
        let randomness = Randomness::simulation([4; 32]);
        let noisy = teacher_values(shape, &votes, Some((&share, &randomness))).expect("no entropy is needed");
        let noise = share.draw(6, &randomness).expect("no entropy is needed");
        assert!(noise.iter().any(|&value| value != 0));
        assert!(noisy.iter().zip(noise.iter().zip(plain.iter())).all(|(noisy, (noise, vote))| *noisy == noise + vote));
        // An empty vote is the noise alone.
        let empty =
            teacher_values(shape, &[Some(2_u8), None], Some((&share, &randomness))).expect("no entropy is needed");
        assert_eq!((&empty[..3], &empty[3..]), (&noisy[..3], &noise[3..]));
        let party = party_values(shape, &[0, 0, 1, 0, 0, 0], 1, Some((&share, &randomness))).expect("no entropy");
        assert_eq!(party, empty);
        // A party of one teacher sends what its teacher sends.
        let party = party_values(shape, &[0, 0, 1, 1, 0, 0], 1, Some((&share, &randomness))).expect("no entropy");
        assert_eq!(party, noisy);
        // A check has one draw for each query.
        let check = check_values(shape, &votes, Some((&share, &randomness))).expect("no entropy is needed");
        let noise = share.draw(2, &randomness).expect("no entropy is needed");
        for (i, (value, vote)) in check.iter().zip(plain.iter()).enumerate() {
            assert_eq!(*value, noise[i / 3] + vote);
        }
        let empty =
            check_values(shape, &[None::<u8>, None], Some((&share, &randomness))).expect("no entropy is needed");
        assert!(empty.iter().enumerate().all(|(i, value)| *value == noise[i / 3]));
    }
}
