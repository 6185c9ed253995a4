//! The text of rosters and of cards.

use std::path::Path;

use serde::{Deserialize, Serialize};
use speed_core::{decode_text, without_joined_marks};

use crate::error::RolesError;
use crate::fault::InputFault;
use crate::file_kind::FileKind;
use crate::files::decode_input;
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

    /// Reads the file of a roster.
    ///
    /// # Errors
    /// If it cannot be read or is not a roster.
    pub fn read(path: &Path) -> Result<Self, RolesError> {
        decode_input(path, FileKind::ROSTER, |bytes| Self::from_toml(decode_text(bytes)?))
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
