//! A labelling round: its terms, and the identifier that binds messages to the round.

use sha2::{Digest as _, Sha256};
use speed_core::{Digest, NoisePlacement, RandomnessKind, ShapeError, VoteShape};
use speed_mechanism::{BinomialShare, Mechanism, MechanismError};

use crate::getters::{getters, messages_of};
use crate::ids::{KeyId, RoundId};
use crate::outcome::Outcomes;
use crate::privacy_noise::PrivacyNoise;
use crate::range::{ProofRange, VoteRange};
use crate::status::TeacherStatus;

/// The reason why terms do not define a round, with the found and the expected.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct RoundError(String);

messages_of!(RoundError, RoundError: ShapeError = "a round of ", MechanismError);

/// The question of a round's queries.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum RoundKind {
    /// The class with the largest noisy count; with a threshold, "no answer" if that count is below it.
    #[default]
    Labels,
    /// Whether the largest noisy count reaches the threshold. Every teacher adds one share of noise to all its values of a
    /// query ([`check_values`](crate::check_values)), and the student does not learn the class.
    Check,
}

/// The terms of a labelling round. [`RoundSpec::new`] gives the defaults:
///
/// ```
/// use speed_aggregation::{Round, RoundSpec};
/// use speed_core::VoteShape;
///
/// let shape = VoteShape::new(250, 100, 10)?;
/// let round = Round::new(RoundSpec { threshold: Some(60), ..RoundSpec::new(b"run 1", shape, 900) })?;
/// assert_eq!(round.shape(), shape);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct RoundSpec {
    /// SHA-256 of the round's name (a run id, for example). Two rounds under one key need different names.
    pub label: Digest,
    /// Numbers of teachers, queries and classes. Every teacher has a vote and a share of the noise.
    pub shape: VoteShape,
    /// The number of teachers of each party, if a party sends one message for several teachers: the sum of their votes and
    /// of their shares of the noise. Empty if every teacher is a party.
    pub parties: Vec<u32>,
    /// The largest absolute value of the privacy noise in one class, summed over teachers, in votes.
    pub noise_bound: u64,
    /// SHA-256 of a list of the queries, if stated.
    pub query_list: Option<Digest>,
    /// SHA-256 of the names of the classes, if they have names ([`Classes::digest`](speed_core::Classes::digest)).
    pub class_list: Option<Digest>,
    /// The minimum number of teachers that must answer.
    pub min_teachers: usize,
    /// The parties that add the privacy noise.
    pub placement: NoisePlacement,
    /// The distribution of the privacy noise, if stated.
    pub mechanism: Option<Mechanism>,
    /// The number of votes that a noisy maximum must reach for an answer: confident aggregation.
    pub threshold: Option<i64>,
    /// The question of the queries. A check needs a threshold.
    pub kind: RoundKind,
    /// SHA-256 of the parties' names and keys, if they are programs that sign their messages.
    pub roster: Option<Digest>,
    /// SHA-256 of the proof key, if messages need proofs that they are well formed.
    pub proofs: Option<Digest>,
    /// SHA-256 of the evaluation key's file, if stated.
    pub evaluation_key: Option<Digest>,
    /// The index of the party that opens the result together with the student, if the opening is joint.
    pub opener: Option<usize>,
    /// The origin of keys and privacy noise. A simulation gives no privacy.
    pub randomness: RandomnessKind,
}

impl RoundSpec {
    /// Creates the terms of a round in which all teachers must answer, each adds a share of the noise, and no mechanism
    /// is stated.
    pub fn new(label: &[u8], shape: VoteShape, noise_bound: u64) -> Self {
        Self {
            label: Digest::of(label),
            shape,
            parties: Vec::new(),
            noise_bound,
            query_list: None,
            class_list: None,
            min_teachers: shape.teachers(),
            placement: NoisePlacement::Distributed,
            mechanism: None,
            threshold: None,
            kind: RoundKind::Labels,
            roster: None,
            proofs: None,
            evaluation_key: None,
            opener: None,
            randomness: RandomnessKind::OperatingSystem,
        }
    }
}

/// The validated public terms of one labelling round, the same for teachers, server and student.
#[derive(Clone, Debug, PartialEq)]
pub struct Round {
    spec: RoundSpec,
}

impl Round {
    /// The largest number of values (`queries * classes`) of one message: 8 MiB of bodies and 8 MiB of masks.
    pub(crate) const MAX_VALUES: usize = 1 << 20;
    /// The largest number of queries of a round, which limits a result to 2 GiB.
    pub const MAX_QUERIES: usize = 1 << 16;
    /// The largest number of teachers of a round.
    pub(crate) const MAX_TEACHERS: usize = VoteShape::MAX_TEACHERS;
    /// The largest number of classes of a round (a label is one byte); a parameter set may support fewer.
    pub(crate) const MAX_CLASSES: usize = VoteShape::MAX_CLASSES;

    /// Checks the terms of a round.
    ///
    /// # Errors
    /// If there are too many queries or values; if the minimum number of teachers is 0 or exceeds their number; if no
    /// noisy count, or every one, is below the threshold; if a check has no threshold; if an answer cannot name every
    /// outcome; if the noise is not an integer; if those who add it cannot share its coins; or if each teacher's coins are
    /// odd and there is a threshold.
    pub fn new(spec: RoundSpec) -> Result<Self, RoundError> {
        let (queries, classes) = (spec.shape.queries(), spec.shape.classes());
        if queries > Self::MAX_QUERIES {
            let max = Self::MAX_QUERIES;
            return Err(ShapeError { side: "queries", found: queries, min: 1, max }.into());
        }
        if spec.shape.counts() > Self::MAX_VALUES {
            let max = Self::MAX_VALUES;
            let text = format!("{queries} queries of {classes} classes: a message carries at most {max} values");
            return Err(RoundError(text));
        }
        if !(1..=spec.shape.teachers()).contains(&spec.min_teachers) {
            let (found, teachers) = (spec.min_teachers, spec.shape.teachers());
            let text = format!("{found} teachers must answer, expected a minimum of 1 to {teachers}");
            return Err(RoundError(text));
        }
        if let Some(found) = spec.mechanism.filter(|mechanism| !mechanism.is_integer()) {
            let expected = "the noise of a round is an integer number of votes";
            return Err(RoundError(format!("{found} cannot be encrypted: {expected}")));
        }
        let mut round = Self { spec };
        round.check_parties()?;
        round.check_opener()?;
        if let Some(Mechanism::Binomial { coins }) = round.spec.mechanism {
            BinomialShare::new(coins, round.sharers())?;
        }
        round.check_threshold()?;
        round.check_outcomes()?;
        Ok(round)
    }

    /// Checks the numbers of teachers of the parties. Parties of one teacher each are left out, so that such a round keeps
    /// its id.
    fn check_parties(&mut self) -> Result<(), RoundError> {
        let (parties, expected) = (&self.spec.parties, self.spec.shape.teachers());
        let found: u64 = parties.iter().map(|&teachers| u64::from(teachers)).sum();
        if !parties.is_empty() && (parties.contains(&0) || found != expected as u64) {
            return Err(RoundError(format!(
                "parties have {found} teachers together, expected {expected}, at least one in each party"
            )));
        }
        if parties.iter().all(|teachers| *teachers == 1) {
            self.spec.parties.clear();
        }
        Ok(())
    }

    fn check_opener(&self) -> Result<(), RoundError> {
        let text = match self.spec.opener {
            Some(found) if found >= self.parties() => {
                let parties = self.parties();
                &*format!("the opener is party {found}, expected one of the {parties} parties that answer, from 0")
            }
            Some(_) if self.spec.placement == NoisePlacement::Central => {
                "a joint opening needs noise from the teachers: if the server adds it, the opener cannot verify the result, and \
                 an unverified answer could read its share of the key"
            }
            Some(_) if self.spec.evaluation_key.is_none() => {
                "a joint opening needs the SHA-256 of the evaluation key: with another evaluation key a verified answer could \
                 read the opener's share of the key"
            }
            _ => return Ok(()),
        };
        Err(RoundError(text.to_owned()))
    }

    fn check_threshold(&self) -> Result<(), RoundError> {
        let Some(found) = self.spec.threshold else {
            let missing = || RoundError("a check needs a threshold: found none".to_owned());
            return if self.is_check() { Err(missing()) } else { Ok(()) };
        };
        let clamp = |value: u64| i64::try_from(value).unwrap_or(i64::MAX);
        let (teachers, bound) = (clamp(self.spec.shape.teachers() as u64), clamp(self.spec.noise_bound));
        let (min, max) = (-bound, bound.saturating_add(teachers));
        if !(min..=max).contains(&found) {
            let text = format!("threshold {found}: noisy counts of this round lie from {min} to {max}");
            return Err(RoundError(text));
        }
        if let Some(noise) = self.noise() {
            noise.check_threshold(self.spec.shape.teachers())?;
        }
        Ok(())
    }

    /// Checks that an answer can name every outcome.
    fn check_outcomes(&self) -> Result<(), RoundError> {
        let (classes, max) = (self.spec.shape.classes(), Outcomes::MAX);
        let (more, words) = if self.spec.threshold.is_some() { (1, " and \"no answer\"") } else { (0, "") };
        if classes + more > max {
            return Err(RoundError(format!("{classes} classes{words}: an answer has room for {max} outcomes")));
        }
        Ok(())
    }

    /// Returns the numbers of teachers, queries and classes.
    pub fn shape(&self) -> VoteShape {
        self.spec.shape
    }

    /// Returns the number of parties, each of which sends one message.
    pub fn parties(&self) -> usize {
        if self.spec.parties.is_empty() { self.spec.shape.teachers() } else { self.spec.parties.len() }
    }

    /// Returns the number of teachers of a party, whose votes and shares of the noise its message adds up; 0 for a party
    /// that the round does not have.
    pub fn teachers_of(&self, party: usize) -> usize {
        match self.spec.parties.get(party) {
            Some(&teachers) => teachers as usize,
            None => usize::from(self.spec.parties.is_empty() && party < self.spec.shape.teachers()),
        }
    }

    /// Returns the largest number of teachers of a party.
    pub fn largest_party(&self) -> usize {
        self.spec.parties.iter().max().map_or(1, |&teachers| teachers as usize)
    }

    /// Returns the number of teachers of the parties that are counted in a sum, given the status of each party.
    pub fn teachers_counted(&self, statuses: &[TeacherStatus]) -> usize {
        let counted = statuses.iter().enumerate().filter(|(_, status)| **status == TeacherStatus::Counted);
        counted.map(|(party, _)| self.teachers_of(party)).sum()
    }

    getters! {
        /// Returns the minimum number of teachers that must answer. A party counts with all its teachers.
        min_teachers: usize = spec.min_teachers,
        /// Returns the parties that add the privacy noise.
        placement: NoisePlacement = spec.placement,
        /// Returns the distribution of the privacy noise, if stated.
        mechanism: Option<Mechanism> = spec.mechanism,
        /// Returns the number of votes that a noisy maximum must reach for an answer.
        threshold: Option<i64> = spec.threshold,
        /// Returns the question of the queries.
        kind: RoundKind = spec.kind,
    }

    /// Returns whether the queries are checks.
    pub(crate) fn is_check(&self) -> bool {
        self.spec.kind == RoundKind::Check
    }

    fn noise(&self) -> Option<PrivacyNoise> {
        self.spec.mechanism.and_then(|mechanism| PrivacyNoise::new(mechanism).ok())
    }

    /// Returns the number of parties that share the noise.
    fn sharers(&self) -> usize {
        match self.spec.placement {
            NoisePlacement::Distributed => self.spec.shape.teachers(),
            NoisePlacement::Central => 1,
        }
    }

    /// Returns the smallest and the largest noise that an honest party of this many teachers adds to a value, if they are
    /// certain.
    fn certain_shares(&self, teachers: usize) -> Option<(i64, i64)> {
        match self.spec.placement {
            NoisePlacement::Distributed => {
                let times = i64::try_from(teachers).unwrap_or(i64::MAX);
                let of_all = |(least, most): (i64, i64)| (least.saturating_mul(times), most.saturating_mul(times));
                self.noise().and_then(|noise| noise.share_range(self.sharers())).map(of_all)
            }
            NoisePlacement::Central => Some((0, 0)),
        }
    }

    /// Returns the range of values that the proofs of the largest party allow, for which the round's proof key is generated.
    /// Student, teachers and server compute it from the round, and refuse a proof key of another range.
    pub fn proof_range(&self) -> ProofRange {
        self.range_for(self.largest_party())
    }

    /// Returns the range of values that the proofs of a party allow, made with a proof key of the bits of
    /// [`Self::proof_range`].
    ///
    /// For binomial noise, and for noise from the server, it has exactly the values of an honest party of M teachers: from 0
    /// to M votes plus M shares. For other noise it is the smallest range of one proof that contains M votes plus any
    /// shares within the noise's bound. The shares of a party are within the bound of the sum of all shares, because the rest
    /// of the sum is equally likely to increase it and to decrease it; so an honest value is in the range except with the
    /// probability of the bound.
    pub fn proof_range_of(&self, party: usize) -> ProofRange {
        self.range_for(self.teachers_of(party)).with_bits(self.proof_range().bits())
    }

    fn range_for(&self, teachers: usize) -> ProofRange {
        let bound = i64::try_from(self.spec.noise_bound).unwrap_or(i64::MAX);
        let votes = i64::try_from(teachers).unwrap_or(i64::MAX);
        match self.certain_shares(teachers) {
            Some((least, most)) => ProofRange::exact(least, most.saturating_add(votes)),
            None => ProofRange::covering(-bound, bound.saturating_add(votes)),
        }
    }

    /// Returns the largest number of votes by which one party can move a noisy count if its values are in its range
    /// ([`Self::proof_range_of`]). It is measured from the mean of the party's honest noise, which is 0, or half of its
    /// teachers for an odd number of coins.
    pub fn largest_move(&self) -> f64 {
        let (least, most) = self.certain_shares(self.largest_party()).unwrap_or_default();
        let (mean, range) = (0.5 * (least + most) as f64, self.proof_range());
        (range.most() as f64 - mean).max(mean - range.least() as f64)
    }

    /// Returns whether keys or noise come from a seed.
    pub fn is_simulation(&self) -> bool {
        self.spec.randomness == RandomnessKind::Simulation
    }

    getters! {
        /// Returns SHA-256 of the list of queries, if stated.
        query_list: Option<Digest> = spec.query_list,
        /// Returns SHA-256 of the parties' names and keys, if they sign their messages.
        roster: Option<Digest> = spec.roster,
        /// Returns SHA-256 of the proof key, if messages need proofs that they are well formed.
        proofs: Option<Digest> = spec.proofs,
        /// Returns SHA-256 of the evaluation key's file, if stated.
        evaluation_key: Option<Digest> = spec.evaluation_key,
        /// Returns the index of the party that opens the result together with the student, if the opening is joint.
        opener: Option<usize> = spec.opener,
    }

    /// Returns the possible outcomes of a query.
    pub fn outcomes(&self) -> Outcomes {
        if self.is_check() {
            return Outcomes::of_check();
        }
        Outcomes::new(self.spec.shape.classes(), self.spec.threshold.is_some())
    }

    /// Returns the number of counts that are compared in a query: those of the classes, and the threshold if there is one.
    pub fn candidates(&self) -> usize {
        self.spec.shape.classes() + usize::from(self.spec.threshold.is_some())
    }

    /// Returns the guaranteed range of the noisy counts, as far as they are compared.
    pub fn range(&self) -> VoteRange {
        let (teachers, bound) = (self.spec.shape.teachers(), self.spec.noise_bound);
        match self.spec.threshold {
            Some(threshold) if self.is_check() => VoteRange::of_check(teachers, bound, threshold),
            _ => VoteRange::new(teachers, bound),
        }
    }

    /// Returns the number of values in a message, `queries * classes`.
    pub fn values(&self) -> usize {
        self.spec.shape.counts()
    }

    /// Returns the identifier of this round under a key: SHA-256 of all terms (docs/protocol.md, "The round's file").
    pub fn id(&self, key: KeyId) -> RoundId {
        let RoundSpec { label, shape, min_teachers, noise_bound, threshold, opener, .. } = self.spec;
        let digest = |stated: Option<Digest>| stated.map_or([0; 32], |digest| *digest.as_bytes());
        let mut hash = Sha256::new_with_prefix(b"speed/round/v5");
        hash.update(label.as_bytes());
        hash.update(key.as_bytes());
        let RoundSpec { query_list, class_list, roster, proofs, evaluation_key, .. } = self.spec;
        for stated in [query_list, class_list, roster, proofs, evaluation_key] {
            hash.update(digest(stated));
        }
        let mut number = |number: usize| hash.update((number as u64).to_le_bytes());
        [shape.queries(), shape.classes(), shape.teachers(), self.parties()].into_iter().for_each(&mut number);
        if self.parties() != shape.teachers() {
            (0..self.parties()).for_each(|party| number(self.teachers_of(party)));
        }
        number(min_teachers);
        hash.update(noise_bound.to_le_bytes());
        hash.update(opener.map_or(0, |opener| opener as u64 + 1).to_le_bytes());
        let place = match self.spec.placement {
            NoisePlacement::Distributed => 1,
            NoisePlacement::Central => 2,
        };
        hash.update([place, u8::from(self.is_simulation()), u8::from(threshold.is_some()) + u8::from(self.is_check())]);
        hash.update(threshold.unwrap_or(0).to_le_bytes());
        hash.update(self.spec.mechanism.map_or_else(String::new, Mechanism::identifier).as_bytes());
        RoundId::new(Digest::from_bytes(hash.finalize().into()))
    }
}

#[cfg(test)]
mod tests {
    use speed_mechanism::MechanismKind;

    use super::*;

    fn spec(label: &[u8], teachers: usize, queries: usize, classes: usize, noise_bound: u64) -> RoundSpec {
        RoundSpec::new(label, VoteShape::new(teachers, queries, classes).expect("a shape"), noise_bound)
    }

    fn base() -> RoundSpec {
        spec(b"run", 5, 3, 4, 6)
    }

    fn key(byte: u8) -> KeyId {
        KeyId::new(Digest::from_bytes([byte; 32]))
    }

    fn mechanism(kind: MechanismKind, scale: f64) -> Option<Mechanism> {
        Some(kind.with_scale(scale).expect("in range"))
    }

    #[test]
    fn the_id_depends_on_every_part() {
        let id = |spec: RoundSpec| Round::new(spec).expect("valid").id(key(0));
        let ids = [
            id(base()),
            Round::new(base()).expect("valid").id(key(1)),
            id(spec(b"run2", 5, 3, 4, 6)),
            id(spec(b"run", 5, 4, 3, 6)),
            id(spec(b"run", 6, 3, 4, 5)),
            id(spec(b"run", 5, 3, 4, 7)),
            id(RoundSpec { query_list: Some(Digest::from_bytes([1; 32])), ..base() }),
            id(RoundSpec { class_list: Some(Digest::from_bytes([1; 32])), ..base() }),
            id(RoundSpec { roster: Some(Digest::from_bytes([1; 32])), ..base() }),
            id(RoundSpec { proofs: Some(Digest::from_bytes([1; 32])), ..base() }),
            id(RoundSpec { evaluation_key: Some(Digest::from_bytes([1; 32])), ..base() }),
            id(RoundSpec { evaluation_key: Some(Digest::from_bytes([1; 32])), opener: Some(0), ..base() }),
            id(RoundSpec { evaluation_key: Some(Digest::from_bytes([1; 32])), opener: Some(1), ..base() }),
            id(RoundSpec { min_teachers: 4, ..base() }),
            id(RoundSpec { parties: vec![2, 3], ..base() }),
            id(RoundSpec { parties: vec![3, 2], ..base() }),
            id(RoundSpec { parties: vec![5], ..base() }),
            id(RoundSpec { placement: NoisePlacement::Central, ..base() }),
            id(RoundSpec { mechanism: mechanism(MechanismKind::DiscreteLaplace, 0.1), ..base() }),
            id(RoundSpec { mechanism: mechanism(MechanismKind::DiscreteLaplace, 0.2), ..base() }),
            id(RoundSpec { mechanism: mechanism(MechanismKind::Skellam, 0.1), ..base() }),
            id(RoundSpec { threshold: Some(0), ..base() }),
            id(RoundSpec { threshold: Some(1), ..base() }),
            id(RoundSpec { threshold: Some(1), kind: RoundKind::Check, ..base() }),
            id(RoundSpec { randomness: RandomnessKind::Simulation, ..base() }),
        ];
        assert_eq!(ids[0], id(RoundSpec { min_teachers: 5, ..base() }));
        assert_eq!(ids[0], id(RoundSpec { parties: vec![1; 5], ..base() }));
        for (i, first) in ids.iter().enumerate() {
            assert!(ids[..i].iter().all(|other| other != first), "{i}");
        }
    }

    #[test]
    fn the_id_of_the_documented_example() {
        // The same bytes hashed by Python's hashlib, as specified in docs/protocol.md.
        let round = Round::new(RoundSpec {
            query_list: Some(Digest::from_bytes([7; 32])),
            roster: Some(Digest::from_bytes([5; 32])),
            proofs: Some(Digest::from_bytes([6; 32])),
            min_teachers: 200,
            mechanism: mechanism(MechanismKind::DiscreteLaplace, 0.1),
            threshold: Some(-3),
            ..spec(b"example", 250, 100, 10, 898)
        })
        .expect("valid");
        assert_eq!(round.id(key(9)).to_hex(), "5f6495a45d05e6527093499709048efc0584b22d980801dabff20045c88dfb10");
    }

    #[test]
    fn terms_out_of_range_are_refused() {
        let refused = |spec| Round::new(spec).expect_err("refused").to_string();
        for found in [0, 6] {
            let refused = refused(RoundSpec { min_teachers: found, ..base() });
            assert_eq!(refused, format!("{found} teachers must answer, expected a minimum of 1 to 5"));
        }
        let with_threshold = |threshold| Round::new(RoundSpec { threshold: Some(threshold), ..base() });
        assert!(with_threshold(-6).is_ok() && with_threshold(11).is_ok());
        for found in [-7, 12, i64::MIN, i64::MAX] {
            let refused = with_threshold(found).expect_err("refused").to_string();
            assert_eq!(refused, format!("threshold {found}: noisy counts of this round lie from -6 to 11"));
        }
        let check = |threshold| RoundSpec { threshold, kind: RoundKind::Check, ..base() };
        assert_eq!(refused(check(None)), "a check needs a threshold: found none");
        let check = |threshold| Round::new(check(Some(threshold))).expect("valid");
        // Counts from -6 to 11 less the threshold, and classes differ by at most five votes.
        assert_eq!([-6, 0, 2, 5, 11].map(|threshold| check(threshold).range().difference()), [17, 11, 9, 11, 17]);
        let outcomes = check(2).outcomes();
        assert_eq!((outcomes.count(), outcomes.digits(), check(2).candidates()), (2, 1, 5));
        let wide = RoundSpec { threshold: Some(0), ..spec(b"", 5, 1, 128, 6) };
        assert!(refused(wide).starts_with("128 classes and \"no answer\""));
        let continuous = RoundSpec { mechanism: mechanism(MechanismKind::Gaussian, 40.0), ..base() };
        assert!(refused(continuous).contains("cannot be encrypted"));
        assert!(refused(spec(b"", 1, 1 << 16, 17, 0)).contains("a message carries at most"));
        let many = refused(spec(b"", 1, (1 << 16) + 1, 2, 0));
        assert!(many.starts_with("a round of 65537 queries, expected 1 to 65536"), "{many}");
    }

    #[test]
    fn a_party_has_the_range_of_its_teachers() {
        let of = |coins, placement, parties: &[u32]| {
            let spec = spec(b"run", 50, 3, 4, 400);
            let mechanism = mechanism(MechanismKind::Binomial, coins);
            Round::new(RoundSpec { mechanism, placement, parties: parties.to_vec(), ..spec })
        };
        let round = of(200.0, NoisePlacement::Distributed, &[25, 20, 5]).expect("valid");
        assert_eq!((round.parties(), round.largest_party(), round.shape().teachers()), (3, 25, 50));
        assert_eq!([0, 1, 2, 3].map(|party| round.teachers_of(party)), [25, 20, 5, 0]);
        for (party, least, most, proofs) in [(0, -50, 75, 2), (1, -40, 60, 2), (2, -10, 15, 2)] {
            let range = round.proof_range_of(party);
            assert_eq!(
                (range.least(), range.most(), range.bits(), range.proofs()),
                (least, most, 7, proofs),
                "{party}"
            );
        }
        assert_eq!((round.proof_range().bits(), round.largest_move()), (7, 75.0));
        let statuses = [TeacherStatus::Counted, TeacherStatus::Missing, TeacherStatus::Counted];
        assert_eq!(round.teachers_counted(&statuses), 30);
        let central = of(200.0, NoisePlacement::Central, &[25, 20, 5]).expect("valid");
        assert_eq!((central.proof_range_of(2).most(), central.proof_range_of(0).least()), (5, 0));
        for (parties, found) in [(&[25, 24][..], 49), (&[50, 0], 50), (&[u32::MAX, 1], 1_u64 << 32)] {
            let error = of(200.0, NoisePlacement::Distributed, parties).expect_err("refused").to_string();
            assert!(error.starts_with(&format!("parties have {found} teachers together, expected 50,")), "{error}");
        }
    }

    #[test]
    fn a_binomial_round_has_certain_ranges_and_even_coins_with_a_threshold() {
        let binomial = |coins, placement| RoundSpec {
            mechanism: mechanism(MechanismKind::Binomial, coins),
            placement,
            ..spec(b"run", 5, 3, 4, 60)
        };
        let round = |coins, placement| Round::new(binomial(coins, placement)).expect("valid");
        let (ours, servers) = (NoisePlacement::Distributed, NoisePlacement::Central);
        // Coins of all five teachers, bits of a value, votes that one teacher can move a count.
        for (coins, placement, bits, most) in [
            (20.0, ours, 3, 3.0),
            (10.0, ours, 2, 2.0),
            (25.0, ours, 3, 3.5),
            (30.0, ours, 3, 4.0),
            (20.0, servers, 1, 1.0),
            (21.0, servers, 1, 1.0),
        ] {
            let round = round(coins, placement);
            assert_eq!((round.proof_range().bits(), round.largest_move()), (bits, most), "{coins} {placement:?}");
        }
        assert_eq!(Round::new(base()).expect("valid").proof_range().bits(), 4);
        // Five coins of each teacher are refused with a threshold, also if the server tosses them.
        for (coins, placement, found) in [
            (20.0, ours, None),
            (30.0, ours, None),
            (25.0, ours, Some(5)),
            (20.0, servers, None),
            (25.0, servers, Some(5)),
        ] {
            let spec = RoundSpec { threshold: Some(7), ..binomial(coins, placement) };
            let odd = found.map(|found| MechanismError::OddCoins { found }.into());
            assert_eq!(Round::new(spec).err(), odd, "{coins} {placement:?}");
        }
        let error = Round::new(binomial(21.0, ours)).expect_err("uneven").to_string();
        assert!(error.contains("21 coins cannot be shared evenly between 5 teachers"), "{error}");
    }
}
