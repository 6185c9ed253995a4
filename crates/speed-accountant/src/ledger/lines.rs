//! The lines of a ledger: an entry as JSON, and a checksum that also covers all earlier lines.

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::composition::MAX_QUERIES;
use crate::ledger::charge::{Charge, check_party};
use crate::ledger::statement::TornLine;
use crate::{Budget, PrivacyEvent};

pub(crate) const FORMAT: u32 = 1;

#[derive(Serialize, Deserialize)]
#[serde(tag = "entry", rename_all = "snake_case")]
pub(crate) enum Entry {
    Open {
        format: u32,
        #[serde(flatten)]
        budget: Budget,
    },
    Charge(Charge),
}

impl Entry {
    pub(crate) fn to_line(&self, before: &str) -> Result<String, serde_json::Error> {
        let entry = serde_json::to_string(self)?;
        Ok(format!("{entry} {}\n", chained(before, &entry)))
    }
}

pub(crate) struct Contents {
    pub(crate) budget: Budget,
    pub(crate) charges: Vec<Charge>,
    pub(crate) checksum: String,
    /// The end of the last charge, where the next one is written.
    pub(crate) end: u64,
    pub(crate) missing: String,
    pub(crate) torn: Option<TornLine>,
}

impl Contents {
    /// Parses and checks every line. An error contains the number of the damaged line, from 1.
    pub(crate) fn parse(bytes: &[u8]) -> Result<Self, (usize, String)> {
        // Bytes after the last line end are a write that a crash cut short, or a line whose end an editor or a transfer removed.
        let whole = bytes.iter().rposition(|&byte| byte == b'\n').map_or(0, |last| last + 1);
        let text = std::str::from_utf8(&bytes[..whole]).map_err(|error| (1, error.to_string()))?;
        // An editor may have added a byte order mark.
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        // A last line whose entry is complete counts, because its queries may have been answered.
        let before =
            text.lines().next_back().and_then(|line| line.rsplit_once(' ')).map_or("", |(_, checksum)| checksum);
        let rest = std::str::from_utf8(&bytes[whole..]).unwrap_or_default();
        let rest = rest.trim_end_matches(|letter: char| letter.is_whitespace() || letter == '\0');
        let missing = missing_end(rest, before);
        let last = missing.as_ref().map(|missing| format!("{rest}{missing}"));
        let (mut budget, mut charges, mut checksum, mut charged) = (None, Vec::new(), String::new(), 0usize);
        for (index, line) in text.lines().chain(last.as_deref().map(str::trim_end)).enumerate() {
            let number = index + 1;
            match entry(line, &mut checksum).map_err(|damage| (number, damage))? {
                Entry::Open { format: FORMAT, budget: opened } if index == 0 => budget = Some(opened),
                Entry::Open { format, .. } => {
                    let damage = format!("expected one opening line of format {FORMAT}, found format {format}");
                    return Err((number, damage));
                }
                Entry::Charge(charge) => {
                    charged = charged.saturating_add(charge.queries);
                    check(&charge, charged).map_err(|damage| (number, damage))?;
                    charges.push(charge);
                }
            }
        }
        let budget = budget.ok_or_else(|| (1, "expected an opening line with the budget".to_owned()))?;
        let end = if missing.is_some() { whole + rest.len() } else { whole };
        let is_torn = missing.is_none() && end < bytes.len();
        let torn = is_torn.then(|| TornLine { line: charges.len() + 2, bytes: (bytes.len() - end) as u64 });
        Ok(Self { budget, charges, checksum, end: end as u64, missing: missing.unwrap_or_default(), torn })
    }
}

/// Returns the missing end of a last line, if its entry is complete. `before` is the checksum of the line before.
fn missing_end(line: &str, before: &str) -> Option<String> {
    let is_entry = |text: &str| serde_json::from_str::<Entry>(text).is_ok();
    let entry = match line.rsplit_once(' ') {
        Some((entry, _)) if is_entry(entry) => entry,
        _ if is_entry(line) => line,
        _ => return None,
    };
    let checksum = format!(" {}", chained(before, entry));
    // Nothing is added to another end, which is then refused like the end of any line.
    let missing = checksum.strip_prefix(&line[entry.len()..]).unwrap_or_default();
    Some(format!("{missing}\n"))
}

/// Parses one line. `checksum` holds the previous line's checksum and is replaced by this line's.
fn entry(line: &str, checksum: &mut String) -> Result<Entry, String> {
    let (entry, found) = line.rsplit_once(' ').ok_or("expected an entry and a checksum")?;
    let expected = chained(checksum, entry);
    if found != expected {
        return Err(format!("checksum is {found}, expected {expected}: a line was changed or is missing"));
    }
    *checksum = expected;
    serde_json::from_str(entry).map_err(|error| error.to_string())
}

/// Checks a charge; `charged` is the number of queries including it.
fn check(charge: &Charge, charged: usize) -> Result<(), String> {
    if charged > MAX_QUERIES {
        return Err(format!("{charged} queries are charged, expected at most {MAX_QUERIES}"));
    }
    let event = PrivacyEvent::new(charge.mechanism, charge.tau);
    if let Some(found) = charge.threshold.filter(|threshold| event.with_threshold(*threshold).is_err()) {
        return Err(format!(
            "threshold is {found:?}, expected a number of votes up to 1e15, and an integer for integer noise"
        ));
    }
    if charge.is_check && charge.threshold.is_none() {
        return Err("check is true, but there is no threshold: expected a number of votes".to_owned());
    }
    check_party(charge.party_teachers as usize, charge.teachers.map(|teachers| teachers as usize), charge.classes)?;
    let found = charge.sampling_total_variation;
    match (0.0..=1.0).contains(&found) {
        true => Ok(()),
        false => Err(format!("sampling_distance is {found}, expected a number from 0 to 1")),
    }
}

fn chained(before: &str, entry: &str) -> String {
    hex::encode(Sha256::new().chain_update(before).chain_update("\n").chain_update(entry).finalize())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use speed_mechanism::{HonestRatio, InverseScale, Mechanism};

    use super::*;
    use crate::Delta;

    fn charges() -> impl Strategy<Value = Vec<Charge>> {
        let charge =
            (".{0,12}", 1usize..1_000, 1e-3f64..10.0, 0.01f64..=1.0, proptest::option::of(2usize..20), 0.0f64..=1.0);
        let charge = charge.prop_map(|(label, queries, gamma, tau, classes, distance)| Charge {
            question: label.chars().rev().collect(),
            noise_digest: format!("{queries:x}"),
            label,
            queries,
            mechanism: Mechanism::discrete_laplace(InverseScale::new(gamma).expect("in range")),
            tau: HonestRatio::new(tau).expect("in range"),
            classes,
            threshold: classes.map(|classes| classes as f64),
            is_check: classes.is_some_and(|classes| classes % 2 == 0),
            sampling_total_variation: distance,
            per_query_epsilon: 2.0 * gamma,
            party_teachers: classes.map_or(1, |classes| classes as u32 / 2),
            teachers: classes.filter(|classes| *classes > 3).map(|_| 10),
        });
        proptest::collection::vec(charge, 0..5)
    }

    fn one_query() -> Charge {
        Charge {
            label: String::new(),
            queries: 1,
            mechanism: Mechanism::discrete_laplace(InverseScale::new(0.1).expect("in range")),
            tau: HonestRatio::ALL,
            classes: None,
            threshold: None,
            is_check: false,
            sampling_total_variation: 0.0,
            per_query_epsilon: 0.2,
            party_teachers: 1,
            teachers: None,
            question: String::new(),
            noise_digest: String::new(),
        }
    }

    fn file(charges: &[Charge]) -> Vec<u8> {
        let budget = Budget { epsilon: Some(3.0), delta: Delta::new(1e-5).expect("a delta") };
        let mut text = String::new();
        let mut checksum = String::new();
        for entry in
            std::iter::once(Entry::Open { format: FORMAT, budget }).chain(charges.iter().cloned().map(Entry::Charge))
        {
            let line = entry.to_line(&checksum).expect("a line");
            checksum = line.trim_end().rsplit(' ').next().expect("a checksum").to_owned();
            text.push_str(&line);
        }
        text.into_bytes()
    }

    fn refused(bytes: &[u8]) -> (usize, String) {
        Contents::parse(bytes).err().expect("a damaged ledger")
    }

    #[test]
    fn a_ledger_of_another_version_is_refused() {
        let budget = Budget { epsilon: None, delta: Delta::new(1e-5).expect("a delta") };
        let line = Entry::Open { format: 2, budget }.to_line("").expect("a line");
        assert_eq!(refused(line.as_bytes()), (1, "expected one opening line of format 1, found format 2".to_owned()));
    }

    #[test]
    fn a_threshold_that_no_noise_is_held_against_is_refused() {
        let charge = |threshold| Charge { classes: Some(2), threshold: Some(threshold), ..one_query() };
        assert!(Contents::parse(&file(&[charge(30.0)])).is_ok());
        for found in [0.5, 1e16, -1e300] {
            let (line, damage) = refused(&file(&[charge(30.0), charge(found)]));
            assert!(line == 3 && damage.starts_with("threshold is"), "{found}: {damage}");
        }
        let check = Charge { threshold: None, is_check: true, ..charge(30.0) };
        let (line, damage) = refused(&file(&[check]));
        assert!(line == 2 && damage.starts_with("check is true, but there is no threshold"), "{damage}");
    }

    #[test]
    fn a_party_without_a_claim_is_refused() {
        let charge = |party_teachers, teachers, classes| Charge { party_teachers, teachers, classes, ..one_query() };
        for charge in [charge(1, None, None), charge(25, Some(25), Some(256)), charge(1 << 20, Some(u32::MAX), Some(2))]
        {
            assert!(Contents::parse(&file(&[charge])).is_ok());
        }
        let too_many = (1 << 20) + 1;
        for (found, max) in [(0, 5), (6, 5), (u32::MAX, 5), (too_many, 1 << 20)] {
            let teachers = if max == 5 { 5 } else { u32::MAX };
            let refused = refused(&file(&[charge(found, Some(teachers), Some(10))]));
            assert_eq!(refused, (2, format!("party_teachers is {found}, expected 1 to {max}")));
        }
        for (bad, expected) in [
            (charge(0, None, None), "party_teachers is 0, expected 1 to 1048576"),
            (charge(1, Some(0), None), "party_teachers is 1, expected 1 to 0"),
            (charge(2, None, Some(10)), "party_teachers is 2, but teachers is missing"),
            (charge(2, Some(2), None), "classes is unknown, expected 2 to 256"),
            (charge(2, Some(2), Some(257)), "classes is 257, expected 2 to 256"),
        ] {
            let (line, damage) = refused(&file(&[bad]));
            assert!(line == 2 && damage.starts_with(expected), "{damage}");
        }
        // Numbers that are none.
        let good = Entry::Charge(charge(25, Some(250), Some(10))).to_line("").expect("a line");
        let (good, _) = good.trim_end().rsplit_once(' ').expect("a checksum");
        for other in ["-1", "2.5", "4294967296", "\"25\"", "null"] {
            let text = good.replace("\"party_teachers\":25", &format!("\"party_teachers\":{other}"));
            assert_ne!(text, good);
            let bad = entry(&format!("{text} {}", chained("", &text)), &mut String::new());
            // The message of the parser.
            let is_named = |damage: String| damage.starts_with("invalid ") && damage.contains("expected u32");
            assert!(bad.is_err_and(is_named), "{other}");
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 48, failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn charges_round_trip(charges in charges()) {
            let bytes = file(&charges);
            let read = Contents::parse(&bytes).map_err(|(line, damage)| TestCaseError::fail(format!("{line}: {damage}")))?;
            prop_assert_eq!(read.charges, charges);
            prop_assert!(read.end == bytes.len() as u64 && read.torn.is_none());
        }

        #[test]
        fn a_ledger_with_one_changed_byte_is_refused(charges in charges(), place: prop::sample::Index, other in 1u8..) {
            let mut bytes = file(&charges);
            let place = place.index(bytes.len());
            bytes[place] ^= other;
            // Without its line end, the last line is torn.
            prop_assert!(Contents::parse(&bytes).map_or(true, |read| read.torn.is_some() && place + 1 == bytes.len()));
        }

        #[test]
        fn a_last_line_counts_from_its_complete_entry_on(charges in charges(), cut: prop::sample::Index) {
            let bytes = file(&charges);
            let start = bytes[..bytes.len() - 1].iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
            // A space, 64 digits and the line's end follow the entry.
            let cut = 1 + cut.index(bytes.len() - start - 1);
            // Editors leave spaces, or the first half of a line's end of Windows; crashes leave zeros.
            for end in ["", "\r", " \t", "\0\0"] {
                let left = [&bytes[..bytes.len() - cut], end.as_bytes()].concat();
                match Contents::parse(&left) {
                    Ok(read) if cut <= 66 => {
                        prop_assert_eq!(&read.charges, &charges);
                        prop_assert!(read.torn.is_none());
                        let whole = [&left[..read.end as usize], read.missing.as_bytes()].concat();
                        prop_assert_eq!(&whole, &bytes);
                    }
                    Ok(read) => prop_assert!(read.torn.is_some() && read.charges.len() + 1 == charges.len()),
                    // Without its first line nothing is a ledger.
                    Err(_) => prop_assert!(cut > 66 && charges.is_empty()),
                }
            }
            // Another end than that of its checksum is damage, and no line to replace.
            let other = [&bytes[..bytes.len() - 1], b"x"].concat();
            let is_damage = Contents::parse(&other).is_err_and(|(_, damage)| damage.starts_with("checksum is"));
            prop_assert!(is_damage);
        }

        #[test]
        fn random_bytes_are_refused(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
            prop_assert!(Contents::parse(&bytes).is_err());
        }
    }
}
