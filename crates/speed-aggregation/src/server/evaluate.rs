//! The argmax of the sum.

use std::num::NonZeroUsize;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use rayon::prelude::*;
use speed_core::EntropyError;
use tfhe::core_crypto::commons::generators::NoiseRandomGenerator;
use tfhe::core_crypto::commons::math::random::{DefaultRandomGenerator, DynamicDistribution};
use tfhe::core_crypto::prelude::*;

use super::Server;
use super::error::ServerError;
use crate::answer::EncryptedAnswer;
use crate::circuit::{Engine, Lwe, READ_OUTS, add};
use crate::random::seeder;
use crate::threads::pool;

impl Server {
    /// The largest number of queries that a thread computes together; every key is read once for all of them.
    pub(crate) const GROUP: usize = 8;

    /// Computes the encrypted winner of every query, in order. Groups of queries run in parallel, one per thread; the
    /// answers do not depend on the number of threads. Calls `on_query` from the threads when a query finishes, with
    /// its index and the time on its thread.
    ///
    /// # Errors
    /// If too few teachers have answered, the server's noise is missing, threads cannot be started, or the operating
    /// system provides no randomness.
    pub fn argmax(
        &self,
        threads: NonZeroUsize,
        on_query: &(dyn Fn(usize, Duration) + Sync),
    ) -> Result<Vec<EncryptedAnswer>, ServerError> {
        let queries: Vec<usize> = (0..self.round.shape().queries()).collect();
        let answers = Mutex::new(Vec::with_capacity(queries.len()));
        self.answer::<ServerError>(threads, &queries, &|group, time| {
            group.iter().for_each(|answer| on_query(answer.query(), time));
            // A panic in another caller's on_query must not be hidden behind a poisoned lock.
            answers.lock().unwrap_or_else(PoisonError::into_inner).extend(group);
            Ok(())
        })?;
        let mut answers = answers.into_inner().unwrap_or_else(PoisonError::into_inner);
        answers.sort_by_key(EncryptedAnswer::query);
        Ok(answers)
    }

    /// Computes the encrypted winners of some queries, for instance those that an interrupted server had not answered.
    /// Calls `on_answers` from the threads as soon as a few answers are available, with the time that each took.
    ///
    /// # Errors
    /// The errors of [`Self::argmax`], and the first error of `on_answers`. No further group is started after that.
    ///
    /// # Panics
    /// If a query is not one of the round's.
    pub fn answer<E: From<ServerError> + Send>(
        &self,
        threads: NonZeroUsize,
        queries: &[usize],
        on_answers: &(dyn Fn(Vec<EncryptedAnswer>, Duration) -> Result<(), E> + Sync),
    ) -> Result<(), E> {
        self.check_complete(self.round.min_teachers())?;
        let pool = pool(threads).map_err(ServerError::from)?;
        // The group size keeps every thread busy: none is idle while another has a full group.
        let group = queries.len().div_ceil(threads.get()).clamp(1, Self::GROUP);
        pool.install(|| {
            queries.par_chunks(group).with_max_len(1).try_for_each(|group| {
                let start = Instant::now();
                let answers = self.evaluate_group(group)?;
                let each = start.elapsed() / u32::try_from(group.len()).expect("a group is small");
                on_answers(answers, each)
            })
        })
    }

    /// Computes the encrypted winners of a few queries in lockstep; every key is read once for all of them.
    fn evaluate_group(&self, queries: &[usize]) -> Result<Vec<EncryptedAnswer>, ServerError> {
        let mut engine = Engine::new(&self.key, self.layout);
        let mut counts: Vec<Vec<Lwe>> = queries.iter().map(|&query| self.counts(query)).collect();
        // "No answer" is an additional last class whose votes equal the threshold. Ties go to the lowest class, so a
        // maximum that reaches the threshold still wins.
        if let Some(threshold) = self.round.threshold() {
            counts.iter_mut().for_each(|counts| counts.push(engine.constant(self.layout.value(threshold))));
        }
        let winners = engine.argmax(self.circuit, &counts);
        let places = self.layout.digit_count();
        let mut digits: Vec<Lwe> = winners.into_iter().flatten().collect();
        for stage in 0..=READ_OUTS {
            for (position, digit) in digits.iter_mut().enumerate() {
                add(digit, &self.encrypted_zero(queries[position / places], position % places, stage)?);
            }
            if stage < READ_OUTS {
                digits = engine.read_out(&digits);
            }
        }
        *self.work.lock().unwrap_or_else(PoisonError::into_inner) += engine.work;
        let answers = queries.iter().zip(digits.chunks_exact(places)).map(|(&query, digits)| {
            let words = digits.iter().flat_map(|digit| digit.as_ref()).copied().collect();
            EncryptedAnswer::new(self.key.id(), self.id, query, self.round.outcomes(), words)
        });
        Ok(answers.collect())
    }

    /// Returns the summed counts of a query, one ciphertext per class.
    pub(crate) fn counts(&self, query: usize) -> Vec<Lwe> {
        let classes = self.round.shape().classes();
        (query * classes..(query + 1) * classes).map(|value| unpack(&self.sum, value)).collect()
    }

    /// Returns a fresh public-key encryption of zero with flooding noise in its body: that of a read-out, or the final
    /// one.
    pub(crate) fn encrypted_zero(&self, query: usize, place: usize, stage: usize) -> Result<Lwe, EntropyError> {
        let p = self.key.parameters();
        let context = [self.id.as_bytes().as_slice(), &[place as u8, stage as u8]].concat();
        let mut seeder = match &self.answer_seed {
            Some(seed) => seed.seeder(query as u64, &context),
            None => seeder(&self.randomness, "re-randomise", query as u64, &context)?,
        };
        let flooding = if stage < READ_OUTS { p.read_out_flooding_log } else { p.flooding_log };
        let mut generator = NoiseRandomGenerator::<DefaultRandomGenerator>::new(&mut seeder);
        let mut zero = LweCompactCiphertextList::new(
            0,
            p.big_dimension().to_lwe_size(),
            LweCiphertextCount(1),
            CiphertextModulus::new_native(),
        );
        encrypt_lwe_compact_ciphertext_list_with_compact_public_key(
            &self.key.public_key().key,
            &mut zero,
            &PlaintextList::new(0, PlaintextCount(1)),
            p.glwe_noise(),
            DynamicDistribution::new_t_uniform(flooding),
            &mut generator,
        );
        Ok(unpack(&zero, 0))
    }
}

/// Unpacks one value of a packed list: the mask of its ring element, rotated to the value's position, and its body.
/// (tfhe's own expansion unpacks all values at once, which takes 16 kB each.)
fn unpack(list: &LweCompactCiphertextListOwned<u64>, value: usize) -> Lwe {
    let dimension = list.lwe_size().to_lwe_dimension().0;
    let (masks, bodies) = list.as_ref().split_at(list.lwe_mask_count().0 * dimension);
    let mask = &masks[value / dimension * dimension..][..dimension];
    let mut words = vec![0; dimension + 1];
    polynomial_algorithms::polynomial_wrapping_monic_monomial_mul(
        &mut Polynomial::from_container(&mut words[..dimension]),
        &Polynomial::from_container(mask),
        MonomialDegree(value % dimension),
    );
    words[dimension] = bodies[value];
    LweCiphertext::from_container(words, CiphertextModulus::new_native())
}
