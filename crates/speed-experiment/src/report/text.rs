//! The report as text: conditions, table, legend, claims and times.

use speed_accountant::epsilon_text;

use crate::config::VotesSource;
use crate::report::columns::dash;
use crate::report::run::{EnsembleQuality, Environment, FROM_PUBLIC_DATA, Report};
use crate::report::table::{Table, percent};

impl Report {
    /// Returns the table and its conditions as Markdown.
    pub fn to_markdown(&self) -> String {
        let mut text = format!("# {}\n\n{}{}\n", self.experiment, self.heading(), self.machine());
        if self.is_protected() {
            text.push_str(
                "NOT FOR PUBLICATION: epsilons at these votes depend on the secret votes. report.html has the public results.\n",
            );
        }
        text.push_str(&self.table_with_times().to_markdown());
        text.push_str(&format!("\n```text\n{}```\n\n## Claims\n\n{}", self.legend(), self.claims()));
        text.push_str(&self.classes_and_baselines());
        text.push_str("\n## Stages\n\n");
        let mut times = Table::new(["stage", "wall seconds", "units from earlier attempts"]);
        for stage in &self.stage_times {
            let seconds = format!("{:.1}", stage.seconds);
            times.push(vec![stage.stage.clone(), seconds, stage.resumed_units.to_string()]);
        }
        text.push_str(&times.to_markdown());
        text.push_str(&format!("\n## Config\n\n```toml\n{}```\n", self.config.to_toml()));
        text
    }

    /// Returns the conditions of the table, one sentence per line.
    pub fn heading(&self) -> String {
        let simulation = "SIMULATION: noise and keys come from the seed. Reproducible, not private.\n\n";
        let simulation = if self.simulation { simulation } else { "" };
        let mixed = match self.kinds_of_machine.len() {
            ..2 => String::new(),
            kinds => format!(
                "MIXED: trained on machines of {kinds} kinds ({}); no single machine can repeat these trainings.\n",
                self.kinds_of_machine.join(", ")
            ),
        };
        format!("{simulation}{}{mixed}{}", self.conditions(), self.spent())
    }

    fn conditions(&self) -> String {
        let accuracy = |share: Option<f64>| share.map_or_else(dash, |share| format!("{} %", percent(share)));
        let config = &self.config;
        let EnsembleQuality { teachers, pool_images, mean_accuracy, plurality_accuracy, .. } = &self.ensemble;
        let [mean, plurality] = [mean_accuracy, plurality_accuracy].map(|share| accuracy(*share));
        let empty = self.ensemble.empty_in_words();
        let votes = match config.votes.source {
            VotesSource::Truth => format!("True labels of {pool_images} pool images instead of votes"),
            // The figures are exact functions of the votes, which the noise protects.
            _ if self.is_protected() => format!("{teachers} teachers, {pool_images} pool images"),
            _ => {
                format!("{teachers} teachers (mean {mean}, plurality {plurality} on {pool_images} pool images{empty})")
            }
        };
        let handwriting = self.handwriting.as_ref();
        let images = handwriting
            .map_or_else(String::new, |name| format!("Street digits with handwriting from dataset {name}.\n"));
        let encoder = self
            .encoder
            .as_ref()
            .map_or_else(String::new, |encoder| format!("Encoder {}. {FROM_PUBLIC_DATA}\n", encoder.in_words()));
        format!(
            "{images}{encoder}{votes}, {} queries, {}, delta {:e}, seed {}.\n",
            config.queries.count,
            config.noise_in_words(),
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

    fn spent(&self) -> String {
        let Some(ledger) = &self.ledger else { return String::new() };
        let (queries, spent) = (ledger.queries, epsilon_text(ledger.spent_epsilon));
        // The number of charged answers may follow from earlier answers, so without a budget the charges alone allow no claim.
        let what = match self.config.privacy.budget {
            budget if budget > 0.0 => format!("epsilon {spent} of the budget of {budget}"),
            _ => format!("a budget of epsilon {spent}, fixed before the first answer, would have allowed them"),
        };
        format!(
            "Ledger: {queries} answers charged in all runs of this experiment: {what}, at delta {:e}{}.\n",
            ledger.budget.delta.get(),
            if ledger.samplers_included { "" } else { ", of exact noise: delta does not include the samplers" },
        )
    }

    fn claims(&self) -> String {
        let mut text = String::new();
        for row in self.rows.iter().filter(|row| row.labels_of.is_empty()) {
            for (account, columns) in row.claims() {
                let (epsilon, columns) = (epsilon_text(account.epsilon), columns.join(" and "));
                text.push_str(&format!("- **{}**, {epsilon} ({columns}): {}\n", row.name, account.claim));
            }
            for why in &row.without_value {
                text.push_str(&format!("- **{}**, no value of {why}\n", row.name));
            }
        }
        if let Some(encoder) = self.encoder.as_ref().filter(|_| !text.is_empty()) {
            text.push_str(&format!("- {FROM_PUBLIC_DATA} Here it is {}.\n", encoder.in_words()));
        }
        text
    }
}
