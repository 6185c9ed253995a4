//! The number of threads of a command.

use std::num::NonZeroUsize;

/// Returns the requested number of threads, or all processors.
pub(super) fn threads(asked: Option<impl Into<u16>>) -> NonZeroUsize {
    let all = || std::thread::available_parallelism().unwrap_or(NonZeroUsize::MIN);
    asked.and_then(|asked| NonZeroUsize::new(asked.into().into())).unwrap_or_else(all)
}
