//! The influence of one teacher that sends any value that its proof allows, in the clear: proofs are about the same
//! values.

use speed_aggregation::{Aggregator, ClearText, NoisyVotes, PrivacyNoise, Round, RoundSpec, teacher_values};
use speed_core::{Randomness, VoteShape};

const CLASSES: usize = 10;
const QUERIES: usize = 210;

/// Returns the vote of an honest teacher. Some queries are unanimous, and some are almost ties.
fn vote(teacher: usize, query: usize) -> u8 {
    let class = if teacher % 20 < query % 21 { query } else { teacher / 2 + query };
    (class % CLASSES) as u8
}

/// A round of honest teachers with binomial noise, and a last teacher that lies.
struct Attacked {
    round: Round,
    /// The values of the honest teachers.
    honest: Vec<i64>,
}

impl Attacked {
    fn new(teachers: usize, coins: u64) -> Self {
        Self::with_threshold(teachers, coins, None)
    }

    fn with_threshold(teachers: usize, coins: u64, threshold: Option<i64>) -> Self {
        let (noise, shape) = (
            PrivacyNoise::of_coins(coins, teachers).expect("valid"),
            VoteShape::new(teachers, QUERIES, CLASSES).expect("a shape"),
        );
        let spec = RoundSpec::new(b"attacked", shape, noise.bound(shape).expect("bounded"));
        let round = Round::new(RoundSpec { mechanism: Some(noise.mechanism()), threshold, ..spec }).expect("valid");
        let share = noise.share_of(teachers).expect("a share");
        let honest = (0..teachers - 1).flat_map(|teacher| {
            let labels: Vec<u8> = (0..QUERIES).map(|query| vote(teacher, query)).collect();
            let randomness = Randomness::simulation([teacher as u8; 32]);
            teacher_values(shape, &labels, Some((&share, &randomness))).expect("no entropy is needed").to_vec()
        });
        Self { honest: honest.collect(), round }
    }

    /// Returns the noisy counts of the honest teachers, one list per query.
    fn counts(&self) -> Vec<Vec<i64>> {
        let mut counts = vec![vec![0; CLASSES]; QUERIES];
        for values in self.honest.chunks_exact(QUERIES * CLASSES) {
            for (counts, values) in counts.iter_mut().zip(values.chunks_exact(CLASSES)) {
                counts.iter_mut().zip(values).for_each(|(count, value)| *count += value);
            }
        }
        counts
    }

    /// Returns the labels if the last teacher sends these values, for a round without a threshold.
    fn labels(&self, liar: impl Fn(usize, usize) -> i64) -> Vec<u8> {
        self.answers(liar).into_iter().map(|label| label.expect("no threshold")).collect()
    }

    /// Returns the answers if the last teacher sends these values.
    fn answers(&self, liar: impl Fn(usize, usize) -> i64) -> Vec<Option<u8>> {
        let lies = (0..QUERIES * CLASSES).map(|value| liar(value / CLASSES, value % CLASSES));
        let values = self.honest.iter().copied().chain(lies).collect();
        let votes = NoisyVotes::new(self.round.shape(), self.round.range().noise_bound(), values).expect("valid");
        let threshold = self.round.threshold();
        let votes = if let Some(least) = threshold { votes.with_threshold(least) } else { votes };
        ClearText.aggregate(&votes, &|_, _| {}).expect("in the clear").labels()
    }
}

/// Returns how far the largest count is above the count of `class`.
fn lead(counts: &[i64], class: usize) -> i64 {
    counts.iter().max().expect("classes") - counts[class]
}

/// Lets the last teacher push every class in turn as far as its proof allows. Checks that it changes exactly the labels
/// whose noisy lead is small enough, and returns the largest lead that it could overcome.
fn largest_lead(attacked: &Attacked) -> i64 {
    let range = attacked.round.proof_range();
    let reach = range.most() - range.least();
    let (counts, silent) = (attacked.counts(), attacked.labels(|_, _| 0));
    let mut changed = 0;
    for target in 0..CLASSES {
        let lie = |_, class| if class == target { range.most() } else { range.least() };
        for (query, (&label, &before)) in attacked.labels(lie).iter().zip(&silent).enumerate() {
            let lead = lead(&counts[query], target);
            assert!(label == before || usize::from(label) == target, "the liar pushes class {target} only");
            assert!(label == before || lead <= reach, "query {query}: a lead of {lead} votes was overcome");
            assert!(usize::from(label) == target || lead >= reach, "query {query}: a lead of {lead} votes stood");
            changed += usize::from(label != before);
        }
    }
    assert!(changed > 0, "some labels are almost ties");
    // Most labels are safe from it.
    let safe = (0..QUERIES).filter(|&query| {
        let label = usize::from(silent[query]);
        (0..CLASSES).all(|class| class == label || lead(&counts[query], class) > reach)
    });
    let safe: Vec<usize> = safe.collect();
    // Values at random places of the range change no safe label either.
    let width = reach + 1;
    let arbitrary = attacked.labels(|query, class| range.least() + (query * 31 + class * class * 17) as i64 % width);
    assert!(safe.iter().all(|&query| arbitrary[query] == silent[query]));
    assert!(safe.len() > QUERIES / 10, "{} labels are safe", safe.len());
    reach
}

#[test]
fn one_proven_teacher_of_250_changes_only_labels_with_a_small_lead() {
    let attacked = Attacked::new(250, 4);
    let range = attacked.round.proof_range();
    assert_eq!((range.least(), range.most(), attacked.round.largest_move()), (-2, 3, 3.0));
    assert_eq!(largest_lead(&attacked), 5);
}

#[test]
fn one_proven_teacher_of_20_changes_only_labels_with_a_small_lead() {
    // The noise has a deviation of 4.5 votes with 4 coins each, and of 3.2 with 2.
    for (coins, least, most) in [(4, -2, 3), (2, -1, 2)] {
        let attacked = Attacked::new(20, coins);
        let range = attacked.round.proof_range();
        assert_eq!((range.least(), range.most(), attacked.round.largest_move()), (least, most, most as f64));
        assert_eq!(largest_lead(&attacked), coins as i64 + 1);
    }
}

#[test]
fn one_proven_teacher_silences_only_counts_close_to_the_threshold() {
    const THRESHOLD: i64 = 120;
    let attacked = Attacked::with_threshold(250, 4, Some(THRESHOLD));
    let range = attacked.round.proof_range();
    let most: Vec<i64> = attacked.counts().iter().map(|counts| *counts.iter().max().expect("classes")).collect();
    let silenced = attacked.answers(|_, _| range.least());
    let roused = attacked.answers(|_, _| range.most());
    let mut changed = [0; 2];
    for (query, &most) in most.iter().enumerate() {
        assert_eq!(silenced[query].is_some(), most + range.least() >= THRESHOLD, "query {query}");
        assert_eq!(roused[query].is_some(), most + range.most() >= THRESHOLD, "query {query}");
        changed[0] += usize::from(most >= THRESHOLD && silenced[query].is_none());
        changed[1] += usize::from(most < THRESHOLD && roused[query].is_some());
    }
    assert!(changed.iter().all(|&changed| (1..QUERIES / 10).contains(&changed)), "{changed:?}");
}

#[test]
fn one_proven_teacher_decides_every_label_of_a_discrete_laplace_round() {
    let shape = VoteShape::new(20, QUERIES, CLASSES).expect("a shape");
    let noise = PrivacyNoise::named("discrete-laplace", 0.1).expect("valid");
    let spec = RoundSpec::new(b"laplace", shape, noise.bound(shape).expect("bounded"));
    let round = Round::new(RoundSpec { mechanism: Some(noise.mechanism()), ..spec }).expect("valid");
    let attacked = Attacked { round, ..Attacked::new(20, 2) };
    assert_eq!((attacked.round.proof_range().bits(), attacked.round.largest_move()), (11, 1024.0));
    let range = attacked.round.proof_range();
    let labels =
        attacked.labels(|query, class| if class == query / 3 % CLASSES { range.most() } else { range.least() });
    assert!(labels.iter().enumerate().all(|(query, &label)| usize::from(label) == query / 3 % CLASSES));
}
