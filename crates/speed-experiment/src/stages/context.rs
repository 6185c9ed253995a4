//! The context of all stages of a run.

use std::num::NonZeroUsize;
use std::sync::OnceLock;
use std::time::Duration;

use speed_core::random::Streams;

use super::images::Images;
use super::truth::Truth;
use crate::config::Config;
use crate::device::Device;
use crate::progress::Progress;
use crate::store::RunStore;

/// The context of all stages of a run.
pub(crate) struct Context<'a> {
    pub(crate) config: &'a Config,
    pub(crate) store: &'a RunStore,
    /// The images as they were read: pictures, which an encoder may turn into vectors.
    pub(crate) pictures: Option<&'a Images>,
    /// The vectors of the pictures, after the encoder's stage.
    pub(crate) vectors: OnceLock<Images>,
    /// The pool's true labels, if known.
    pub(crate) truth: Option<&'a Truth<'a>>,
    pub(crate) streams: Streams,
    pub(crate) threads: NonZeroUsize,
    pub(crate) device: &'a Device,
    /// This machine's kind, which determines the bits of trainings.
    pub(crate) arithmetic: &'a str,
    /// Whether work of another kind of machine may be resumed.
    pub(crate) mix_machines: bool,
    /// The maximum time that a shard waits for an earlier stage.
    pub(crate) latency_wait: Duration,
    pub(crate) progress: &'a dyn Progress,
}

impl<'a> Context<'a> {
    /// Returns the pictures, if the run has images. They are for people and for the encoder; stages learn from [`Self::images`].
    pub(crate) fn pictures(&self) -> Option<&'a Images> {
        self.pictures
    }

    /// Returns the images from which stages learn, if the run has images: the encoder's vectors, or else the pictures.
    ///
    /// # Panics
    /// If the stage of the encoder is not complete, which is an error in the order of the stages.
    pub(crate) fn images(&self) -> Option<&Images> {
        let pictures = self.pictures?;
        match pictures.encoder {
            None => Some(pictures),
            Some(_) => Some(self.vectors.get().expect("vectors before their stage")),
        }
    }

    /// Keeps the vectors for later stages.
    pub(super) fn keep_vectors(&self, vectors: Images) {
        // A second completion in the same run has the same vectors.
        let _ = self.vectors.set(vectors);
    }

    /// Returns a figure of teachers, votes or students for a message; nothing if noise protects the answers, because such figures are as
    /// secret as the votes.
    pub(crate) fn unless_secret(&self, figure: String) -> String {
        if self.config.protects_answers() { String::new() } else { figure }
    }
}
