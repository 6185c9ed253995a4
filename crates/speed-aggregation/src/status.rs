//! The status of a teacher in a round.

use crate::codec::{Decode, DecodeError, Encode, Reader, Writer, of_byte};

/// The status of a teacher's message: in the sum, or the reason why not. One byte in states and results. Only signed
/// messages affect it, because anyone can send an unsigned one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TeacherStatus {
    /// The message is in the sum.
    Counted = 0,
    /// No message with the teacher's signature had come when the sum was closed. (A later one is late and is not read.)
    Missing = 1,
    /// The message was made for another key.
    WrongKey = 2,
    /// The message was made for another round; a replayed message, for example.
    WrongRound = 3,
    /// The message has another number of queries or classes.
    WrongShape = 4,
    /// The message has no valid proof that it is well formed.
    Unproven = 5,
}

impl TeacherStatus {
    /// Returns whether this status replaces `other` if a teacher caused both: an unproven message is worse than one for
    /// another round, which is worse than none.
    pub fn is_worse_than(self, other: Self) -> bool {
        self as u8 > other as u8
    }

    /// All statuses, in the order of their bytes.
    pub const ALL: [Self; 6] =
        [Self::Counted, Self::Missing, Self::WrongKey, Self::WrongRound, Self::WrongShape, Self::Unproven];
}

speed_core::named!(TeacherStatus:
    Counted = "counted",
    Missing = "missing",
    WrongKey = "wrong-key",
    WrongRound = "wrong-round",
    WrongShape = "wrong-shape",
    Unproven = "unproven",
);

impl Encode for Vec<TeacherStatus> {
    fn encode(&self, writer: &mut Writer) {
        self.iter().for_each(|&status| writer.bytes(&[status as u8]));
    }
}

/// The parameter is the number of teachers.
impl Decode<usize> for Vec<TeacherStatus> {
    fn decode(reader: &mut Reader<'_>, teachers: usize) -> Result<Self, DecodeError> {
        reader.take(teachers)?.iter().map(|&byte| of_byte(&TeacherStatus::ALL, "status", byte)).collect()
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
