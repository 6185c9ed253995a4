//! The progress of a run on standard error: bars in a terminal, a line now and then elsewhere, or an object a line for programs.

mod bars;
mod lines;
mod ticker;

use std::io::{IsTerminal, stderr};
use std::path::Path;

use speed_core::ExitCode;
use speed_experiment::{Progress, Silent};

pub(crate) use self::bars::Bars;
pub(crate) use self::lines::EVERY;
use self::lines::{Form, Lines};
use crate::options::LogFormat;

/// Tells the progress of a run.
pub(crate) enum Reporter {
    /// Draws it in a terminal.
    Bars(Bars),
    /// Writes lines for people.
    Lines(Lines),
    /// Writes lines for programs.
    Objects(Lines),
    /// Says nothing.
    Quiet,
}

impl Reporter {
    /// Tells nothing where `quiet`; programs are told all the same.
    pub(crate) fn new(format: LogFormat, quiet: bool) -> Self {
        let lines = |form| Lines::new(form, EVERY, Box::new(stderr()));
        match format {
            LogFormat::Json => Self::Objects(lines(Form::Object)),
            LogFormat::Text if quiet => Self::Quiet,
            LogFormat::Text if stderr().is_terminal() => Self::Bars(Bars::new()),
            LogFormat::Text => Self::Lines(lines(Form::Text)),
        }
    }

    pub(crate) fn progress(&self) -> &dyn Progress {
        match self {
            Self::Bars(bars) => bars,
            Self::Lines(lines) | Self::Objects(lines) => lines,
            Self::Quiet => &Silent,
        }
    }

    /// Tells programs that the run is finished, and leaves the terminal to its results.
    pub(crate) fn finished(&self, folder: &Path) {
        match self {
            Self::Objects(objects) => objects.run_finished(folder),
            Self::Bars(bars) => bars.clear(),
            Self::Lines(_) | Self::Quiet => {}
        }
    }

    /// Tells programs why it is not; returns whether anybody was told.
    pub(crate) fn failed(&self, code: ExitCode, message: &str) -> bool {
        let Self::Objects(objects) = self else { return false };
        objects.run_failed(code, message);
        true
    }
}
