//! Calls of Slurm's programs, by their names from PATH and without a shell. Their output is limited in length and
//! parsed strictly.

use std::io::{ErrorKind, Read};
use std::process::{Command, Stdio};

use speed_core::printable;

/// Limit of a program's output in bytes: about a hundred thousand tasks.
const MAX_OUTPUT: u64 = 8 << 20;
/// Limit of a program's error output in bytes.
const MAX_ERRORS: u64 = 64 << 10;

/// The largest number of characters of a program's output in a message.
const MAX_SHOWN: usize = 300;

#[derive(Debug)]
pub(crate) struct SlurmError {
    message: String,
    /// Whether the program does not exist, or did not end with code 0.
    is_refusal: bool,
}

impl std::fmt::Display for SlurmError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.message)
    }
}

/// Returns the beginning of a program's output in one line, escaped for terminal output.
fn shortened(output: &str) -> String {
    let output = printable(&output.trim().replace('\n', "; "));
    match output.char_indices().nth(MAX_SHOWN) {
        Some((end, _)) => format!("{}...", &output[..end]),
        None => output,
    }
}

/// A task of a job, or a job that is not an array, as Slurm reports it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Seen {
    /// The job's number; for a task, the number of its array.
    pub(crate) job: String,
    /// The number within the array.
    pub(crate) task: Option<usize>,
    /// Slurm's name of the state.
    pub(crate) state: String,
    /// Slurm's reason for a state of the queue.
    pub(crate) reason: Option<String>,
    /// The exit code and the signal, as Slurm writes them: `1:0`.
    pub(crate) exit_code: Option<String>,
}

impl Seen {
    /// Returns whether the task has not ended: it waits, runs, or may do so again. A preempted task that is still in the queue may be
    /// requeued; in the accounts it has ended.
    pub(crate) fn is_alive(&self) -> bool {
        if self.state == "PREEMPTED" && self.exit_code.is_none() {
            return true;
        }
        const ENDED: [&str; 11] = [
            "BOOT_FAIL",
            "CANCELLED",
            "COMPLETED",
            "DEADLINE",
            "FAILED",
            "LAUNCH_FAILED",
            "NODE_FAIL",
            "OUT_OF_MEMORY",
            "PREEMPTED",
            "REVOKED",
            "TIMEOUT",
        ];
        !ENDED.contains(&self.state.as_str())
    }

    /// Returns the command, or who must give it, that lets a held task go on; the job's number follows it. `None` for other tasks.
    pub(crate) fn needs(&self) -> Option<&'static str> {
        match (self.state.as_str(), self.reason.as_deref()) {
            ("REQUEUE_HOLD" | "SPECIAL_EXIT", _) | ("PENDING", Some("JobHeldUser")) => Some("scontrol release"),
            ("PENDING", Some("JobHeldAdmin")) => Some("by an administrator: scontrol release"),
            ("PENDING", Some("DependencyNeverSatisfied")) => Some("scancel, then the same `speed submit`:"),
            ("STOPPED", _) => Some("scancel --signal=CONT"),
            ("SUSPENDED", _) => Some("Slurm after a preemption, or by an administrator: scontrol resume"),
            _ => None,
        }
    }
}

/// Submits a script with these options of sbatch, and returns the job's number.
pub(crate) fn submit(arguments: &[String]) -> Result<String, SlurmError> {
    let output = call("sbatch", arguments)?;
    // With several clusters, the cluster's name follows the number.
    let number = output.trim_end().split(';').next().unwrap_or_default();
    match is_number(number) {
        true => Ok(number.to_owned()),
        false => Err(unexpected("sbatch", "a job's number", &output)),
    }
}

/// Lists this user's tasks that Slurm has not forgotten.
pub(crate) fn queue() -> Result<Vec<Seen>, SlurmError> {
    let arguments = ["--noheader", "--array", "--me", "--states=all", "--format=%F|%K|%T|%r"].map(str::to_owned);
    queued(&call("squeue", &arguments)?)
}

/// Lists the tasks of jobs from Slurm's accounting, or returns `None` if there is no accounting.
pub(crate) fn accounted(jobs: &[&str]) -> Result<Option<Vec<Seen>>, SlurmError> {
    let jobs = format!("--jobs={}", jobs.join(","));
    let arguments = ["--noheader", "--parsable2", "--allocations", &jobs, "--format=JobID,State,ExitCode"];
    match call("sacct", &arguments.map(str::to_owned)) {
        Ok(text) => accounts(&text).map(Some),
        Err(error) if error.is_refusal => Ok(None),
        Err(error) => Err(error),
    }
}

pub(crate) fn cancel(jobs: &[String]) -> Result<(), SlurmError> {
    call("scancel", jobs).map(drop)
}

fn call(program: &str, arguments: &[String]) -> Result<String, SlurmError> {
    let failed = |source: std::io::Error| match source.kind() {
        ErrorKind::NotFound => SlurmError {
            message: format!(
                "{program} is not on PATH: submit from a machine of the cluster, or install Slurm's programs (Debian and Ubuntu: \
                 slurm-client). --dry-run prints the scripts, which run by hand or under another scheduler too"
            ),
            is_refusal: true,
        },
        _ => SlurmError { message: format!("cannot run {program}: {source}"), is_refusal: false },
    };
    let mut command = Command::new(program);
    command.args(arguments).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().map_err(failed)?;
    let (stdout, stderr) = (child.stdout.take(), child.stderr.take());
    let (output, errors) = std::thread::scope(|scope| {
        let errors = scope.spawn(|| read(stderr, MAX_ERRORS));
        (read(stdout, MAX_OUTPUT + 1), errors.join().unwrap_or_default())
    });
    let status = child.wait().map_err(failed)?;
    if output.len() as u64 > MAX_OUTPUT {
        return Err(unexpected(program, "at most 8 MiB", &String::from_utf8_lossy(&output[..80])));
    }
    if !status.success() {
        let output = String::from_utf8_lossy(if errors.is_empty() { &output } else { &errors });
        let code = status.code().map_or_else(|| "by a signal".to_owned(), |code| format!("with code {code}"));
        let message = format!("{program} ended {code}: {}", shortened(&output));
        return Err(SlurmError { message, is_refusal: true });
    }
    String::from_utf8(output).map_err(|error| unexpected(program, "UTF-8 text", &error.to_string()))
}

/// Reads the beginning of the output and discards the rest, so that the program can end.
fn read(from: Option<impl Read>, limit: u64) -> Vec<u8> {
    let mut bytes = Vec::new();
    if let Some(mut from) = from {
        let _ = from.by_ref().take(limit).read_to_end(&mut bytes);
        let _ = std::io::copy(&mut from, &mut std::io::sink());
    }
    bytes
}

fn queued(text: &str) -> Result<Vec<Seen>, SlurmError> {
    let task = |line: &str| {
        let [job, task, state, reason]: [&str; 4] = line.trim().splitn(4, '|').collect::<Vec<_>>().try_into().ok()?;
        let task = if task == "N/A" { None } else { Some(task.parse().ok()?) };
        (is_number(job) && is_state(state)).then(|| Seen {
            job: job.into(),
            task,
            state: state.into(),
            reason: Some(reason.into()),
            exit_code: None,
        })
    };
    // Slurm's plugins may write warnings among the lines.
    let lines = text.lines().filter(|line| line.contains('|'));
    lines.map(|line| task(line).ok_or_else(|| unexpected("squeue", "JOB|TASK|STATE|REASON", line))).collect()
}

fn accounts(text: &str) -> Result<Vec<Seen>, SlurmError> {
    let lines = text.lines().filter(|line| !line.trim().is_empty());
    let read = |line: &str| account(line).ok_or_else(|| unexpected("sacct", "JOB|STATE|CODE:SIGNAL", line));
    // Waiting tasks share one line, `12_[3-5]`; squeue lists each of them.
    let all: Result<Vec<Option<Seen>>, SlurmError> = lines.map(read).collect();
    Ok(all?.into_iter().flatten().collect())
}

/// Parses a line of sacct. The outer `None` is an invalid line, the inner `None` a line for several tasks.
fn account(line: &str) -> Option<Option<Seen>> {
    let [number, state, exit_code]: [&str; 3] = line.trim().split('|').collect::<Vec<_>>().try_into().ok()?;
    // As in `CANCELLED by 1000`.
    let state = state.split(' ').next()?;
    let (code, signal) = exit_code.split_once(':')?;
    if !(is_state(state) && is_number(code) && is_number(signal)) {
        return None;
    }
    let (job, task) = match number.split_once('_') {
        Some((job, task)) => (job, task.parse().ok()),
        None => (number, None),
    };
    let is_one = is_number(job) && (task.is_some() || !number.contains('_'));
    let (job, state, exit_code) = (job.to_owned(), state.to_owned(), Some(exit_code.to_owned()));
    let seen = Seen { job, task, state, reason: None, exit_code };
    Some(is_one.then_some(seen))
}

/// Returns whether a text is a number in Slurm's format.
pub(super) fn is_number(text: &str) -> bool {
    (1..=20).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_digit())
}

fn is_state(text: &str) -> bool {
    (1..=32).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_uppercase() || byte == b'_')
}

fn unexpected(program: &str, expected: &str, found: &str) -> SlurmError {
    SlurmError { message: format!("{program} output {:?}, expected {expected}", shortened(found)), is_refusal: false }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen(job: &str, task: Option<usize>, state: &str, exit_code: Option<&str>) -> Seen {
        let reason = exit_code.is_none().then(|| "None".to_owned());
        Seen { job: job.into(), task, state: state.into(), reason, exit_code: exit_code.map(Into::into) }
    }

    #[test]
    fn tasks_are_read_as_slurm_writes_them() {
        let text = "slurm: warning: a plugin\n12|1|RUNNING|None\n12|2|PENDING|None\n13|N/A|CANCELLED|None\n";
        let expected = [
            seen("12", Some(1), "RUNNING", None),
            seen("12", Some(2), "PENDING", None),
            seen("13", None, "CANCELLED", None),
        ];
        assert_eq!(queued(text).expect("tasks"), expected);
        assert_eq!(expected.map(|task| task.is_alive()), [true, true, false]);
        // A preempted task in the queue may run again; in the accounts it has ended.
        let [queued, accounted] = [None, Some("0:15")].map(|code| seen("12", Some(1), "PREEMPTED", code));
        assert!(queued.is_alive() && !accounted.is_alive());
        let needs = |state: &str, reason: &str| {
            let task = Seen { reason: Some(reason.to_owned()), ..seen("12", None, state, None) };
            (task.is_alive(), task.needs().unwrap_or("nobody").rsplit(": ").next().map(str::to_owned))
        };
        for (state, reason, expected) in [
            ("REQUEUE_HOLD", "None", "scontrol release"),
            ("SPECIAL_EXIT", "None", "scontrol release"),
            ("PENDING", "JobHeldUser", "scontrol release"),
            ("PENDING", "JobHeldAdmin", "scontrol release"),
            ("PENDING", "DependencyNeverSatisfied", "scancel, then the same `speed submit`:"),
            ("PENDING", "Resources", "nobody"),
            ("STOPPED", "None", "scancel --signal=CONT"),
            ("SUSPENDED", "None", "scontrol resume"),
            ("RUNNING", "None", "nobody"),
        ] {
            assert_eq!(needs(state, reason), (true, Some(expected.to_owned())), "{state} {reason}");
        }
        let text = "12_1|FAILED|1:0\n12_[3-5%2]|PENDING|0:0\n13|CANCELLED by 1000|0:15\n";
        let expected = [seen("12", Some(1), "FAILED", Some("1:0")), seen("13", None, "CANCELLED", Some("0:15"))];
        assert_eq!(accounts(text).expect("tasks"), expected);
    }

    #[test]
    fn anything_else_is_refused_by_name() {
        for line in [
            "12|1",
            "12|1|RUNNING",
            "x|1|RUNNING|None",
            "12|-1|RUNNING|None",
            "12|1|\u{1b}[2J|x",
            "12|1||x",
            "$(id)|1|RUNNING|x",
        ] {
            let error = queued(line).expect_err(line).to_string();
            assert!(error.starts_with("squeue output") && !error.contains('\u{1b}'), "{error}");
        }
        for line in ["12_1|FAILED", "12_1|FAILED|1", "12_1|failed|1:0", "12_1|FAILED|1:x"] {
            assert!(accounts(line).expect_err(line).to_string().starts_with("sacct output"));
        }
        let long = "9|".repeat(500);
        assert!(queued(&long).expect_err("long").to_string().len() < 500);
    }
}
