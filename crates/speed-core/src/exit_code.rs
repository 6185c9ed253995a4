//! The exit codes of the programs.

/// The exit code of a program, which tells the kind of failure that ended it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
#[expect(missing_docs, reason = "`meaning` describes the codes")]
pub enum ExitCode {
    Done = 0,
    Usage = 2,
    Input = 3,
    Results = 4,
    InputOutput = 5,
    Computation = 6,
    Processor = 7,
    Interrupted = 130,
    Terminated = 143,
}

impl ExitCode {
    /// All exit codes, in order.
    pub const ALL: [Self; 9] = [
        Self::Done,
        Self::Usage,
        Self::Input,
        Self::Results,
        Self::InputOutput,
        Self::Computation,
        Self::Processor,
        Self::Interrupted,
        Self::Terminated,
    ];

    /// Returns the number that the operating system sees.
    pub const fn code(self) -> u8 {
        self as u8
    }

    /// Returns the kind of failure in one word.
    pub const fn kind(self) -> &'static str {
        match self {
            Self::Done => "none",
            Self::Usage => "config",
            Self::Input => "input",
            Self::Results => "results",
            Self::InputOutput => "io",
            Self::Computation => "computation",
            Self::Processor => "processor",
            Self::Interrupted | Self::Terminated => "signal",
        }
    }

    /// Returns the meaning in one line, as the help of the programs prints it.
    pub const fn meaning(self) -> &'static str {
        match self {
            Self::Done => "done",
            Self::Usage => "config, round or command line",
            Self::Input => {
                "input data, votes, keys, messages, a registry or a ledger that is missing, damaged or refused; another server or log; too few \
                 teachers"
            }
            Self::Results => {
                "results folder missing, in use, changed, or of another config or kind of machine; a file that would be \
                 overwritten; a registry in use or without a round that the ledger has"
            }
            Self::InputOutput => "reading or writing failed (for example, a full disk), or a server cannot be reached",
            Self::Computation => "computation failed, or would exceed a privacy budget",
            Self::Processor => "the binary was built for another processor",
            Self::Interrupted => "ended by Ctrl-C (SIGINT); a run resumes with the same command",
            Self::Terminated => "ended by a service manager (SIGTERM); a run resumes with the same command",
        }
    }
}

impl From<ExitCode> for std::process::ExitCode {
    fn from(code: ExitCode) -> Self {
        Self::from(code.code())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_the_documented_numbers() {
        assert_eq!(ExitCode::ALL.map(ExitCode::code), [0, 2, 3, 4, 5, 6, 7, 130, 143]);
        assert!(ExitCode::ALL.is_sorted());
    }
}
