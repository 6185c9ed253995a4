//! The status of a teacher in a round.

use crate::codec::{Decode, DecodeError, Encode, Reader, Writer};

/// The fate of a teacher's message: in the sum, or the reason why not. One byte in states and results.
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
    /// All statuses, in the order of their bytes.
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
}

speed_core::named!(TeacherStatus:
    Counted = "counted",
    Missing = "missing",
    Unreadable = "unreadable",
    NotAMessage = "not-a-message",
    Truncated = "truncated",
    Damaged = "damaged",
    Oversized = "oversized",
    WrongKey = "wrong-key",
    WrongRound = "wrong-round",
    WrongTeacher = "wrong-teacher",
    WrongShape = "wrong-shape",
);

impl Encode for Vec<TeacherStatus> {
    fn encoded_len(&self) -> usize {
        self.len()
    }

    fn encode(&self, writer: &mut Writer) {
        self.iter().for_each(|&status| writer.bytes(&[status as u8]));
    }
}

/// The parameter is the number of teachers.
impl Decode<usize> for Vec<TeacherStatus> {
    fn decode(reader: &mut Reader<'_>, teachers: usize) -> Result<Self, DecodeError> {
        let max = TeacherStatus::ALL.len() as u64 - 1;
        let status = |&byte: &u8| {
            let found = u64::from(byte);
            let known = TeacherStatus::ALL.get(usize::from(byte)).copied();
            known.ok_or(DecodeError::Field { field: "status", found, min: 0, max })
        };
        reader.take(teachers)?.iter().map(status).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_status_is_its_byte_and_its_name() {
        for (byte, status) in TeacherStatus::ALL.into_iter().enumerate() {
            assert_eq!(status as usize, byte);
            assert_eq!(TeacherStatus::NAMES[byte].parse(), Ok(status));
        }
    }
}
