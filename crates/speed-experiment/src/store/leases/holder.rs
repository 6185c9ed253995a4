//! The leases in a directory, and the owners that they name.

use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use serde::{Deserialize, Serialize};
use speed_core::{Randomness, printable};
use speed_mechanism::MechanismError;

use crate::error::ExperimentError;
use crate::store::read::read_small;

/// The extension of leases.
pub(super) const ENDING: &str = ".lease";
/// The prefix of the names of processes' counter files.
const HEART: &str = "alive-";

/// The owner of a lease: a process.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Holder {
    /// The name of its machine, for display.
    host: String,
    /// The boot id of the machine and the namespace of `pid`; empty if the system does not report them.
    system: String,
    pid: u32,
    /// Clock ticks from the boot to its start, which distinguish it from earlier processes with the same `pid`.
    started: u64,
    /// The file beside the lease with the counter that grows while it lives.
    pub(super) heart: String,
    /// A text that is unique to the lease.
    pub(super) token: String,
}

impl Holder {
    /// Creates the description of this process.
    ///
    /// # Errors
    /// If the operating system gives no random bytes.
    pub(super) fn this_process() -> Result<Self, ExperimentError> {
        let random = Randomness::fresh().map_err(MechanismError::from)?;
        let token = hex::encode(&random[..8]);
        let text = |path: &str| fs::read_to_string(path).unwrap_or_default().trim().to_owned();
        let namespace = fs::read_link("/proc/self/ns/pid").unwrap_or_default();
        let boot = text("/proc/sys/kernel/random/boot_id");
        let pid = std::process::id();
        Ok(Self {
            host: text("/proc/sys/kernel/hostname"),
            system: if boot.is_empty() { boot } else { format!("{boot} {}", namespace.display()) },
            pid,
            started: started(pid).unwrap_or_default(),
            heart: format!("{HEART}{token}"),
            token,
        })
    }

    /// Returns the same process as the owner of its lease with this number.
    pub(super) fn numbered(&self, number: usize) -> Self {
        Self { token: format!("{}-{number}", self.token), ..self.clone() }
    }

    pub(super) fn to_json(&self) -> Vec<u8> {
        // An object of texts and numbers can always be written as JSON.
        serde_json::to_vec(self).unwrap_or_default()
    }

    /// Reads a lease; invalid bytes give a lease without a readable owner.
    pub(super) fn from_json(bytes: &[u8]) -> Self {
        serde_json::from_slice(bytes).unwrap_or_default()
    }

    /// Returns whether it ran on the machine of `me` and has ended.
    pub(super) fn is_dead(&self, me: &Self) -> bool {
        self.is_here(me) && started(self.pid) != Some(self.started)
    }

    /// Returns whether it runs on the machine of `me`.
    pub(super) fn lives_here(&self, me: &Self) -> bool {
        self.is_here(me) && started(self.pid) == Some(self.started)
    }

    fn is_here(&self, me: &Self) -> bool {
        !self.system.is_empty() && self.system == me.system
    }

    /// Reads its counter, which is beside the lease at `lease`.
    pub(super) fn beat(&self, lease: &Path) -> Option<u64> {
        std::str::from_utf8(&read_small(&self.heart_beside(lease)?).ok()?).ok()?.trim().parse().ok()
    }

    /// Returns the characters of its token that are safe in a file name, because a lease is untrusted input.
    pub(super) fn token_in_names(&self) -> String {
        self.token.chars().filter(|char| char.is_ascii_alphanumeric() || *char == '-').take(64).collect()
    }

    /// Returns when its counter last grew.
    pub(super) fn last_beat(&self, lease: &Path) -> Option<SystemTime> {
        fs::metadata(self.heart_beside(lease)?).ok()?.modified().ok()
    }

    fn heart_beside(&self, lease: &Path) -> Option<PathBuf> {
        // The name is from an untrusted file.
        let is_name = is_heart(&self.heart) && !self.heart.contains(['/', '\\']);
        Some(lease.with_file_name(is_name.then_some(&self.heart)?))
    }
}

impl fmt::Display for Holder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.host.is_empty() {
            true => f.write_str("an unknown process"),
            false => write!(f, "process {} on {}", self.pid, printable(&self.host)),
        }
    }
}

/// Returns whether a file is the counter of a process.
pub(super) fn is_heart(name: &str) -> bool {
    name.starts_with(HEART)
}

/// Returns when a process of this machine started; `None` if it has exited or is a zombie.
fn started(pid: u32) -> Option<u64> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name in parentheses may hold anything.
    let mut fields = stat[stat.rfind(')')? + 1..].split_whitespace();
    let state = fields.next()?;
    if matches!(state, "Z" | "X") {
        return None;
    }
    fields.nth(18)?.parse().ok()
}

/// Lists the leases in a directory, with their owners.
pub(super) fn leases_in(folder: &Path) -> Vec<(PathBuf, Holder)> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
    let leases = entries.filter(|path| path.to_string_lossy().ends_with(ENDING));
    leases.filter_map(|path| Some((path.clone(), read(&path)?))).collect()
}

/// Reads the owner of a lease; `None` if the file does not exist any more. An unreadable file is a lease without a
/// readable owner, and expires like any other.
pub(super) fn read(path: &Path) -> Option<Holder> {
    match read_small(path) {
        Ok(bytes) => Some(Holder::from_json(&bytes)),
        // A dangling symbolic link also occupies the name.
        Err(_) => fs::symlink_metadata(path).is_ok().then(Holder::default),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_earlier_process_with_the_same_id_is_dead() {
        let me = Holder::this_process().expect("random bytes");
        assert!(me.lives_here(&me) && !me.is_dead(&me));
        let earlier = Holder { started: me.started - 1, ..me.clone() };
        assert!(earlier.is_dead(&me) && !earlier.lives_here(&me));
        let elsewhere = Holder { system: "another boot".into(), ..earlier.clone() };
        assert!(!elsewhere.is_dead(&me) && !elsewhere.lives_here(&me));
        let unknown = Holder { system: String::new(), ..earlier };
        assert!(!unknown.is_dead(&unknown));
        assert_eq!(Holder::from_json(&me.to_json()), me);
        assert_eq!(Holder::from_json(b"no lease"), Holder::default());
        // An untrusted lease cannot name a file elsewhere.
        let odd = Holder { heart: "alive-/../../etc/passwd".into(), ..me };
        assert_eq!(odd.beat(Path::new("stage/x.lease")), None);
    }
}
