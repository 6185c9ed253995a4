//! What became of a teacher in a round.

use crate::codec::DecodeError;

/// Whether a teacher's message is in the sum, and why not. One byte in states and results.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TeacherStatus {
    /// The message is in the sum.
    Counted = 0,
    /// No message had come when the sum was closed. (One that came later is late, and is not read.)
    Missing = 1,
    /// The file could not be read.
    Unreadable = 2,
    /// The file is not a teacher's message of this version.
    NotAMessage = 3,
    /// The message ends too early.
    Truncated = 4,
    /// The message was changed on its way.
    Damaged = 5,
    /// The file is longer than a message of this round can be.
    Oversized = 6,
    /// The message was made for another key.
    WrongKey = 7,
    /// The message was made for another round, as a replayed one is.
    WrongRound = 8,
    /// The message is another teacher's.
    WrongTeacher = 9,
    /// The message has another number of queries or classes.
    WrongShape = 10,
}

impl TeacherStatus {
    /// All of them, in the order of their bytes.
    pub const ALL: [Self; 11] = [
        Self::Counted,
        Self::Missing,
        Self::Unreadable,
        Self::NotAMessage,
        Self::Truncated,
        Self::Damaged,
        Self::Oversized,
        Self::WrongKey,
        Self::WrongRound,
        Self::WrongTeacher,
        Self::WrongShape,
    ];

    /// The name in reports.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Counted => "counted",
            Self::Missing => "missing",
            Self::Unreadable => "unreadable",
            Self::NotAMessage => "not-a-message",
            Self::Truncated => "truncated",
            Self::Damaged => "damaged",
            Self::Oversized => "oversized",
            Self::WrongKey => "wrong-key",
            Self::WrongRound => "wrong-round",
            Self::WrongTeacher => "wrong-teacher",
            Self::WrongShape => "wrong-shape",
        }
    }

    pub(crate) fn read_all(bytes: &[u8]) -> Result<Vec<Self>, DecodeError> {
        let max = Self::ALL.len() as u64 - 1;
        let status = |&byte: &u8| {
            let found = u64::from(byte);
            Self::ALL.get(usize::from(byte)).copied().ok_or(DecodeError::Field { field: "status", found, min: 0, max })
        };
        bytes.iter().map(status).collect()
    }
}

impl std::fmt::Display for TeacherStatus {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_status_is_its_byte() {
        for (byte, status) in TeacherStatus::ALL.into_iter().enumerate() {
            assert_eq!(status as usize, byte);
            assert_eq!(TeacherStatus::read_all(&[status as u8]), Ok(vec![status]));
        }
        assert!(TeacherStatus::read_all(&[0, 11]).is_err());
    }
}
