//! The result of a classification against true labels: accuracy of all images and of each class, the confusion matrix, and
//! the ranking of two classes.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};
use speed_core::printable;

use crate::report::statistics::{Interval, share};
use crate::report::table::{NO_VALUE, Table, percent};
use crate::report::two_classes::TwoClasses;

/// Largest number of classes, because labels are bytes.
pub(crate) const MAX_CLASSES: usize = 256;

/// Ratio of the numbers of images of two classes from which the accuracy of all images may mislead.
const UNEQUAL: u64 = 2;

/// Largest count of a file, so that sums and quotients are exact.
const MAX_COUNT: u64 = 1 << 40;

/// A reason for which labels or a file are not a classification.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct ClassificationError(String);

/// Returns the error of too few or too many names of classes.
fn other_number(min: usize, max: usize, found: usize) -> ClassificationError {
    ClassificationError(format!("expected the names of {min} to {max} classes, found {found}"))
}

/// The result of a classification: the number of images for each true and each predicted class.
///
/// As JSON it is an object with `images`, `right`, `accuracy`, `interval`, `balanced_accuracy`, `classes` (a list of
/// [`ClassResult`]), `confusion` and, if the images of two classes were ranked, `two_classes`. When it is read, the other
/// values must be those of `confusion`, and `two_classes` must be possible with it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "Written", into = "Written")]
pub struct Classification {
    names: Vec<String>,
    /// Counts by true class and predicted class.
    pub(crate) confusion: Vec<Vec<u64>>,
    /// The ranking of the images of two classes, if they were ranked.
    pub(crate) two_classes: Option<TwoClasses>,
}

/// The result for the images of one class.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ClassResult {
    /// Name of the class.
    pub name: String,
    /// Number of images of the class.
    pub images: u64,
    /// Number of them that were classified right.
    pub right: u64,
    /// Share of right ones (recall), 0 to 1; `None` without images.
    pub accuracy: Option<f64>,
    /// Its Wilson interval at 95 %.
    pub interval: Option<Interval>,
    /// Number of images of any class that were classified as this class.
    pub predicted: u64,
    /// Share of right ones among `predicted`, 0 to 1; `None` if the class was never predicted.
    pub precision: Option<f64>,
}

impl Classification {
    /// Counts pairs of true and predicted labels of classes with these names.
    /// Fails if the number of classes is not from 1 to 256, a name is empty or not unique, or a label is not a class.
    pub(crate) fn new(
        names: impl IntoIterator<Item = impl Into<String>>,
        labels: impl IntoIterator<Item = (u8, u8)>,
    ) -> Result<Self, ClassificationError> {
        let names: Vec<String> = names.into_iter().map(Into::into).collect();
        check_class_names(&names)?;
        let mut confusion = vec![vec![0; names.len()]; names.len()];
        for (position, (truth, predicted)) in labels.into_iter().enumerate() {
            let max = names.len() - 1;
            for (kind, found) in [("true", truth), ("predicted", predicted)] {
                if usize::from(found) > max {
                    let expected = format!("expected a class from 0 to {max}, found {found}");
                    return Err(ClassificationError(format!("{kind} label {position}: {expected}")));
                }
            }
            confusion[usize::from(truth)][usize::from(predicted)] += 1;
        }
        Ok(Self { names, confusion, two_classes: None })
    }

    /// Counts predictions, and ranks the images of two classes by their margins, of which there are none for other numbers of classes.
    /// All are in the order of the images.
    pub(crate) fn ranked(
        names: impl IntoIterator<Item = impl Into<String>>,
        [truth, predicted]: [&[u8]; 2],
        margins: &[f64],
        threshold: f64,
    ) -> Result<Self, ClassificationError> {
        let result = Self::new(names, truth.iter().copied().zip(predicted.iter().copied()))?;
        let images: Vec<(u8, f64)> = truth.iter().copied().zip(margins.iter().copied()).collect();
        let is_complete = result.names.len() == 2 && u64::try_from(images.len()) == Ok(result.images());
        let two_classes = if is_complete { TwoClasses::new(&images, threshold) } else { None };
        Ok(Self { two_classes, ..result })
    }

    pub(crate) fn with_names(self, names: &[String]) -> Result<Self, ClassificationError> {
        check_class_names(names)?;
        if names.len() != self.names.len() {
            return Err(other_number(self.names.len(), self.names.len(), names.len()));
        }
        Ok(Self { names: names.to_vec(), ..self })
    }

    /// Returns the names of the classes.
    pub fn names(&self) -> &[String] {
        &self.names
    }

    pub(crate) fn images(&self) -> u64 {
        self.confusion.iter().flatten().sum()
    }

    pub(crate) fn right(&self) -> u64 {
        (0..self.names.len()).map(|class| self.confusion[class][class]).sum()
    }

    /// Returns the share of images that were classified right, 0 to 1; `None` without images.
    pub(crate) fn accuracy(&self) -> Option<f64> {
        share(self.right(), self.images())
    }

    /// Returns the Wilson interval of the accuracy at 95 %.
    pub(crate) fn interval(&self) -> Option<Interval> {
        Interval::wilson(self.right(), self.images())
    }

    /// Returns the mean of the shares of right ones of all classes that have images, 0 to 1; `None` without images. Every
    /// class counts the same.
    pub(crate) fn balanced_accuracy(&self) -> Option<f64> {
        let recalls: Vec<f64> = self.classes().iter().filter_map(|class| class.accuracy).collect();
        #[expect(clippy::cast_precision_loss, reason = "at most 256 classes")]
        let count = recalls.len() as f64;
        (!recalls.is_empty()).then(|| recalls.iter().sum::<f64>() / count)
    }

    /// Returns whether a class has at least twice as many images as another one that has images, so the accuracy may mislead.
    pub(crate) fn is_unequal(&self) -> bool {
        let images = || self.confusion.iter().map(|row| row.iter().sum::<u64>()).filter(|images| *images > 0);
        images().min().zip(images().max()).is_some_and(|(least, most)| most >= UNEQUAL * least)
    }

    /// Returns the balanced accuracy and the ranking of two classes in words, and a warning about classes that have images of
    /// which none is right; one line for each.
    pub fn in_words(&self) -> Vec<String> {
        let mut lines = Vec::new();
        let Some(balanced) = self.balanced_accuracy() else { return lines };
        lines.push(format!("balanced accuracy, the mean over classes: {} %", percent(balanced)));
        if let (Some(ranked), Some(positive)) = (&self.two_classes, self.names.get(1)) {
            lines.push(ranked.in_words(&printable(positive)));
        }
        lines.extend(self.warning());
        lines
    }

    /// Returns a warning if classes have images of which none is right.
    pub(crate) fn warning(&self) -> Option<String> {
        let accuracy = self.accuracy().map(percent).unwrap_or_default();
        let missed = self.classes().into_iter().filter(|class| class.images > 0 && class.right == 0);
        let missed = missed.enumerate().map(|(place, class)| {
            let (images, name) = (if place == 0 { " images" } else { "" }, printable(&class.name));
            format!("{}{images} of {name}", class.images)
        });
        let missed = missed.collect::<Vec<_>>().join(", ");
        (!missed.is_empty()).then(|| {
            format!("WARNING: none of the {missed} is classified right, which the accuracy of {accuracy} % hides")
        })
    }

    pub(crate) fn classes(&self) -> Vec<ClassResult> {
        let class = |(class, name): (usize, &String)| {
            let (images, right) = (self.confusion[class].iter().sum(), self.confusion[class][class]);
            let predicted = self.confusion.iter().map(|row| row[class]).sum();
            ClassResult {
                name: name.clone(),
                images,
                right,
                accuracy: share(right, images),
                interval: Interval::wilson(right, images),
                predicted,
                precision: share(right, predicted),
            }
        };
        self.names.iter().enumerate().map(class).collect()
    }

    /// Returns the confusions as (true class, predicted class, images), the most frequent first.
    pub fn confusions(&self) -> Vec<(usize, usize, u64)> {
        let row = |(truth, row): (usize, &Vec<u64>)| -> Vec<(usize, usize, u64)> {
            let cells = row.iter().enumerate().filter(|&(predicted, &count)| predicted != truth && count > 0);
            cells.map(|(predicted, &count)| (truth, predicted, count)).collect()
        };
        let mut all: Vec<_> = self.confusion.iter().enumerate().flat_map(row).collect();
        all.sort_by_key(|&(_, _, count)| std::cmp::Reverse(count));
        all
    }

    /// Returns the results by class as a table, with all images in the last row; shares are percentages.
    pub fn table(&self) -> Table {
        let mut table =
            Table::new(["class", "images", "right", "accuracy %", "95 % interval", "predicted", "precision %"]);
        let share = |share: Option<f64>| share.map_or_else(|| NO_VALUE.to_owned(), percent);
        let interval = |interval: Option<Interval>| {
            let text = |Interval { low, high }: Interval| format!("{} to {}", percent(low), percent(high));
            interval.map_or_else(|| NO_VALUE.to_owned(), text)
        };
        let (images, right, name) = (self.images(), self.right(), "all classes".to_owned());
        let (accuracy, range) = (self.accuracy(), self.interval());
        let all = ClassResult { name, images, right, accuracy, interval: range, predicted: images, precision: None };
        for class in self.classes().into_iter().chain([all]) {
            let ClassResult { name, images, right, accuracy, interval: range, predicted, precision } = class;
            let [images, right, predicted] = [images, right, predicted].map(|count| count.to_string());
            let cells = [images, right, share(accuracy), interval(range), predicted, share(precision)];
            table.push([printable(&name)].into_iter().chain(cells).collect());
        }
        table
    }

    /// Returns the confusion matrix as a table: a row for each true class, a column for each predicted class.
    pub(crate) fn confusion_table(&self) -> Table {
        let names = || self.names.iter().map(|name| printable(name));
        let mut table = Table::new(["true \\ predicted".to_owned()].into_iter().chain(names()));
        for (name, row) in names().zip(&self.confusion) {
            table.push([name].into_iter().chain(row.iter().map(u64::to_string)).collect());
        }
        table
    }
}

pub(crate) const CLASS_COLUMNS: [&str; 8] =
    ["class", "images", "right", "accuracy", "interval_low", "interval_high", "predicted", "precision"];

impl ClassResult {
    /// Returns the values of [`CLASS_COLUMNS`].
    pub(crate) fn cells(&self) -> [String; 8] {
        let share = |share: Option<f64>| share.map_or_else(String::new, |share| share.to_string());
        let Self { name, images, right, accuracy, interval, predicted, precision } = self;
        let [images, right, predicted] = [images, right, predicted].map(u64::to_string);
        let [low, high] = [interval.map(|ends| ends.low), interval.map(|ends| ends.high)].map(share);
        [printable(name), images, right, share(*accuracy), low, high, predicted, share(*precision)]
    }
}

/// Checks that these are the names of 1 to 256 classes, each different and not empty.
pub(crate) fn check_class_names(names: &[String]) -> Result<(), ClassificationError> {
    if !(1..=MAX_CLASSES).contains(&names.len()) {
        return Err(other_number(1, MAX_CLASSES, names.len()));
    }
    let mut earlier = BTreeSet::new();
    for (class, name) in names.iter().enumerate() {
        if name.is_empty() {
            let expected = "expected a name for each class";
            return Err(ClassificationError(format!("{expected}, found an empty one for class {class}")));
        }
        if !earlier.insert(name) {
            let found = format!("found {:?} for class {class} and an earlier one", printable(name));
            return Err(ClassificationError(format!("expected a different name for each class, {found}")));
        }
    }
    Ok(())
}

/// The JSON form.
#[derive(PartialEq, Serialize, Deserialize)]
struct Written {
    images: u64,
    right: u64,
    accuracy: Option<f64>,
    interval: Option<Interval>,
    /// Absent in older files.
    #[serde(skip_serializing_if = "Option::is_none")]
    balanced_accuracy: Option<f64>,
    classes: Vec<ClassResult>,
    confusion: Vec<Vec<u64>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    two_classes: Option<TwoClasses>,
}

impl From<Classification> for Written {
    fn from(result: Classification) -> Self {
        Self {
            images: result.images(),
            right: result.right(),
            accuracy: result.accuracy(),
            interval: result.interval(),
            balanced_accuracy: result.balanced_accuracy(),
            classes: result.classes(),
            confusion: result.confusion,
            two_classes: result.two_classes,
        }
    }
}

impl TryFrom<Written> for Classification {
    type Error = ClassificationError;

    fn try_from(written: Written) -> Result<Self, ClassificationError> {
        let names: Vec<String> = written.classes.iter().map(|class| class.name.clone()).collect();
        check_class_names(&names)?;
        let (classes, confusion) = (names.len(), &written.confusion);
        if confusion.len() != classes || confusion.iter().any(|row| row.len() != classes) {
            let expected = format!("expected {classes} rows of {classes} counts each, found another size");
            return Err(ClassificationError(format!("confusion matrix: {expected}")));
        }
        if let Some(&found) = confusion.iter().flatten().find(|&&count| count > MAX_COUNT) {
            let expected = format!("expected counts of at most {MAX_COUNT}, found {found}");
            return Err(ClassificationError(format!("confusion matrix: {expected}")));
        }
        if written.two_classes.as_ref().is_some_and(|ranked| !ranked.fits(confusion)) {
            let expected = "expected a ROC curve, its area and counts that the confusion matrix allows, found others";
            return Err(ClassificationError(format!("two_classes: {expected}")));
        }
        let result = Self { names, confusion: confusion.clone(), two_classes: written.two_classes.clone() };
        let mut expected = Written::from(result.clone());
        expected.balanced_accuracy = written.balanced_accuracy.and(expected.balanced_accuracy);
        if expected != written {
            let expected = "expected counts, accuracies and intervals of the confusion matrix, found others";
            return Err(ClassificationError(expected.to_owned()));
        }
        Ok(result)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    /// Three images of cats, of which two are right; one dog, classified as a cat; no bird.
    fn pets() -> Classification {
        Classification::new(["cat", "dog", "bi\u{202e}rd"], [(0, 0), (0, 2), (1, 0), (0, 0)]).expect("labels")
    }

    #[test]
    fn counts_and_shares() {
        let pets = pets();
        assert_eq!(pets.confusion, [[2, 0, 1], [1, 0, 0], [0, 0, 0]]);
        assert_eq!((pets.images(), pets.right(), pets.accuracy()), (4, 2, Some(0.5)));
        let [cat, dog, bird] = pets.classes().try_into().expect("three classes");
        assert_eq!((cat.images, cat.right, cat.predicted), (3, 2, 3));
        assert_eq!((cat.accuracy, cat.precision), (Some(2.0 / 3.0), Some(2.0 / 3.0)));
        assert_eq!(pets.confusions(), [(0, 2, 1), (1, 0, 1)]);
        assert_eq!(cat.interval, Interval::wilson(2, 3));
        // The dog was not recognised, and nothing was taken for a dog; there is no bird.
        assert_eq!((dog.accuracy, dog.precision), (Some(0.0), None));
        assert_eq!((bird.accuracy, bird.interval, bird.precision), (None, None, Some(0.0)));
    }

    #[test]
    fn texts_have_safe_names_and_no_value_without_images() {
        let pets = pets();
        let text = pets.table().to_text();
        let expected = "\
class          images   right   accuracy %    95 % interval   predicted   precision %
-------------------------------------------------------------------------------------
cat                 3       2        66.67   20.77 to 93.85           3         66.67
dog                 1       0         0.00    0.00 to 79.35           0             -
bi\\u{202e}rd        0       0            -                -           1          0.00
all classes         4       2        50.00   15.00 to 85.00           4             -
";
        assert_eq!(text, expected);
        let csv = crate::report::csv::write(CLASS_COLUMNS, pets.classes().iter().map(ClassResult::cells));
        assert!(csv.ends_with("dog,1,0,0,0,0.7934506856227626,0,\nbi\\u{202e}rd,0,0,,,,1,0\n"), "{csv}");
        assert!(csv.starts_with(
            "class,images,right,accuracy,interval_low,interval_high,predicted,precision\ncat,3,2,0.6666666666666666,"
        ));
        let matrix = "true \\ predicted,cat,dog,bi\\u{202e}rd\ncat,2,0,1\ndog,1,0,0\nbi\\u{202e}rd,0,0,0\n";
        assert_eq!(pets.confusion_table().to_csv(), matrix);
        assert!(!(text + &csv).contains("NaN"));
    }

    #[test]
    fn the_balanced_accuracy_is_the_mean_over_classes_with_images() {
        // Two of three cats, no dog of one, and no bird.
        assert_eq!(pets().balanced_accuracy(), Some((2.0 / 3.0) / 2.0));
        assert_eq!(
            pets().in_words(),
            [
                "balanced accuracy, the mean over classes: 33.33 %",
                "WARNING: none of the 1 images of dog is classified right, which the accuracy of 50.00 % hides",
            ]
        );
        assert!(pets().is_unequal());
        let even = Classification::new(["cat", "dog"], [(0, 0), (1, 0)]).expect("labels");
        assert!(!even.is_unequal());
        let none = Classification::new(["cat", "dog"], []).expect("no labels");
        assert_eq!((none.balanced_accuracy(), none.is_unequal(), none.in_words()), (None, false, Vec::new()));
    }

    #[test]
    fn a_rare_class_that_is_never_found_is_named() {
        let truth: Vec<u8> = (0..100).map(|image| u8::from(image >= 95)).collect();
        let margins: Vec<f64> = (0..100).map(|image| f64::from(image) / 10.0 - 20.0).collect();
        let result =
            Classification::ranked(["well", "si\u{202e}ck"], [&truth, &[0; 100]], &margins, 0.5).expect("labels");
        assert_eq!((result.accuracy(), result.balanced_accuracy()), (Some(0.95), Some(0.5)));
        assert_eq!(
            result.in_words(),
            [
                "balanced accuracy, the mean over classes: 50.00 %",
                "AUC 1.0000 for si\\u{202e}ck; above a probability of 0.5 of si\\u{202e}ck: 0 of its 5 images, and 0 of 95 others",
                "WARNING: none of the 5 images of si\\u{202e}ck is classified right, which the accuracy of 95.00 % hides",
            ]
        );
        // Wilson intervals of 0 of 5: statsmodels 0.15.0, proportion_confint(0, 5, 0.05, "wilson").
        let [_, sick] = result.classes().try_into().expect("two classes");
        assert!((sick.interval.expect("images").high - 0.434_482).abs() < 1e-6, "{sick:?}");
        let written = json!(result);
        assert_eq!(serde_json::from_value::<Classification>(written.clone()).expect("the same"), result);
        let mut changed = written.clone();
        changed["two_classes"]["auc"] = json!(0.25);
        let error = serde_json::from_value::<Classification>(changed).expect_err("another area").to_string();
        assert!(error.starts_with("two_classes: expected a ROC curve"), "{error}");
        let mut older = written;
        older.as_object_mut().expect("an object").retain(|key, _| key != "two_classes" && key != "balanced_accuracy");
        let older: Classification = serde_json::from_value(older).expect("an older file");
        assert_eq!((older.balanced_accuracy(), older.two_classes), (Some(0.5), None));
    }

    #[test]
    fn json_is_read_back() {
        let written = json!(pets());
        assert_eq!(written["accuracy"], json!(0.5));
        assert_eq!(written["classes"][2]["accuracy"], Value::Null);
        assert_eq!(serde_json::from_value::<Classification>(written.clone()).expect("the same"), pets());
        let refused = |change: &dyn Fn(&mut Value)| {
            let mut changed = written.clone();
            change(&mut changed);
            serde_json::from_value::<Classification>(changed).expect_err("a change").to_string()
        };
        let error = refused(&|value| value["confusion"] = json!([[1, 2, 3], [4, 5], [6, 7, 8]]));
        assert!(error.contains("expected 3 rows of 3 counts"), "{error}");
        let error = refused(&|value| value["confusion"][0][0] = json!(u64::MAX));
        assert!(error.contains("found 18446744073709551615"), "{error}");
        let error = refused(&|value| value["classes"][0]["accuracy"] = json!(1.0));
        assert!(error.contains("expected counts, accuracies and intervals of the confusion matrix"), "{error}");
        let error = refused(&|value| value["confusion"][0][0] = json!(3));
        assert!(error.contains("of the confusion matrix, found others"), "{error}");
        let error = refused(&|value| value["classes"][1]["name"] = json!("cat"));
        assert!(error.contains("\"cat\" for class 1"), "{error}");
    }

    #[test]
    fn labels_and_names_are_checked() {
        let pair = |names: &[&str], pair| Classification::new(names.iter().copied(), [(0, 0), pair]).map(drop);
        let error = |names: &[&str], labels| pair(names, labels).expect_err("labels or names").to_string();
        assert_eq!(error(&["a", "b"], (2, 0)), "true label 1: expected a class from 0 to 1, found 2");
        assert_eq!(error(&["a", "b"], (1, 9)), "predicted label 1: expected a class from 0 to 1, found 9");
        let number = |found| Err(other_number(1, 256, found));
        assert_eq!(pair(&[], (0, 0)), number(0));
        assert_eq!(error(&["a", ""], (0, 0)), "expected a name for each class, found an empty one for class 1");
        let names: Vec<String> = (0..257).map(|class| class.to_string()).collect();
        let all = |classes| Classification::new(names[..classes].iter(), [(255, 255)]);
        assert_eq!(all(257).map(drop), number(257));
        assert_eq!(all(256).map(|result| result.right()), Ok(1));
        let names = ["Katze", "Hund", "Vogel"].map(str::to_owned);
        let renamed = pets().with_names(&names).expect("three names");
        assert_eq!((renamed.names, renamed.confusion), (names.to_vec(), pets().confusion));
        let error = pets().with_names(&names[..2]).expect_err("two names").to_string();
        assert_eq!(error, "expected the names of 3 to 3 classes, found 2");
        let empty = Classification::new(["a"], []).expect("no images");
        assert_eq!((empty.accuracy(), empty.interval()), (None, None));
        assert!(empty.table().to_csv().contains("all classes,0,0,-,-,0,-"));
    }
}
