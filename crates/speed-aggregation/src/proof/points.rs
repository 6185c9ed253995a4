//! Whether the points of a proof key are in their groups of prime order. Points outside them would let the generator of the key learn
//! parts of a teacher's secrets from its proofs.

use std::ops::AddAssign;

use rayon::prelude::*;
use speed_core::Digest;
use tfhe::zk::ZkCompactPkeV2PublicParams;
use tfhe_zk_pok::curve_446::{g1, g2};
use tfhe_zk_pok::serialization::{SerializableAffine, SerializableFp, SerializableQuadExtField};

use crate::keys::Stream;

/// Random sums of points that are tested: each is outside the group with probability at least 1/2 if any point is.
const SUMS: usize = 128;
/// Sums that share the points' additions.
const TOGETHER: usize = 8;

type Point1 = SerializableAffine<SerializableFp>;
type Point2 = SerializableAffine<SerializableQuadExtField<SerializableFp>>;

/// Returns whether the lists have the length that the parameters ask for, the one power that must be missing is the point at infinity, and
/// all points are in their groups. tfhe's own check of each point takes ten times as long. The key's digest chooses the sums, so its generator
/// can try several files: each passes by mistake with probability `2^-128`, with SHA-256 and AES as random functions.
pub(super) fn are_valid(params: &ZkCompactPkeV2PublicParams, digest: Digest) -> Result<bool, String> {
    let text = |error: bincode::Error| error.to_string();
    // The lists of points are private, but they are the first part of the string as serde sees it.
    let bytes = bincode::serialize(params).map_err(text)?;
    let (first, second): (Vec<Point1>, Vec<Point2>) = bincode::deserialize(&bytes).map_err(text)?;
    let first: Result<Vec<g1::G1Affine>, _> = first.into_iter().map(TryInto::try_into).collect();
    let second: Result<Vec<g2::G2Affine>, _> = second.into_iter().map(TryInto::try_into).collect();
    let (first, second) = (first.map_err(|e| e.to_string())?, second.map_err(|e| e.to_string())?);
    let n = params.n;
    if second.len() != n || n.checked_mul(2) != Some(first.len()) || first[n] != g1::G1Affine::default() {
        return Ok(false);
    }
    let [a, b, ..] = digest.as_bytes().as_chunks::<16>().0 else { unreachable!("a digest has 32 bytes") };
    let [a, b] = [a, b].map(|seed| Stream::new(u128::from_le_bytes(*seed)));
    Ok(first.par_iter().all(g1::G1Affine::is_on_curve)
        && second.par_iter().all(g2::G2Affine::is_on_curve)
        && all_in_group::<g1::G1Projective, _>(&first, &a, g1::G1Affine::is_in_correct_subgroup_assuming_on_curve)
        && all_in_group::<g2::G2Projective, _>(&second, &b, g2::G2Affine::is_in_correct_subgroup_assuming_on_curve))
}

/// Returns whether all points are in a group, except with probability `2^-128`: tests sums of random subsets of the points. If a point is
/// not in the group, at most one of two subsets that differ only in this point has a sum in it.
fn all_in_group<P, A>(points: &[A], random: &Stream, in_group: impl Fn(&A) -> bool + Sync) -> bool
where
    P: Copy + Default + AddAssign<A> + AddAssign<P>,
    A: Copy + Sync + From<P>,
{
    let words = points.len().div_ceil(TOGETHER);
    (0..SUMS / TOGETHER).into_par_iter().all(|group| {
        // The bits of a point's label say in which sums it is.
        let mut labels = vec![0; words];
        random.uniform(group * words, &mut labels);
        let mut buckets = [P::default(); 1 << TOGETHER];
        for (point, label) in points.iter().zip(labels.iter().flat_map(|word| word.to_le_bytes())) {
            buckets[usize::from(label)] += *point;
        }
        (0..TOGETHER).all(|bit| {
            let mut sum = P::default();
            buckets
                .iter()
                .enumerate()
                .filter(|(label, _)| label >> bit & 1 == 1)
                .for_each(|(_, bucket)| sum += *bucket);
            in_group(&A::from(sum))
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A group with two elements, of which only 0 is in the subgroup: the hardest case.
    #[derive(Clone, Copy, Default)]
    struct Sum(u8);
    #[derive(Clone, Copy)]
    struct Point(u8);

    impl From<Sum> for Point {
        fn from(sum: Sum) -> Self {
            Self(sum.0)
        }
    }
    impl AddAssign<Point> for Sum {
        fn add_assign(&mut self, point: Point) {
            self.0 = (self.0 + point.0) % 2;
        }
    }
    impl AddAssign for Sum {
        fn add_assign(&mut self, sum: Self) {
            self.0 = (self.0 + sum.0) % 2;
        }
    }

    #[test]
    fn any_number_of_points_is_checked() {
        let valid = |points: &[Point]| all_in_group::<Sum, _>(points, &Stream::new(5), |point| point.0 == 0);
        for count in 1..=33 {
            let mut points = vec![Point(0); count];
            assert!(valid(&points), "{count} points");
            points[count - 1] = Point(1);
            assert!(!valid(&points), "{count} points");
        }
    }

    #[test]
    fn one_point_outside_is_found_wherever_it_is() {
        let mut points = vec![Point(0); 1003];
        let valid = |points: &[Point]| all_in_group::<Sum, _>(points, &Stream::new(5), |point| point.0 == 0);
        assert!(valid(&points));
        for place in 0..points.len() {
            points[place] = Point(1);
            assert!(!valid(&points), "point {place}");
            // A second one hides it from every sum that has both or neither.
            points[1002 - place] = Point(1);
            assert!(!valid(&points), "points {place} and {}", 1002 - place);
            points[1002 - place] = Point(0);
            points[place] = Point(0);
        }
    }

    #[test]
    fn points_of_the_curve_outside_the_group_are_found() {
        let outside = (1_u64..)
            .find_map(|x| g2::G2Affine::get_point_from_x_unchecked(x.into(), true))
            .expect("half of all numbers are the x of a point");
        assert!(outside.is_on_curve() && !outside.is_in_correct_subgroup_assuming_on_curve());
        let generator = g2::G2Affine::new_unchecked(g2::G2_GENERATOR_X, g2::G2_GENERATOR_Y);
        let valid = |points: &[g2::G2Affine]| {
            let member = g2::G2Affine::is_in_correct_subgroup_assuming_on_curve;
            all_in_group::<g2::G2Projective, _>(points, &Stream::new(5), member)
        };
        assert!(valid(&[generator; 9]));
        assert!(!valid(&[generator, outside, generator]));
    }
}
