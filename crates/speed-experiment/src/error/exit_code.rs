//! The exit codes of the command line.

/// The exit code of a command that stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum ExitCode {
    /// The config or the command line is wrong.
    Usage = 2,
    /// Input data or a ledger is wrong.
    Input = 3,
    /// The results folder, or a file that is there, is in the way.
    Results = 4,
    /// Reading or writing failed.
    Io = 5,
    /// A computation failed, or a budget does not allow it.
    Failed = 6,
    /// The binary was built for another processor.
    OtherProcessor = 7,
}

impl ExitCode {
    /// Returns the number that the process ends with.
    #[must_use]
    pub const fn get(self) -> u8 {
        self as u8
    }
}
