//! The forecast of the labels of a config, before any vote.

use speed_accountant::AccountError;
use speed_accountant::forecast::{Agreement, AgreementForecast, Forecast};
use speed_mechanism::HonestRatio;

use super::error::ConfigError;
use super::experiment::Config;
use super::target::known_classes;

impl Config {
    /// Checks that the votes have the number of classes that `privacy.target` assumed.
    ///
    /// # Errors
    /// If they have another number.
    pub(crate) fn check_classes(&self, found: usize) -> Result<(), ConfigError> {
        let Some(assumed) = self.assumed_classes() else {
            return Ok(());
        };
        if found == assumed {
            return Ok(());
        }
        let message = format!("privacy.target assumed {assumed}, but there are {found} classes");
        Err(ConfigError::Key { place: self.name.clone(), key: "privacy.classes".into(), message })
    }

    /// Returns the number of classes that a choice for `privacy.target` assumed; `None` without a target.
    fn assumed_classes(&self) -> Option<usize> {
        self.privacy.target?;
        known_classes(&self.data, &(&self.votes).into(), self.privacy.classes).ok()
    }

    /// Returns the forecast of the labels, if `privacy.agreement` is known: it has the noise of
    /// `[noise]`, and with `privacy.target` the reason for the number of queries.
    ///
    /// # Errors
    /// If the labels cannot be forecast.
    pub(crate) fn forecast_notes(&self, classes: usize) -> Result<Vec<String>, AccountError> {
        let Some(agreement) = self.privacy.agreement else { return Ok(Vec::new()) };
        // The labels have the noise of all teachers.
        let event = self.noise.query.event(HonestRatio::ALL)?;
        let (teachers, queries) = (self.ensemble.teachers, self.queries.count);
        let forecast = AgreementForecast::new(&event, (agreement, classes), teachers, queries)?;
        let choice = self.privacy.target.map(|target| self.choice_note(target, agreement, classes, &forecast));
        Ok(choice.into_iter().chain([forecast.to_string()]).collect())
    }

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

    fn choice_note(&self, target: f64, agreement: Agreement, classes: usize, forecast: &AgreementForecast) -> String {
        let rule = if forecast.one_rival.has_enough() {
            "the largest of these numbers with at least 99 % right labels if the other votes are all for one class"
        } else {
            "none of these numbers has 99 % right labels if the other votes are all for one class; this one has the most right labels"
        };
        format!(
            "privacy.target = {target}, privacy.agreement = {}: {} queries with {} coins of each teacher, chosen among 1, 2, 5, 10, 20 \
             and 50 queries for each of {classes} classes, at most the config's queries.count: {rule}",
            agreement.get(),
            self.queries.count,
            self.noise.query.noise.coins_of_teacher(self.ensemble.teachers).unwrap_or_default(),
        )
    }
}
