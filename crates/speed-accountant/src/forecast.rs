//! Forecasts of the labels before anything is spent: how many answers of the noisy argmax are right, and how many teachers
//! or queries that allows. They use a model of the votes or the votes of a public pilot, never the votes of the teachers.
//!
//! A forecast is not a privacy claim. It depends on the noise that is added, on the vote counts and on the rule for ties, and
//! on nothing else: several teachers of one party are forecast like teachers of several parties, because their votes and
//! their noise add up to the same counts.
//!
//! ```
//! use speed_accountant::forecast::{Agreement, Forecast, VotesModel};
//! use speed_accountant::{HonestRatio, Mechanism, NoiseCoins, PrivacyEvent};
//!
//! // 250 teachers toss 4 coins each; 90 % of them are expected to vote for the right one of ten classes.
//! let event = PrivacyEvent::new(Mechanism::binomial(NoiseCoins::new(1000)?), HonestRatio::ALL);
//! let model = VotesModel::one_rival(Agreement::new(0.9)?, 10)?;
//! let forecast = Forecast::new(&event, &model, 250, 100)?;
//! assert!(forecast.right_share > 0.999 && forecast.high == 100);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod answer;
mod labels;
mod right_labels;
mod teachers;
mod votes;

pub use answer::AnswerForecast;
pub use labels::{AgreementForecast, Forecast};
pub use teachers::least_teachers;
pub use votes::{Agreement, MAX_TEACHERS, QueryVotes, VotesModel};
