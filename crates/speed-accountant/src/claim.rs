//! What an epsilon means, in words.

use crate::{Assume, Bound, Directions, PrivacyEvent};

/// Everything that a claim names.
pub(crate) struct Claim<'a> {
    pub(crate) event: &'a PrivacyEvent,
    pub(crate) assume: Assume,
    pub(crate) directions: Directions,
    pub(crate) bound: Bound,
    /// How many teachers voted; none for a claim that looked at no votes.
    pub(crate) teachers: Option<u64>,
    pub(crate) epsilon: f64,
    pub(crate) delta: f64,
}

impl Claim<'_> {
    pub(crate) fn in_words(&self) -> String {
        let sentences = [self.what(), self.noise(), self.others(), self.formulas(), self.publication()];
        sentences.join(" ")
    }

    fn what(&self) -> String {
        let scope = if self.teachers.is_some() { "at these votes" } else { "whatever the votes are" };
        let directions = match self.directions {
            Directions::Both => "in both directions",
            Directions::One => "in one direction only, from these votes to a neighbour's and not back",
        };
        format!(
            "({}, {:e})-DP of the answers {scope}, {directions}; neighbours differ in one teacher's vote on every query.",
            self.epsilon, self.delta
        )
    }

    fn noise(&self) -> String {
        let event = self.event;
        let threshold = event.threshold().map_or_else(String::new, |threshold| {
            format!(", with \"no answer\" where no noisy count reaches {threshold}")
        });
        let sampler = if event.sampling_distance() > 0.0 {
            format!(", sampled within a statistical distance of {:e} that delta includes", event.sampling_distance())
        } else {
            String::new()
        };
        format!("Noise: {} a vote, tau = {}{threshold}{sampler}.", event.noise(), event.tau().get())
    }

    fn others(&self) -> String {
        let tau = self.event.tau().get();
        let others = match self.teachers {
            Some(teachers) => format!("up to {} of {teachers} teachers", ((1.0 - tau) * teachers as f64).round()),
            None => format!(
                "up to a ratio {} of the teachers",
                format!("{:.6}", 1.0 - tau).trim_end_matches('0').trim_end_matches('.')
            ),
        };
        match (self.assume, self.teachers) {
            (Assume::Central, _) => "A trusted aggregator adds the noise (central).".to_owned(),
            (_, None) => format!("Noise of {others} may be missing (dropout) or known to the adversary (collusion)."),
            (Assume::Dropout, _) => format!("Noise of {others} is missing (dropout); nobody knows any of the rest."),
            (Assume::Collusion, _) => {
                format!(
                    "Noise of {others} may be known to the adversary (collusion, {others_short} colluders).",
                    others_short = others.trim_end_matches(" teachers")
                )
            }
        }
    }

    fn formulas(&self) -> String {
        match self.bound {
            Bound::Paper => "Formulas: the paper's (Algorithm 1, with its errata).",
            Bound::Outcome => {
                "Formulas: exact worst case given epsilon and q of each query; numeric epsilon with a margin."
            }
            Bound::Tight => "Formulas: the tightest known here (docs/privacy.md).",
        }
        .to_owned()
    }

    fn publication(&self) -> String {
        if self.teachers.is_some() {
            "Not publishable as is: it depends on the votes, so the value can itself leak; a release needs smooth \
             sensitivity."
        } else {
            "It looks at no votes and may be published."
        }
        .to_owned()
    }
}
