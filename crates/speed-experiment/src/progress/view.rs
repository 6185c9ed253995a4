//! The state of a run, derived from its progress.

use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::{Event, Part};
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
    pub parts: Vec<Part>,
}

impl RunView {
    /// Records an event.
    pub fn apply(&mut self, event: Event<'_>) {
        match (event, &mut self.work) {
            (Event::Planned(stages), _) => {
                let waiting = |name: &String| StageView { name: name.clone(), state: StageStatus::Waiting };
                *self = Self { stages: stages.iter().map(waiting).collect(), work: None };
            }
            (Event::Started(stage), _) => {
                if let Some(stage) = self.stage_of(stage) {
                    stage.state = StageStatus::Running;
                }
            }
            // A stage that was planned as part of a group leaves the group's entry unchanged.
            (Event::Finished(stage, found), _) => {
                if let Some(planned) = self.stage_of(stage).filter(|planned| planned.name == stage) {
                    planned.state = if found { StageStatus::DoneAlready } else { StageStatus::Done };
                }
            }
            (Event::Begin { work, unit, units, done }, _) => {
                let (name, unit, note) = (work.to_owned(), unit.to_owned(), String::new());
                let (total, parts) = (units, Vec::new());
                self.work = Some(CurrentWork { name, unit, done, total, found: done, seconds: 0.0, note, parts });
            }
            (Event::Part(part), Some(CurrentWork { parts, .. })) => {
                parts.retain(|other| other.number != part.number);
                parts.extend(Some(part.clone()).filter(|part| part.done < part.total));
                parts.sort_by_key(|part| part.number);
            }
            (Event::Found(units), Some(work)) => {
                work.found += units;
                work.done += units;
            }
            (Event::Advance(units, note), Some(work)) => {
                work.done += units;
                note.clone_into(&mut work.note);
            }
            (Event::End(_), _) => self.work = None,
            _ => {}
        }
    }

    /// Returns the running stage.
    pub fn running(&self) -> Option<&StageView> {
        self.stages.iter().rev().find(|stage| stage.state == StageStatus::Running)
    }

    fn stage_of(&mut self, name: &str) -> Option<&mut StageView> {
        self.stages.iter_mut().find(|planned| is_called(name, &planned.name))
    }
}

impl CurrentWork {
    /// Returns the units of this attempt per second; `None` before the first unit.
    pub fn rate(&self) -> Option<f64> {
        let done = self.done.saturating_sub(self.found);
        #[expect(clippy::cast_precision_loss, reason = "counts of units are small")]
        let rate = done as f64 / self.seconds;
        (done > 0 && self.seconds > 0.0).then_some(rate)
    }

    /// Returns the units, the rate and the remaining time as text.
    pub fn counts(&self) -> String {
        let counts = format!("{} of {} {}", self.done, self.total, self.unit);
        match (self.rate(), self.left()) {
            (Some(rate), Some(left)) => format!("{counts}, {}, {} left", rate_text(rate), left_text(left)),
            _ => counts,
        }
    }

    /// Returns the remaining time at the current rate.
    pub fn left(&self) -> Option<Duration> {
        #[expect(clippy::cast_precision_loss, reason = "counts of units are small")]
        let rest = self.total.saturating_sub(self.done) as f64;
        self.rate().and_then(|rate| Duration::try_from_secs_f64(rest / rate).ok())
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

fn rate_text(rate: f64) -> String {
    match rate {
        10.0.. => format!("{rate:.0}/s"),
        0.5.. => format!("{rate:.1}/s"),
        _ => format!("{:.1}/min", 60.0 * rate),
    }
}

fn left_text(left: Duration) -> String {
    match left.as_secs() {
        seconds @ 0..120 => format!("{seconds} s"),
        seconds @ 120..7200 => format!("{} min", seconds.div_ceil(60)),
        seconds => format!("{:.1} h", Duration::from_secs(seconds).as_secs_f64() / 3600.0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn student(number: usize, done: u64) -> Part {
        Part { name: "student".into(), number, of: 2, unit: "epoch".into(), done, total: 60 }
    }

    #[test]
    fn students_are_listed_and_earlier_work_does_not_count_for_the_rate() {
        let mut view = RunView::default();
        view.apply(Event::Planned(&["teachers".into(), "student".into()]));
        view.apply(Event::Finished("teachers", true));
        view.apply(Event::Started("student"));
        view.apply(Event::Begin { work: "train 2 students", unit: "epochs", units: 120, done: 0 });
        view.apply(Event::Started("student-0a-1"));
        view.apply(Event::Found(20));
        let work = view.work.as_ref().expect("work");
        assert_eq!((work.rate(), work.to_string().as_str()), (None, "train 2 students: 20 of 120 epochs"));
        view.apply(Event::Part(&student(2, 30)));
        view.apply(Event::Part(&student(1, 40)));
        view.apply(Event::Advance(50, "accuracy 90 %"));
        view.work.as_mut().expect("work").seconds = 10.0;
        let shown = view.work.as_ref().expect("work").to_string();
        let parts = "student 1 of 2, epoch 40 of 60; student 2 of 2, epoch 30 of 60";
        assert_eq!(shown, format!("train 2 students: {parts}; 70 of 120 epochs, 5.0/s, 10 s left"));
        view.apply(Event::Part(&student(1, 60)));
        assert_eq!(view.work.as_ref().expect("work").parts.len(), 1);
        view.apply(Event::Finished("student-0a-1", false));
        assert_eq!(view.running().map(|stage| stage.name.as_str()), Some("student"));
        view.apply(Event::Finished("student", false));
        let states: Vec<StageStatus> = view.stages.iter().map(|stage| stage.state).collect();
        assert_eq!(states, [StageStatus::DoneAlready, StageStatus::Done]);
    }

    #[test]
    fn times_are_in_the_unit_that_suits_them() {
        let shown = |seconds| left_text(Duration::from_secs(seconds));
        assert_eq!([0, 119, 121, 7200].map(shown), ["0 s", "119 s", "3 min", "2.0 h"]);
        assert_eq!([25.0, 1.26, 0.05].map(rate_text), ["25/s", "1.3/s", "3.0/min"]);
    }
}
