//! The context of all stages of a run.

use std::num::NonZeroUsize;
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
    pub(crate) images: Option<&'a Images>,
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

impl Context<'_> {
    /// Returns a figure of teachers, votes or students for a message; nothing if noise protects the answers, because such figures are as
    /// secret as the votes.
    pub(crate) fn unless_secret(&self, figure: String) -> String {
        if self.config.protects_answers() { String::new() } else { figure }
    }
}
