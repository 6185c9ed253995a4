//! The progress of a run on standard error: bars in a terminal, lines at intervals elsewhere, or one object a line for
//! programs.

mod bars;
mod lines;
mod ticker;

use std::io::{IsTerminal, stderr};
use std::path::Path;

use speed_core::ExitCode;
use speed_experiment::{Event, Progress};

pub(crate) use self::bars::Bars;
use self::lines::Lines;
pub(crate) use self::lines::{EVERY, LogFormat};
use crate::bar::{self, is_quiet};

pub(crate) enum Reporter {
    Bars(Bars),
    Lines(Lines),
    /// Warnings only.
    Quiet,
}

impl Progress for Reporter {
    fn on(&self, event: Event<'_>) {
        match (self, event) {
            (Self::Bars(bars), _) => bars.on(event),
            (Self::Lines(lines), _) => lines.on(event),
            (Self::Quiet, Event::Warning(line)) => bar::warn(line),
            (Self::Quiet, _) => {}
        }
    }
}

impl Reporter {
    /// Creates a reporter. With `--quiet` it reports only warnings to people, but still reports to programs.
    pub(crate) fn new(format: LogFormat) -> Self {
        match format {
            LogFormat::Text if is_quiet() => Self::Quiet,
            LogFormat::Text if stderr().is_terminal() => Self::Bars(Bars::new()),
            LogFormat::Text | LogFormat::Json => Self::Lines(Lines::new(format, EVERY, Box::new(stderr()))),
        }
    }

    /// Reports to programs that the run is finished, and clears the terminal for its results.
    pub(crate) fn run_finished(&self, folder: &Path) {
        match self {
            Self::Lines(lines) => lines.run_finished(folder),
            Self::Bars(bars) => bars.clear(),
            Self::Quiet => {}
        }
    }

    /// Reports a failure to programs, and returns whether it was reported.
    pub(crate) fn run_failed(&self, code: ExitCode, message: &str) -> bool {
        matches!(self, Self::Lines(lines) if lines.run_failed(code, message))
    }
}
