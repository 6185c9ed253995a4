//! The parties of a round.

use std::collections::HashMap;

use sha2::{Digest as _, Sha256};
use speed_core::{Digest, alike, composed, is_assigned, is_legible};

use crate::error::{Refused, beginning};
use crate::party_key::PartyKey;

/// The role of a party in a round.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// Sends the queries and decrypts the result.
    Student,
    /// Answers with votes.
    Teacher,
    /// Sums the answers and computes the argmax.
    Server,
}

/// A party: a name for people, and a key that identifies it. A party that answers has one or several teachers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Party {
    name: String,
    key: PartyKey,
    teachers: u32,
}

/// The parties of a round: the student, the server, and the teachers in the order of their indices.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Roster {
    student: Party,
    server: Party,
    teachers: Vec<Party>,
}

impl Party {
    /// The largest number of bytes of a name.
    const MAX_NAME: usize = 100;

    /// Creates a party. Its name is composed (Unicode's form NFC), so that keyboards and file systems do not make different names of one.
    ///
    /// # Errors
    /// If the name is empty, too long or not legible.
    pub fn new(name: &str, key: PartyKey) -> Result<Self, Refused> {
        let name = composed(name);
        if name.len() > Self::MAX_NAME || !is_legible(&name) || !is_assigned(&name) {
            let (max, found) = (Self::MAX_NAME, beginning(&name));
            return Err(Refused::usage(format!(
                "a party's name needs 1 to {max} bytes of visible characters, without spaces at its ends, found {found:?}"
            )));
        }
        Ok(Self { name, key, teachers: 1 })
    }

    /// The largest number of teachers of a party.
    pub(crate) const MAX_TEACHERS: u32 = 1 << 14;

    /// Returns the same party with this many teachers. Its message is the sum of their votes and of their shares of the
    /// noise.
    ///
    /// # Errors
    /// If the number is 0 or too large.
    pub fn with_teachers(self, teachers: u64) -> Result<Self, Refused> {
        match u32::try_from(teachers) {
            Ok(teachers) if (1..=Self::MAX_TEACHERS).contains(&teachers) => Ok(Self { teachers, ..self }),
            _ => {
                let (name, most) = (self.name, Self::MAX_TEACHERS);
                Err(Refused::usage(format!("{name:?} has {teachers} teachers, expected 1 to {most}")))
            }
        }
    }

    /// Returns the number of its teachers: 1 unless [`Self::with_teachers`] set it.
    #[must_use]
    pub fn teachers(&self) -> u32 {
        self.teachers
    }

    /// Returns its name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns its key.
    #[must_use]
    pub fn key(&self) -> PartyKey {
        self.key
    }
}

impl Roster {
    /// The largest number of parties that answer in a round between programs: its file holds them all.
    pub(crate) const MAX_TEACHERS: usize = 1 << 14;

    /// Creates a roster.
    ///
    /// # Errors
    /// If two parties share a name or a key, or there are too few or too many teachers.
    pub fn new(student: Party, server: Party, teachers: Vec<Party>) -> Result<Self, Refused> {
        if !(1..=Self::MAX_TEACHERS).contains(&teachers.len()) {
            let (found, max) = (teachers.len(), Self::MAX_TEACHERS);
            return Err(Refused::usage(format!("{found} teachers, expected 1 to {max}")));
        }
        let parties = || teachers.iter().chain([&student, &server]);
        let twice = |first: &str, second: &str, what: &str| {
            Err(Refused::usage(format!("{first:?} and {second:?} have the same {what}")))
        };
        let mut keys = HashMap::new();
        for party in parties() {
            if let Some(first) = keys.insert(party.key, &party.name) {
                return twice(first, &party.name, "key");
            }
        }
        if let Some((first, second)) = alike(parties().map(|party| &party.name)).first() {
            return twice(first, second, if first == second { "name" } else { "name to the eye" });
        }
        Ok(Self { student, server, teachers })
    }

    /// Checks the number of parties that answer, and the number of teachers of all of them. A card that names several parties, or
    /// more teachers than agreed, would give its owner more votes.
    ///
    /// # Errors
    /// If one of the numbers differs.
    pub fn expect(&self, parties: usize, teachers: usize) -> Result<(), Refused> {
        let counts = [
            ("parties that answer", "parties", parties, self.teachers.len()),
            ("teachers", "teachers", teachers, self.teacher_count()),
        ];
        match counts.into_iter().find(|(_, _, expected, found)| expected != found) {
            Some((what, option, expected, found)) => Err(Refused::usage(format!(
                "{found} {what}, expected {expected}: check the cards, also the `teachers` that each states; if they are right, --{option} {found}"
            ))),
            None => Ok(()),
        }
    }

    /// Returns the student.
    #[must_use]
    pub fn student(&self) -> &Party {
        &self.student
    }

    /// Returns the server.
    #[must_use]
    pub fn server(&self) -> &Party {
        &self.server
    }

    /// Returns the number of teachers of all parties together.
    #[must_use]
    pub fn teacher_count(&self) -> usize {
        self.teachers.iter().map(|party| party.teachers as usize).sum()
    }

    /// Returns the parties that answer, in the order of their indices.
    #[must_use]
    pub fn teachers(&self) -> &[Party] {
        &self.teachers
    }

    /// Returns the index of the teacher with this key.
    #[must_use]
    pub(crate) fn teacher(&self, key: PartyKey) -> Option<usize> {
        self.teachers.iter().position(|party| party.key == key)
    }

    /// Returns SHA-256 of "speed/roster/v5" and then, for the student, the server and every teacher in order, the length of its name (8 bytes,
    /// little-endian), its name, its key, and the number of its teachers (8 bytes).
    #[must_use]
    pub(crate) fn digest(&self) -> Digest {
        let mut hash = Sha256::new_with_prefix(b"speed/roster/v5");
        for party in [&self.student, &self.server].into_iter().chain(&self.teachers) {
            hash.update((party.name.len() as u64).to_le_bytes());
            hash.update(&party.name);
            hash.update(party.key.as_bytes());
            hash.update(u64::from(party.teachers).to_le_bytes());
        }
        Digest::from_bytes(hash.finalize().into())
    }
}

#[cfg(test)]
mod tests {
    use ed25519_dalek::SigningKey;

    use super::*;

    fn party(name: &str, key: u8) -> Result<Party, Refused> {
        let key = SigningKey::from_bytes(&[key; 32]).verifying_key();
        Party::new(name, PartyKey::from_bytes(key.as_bytes()).expect("a key"))
    }

    #[test]
    fn names_that_look_alike_are_not_in_one_roster() {
        let of = |first: &str, second: &str| {
            let [student, server, one, two] = [("student", 1), ("server", 2), (first, 3), (second, 4)]
                .map(|(name, key)| party(name, key).expect("a name"));
            Roster::new(student, server, vec![one, two])
        };
        for (first, second) in [("Saint Étienne", "Saint E\u{301}tienne"), ("Clinic I", "Clinic l")] {
            let error = of(first, second).expect_err("alike").to_string();
            assert!(error.contains("have the same name"), "{error}");
        }
        of("Paris", "Parma").expect("two names");
        assert_eq!(party("E\u{301}", 1).expect("a name").name(), "É");
        // A letter of three bytes that NFC writes as three letters of two.
        let longer = "\u{fb2c}".repeat(33);
        assert!(party("\u{fb2c}", 1).is_ok() && longer.len() <= Party::MAX_NAME && party(&longer, 1).is_err());
        for name in ["ward \u{e000}", "ward \u{fdd0}", "ward \u{1ffff}", "ward \u{f0000}"] {
            assert!(party(name, 1).is_err(), "{name:?}");
        }
    }
}
