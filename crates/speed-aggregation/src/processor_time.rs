//! Processor time: the cost of a computation for other users of the machine.

use std::time::{Duration, Instant};

/// Returns the processor time of all threads of this process so far, if the system reports it (not on Windows).
pub fn processor_time() -> Option<Duration> {
    #[cfg(unix)]
    return rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime).try_into().ok();
    #[cfg(not(unix))]
    return None;
}

/// A start, from which processor time is counted; elapsed time if the system has no processor time.
#[derive(Clone, Copy, Debug)]
pub struct Clock(Option<Duration>, Instant);

impl Clock {
    /// Starts now.
    pub fn start() -> Self {
        Self(processor_time(), Instant::now())
    }

    /// Returns the seconds since the start.
    pub fn seconds(&self) -> f64 {
        let spent = self.0.zip(processor_time()).map(|(start, end)| end.saturating_sub(start));
        spent.unwrap_or_else(|| self.1.elapsed()).as_secs_f64()
    }
}
