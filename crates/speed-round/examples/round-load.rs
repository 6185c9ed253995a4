//! Load test of a round's server: a thousand teachers, and a hundred hostile parties.
//!
//! ```console
//! $ cargo build --release --workspace && cargo run --release -p speed-round --example round-load
//! ```
//!
//! Starts `speed server serve` as a process and uploads the messages of 1000 teachers (100 queries of ten classes, without
//! proofs), 100 at a time. It does so twice: once undisturbed, and once while the server is killed ten times and a
//! hundred parties of the roster send messages that are malformed, stolen, too long or too slow. Prints a table; fails
//! if a message is lost or counted twice.
//!
//! | option | meaning |
//! |---|---|
//! | `--teachers N`, `--queries N` | other numbers of teachers and queries |
//! | `--proofs` | every message has a proof of its own teacher, which the server verifies before the receipt; needs the feature `proofs` |
//! | `--folder DIR` | keeps keys and messages in this directory, and uses those that are there: making a thousand proofs takes long |
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a program that reports")]

mod load {
    pub(crate) mod hostile;
    pub(crate) mod round;
    pub(crate) mod server;
}

use std::error::Error;
use std::fs;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use load::hostile;
use load::round::Round;
use load::server::{Server, Used};
use speed_aggregation::log::{LogEvent, RoundLog};

/// Concurrent uploads.
const AT_A_TIME: usize = 100;
/// Number of times that the server is killed.
const KILLS: usize = 10;

/// The measurements of one run.
struct Measured {
    uploads: usize,
    seconds: f64,
    /// Seconds of every upload, from the connection to the receipt, sorted.
    times: Vec<f64>,
    connections: usize,
    used: Used,
    hostile: Vec<(&'static str, usize)>,
}

struct Options {
    teachers: usize,
    queries: usize,
    proofs: bool,
    folder: Option<PathBuf>,
}

fn options() -> Result<Options, Box<dyn Error>> {
    let mut options = Options { teachers: 1000, queries: 100, proofs: false, folder: None };
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        let mut value = || arguments.next().ok_or(format!("{argument}: expected a value"));
        match argument.as_str() {
            "--teachers" => options.teachers = value()?.parse()?,
            "--queries" => options.queries = value()?.parse()?,
            "--folder" => options.folder = Some(value()?.into()),
            "--proofs" => options.proofs = true,
            _ => return Err("usage: round-load [--teachers N] [--queries N] [--proofs] [--folder DIR]".into()),
        }
    }
    if options.teachers < 10 {
        return Err("--teachers: expected at least 10".into());
    }
    Ok(options)
}

fn main() -> Result<(), Box<dyn Error>> {
    let Options { teachers, queries, proofs, folder: kept } = options()?;
    let folder = tempfile::tempdir()?;
    let proven = if proofs { ", with proofs" } else { "" };
    eprintln!("making a round of {teachers} teachers, and {} hostile ones{proven}", teachers / 10);
    let round = Round::make(kept.as_deref().unwrap_or(folder.path()), [teachers, teachers / 10, queries], proofs)?;
    println!("a message has {} bytes\n", fs::metadata(round.message(0))?.len());
    let calm = run(&round, "calm", 0)?;
    let rough = run(&round, "rough", KILLS)?;
    println!("| | undisturbed | with {KILLS} kills (kill -9) and {} hostile parties |\n|---|---:|---:|", teachers / 10);
    let row = |name: &str, of: &dyn Fn(&Measured) -> String| println!("| {name} | {} | {} |", of(&calm), of(&rough));
    row("messages acknowledged and logged exactly once", &|run| run.uploads.to_string());
    row("total seconds", &|run| format!("{:.1}", run.seconds));
    row("upload, median, ms", &|run| format!("{:.0}", 1e3 * run.quantile(0.5)));
    row("upload, 99th percentile, ms", &|run| format!("{:.0}", 1e3 * run.quantile(0.99)));
    row("connections", &|run| run.connections.to_string());
    row("server's peak memory, MiB", &|run| run.used.peak_mib.to_string());
    row("server's processor time, core-seconds", &|run| format!("{:.1}", run.used.core_seconds));
    for (index, (name, _)) in rough.hostile.iter().enumerate() {
        row(&format!("hostile: {name}"), &|run| {
            run.hostile.get(index).map_or("-".into(), |(_, count)| count.to_string())
        });
    }
    Ok(())
}

impl Measured {
    fn quantile(&self, of: f64) -> f64 {
        let place = (of * self.times.len() as f64).ceil() as usize;
        self.times[place.clamp(1, self.times.len()) - 1]
    }
}

/// Uploads all messages to a server with an empty registry, which is killed `kills` times.
fn run(round: &Round, name: &str, kills: usize) -> Result<Measured, Box<dyn Error>> {
    eprintln!("{name}");
    let mut server = Server::start(round, name)?;
    let address = server.address();
    let (next, done, connections) = (AtomicUsize::new(0), AtomicUsize::new(0), AtomicUsize::new(0));
    let start = Instant::now();
    let hostile_is_over = AtomicBool::new(kills == 0);
    let (times, hostile) = std::thread::scope(|scope| -> Result<_, Box<dyn Error>> {
        let uploads: Vec<_> = (0..AT_A_TIME)
            .map(|_| {
                scope.spawn(|| {
                    let mut times = Vec::new();
                    while let teacher = next.fetch_add(1, Ordering::Relaxed)
                        && teacher < round.teachers
                    {
                        let begun = Instant::now();
                        let sent = round.send(teacher, &address, name);
                        let sent = sent.unwrap_or_else(|error| panic!("teacher {teacher}: {error}"));
                        connections.fetch_add(sent.connections, Ordering::Relaxed);
                        times.push(begun.elapsed().as_secs_f64());
                        done.fetch_add(1, Ordering::Relaxed);
                        if kills > 0 {
                            // Ensures that some teachers are connected when the server is killed.
                            std::thread::sleep(Duration::from_millis(500));
                        }
                    }
                    times
                })
            })
            .collect();
        let hostile = (kills > 0).then(|| scope.spawn(|| hostile::attack(round, &address, &hostile_is_over)));
        for kill in 1..=kills {
            let enough = kill * round.teachers / (kills + 1);
            while done.load(Ordering::Relaxed) < enough {
                std::thread::sleep(Duration::from_millis(5));
            }
            server.kill_and_restart(round, name)?;
        }
        let mut times: Vec<f64> =
            uploads.into_iter().flat_map(|thread| thread.join().expect("every message is kept")).collect();
        times.sort_by(f64::total_cmp);
        hostile_is_over.store(true, Ordering::Relaxed);
        let hostile = hostile.map(|thread| thread.join().expect("attacks end")).transpose();
        Ok((times, hostile.map_err(|error| error.to_string())?.unwrap_or_default()))
    })?;
    let seconds = start.elapsed().as_secs_f64();
    let log = round.log(&address, name)?;
    check(round, &log)?;
    let used = server.stop()?;
    Ok(Measured { uploads: times.len(), seconds, times, connections: connections.into_inner(), used, hostile })
}

/// Checks that the log has the message of every honest teacher once, and no other.
fn check(round: &Round, log: &RoundLog) -> Result<(), Box<dyn Error>> {
    let mut received = vec![0; round.teachers + round.hostile];
    for entry in log.entries().iter().filter(|entry| entry.event() == LogEvent::Received) {
        received[entry.teacher().ok_or("an entry without a teacher")?] += 1;
    }
    let is_right = |(teacher, &times): (usize, &usize)| times == usize::from(teacher < round.teachers);
    match received.iter().enumerate().find(|found| !is_right(*found)) {
        None => Ok(()),
        Some((teacher, times)) => Err(format!("teacher {teacher} is in the log {times} times").into()),
    }
}
