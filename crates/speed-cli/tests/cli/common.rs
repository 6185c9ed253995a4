//! A tiny experiment, and helpers that run the binary as a user does.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::Value;
use speed_core::Digest;
use speed_core::fixture::{copy_folder, fixture};
use tempfile::TempDir;

/// A config for an experiment from images to table in a few seconds. The generation of keys would take most of the time, so
/// only [`encrypted`] answers on ciphertexts.
pub(crate) const TINY: &str = r#"
name = "tiny"
seed = 3

[data]
train_images = 300
test_images = 150
pool_images = 100

[ensemble]
teachers = 5

[teacher]
steps = 12
batch = 20

[queries]
count = 4

[noise]
gamma = 1.0
source = "simulation"

[student]
epochs = 4
epoch_images = 0

[student.pseudo_labels]
epochs = 4
warmup_epochs = 2
label_epochs = 3
labelled_batch = 4
batch = 20

[table]
repeats = 2

[[row]]
name = "Non-private"
aggregation = "non-private"

[[row]]
name = "Trusted"
aggregation = "trusted"

[[row]]
name = "tau = 0.8"
aggregation = "trusted"
honest_ratio = 0.8

[[row]]
name = "tau = 0.8, ours"
labels_of = "tau = 0.8"
student = "pseudo-labels"
"#;

/// Expects success of a program, and returns standard output.
#[track_caller]
pub(crate) fn succeeded(output: Output) -> String {
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("text")
}

/// Expects these parts of a JSON value: fields of objects, which may have more, and all elements of lists.
#[track_caller]
pub(crate) fn has(value: &Value, parts: &Value) {
    match parts {
        Value::Object(fields) => {
            for (name, part) in fields {
                has(value.get(name).unwrap_or_else(|| panic!("no field {name}: {value}")), part);
            }
        }
        Value::Array(elements) => {
            assert_eq!(value.as_array().map(Vec::len), Some(elements.len()), "{value}");
            for (at, part) in elements.iter().enumerate() {
                has(&value[at], part);
            }
        }
        part => assert_eq!(value, part),
    }
}

/// Returns the directory of the only sweep in this directory of an experiment.
#[track_caller]
pub(crate) fn sweep_folder(experiment: &Path) -> PathBuf {
    entries(experiment).into_iter().find(|path| path.join("sweep.json").exists()).expect("a sweep")
}

/// Returns [`TINY`] with a row on ciphertexts.
pub(crate) fn encrypted() -> String {
    let row = "name = \"tau = 0.8\"\naggregation = ";
    TINY.replace(&format!("{row}\"trusted\""), &format!("{row}\"encrypted\""))
}

/// The arguments of a command line: a text whose words are separated by blanks, or a list, whose words may contain blanks.
pub(crate) trait Line {
    fn words(&self) -> Vec<&str>;
}

impl Line for str {
    fn words(&self) -> Vec<&str> {
        self.split_whitespace().collect()
    }
}

impl Line for String {
    fn words(&self) -> Vec<&str> {
        self.as_str().words()
    }
}

impl Line for [&str] {
    fn words(&self) -> Vec<&str> {
        self.to_vec()
    }
}

impl<const N: usize> Line for [&str; N] {
    fn words(&self) -> Vec<&str> {
        self.to_vec()
    }
}

impl Line for Vec<&str> {
    fn words(&self) -> Vec<&str> {
        self.clone()
    }
}

impl<T: Line + ?Sized> Line for &T {
    fn words(&self) -> Vec<&str> {
        (*self).words()
    }
}

/// Returns [`TINY`] with one student of each kind, as a sweep over these keys.
pub(crate) fn swept(keys: &str) -> String {
    format!("{}\n[sweep]\n{keys}\n", TINY.replace("repeats = 2", "repeats = 1"))
}

/// The paths in a directory, which must exist.
#[track_caller]
pub(crate) fn entries(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    entries.map(|entry| entry.expect("an entry").path()).collect()
}

/// A directory with a config, in which the binary runs.
pub(crate) struct Workplace {
    folder: TempDir,
}

impl Workplace {
    pub(crate) fn new(config: &str) -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let has_blank = folder.path().to_string_lossy().contains(char::is_whitespace);
        assert!(!has_blank, "tests divide command lines at blanks: set TMPDIR to a path without one");
        fs::write(folder.path().join("config.toml"), config).expect("a config");
        Self { folder }
    }

    /// Makes a directory in which `speed run config.toml` has ended. The run happens once for a build of the program, and
    /// its results are copied.
    #[track_caller]
    pub(crate) fn finished(config: &str) -> Self {
        Self::finished_in(&format!("run-{}", Digest::of(config)), || Self::new(config))
    }

    /// The same for the directories that `new` makes; `name` names them.
    #[track_caller]
    pub(crate) fn finished_in(name: &str, new: impl Fn() -> Self) -> Self {
        let results = fixture(Path::new(env!("CARGO_BIN_EXE_speed")), name, |folder| {
            let first = new();
            first.succeeds(&["run", "config.toml"]);
            copy_folder(&first.path("results"), folder);
        });
        let place = new();
        copy_folder(&results, &place.path("results"));
        place
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Writes a file, and its folder.
    pub(crate) fn write(&self, name: &str, content: impl AsRef<[u8]>) {
        let path = self.path(name);
        fs::create_dir_all(path.parent().expect("a folder")).expect("folders");
        fs::write(path, content).expect(name);
    }

    #[track_caller]
    pub(crate) fn bytes(&self, name: &str) -> Vec<u8> {
        fs::read(self.path(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
    }

    #[track_caller]
    pub(crate) fn read(&self, name: &str) -> String {
        String::from_utf8(self.bytes(name)).expect("text")
    }

    pub(crate) fn command(&self, line: &(impl Line + ?Sized)) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_speed"));
        command.args(line.words()).current_dir(self.folder.path()).env_remove("SPEED_DATASETS");
        command
    }

    pub(crate) fn speed(&self, line: &(impl Line + ?Sized)) -> Output {
        self.command(line).output().expect("the binary starts")
    }

    /// Runs the binary, expects success, and returns standard output and standard error.
    #[track_caller]
    pub(crate) fn outputs(&self, line: &(impl Line + ?Sized)) -> (String, String) {
        let Output { status, stdout, stderr } = self.speed(line);
        let said = String::from_utf8(stderr).expect("text");
        assert!(status.success(), "{said}");
        (String::from_utf8(stdout).expect("text"), said)
    }

    /// Runs the binary, expects success, and returns standard output.
    #[track_caller]
    pub(crate) fn succeeds(&self, line: &(impl Line + ?Sized)) -> String {
        self.outputs(line).0
    }

    /// Runs the binary, expects success, and returns standard error.
    #[track_caller]
    pub(crate) fn says(&self, line: &(impl Line + ?Sized)) -> String {
        self.outputs(line).1
    }

    /// Returns standard output as JSON.
    #[track_caller]
    pub(crate) fn json(&self, line: &(impl Line + ?Sized)) -> Value {
        serde_json::from_str(&self.succeeds(line)).expect("JSON")
    }

    /// Runs the binary and expects this exit code and these words in one message.
    #[track_caller]
    pub(crate) fn fails(&self, line: &(impl Line + ?Sized), code: i32, words: &[&str]) {
        check_failure(&self.speed(line), code, words);
    }

    /// Returns the directory of the only run of `experiment` in `results`.
    #[track_caller]
    pub(crate) fn run_folder(&self, results: &str, experiment: &str) -> PathBuf {
        let runs: Vec<PathBuf> = entries(&self.path(results).join(experiment))
            .into_iter()
            // The experiment's ledger is a file beside the runs.
            .filter(|path| path.is_dir())
            .collect();
        assert_eq!(runs.len(), 1, "{runs:?}");
        runs[0].clone()
    }
}

/// Reads a file of JSON.
#[track_caller]
pub(crate) fn read_json(path: &Path) -> Value {
    let text = fs::read(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    serde_json::from_slice(&text).expect("JSON")
}

#[track_caller]
pub(crate) fn check_failure(output: &Output, code: i32, words: &[&str]) {
    let message = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(code), "{message}");
    // With --json the message is an object.
    let is_error = |line: &&str| line.starts_with("error: ") || line.starts_with("{\"schema\":1,\"error\":");
    let errors = message.lines().filter(is_error).count();
    assert_eq!(errors, 1, "one message, not {errors}: {message}");
    assert!(!message.contains("panicked"), "{message}");
    contains(&message, words);
}

/// Expects all of these words in a text.
#[track_caller]
pub(crate) fn contains(text: &str, words: &[&str]) {
    for word in words {
        assert!(text.contains(word), "{word:?} is not in {text:?}");
    }
}

/// Returns everything that config and seed determine: the tables, the labels, and the students' results.
#[track_caller]
pub(crate) fn determined(run: &Path) -> BTreeMap<String, Vec<u8>> {
    let mut files = BTreeMap::new();
    for name in ["tables/table.md", "tables/table.json"] {
        files.insert(name.to_owned(), fs::read(run.join(name)).expect(name));
    }
    for stage in entries(&run.join("stages")) {
        // Results that were set aside are kept in the same directory.
        if stage.file_name().is_some_and(|name| name.to_string_lossy().contains(".superseded")) {
            continue;
        }
        let record = read_json(&stage.join("stage.json"));
        for (name, hash) in record["outputs"].as_object().expect("outputs") {
            let key = format!("{}/{name} {hash}", stage.file_name().expect("name").to_string_lossy());
            files.insert(key, fs::read(stage.join(name)).expect("an output"));
        }
    }
    files
}

/// Returns the model files of a run's students, by their paths in its directory `models`.
#[track_caller]
pub(crate) fn models(run: &Path) -> BTreeMap<String, Vec<u8>> {
    let rows = fs::read_dir(run.join("models")).into_iter().flatten().map(|row| row.expect("an entry").path());
    let files = rows.filter(|row| row.is_dir()).flat_map(|row| entries(&row));
    let named = |path: PathBuf| {
        let name = path.strip_prefix(run).expect("a model of the run").to_string_lossy().into_owned();
        (name, fs::read(path).expect("a model"))
    };
    files.filter(|path| path.extension().is_some_and(|end| end == "safetensors")).map(named).collect()
}

/// Returns the options that set these keys.
pub(crate) fn sets(keys: &[&str]) -> String {
    keys.iter().map(|key| format!(" --set {key}")).collect()
}

impl Workplace {
    pub(crate) fn copy(&self, from: &str, to: &str) {
        fs::copy(self.path(from), self.path(to)).expect(to);
    }

    pub(crate) fn rename(&self, from: &str, to: &str) {
        fs::rename(self.path(from), self.path(to)).expect(to);
    }

    /// Runs the binary, expects success, and these words on standard error.
    #[track_caller]
    pub(crate) fn warns(&self, line: &(impl Line + ?Sized), words: &[&str]) {
        contains(&self.says(line), words);
    }
}

/// The permissions of a file.
#[cfg(unix)]
#[track_caller]
pub(crate) fn mode(path: &Path) -> u32 {
    use std::os::unix::fs::PermissionsExt as _;
    fs::metadata(path).unwrap_or_else(|error| panic!("{}: {error}", path.display())).permissions().mode() & 0o777
}
