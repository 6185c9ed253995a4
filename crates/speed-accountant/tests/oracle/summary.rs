//! The summary of a run of cases.

use std::collections::BTreeMap;
use std::time::Instant;

use crate::oracle::case::Kind;
use crate::oracle::check::Report;
use crate::oracle::excess::Tally;

/// At most this many failures are shown; more are only counted.
const MAX_SHOWN: usize = 20;

/// Claims that take more than this number of seconds are counted.
const SLOW: f64 = 2.0;
/// Number of the slowest claims that are shown.
const MAX_SLOW: usize = 4;

/// Sums over cases.
pub(crate) struct Summary {
    start: Instant,
    cases: BTreeMap<Kind, usize>,
    /// Seconds taken by truths, and by claims.
    spent: BTreeMap<Kind, (f64, f64)>,
    refused: BTreeMap<(Kind, String), usize>,
    failed: BTreeMap<Kind, usize>,
    failures: Vec<String>,
    /// Relative excess of claims that are expected to be tight.
    excess: Vec<f64>,
    tally: Tally,
    smallest_margin: Option<(f64, String)>,
    slow: usize,
    slowest: Vec<(f64, String)>,
    next_progress: f64,
    /// The running cases: their names and start times.
    running: BTreeMap<String, Instant>,
}

impl Summary {
    pub(crate) fn new() -> Self {
        Self {
            start: Instant::now(),
            cases: BTreeMap::new(),
            spent: BTreeMap::new(),
            refused: BTreeMap::new(),
            failed: BTreeMap::new(),
            failures: Vec::new(),
            excess: Vec::new(),
            tally: Tally::default(),
            smallest_margin: None,
            slow: 0,
            slowest: Vec::new(),
            next_progress: 60.0,
            running: BTreeMap::new(),
        }
    }

    pub(crate) fn begin(&mut self, what: String) {
        self.running.insert(what, Instant::now());
    }

    pub(crate) fn end(&mut self, what: &str) {
        self.running.remove(what);
    }

    pub(crate) fn add(&mut self, kind: Kind, what: String, report: Report) {
        *self.cases.entry(kind).or_default() += 1;
        let spent = self.spent.entry(kind).or_default();
        *spent = (spent.0 + report.truth_seconds, spent.1 + report.seconds);
        for error in report.refused {
            *self.refused.entry((kind, error)).or_default() += 1;
        }
        *self.failed.entry(kind).or_default() += report.failures.len();
        for failure in report.failures {
            if self.failures.len() < MAX_SHOWN {
                say(&format!("FAILED: {failure}"));
                self.failures.push(failure);
            }
        }
        if let Some(excess) = report.excess {
            self.excess.extend(excess.share().filter(|_| excess.is_tight));
            self.tally.add(kind, excess, &what);
        }
        let margin = report.margins.into_iter().min_by(f64::total_cmp);
        let smaller = margin.filter(|margin| self.smallest_margin.as_ref().is_none_or(|(least, _)| margin < least));
        if let Some(margin) = smaller {
            self.smallest_margin = Some((margin, what.clone()));
        }
        self.slow += usize::from(report.seconds > SLOW);
        if self.slowest.len() < MAX_SLOW || self.slowest.iter().any(|(seconds, _)| report.seconds > *seconds) {
            self.slowest.push((report.seconds, what));
            self.slowest.sort_by(|a, b| b.0.total_cmp(&a.0));
            self.slowest.truncate(MAX_SLOW);
        }
    }

    /// Returns the number of cases.
    pub(crate) fn cases(&self) -> usize {
        self.cases.values().sum()
    }

    pub(crate) fn failures(&self) -> usize {
        self.failed.values().sum()
    }

    pub(crate) fn seconds(&self) -> f64 {
        self.start.elapsed().as_secs_f64()
    }

    /// Prints progress every minute, and names the cases that take long.
    pub(crate) fn progress(&mut self) {
        let seconds = self.seconds();
        if seconds >= self.next_progress {
            self.next_progress += 60.0;
            let cases: usize = self.cases.values().sum();
            say(&format!("{seconds:.0} s: {cases} cases, {} failures", self.failures()));
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
        for (kind, cases) in &self.cases {
            let failed = self.failed.get(kind).copied().unwrap_or_default();
            let (truth, claims) = self.spent.get(kind).copied().unwrap_or_default();
            text += &format!(
                "{kind:?}: {cases} cases, {failed} failures; truths took {truth:.1} s, claims {claims:.1} s\n"
            );
        }
        for ((kind, error), times) in &self.refused {
            text += &format!("{kind:?} refused with {error}: {times}\n");
        }
        let (median, number) = self.median_excess();
        text += &format!(
            "two classes, dropout, exactly, tight formulas: {number} claims exceed the truth by a median of {:.4} %\n",
            100.0 * median
        );
        text += &self.tally.text();
        if let Some((margin, what)) = &self.smallest_margin {
            text += &format!("smallest margin (claim - truth) / truth: {margin:.3e}, {what}\n");
        }
        text += &format!("claims that took more than {SLOW} s: {}; the slowest:", self.slow);
        for (seconds, what) in &self.slowest {
            text += &format!("\n  {seconds:.2} s, {what}");
        }
        say(&text);
    }
}

#[expect(clippy::print_stderr, reason = "an hour of random cases says how far it is")]
pub(crate) fn say(line: &str) {
    eprintln!("{line}");
}
