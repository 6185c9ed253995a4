//! Fake Slurm programs: scripts that record their calls.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::Value;

use crate::cli::common::{Workplace, succeeded};

/// A workplace with a fake cluster first on PATH. Its state is in files in `fake/`: `number`, the number of the last
/// job; `queue`, the output of squeue; `fails`, the step and the shard that fail; `now`, if jobs run at once.
pub(super) struct Cluster {
    pub(super) place: Workplace,
    folder: String,
}

/// Prints a number and, if `now` exists, runs the script as Slurm would, for each index of the array, unless an earlier
/// job failed.
const SBATCH: &str = r#"
number=$(( $(cat "$fake/number" 2>/dev/null || echo 0) + 1 ))
echo "$number" >"$fake/number"
echo "$number;a-cluster"
[ -e "$fake/now" ] || exit 0
[ -z "$(cat "$fake/failed" 2>/dev/null)" ] || exit 0
script="${!#}" indices="-" logs=.
for option in "$@"; do
    case "$option" in
        --array=*) indices=$(echo "${option#--array=}" | sed 's/%.*//; s/,/ /g') ;;
        --chdir=*) logs=${option#--chdir=} ;;
    esac
done
cd "$logs"
step=none shard=0
[ ! -e "$fake/fails" ] || read -r step shard <"$fake/fails"
for range in $indices; do
    for index in $(seq "${range%%-*}" "${range##*-}" 2>/dev/null || echo -); do
        [ "$indices" = - ] && index=-
        if [[ "$script" == *"/$step.sh" && "$index" = "$shard" ]]; then echo failed >"$fake/failed"; continue; fi
        [ "$index" = - ] || export SLURM_ARRAY_TASK_ID="$index"
        bash "$script" >>"$number.out" 2>&1 || echo failed >"$fake/failed"
    done
done
[ "$indices" != - ] || { bash "$script" >>"$number.out" 2>&1 || echo failed >"$fake/failed"; }
"#;

impl Cluster {
    /// Creates a cluster whose runs are in `folder`, which may have any name.
    pub(super) fn new(folder: &str, config: &str) -> Self {
        let cluster = Self { place: Workplace::new(config), folder: folder.to_owned() };
        fs::create_dir_all(cluster.path("fake")).expect("a folder");
        cluster.program("sbatch", SBATCH);
        cluster.program("squeue", "sed 's/$/|None/' \"$fake/queue\" 2>/dev/null || true");
        let none = "{ echo 'accounting storage is disabled' >&2; exit 1; }";
        cluster.program("sacct", &format!("cat \"$fake/accounts\" 2>/dev/null || {none}"));
        cluster.program("scancel", "");
        cluster
    }

    pub(super) fn path(&self, name: &str) -> PathBuf {
        if name == "results" { self.place.path(&self.folder).join(name) } else { self.place.path(name) }
    }

    /// Writes one of Slurm's programs. It records its arguments, with a NUL after each and a newline after all.
    pub(super) fn program(&self, name: &str, body: &str) {
        let folder = self.path("fake");
        let fake = folder.to_str().expect("text");
        let notes = format!("{{ printf '%s\\0' \"$@\"; echo; }} >>\"$fake/{name}.calls\"");
        let text = format!("#!/bin/bash\nset -eu\nfake='{fake}'\n{notes}\n{body}\n");
        let path = folder.join(name);
        fs::write(&path, text).expect("a script");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).expect("a mode");
    }

    pub(super) fn set(&self, name: &str, content: &str) {
        fs::write(self.path("fake").join(name), content).expect("written");
    }

    pub(super) fn fails(&self, step: &str, shard: usize) {
        self.set("fails", &format!("{step} {shard}\n"));
        self.set("failed", "");
    }

    /// Returns the arguments of every call of a program.
    pub(super) fn calls(&self, program: &str) -> Vec<Vec<String>> {
        let text = fs::read_to_string(self.path("fake").join(format!("{program}.calls"))).unwrap_or_default();
        let calls = text.split("\0\n").filter(|call| !call.is_empty());
        calls.map(|call| call.split('\0').map(str::to_owned).collect()).collect()
    }

    pub(super) fn command(&self, arguments: &[&str]) -> Command {
        let path = format!("{}:{}", self.path("fake").display(), std::env::var("PATH").expect("PATH"));
        let mut command = self.place.command(arguments);
        command.env("PATH", path);
        command
    }

    pub(super) fn submit(&self, options: &[&str]) -> Output {
        let results = self.path("results");
        let start = ["submit", "config.toml", "--slurm", "--results", results.to_str().expect("text")];
        self.command(&[&start, options].concat()).output().expect("the binary starts")
    }

    /// Submits, expects success, and returns standard output.
    #[track_caller]
    pub(super) fn submits(&self, options: &[&str]) -> String {
        succeeded(self.submit(options))
    }

    #[track_caller]
    pub(super) fn show(&self, run: &Path) -> String {
        succeeded(self.command(&["show", run.to_str().expect("text")]).output().expect("the binary starts"))
    }

    #[track_caller]
    pub(super) fn status(&self, run: &Path) -> Value {
        let shown = self.command(&["show", run.to_str().expect("text"), "--json"]).output().expect("the binary starts");
        serde_json::from_str(&succeeded(shown)).expect("JSON")
    }

    #[track_caller]
    pub(super) fn run_folder(&self) -> PathBuf {
        self.place.run_folder(&format!("{}/results", self.folder), "tiny")
    }

    pub(super) fn logs(&self, run: &Path) -> Vec<String> {
        let entries = fs::read_dir(run.join("slurm/logs")).into_iter().flatten().flatten();
        entries.filter_map(|entry| fs::read_to_string(entry.path()).ok()).collect()
    }
}
