//! Processor time: the cost of a computation for other users of the machine.

use std::time::Duration;

/// Returns the processor time of all threads of this process so far, if the system reports it (not on Windows).
#[must_use]
pub fn processor_time() -> Option<Duration> {
    #[cfg(unix)]
    return rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime).try_into().ok();
    #[cfg(not(unix))]
    return None;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[cfg(unix)]
    fn processor_time_grows_with_work() {
        let started = std::time::Instant::now();
        let before = processor_time().expect("the system tells it");
        let mut x = 1u64;
        // A busy machine may give a process little of its time.
        while processor_time().expect("the system tells it") - before < Duration::from_millis(20) {
            x = std::hint::black_box(x.wrapping_mul(3));
            assert!(started.elapsed() < Duration::from_secs(60), "no processor time in a minute of work");
        }
    }
}
