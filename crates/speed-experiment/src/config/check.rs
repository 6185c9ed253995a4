//! Which configs can run: every key by itself and with the others, before any work.

use speed_accountant::Delta;
use speed_data::ImageShape;
use speed_mechanism::{HonestRatio, InverseScale, NoiseShare};
use speed_nn::matrix::Arithmetic;
use speed_student::{InvalidData, StudentMethod};
use speed_teacher::TeacherError;

use super::schema::{
    AggregationKind, CircuitKind, ComputeDevice, Config, DataSource, QuerySelection, SCHEMA_VERSION, VotesSource,
};

/// Larger numbers are slips of the pen, and would not fit into memory or time.
const MOST_IMAGES: usize = 10_000_000;
const MOST_TEACHERS: usize = 1_000_000;
const MOST_REPEATS: usize = 10_000;
/// Bytes of a row's name.
const LONGEST_NAME: usize = 200;

/// A value that is not allowed: the key and what is.
type Fault = (String, String);

impl Config {
    /// Whether everything fits together.
    pub(super) fn check(&self) -> Result<(), Fault> {
        if self.schema != SCHEMA_VERSION {
            return fault("schema", format!("found {}, this version reads {SCHEMA_VERSION}", self.schema));
        }
        if self.name.is_empty() || !self.name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-' || b == b'_') {
            return fault("name", format!("{:?}: use letters, digits, '-' and '_'", self.name));
        }
        if self.arithmetic == Arithmetic::Portable && self.device != ComputeDevice::Cpu {
            return fault("arithmetic", "\"portable\" is the processor's: a device computes in its own way");
        }
        self.check_data()?;
        self.check_votes()?;
        self.teacher.check().map_err(|bad| (format!("teacher.{}", bad.field), bad.message))?;
        self.student.check().map_err(|bad| (format!("student.{}", bad.field), bad.message))?;
        // The teachers' shares as well: noise so wide has no table of them.
        let shares =
            InverseScale::new(self.noise.gamma).and_then(|gamma| NoiseShare::new(gamma, self.ensemble.teachers));
        if let Err(error) = shares {
            return fault("noise.gamma", error.to_string());
        }
        if let Err(error) = Delta::new(self.privacy.delta) {
            return fault("privacy.delta", error.to_string());
        }
        if !(self.privacy.budget >= 0.0 && self.privacy.budget.is_finite()) {
            return fault(
                "privacy.budget",
                format!("found {:?}, expected a number of at least 0", self.privacy.budget),
            );
        }
        self.check_rows()
    }

    fn check_data(&self) -> Result<(), Fault> {
        let data = &self.data;
        let sizes = [
            ("data.train_images", data.train_images, MOST_IMAGES),
            ("data.test_images", data.test_images, MOST_IMAGES),
            ("data.pool_images", data.pool_images, MOST_IMAGES),
            ("ensemble.teachers", self.ensemble.teachers, MOST_TEACHERS),
            ("table.repeats", self.table.repeats, MOST_REPEATS),
        ];
        if let Some((key, found, most)) = sizes.into_iter().find(|(_, found, most)| found > most) {
            return fault(key, format!("found {found}, expected at most {most}"));
        }
        if self.ensemble.teachers == 0 {
            return fault("ensemble.teachers", "found 0, expected at least 1");
        }
        if self.data.pool_images == 0 {
            return fault("data.pool_images", "found 0, expected at least 1");
        }
        if data.source == DataSource::Digits {
            if data.train_images < self.ensemble.teachers {
                return fault(
                    "ensemble.teachers",
                    format!("{} teachers share {} training images", self.ensemble.teachers, data.train_images),
                );
            }
            if data.pool_images >= data.test_images {
                return fault(
                    "data.pool_images",
                    format!(
                        "{} of {} test images leave none to measure the student",
                        data.pool_images, data.test_images
                    ),
                );
            }
        }
        if data.source == DataSource::None && self.table.repeats > 0 {
            return fault("table.repeats", "must be 0 where data.source = \"none\": a student needs images");
        }
        match data.source {
            DataSource::None => Ok(()),
            DataSource::Digits | DataSource::Mnist => {
                self.check_networks(ImageShape { channels: 1, height: 28, width: 28 })
            }
        }
    }

    /// Whether teachers and students can learn from images of this size.
    fn check_networks(&self, shape: ImageShape) -> Result<(), Fault> {
        if self.votes.source == VotesSource::Teachers
            && let Err(error) = self.teacher.check_images(shape)
        {
            let key = if matches!(error, TeacherError::ShiftTooLarge { .. }) { "shift" } else { "architecture" };
            return fault(&format!("teacher.{key}"), error.to_string());
        }
        let methods = self.row.iter().map(|row| self.method_of(row)).filter(|_| self.table.repeats > 0);
        for method in methods {
            if let Err(error) = self.student.check_images(method, shape, self.data.pool_images) {
                let key = match (&error, method) {
                    (InvalidData::SmallPool { .. }, StudentMethod::Gan) => "batch",
                    (InvalidData::SmallPool { .. }, StudentMethod::PseudoLabels) => "pseudo_labels.batch",
                    _ => "pseudo_labels.convolutions",
                };
                return fault(&format!("student.{key}"), error.to_string());
            }
        }
        Ok(())
    }

    fn check_votes(&self) -> Result<(), Fault> {
        let file_missing = self.votes.file.is_empty();
        match self.votes.source {
            VotesSource::File if file_missing => {
                return fault("votes.file", "votes.source = \"file\" needs the path of an .npy file");
            }
            VotesSource::Teachers | VotesSource::Uniform | VotesSource::Truth if !file_missing => {
                return fault("votes.file", "is read only with votes.source = \"file\"");
            }
            VotesSource::Teachers if self.data.source == DataSource::None => {
                return fault(
                    "votes.source",
                    "data.source = \"none\" leaves teachers without images: use \"file\" or \"uniform\"",
                );
            }
            VotesSource::Truth if self.data.source == DataSource::None => {
                return fault("votes.source", "data.source = \"none\" has no true labels: use \"file\" or \"uniform\"");
            }
            _ => {}
        }
        if self.queries.selection == QuerySelection::Balanced && self.data.source == DataSource::None {
            return fault("queries.selection", "data.source = \"none\" has no true labels to choose by");
        }
        if self.queries.count == 0 || self.queries.count > self.data.pool_images {
            return fault(
                "queries.count",
                format!("found {}, expected 1 to data.pool_images = {}", self.queries.count, self.data.pool_images),
            );
        }
        match (self.queries.selection, self.queries.file.is_empty()) {
            (QuerySelection::File, true) => fault("queries.file", "queries.selection = \"file\" needs a path"),
            (QuerySelection::Random | QuerySelection::First | QuerySelection::Balanced, false) => {
                fault("queries.file", "is read only with queries.selection = \"file\"")
            }
            _ => Ok(()),
        }
    }

    fn check_rows(&self) -> Result<(), Fault> {
        if self.row.is_empty() {
            return fault("row", "a table needs at least one [[row]]");
        }
        for (index, row) in self.row.iter().enumerate() {
            let key = |field: &str| format!("row.{index}.{field}");
            if row.name.trim().is_empty() {
                return fault(&key("name"), "every [[row]] needs a name");
            }
            if row.name.len() > LONGEST_NAME || row.name.chars().any(char::is_control) {
                return fault(
                    &key("name"),
                    format!("expected at most {LONGEST_NAME} bytes without control characters"),
                );
            }
            if self.row[..index].iter().any(|other| other.name == row.name) {
                return fault(&key("name"), format!("{:?} names two rows", row.name));
            }
            let noisy =
                HonestRatio::new(row.honest_ratio).and_then(|ratio| ratio.noisy_teachers(self.ensemble.teachers));
            if let Err(error) = noisy {
                return fault(&key("honest_ratio"), error.to_string());
            }
            if row.circuit != CircuitKind::Tournament && row.aggregation != AggregationKind::Encrypted {
                return fault(&key("circuit"), "is read only with aggregation = \"encrypted\": leave it out");
            }
            if row.circuit == CircuitKind::Paper && !self.is_simulation() {
                return fault(
                    &key("circuit"),
                    "\"paper\" is for comparison, with noise.source = \"simulation\": it is not exact, and what its wrong winners tell \
                     of the noisy counts no claim covers",
                );
            }
            if row.queries > self.queries.count {
                return fault(
                    &key("queries"),
                    format!("found {}, expected 0 (all) to queries.count = {}", row.queries, self.queries.count),
                );
            }
            if row.aggregation == AggregationKind::NonPrivate && row.honest_ratio < 1.0 {
                return fault(&key("honest_ratio"), "a non-private row has no noise to be honest about: leave it out");
            }
            if !row.labels_of.is_empty() {
                let Some(source) = self.row[..index].iter().find(|other| other.name == row.labels_of) else {
                    return fault(&key("labels_of"), format!("{:?} is no earlier row", row.labels_of));
                };
                if !source.labels_of.is_empty() {
                    return fault(
                        &key("labels_of"),
                        format!("{:?} has its labels from another row itself: name that one", row.labels_of),
                    );
                }
            }
            for (field, value) in [
                ("paper_epsilon", row.paper_epsilon),
                ("paper_accuracy", row.paper_accuracy),
                ("paper_deviation", row.paper_deviation),
                ("paper_minutes", row.paper_minutes),
            ] {
                if !(value.is_finite() && value >= 0.0) {
                    return fault(&key(field), format!("found {value:?}, expected a number of at least 0"));
                }
            }
        }
        Ok(())
    }
}

fn fault<T>(key: &str, message: impl Into<String>) -> Result<T, Fault> {
    Err((key.to_owned(), message.into()))
}
