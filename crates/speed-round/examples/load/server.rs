//! The server as a separate process.

use std::error::Error;
use std::fs;
use std::net::{TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use super::round::Round;

pub(crate) struct Server {
    child: Child,
    port: u16,
    /// The use of the killed processes.
    used: Used,
}

/// The memory and processor time of a server and its predecessors, as Linux reports them.
#[derive(Clone, Copy, Default)]
pub(crate) struct Used {
    pub(crate) peak_mib: u64,
    pub(crate) core_seconds: f64,
}

impl Server {
    pub(crate) fn start(round: &Round, run: &str) -> Result<Self, Box<dyn Error>> {
        let port = TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
        let server = Self { child: spawn(round, run, port)?, port, used: Used::default() };
        // The server reads the evaluation key before it listens.
        while TcpStream::connect(server.address()).is_err() {
            std::thread::sleep(Duration::from_millis(10));
        }
        Ok(server)
    }

    pub(crate) fn address(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }

    /// Kills the process without warning, and starts another.
    pub(crate) fn kill_and_restart(&mut self, round: &Round, run: &str) -> Result<(), Box<dyn Error>> {
        self.used = self.used.and(&self.child)?;
        self.child.kill()?;
        self.child.wait()?;
        self.child = spawn(round, run, self.port)?;
        Ok(())
    }

    /// Ends the process and returns the use of it and its predecessors.
    pub(crate) fn stop(mut self) -> Result<Used, Box<dyn Error>> {
        let used = self.used.and(&self.child)?;
        self.child.kill()?;
        self.child.wait()?;
        Ok(used)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
    }
}

fn spawn(round: &Round, run: &str, port: u16) -> Result<Child, Box<dyn Error>> {
    // The example is in target/release/examples.
    let binary = std::env::current_exe()?.parent().and_then(|folder| folder.parent()).ok_or("no folder")?.join("speed");
    let log = fs::File::options().create(true).append(true).open(round.runs.path().join(format!("{run}.stderr")))?;
    let mut command = Command::new(&binary);
    command.current_dir(&round.folder).args(["server", "serve", "--signing-key", "server.key"]);
    command.args(["--evaluation-key", "evaluation.key", "--round", "round.toml"]);
    command.args(["--new-registry", "--listen", &format!("127.0.0.1:{port}")]);
    // Beside the signing key by default, where an earlier test has left its own.
    for (option, end) in [("--registry", "registry"), ("--ledger", "ledger")] {
        command.arg(option).arg(round.runs.path().join(format!("{run}.{end}")));
    }
    if let Some(key) = round.proof_key() {
        command.arg("--proof-key").arg(key);
    }
    let child = command.stdout(Stdio::null()).stderr(log).spawn();
    child.map_err(|error| format!("{}: {error}: build the workspace first", binary.display()).into())
}

impl Used {
    /// Adds the use of a process.
    fn and(self, child: &Child) -> Result<Self, Box<dyn Error>> {
        let read = |name: &str| fs::read_to_string(format!("/proc/{}/{name}", child.id()));
        let status = read("status")?;
        let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).ok_or("no VmHWM")?;
        let peak_mib = line.split_whitespace().next().ok_or("no number")?.parse::<u64>()? / 1024;
        // After the name in parentheses, utime and stime are fields 12 and 13, in hundredths of a second.
        let stat = read("stat")?;
        let (_, fields) = stat.rsplit_once(')').ok_or("no name")?;
        let times: Vec<f64> = fields
            .split_whitespace()
            .skip(11)
            .take(2)
            .map(str::parse)
            .collect::<Result<_, std::num::ParseFloatError>>()?;
        let core_seconds = self.core_seconds + times.iter().sum::<f64>() / 100.0;
        Ok(Self { peak_mib: self.peak_mib.max(peak_mib), core_seconds })
    }
}
