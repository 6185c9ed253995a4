//! Checks the accountant against an oracle. The oracle computes the exact least epsilon of random cases from the
//! definitions alone; it must never be above the claim.
//!
//! Without settings a fixed sample runs. `SPEED_AUDIT_SECONDS` runs random cases for this number of seconds
//! (`.ci/nightly audit`: an hour), `SPEED_AUDIT_SEED` selects the random cases, `SPEED_AUDIT_CASE` runs a single one of them,
//! and `SPEED_AUDIT_KIND` runs those of one kind (`coins`).

mod case;
mod check;
mod composition;
mod draw;
mod grid;
mod noise;
mod random;
mod self_test;
mod summary;
mod tails;
mod threshold;
mod truth;
mod view;

use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use case::{Case, Kind};
use check::check;
use random::Random;
use summary::{Summary, say};

/// The seed of the fixed sample.
const SEED: u64 = 7;
/// The number of cases in the fixed sample.
const SAMPLE: u64 = 150;
/// The seed and the number of cases with empty votes.
const SEED_OF_EMPTY_VOTES: u64 = 60;
const EMPTY_VOTES: usize = 300;
/// The seed and the number of cases with many coins.
const SEED_OF_MANY_COINS: u64 = 61;
const MANY_COINS: u64 = 6;
/// The largest accepted median of the excess over the truth, for claims between two classes.
const MEDIAN_EXCESS: f64 = 0.01;

/// Frequency of each kind, in percent.
const KINDS: [(Kind, i64); 10] = [
    (Kind::TwoDropout, 46),
    (Kind::TwoDropoutUpTo, 6),
    (Kind::TwoCollusion, 9),
    (Kind::TwoCollusionUpTo, 3),
    (Kind::ManyDropout, 8),
    (Kind::ManyDropoutUpTo, 4),
    (Kind::ManyCollusion, 4),
    (Kind::NearThreshold, 5),
    (Kind::OtherNoise, 4),
    (Kind::Coins, 11),
];

fn setting(name: &str) -> Option<u64> {
    std::env::var(name).ok().map(|value| value.trim().parse().expect("a whole number in SPEED_AUDIT_*"))
}

#[test]
fn claims_are_never_below_the_truth() {
    let seconds = setting("SPEED_AUDIT_SECONDS");
    let clock = || SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_secs());
    let seed = setting("SPEED_AUDIT_SEED").unwrap_or_else(|| if seconds.is_some() { clock() } else { SEED });
    let summary = Mutex::new(Summary::new());
    if let Some(number) = setting("SPEED_AUDIT_CASE") {
        run(seed, number, &summary, true);
    } else {
        say(&format!("SPEED_AUDIT_SEED={seed}"));
        for case in Case::fixed() {
            summary.lock().expect("no worker failed").add(Kind::Fixed, check(&case));
        }
        let limit = seconds.map(Duration::from_secs);
        let workers =
            if limit.is_some() { std::thread::available_parallelism().map_or(1, usize::from).min(2) } else { 1 };
        let next = AtomicU64::new(0);
        std::thread::scope(|scope| {
            let at_work: Vec<_> = (0..workers).map(|_| scope.spawn(|| work(seed, limit, &next, &summary))).collect();
            while at_work.iter().any(|worker| !worker.is_finished()) {
                std::thread::sleep(Duration::from_millis(100));
                summary.lock().expect("no worker failed").progress();
            }
        });
    }
    let mut summary = summary.into_inner().expect("no worker failed");
    summary.print();
    assert_eq!(summary.failures(), 0, "claims below the truth, SPEED_AUDIT_SEED={seed}");
    let (median, number) = summary.median_excess();
    assert!(number < 200 || median <= MEDIAN_EXCESS, "claims exceed the truth by {median}, as a median of {number}");
}

#[test]
fn no_claim_is_below_the_truth_with_empty_votes() {
    let kinds = [
        (Kind::OtherNoise, 16),
        (Kind::TwoDropout, 74),
        (Kind::TwoDropoutUpTo, 8),
        (Kind::TwoCollusion, 26),
        (Kind::TwoCollusionUpTo, 4),
        (Kind::ManyDropout, 80),
        (Kind::ManyDropoutUpTo, 8),
        (Kind::ManyCollusion, 10),
        (Kind::NearThreshold, 24),
        (Kind::OtherNoise, 14),
        (Kind::Coins, 36),
    ];
    let mut summary = Summary::new();
    let all = kinds.iter().flat_map(|&(kind, cases)| std::iter::repeat_n(kind, cases));
    for (number, kind) in (0..).zip(all) {
        let mut random = Random::of_case(SEED_OF_EMPTY_VOTES, number);
        let case = draw::draw(kind, format!("empty votes {number}"), &mut random);
        let case = draw::with_empty_votes(case, &mut random);
        summary.add(kind, check(&case));
    }
    summary.print();
    assert_eq!(summary.cases(), EMPTY_VOTES);
    assert_eq!(summary.failures(), 0, "claims below the truth with empty votes");
}

#[test]
fn no_claim_of_many_coins_is_below_the_truth() {
    let mut summary = Summary::new();
    for number in 0..MANY_COINS {
        let mut random = Random::of_case(SEED_OF_MANY_COINS, number);
        let case = draw::many_coins(format!("many coins {number}"), &mut random);
        summary.add(Kind::Coins, check(&case));
    }
    summary.print();
    assert_eq!(summary.failures(), 0, "claims of many coins below the truth");
}

/// Runs cases until the sample or the time ends.
fn work(seed: u64, limit: Option<Duration>, next: &AtomicU64, summary: &Mutex<Summary>) {
    let wanted = std::env::var("SPEED_AUDIT_KIND").ok().map(|kind| kind.to_lowercase());
    loop {
        let number = next.fetch_add(1, Ordering::Relaxed);
        let seconds = summary.lock().expect("no worker failed").seconds();
        if limit.map_or(number >= SAMPLE, |limit| seconds >= limit.as_secs_f64()) {
            return;
        }
        if wanted.as_ref().is_none_or(|wanted| format!("{:?}", kind_of(seed, number)).to_lowercase() == *wanted) {
            run(seed, number, summary, false);
        }
    }
}

fn kind_of(seed: u64, number: u64) -> Kind {
    let mut left = Random::of_case(seed, number).within(0, 99);
    let kind = KINDS.iter().find(|(_, share)| {
        left -= share;
        left < 0
    });
    kind.expect("100 percent").0
}

/// Runs one case.
fn run(seed: u64, number: u64, summary: &Mutex<Summary>, shown: bool) {
    let (kind, mut random) = (kind_of(seed, number), Random::of_case(!seed, number));
    let name = format!("SPEED_AUDIT_SEED={seed} SPEED_AUDIT_CASE={number}");
    let case = draw::draw(kind, name, &mut random);
    // The fixed sample has a test of its own for empty votes.
    let with_empty_votes = number >= SAMPLE && random.chance(0.25);
    let case = if with_empty_votes { draw::with_empty_votes(case, &mut random) } else { case };
    if shown {
        say(&format!("{case:?}"));
    }
    summary.lock().expect("no worker failed").begin(case.name.clone());
    let report = check(&case);
    let mut summary = summary.lock().expect("no worker failed");
    summary.end(&case.name);
    summary.add(kind, report);
}
