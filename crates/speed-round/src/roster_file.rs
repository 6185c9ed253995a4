//! The text of rosters and of cards.

use std::path::Path;

use serde::{Deserialize, Serialize};
use speed_core::{decode_text, without_joined_marks};

use crate::error::RolesError;
use crate::fault::InputFault;
use crate::file_kind::FileKind;
use crate::files::{decode_input, visible_files};
use crate::roster::{Party, Role, Roster, RosterError};

impl Party {
    /// Returns the party's lines of a roster. A roster is the cards of its parties, one after another.
    #[must_use]
    pub fn card(&self, role: Role) -> String {
        let entry = Entry::from(self);
        let text = match role {
            Role::Student => toml::to_string(&StudentCard { student: entry }),
            Role::Server => toml::to_string(&ServerCard { server: entry }),
            Role::Teacher => toml::to_string(&TeacherCard { teacher: [entry] }),
        };
        text.expect("two strings have a form in TOML") + "\n"
    }
}

impl Roster {
    /// Parses a roster strictly: one `[student]`, one `[server]` and any number of `[[teacher]]`, each with `name` and
    /// `key`, a teacher also with `teachers` if it has several. Concatenated cards may contain byte order marks from an editor.
    ///
    /// # Errors
    /// If the text is not a roster. The error names the line.
    pub fn from_toml(text: &str) -> Result<Self, InputFault> {
        let Document { student, server, teacher } = toml::from_str(&without_joined_marks(text)).map_err(Box::new)?;
        Ok(Self::from_entries(student, server, teacher)?)
    }

    /// Reads a roster: a file, or a folder of cards ([`Self::read_cards`]).
    ///
    /// # Errors
    /// If it cannot be read or is not a roster.
    pub fn read(path: &Path) -> Result<Self, RolesError> {
        if path.is_dir() {
            return Self::read_cards(path);
        }
        decode_input(path, FileKind::ROSTER, |bytes| Self::from_toml(decode_text(bytes)?))
    }

    /// Reads a folder with the card of each party in a file of its own. The parties that answer get their indices in the order of the
    /// files' names. Hidden files are ignored; every other file must be a card of exactly one party.
    ///
    /// # Errors
    /// If a file is not the card of one party, or the parties do not form a roster.
    pub fn read_cards(folder: &Path) -> Result<Self, RolesError> {
        let (mut student, mut server, mut teachers) = (Vec::new(), Vec::new(), Vec::new());
        for path in visible_files(folder)? {
            let card = decode_input(&path, FileKind::ROSTER, |bytes| Card::from_toml(decode_text(bytes)?))?;
            let (parties, role) = match card.role {
                Role::Student => (&mut student, "student"),
                Role::Server => (&mut server, "server"),
                Role::Teacher => (&mut teachers, "teacher"),
            };
            if card.role != Role::Teacher && !parties.is_empty() {
                return Err(RolesError::input(&path)(InputFault::SecondCard { role }));
            }
            parties.push(card.party);
        }
        let (Some(student), Some(server)) = (student.pop(), server.pop()) else {
            return Err(RolesError::input(folder)(InputFault::CardsMissing));
        };
        Self::new(student, server, teachers).map_err(RolesError::input(folder))
    }

    pub(crate) fn from_entries(student: Entry, server: Entry, teachers: Vec<Entry>) -> Result<Self, RosterError> {
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
}

impl Entry {
    fn party(self) -> Result<Party, RosterError> {
        match self.key.parse() {
            Ok(key) => Party::new(&self.name, key)?.with_teachers(self.teachers.unwrap_or(1)),
            Err(source) => Err(RosterError::Key { name: self.name.chars().take(100).collect(), source }),
        }
    }

    /// Returns the student or the server, which have no teachers.
    fn party_without_teachers(self) -> Result<Party, RosterError> {
        match self.teachers {
            None => self.party(),
            Some(found) => {
                let name = self.name.chars().take(100).collect();
                Err(RosterError::PartyTeachers { name, found, expected: "none: only parties that answer have".into() })
            }
        }
    }
}

impl From<&Party> for Entry {
    fn from(party: &Party) -> Self {
        let teachers = (party.teachers() != 1).then(|| u64::from(party.teachers()));
        Self { name: party.name().to_owned(), key: party.key().to_hex(), teachers }
    }
}

/// The card of one party.
struct Card {
    role: Role,
    party: Party,
}

impl Card {
    fn from_toml(text: &str) -> Result<Self, InputFault> {
        let Cards { student, server, teacher } = toml::from_str(&without_joined_marks(text)).map_err(Box::new)?;
        let found = usize::from(student.is_some()) + usize::from(server.is_some()) + teacher.len();
        match (student, server, teacher.into_iter().next()) {
            (Some(entry), None, None) => Ok(Self { role: Role::Student, party: entry.party_without_teachers()? }),
            (None, Some(entry), None) => Ok(Self { role: Role::Server, party: entry.party_without_teachers()? }),
            (None, None, Some(entry)) if found == 1 => Ok(Self { role: Role::Teacher, party: entry.party()? }),
            _ => Err(InputFault::CardOfSeveral { found }),
        }
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Cards {
    student: Option<Entry>,
    server: Option<Entry>,
    #[serde(default)]
    teacher: Vec<Entry>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Document {
    student: Entry,
    server: Entry,
    teacher: Vec<Entry>,
}

#[derive(Serialize)]
struct StudentCard {
    student: Entry,
}

#[derive(Serialize)]
struct ServerCard {
    server: Entry,
}

#[derive(Serialize)]
struct TeacherCard {
    teacher: [Entry; 1],
}
