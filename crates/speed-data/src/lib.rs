//! Datasets of SPEED: labelled images, their sources, and their distribution to teachers and student.
//!
//! Its three main uses:
//! - read a published dataset, whose files are checked ([`load`]) and can be downloaded ([`fetch`]), or a user's own
//!   images ([`pictures::load`], [`arrays::load`]);
//! - draw handwritten-looking digits from a seed, for runs that need no download ([`digits::generate`]);
//! - distribute the training images to the teachers, each image to exactly one teacher ([`partition::blocks`]).
//!
//! A [`Dataset`] is a training and a test [`Split`]; a [`Split`] holds labels, and images of one [`ImageShape`] as
//! bytes. All file formats are read from untrusted bytes ([`idx`], `mat`, [`pictures`]).
//!
//! Only the sources themselves assume a number of channels, a size of images or a number of classes.
//!
//! ```
//! use speed_data::{digits::{self, DigitsConfig}, partition};
//! use speed_core::random::Streams;
//!
//! let dataset = digits::generate(DigitsConfig { train: 100, test: 20 }, &Streams::new(1));
//! for block in partition::blocks(dataset.train.len(), 5)? {
//!     let own_images = dataset.train.slice(block);
//!     assert_eq!(own_images.len(), 20);
//! }
//! # Ok::<(), speed_data::DataError>(())
//! ```

pub mod arrays;
mod catalog;
mod check;
mod cifar;
mod dataset;
pub mod digits;
mod error;
mod fetch;
mod files;
pub mod idx;
mod images;
mod mat;
pub mod mnist;
pub mod partition;
pub mod pictures;
mod places;
mod random;
mod shape;
mod split;
pub mod street;
#[cfg(test)]
mod toy;
mod verify;

pub use catalog::Checksum;
pub use check::{CheckReport, FileReport, GoodFile, check};
pub use dataset::Dataset;
pub use error::DataError;
pub use fetch::{FetchEvent, FetchProgress, FetchReport, fetch};
pub use files::{Facts, class_names, load, load_svhn_like};
pub use images::Images;
pub use places::{folder_of_environment, locate};
pub use shape::ImageShape;
pub use split::Split;

/// The README's examples, compiled and run with the tests.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
