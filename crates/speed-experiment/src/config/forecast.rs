//! The forecast of the labels of a config, before any vote.

use speed_accountant::AccountError;
use speed_accountant::forecast::Forecast;
use speed_mechanism::HonestRatio;

use super::experiment::Config;

impl Config {
    /// Returns a question for every row in which even a unanimous vote gives a wrong label more than 5 % of the time.
    ///
    /// # Errors
    /// If the labels cannot be forecast.
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
