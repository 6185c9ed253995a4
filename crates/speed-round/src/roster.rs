//! The parties of a round.

use std::collections::{HashMap, HashSet};

use sha2::{Digest as _, Sha256};
use speed_core::{Digest, appearances, composed, is_assigned, is_legible};

use crate::party_key::{PartyKey, PartyKeyError};

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

/// Parties that do not form a roster.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RosterError {
    /// A name that is empty, too long or not legible.
    #[error(
        "a party's name needs 1 to {max} bytes of visible characters, without spaces at its ends, found {found:?}",
        max = Party::MAX_NAME
    )]
    Name {
        /// The name, cut after 100 characters.
        found: String,
    },
    /// A text that is not a public key.
    #[error("{name}: {source}")]
    Key {
        /// The party's name.
        name: String,
        /// The cause.
        source: PartyKeyError,
    },
    /// Two parties with the same key or name.
    #[error("{first:?} and {second:?} have the same {what}")]
    Twice {
        /// A party.
        first: String,
        /// Another.
        second: String,
        /// "name", "name to the eye" or "key".
        what: &'static str,
    },
    /// A number of parties with teachers that a round cannot have.
    #[error("{found} teachers, expected 1 to {max}", max = Roster::MAX_TEACHERS)]
    Teachers {
        /// Parties found.
        found: usize,
    },
    /// Another number of parties that answer, or of their teachers, than the student expects.
    #[error(
        "{found} {what}, expected {expected}: check the cards, also the `teachers` that each states; if they are right, --{option} {found}"
    )]
    Count {
        /// "parties that answer", or "teachers".
        what: &'static str,
        /// The option that states the number: "parties" or "teachers".
        option: &'static str,
        /// The number that the student expects.
        expected: usize,
        /// The number in the roster.
        found: usize,
    },
    /// A number of teachers that a party cannot have.
    #[error("{name:?} has {found} teachers, expected {expected}")]
    PartyTeachers {
        /// The party's name.
        name: String,
        /// Its teachers.
        found: u64,
        /// The numbers allowed.
        expected: String,
    },
}

impl Party {
    /// The largest number of bytes of a name.
    pub const MAX_NAME: usize = 100;

    /// Creates a party. Its name is composed (Unicode's form NFC), so that keyboards and file systems do not make different names of one.
    ///
    /// # Errors
    /// If the name is empty, too long or not legible.
    pub fn new(name: &str, key: PartyKey) -> Result<Self, RosterError> {
        let name = composed(name);
        if name.len() > Self::MAX_NAME || !is_legible(&name) || !is_assigned(&name) {
            return Err(RosterError::Name { found: name.chars().take(100).collect() });
        }
        Ok(Self { name, key, teachers: 1 })
    }

    /// The largest number of teachers of a party.
    pub const MAX_TEACHERS: u32 = 1 << 14;

    /// Returns the same party with this many teachers. Its message is the sum of their votes and of their shares of the
    /// noise.
    ///
    /// # Errors
    /// [`RosterError::PartyTeachers`] if the number is 0 or too large.
    pub fn with_teachers(self, teachers: u64) -> Result<Self, RosterError> {
        match u32::try_from(teachers) {
            Ok(teachers) if (1..=Self::MAX_TEACHERS).contains(&teachers) => Ok(Self { teachers, ..self }),
            _ => {
                let expected = format!("1 to {}", Self::MAX_TEACHERS);
                Err(RosterError::PartyTeachers { name: self.name, found: teachers, expected })
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
    pub const MAX_TEACHERS: usize = 1 << 14;

    /// Creates a roster.
    ///
    /// # Errors
    /// If two parties share a name or a key, or there are too few or too many teachers.
    pub fn new(student: Party, server: Party, teachers: Vec<Party>) -> Result<Self, RosterError> {
        if !(1..=Self::MAX_TEACHERS).contains(&teachers.len()) {
            return Err(RosterError::Teachers { found: teachers.len() });
        }
        let (mut names, mut keys) = (HashMap::new(), HashSet::new());
        let parties = || teachers.iter().chain([&student, &server]);
        for party in parties() {
            let mut alike = None;
            for look in appearances(&party.name) {
                alike = alike.or(names.insert(look, party).filter(|other| !std::ptr::eq(*other, party)));
            }
            let what = match (alike, keys.insert(party.key)) {
                (_, false) => "key",
                (Some(other), _) if other.name == party.name => "name",
                (Some(_), _) => "name to the eye",
                _ => continue,
            };
            let same_key = || parties().find(|other| other.key == party.key);
            let first = alike.filter(|_| what != "key").or_else(same_key);
            let first = first.map_or_else(String::new, |other| other.name.clone());
            return Err(RosterError::Twice { first, second: party.name.clone(), what });
        }
        Ok(Self { student, server, teachers })
    }

    /// Checks the number of parties that answer, and the number of teachers of all of them. A card that names several parties, or
    /// more teachers than agreed, would give its owner more votes.
    ///
    /// # Errors
    /// [`RosterError::Count`] if one of the numbers differs.
    pub fn expect(&self, parties: usize, teachers: usize) -> Result<(), RosterError> {
        let counts = [
            ("parties that answer", "parties", parties, self.teachers.len()),
            ("teachers", "teachers", teachers, self.teacher_count()),
        ];
        match counts.into_iter().find(|(_, _, expected, found)| expected != found) {
            Some((what, option, expected, found)) => Err(RosterError::Count { what, option, expected, found }),
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
    pub fn teacher(&self, key: PartyKey) -> Option<usize> {
        self.teachers.iter().position(|party| party.key == key)
    }

    /// Returns SHA-256 of "speed/roster/v5" and then, for the student, the server and every teacher in order, the length of its name (8 bytes,
    /// little-endian), its name, its key, and the number of its teachers (8 bytes).
    #[must_use]
    pub fn digest(&self) -> Digest {
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

    fn party(name: &str, key: u8) -> Result<Party, RosterError> {
        let key = SigningKey::from_bytes(&[key; 32]).verifying_key();
        Party::new(name, PartyKey::from_bytes(key.as_bytes()).expect("a key"))
    }

    #[test]
    fn more_and_fewer_parties_or_teachers_than_agreed_are_refused() {
        let [student, server, one, two] = [("student", 1), ("server", 2), ("north", 3), ("south", 4)]
            .map(|(name, key)| party(name, key).expect("a name"));
        let roster = Roster::new(student, server, vec![one, two]).expect("four parties");
        roster.expect(2, 2).expect("two of one teacher each");
        for (parties, teachers, words) in [
            (1, 2, "2 parties that answer, expected 1"),
            (3, 2, "2 parties that answer, expected 3"),
            (2, 1, "2 teachers, expected 1"),
            (2, 3, "2 teachers, expected 3"),
        ] {
            let error = roster.expect(parties, teachers).expect_err("another number").to_string();
            assert!(error.starts_with(words), "{error}");
        }
    }

    /// On commit b3db769 all of these were the names of different parties.
    #[test]
    fn names_that_look_alike_are_not_in_one_roster() {
        let of = |first: &str, second: &str| {
            let [student, server, one, two] = [("student", 1), ("server", 2), (first, 3), (second, 4)]
                .map(|(name, key)| party(name, key).expect("a name"));
            Roster::new(student, server, vec![one, two])
        };
        for (first, second) in [
            ("Saint Étienne", "Saint E\u{301}tienne"),
            ("St Mary's", "ST MARY'S"),
            ("Paris", "Pаris"),
            ("Ward 7", "Ｗａｒｄ 7"),
            ("oﬃce", "office"),
            ("Clinic I", "Clinic l"),
            ("Clinic I", "Clinic 1"),
            ("HOSPITAL O", "HOSPITAL 0"),
            ("St Mary's", "St  Mary's"),
        ] {
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
