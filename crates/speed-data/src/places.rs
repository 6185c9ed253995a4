//! Directories that are searched for datasets.

use crate::{DataError, catalog, verify};
use std::env;
use std::path::{Path, PathBuf};

/// The environment variable that names the directory of datasets.
const VARIABLE: &str = "SPEED_DATASETS";
/// The subdirectory of the current directory that is searched last.
const DEFAULT: &str = "datasets";

/// Returns the directory that holds dataset `name`, for its loader.
///
/// With `explicit` (the option `--datasets`), only that directory is searched, because data must not silently come from
/// another directory if the option is mistyped. Otherwise the directory in the environment variable `SPEED_DATASETS` is
/// searched, then `./datasets`. A directory is accepted if it, or its subdirectory `name`, has at least one of the
/// dataset's files; the loader reports missing files.
///
/// # Errors
/// If the dataset is unknown, or [`DataError::NotFound`] with every directory searched and instructions to get the
/// files.
pub fn locate(name: &str, explicit: Option<&Path>) -> Result<PathBuf, DataError> {
    locate_in(name, places(explicit, folder_of_environment()))
}

/// Returns the directory in the environment variable `SPEED_DATASETS`; `None` if it is not set or empty.
pub fn folder_of_environment() -> Option<PathBuf> {
    env::var_os(VARIABLE).filter(|value| !value.is_empty()).map(PathBuf::from)
}

fn places(explicit: Option<&Path>, variable: Option<PathBuf>) -> Vec<PathBuf> {
    match explicit {
        Some(folder) => vec![folder.to_path_buf()],
        None => variable.into_iter().chain([PathBuf::from(".").join(DEFAULT)]).collect(),
    }
}

fn locate_in(name: &str, places: Vec<PathBuf>) -> Result<PathBuf, DataError> {
    let catalog = catalog::find(name)?;
    let holds = |place: &PathBuf| catalog.files.iter().any(|file| verify::find(catalog, file, place).is_some());
    match places.iter().find(|place| holds(place)) {
        Some(place) => Ok(place.clone()),
        None => Err(DataError::NotFound {
            name: catalog.name,
            looked: places.iter().flat_map(|place| [place.clone(), place.join(catalog.name)]).collect(),
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use tempfile::TempDir;

    fn folder_with(file: &str) -> TempDir {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let path = folder.path().join(file);
        fs::create_dir_all(path.parent().expect("a parent")).expect("a folder");
        fs::write(path, "").expect("a file");
        folder
    }

    #[test]
    fn the_first_place_that_has_a_file_wins() {
        let empty = tempfile::tempdir().expect("a temporary folder");
        let direct = folder_with("t10k-labels-idx1-ubyte.gz");
        let below = folder_with("mnist/train-images-idx3-ubyte");
        let at = |folder: &TempDir| folder.path().to_path_buf();
        let located = |places| locate_in("mnist", places).expect("a place has it");
        assert_eq!(located(vec![at(&empty), at(&below), at(&direct)]), at(&below));
        assert_eq!(located(vec![at(&direct), at(&below)]), at(&direct));
    }

    #[test]
    fn the_error_lists_every_place_and_the_command() {
        let places = vec![PathBuf::from("/nowhere/a"), PathBuf::from("./datasets")];
        let text = locate_in("mnist", places).expect_err("nothing there").to_string();
        for part in ["/nowhere/a,", "/nowhere/a/mnist", "./datasets,", "./datasets/mnist", "speed data fetch mnist"] {
            assert!(text.contains(part), "{part} in {text}");
        }
        let text = locate_in("cifar", vec![]).expect_err("unknown").to_string();
        assert!(text.contains("unknown dataset `cifar`"), "{text}");
    }

    #[test]
    fn the_option_overrides_the_variable_and_the_default() {
        let default = PathBuf::from("./datasets");
        assert_eq!(places(Some(Path::new("x")), Some("y".into())), [PathBuf::from("x")]);
        assert_eq!(places(None, Some("y".into())), [PathBuf::from("y"), default.clone()]);
        assert_eq!(places(None, None), [default]);
    }
}
