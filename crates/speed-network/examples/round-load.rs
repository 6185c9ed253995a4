//! Load test of a round's server: a thousand teachers, and a hundred hostile parties.
//!
//! ```console
//! $ cargo build --release --workspace && cargo run --release -p speed-network --example round-load
//! ```
//!
//! Starts `speed server serve` as a process and uploads the messages of 1000 teachers (100 queries of ten classes, without
//! proofs), 100 at a time. It does so twice: once undisturbed, and once while the server is killed ten times and a
//! hundred parties of the roster send messages that are malformed, stolen, too long or too slow. Prints a table; fails
//! if a message is lost or counted twice. `--teachers N` changes the number of teachers.
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a program that reports")]

mod load {
    pub(crate) mod hostile;
    pub(crate) mod round;
    pub(crate) mod server;
}

use std::error::Error;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use load::hostile;
use load::round::Round;
use load::server::Server;
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
    peak_mib: u64,
    hostile: Vec<(&'static str, usize)>,
}

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let teachers = match arguments.as_slice() {
        [] => 1000,
        [option, number] if option == "--teachers" => number.parse()?,
        _ => return Err("usage: round-load [--teachers N]".into()),
    };
    let folder = tempfile::tempdir()?;
    eprintln!("making a round of {teachers} teachers, and {} hostile ones", teachers / 10);
    let round = Round::make(folder.path(), teachers, teachers / 10)?;
    let calm = run(&round, "calm", 0)?;
    let rough = run(&round, "rough", KILLS)?;
    println!("| | undisturbed | with {KILLS} kills (kill -9) and {} hostile parties |\n|---|---:|---:|", teachers / 10);
    let row = |name: &str, of: &dyn Fn(&Measured) -> String| println!("| {name} | {} | {} |", of(&calm), of(&rough));
    row("messages acknowledged and logged exactly once", &|run| run.uploads.to_string());
    row("total seconds", &|run| format!("{:.1}", run.seconds));
    row("upload, median, ms", &|run| format!("{:.0}", 1e3 * run.quantile(0.5)));
    row("upload, 99th percentile, ms", &|run| format!("{:.0}", 1e3 * run.quantile(0.99)));
    row("connections", &|run| run.connections.to_string());
    row("server's peak memory, MiB", &|run| run.peak_mib.to_string());
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
    let peak_mib = server.stop()?;
    Ok(Measured { uploads: times.len(), seconds, times, connections: connections.into_inner(), peak_mib, hostile })
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
