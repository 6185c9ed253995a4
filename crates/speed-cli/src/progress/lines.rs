//! Progress in lines: text for people who read a log, or one object a line for programs.

use std::io::Write;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use clap::ValueEnum;
use serde_json::{Value, json};
use speed_core::{ExitCode, printable};
use speed_experiment::{Event, Progress, RunView};

use super::ticker::Ticker;
use crate::output::versioned_line;

/// The interval between two lines on long work.
pub(crate) const EVERY: Duration = Duration::from_secs(10);
/// The interval between two objects on the same work.
const OBJECT_EVERY: Duration = Duration::from_secs(1);

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum LogFormat {
    /// For people.
    Text,
    /// One object a line.
    Json,
}

pub(crate) struct Lines {
    log: Arc<Mutex<LineLog>>,
    _ticker: Ticker,
}

struct LineLog {
    form: LogFormat,
    out: Box<dyn Write + Send>,
    began: Instant,
    view: RunView,
    /// When the current stage and its work began.
    stage_began: Instant,
    work_began: Instant,
    written_at: Instant,
}

impl Lines {
    /// Creates a reporter that reports the duration of work at intervals of `every`.
    pub(super) fn new(form: LogFormat, every: Duration, out: Box<dyn Write + Send>) -> Self {
        let now = Instant::now();
        let view = RunView::default();
        let log = LineLog { form, out, began: now, view, stage_began: now, work_began: now, written_at: now };
        let log = Arc::new(Mutex::new(log));
        let own = Arc::clone(&log);
        let ticker = Ticker::new(every / 10, move || {
            let mut log = lock(&own);
            if log.written_at.elapsed() >= every {
                log.report_work();
            }
        });
        Self { log, _ticker: ticker }
    }

    pub(super) fn run_finished(&self, folder: &Path) {
        lock(&self.log).object("finished", json!({ "folder": folder }));
    }

    /// Reports a failure to programs, and returns whether the lines are for programs.
    pub(super) fn run_failed(&self, code: ExitCode, message: &str) -> bool {
        let mut log = lock(&self.log);
        log.object("error", json!({ "code": code.code(), "kind": code.kind(), "message": message }));
        log.form == LogFormat::Json
    }
}

fn lock(log: &Mutex<LineLog>) -> MutexGuard<'_, LineLog> {
    // The state is valid even if another thread panicked.
    log.lock().unwrap_or_else(PoisonError::into_inner)
}

impl LineLog {
    fn line(&mut self, text: &str) {
        // A failure cannot be reported anywhere.
        let _ = writeln!(self.out, "{text}");
        self.written_at = Instant::now();
    }

    fn text(&mut self, text: &str) {
        if self.form == LogFormat::Text {
            self.line(&printable(text));
        }
    }

    fn note(&mut self, line: &str) {
        self.text(line);
        self.object("note", json!({ "message": line }));
    }

    fn object(&mut self, event: &str, mut fields: Value) {
        if self.form == LogFormat::Json {
            let seconds = (self.began.elapsed().as_secs_f64() * 1e3).round() / 1e3;
            fields["seconds"] = json!(seconds);
            fields["event"] = json!(event);
            let line = versioned_line(&fields);
            self.line(&line);
        }
    }

    /// Reports that the work continues.
    fn report_work(&mut self) {
        let seconds = self.work_began.elapsed().as_secs_f64();
        if let Some(work) = &mut self.view.work {
            work.seconds = seconds;
        }
        match self.form {
            LogFormat::Text => match (&self.view.work, self.view.running()) {
                (Some(work), _) => self.text(&work.to_string()),
                (None, Some(stage)) => {
                    let seconds = self.stage_began.elapsed().as_secs();
                    self.text(&format!("{}: running, {seconds} s", stage.name));
                }
                (None, None) => {}
            },
            LogFormat::Json => {
                let mut fields = json!(self.view.work);
                if let Some(work) = &self.view.work {
                    fields["rate"] = json!(work.rate());
                    fields["seconds_left"] = json!(work.left().map(|left| left.as_secs_f64()));
                    fields["work"] = fields["name"].take();
                    fields["work_seconds"] = json!(seconds);
                    if let Some(fields) = fields.as_object_mut() {
                        fields.remove("name");
                    }
                } else {
                    fields = json!({});
                }
                fields["stage"] = json!(self.view.running().map(|stage| &stage.name));
                self.object("progress", fields);
            }
        }
    }

    fn report_if_due(&mut self) {
        if self.form == LogFormat::Json && self.written_at.elapsed() >= OBJECT_EVERY {
            self.report_work();
        }
    }
}

impl Progress for Lines {
    fn on(&self, event: Event<'_>) {
        let mut log = lock(&self.log);
        log.view.apply(event);
        match event {
            Event::Planned(stages) => log.object("planned", json!({ "stages": stages })),
            Event::Started(stage) => {
                log.stage_began = Instant::now();
                log.object("stage-started", json!({ "stage": stage }));
            }
            Event::Finished(stage, found) => {
                if found {
                    log.text(&format!("{stage}: done already"));
                }
                log.object("stage-done", json!({ "stage": stage, "done_already": found }));
            }
            Event::Begin { work, unit, units, done } => {
                log.work_began = Instant::now();
                let there = if done > 0 { format!(", {done} done") } else { String::new() };
                log.text(&format!("{work}: {units} {unit}{there}"));
                if log.form == LogFormat::Json {
                    log.report_work();
                }
            }
            Event::Part(_) | Event::Found(_) => {}
            Event::Advance(..) => log.report_if_due(),
            Event::End(summary) => {
                let seconds = log.work_began.elapsed().as_secs_f64();
                log.text(&format!("{summary} ({seconds:.1} s)"));
                log.object("note", json!({ "message": summary }));
            }
            Event::Note(line) => log.note(line),
            Event::Warning(line) => log.note(&format!("warning: {line}")),
        }
    }
}

#[cfg(test)]
mod tests {
    use speed_experiment::Part;

    use super::*;

    /// A log that can be read while it is written.
    #[derive(Clone, Default)]
    struct Log(Arc<Mutex<Vec<u8>>>);

    impl Write for Log {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0.lock().expect("a log").write(bytes)
        }

        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    impl Log {
        #[track_caller]
        fn waits_for(&self, words: &str) {
            let began = Instant::now();
            while !self.text().contains(words) {
                assert!(began.elapsed() < Duration::from_secs(60), "{words:?} is not in {}", self.text());
                std::thread::sleep(Duration::from_millis(5));
            }
        }

        fn text(&self) -> String {
            String::from_utf8(self.0.lock().expect("a log").clone()).expect("text")
        }
    }

    #[test]
    fn only_long_work_reports_progress() {
        let log = Log::default();
        let lines = Lines::new(LogFormat::Text, Duration::from_millis(50), Box::new(log.clone()));
        lines.planned(&["aggregate-a".into(), "student".into()]);
        lines.started("aggregate-a");
        // Keys are being generated: nothing can be counted yet, and the remaining time is unknown.
        log.waits_for("aggregate-a: running, ");
        lines.finished("aggregate-a", false);
        lines.started("student");
        lines.begin("train 2 students", "epochs", 120, 0);
        lines.part(&Part { name: "student".into(), number: 1, of: 2, unit: "epoch".into(), done: 40, total: 60 });
        lines.advance(40, "");
        log.waits_for("train 2 students: student 1 of 2, epoch 40 of 60; 40 of 120 epochs, ");
        log.waits_for(" left\n");
        lines.end("2 students trained");
        lines.finished("student", true);
        assert!(log.text().contains("student: done already\n"), "{}", log.text());

        let quick = Log::default();
        let lines = Lines::new(LogFormat::Text, EVERY, Box::new(quick.clone()));
        lines.begin("draw votes", "teachers", 5, 0);
        lines.advance(5, "");
        lines.end("drawn");
        drop(lines);
        assert_eq!(quick.text().lines().count(), 2, "{}", quick.text());
    }
}
