//! The parties of a round, and the text of rosters and of cards.

use std::collections::HashMap;
use std::path::Path;

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};
use speed_core::{
    Classes, Digest, VoteShape, alike, class_list, composed, decode_text, getters, is_assigned, is_legible, printable,
    without_joined_marks,
};

use crate::error::{Refused, beginning, parse_toml};
use crate::file_kind::FileKind;
use crate::files::{decode_input, visible_files};
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

/// A party: a name for people, and a key that identifies it. A party that answers has one or several teachers, and may state the classes
/// of its records.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Party {
    name: String,
    key: PartyKey,
    teachers: u32,
    classes: Option<Vec<String>>,
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
        Ok(Self { name, key, teachers: 1, classes: None })
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

    /// Returns the same party with the names of the classes that it could diagnose, if it states them. They are public: all parties of a
    /// round read them.
    ///
    /// # Errors
    /// If `classes` is empty or too long, or contains an invalid or repeated name.
    pub fn with_classes(self, classes: Option<&[String]>) -> Result<Self, Refused> {
        let Some(classes) = classes else { return Ok(self) };
        let (found, max) = (classes.len(), VoteShape::MAX_CLASSES);
        let classes = match Classes::check_names(classes) {
            Ok(_) if !(1..=max).contains(&found) => Err(format!("states {found} classes, expected 1 to {max}")),
            Ok(classes) => Ok(classes),
            Err(fault) => Err(fault.to_string()),
        };
        let classes = classes.map_err(|fault| Refused::usage(format!("{:?}: {fault}", self.name)))?;
        Ok(Self { classes: Some(classes), ..self })
    }

    /// Returns the names of the classes that it could diagnose, if it states them.
    pub fn classes(&self) -> Option<&[String]> {
        self.classes.as_deref()
    }

    getters! {
        /// Returns the number of its teachers: 1 unless [`Self::with_teachers`] set it.
        teachers: u32,
        /// Returns its name.
        name: &str,
        /// Returns its key.
        key: PartyKey,
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

    /// Returns the number of parties that can vote for each class: those that state it, and those that state no classes. `None` if no
    /// party states classes.
    ///
    /// # Errors
    /// If a party states a class that the round lacks, or no party can vote for a class.
    pub fn voters(&self, classes: &Classes) -> Result<Option<Vec<usize>>, Refused> {
        if self.teachers.iter().all(|party| party.classes.is_none()) {
            return Ok(None);
        }
        let mut voters = vec![0; classes.len()];
        for party in &self.teachers {
            let Some(names) = &party.classes else {
                voters.iter_mut().for_each(|voters| *voters += 1);
                continue;
            };
            for name in names {
                let number = classes.number(name).ok_or_else(|| {
                    let (expected, found) = (class_list(&classes.all_names()), printable(name));
                    let next = "correct the card, or give all classes in --classes";
                    Refused::usage(format!(
                        "{:?}: expected classes of the round ({expected}), found {found}; {next}",
                        party.name
                    ))
                })?;
                voters[usize::from(number)] += 1;
            }
        }
        match voters.iter().position(|voters| *voters == 0) {
            None => Ok(Some(voters)),
            Some(class) => {
                let (name, parties) = (printable(&classes.name(class)), self.teachers.len());
                Err(Refused::usage(format!(
                    "the class {name}: expected a party that has it, but all {parties} cards state other classes: leave it out of --classes, or \
                     correct the cards"
                )))
            }
        }
    }

    getters! {
        /// Returns the student.
        student: &Party,
        /// Returns the server.
        server: &Party,
        /// Returns the parties that answer, in the order of their indices.
        teachers: &[Party],
    }

    /// Returns the number of teachers of all parties together.
    pub fn teacher_count(&self) -> usize {
        self.teachers.iter().map(|party| party.teachers as usize).sum()
    }

    /// Returns the index of the teacher with this key.
    pub(crate) fn teacher(&self, key: PartyKey) -> Option<usize> {
        self.teachers.iter().position(|party| party.key == key)
    }

    /// Returns SHA-256 of "speed/roster/v6" and then, for the student, the server and every teacher in order, the length of its name (8 bytes,
    /// little-endian), its name, its key, the number of its teachers (8 bytes), and the number of classes that it states (8 bytes, 0 if it
    /// states none), each with its length (8 bytes).
    pub(crate) fn digest(&self) -> Digest {
        let mut hash = Sha256::new_with_prefix(b"speed/roster/v6");
        for party in [&self.student, &self.server].into_iter().chain(&self.teachers) {
            hash.update((party.name.len() as u64).to_le_bytes());
            hash.update(&party.name);
            hash.update(party.key.as_bytes());
            hash.update(u64::from(party.teachers).to_le_bytes());
            let classes = party.classes.as_deref().unwrap_or_default();
            hash.update((classes.len() as u64).to_le_bytes());
            for class in classes {
                hash.update((class.len() as u64).to_le_bytes());
                hash.update(class);
            }
        }
        Digest::from_bytes(hash.finalize().into())
    }
}

impl Party {
    /// Returns the party's lines of a roster. A roster is the cards of its parties, one after another.
    pub fn card(&self, role: Role) -> String {
        let mut cards = Cards::default();
        match role {
            Role::Student => cards.student = Some(self.into()),
            Role::Server => cards.server = Some(self.into()),
            Role::Teacher => cards.teacher.push(self.into()),
        }
        toml::to_string(&cards).expect("two strings have a form in TOML") + "\n"
    }
}

impl Roster {
    /// Parses a roster strictly: one `[student]`, one `[server]` and any number of `[[teacher]]`, each with `name` and
    /// `key`, a teacher also with `teachers` if it has several, and with `classes` if it states them. Concatenated cards may contain byte order marks from an editor.
    ///
    /// # Errors
    /// If the text is not a roster. The error names the line.
    pub fn from_toml(text: &str) -> Result<Self, Refused> {
        let Document { student, server, teacher } = parse_toml(&without_joined_marks(text))?;
        Self::from_entries(student, server, teacher)
    }

    /// Reads a roster: a file, or a folder with the card of each party in a file of its own. The parties that answer get their indices in the
    /// order of the files' names.
    ///
    /// # Errors
    /// If it cannot be read or is not a roster.
    pub fn read(path: &Path) -> Result<Self, Refused> {
        if path.is_dir() {
            return Self::read_cards(path);
        }
        decode_input(path, FileKind::ROSTER, |bytes| Self::from_toml(decode_text(bytes)?))
    }

    /// Reads a folder of cards. Hidden files are ignored.
    fn read_cards(folder: &Path) -> Result<Self, Refused> {
        let (mut student, mut server, mut teachers) = (Vec::new(), Vec::new(), Vec::new());
        for path in visible_files(folder)? {
            let card = decode_input(&path, FileKind::ROSTER, |bytes| Card::from_toml(decode_text(bytes)?))?;
            let (parties, role) = match card.role {
                Role::Student => (&mut student, "student"),
                Role::Server => (&mut server, "server"),
                Role::Teacher => (&mut teachers, "teacher"),
            };
            if card.role != Role::Teacher && !parties.is_empty() {
                return Err(Refused::input(&path)(format!("is a second card of a {role}, but a round has one")));
            }
            parties.push(card.party);
        }
        let (Some(student), Some(server)) = (student.pop(), server.pop()) else {
            return Err(Refused::input(folder)(
                "needs the cards of the student, the server and every party that answers",
            ));
        };
        Self::new(student, server, teachers).map_err(Refused::input(folder))
    }

    pub(crate) fn from_entries(student: Entry, server: Entry, teachers: Vec<Entry>) -> Result<Self, Refused> {
        let teachers = teachers.into_iter().map(Entry::party).collect::<Result<_, _>>()?;
        Self::new(student.party_without_teachers()?, server.party_without_teachers()?, teachers)
    }
}

/// A party as it is stored in files.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Entry {
    name: String,
    key: String,
    /// Number of teachers of a party that answers, if it has several.
    #[serde(skip_serializing_if = "Option::is_none")]
    teachers: Option<u64>,
    /// The classes of the records of a party that answers, if it states them.
    #[serde(skip_serializing_if = "Option::is_none")]
    classes: Option<Vec<String>>,
}

impl Entry {
    fn party(self) -> Result<Party, Refused> {
        match self.key.parse() {
            Ok(key) => {
                let party = Party::new(&self.name, key)?.with_teachers(self.teachers.unwrap_or(1))?;
                party.with_classes(self.classes.as_deref())
            }
            Err(fault) => Err(Refused::usage(format!("{}: {fault}", beginning(&self.name)))),
        }
    }

    /// Returns the student or the server, which have neither teachers nor classes.
    fn party_without_teachers(self) -> Result<Party, Refused> {
        let found = match (self.teachers, &self.classes) {
            (None, None) => return self.party(),
            (Some(found), _) => format!("{found} teachers"),
            (None, Some(_)) => "classes".to_owned(),
        };
        let name = beginning(&self.name);
        Err(Refused::usage(format!("{name:?} has {found}, expected none: only parties that answer have")))
    }
}

impl From<&Party> for Entry {
    fn from(party: &Party) -> Self {
        let teachers = (party.teachers() != 1).then(|| u64::from(party.teachers()));
        let classes = party.classes().map(<[String]>::to_vec);
        Self { name: party.name().to_owned(), key: party.key().to_hex(), teachers, classes }
    }
}

/// The card of one party.
struct Card {
    role: Role,
    party: Party,
}

impl Card {
    fn from_toml(text: &str) -> Result<Self, Refused> {
        let Cards { student, server, teacher } = parse_toml(&without_joined_marks(text))?;
        let found = usize::from(student.is_some()) + usize::from(server.is_some()) + teacher.len();
        match (student, server, teacher.into_iter().next()) {
            (Some(entry), None, None) => Ok(Self { role: Role::Student, party: entry.party_without_teachers()? }),
            (None, Some(entry), None) => Ok(Self { role: Role::Server, party: entry.party_without_teachers()? }),
            (None, None, Some(entry)) if found == 1 => Ok(Self { role: Role::Teacher, party: entry.party()? }),
            _ => Err(Refused::fault(format!(
                "names {found} parties, but in a folder of cards every file is the card of one party"
            ))),
        }
    }
}

#[derive(Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Cards {
    #[serde(skip_serializing_if = "Option::is_none")]
    student: Option<Entry>,
    #[serde(skip_serializing_if = "Option::is_none")]
    server: Option<Entry>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    teacher: Vec<Entry>,
}

/// All cards of a roster.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Document {
    student: Entry,
    server: Entry,
    teacher: Vec<Entry>,
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
    fn parties_that_can_vote_for_a_class_are_counted() {
        let classes = Classes::named(vec!["benign".into(), "malignant".into(), "other".into()]).expect("classes");
        let of = |stated: [Option<&[&str]>; 3]| {
            let teachers = (3..).zip(stated).map(|(key, stated)| {
                let party = party(&format!("hospital {key}"), key).expect("a party");
                let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
                party.with_classes(stated.map(names).as_deref())
            });
            let teachers = teachers.collect::<Result<Vec<_>, _>>()?;
            Roster::new(party("student", 1)?, party("server", 2)?, teachers)
        };
        let voters = |stated| of(stated).and_then(|roster| roster.voters(&classes));
        assert_eq!(voters([None, None, None]).expect("nothing is stated"), None);
        let found = voters([Some(&["benign"]), None, Some(&["other", "benign"])]).expect("all classes have a party");
        assert_eq!(found, Some(vec![3, 1, 2]));
        for (stated, words) in [
            (&["benign", "unknown"][..], &["hospital 5", "benign, malignant, other", "found unknown"][..]),
            (&["benign", "other"], &["the class malignant", "all 3 cards"]),
            (&["benign", "benign"], &["hospital 5", "taken for one another"]),
            (&[], &["hospital 5", "states 0 classes"]),
        ] {
            let error = voters([Some(&["benign"]), Some(&["other"]), Some(stated)]).expect_err("refused").to_string();
            assert!(words.iter().all(|words| error.contains(words)), "{error}");
        }
        // The id covers the classes.
        let digest = |stated| of(stated).expect("a roster").digest();
        let stated = [Some(&["benign"][..]), None, None];
        assert_ne!(digest(stated), digest([None; 3]));
        assert_ne!(digest(stated), digest([None, Some(&["benign"][..]), None]));
        assert_ne!(digest(stated), digest([Some(&["benig"][..]), None, None]));
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
