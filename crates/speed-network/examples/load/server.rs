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
    /// The peak memory of the killed processes, in MiB.
    peak_mib: u64,
}

impl Server {
    pub(crate) fn start(round: &Round, run: &str) -> Result<Self, Box<dyn Error>> {
        let port = TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
        let server = Self { child: spawn(round, run, port)?, port, peak_mib: 0 };
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
        self.peak_mib = self.peak_mib.max(peak_mib(&self.child)?);
        self.child.kill()?;
        self.child.wait()?;
        self.child = spawn(round, run, self.port)?;
        Ok(())
    }

    /// Ends the process and returns the peak memory of it and its predecessors, in MiB.
    pub(crate) fn stop(mut self) -> Result<u64, Box<dyn Error>> {
        let peak = self.peak_mib.max(peak_mib(&self.child)?);
        self.child.kill()?;
        self.child.wait()?;
        Ok(peak)
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
    let log = fs::File::options().create(true).append(true).open(round.folder.join(format!("{run}.stderr")))?;
    let mut command = Command::new(&binary);
    command.current_dir(&round.folder).args(["server", "serve", "--signing-key", "server.key"]);
    command.args(["--evaluation-key", "evaluation.key", "--round", "round.toml"]);
    command.args([
        "--registry",
        &format!("{run}.registry"),
        "--listen",
        &format!("127.0.0.1:{port}"),
        "--behind-proxy",
    ]);
    let child = command.stdout(Stdio::null()).stderr(log).spawn();
    child.map_err(|error| format!("{}: {error}: build the workspace first", binary.display()).into())
}

/// Returns the peak memory of a process as reported by Linux, in MiB.
fn peak_mib(child: &Child) -> Result<u64, Box<dyn Error>> {
    let status = fs::read_to_string(format!("/proc/{}/status", child.id()))?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).ok_or("no VmHWM")?;
    Ok(line.split_whitespace().next().ok_or("no number")?.parse::<u64>()? / 1024)
}
