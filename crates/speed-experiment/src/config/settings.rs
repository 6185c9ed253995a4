//! A config in the words of its report.

use serde::Serialize;
use speed_core::NoisePlacement;
use speed_mechanism::{Mechanism, MechanismKind};

use super::experiment::RawConfig;
use super::row::RawRow;
use crate::report::AggregationKind;

impl RawConfig {
    /// Returns a short description of the choice of the queries.
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

/// Returns the name of a choice in a config.
pub(crate) fn word(choice: &impl Serialize) -> String {
    serde_json::to_value(choice).ok().and_then(|word| word.as_str().map(str::to_owned)).unwrap_or_default()
}
