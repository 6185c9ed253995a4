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

/// A reporter of a run's progress.
pub(crate) enum Reporter {
    /// Draws bars in a terminal.
    Bars(Bars),
    /// Writes lines for people or for programs.
    Lines(Lines),
    /// Reports warnings only.
    Quiet(Warnings),
}

/// Reports warnings and nothing else.
pub(crate) struct Warnings;

impl Progress for Warnings {
    fn on(&self, event: Event<'_>) {
        if let Event::Warning(line) = event {
            bar::warn(line);
        }
    }
}

impl Reporter {
    /// Creates a reporter. With `--quiet` it reports only warnings to people, but still reports to programs.
    pub(crate) fn new(format: LogFormat) -> Self {
        match format {
            LogFormat::Text if is_quiet() => Self::Quiet(Warnings),
            LogFormat::Text if stderr().is_terminal() => Self::Bars(Bars::new()),
            LogFormat::Text | LogFormat::Json => Self::Lines(Lines::new(format, EVERY, Box::new(stderr()))),
        }
    }

    pub(crate) fn progress(&self) -> &dyn Progress {
        match self {
            Self::Bars(bars) => bars,
            Self::Lines(lines) => lines,
            Self::Quiet(warnings) => warnings,
        }
    }

    /// Reports to programs that the run is finished, and clears the terminal for its results.
    pub(crate) fn finished(&self, folder: &Path) {
        match self {
            Self::Lines(lines) => lines.run_finished(folder),
            Self::Bars(bars) => bars.clear(),
            Self::Quiet(_) => {}
        }
    }

    /// Reports a failure to programs, and returns whether it was reported.
    pub(crate) fn failed(&self, code: ExitCode, message: &str) -> bool {
        matches!(self, Self::Lines(lines) if lines.run_failed(code, message))
    }
}
