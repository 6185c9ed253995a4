//! Processor time: what work costs whoever else uses the machine.
//!
//! Our own: a few lines that read one file, without `unsafe`, in place of a dependency.

use std::time::Duration;

/// Returns the time that all threads of this process have spent on processors so far, to the hundredth of a second, where
/// the system tells it (Linux).
#[must_use]
pub fn processor_time() -> Option<Duration> {
    // Fields 14 and 15 of /proc/self/stat, user and system time, in hundredths of a second on every architecture. The second
    // field is the program's name in parentheses and may hold anything.
    let text = std::fs::read_to_string("/proc/self/stat").ok()?;
    let mut fields = text.rsplit_once(')')?.1.split_whitespace().skip(11);
    let ticks = fields.next()?.parse::<u64>().ok()? + fields.next()?.parse::<u64>().ok()?;
    Some(Duration::from_millis(10 * ticks))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[cfg(target_os = "linux")]
    fn work_shows_in_the_processor_time() {
        let started = std::time::Instant::now();
        let before = processor_time().expect("Linux tells it");
        let mut x = 1u64;
        while started.elapsed().as_secs_f64() < 0.3 {
            x = std::hint::black_box(x.wrapping_mul(3));
        }
        let spent = processor_time().expect("Linux tells it") - before;
        // Other tests of this process run beside it: more is possible, none is not.
        assert!(spent > Duration::from_millis(20), "{spent:?}");
    }
}
