//! A config in the words of its plan and of its report.

use serde::Serialize;
use speed_accountant::AccountError;
use speed_accountant::forecast::Forecast;
use speed_core::NoisePlacement;
use speed_mechanism::{HonestRatio, Mechanism, MechanismKind};

use super::experiment::{Config, RawConfig};
use super::row::RawRow;
use crate::report::AggregationKind;

impl RawConfig {
    pub(crate) fn selection_in_words(&self) -> String {
        let groups = if self.queries.groups { ", groups of images" } else { "" };
        format!("{}{groups}", word(&self.queries.selection))
    }

    /// Returns a short description of the noise: of `[noise]`, with placement and threshold if all noisy rows agree.
    pub(crate) fn noise_in_words(&self) -> String {
        let (noise, teachers) = (&self.noise, self.ensemble.teachers);
        let kind = noise.mechanism;
        let width = match noise.written().distribution(teachers).map(|(_, noise)| noise.mechanism()) {
            Ok(Mechanism::Binomial { coins }) if noise.coins != 0 => {
                format!("coins {} a teacher (deviation {:.1})", coins.of_teacher(teachers), coins.deviation())
            }
            // A deviation becomes coins in each row, because a threshold needs an even number.
            Ok(Mechanism::Binomial { .. }) => format!("sigma {}", noise.sigma),
            _ => format!("{} {}", kind.parameter(), if kind.is_inverse() { noise.gamma } else { noise.sigma }),
        };
        let kind = if kind == MechanismKind::default() { String::new() } else { format!("{kind}, ") };
        let mut rows = self.row.iter().filter(|row| row.aggregation != AggregationKind::NonPrivate);
        let of_row = |row: &RawRow| (row.placement, row.threshold);
        let (placement, threshold) =
            rows.next().map(of_row).filter(|first| rows.all(|row| of_row(row) == *first)).unwrap_or_default();
        let place = if placement == NoisePlacement::Central { ", added by the server" } else { "" };
        let threshold = if threshold == 0 { String::new() } else { format!(", threshold {threshold}") };
        format!("{kind}{width}{place}{threshold}")
    }
}

impl Config {
    /// Returns a question for every row in which even a unanimous vote gives a wrong label more than 5 % of the time.
    pub(crate) fn unanimity_notes(&self, classes: usize) -> Result<Vec<String>, AccountError> {
        let (teachers, queries) = (self.ensemble.teachers, self.queries.count);
        let mut notes = Vec::new();
        for row in self.rows.iter().filter(|row| row.is_noisy()) {
            let forecast = Forecast::unanimous(&row.noise.event(HonestRatio::ALL)?, classes, teachers, queries)?;
            if forecast.loses_unanimity() {
                notes.push(format!(
                    "QUESTION: the noise of row {:?} is too wide for {teachers} teachers: even a unanimous vote gives only {forecast}",
                    row.name
                ));
            }
        }
        Ok(notes)
    }
}

pub(crate) fn word(choice: &impl Serialize) -> String {
    serde_json::to_value(choice).ok().and_then(|word| word.as_str().map(str::to_owned)).unwrap_or_default()
}
