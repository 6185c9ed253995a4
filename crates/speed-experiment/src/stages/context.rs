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

pub(crate) struct Context<'a> {
    pub(crate) config: &'a Config,
    pub(crate) store: &'a RunStore,
    /// The images as they were read, for people and for the encoder; stages learn from [`Context::images`].
    pub(crate) pictures: Option<&'a Images>,
    pub(crate) vectors: OnceLock<Images>,
    pub(crate) truth: Option<&'a Truth<'a>>,
    pub(crate) streams: Streams,
    pub(crate) threads: NonZeroUsize,
    pub(crate) device: &'a Device,
    /// This machine's kind, which determines the bits of trainings.
    pub(crate) arithmetic: &'a str,
    pub(crate) mix_machines: bool,
    pub(crate) latency_wait: Duration,
    pub(crate) progress: &'a dyn Progress,
}

impl Context<'_> {
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
