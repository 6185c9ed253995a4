//! Groups of images that stay together, such as those of one patient.

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};

use speed_core::printable;
use speed_votes::parse_pairs;

use super::{at, read_text};
use crate::error::{ExperimentError, InputFault};
use crate::progress::Progress;

/// The rule that assigns images to groups.
#[derive(Clone, Debug)]
pub enum Grouping {
    /// The part of the file's name before the first occurrence of this text.
    Prefix(String),
    /// A CSV file with the columns `file` and `group`. A file is named by its path in the directory of the images, or by its
    /// own name if no other image has it.
    File(PathBuf),
}

/// Returns the number of every image's group, from 0; without a rule every image is a group. Reports names of groups that may
/// be spellings of one name.
///
/// # Errors
/// If the file of groups is wrong, or an image has no group.
pub(super) fn groups(
    folder: &Path,
    names: &[String],
    grouping: Option<&Grouping>,
    progress: &dyn Progress,
) -> Result<Vec<usize>, ExperimentError> {
    let keys: Vec<String> = match grouping {
        None => return Ok((0..names.len()).collect()),
        Some(Grouping::Prefix(separator)) => {
            let prefix = |name: &String| {
                let prefix = file_name(name).split_once(separator.as_str()).map(|(prefix, _)| prefix.to_owned());
                let fault = || InputFault::NoPrefix { separator: separator.clone() };
                prefix.filter(|prefix| !prefix.is_empty()).ok_or_else(|| at(&folder.join(name), fault()))
            };
            names.iter().map(prefix).collect::<Result<_, _>>()?
        }
        Some(Grouping::File(path)) => of_file(path, names)?,
    };
    let mut numbers = BTreeMap::new();
    let number = |key: String| {
        let next = numbers.len();
        *numbers.entry(key).or_insert(next)
    };
    let groups: Vec<usize> = keys.into_iter().map(number).collect();
    let mut lower = BTreeMap::new();
    for name in numbers.keys() {
        if let Some(other) = lower.insert(name.to_lowercase(), name) {
            let (other, name) = (printable(other), printable(name));
            progress.note(&format!("warning: {other} and {name} are two groups: give one patient one spelling"));
        }
    }
    if numbers.len() == names.len() && names.len() > 1 {
        progress.note("warning: every image is a group of its own, so no images are kept together");
    }
    Ok(groups)
}

/// Reads the group of every image.
fn of_file(path: &Path, names: &[String]) -> Result<Vec<String>, ExperimentError> {
    let parsed = parse_pairs(&read_text(path)?, &["file"], "group").map_err(|fault| at(path, fault))?;
    let groups: HashMap<String, String> = parsed.pairs.into_iter().map(|pair| (pair.key, pair.value)).collect();
    let mut count: HashMap<&str, usize> = HashMap::new();
    names.iter().for_each(|name| *count.entry(file_name(name)).or_default() += 1);
    let group = |name: &String| {
        let own = || groups.get(file_name(name)).filter(|_| count[file_name(name)] == 1);
        let group = groups.get(name).or_else(own).filter(|group| !group.is_empty());
        group.cloned().ok_or_else(|| at(path, InputFault::NoGroup { file: name.clone() }))
    };
    names.iter().map(group).collect()
}

fn file_name(name: &str) -> &str {
    name.rsplit('/').next().unwrap_or(name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::progress::Silent;

    fn names(names: &[&str]) -> Vec<String> {
        names.iter().map(|name| (*name).to_owned()).collect()
    }

    #[test]
    fn prefixes_are_of_the_files_name() {
        let of =
            |files: &[&str]| groups(Path::new("images"), &names(files), Some(&Grouping::Prefix("_".into())), &Silent);
        assert_eq!(of(&["a_b/p7_left.png", "a_b/p8_x.png", "c/p7_right_1.png"]).expect("groups"), [0, 1, 0]);
        for name in ["a_b/left.png", "c/_left.png"] {
            let error = of(&["a/p_1.png", name]).expect_err("no prefix").to_string();
            assert!(error.contains(name) && error.contains("\"_\""), "{error}");
        }
        assert_eq!(groups(Path::new(""), &names(&["a", "b"]), None, &Silent).expect("groups"), [0, 1]);
    }

    #[test]
    fn files_name_groups_by_path_or_by_a_name_of_its_own() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("groups.csv");
        let of = |text: &str, files: &[&str]| {
            std::fs::write(&path, text).expect("a file");
            groups(folder.path(), &names(files), Some(&Grouping::File(path.clone())), &Silent)
        };
        let table = "file,group\na/1.png,x\nb/1.png,y\n2.png,x\nother.png,z\n";
        assert_eq!(of(table, &["a/1.png", "b/1.png", "b/2.png"]).expect("groups"), [0, 1, 0]);
        for (text, files, words) in [
            (table, &["a/2.png", "b/2.png"][..], "a/2.png"),
            (table, &["a/3.png"], "a/3.png"),
            ("file,group\n1.png,\n", &["a/1.png"], "a/1.png"),
            ("file,patient\n1.png,x\n", &["a/1.png"], "expected a column group, found file, patient"),
        ] {
            let error = of(text, files).expect_err("refused").to_string();
            assert!(error.contains(words) && error.contains("groups.csv"), "{error}");
        }
    }
}
