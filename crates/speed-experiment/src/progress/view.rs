//! The state of a run, derived from its progress.

use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::Part;
use crate::store::is_called;

/// The state of a run: its stages, and the current work.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RunView {
    /// The stages in order.
    pub stages: Vec<StageView>,
    /// The current work, if it has counted units.
    pub work: Option<CurrentWork>,
}

/// A stage of a run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StageView {
    /// Its name.
    pub name: String,
    /// Its state.
    pub state: StageStatus,
}

/// The state of a stage.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum StageStatus {
    /// Not begun.
    Waiting,
    /// Being looked up, prepared or processed.
    Running,
    /// Done in this run.
    Done,
    /// Done by an earlier run.
    DoneAlready,
}

impl fmt::Display for StageStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Waiting => "waiting",
            Self::Running => "running",
            Self::Done => "done",
            Self::DoneAlready => "done already",
        })
    }
}

/// Work that consists of equal units.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CurrentWork {
    /// The name of the work.
    pub name: String,
    /// The name of its units.
    pub unit: String,
    /// Finished units.
    pub done: u64,
    /// Total units.
    pub total: u64,
    /// The units of `done` from earlier attempts.
    pub found: u64,
    /// Seconds since this attempt began; the display updates it.
    pub seconds: f64,
    /// The note on the last unit.
    pub note: String,
    /// The unfinished concurrent parts.
    pub parts: Vec<PartView>,
}

/// One of several concurrent parts of the work.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PartView {
    /// Its kind, such as "student".
    pub name: String,
    /// Its number, from 1.
    pub number: usize,
    /// The number of parts.
    pub of: usize,
    /// The name of its units, such as "epoch".
    pub unit: String,
    /// Finished units.
    pub done: u64,
    /// Total units.
    pub total: u64,
}

impl RunView {
    /// Records the names of all stages.
    pub fn planned(&mut self, stages: &[String]) {
        let waiting = |name: &String| StageView { name: name.clone(), state: StageStatus::Waiting };
        self.stages = stages.iter().map(waiting).collect();
        self.work = None;
    }

    /// Records that a stage starts.
    pub fn started(&mut self, stage: &str) {
        if let Some(stage) = self.stage_of(stage) {
            stage.state = StageStatus::Running;
        }
    }

    /// Records that a stage is finished. A stage that was planned as part of a group leaves the group's entry
    /// unchanged.
    pub fn finished(&mut self, stage: &str, found: bool) {
        if let Some(planned) = self.stage_of(stage).filter(|planned| planned.name == stage) {
            planned.state = if found { StageStatus::DoneAlready } else { StageStatus::Done };
        }
    }

    /// Records that work starts.
    pub fn begin(&mut self, name: &str, unit: &str, total: u64, done: u64) {
        let (name, unit) = (name.to_owned(), unit.to_owned());
        let (note, parts) = (String::new(), Vec::new());
        self.work = Some(CurrentWork { name, unit, done, total, found: done, seconds: 0.0, note, parts });
    }

    /// Records the state of one concurrent part.
    pub fn part(&mut self, part: &Part<'_>) {
        let Some(work) = &mut self.work else { return };
        work.parts.retain(|other| other.number != part.number);
        if part.done < part.total {
            work.parts.push(PartView {
                name: part.name.to_owned(),
                number: part.number,
                of: part.of,
                unit: part.unit.to_owned(),
                done: part.done,
                total: part.total,
            });
            work.parts.sort_by_key(|part| part.number);
        }
    }

    /// Records units of earlier attempts.
    pub fn found(&mut self, units: u64) {
        if let Some(work) = &mut self.work {
            work.found += units;
            work.done += units;
        }
    }

    /// Records finished units.
    pub fn advance(&mut self, units: u64, note: &str) {
        if let Some(work) = &mut self.work {
            work.done += units;
            note.clone_into(&mut work.note);
        }
    }

    /// Records that the work ends.
    pub fn end(&mut self) {
        self.work = None;
    }

    /// Returns the running stage.
    #[must_use]
    pub fn running(&self) -> Option<&StageView> {
        self.stages.iter().rev().find(|stage| stage.state == StageStatus::Running)
    }

    fn stage_of(&mut self, name: &str) -> Option<&mut StageView> {
        self.stages.iter_mut().find(|planned| is_called(name, &planned.name))
    }
}

impl CurrentWork {
    /// Returns the units of this attempt per second; `None` before the first unit.
    #[must_use]
    pub fn rate(&self) -> Option<f64> {
        let done = self.done.saturating_sub(self.found);
        #[expect(clippy::cast_precision_loss, reason = "counts of units are small")]
        let rate = done as f64 / self.seconds;
        (done > 0 && self.seconds > 0.0).then_some(rate)
    }

    /// Returns the units, the rate and the remaining time as text.
    #[must_use]
    pub fn counts(&self) -> String {
        let counts = format!("{} of {} {}", self.done, self.total, self.unit);
        match (self.rate(), self.left()) {
            (Some(rate), Some(left)) => format!("{counts}, {}, {} left", Rate(rate), Left(left)),
            _ => counts,
        }
    }

    /// Returns the remaining time at the current rate.
    #[must_use]
    pub fn left(&self) -> Option<Duration> {
        #[expect(clippy::cast_precision_loss, reason = "counts of units are small")]
        let rest = self.total.saturating_sub(self.done) as f64;
        self.rate().and_then(|rate| Duration::try_from_secs_f64(rest / rate).ok())
    }
}

impl fmt::Display for PartView {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { name, number, of, unit, done, total } = self;
        write!(f, "{name} {number} of {of}, {unit} {done} of {total}")
    }
}

impl fmt::Display for CurrentWork {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: ", self.name)?;
        for part in &self.parts {
            write!(f, "{part}; ")?;
        }
        f.write_str(&self.counts())
    }
}

/// A rate, per second or minute.
struct Rate(f64);

impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            10.0.. => write!(f, "{:.0}/s", self.0),
            0.5.. => write!(f, "{:.1}/s", self.0),
            _ => write!(f, "{:.1}/min", 60.0 * self.0),
        }
    }
}

/// The remaining time.
struct Left(Duration);

impl fmt::Display for Left {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0.as_secs() {
            seconds @ 0..120 => write!(f, "{seconds} s"),
            seconds @ 120..7200 => write!(f, "{} min", seconds.div_ceil(60)),
            seconds => write!(f, "{:.1} h", Duration::from_secs(seconds).as_secs_f64() / 3600.0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn student(number: usize, done: u64) -> Part<'static> {
        Part { name: "student", number, of: 2, unit: "epoch", done, total: 60 }
    }

    #[test]
    fn students_are_listed_and_earlier_work_does_not_count_for_the_rate() {
        let mut view = RunView::default();
        view.planned(&["teachers".into(), "student".into()]);
        view.finished("teachers", true);
        view.started("student");
        view.begin("train 2 students", "epochs", 120, 0);
        view.started("student-0a-1");
        view.found(20);
        let work = view.work.as_ref().expect("work");
        assert_eq!((work.rate(), work.to_string().as_str()), (None, "train 2 students: 20 of 120 epochs"));
        view.part(&student(2, 30));
        view.part(&student(1, 40));
        view.advance(50, "accuracy 90 %");
        view.work.as_mut().expect("work").seconds = 10.0;
        let shown = view.work.as_ref().expect("work").to_string();
        let parts = "student 1 of 2, epoch 40 of 60; student 2 of 2, epoch 30 of 60";
        assert_eq!(shown, format!("train 2 students: {parts}; 70 of 120 epochs, 5.0/s, 10 s left"));
        view.part(&student(1, 60));
        assert_eq!(view.work.as_ref().expect("work").parts.len(), 1);
        view.finished("student-0a-1", false);
        assert_eq!(view.running().map(|stage| stage.name.as_str()), Some("student"));
        view.finished("student", false);
        let states: Vec<StageStatus> = view.stages.iter().map(|stage| stage.state).collect();
        assert_eq!(states, [StageStatus::DoneAlready, StageStatus::Done]);
    }

    #[test]
    fn times_are_in_the_unit_that_suits_them() {
        let shown = |seconds| Left(Duration::from_secs(seconds)).to_string();
        assert_eq!([0, 119, 121, 7200].map(shown), ["0 s", "119 s", "3 min", "2.0 h"]);
        assert_eq!([25.0, 1.26, 0.05].map(|rate| Rate(rate).to_string()), ["25/s", "1.3/s", "3.0/min"]);
    }
}
