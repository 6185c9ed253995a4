//! Teacher CNNs of SPEED: training of the private ensemble, and its votes.
//!
//! Its three main uses:
//! - train one teacher on every partition of a dataset, in parallel and resumable ([`train_ensemble`]);
//! - let the teachers vote on a public pool ([`ensemble_votes`]);
//! - add a network under a name ([`Architecture::register`]).
//!
//! A [`TeacherConfig`] specifies the network and its training; [`train_ensemble`] trains one [`Teacher`] on every
//! partition, each from its own random stream; [`ensemble_votes`] lets them label the student's pool.
//! [`Votes`](speed_core::Votes) is the resulting n x Q matrix, the input of all later stages.

mod architectures;
mod config;
mod ensemble;
mod error;
mod network;
mod teacher;
mod train;
mod unknown;

pub use burn::tensor::Device;

pub use config::{Architecture, ClassWeights, OptimizerKind, Schedule, TeacherConfig};
pub use ensemble::{EnsembleError, EnsembleTraining, ensemble_votes, train_ensemble, train_member};
pub use error::TeacherError;
pub use network::TeacherNetwork;
pub use speed_nn::training::{Classifier, InvalidField, RegistrationError};
pub use teacher::Teacher;
pub use train::{TeacherMetrics, TrainedTeacher, train_teacher};
pub use unknown::{OwnImages, Unknown, lacking_classes};
