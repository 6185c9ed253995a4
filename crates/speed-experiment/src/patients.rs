//! The patients of images: all images of a patient stay in one part.

mod division;

use std::collections::{BTreeSet, HashMap};
use std::path::{Path, PathBuf};

pub(crate) use division::Division;

use speed_core::vote_files::parse_pairs;
use speed_core::{Digest, alike, composed, printable};
use speed_data::Split;
use speed_data::pictures::patient_id;

use crate::config::{PatientRule, before_separator};
use crate::error::ExperimentError;
use crate::image_warnings::first_names;
use crate::store::read_text;

pub(crate) struct Patients {
    /// The id of the patient of every image.
    pub(crate) of_image: Vec<String>,
    /// Warnings about ids, which contain names of private images.
    pub(crate) warnings: Vec<String>,
}

impl Patients {
    pub(crate) fn count(&self) -> usize {
        self.of_image.iter().collect::<BTreeSet<_>>().len()
    }
}

/// Returns the patient of every image; without a rule, it is the digest of the pixels, so copies stay together. Warns of
/// ids that may be spellings of one id, and of copies of several patients.
///
/// Patients with copies are not merged: images of one person would then decide about the part of another.
pub(crate) fn patients(
    folder: &Path,
    names: &[String],
    images: &Split,
    rule: Option<&PatientRule>,
) -> Result<Patients, ExperimentError> {
    let digests: Vec<String> = (0..images.len()).map(|image| Digest::of(images.pixels(image)).to_string()).collect();
    let mut first = HashMap::new();
    let first: Vec<usize> = (0..).zip(&digests).map(|(image, digest)| *first.entry(digest).or_insert(image)).collect();
    let mut warnings: Vec<String> = contradictions(names, images.labels(), &first).into_iter().collect();
    let of_image: Vec<String> = match rule {
        None => return Ok(Patients { of_image: digests, warnings }),
        Some(PatientRule::Prefix(separator)) => {
            let prefix = |name: &String| {
                before_separator(file_name(name), separator).map(str::to_owned).ok_or_else(|| {
                    let expected =
                        format_args!("expected a name that begins with its patient and {separator:?}, found none");
                    let fault = format!("{expected}: rename it, or give a CSV file with the columns file and patient");
                    ExperimentError::input(folder.join(name), fault)
                })
            };
            names.iter().map(prefix).collect::<Result<_, _>>()?
        }
        Some(PatientRule::File(path)) => of_file(path, names)?,
        Some(PatientRule::Dicom) => {
            names.iter().map(|name| patient_id(&folder.join(name))).collect::<Result<_, _>>()?
        }
    };
    // File systems and keyboards write one name in several forms of Unicode.
    let of_image: Vec<String> = of_image.iter().map(|id| composed(id)).collect();
    let distinct: BTreeSet<&String> = of_image.iter().collect();
    // A file names the patient of DICOM, whose id may be a hospital's own.
    let shown = |id: &str| match of_image.iter().position(|of_image| of_image == id) {
        Some(image) if rule == Some(&PatientRule::Dicom) => format!("the patient of {}", printable(&names[image])),
        _ => printable(id),
    };
    for (other, id) in alike(distinct.iter().copied()).into_iter().chain(with_leading_zeros(&distinct)) {
        let (other, id) = (shown(other), shown(id));
        warnings.push(format!("{other} and {id} are two patients: give one patient one spelling"));
    }
    if distinct.len() == names.len() && names.len() > 1 {
        warnings.push("every image is of a patient of its own, so no images are kept together".to_owned());
    }
    let mut sizes: HashMap<&String, usize> = HashMap::new();
    of_image.iter().for_each(|id| *sizes.entry(id).or_default() += 1);
    if let Some((id, images)) = sizes.into_iter().max_by_key(|(_, images)| *images)
        && names.len() > 1
        && 2 * images > names.len()
    {
        warnings.push(format!(
            "{} has {images} of {} images: check the ids (spreadsheets shorten long numbers, as to 1.23457E+15)",
            if rule == Some(&PatientRule::Dicom) { shown(id) } else { format!("the patient {}", shown(id)) },
            names.len()
        ));
    }
    let copies: Vec<usize> = (0..names.len()).filter(|&image| of_image[first[image]] != of_image[image]).collect();
    if let Some(&copy) = copies.first() {
        warnings.push(format!(
            "{} images have the pixels of an image of another patient, {} of {}: if they show one person, this person is in several \
             parts, and no claim for one teacher covers it",
            copies.len(),
            first_names(&copies, |image| printable(&names[image])),
            printable(&names[first[copy]])
        ));
    }
    Ok(Patients { of_image, warnings })
}

/// Returns the paths of files relative to a directory, with `/` on every system.
pub(crate) fn relative(folder: &Path, files: &[PathBuf]) -> Vec<String> {
    let name = |file: &PathBuf| {
        let path = file.strip_prefix(folder).unwrap_or(file);
        path.components().map(|part| part.as_os_str().to_string_lossy()).collect::<Vec<_>>().join("/")
    };
    files.iter().map(name).collect()
}

/// Returns the pairs of numbers that differ in leading zeros, which spreadsheets drop.
fn with_leading_zeros<'a>(names: &BTreeSet<&'a String>) -> Vec<(&'a str, &'a str)> {
    let mut numbers = HashMap::new();
    let is_number = |name: &&'a String| name.bytes().all(|letter| letter.is_ascii_digit());
    let pair = |name: &'a String| Some((numbers.insert(name.trim_start_matches('0'), name.as_str())?, name.as_str()));
    names.iter().copied().filter(is_number).filter_map(pair).collect()
}

/// Returns the warning about images with the pixels of an image of another class. `first` is the first image with the pixels of each.
fn contradictions(names: &[String], labels: &[u8], first: &[usize]) -> Option<String> {
    let wrong: Vec<usize> = (0..names.len()).filter(|&image| labels[first[image]] != labels[image]).collect();
    let &image = wrong.first()?;
    let (earlier, image) = (printable(&names[first[image]]), printable(&names[image]));
    let count = wrong.len();
    Some(format!("{count} images have the pixels of an image of another class, as {image} those of {earlier}"))
}

fn of_file(path: &Path, names: &[String]) -> Result<Vec<String>, ExperimentError> {
    let parsed =
        parse_pairs(&read_text(path)?, &["file"], "patient").map_err(|fault| ExperimentError::input(path, fault))?;
    let patients: HashMap<String, String> = parsed.pairs.into_iter().map(|pair| (pair.key, pair.value)).collect();
    let mut count: HashMap<&str, usize> = HashMap::new();
    names.iter().for_each(|name| *count.entry(file_name(name)).or_default() += 1);
    let patient = |name: &String| {
        let own = || patients.get(file_name(name)).filter(|_| count[file_name(name)] == 1);
        let patient = patients.get(name).or_else(own).filter(|patient| !patient.is_empty());
        patient.cloned().ok_or_else(|| {
            let hint = "(columns file and patient; CLASS/FILE if names repeat)";
            let fault = format!("expected a patient of the image {:?}, found none {hint}", printable(name));
            ExperimentError::input(path, fault)
        })
    };
    names.iter().map(patient).collect()
}

fn file_name(name: &str) -> &str {
    name.rsplit('/').next().unwrap_or(name)
}

#[cfg(test)]
mod tests {
    use speed_data::ImageShape;

    use super::*;

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
            let rule = "prefix:_".parse().expect("a rule");
            patients(Path::new("images"), &names(files), &images(files.len()), Some(&rule)).map(|found| found.of_image)
        };
        assert_eq!(of(&["a_b/p7_left.png", "a_b/p8_x.png", "c/p7_right_1.png"]).expect("patients"), ["p7", "p8", "p7"]);
        // One name in two forms of Unicode.
        assert_eq!(of(&["M\u{fc}ller_1.png", "Mu\u{308}ller_2.png"]).expect("patients"), ["M\u{fc}ller"; 2]);
        for name in ["a_b/left.png", "c/_left.png"] {
            let error = of(&["a/p_1.png", name]).expect_err("no prefix").to_string();
            assert!(error.contains(name) && error.contains("\"_\""), "{error}");
        }
        // Without a rule the pixels decide: images 0 and 2 are copies.
        let found = patients(Path::new(""), &names(&["a", "b", "c"]), &images(3), None).expect("patients").of_image;
        assert!(found[0] == found[2] && found[0] != found[1], "{found:?}");
    }

    #[test]
    fn files_name_patients_by_path_or_by_a_name_of_its_own() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("patients.csv");
        let of = |text: &str, files: &[&str]| {
            std::fs::write(&path, text).expect("a file");
            let rule = PatientRule::File(path.clone());
            patients(folder.path(), &names(files), &images(files.len()), Some(&rule)).map(|found| found.of_image)
        };
        let table = "file,patient\na/1.png,x\nb/1.png,y\n2.png,x\nother.png,z\n";
        assert_eq!(of(table, &["a/1.png", "b/1.png", "b/2.png"]).expect("patients"), ["x", "y", "x"]);
        for (text, files, words) in [
            (table, &["a/2.png", "b/2.png"][..], "a/2.png"),
            (table, &["a/3.png"], "a/3.png"),
            ("file,patient\n1.png,\n", &["a/1.png"], "a/1.png"),
            ("file,group\n1.png,x\n", &["a/1.png"], "expected a column patient, found file, group"),
        ] {
            let error = of(text, files).expect_err("refused").to_string();
            assert!(error.contains(words) && error.contains("patients.csv"), "{error}");
        }
    }
}
