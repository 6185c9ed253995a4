//! The report as text: conditions, table, and legend.

use speed_core::NoisePlacement;
use speed_mechanism::MechanismKind;

use super::columns::{dash, two_digits_up};
use super::finished::Report;
use crate::config::{RawNoise, VotesSourceKind};
use crate::environment::Environment;
use crate::stages::EnsembleQuality;
use crate::table::{Table, percent};

impl Report {
    /// Returns the table and its conditions as Markdown.
    #[must_use]
    pub fn to_markdown(&self) -> String {
        let mut text = format!("# {}\n\n{}{}\n", self.experiment, self.heading(), self.machine());
        text.push_str(&self.table_with_times().to_markdown());
        text.push_str(&format!("\n```text\n{}```\n\n## Claims\n\n{}\n## Stages\n\n", self.legend(), self.claims()));
        let mut times = Table::new(["stage", "wall seconds", "units from earlier attempts"]);
        for stage in &self.stage_times {
            let seconds = format!("{:.1}", stage.seconds);
            times.push(vec![stage.stage.clone(), seconds, stage.resumed_units.to_string()]);
        }
        text.push_str(&times.to_markdown());
        text.push_str(&format!("\n## Config\n\n```toml\n{}```\n", self.config.to_toml()));
        text
    }

    /// Returns the meaning of the columns.
    #[must_use]
    pub fn legend(&self) -> String {
        let further = [(self.has_thresholds(), ANSWERED_NOTE), (self.has_unresolved(), UNRESOLVED_NOTE)];
        let further = further.into_iter().filter_map(|(is_there, note)| is_there.then_some(note));
        std::iter::once(NOTES).chain(further).collect()
    }

    /// Returns the conditions of the table, one sentence per line.
    #[must_use]
    pub fn heading(&self) -> String {
        let simulation = "SIMULATION: noise and keys come from the seed. Reproducible, not private.\n\n";
        let simulation = if self.simulation { simulation } else { "" };
        format!("{simulation}{}{}{}", self.conditions(), self.mixed_machines(), self.spent())
    }

    fn conditions(&self) -> String {
        let accuracy = |share: Option<f64>| share.map_or_else(dash, |share| format!("{} %", percent(share)));
        let config = &self.config;
        let EnsembleQuality { teachers, pool_images, mean_accuracy, plurality_accuracy } = &self.ensemble;
        let [mean, plurality] = [mean_accuracy, plurality_accuracy].map(|share| accuracy(*share));
        let votes = match config.votes.source {
            VotesSourceKind::Truth => format!("True labels of {pool_images} pool images instead of votes"),
            _ => format!("{teachers} teachers (mean {mean}, plurality {plurality} on {pool_images} pool images)"),
        };
        let handwriting = self.handwriting.as_ref();
        let images = handwriting
            .map_or_else(String::new, |name| format!("Street digits with handwriting from dataset {name}.\n"));
        format!(
            "{images}{votes}, {} queries, {}, delta {:e}, seed {}.\n",
            config.queries.count,
            noise(&config.noise),
            config.privacy.delta,
            config.seed,
        )
    }

    fn machine(&self) -> String {
        let Environment { processor, processors, system, products, speed, burn, tfhe, .. } = &self.environment;
        format!(
            "{processor}, {processors} processors, {system}; {products}; speed {speed}, burn {burn}, tfhe {tfhe}.\n"
        )
    }

    fn mixed_machines(&self) -> String {
        if self.kinds_of_machine.len() < 2 {
            return String::new();
        }
        format!(
            "MIXED: trained on machines of {} kinds ({}); no single machine can repeat these trainings.\n",
            self.kinds_of_machine.len(),
            self.kinds_of_machine.join(", ")
        )
    }

    fn spent(&self) -> String {
        let Some(ledger) = &self.ledger else { return String::new() };
        let budget = self.config.privacy.budget;
        let of = if budget > 0.0 { format!(" of {budget}") } else { String::new() };
        format!(
            "Ledger: {} answers charged in all runs of this experiment, data-independent epsilon {}{of} at delta {:e}{}.\n",
            ledger.queries,
            two_digits_up(ledger.spent_epsilon),
            ledger.budget.delta.get(),
            if ledger.samplers_included { "" } else { ", of exact noise: delta does not include the samplers" },
        )
    }

    /// Returns the claims in full, with the columns to which each belongs.
    fn claims(&self) -> String {
        let mut text = String::new();
        for row in self.rows.iter().filter(|row| row.labels_of.is_empty()) {
            for (account, columns) in row.claims() {
                let (epsilon, columns) = (two_digits_up(account.epsilon), columns.join(" and "));
                text.push_str(&format!("- **{}**, {epsilon} ({columns}): {}\n", row.name, account.claim));
            }
            for why in &row.without_value {
                text.push_str(&format!("- **{}**, no value of {why}\n", row.name));
            }
        }
        text
    }
}

/// Returns a short description of the noise in the config.
pub(crate) fn noise(noise: &RawNoise) -> String {
    let scale = if noise.mechanism.is_inverse() { ("gamma", noise.gamma) } else { ("sigma", noise.sigma) };
    let kind =
        if noise.mechanism == MechanismKind::default() { String::new() } else { format!("{}, ", noise.mechanism) };
    let place = if noise.placement == NoisePlacement::Central { ", added by the server" } else { "" };
    let threshold = if noise.threshold == 0 { String::new() } else { format!(", threshold {}", noise.threshold) };
    format!("{kind}{} {}{place}{threshold}", scale.0, scale.1)
}

/// The meaning of the columns.
const NOTES: &str = "\
ε data-independent
             holds for all votes: both directions, dropout or collusion, rounded up; may be published.
ε data-dependent
             the tightest valid claim for the added integer noise, at these votes, rounded up: both
             directions; neighbours differ in one teacher's vote; the noise of up to (1 - tau) n teachers is
             missing, not known (dropout; central for Trusted); depends on the votes, so must not be published as it is.
ε data-dependent collusion
             the same if that noise is known to the adversary, or partly known and partly missing.
ε paper formulas
             Algorithm 1 with the paper's formulas for continuous noise, at these votes: one direction, dropout.
ε paper      the paper's epsilon. Its accuracies are under \"paper %\", its homomorphic time under \"paper s\".
labels %     right labels among the answered queries.
student      GAN, conv GAN: the paper's for MNIST and for SVHN | ours: the student on pseudo-labels, on the same labels and images (docs/student.md).
student %    accuracy on test images, mean ± deviation of repeats; single students are in
             tables/students.csv and students.svg.
HE = clear   queries for which the homomorphic argmax gives the same label as the clear-text argmax.
HE s         wall-clock time of the homomorphic argmax, all queries. core-s/query: processor time of the round per query.
";

const ANSWERED_NOTE: &str = "\
answered     queries whose noisy maximum reached the row's threshold; the others stay without a label.
";

const UNRESOLVED_NOTE: &str = "\
unresolved   queries for which the paper's circuit found no winner or several; they stay without a label. For tied
             counts the clear-text argmax takes the lowest class, the paper's circuit any of them.
";

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    fn published() -> Report {
        let run = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../results/published/mnist/abaeb3d5b808");
        Report::read(&run).expect("a report of an earlier version")
    }

    #[test]
    fn a_claim_of_two_columns_is_said_once() {
        let claims = published().claims();
        let of =
            |row: &str| claims.lines().filter(|line| line.starts_with(&format!("- **{row}**"))).collect::<Vec<_>>();
        // Without other teachers, dropout and collusion are identical.
        assert_eq!((of("tau = 1").len(), of("tau = 0.9").len()), (3, 4), "{claims}");
        assert!(claims.contains("- **tau = 1**, 0.29 (ε data-dependent and ε data-dependent collusion): "), "{claims}");
        assert!(claims.contains("- **tau = 0.9**, 6.08 (ε data-independent): "), "{claims}");
    }

    #[test]
    fn a_summary_has_few_columns_and_the_publishable_epsilon_first() {
        let report = published();
        let heads = report.summary();
        let expected = ["row", "ε data-independent", "labels %", "student", "student %", "HE = clear", "HE s"];
        assert_eq!(heads.columns(), expected);
        assert_eq!(report.rows[0].paper.epsilon, None, "0 in reports of earlier versions stands for none");
        assert!(report.table_with_times().columns().len() > 12);
    }
}
