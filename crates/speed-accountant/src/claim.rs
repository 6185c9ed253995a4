//! Claims in words: the meaning of an epsilon.

use crate::assumption::{Adversary, Assumptions, Bound, Extent, NeighbouringRelation};
use crate::checks::Checks;
use crate::event::PrivacyEvent;
use crate::release::Release;
use crate::rounding::round_up;

/// The conditions under which a claim for one teacher is a claim for one person, where parties have several teachers.
pub const UNDIVIDED: &str = "if every party gave all records of a person to the same teacher, no other party has records of that person, \
                             and neither the teacher of another person nor the training of another teacher depends on that person";

pub(crate) struct Claim<'a> {
    pub(crate) event: &'a PrivacyEvent,
    pub(crate) assumptions: Assumptions,
    /// Number of teachers; `None` for a claim that does not depend on the votes.
    pub(crate) teachers: Option<u64>,
    /// Number of classes of a claim without votes; `None` for any number.
    pub(crate) classes: Option<usize>,
    /// Number of queries, or the largest number of answers after checks.
    pub(crate) queries: usize,
    pub(crate) epsilon: f64,
    pub(crate) delta: f64,
    /// The release of the value, if it depends on the votes and may be published.
    pub(crate) release: Option<&'a Release>,
    pub(crate) checks: Option<&'a Checks>,
}

impl Claim<'_> {
    pub(crate) fn in_words(&self) -> String {
        let sentences = [self.guarantee(), self.noise(), self.others(), self.formulas(), self.publication()];
        sentences.join(" ")
    }

    fn guarantee(&self) -> String {
        let scope = if self.teachers.is_some() { "at these votes" } else { "whatever the votes are" };
        let directions = match self.assumptions.relation {
            NeighbouringRelation::BothWays => "in both directions",
            NeighbouringRelation::OneSided => "in one direction only, from these votes to a neighbour's and not back",
        };
        let classes = match self.classes {
            Some(classes) if self.event.is_one_difference(classes) => {
                format!(" between {classes} classes without a threshold")
            }
            Some(classes) => format!(" between {classes} classes"),
            None => String::new(),
        };
        let answers = match self.checks {
            Some(checks) if self.teachers.is_none() => {
                format!("outcomes of {} checks and of at most {} answers", checks.queries, self.queries)
            }
            Some(checks) => {
                format!("outcomes of {} checks and of the answers to queries that reach the threshold", checks.queries)
            }
            None if self.event.is_check() => "outcomes of the checks".to_owned(),
            None => "answers".to_owned(),
        };
        let neighbours = match self.event.party_teachers() {
            1 => "one teacher's vote on every query, empty votes included".to_owned(),
            teachers => {
                format!(
                    "the votes of one party's {teachers} teachers on every query, empty votes included, at most 256 classes"
                )
            }
        };
        format!(
            "({}, {:e})-DP of the {answers}{classes}{} {scope}, {directions}; neighbours differ in {neighbours}.",
            round_up_to_digits(self.epsilon),
            self.delta,
            if self.release.is_some() { " and of this value" } else { "" },
        )
    }

    fn noise(&self) -> String {
        match self.checks {
            Some(checks) => format!("Checks: {} Answers: {}", noise_of(&checks.event), noise_of(self.event)),
            None => noise_of(self.event),
        }
    }

    fn others(&self) -> String {
        let tau = self.event.tau().get();
        if self.assumptions.adversary == Adversary::ExternalWithCentral {
            return "A trusted aggregator adds the noise (central).".to_owned();
        }
        if tau == 1.0 {
            return "All teachers' noise is present and secret.".to_owned();
        }
        let Some(teachers) = self.teachers else {
            return format!(
                "Noise of up to a ratio {:.4} of the teachers may be missing (dropout) or known to the adversary (collusion), \
                 in any mixture, honestly drawn or not.",
                1.0 - tau
            );
        };
        let others = ((1.0 - tau) * teachers as f64).round();
        match (self.assumptions.adversary, self.assumptions.extent) {
            (Adversary::Colluding, extent) => {
                let noise = match extent {
                    _ if self.assumptions.bound == Bound::Paper => {
                        format!("{others} colluders of {teachers} teachers: all their noise is known to the adversary")
                    }
                    Extent::Exactly => format!(
                        "{others} colluders of {teachers} teachers: all their noise is known to the adversary, or all of it \
                         is missing"
                    ),
                    Extent::UpTo => format!(
                        "Up to {others} colluders of {teachers} teachers: noise of any of them is known to the adversary and \
                         of any others missing, of the same teachers in every query"
                    ),
                };
                format!(
                    "{noise} (collusion). Known noise is honestly drawn: colluders who choose theirs are covered by the \
                     claim without votes only."
                )
            }
            (Adversary::ExternalWithDropout | Adversary::ExternalWithCentral, Extent::Exactly) => {
                format!("Noise of exactly {others} of {teachers} teachers is missing (dropout); the rest is secret.")
            }
            (Adversary::ExternalWithDropout | Adversary::ExternalWithCentral, Extent::UpTo) => format!(
                "Noise of up to {others} of {teachers} teachers is missing, of the same teachers in every query (dropout); \
                 the rest is secret."
            ),
        }
    }

    fn formulas(&self) -> String {
        match self.assumptions.bound {
            Bound::Paper => "Formulas: the paper's (Algorithm 1, with its errata).",
            Bound::Outcome => "Formulas: exact worst case given epsilon and q of each query.",
            Bound::Tight => "Formulas: the tightest known here (docs/privacy.md); ties go to the lowest class.",
        }
        .to_owned()
    }

    fn publication(&self) -> String {
        if let Some(release) = self.release {
            let failure = release.failure;
            return if release.simulation {
                "SIMULATION: the noise of this value comes from a seed; it is not private and must not be published."
                    .to_owned()
            } else {
                format!(
                    "May be published, once: a smooth upper bound with noise, whose own cost is included. The epsilon is \
                     itself random: with a probability of at most {failure:.1e} over its noise it comes out too small, and \
                     delta includes that."
                )
            };
        }
        if self.teachers.is_some() {
            "Not publishable as is: it depends on the votes, so the value can itself leak; a release needs smooth \
             sensitivity."
        } else {
            "It looks at no votes and may be published."
        }
        .to_owned()
    }
}

/// States the noise of a query, its threshold and its sampler.
fn noise_of(event: &PrivacyEvent) -> String {
    let threshold = event.threshold().map_or_else(String::new, |threshold| {
        if event.is_check() {
            format!(", the same for all classes, and whether the largest noisy count reaches {threshold}")
        } else {
            format!(", with \"no answer\" where no noisy count reaches {threshold}")
        }
    });
    let sampler = if event.sampling_total_variation() > 0.0 {
        format!(
            ", sampled within a total variation distance of {:e} that delta includes",
            round_up_to_digits(event.sampling_total_variation())
        )
    } else if event.names_sampler() {
        ", which this program samples exactly".to_owned()
    } else {
        ". Exact noise is assumed: delta includes no sampler's distance from it".to_owned()
    };
    format!("Noise: {}, tau = {}{threshold}{sampler}.", event.mechanism(), event.tau().get())
}

/// Rounds a bound up to four digits, so that the printed value is a valid bound too.
fn round_up_to_digits(bound: f64) -> f64 {
    let magnitude = if bound > 0.0 { bound.log10().floor() } else { 0.0 };
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "from 0 to 300 digits")]
    let decimals = (3.0 - magnitude).clamp(0.0, 300.0) as u32;
    round_up(bound, decimals)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_claim_has_four_digits_and_none_of_them_is_too_small() {
        for (bound, shown) in
            [(5.391836, 5.392), (0.28428079, 0.2843), (1.0207e-31, 1.021e-31), (12345.1, 12346.0), (0.0, 0.0)]
        {
            assert_eq!(round_up_to_digits(bound), shown);
        }
        assert_eq!(round_up_to_digits(f64::INFINITY), f64::INFINITY);
    }
}
