//! The summary of a run of cases.

use std::collections::BTreeMap;
use std::time::Instant;

use crate::oracle::case::Kind;
use crate::oracle::check::Report;

/// At most this many failures are shown; more are only counted.
const MAX_SHOWN: usize = 20;

/// Sums over cases.
pub(crate) struct Summary {
    start: Instant,
    /// Numbers of cases and of failures.
    counts: BTreeMap<Kind, (usize, usize)>,
    refused: BTreeMap<(Kind, String), usize>,
    /// Relative excess of claims that are expected to be tight.
    excess: Vec<f64>,
    next_progress: f64,
    /// The running cases: their names and start times.
    running: BTreeMap<String, Instant>,
}

impl Summary {
    pub(crate) fn new() -> Self {
        Self {
            start: Instant::now(),
            counts: BTreeMap::new(),
            refused: BTreeMap::new(),
            excess: Vec::new(),
            next_progress: 60.0,
            running: BTreeMap::new(),
        }
    }

    pub(crate) fn begin(&mut self, name: String) {
        self.running.insert(name, Instant::now());
    }

    pub(crate) fn end(&mut self, name: &str) {
        self.running.remove(name);
    }

    pub(crate) fn add(&mut self, kind: Kind, report: Report) {
        for error in report.refused {
            *self.refused.entry((kind, error)).or_default() += 1;
        }
        let shown = MAX_SHOWN.saturating_sub(self.failures());
        report.failures.iter().take(shown).for_each(|failure| say(&format!("FAILED: {failure}")));
        let counts = self.counts.entry(kind).or_default();
        *counts = (counts.0 + 1, counts.1 + report.failures.len());
        self.excess.extend(report.excess);
    }

    /// Returns the number of cases.
    pub(crate) fn cases(&self) -> usize {
        self.counts.values().map(|counts| counts.0).sum()
    }

    pub(crate) fn failures(&self) -> usize {
        self.counts.values().map(|counts| counts.1).sum()
    }

    pub(crate) fn seconds(&self) -> f64 {
        self.start.elapsed().as_secs_f64()
    }

    /// Prints progress every minute, and names the cases that take long.
    pub(crate) fn progress(&mut self) {
        let seconds = self.seconds();
        if seconds >= self.next_progress {
            self.next_progress += 60.0;
            say(&format!("{seconds:.0} s: {} cases, {} failures", self.cases(), self.failures()));
            let long = self.running.iter().map(|(what, since)| (what, since.elapsed().as_secs_f64()));
            long.filter(|(_, seconds)| *seconds > 30.0)
                .for_each(|(what, seconds)| say(&format!("  {seconds:.0} s in {what}")));
        }
    }

    /// Returns the median excess of claims that are expected to be tight, and the number of these claims.
    pub(crate) fn median_excess(&mut self) -> (f64, usize) {
        self.excess.sort_by(f64::total_cmp);
        (self.excess.get(self.excess.len() / 2).copied().unwrap_or(0.0), self.excess.len())
    }

    pub(crate) fn print(&mut self) {
        let mut text = format!("-- cases in {:.0} s\n", self.seconds());
        for (kind, (cases, failures)) in &self.counts {
            text += &format!("{kind:?}: {cases} cases, {failures} failures\n");
        }
        for ((kind, error), times) in &self.refused {
            text += &format!("{kind:?} refused with {error}: {times}\n");
        }
        let (median, number) = self.median_excess();
        let median = 100.0 * median;
        say(&format!("{text}two classes, dropout, exactly, tight: {number} claims, median excess {median:.4} %"));
    }
}

#[expect(clippy::print_stderr, reason = "an hour of random cases says how far it is")]
pub(crate) fn say(line: &str) {
    eprintln!("{line}");
}
