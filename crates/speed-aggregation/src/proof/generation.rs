//! Generates the reference string of proofs: powers of a secret number times the generators of two groups.
//!
//! The bytes are those of tfhe's own generation from the same random bytes. tfhe multiplies each power anew, bit by bit; here the multiples
//! of the generators are tabulated once. As in tfhe, the time depends on the secret.

use ark_ff::PrimeField as _;
use rayon::prelude::*;
use tfhe::core_crypto::commons::math::random::RandomGenerator;
use tfhe::core_crypto::prelude::DefaultRandomGenerator;
use tfhe::zk::ZkCompactPkeV2PublicParams;
use tfhe_zk_pok::curve_api::CurveGroupOps;
use tfhe_zk_pok::curve_api::bls12_446::{G1, G2, Zp};
use tfhe_zk_pok::proofs::pke_v2::Bound;
use zeroize::Zeroizing;

/// Bytes of the order of the groups. A table has the multiples for one byte.
const BYTES: usize = 38;

/// What a reference string is for, in tfhe's terms.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Shape {
    /// The dimension of the ciphertexts.
    pub(super) dimension: usize,
    /// The largest number of values of a proof.
    pub(super) values: usize,
    /// The largest absolute value of the encryption noise.
    pub(super) noise: u64,
    /// The modulus of ciphertexts, 0 for 2^64.
    pub(super) modulus: u64,
    pub(super) plaintexts: u64,
    /// The number of leading bits of a plaintext that are proven to be zero.
    pub(super) padding: u64,
}

/// Generates a reference string.
pub(super) fn generate(
    shape: Shape,
    generator: &mut RandomGenerator<DefaultRandomGenerator>,
) -> ZkCompactPkeV2PublicParams {
    // Whoever knows the secret can forge proofs.
    let secret = Zeroizing::new(Zp::rand(generator));
    let mut session = [0; 16];
    session.iter_mut().for_each(|byte| *byte = generator.generate_next());
    // tfhe takes a byte from each four.
    let mut byte = || [(); 4].map(|()| generator.generate_next())[0];
    let separators: [[u8; 8]; 11] = std::array::from_fn(|_| std::array::from_fn(|_| byte()));
    let of = |first, second| {
        let [hash, r, t, w, agg, lmap, phi, xi, z, chi, gamma] = separators;
        let Shape { dimension, values, noise, modulus, plaintexts, padding } = shape;
        let session = u128::from_le_bytes(session);
        #[rustfmt::skip]
        let made = ZkCompactPkeV2PublicParams::from_vec(
            first, second, dimension, values, noise, modulus, plaintexts, padding, Bound::CS, session,
            hash, r, t, w, agg, lmap, phi, xi, z, chi, gamma,
        );
        made
    };
    // The length of the lists follows from the shape.
    let n = of(Vec::new(), Vec::new()).n;
    let mut power = Zeroizing::new(*secret);
    let powers: Zeroizing<Vec<Zp>> = Zeroizing::new(
        (0..2 * n)
            .map(|_| {
                let this = *power;
                *power = this * *secret;
                this
            })
            .collect(),
    );
    let mut first = multiples::<G1>(&powers);
    // The power that would make every proof possible.
    first[n] = G1::ZERO.normalize();
    of(first, multiples::<G2>(&powers[..n]))
}

/// Returns the multiples of the generator of a group by these numbers.
fn multiples<G: CurveGroupOps<Zp>>(numbers: &[Zp]) -> Vec<G::Affine> {
    let mut base = G::GENERATOR;
    let tables: Vec<Vec<G>> = (0..BYTES)
        .map(|_| {
            let mut table = vec![G::ZERO];
            (1..256).for_each(|digit: usize| table.push(table[digit - 1] + base));
            base = table[table.len() - 1] + base;
            table
        })
        .collect();
    let multiple = |number: &Zp| {
        let words = Zeroizing::new(number.inner.into_bigint().0);
        let digits = words.iter().flat_map(|word| word.to_le_bytes());
        tables.iter().zip(digits).map(|(table, digit)| table[usize::from(digit)]).sum::<G>().normalize()
    };
    numbers.par_iter().map(multiple).collect()
}

#[cfg(test)]
mod tests {
    use tfhe::core_crypto::commons::math::random::{Seed, TUniform};
    use tfhe::core_crypto::prelude::{CiphertextModulus, LweCiphertextCount, LweDimension};
    use tfhe::zk::{CompactPkeCrs, CompactPkeZkScheme, ZkMSBZeroPaddingBitCount};

    use super::*;

    #[test]
    fn the_bytes_are_those_of_the_library() {
        let (dimension, values, padding) = (8, 2, 3);
        let generator = || RandomGenerator::<DefaultRandomGenerator>::new(Seed(7));
        let noise = TUniform::<u64>::new(4);
        let native = CiphertextModulus::<u64>::new_native();
        let of = |scheme| {
            CompactPkeCrs::prepare_crs_parameters(
                LweDimension(dimension),
                LweCiphertextCount(values),
                noise,
                native,
                1_u64 << 10,
                scheme,
            )
        };
        let (_, _, bound, modulus, plaintexts) = of(CompactPkeZkScheme::V2).expect("valid");
        let shape = Shape { dimension, values, noise: bound, modulus, plaintexts, padding };
        let found = CompactPkeCrs::PkeV2(generate(shape, &mut generator()));
        let expected = CompactPkeCrs::new(
            LweDimension(dimension),
            LweCiphertextCount(values),
            noise,
            native,
            1_u64 << 10,
            ZkMSBZeroPaddingBitCount(padding),
            &mut generator(),
        );
        let bytes = |crs: &CompactPkeCrs| bincode::serialize(crs).expect("bytes");
        assert!(bytes(&found) == bytes(&expected.expect("valid")));
    }

    /// The order of the groups is below 2^(8 * 38), so no digit is lost.
    #[test]
    fn multiples_are_those_of_the_library() {
        let largest = Zp::ZERO - Zp::ONE;
        assert_eq!(largest.inner.into_bigint().0[4] >> (8 * BYTES - 256), 0);
        let mut number = Zp::from_u64(0x0123_4567_89ab_cdef);
        let mut numbers = vec![Zp::ONE, largest];
        for _ in 0..6 {
            number = number * number + Zp::ONE;
            numbers.push(number);
        }
        fn check<G: CurveGroupOps<Zp>>(numbers: &[Zp]) {
            for (multiple, number) in multiples::<G>(numbers).into_iter().zip(numbers) {
                assert!(G::projective(multiple) == G::GENERATOR.mul_scalar(*number), "{number:?}");
            }
        }
        check::<G1>(&numbers);
        check::<G2>(&numbers);
    }
}
