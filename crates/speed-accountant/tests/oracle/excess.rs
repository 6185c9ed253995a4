//! The excess of claims over the truth, by mechanism.

use std::collections::BTreeMap;

use speed_accountant::Bound;

use crate::oracle::case::Kind;
use crate::oracle::tails::NoiseKind;

/// The number of claims whose relative excess is above each of these values is shown.
const COUNTED: [f64; 3] = [0.01, 0.1, 1.0];
/// Number of worst cases shown for each mechanism.
const WORST: usize = 3;
/// The excess is not counted if the true epsilon is at most this.
const NEXT_TO_NOTHING: f64 = 1e-3;

/// A claim at given votes and the truth.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Excess {
    pub(crate) noise: NoiseKind,
    pub(crate) bound: Bound,
    pub(crate) claim: f64,
    pub(crate) truth: f64,
    /// True for a claim that is expected to be tight.
    pub(crate) is_tight: bool,
}

impl Excess {
    /// Returns `(claim - truth) / truth`, unless the truth is next to 0.
    pub(crate) fn share(&self) -> Option<f64> {
        (self.truth > NEXT_TO_NOTHING).then_some(self.claim / self.truth - 1.0)
    }

    /// Returns the name of the group of claims in which this one is counted.
    fn mechanism(&self) -> String {
        format!("{:?}, formulas {}", self.noise, self.bound)
    }
}

/// Counts of claims, by mechanism and kind.
#[derive(Default)]
pub(crate) struct Tally {
    by_kind: BTreeMap<(String, Kind), Vec<f64>>,
    /// Claims and their cases, the worst first.
    worst: BTreeMap<String, Vec<(f64, Excess, String)>>,
    next_to_nothing: usize,
}

impl Tally {
    /// Adds the claim of a case.
    pub(crate) fn add(&mut self, kind: Kind, excess: Excess, what: &str) {
        let Some(share) = excess.share() else {
            self.next_to_nothing += 1;
            return;
        };
        self.by_kind.entry((excess.mechanism(), kind)).or_default().push(share);
        let worst = self.worst.entry(excess.mechanism()).or_default();
        if worst.len() < WORST || worst.iter().any(|(least, ..)| share > *least) {
            worst.push((share, excess, what.to_owned()));
            worst.sort_by(|a, b| b.0.total_cmp(&a.0));
            worst.truncate(WORST);
        }
    }

    /// Returns one line for each mechanism, one for each of its kinds of cases, and its worst cases.
    pub(crate) fn text(&self) -> String {
        let mut text =
            "claims at given votes beside the truth; a truth of up-to, collusion and grid cases is itself a lower \
                        bound\n"
                .to_owned();
        for (mechanism, worst) in &self.worst {
            let of_it = || self.by_kind.iter().filter(|((of, _), _)| of == mechanism);
            let all = of_it().flat_map(|(_, shares)| shares).copied().collect();
            text += &format!("{mechanism}: {}\n", counts(all));
            for ((_, kind), shares) in of_it() {
                text += &format!("  {kind:?}: {}\n", counts(shares.clone()));
            }
            text += "  the worst:\n";
            for (share, Excess { claim, truth, .. }, what) in worst {
                text += &format!("  {:.4} %, claimed {claim:?}, true {truth:?}: {what}\n", 100.0 * share);
            }
        }
        text + &format!("  truths of at most {NEXT_TO_NOTHING}, left out: {}\n", self.next_to_nothing)
    }
}

fn counts(mut shares: Vec<f64>) -> String {
    shares.sort_by(f64::total_cmp);
    let median = shares.get(shares.len() / 2).copied().unwrap_or_default();
    let [one, ten, hundred] = COUNTED.map(|most| shares.iter().filter(|share| **share > most).count());
    format!(
        "{} claims, median excess {:.4} %; more than 1 %: {one}, 10 %: {ten}, 100 %: {hundred}",
        shares.len(),
        100.0 * median
    )
}
