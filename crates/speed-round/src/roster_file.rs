//! The text of rosters and of cards.

use std::path::Path;

use serde::{Deserialize, Serialize};
use speed_core::{decode_text, without_joined_marks};

use crate::error::{Refused, beginning, parse_toml};
use crate::file_kind::FileKind;
use crate::files::{decode_input, visible_files};
use crate::roster::{Party, Role, Roster};

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

/// The cards of a file.
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
