//! The file of a round, which the student writes and gives to all parties: the terms on which they agree.

use std::path::Path;

use serde::{Deserialize, Serialize};
use speed_aggregation::encoding::Encoding;
use speed_aggregation::keys::KeyId;
use speed_aggregation::protocol::RoundId;
use speed_aggregation::{PrivacyNoise, PublicKey, Round};
use speed_core::vote_files::NamedQueries;
use speed_core::{Classes, Digest, DigestError, ExitCode, NoisePlacement, RandomnessKind, decode_text, getters};
use speed_mechanism::MechanismKind;

use crate::error::{Refused, parse_toml};
use crate::file_kind::FileKind;
use crate::files::{decode_input, read_input};
use crate::roster::{Entry, Party, Roster};
use crate::terms::Terms;

/// A round, its parties, and the key it uses.
#[derive(Clone, Debug, PartialEq)]
pub struct RoundFile {
    name: String,
    round: Round,
    classes: Classes,
    roster: Roster,
    key: KeyId,
    noise: PrivacyNoise,
}

impl RoundFile {
    /// Creates the round with these terms under a key. The noise's bound fails with a probability of at most 2^-64.
    ///
    /// # Errors
    /// If the terms are invalid, or the round has no exact encoding under the key.
    pub fn new(terms: &Terms, key: &PublicKey) -> Result<Self, Refused> {
        let file = Self::build(terms, terms.noise.bound(terms.shape()?)?, key.id())?;
        Encoding::of_round(key.parameters(), &file.round)?;
        Ok(file)
    }

    fn build(terms: &Terms, noise_bound: u64, key: KeyId) -> Result<Self, Refused> {
        let Terms { name, roster, classes, noise, .. } = terms.clone();
        Ok(Self { name, round: terms.round(noise_bound)?, classes, roster, key, noise })
    }

    getters! {
        /// Returns the round.
        round: &Round,
        /// Returns its name.
        name: &str,
        /// Returns its classes.
        classes: &Classes,
        /// Returns its parties.
        roster: &Roster,
        /// Returns the id of the round's key.
        key: KeyId,
        /// Returns its privacy noise.
        noise: PrivacyNoise,
    }

    /// Returns the number of parties that can vote for each class, if one of them states its classes.
    pub fn voters(&self) -> Option<Vec<usize>> {
        self.roster.voters(&self.classes).expect("counted when the round was made")
    }

    /// Returns its id.
    pub fn id(&self) -> RoundId {
        self.round.id(self.key)
    }

    /// Returns the index of the party that opens the result together with the student, and the party, if the opening is
    /// joint.
    pub fn opener(&self) -> Option<(usize, &Party)> {
        let index = self.round.opener()?;
        Some((index, self.roster.teachers().get(index)?))
    }

    /// Returns the file's text.
    pub fn to_toml(&self) -> String {
        let (round, mechanism) = (&self.round, self.noise.mechanism());
        let coins = self.noise.coins_of_teacher(round.shape().teachers());
        let document = Document {
            format: FORMAT,
            id: self.id().to_hex(),
            name: self.name.clone(),
            key: self.key.to_hex(),
            simulation: round.is_simulation(),
            minimum: round.min_teachers(),
            opening: self.opener().map(|_| OpeningWord::Joint),
            opener: self.opener().map(|(_, party)| party.name().to_owned()),
            queries: Queries {
                count: round.shape().queries(),
                classes: round.shape().classes(),
                class_names: self.classes.names().map(<[_]>::to_vec),
                sha256: round.query_list().map(|list| list.to_hex()),
                threshold: round.threshold(),
            },
            noise: Noise {
                place: round.placement(),
                mechanism: mechanism.kind().to_string(),
                gamma: coins.is_none().then(|| mechanism.scale()),
                coins,
                bound: round.range().noise_bound(),
            },
            proofs: round.proofs().map(|key| KeyFile { sha256: key.to_hex() }),
            evaluation: round.evaluation_key().map(|key| KeyFile { sha256: key.to_hex() }),
            student: self.roster.student().into(),
            server: self.roster.server().into(),
            teacher: self.roster.teachers().iter().map(Entry::from).collect(),
        };
        let text = toml::to_string(&document).expect("the document has no value that TOML could not hold");
        let simulation =
            if round.is_simulation() { "# SIMULATION: keys or noise come from a seed. No privacy.\n" } else { "" };
        format!("# A labelling round of SPEED. Its id covers everything below; change nothing.\n{simulation}{text}")
    }

    /// Parses a round's file strictly: no unknown keys, the limits of [`Round`], a large enough bound for its noise,
    /// and an id that matches the content.
    ///
    /// # Errors
    /// The error states the expected and the found, and the line if there is one.
    pub fn from_toml(text: &str) -> Result<Self, Refused> {
        let document: Document = parse_toml(text)?;
        if document.format != FORMAT {
            return Err(Refused::usage(format!("format {}, this program reads format {FORMAT}", document.format)));
        }
        let (key, id) = (digest("key", &document.key)?, digest("id", &document.id)?);
        let (noise_bound, terms) = (document.noise.bound, terms(document)?);
        let file = Self::build(&terms, noise_bound, key)?;
        // After `build`, which limits the number of values.
        let min = terms.noise.bound(file.round.shape())?;
        if noise_bound < min {
            return Err(Refused::usage(format!("noise.bound is {noise_bound}, this noise needs at least {min}")));
        }
        if file.id() != id {
            let content = file.id();
            return Err(Refused::usage(format!(
                "the id is {id}.., but the file's content has {content}..: it was changed"
            )));
        }
        Ok(file)
    }

    /// Reads a round's file.
    ///
    /// # Errors
    /// If it is missing, damaged or changed. The exit code is [`ExitCode::Usage`], because a round is terms and not data.
    pub fn read(path: &Path) -> Result<Self, Refused> {
        let read = |bytes: &[u8]| {
            let text = decode_text(bytes).map_err(|fault| Refused::fault(format!("not a round's file: {fault}")))?;
            Self::from_toml(text)
        };
        decode_input(path, FileKind::ROUND, read).map_err(|refused| refused.with_exit(ExitCode::Usage))
    }

    /// Reads the list of the round's queries.
    pub(crate) fn read_queries(&self, list: &Path) -> Result<NamedQueries, Refused> {
        let bytes = read_input(list, FileKind::QUERY_LIST)?;
        self.check_queries(Digest::of(&bytes)).map_err(Refused::input(list))?;
        let queries =
            NamedQueries::parse(&bytes).and_then(|queries| queries.expect_count(self.round.shape().queries()));
        queries.map_err(Refused::input(list))
    }

    /// Checks that the list with this SHA-256 is the round's list of queries.
    pub(crate) fn check_queries(&self, found: Digest) -> Result<(), Refused> {
        let expected = self.round.query_list().ok_or_else(|| Refused::fault("the round names no list of queries"))?;
        Refused::unless(found == expected, || {
            format!("has the SHA-256 {found}, the round's list of queries has {expected}")
        })
    }

    /// Checks that a program's key is the round's key.
    pub(crate) fn check_key(&self, path: &Path, found: KeyId) -> Result<(), Refused> {
        let fault = || format!("is key {found}, the round is for key {}", self.key);
        Refused::unless(found == self.key, fault).map_err(|refused| refused.at(path))
    }

    /// Checks that the program simulates if and only if the round is a simulation.
    pub(crate) fn check_randomness(&self, program: RandomnessKind) -> Result<(), Refused> {
        match (self.round.is_simulation(), program) {
            (true, RandomnessKind::OperatingSystem) => {
                Err(Refused::usage("this round is a simulation: give --simulation SEED"))
            }
            (false, RandomnessKind::Simulation) => {
                Err(Refused::usage("this round is not a simulation: remove --simulation"))
            }
            _ => Ok(()),
        }
    }
}

/// Version of the file's format.
const FORMAT: u32 = 4;

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Document {
    format: u32,
    id: String,
    name: String,
    key: String,
    simulation: bool,
    /// Teachers that must answer.
    minimum: usize,
    /// Who opens the result; without it, the student alone.
    #[serde(skip_serializing_if = "Option::is_none")]
    opening: Option<OpeningWord>,
    /// The name of the party that opens it with the student.
    #[serde(skip_serializing_if = "Option::is_none")]
    opener: Option<String>,
    queries: Queries,
    noise: Noise,
    /// The key for the proofs that messages are well formed.
    #[serde(skip_serializing_if = "Option::is_none")]
    proofs: Option<KeyFile>,
    /// The key with which the server computes.
    #[serde(skip_serializing_if = "Option::is_none")]
    evaluation: Option<KeyFile>,
    student: Entry,
    server: Entry,
    teacher: Vec<Entry>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Queries {
    count: usize,
    classes: usize,
    /// The names of the classes; without them, classes are called by their numbers from 0.
    #[serde(skip_serializing_if = "Option::is_none")]
    class_names: Option<Vec<String>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    sha256: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    threshold: Option<i64>,
}

/// The file of a key that other parties hold.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct KeyFile {
    sha256: String,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Noise {
    #[serde(with = "PlacementWord")]
    place: NoisePlacement,
    mechanism: String,
    /// Inverse scale of discrete Laplace noise, per vote.
    #[serde(skip_serializing_if = "Option::is_none")]
    gamma: Option<f64>,
    /// Coins of one teacher, for each class and query, of binomial noise.
    #[serde(skip_serializing_if = "Option::is_none")]
    coins: Option<u64>,
    bound: u64,
}

impl Noise {
    /// Returns the noise of this many teachers. Each mechanism has exactly one parameter.
    fn privacy_noise(&self, teachers: usize) -> Result<PrivacyNoise, Refused> {
        let Self { mechanism, gamma, coins, .. } = self;
        let noise = match (mechanism.as_str(), *gamma, *coins) {
            (BINOMIAL, None, Some(coins)) => PrivacyNoise::of_coins(coins, teachers),
            (LAPLACE, Some(gamma), None) => PrivacyNoise::named(LAPLACE, gamma),
            (BINOMIAL | LAPLACE, gamma, coins) => {
                let found = match (gamma, coins) {
                    (Some(_), Some(_)) => "both gamma and coins",
                    (Some(_), None) => "gamma",
                    (None, Some(_)) => "coins",
                    (None, None) => "neither gamma nor coins",
                };
                let expected = if mechanism == BINOMIAL { "coins" } else { "gamma" };
                return Err(Refused::usage(format!("noise: mechanism {mechanism:?} needs {expected}, found {found}")));
            }
            // Refuses the name.
            (other, gamma, _) => PrivacyNoise::named(other, gamma.unwrap_or_default()),
        };
        Ok(noise?)
    }
}

const BINOMIAL: &str = MechanismKind::Binomial.name();
const LAPLACE: &str = MechanismKind::DiscreteLaplace.name();

#[derive(Serialize, Deserialize)]
#[serde(remote = "NoisePlacement")]
enum PlacementWord {
    #[serde(rename = "teachers")]
    Distributed,
    #[serde(rename = "server")]
    Central,
}

/// The word for an opening by two parties in the file.
#[derive(Clone, Copy, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum OpeningWord {
    Joint,
}

fn terms(document: Document) -> Result<Terms, Refused> {
    let Document {
        name,
        simulation,
        minimum,
        opening,
        opener,
        queries,
        noise,
        proofs,
        evaluation,
        student,
        server,
        teacher,
        ..
    } = document;
    let missing = match (opening, &opener) {
        (Some(OpeningWord::Joint), None) => Some("no opener"),
        (None, Some(_)) => Some("an opener without opening = \"joint\""),
        (Some(OpeningWord::Joint), Some(_)) if proofs.is_none() && !simulation => {
            Some("no [proofs], without which the labels could reveal the key")
        }
        _ => None,
    };
    if let Some(found) = missing {
        let needs = "a joint opening needs opening = \"joint\", the opener's name and proofs";
        return Err(Refused::usage(format!("opening: {needs}, found {found}")));
    }
    // In the round's id, zeros mean that nothing is stated.
    let stated = |field, text: Option<String>| -> Result<Option<Digest>, Refused> {
        let digest: Option<Digest> = text.map(|text| digest(field, &text)).transpose()?;
        match digest {
            Some(digest) if *digest.as_bytes() == [0; 32] => {
                Err(Refused::usage(format!("{field} is zeros: leave it out if nothing is stated")))
            }
            digest => Ok(digest),
        }
    };
    let classes = match queries.class_names {
        Some(names) if names.len() != queries.classes => {
            let (expected, found) = (queries.classes, names.len());
            return Err(Refused::usage(format!(
                "queries.class_names: expected a name for each of {expected} classes, found {found}"
            )));
        }
        Some(names) => match Classes::named(names)? {
            classes if classes.names().is_none() => {
                return Err(Refused::usage(
                    "queries.class_names: leave it out if the classes are called by their numbers",
                ));
            }
            classes => Ok(classes),
        },
        None => Classes::numbered(queries.classes),
    };
    let roster = Roster::from_entries(student, server, teacher)?;
    Ok(Terms {
        name,
        noise: noise.privacy_noise(roster.teacher_count())?,
        roster,
        queries: queries.count,
        classes: classes?,
        query_list: stated("queries.sha256", queries.sha256)?,
        proofs: stated("proofs.sha256", proofs.map(|key| key.sha256))?,
        evaluation_key: stated("evaluation.sha256", evaluation.map(|key| key.sha256))?,
        min_teachers: minimum,
        placement: noise.place,
        threshold: queries.threshold,
        opener,
        randomness: if simulation { RandomnessKind::Simulation } else { RandomnessKind::OperatingSystem },
    })
}

fn digest<T: std::str::FromStr<Err = DigestError>>(field: &'static str, text: &str) -> Result<T, Refused> {
    text.parse().map_err(|fault| Refused::usage(format!("{field}: {fault}")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::identity::Identity;
    use crate::roster::Party;

    /// Creates a party whose key is derived from the digest of its name.
    fn party(name: &str) -> Party {
        Party::new(name, Identity::of_seed(*Digest::of(name).as_bytes()).key()).expect("a name")
    }

    fn file() -> RoundFile {
        with_noise(PrivacyNoise::named("discrete-laplace", 0.1).expect("valid"))
    }

    fn with_noise(noise: PrivacyNoise) -> RoundFile {
        build(&terms_with(noise)).expect("valid")
    }

    /// Builds a round with the least bound of its noise.
    fn build(terms: &Terms) -> Result<RoundFile, Refused> {
        let bound = terms.noise.bound(terms.shape().expect("a shape")).expect("bounded");
        RoundFile::build(terms, bound, "ab".repeat(32).parse().expect("hex"))
    }

    /// Changes a text in one place, and expects a refusal with these words.
    #[track_caller]
    fn refused(text: &str, from: &str, to: &str, words: &str) {
        let changed = text.replacen(from, to, 1);
        assert_ne!(changed, text, "{from}");
        let error = RoundFile::from_toml(&changed).expect_err(to).to_string();
        assert!(error.contains(words), "{to}: {error}");
    }

    fn terms_with(noise: PrivacyNoise) -> Terms {
        let teachers = (0..250).map(|teacher| party(&format!("hospital {teacher}"))).collect();
        Terms {
            name: "a round".into(),
            roster: Roster::new(party("student"), party("server"), teachers).expect("250 parties"),
            queries: 100,
            classes: Classes::numbered(10).expect("classes"),
            query_list: Some(Digest::from_bytes([3; 32])),
            min_teachers: 200,
            noise,
            placement: NoisePlacement::Distributed,
            threshold: Some(-7),
            proofs: Some(Digest::from_bytes([4; 32])),
            evaluation_key: Some(Digest::from_bytes([5; 32])),
            opener: None,
            randomness: RandomnessKind::Simulation,
        }
    }

    #[test]
    fn a_joint_opening_is_bound_into_the_id_and_other_rounds_keep_theirs() {
        let noise = PrivacyNoise::of_coins(4, 250).expect("valid");
        let of = |opener: Option<&str>| build(&Terms { opener: opener.map(str::to_owned), ..terms_with(noise) });
        let (alone, joint) = (of(None).expect("valid"), of(Some("hospital 17")).expect("valid"));
        assert_eq!(
            (alone.opener(), joint.opener().map(|(index, party)| (index, party.name()))),
            (None, Some((17, "hospital 17")))
        );
        assert!(!alone.to_toml().contains("open"), "{}", alone.to_toml());
        let ids = [
            alone.id(),
            joint.id(),
            of(Some("hospital 1")).expect("valid").id(),
            of(Some("hospital 7")).expect("valid").id(),
        ];
        assert!(ids.iter().enumerate().all(|(i, id)| !ids[..i].contains(id)));
        let text = joint.to_toml();
        assert!(text.contains("minimum = 200\nopening = \"joint\"\nopener = \"hospital 17\"\n"), "{text}");
        assert_eq!(RoundFile::from_toml(&text).expect(&text), joint);
        for (from, to, words) in [
            ("opener = \"hospital 17\"", "opener = \"hospital 18\"", "it was changed"),
            ("opener = \"hospital 17\"", "opener = \"server\"", "is not the name of one of the parties that answer"),
            ("opener = \"hospital 17\"", "opener = \"student\"", "is not the name of one of the parties that answer"),
            ("opener = \"hospital 17\"\n", "", "found no opener"),
            ("opening = \"joint\"\n", "", "found an opener without"),
            ("opening = \"joint\"\nopener = \"hospital 17\"\n", "", "it was changed"),
            ("opening = \"joint\"", "opening = \"student\"", "unknown variant"),
            ("place = \"teachers\"", "place = \"server\"", "a joint opening needs noise from the teachers"),
        ] {
            refused(&text, from, to, words);
        }
        assert!(
            of(Some("nobody"))
                .expect_err("unknown")
                .to_string()
                .contains("\"hospital 0\", \"hospital 1\", \"hospital 2\", ..")
        );
    }

    #[test]
    fn a_binomial_round_states_the_coins_of_one_teacher() {
        let file = with_noise(PrivacyNoise::of_coins(4, 250).expect("valid"));
        let text = file.to_toml();
        assert_eq!(RoundFile::from_toml(&text).expect(&text), file);
        assert!(text.contains("mechanism = \"binomial\"\ncoins = 4\nbound = 163\n"), "{text}");
        assert!(!text.contains("gamma"), "{text}");
        for (from, to, words) in [
            ("coins = 4", "coins = 6", "noise.bound is 163"),
            ("coins = 4", "coins = 2", "it was changed"),
            ("coins = 4", "coins = 3", "3 coins for each teacher, class and query, but with a threshold"),
            ("coins = 4", "coins = 0", "number of coins is 0"),
            ("coins = 4", "coins = -4", "invalid value"),
            ("coins = 4", "coins = 4.5", "invalid type"),
            ("coins = 4", "coins = 65537", "from 1 to 1048576"),
            ("coins = 4", "coins = 9223372036854775807", "number of coins is"),
            ("coins = 4", "gamma = 0.1", "mechanism \"binomial\" needs coins, found gamma"),
            ("coins = 4", "coins = 4\ngamma = 0.1", "mechanism \"binomial\" needs coins, found both gamma and coins"),
            ("coins = 4\n", "", "mechanism \"binomial\" needs coins, found neither gamma nor coins"),
            ("\"binomial\"", "\"discrete-laplace\"", "mechanism \"discrete-laplace\" needs gamma, found coins"),
            ("\"binomial\"", "\"skellam\"", "expected one of discrete-laplace, binomial"),
            ("bound = 163", "bound = 162", "this noise needs at least 163"),
            ("bound = 163", "bound = 164", "it was changed"),
        ] {
            refused(&text, from, to, words);
        }
    }

    #[test]
    fn more_classes_than_an_answer_can_name_are_refused() {
        let of = |classes| {
            let noise = PrivacyNoise::of_coins(4, 250).expect("valid");
            let classes = Classes::numbered(classes).expect("classes");
            build(&Terms { classes, threshold: None, ..terms_with(noise) })
        };
        assert!(of(128).is_ok());
        let refused = of(129).expect_err("refused").to_string();
        assert_eq!(refused, "129 classes: an answer has room for 128 outcomes");
    }

    #[test]
    fn a_party_of_several_teachers_is_bound_into_id_and_roster() {
        let of = |parties: &[u64]| {
            let noise = PrivacyNoise::of_coins(4, parties.iter().sum::<u64>() as usize).expect("valid");
            let teachers = parties.iter().enumerate();
            let teachers = teachers
                .map(|(i, &count)| party(&format!("hospital {i}")).with_teachers(count).expect("teachers"))
                .collect();
            let roster = Roster::new(party("student"), party("server"), teachers).expect("parties");
            build(&Terms { roster, min_teachers: 40, threshold: None, ..terms_with(noise) }).expect("valid")
        };
        let file = of(&[25, 1, 24]);
        let text = file.to_toml();
        assert_eq!(RoundFile::from_toml(&text).expect(&text), file);
        assert_eq!((file.round().shape().teachers(), file.round().parties()), (50, 3));
        assert!(text.contains("teachers = 25") && !text.contains("teachers = 1\n"), "{text}");
        // The same sums of teachers in other parties are other rounds.
        assert_ne!(file.id(), of(&[24, 1, 25]).id());
        assert_ne!(file.roster().digest(), of(&[24, 1, 25]).roster().digest());
        for (from, to, words) in [
            ("teachers = 25", "teachers = 24", "this noise"),
            ("teachers = 25\n", "", "40 teachers must answer"),
            ("teachers = 25", "teachers = 0", "has 0 teachers, expected 1 to 16384"),
            ("teachers = 25", "teachers = 16385", "expected 1 to 16384"),
            ("teachers = 25", "teachers = -1", "invalid value"),
            ("[server]\n", "[server]\nteachers = 2\n", "has 2 teachers, expected none"),
            ("[student]\n", "[student]\nteachers = 1\n", "has 1 teachers, expected none"),
        ] {
            let changed = text.replacen(from, to, 1);
            assert_ne!(changed, text, "{from}");
            let error = RoundFile::from_toml(&changed).expect_err(to).to_string();
            assert!(error.contains(words) || error.contains("it was changed"), "{to}: {error}");
        }
    }

    #[test]
    fn coins_that_the_teachers_cannot_share_are_refused() {
        for (placement, coins, words) in [
            (NoisePlacement::Distributed, 1_001, "1001 coins cannot be shared evenly between 250 teachers"),
            // The file states the coins of one teacher, also if the server tosses all of them.
            (NoisePlacement::Central, 1_001, "1001 coins cannot be shared evenly between 250 teachers"),
            (NoisePlacement::Central, 250 * 263, "at most 65536 are supported"),
        ] {
            let noise = PrivacyNoise::named("binomial", f64::from(coins)).expect("valid");
            let terms = Terms { placement, ..terms_with(noise) };
            let error = RoundFile::build(&terms, 9_999, "ab".repeat(32).parse().expect("hex")).expect_err("refused");
            assert!(error.to_string().contains(words), "{error}");
        }
    }

    #[test]
    fn every_change_of_a_round_file_is_refused() {
        let text = file().to_toml();
        let noise = "[noise]\nplace = \"teachers\"\nmechanism = \"discrete-laplace\"\ngamma = 0.1\nbound = ";
        assert!(text.contains(noise) && text.contains("SIMULATION") && !text.contains("coins"), "{text}");
        assert_eq!(RoundFile::from_toml(&text).expect(&text), file());
        for (from, to, words) in [
            ("format = 4", "format = 3", "this program reads format 4"),
            ("name = \"a round\"", "name = \"another\"", "it was changed"),
            ("name = \"a round\"", "name = \"\"", "1 to 200"),
            ("simulation = true", "simulation = false", "it was changed"),
            ("count = 100", "count = 99", "it was changed"),
            ("count = 100", "count = 0", "0 queries"),
            ("count = 100", "count = 99999999", "queries"),
            ("count = 100", "count = -1", "invalid value"),
            ("name = \"hospital 3\"", "name = \"hospital 4\"", "have the same name"),
            ("name = \"hospital 3\"", "name = \"\"", "1 to 100 bytes"),
            ("name = \"hospital 3\"", "name = \"hospital 3000\"", "it was changed"),
            ("sha256 = \"0404", "sha256 = \"0405", "it was changed"),
            ("[proofs]\nsha256 = \"04", "#", "it was changed"),
            ("sha256 = \"0505", "sha256 = \"0506", "it was changed"),
            ("[evaluation]\nsha256 = \"05", "#", "it was changed"),
            (
                &format!("sha256 = \"{}\"", "04".repeat(32)),
                &format!("sha256 = \"{}\"", "00".repeat(32)),
                "proofs.sha256 is zeros",
            ),
            (
                &format!("sha256 = \"{}\"", "05".repeat(32)),
                &format!("sha256 = \"{}\"", "00".repeat(32)),
                "evaluation.sha256 is zeros",
            ),
            ("[student]", "[students]", "unknown field"),
            ("[server]", "[servers]", "unknown field"),
            ("minimum = 200", "minimum = 251", "251 teachers must answer"),
            ("threshold = -7", "threshold = -8", "it was changed"),
            ("threshold = -7", "threshold = 99999", "threshold 99999"),
            ("place = \"teachers\"", "place = \"server\"", "it was changed"),
            ("place = \"teachers\"", "place = \"student\"", "unknown variant"),
            ("discrete-laplace", "gaussian", "expected one of discrete-laplace"),
            ("gamma = 0.1", "gamma = 0.2", "it was changed"),
            ("gamma = 0.1", "gamma = 0.05", "this noise needs at least"),
            ("gamma = 0.1", "gamma = nan", "gamma is NaN"),
            ("gamma = 0.1", "gamma = 0.0001", "a number from 0.001"),
            ("key = \"ab", "key = \"ac", "it was changed"),
            ("key = \"ab", "key = \"", "64 hexadecimal digits"),
            ("[noise]", "[noise]\nextra = 1", "unknown field"),
            ("[[teacher]]", "[[teachers]]", "unknown field"),
        ] {
            refused(&text, from, to, words);
        }
        let named = |names: &str| text.replacen("classes = 10\n", &format!("classes = 3\nclass_names = {names}\n"), 1);
        for (names, words) in [
            ("[\"0\", \"1\", \"2\"]", "leave it out"),
            ("[\"a\", \"b\"]", "a name for each of 3 classes, found 2"),
            ("[\"a\", \"b\", \"a\"]", "found \"a\" and \"a\""),
            ("[\"a\", \"b\", \"A\"]", "cannot be taken for one another"),
            ("[\"a\", \"b\", \" c\"]", "visible characters"),
        ] {
            let error = RoundFile::from_toml(&named(names)).expect_err(names).to_string();
            assert!(error.contains(words), "{names}: {error}");
        }
        let list = ["left", "right", "none"].map(str::to_owned).to_vec();
        let classes = Classes::named(list.clone()).expect("names");
        let text = build(&Terms { classes, ..terms_with(file().noise()) }).expect("valid").to_toml();
        assert_eq!(RoundFile::from_toml(&text).expect("valid").classes().names(), Some(&list[..]));
        for (from, to) in
            [("\"left\"", "\"lift\""), ("\"left\", \"right\"", "\"right\", \"left\""), ("class_names = ", "# ")]
        {
            refused(&text, from, to, "it was changed");
        }
        let text = file().to_toml();
        for length in 0..text.len() - 2 {
            assert!(RoundFile::from_toml(&text[..length]).is_err(), "cut to {length}: {}", &text[..length]);
        }
    }
}
