//! Groups of images that stay together, such as those of one patient.

use std::collections::{BTreeSet, HashMap};
use std::path::{Path, PathBuf};

use speed_core::vote_files::parse_pairs;
use speed_core::{Digest, alike, composed, printable};
use speed_data::Split;

use super::read_text;
use crate::error::ExperimentError;
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

/// Returns the name of every image's group; without a rule, it is the digest of the pixels, so copies stay together. Reports names
/// of groups that may be spellings of one name, and copies in several groups.
///
/// Groups with copies are not merged: images of one person would then decide about the group of another.
///
/// # Errors
/// If the file of groups is wrong, or an image has no group.
pub(super) fn groups(
    folder: &Path,
    names: &[String],
    images: &Split,
    grouping: Option<&Grouping>,
    progress: &dyn Progress,
) -> Result<Vec<String>, ExperimentError> {
    let digests: Vec<String> = (0..images.len()).map(|image| Digest::of(images.pixels(image)).to_string()).collect();
    let mut first = HashMap::new();
    let first: Vec<usize> = (0..).zip(&digests).map(|(image, digest)| *first.entry(digest).or_insert(image)).collect();
    warn_of_contradictions(names, images.labels(), &first, progress);
    let groups: Vec<String> = match grouping {
        None => return Ok(digests),
        Some(Grouping::Prefix(separator)) => {
            let prefix = |name: &String| {
                let prefix = file_name(name).split_once(separator.as_str()).map(|(prefix, _)| prefix.to_owned());
                prefix.filter(|prefix| !prefix.is_empty()).ok_or_else(|| {
                    let expected =
                        format_args!("expected a name that begins with its group and {separator:?}, found none");
                    let fault = format!("{expected}: rename it, or give --groups");
                    ExperimentError::input(folder.join(name), fault)
                })
            };
            names.iter().map(prefix).collect::<Result<_, _>>()?
        }
        Some(Grouping::File(path)) => of_file(path, names)?,
    };
    // File systems and keyboards write one name in several forms of Unicode.
    let groups: Vec<String> = groups.iter().map(|group| composed(group)).collect();
    let distinct: BTreeSet<&String> = groups.iter().collect();
    for (other, name) in alike(distinct.iter().copied()).into_iter().chain(with_leading_zeros(&distinct)) {
        let (other, name) = (printable(other), printable(name));
        progress.warn(&format!("{other} and {name} are two groups: give one patient one spelling"));
    }
    if distinct.len() == names.len() && names.len() > 1 {
        progress.warn("every image is a group of its own, so no images are kept together");
    }
    let mut sizes: HashMap<&String, usize> = HashMap::new();
    groups.iter().for_each(|group| *sizes.entry(group).or_default() += 1);
    if let Some((group, images)) = sizes.into_iter().max_by_key(|(_, images)| *images)
        && names.len() > 1
        && 2 * images > names.len()
    {
        progress.warn(&format!(
            "the group {} has {images} of {} images: check the names of groups (spreadsheets shorten long numbers, as to 1.23457E+15)",
            printable(group),
            names.len()
        ));
    }
    let copies: Vec<usize> = (0..names.len()).filter(|&image| groups[first[image]] != groups[image]).collect();
    if let Some(&copy) = copies.first() {
        let (earlier, copy) = (printable(&names[first[copy]]), printable(&names[copy]));
        progress.warn(&format!(
            "{} images have the pixels of an image of another group, as {copy} those of {earlier}: if they show one person, \
             this person is in several groups, and no claim for one teacher covers it",
            copies.len()
        ));
    }
    Ok(groups)
}

/// Returns the pairs of numbers that differ in leading zeros, which spreadsheets drop.
fn with_leading_zeros<'a>(names: &BTreeSet<&'a String>) -> Vec<(&'a str, &'a str)> {
    let mut numbers = HashMap::new();
    let is_number = |name: &&'a String| name.bytes().all(|letter| letter.is_ascii_digit());
    let pair = |name: &'a String| Some((numbers.insert(name.trim_start_matches('0'), name.as_str())?, name.as_str()));
    names.iter().copied().filter(is_number).filter_map(pair).collect()
}

/// Warns of images with the pixels of an image of another class. `first` is the first image with the pixels of each.
fn warn_of_contradictions(names: &[String], labels: &[u8], first: &[usize], progress: &dyn Progress) {
    let wrong: Vec<usize> = (0..names.len()).filter(|&image| labels[first[image]] != labels[image]).collect();
    if let Some(&image) = wrong.first() {
        let (earlier, image) = (printable(&names[first[image]]), printable(&names[image]));
        let count = wrong.len();
        progress.warn(&format!(
            "{count} images have the pixels of an image of another class, as {image} those of {earlier}"
        ));
    }
}

/// Reads the group of every image.
fn of_file(path: &Path, names: &[String]) -> Result<Vec<String>, ExperimentError> {
    let parsed =
        parse_pairs(&read_text(path)?, &["file"], "group").map_err(|fault| ExperimentError::input(path, fault))?;
    let groups: HashMap<String, String> = parsed.pairs.into_iter().map(|pair| (pair.key, pair.value)).collect();
    let mut count: HashMap<&str, usize> = HashMap::new();
    names.iter().for_each(|name| *count.entry(file_name(name)).or_default() += 1);
    let group = |name: &String| {
        let own = || groups.get(file_name(name)).filter(|_| count[file_name(name)] == 1);
        let group = groups.get(name).or_else(own).filter(|group| !group.is_empty());
        group.cloned().ok_or_else(|| {
            let hint = "(columns file and group; CLASS/FILE if names repeat)";
            let fault = format!("expected a group of the image {:?}, found none {hint}", printable(name));
            ExperimentError::input(path, fault)
        })
    };
    names.iter().map(group).collect()
}

fn file_name(name: &str) -> &str {
    name.rsplit('/').next().unwrap_or(name)
}

#[cfg(test)]
mod tests {
    use speed_data::ImageShape;

    use super::*;
    use crate::progress::Silent;

    fn names(names: &[&str]) -> Vec<String> {
        names.iter().map(|name| (*name).to_owned()).collect()
    }

    /// Images of one pixel; every second one is dark.
    fn images(count: usize) -> Split {
        let pixels = (0..count).map(|image| (image % 2) as u8).collect();
        Split::new(ImageShape { channels: 1, height: 1, width: 1 }, 2, pixels, vec![0; count]).expect("images")
    }

    #[test]
    fn prefixes_are_of_the_files_name() {
        let of = |files: &[&str]| {
            let rule = Grouping::Prefix("_".into());
            groups(Path::new("images"), &names(files), &images(files.len()), Some(&rule), &Silent)
        };
        assert_eq!(of(&["a_b/p7_left.png", "a_b/p8_x.png", "c/p7_right_1.png"]).expect("groups"), ["p7", "p8", "p7"]);
        // One name in two forms of Unicode.
        assert_eq!(of(&["M\u{fc}ller_1.png", "Mu\u{308}ller_2.png"]).expect("groups"), ["M\u{fc}ller"; 2]);
        for name in ["a_b/left.png", "c/_left.png"] {
            let error = of(&["a/p_1.png", name]).expect_err("no prefix").to_string();
            assert!(error.contains(name) && error.contains("\"_\""), "{error}");
        }
        // Without a rule the pixels decide: images 0 and 2 are copies.
        let found = groups(Path::new(""), &names(&["a", "b", "c"]), &images(3), None, &Silent).expect("groups");
        assert!(found[0] == found[2] && found[0] != found[1], "{found:?}");
    }

    #[test]
    fn files_name_groups_by_path_or_by_a_name_of_its_own() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("groups.csv");
        let of = |text: &str, files: &[&str]| {
            std::fs::write(&path, text).expect("a file");
            groups(folder.path(), &names(files), &images(files.len()), Some(&Grouping::File(path.clone())), &Silent)
        };
        let table = "file,group\na/1.png,x\nb/1.png,y\n2.png,x\nother.png,z\n";
        assert_eq!(of(table, &["a/1.png", "b/1.png", "b/2.png"]).expect("groups"), ["x", "y", "x"]);
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
