//! The settings of a run as its report shows them.

use std::fmt;

use serde::de::{MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Number;

/// The settings of a run. They are serialized as the complete config.
#[derive(Clone, Debug, PartialEq)]
pub struct RunSettings {
    /// The source of the images, as in the config.
    pub images: String,
    /// The name of the published dataset, if the images are one.
    pub dataset: Option<String>,
    /// Whether the run has images.
    pub has_images: bool,
    /// The origin of the votes.
    pub votes: VotesOrigin,
    /// Number of queries.
    pub queries: usize,
    /// The way in which the queries were chosen, as in the config.
    pub selection: String,
    /// A short description of the noise.
    pub noise: String,
    /// The delta of every claim.
    pub delta: f64,
    /// The largest epsilon of all answers of the experiment, if there is one.
    pub budget: Option<f64>,
    /// Students of a row.
    pub repeats: usize,
    /// The method of students, as shown in tables.
    pub method: String,
    /// Root seed.
    pub seed: u64,
    /// Every key of the config.
    pub config: Document,
    /// The config as TOML, with every key.
    pub toml: String,
}

/// The origin of the votes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum VotesOrigin {
    /// Teachers that the run trained.
    Teachers,
    /// True labels instead of votes.
    TrueLabels,
    /// Another source, as in the config.
    Other(String),
}

impl Serialize for RunSettings {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.config.serialize(serializer)
    }
}

/// A document of values. Unlike [`serde_json::Value`], it keeps the order of its keys.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Document {
    /// No value.
    Null,
    /// A flag.
    Flag(bool),
    /// A number.
    Number(Number),
    /// Text.
    Text(String),
    /// A list.
    List(Vec<Self>),
    /// Keys with values, in insertion order.
    Table(Vec<(String, Self)>),
}

impl Document {
    /// Returns a value as a document.
    ///
    /// # Errors
    /// If the value cannot be written as JSON.
    pub fn from_value(value: &impl Serialize) -> serde_json::Result<Self> {
        serde_json::from_str(&serde_json::to_string(value)?)
    }
}

impl Serialize for Document {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Null => serializer.serialize_unit(),
            Self::Flag(flag) => serializer.serialize_bool(*flag),
            Self::Number(number) => number.serialize(serializer),
            Self::Text(text) => serializer.serialize_str(text),
            Self::List(values) => serializer.collect_seq(values),
            Self::Table(entries) => serializer.collect_map(entries.iter().map(|(key, value)| (key, value))),
        }
    }
}

impl<'de> Deserialize<'de> for Document {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(DocumentVisitor)
    }
}

struct DocumentVisitor;

impl<'de> Visitor<'de> for DocumentVisitor {
    type Value = Document;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E>(self) -> Result<Document, E> {
        Ok(Document::Null)
    }

    fn visit_bool<E>(self, flag: bool) -> Result<Document, E> {
        Ok(Document::Flag(flag))
    }

    fn visit_i64<E>(self, number: i64) -> Result<Document, E> {
        Ok(Document::Number(number.into()))
    }

    fn visit_u64<E>(self, number: u64) -> Result<Document, E> {
        Ok(Document::Number(number.into()))
    }

    fn visit_f64<E>(self, number: f64) -> Result<Document, E> {
        Ok(Number::from_f64(number).map_or(Document::Null, Document::Number))
    }

    fn visit_str<E>(self, text: &str) -> Result<Document, E> {
        Ok(Document::Text(text.to_owned()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut values: A) -> Result<Document, A::Error> {
        let mut list = Vec::new();
        while let Some(value) = values.next_element()? {
            list.push(value);
        }
        Ok(Document::List(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Document, A::Error> {
        let mut table = Vec::new();
        while let Some(entry) = entries.next_entry()? {
            table.push(entry);
        }
        Ok(Document::Table(table))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_document_keeps_keys_and_numbers() {
        let text = r#"{"z":1,"a":[-2,0.1,1e-300,null,true],"m":{"y":"t","b":18446744073709551615}}"#;
        let document: Document = serde_json::from_str(text).expect("a document");
        assert_eq!(serde_json::to_string(&document).expect("text"), text);
        assert_eq!(Document::from_value(&document).expect("the same"), document);
    }
}
