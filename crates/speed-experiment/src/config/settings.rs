//! A config in the words of its report.

use serde::Serialize;
use speed_mechanism::{Mechanism, MechanismKind};

use super::experiment::RawConfig;

impl RawConfig {
    /// Returns a short description of the choice of the queries.
    pub(crate) fn selection_in_words(&self) -> String {
        let groups = if self.queries.groups { ", groups of images" } else { "" };
        format!("{}{groups}", word(&self.queries.selection))
    }

    /// Returns a short description of the noise.
    pub(crate) fn noise_in_words(&self) -> String {
        let (noise, teachers) = (&self.noise, self.ensemble.teachers);
        let kind = noise.mechanism;
        let width = match noise.written().distribution(teachers).map(|(_, noise)| noise.mechanism()) {
            // A deviation becomes coins in each row, because a threshold needs an even number.
            Ok(Mechanism::Binomial { coins }) if noise.coins != 0 => {
                format!("coins {} a teacher (deviation {:.1})", coins.of_teacher(teachers), coins.deviation())
            }
            _ => format!("{} {}", kind.parameter(), if kind.is_inverse() { noise.gamma } else { noise.sigma }),
        };
        let kind = if kind == MechanismKind::default() { String::new() } else { format!("{kind}, ") };
        format!("{kind}{width}")
    }
}

/// Returns the name of a choice in a config.
pub(crate) fn word(choice: &impl Serialize) -> String {
    serde_json::to_value(choice).ok().and_then(|word| word.as_str().map(str::to_owned)).unwrap_or_default()
}
