//! Teacher CNNs of SPEED: training of the private ensemble and its votes.
//!
//! A [`TeacherConfig`] says what to train and how; [`train_ensemble`] trains one [`Teacher`] on every partition, each
//! from its own random stream; [`ensemble_votes`] lets them label the student's pool. [`Votes`] is the n x Q matrix
//! that everything behind it works on, [`VoteCounts`] its histogram per query.

mod average;
mod batch;
mod config;
mod counts;
mod ensemble;
mod error;
mod network;
mod schedule;
mod teacher;
mod train;
pub mod training;
mod votes;

pub use config::{Architecture, InvalidField, OptimizerKind, Schedule, TeacherConfig};
pub use counts::VoteCounts;
pub use ensemble::{EnsembleError, ensemble_votes, train_ensemble};
pub use error::{TeacherError, VotesError};
pub use teacher::Teacher;
pub use train::{TeacherMetrics, TrainedTeacher, train_teacher};
pub use votes::Votes;
