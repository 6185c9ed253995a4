//! Fuzzing of every decoder: mutations of valid files must neither panic nor make a decoder allocate beyond its limit.
//!
//! ```text
//! cargo test --release -p speed-round --test fuzz -- [--seconds N] [--seed S] [--write FOLDER] [TARGET...]
//! ```
//! runs every target (or those whose names contain one of the words) for `N` seconds of processor time, by default 0.2. A
//! run depends only on its seed, up to the point where the time ends. A finding names the seed and the iteration; an
//! input that takes more than [`MAX_SECONDS`] is a finding too. `--write` writes the valid inputs of every target instead.

mod limit;
mod mutate;
mod targets;

use std::fs;
use std::io::Write;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

use mutate::Mutator;
use targets::Target;

/// The longest time that an input may take: thousands of times the time of a valid one, or ten times for evaluation
/// keys.
const MAX_SECONDS: f64 = 30.0;

#[global_allocator]
static ALLOCATOR: limit::Counting = limit::Counting;

fn main() -> ExitCode {
    let mut arguments = std::env::args().skip(1);
    // A smoke test; longer runs name their seconds.
    let (mut seconds, mut seed, mut words) = (0.2, 1, Vec::new());
    let exact = std::env::args().any(|argument| argument == "--exact");
    while let Some(argument) = arguments.next() {
        let mut number = || arguments.next().and_then(|value| value.parse::<f64>().ok());
        match argument.as_str() {
            "--seconds" => seconds = number().expect("--seconds needs a number"),
            "--seed" => seed = number().expect("--seed needs a number") as u64,
            "--write" => return write_inputs(&arguments.next().expect("--write needs a folder")),
            // cargo-nextest asks for the tests and for ignored ones, then runs one a process, by its name.
            "--list" => {
                let ignored = std::env::args().any(|argument| argument == "--ignored");
                targets::ALL.iter().filter(|_| !ignored).for_each(|(name, _)| say(&format!("{name}: test")));
                return ExitCode::SUCCESS;
            }
            // Options of the standard test harness, which `cargo test` passes to every test.
            option if option.starts_with("--") => {}
            word => words.push(word.to_owned()),
        }
    }
    let mut good = true;
    for (name, make) in targets::ALL {
        let is_named = |word: &String| if exact { word == name } else { name.contains(word.as_str()) };
        if words.is_empty() || words.iter().any(is_named) {
            good &= fuzz(name, &make(), seconds, seed);
        }
    }
    if good { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn write_inputs(folder: &str) -> ExitCode {
    for (name, make) in targets::ALL {
        let folder = Path::new(folder).join(name);
        fs::create_dir_all(&folder).expect("a folder");
        for (number, input) in make().inputs.iter().enumerate() {
            fs::write(folder.join(number.to_string()), input).expect("a file");
        }
    }
    ExitCode::SUCCESS
}

fn say(text: &str) {
    // A failure here cannot be reported anywhere.
    let _ = writeln!(std::io::stdout(), "{text}");
}

fn fuzz(name: &str, target: &Target, seconds: f64, seed: u64) -> bool {
    // A decoder that refuses every input would pass, so the valid inputs must be accepted.
    assert!(target.inputs.iter().all(|input| (target.decode)(input)), "{name}: a valid input is refused");
    let mut mutator = Mutator::new(seed, &target.inputs);
    let clock = Clock::start();
    let watched = Watched::start(name, seed);
    let (mut runs, mut accepted, mut most) = (0_u64, 0_u64, 0.0_f64);
    let mut input = Vec::new();
    while runs % target.stride != 0 || clock.seconds() < seconds {
        mutator.next(&mut input, target.sealed);
        let limit = (target.limit)(input.len());
        watched.iteration.store(runs, Relaxed);
        let (before, begun) = (limit::start(), Instant::now());
        let result = catch_unwind(AssertUnwindSafe(|| (target.decode)(&input)));
        let peak = limit::peak_since(before);
        most = most.max(peak as f64 / limit as f64);
        let took = begun.elapsed().as_secs_f64();
        match result {
            Ok(good) if peak <= limit && took <= MAX_SECONDS => accepted += u64::from(good),
            outcome => {
                let what =
                    if outcome.is_err() { "panic".to_owned() } else { format!("{peak} bytes of {limit}, {took:.1} s") };
                watched.iteration.store(u64::MAX, Relaxed);
                let kept = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("speed-fuzz-{name}-{seed}-{runs}"));
                let kept =
                    fs::write(&kept, &input).map_or_else(|error| error.to_string(), |()| kept.display().to_string());
                say(&format!(
                    "FOUND {name}: seed {seed}, iteration {runs}, {} bytes of input: {what} ({kept})",
                    input.len()
                ));
                return false;
            }
        }
        runs += 1;
    }
    watched.iteration.store(u64::MAX, Relaxed);
    say(&format!(
        "{name:<16} {runs:>10} inputs in {:>6.1} s, {accepted:>8} accepted, at most {:>5.1} % of the memory allowed",
        clock.seconds(),
        100.0 * most
    ));
    true
}

/// A watchdog that ends the process with a finding if one input takes a minute.
struct Watched {
    iteration: Arc<AtomicU64>,
}

impl Watched {
    fn start(name: &str, seed: u64) -> Self {
        let iteration = Arc::new(AtomicU64::new(0));
        let (watched, name) = (Arc::clone(&iteration), name.to_owned());
        std::thread::spawn(move || {
            let mut last = None;
            loop {
                let now = watched.load(Relaxed);
                if now == u64::MAX {
                    return;
                }
                if last == Some(now) {
                    say(&format!("FOUND {name}: seed {seed}, iteration {now}: no end within a minute"));
                    std::process::exit(1);
                }
                last = Some(now);
                std::thread::sleep(Duration::from_secs(60));
            }
        });
        Self { iteration }
    }
}

/// Processor time of this thread if the system reports it (Linux), else wall-clock time.
struct Clock {
    wall: Instant,
    processor: Option<f64>,
}

impl Clock {
    fn start() -> Self {
        Self { wall: Instant::now(), processor: processor_seconds() }
    }

    fn seconds(&self) -> f64 {
        match (self.processor, processor_seconds()) {
            (Some(start), Some(now)) => now - start,
            _ => self.wall.elapsed().as_secs_f64(),
        }
    }
}

fn processor_seconds() -> Option<f64> {
    #[cfg(unix)]
    return Duration::try_from(rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime))
        .ok()
        .map(|time| time.as_secs_f64());
    #[cfg(not(unix))]
    return None;
}
