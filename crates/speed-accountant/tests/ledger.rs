//! The ledger: budget, checksums, crashes, and two writers at once.

use std::io::Write;

use speed_accountant::composition::optimal_epsilon;
use speed_accountant::ledger::{ChargeRequest, Ledger, LedgerError, PartySize, Room, TornLine};
use speed_accountant::{AccountError, Accountant, Budget, PrivacyEvent, PrivacyFilter, QueryBatch};
use speed_mechanism::{HonestRatio, MechanismKind};
use tempfile::TempDir;

use crate::given;

fn event(tau: f64) -> PrivacyEvent {
    given::event(MechanismKind::DiscreteLaplace, 0.1, tau)
}

fn budget(epsilon: f64) -> Budget {
    Budget { epsilon: Some(epsilon), delta: given::delta(1e-5) }
}

/// Creates the file `ledger` in a folder.
fn fresh(epsilon: f64) -> (TempDir, Ledger) {
    let folder = tempfile::tempdir().expect("a folder");
    let ledger = Ledger::create(&folder.path().join("ledger"), budget(epsilon)).expect("a new ledger");
    (folder, ledger)
}

/// A hundred queries between ten classes.
fn request<'a>(label: &'a str, event: &'a PrivacyEvent, limit: Option<Budget>) -> ChargeRequest<'a> {
    ChargeRequest { limit, ..ChargeRequest::new(label, event, Some(10), 100) }
}

#[test]
fn queries_are_charged_until_the_budget_is_spent() {
    let (folder, ledger) = fresh(10.0);
    let first = ledger.charge("the paper's hundred", &event(1.0), 10, 100).expect("within budget");
    // A single kind gets nine tenths of delta, less the samplers' thousandth, and is composed like an account without
    // votes.
    let of = |queries: usize| {
        let delta = given::delta(0.9 * 0.999 * 1e-5);
        Accountant::new(event(1.0), delta).account_queries(queries).expect("queries").epsilon
    };
    assert!((first.spent_epsilon / of(100) - 1.0).abs() < 1e-8);
    assert!(first.fixed_epsilon < first.spent_epsilon && first.claim.contains("May be published"));
    let fit = (1..).take_while(|&more| of(100 + more) <= 10.0).count();
    let error = ledger.charge("too many", &event(1.0), 10, fit + 1).expect_err("over budget");
    assert!(matches!(error, LedgerError::OverBudget { .. }), "{error}");
    assert_eq!(ledger.statement().expect("readable").queries, 100);
    ledger.charge("the rest", &event(1.0), 10, fit).expect("just within budget");
    // For several kinds, moments are added, which costs more.
    let error = ledger.charge("another kind", &event(0.9), 10, 1).expect_err("over budget");
    assert!(error.to_string().contains("nothing was charged"), "{error}");
    let reopened = Ledger::open(&folder.path().join("ledger")).expect("readable");
    assert_eq!(reopened.statement().expect("readable").charges.len(), 2);
}

#[test]
fn different_queries_compose() {
    let (_folder, ledger) = fresh(20.0);
    ledger.charge("all noise", &event(1.0), 10, 60).expect("within budget");
    let mixed = ledger.charge("less noise", &event(0.7), 10, 40).expect("within budget");
    let of = |tau: f64| {
        let delta = given::delta(1e-5);
        Accountant::new(event(tau), delta).account_queries(100).expect("queries").epsilon
    };
    assert!(mixed.fixed_epsilon > of(1.0) && mixed.fixed_epsilon < of(0.7), "{}", mixed.claim);
    assert!(mixed.spent_epsilon > mixed.fixed_epsilon && mixed.spent_epsilon < optimal_epsilon(0.31, 100, 1e-6));
}

fn coins(all: u64) -> PrivacyEvent {
    given::event(MechanismKind::Binomial, all as f64, 1.0)
}

#[test]
fn noise_without_a_pure_epsilon_is_charged() {
    let (folder, ledger) = fresh(10.0);
    let first = ledger.charge("coins", &coins(800), 10, 100).expect("within budget");
    assert!(first.charges[0].per_query_epsilon.is_infinite() && first.samplers_included, "{}", first.claim);
    let delta = given::delta(0.9 * 0.999 * 1e-5);
    let alone = Accountant::new(coins(800), delta).account_queries(100).expect("queries").epsilon;
    assert!((first.spent_epsilon / alone - 1.0).abs() < 0.01, "{} against {alone}", first.spent_epsilon);
    let text = std::fs::read_to_string(folder.path().join("ledger")).expect("a ledger");
    assert!(text.contains("\"noise\":\"binomial\",\"coins\":800"), "{text}");
    assert!(text.contains("\"per_query_epsilon\":null"), "{text}");
    // It is read again, and mixed with Laplace noise.
    let mixed = ledger.charge("laplace", &event(1.0), 10, 50).expect("within budget");
    assert_eq!(mixed.charges[0], first.charges[0]);
    assert!(mixed.spent_epsilon > first.spent_epsilon && mixed.fixed_epsilon <= mixed.spent_epsilon);
    // The budget limits both.
    assert!(matches!(ledger.charge("more", &coins(800), 10, 1_000), Err(LedgerError::OverBudget { .. })));
}

#[test]
fn the_least_noise_that_fits_has_whole_coins_of_every_teacher() {
    let room = Room::of_new(budget(3.0));
    let of = |noise| Ok::<_, AccountError>(QueryBatch::new(PrivacyEvent::new(noise, HonestRatio::ALL), 10, 100));
    let found = room.noise(MechanismKind::Binomial, 20, 1, of).expect("room").batch;
    let all = found.event.mechanism().scale() as u64;
    assert!(all.is_multiple_of(20) && room.fit(found).is_ok(), "{all}");
    let fewer = QueryBatch { event: coins(all - 20), ..found };
    assert!(matches!(room.fit(fewer), Err(AccountError::OverBudget { .. })), "{all}");
    // With a threshold, the coins of a teacher are even.
    let even = room.noise(MechanismKind::Binomial, 20, 2, of).expect("room").batch.event.mechanism().scale() as u64;
    assert_eq!(even, all.next_multiple_of(40));
    // Skellam noise of nearly the same deviation costs the same.
    let skellam = room.noise(MechanismKind::Skellam, 1, 1, of).expect("room").batch.event.mechanism().scale();
    let deviation = (all as f64).sqrt() / 2.0;
    assert!((skellam / deviation - 1.0).abs() < 0.05, "{skellam} against {deviation}");
}

#[test]
fn a_changed_or_missing_line_is_found() {
    let (folder, ledger) = fresh(50.0);
    for label in ["one", "two", "three"] {
        ledger.charge(label, &event(1.0), 10, 10).expect("within budget");
    }
    let path = folder.path().join("ledger");
    let good = std::fs::read_to_string(&path).expect("a ledger");
    let lines: Vec<&str> = good.lines().collect();
    let changed = good.replace("\"queries\":10", "\"queries\":1");
    let missing = [lines[0], lines[1], lines[3]].join("\n") + "\n";
    let exchanged = [lines[0], lines[2], lines[1], lines[3]].join("\n") + "\n";
    let budget = good.replacen("50.0", "90.0", 1);
    let headless = lines[1..].join("\n") + "\n";
    for (bad, line) in [(changed, 2), (missing, 3), (exchanged, 2), (budget, 1), (headless, 1), (String::new(), 1)] {
        std::fs::write(&path, bad).expect("a bad ledger");
        let error = Ledger::open(&path).expect_err("damaged");
        assert!(matches!(error, LedgerError::Damaged { line: found, .. } if found == line), "line {line}: {error}");
        assert!(ledger.charge("more", &event(1.0), 10, 1).is_err());
    }
}

#[test]
fn writers_at_once_do_not_spend_the_same_budget() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("ledger");
    Ledger::create(&path, budget(3.0)).expect("a new ledger");
    let cost = |k: usize| {
        let delta = given::delta(0.9 * 1e-5);
        Accountant::new(event(1.0), delta).account_queries(k).expect("queries").epsilon
    };
    let allowed = (1..).take_while(|&k| cost(k) <= 3.0).count();
    let charged: usize = std::thread::scope(|scope| {
        let writers: Vec<_> = (0..4)
            .map(|writer| {
                let path = &path;
                scope.spawn(move || {
                    let ledger = Ledger::open(path).expect("readable");
                    (0..20).filter(|i| ledger.charge(&format!("{writer}.{i}"), &event(1.0), 10, 1).is_ok()).count()
                })
            })
            .collect();
        writers.into_iter().map(|writer| writer.join().expect("a writer")).sum()
    });
    assert_eq!(charged, allowed);
    let statement = Ledger::open(&path).expect("readable").statement().expect("readable");
    assert_eq!(statement.queries, allowed);
    assert!(statement.spent_epsilon <= 3.0);
}

#[test]
fn refusals_say_why() {
    let (folder, ledger) = fresh(1.0);
    let [path, new] = ["ledger", "new"].map(|name| folder.path().join(name));
    for epsilon in [0.0, -1.0, f64::NAN, f64::INFINITY] {
        assert!(matches!(Ledger::create(&new, budget(epsilon)), Err(LedgerError::Refused { .. })));
        let limit = Some(budget(epsilon));
        let refused = ledger.would_allow(&[QueryBatch::new(event(0.9), 10, 1)], limit);
        assert!(matches!(refused, Err(LedgerError::Refused { .. })), "{epsilon}: {refused:?}");
        let charged = ledger.charge_once(&ChargeRequest { queries: 1, ..request("q", &event(0.9), limit) });
        assert!(matches!(charged, Err(LedgerError::Refused { .. })), "{epsilon}");
    }
    let refused = ledger.charge("too many", &event(0.9), 10, usize::MAX).expect_err("too many");
    assert!(refused.to_string().contains("at most 1000000"), "{refused}");
    assert!(matches!(Ledger::create(&path, budget(1.0)), Err(LedgerError::Io { .. })), "never overwritten");
    assert!(matches!(ledger.charge("none", &event(1.0), 10, 0), Err(LedgerError::Refused { .. })));
    let gaussian = given::event(MechanismKind::Gaussian, 40.0, 1.0);
    assert!(matches!(ledger.charge("gaussian", &gaussian, 10, 1), Err(LedgerError::Refused { .. })));
    // A sampler that uses up delta exceeds every budget.
    let bad = event(1.0).with_sampling_total_variation(1e-5).expect("a distance");
    assert!(matches!(ledger.charge("bad sampler", &bad, 10, 1), Err(LedgerError::OverBudget { .. })));
    assert!(matches!(Ledger::open(&new), Err(LedgerError::Io { .. })));
    assert_eq!(ledger.statement().expect("a ledger").queries, 0);
    let mut file = std::fs::OpenOptions::new().append(true).open(&path).expect("the ledger");
    file.write_all(b"nonsense without checksum\n").expect("written");
    assert!(matches!(ledger.statement(), Err(LedgerError::Damaged { line: 2, .. })));
}

#[test]
fn a_record_without_a_budget_is_held_to_the_caller_s_limit() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("ledger");
    let open = || Ledger::open_or_create(&path, Budget { epsilon: None, ..budget(1.0) }).expect("a ledger");
    open().charge("first", &event(1.0), 10, 100).expect("no limit");
    let ledger = open();
    let limit = Some(budget(7.0));
    let error = ledger.charge_once(&request("second", &event(1.0), limit)).expect_err("over the limit");
    assert!(matches!(error, LedgerError::OverBudget { budget: 7.0, .. }), "{error}");
    assert!(ledger.would_allow(&[QueryBatch::new(event(1.0), 10, 1)], limit).is_ok());
    assert!(
        ledger.would_allow(&[QueryBatch::new(event(1.0), 10, 60), QueryBatch::new(event(0.7), 10, 60)], limit).is_err()
    );
    assert_eq!(ledger.statement().expect("readable").queries, 100);
    ledger.charge("second", &event(1.0), 10, 100).expect("no limit");
    assert_eq!(ledger.statement().expect("readable").queries, 200);
}

#[test]
fn charges_of_one_kind_stay_of_one_kind() {
    // A gamma that an inexact decimal parser would not read back.
    let event = given::event(MechanismKind::DiscreteLaplace, 0.469_863_054_823_844_44, 1.0);
    let ((_parts, parts), (_whole, whole)) = (fresh(1e3), fresh(1e3));
    for _ in 0..6 {
        parts.charge("part", &event, 10, 10).expect("within");
    }
    whole.charge("whole", &event, 10, 60).expect("within");
    let [parts, whole] = [parts, whole].map(|ledger| ledger.statement().expect("a ledger").spent_epsilon);
    assert_eq!(parts, whole);
}

#[test]
fn answers_with_the_same_noise_are_charged_once() {
    let (_folder, ledger) = fresh(100.0);
    let event = event(0.9);
    let charge = |noise_digest| {
        let request = ChargeRequest { question: "q", noise_digest, ..request("row", &event, None) };
        ledger.charge_once(&request).expect("within budget").queries
    };
    assert_eq!(
        [charge("a"), charge("a"), charge("b"), charge("a"), charge(""), charge("")],
        [100, 100, 200, 200, 300, 400]
    );
    // A question that may be answered once.
    let second = ChargeRequest { question: "q", noise_digest: "z", is_only: true, ..request("row", &event, None) };
    let refused = ledger.charge_once(&second).expect_err("a second noise").to_string();
    assert!(refused.contains("would halve the noise"), "{refused}");
    ledger.charge_once(&ChargeRequest { noise_digest: "a", ..second }).expect("charged already");
    // Reusing the noise for another question, or for other outcomes, would expose the votes on both.
    let same = ChargeRequest { question: "q", noise_digest: "a", ..request("row", &event, None) };
    let silent = event.with_threshold(30.0).expect("a threshold");
    for other in [
        ChargeRequest { question: "r", ..same },
        ChargeRequest { classes: Some(2), ..same },
        ChargeRequest { classes: None, ..same },
        ChargeRequest { event: &silent, ..same },
    ] {
        assert!(matches!(ledger.charge_once(&other), Err(LedgerError::Refused { .. })), "{other:?}");
    }
    let charges = ledger.statement().expect("readable").charges;
    assert_eq!(charges.iter().map(|charge| charge.noise_digest.as_str()).collect::<Vec<_>>(), ["a", "b", "", ""]);
}

#[test]
fn half_a_line_is_reported() {
    let (folder, ledger) = fresh(100.0);
    ledger.charge("first", &event(0.9), 10, 10).expect("within budget");
    assert_eq!(ledger.statement().expect("readable").torn, None);
    ledger.charge("second", &event(0.9), 10, 10).expect("within budget");
    let path = folder.path().join("ledger");
    let bytes = std::fs::read(&path).expect("a ledger");
    // Without its end, or a part of its checksum, the last charge counts, and the next one completes it.
    for cut in [1, 9] {
        std::fs::write(&path, &bytes[..bytes.len() - cut]).expect("cut");
        assert_eq!(ledger.statement().expect("readable").charges.len(), 2, "{cut}");
        assert_eq!(ledger.charge("third", &event(0.9), 10, 10).expect("within budget").charges.len(), 3, "{cut}");
    }
    std::fs::write(&path, &bytes[..bytes.len() - 70]).expect("cut");
    let torn = ledger.statement().expect("readable").torn.expect("half a line");
    assert!(torn.line == 3 && torn.bytes > 100, "{torn:?}");
    let TornLine { line, .. } = torn;
    // The next charge replaces it, and says so.
    let after = ledger.charge("third", &event(0.9), 10, 5).expect("within budget");
    assert_eq!((after.torn, after.queries), (Some(torn), 15));
    let after = Ledger::open(&path).and_then(|ledger| ledger.statement()).expect("whole again");
    assert_eq!((after.torn, after.queries, after.charges.len() + 1), (None, 15, line));
}

#[test]
fn a_threshold_is_charged_from_the_file_as_it_was_asked() {
    let folder = tempfile::tempdir().expect("a folder");
    let event = event(0.3);
    let silent = event.with_threshold(30.0).expect("a threshold");
    let spent = |name: &str, event: &PrivacyEvent, classes: Option<usize>| {
        let ledger = Ledger::create(&folder.path().join(name), budget(1e3)).expect("a ledger");
        ledger.charge("q", event, classes, 100).expect("within");
        // Read from the file again.
        let statement =
            Ledger::open(&folder.path().join(name)).and_then(|ledger| ledger.statement()).expect("readable");
        assert_eq!((statement.charges[0].classes, statement.charges[0].threshold), (classes, event.threshold()));
        statement.spent_epsilon
    };
    let two = spent("two", &event, Some(2));
    let [silent_two, any] = [spent("silent", &silent, Some(2)), spent("any", &event, None)];
    // The exact smallest epsilon of three outcomes is 36.977.
    assert!(two < 22.0 && silent_two >= 36.977 && any == silent_two, "{two} {silent_two} {any}");
    assert_eq!(silent_two, spent("three", &event, Some(3)));
    let ledger = Ledger::open(&folder.path().join("any")).expect("readable");
    for classes in [0, 1] {
        let refused = ledger.charge("q", &silent, classes, 1);
        assert!(matches!(refused, Err(LedgerError::Refused { .. })), "{classes}: {refused:?}");
    }
}

#[test]
fn noise_that_fits_the_budget_is_accepted() {
    let noise_of = |room: &Room, queries: usize| {
        let of =
            |noise| Ok::<_, AccountError>(QueryBatch::new(PrivacyEvent::new(noise, HonestRatio::ALL), 10, queries));
        room.noise(MechanismKind::DiscreteLaplace, 1, 1, of)
    };
    let (folder, ledger) = fresh(5.0);
    let room = |limit| ledger.room(limit).expect("a budget");
    let first = noise_of(&room(None), 100).expect("room");
    assert_eq!(first, noise_of(&Room::of_new(budget(5.0)), 100).expect("room"));
    let within = noise_of(&room(Some(budget(3.0))), 100).expect("room");
    assert!(within.batch.event.mechanism().scale() < first.batch.event.mechanism().scale());
    assert_eq!(within.budget.epsilon, Some(3.0));
    // Half of the budget first: the best noise for the other half is exactly the same.
    let event = first.batch.event;
    ledger.charge("half", &event, 10, 50).expect("within");
    let second = noise_of(&room(None), 50).expect("room");
    assert_eq!(second.batch.event.mechanism(), event.mechanism());
    // Fewer queries allow less noise, and the result can be charged.
    let third = noise_of(&room(None), 2).expect("room");
    let after = ledger.charge("few", &third.batch.event, 10, 2).expect("found");
    assert_eq!(after.spent_epsilon, third.spent.epsilon);
    let error = noise_of(&room(None), 1_000_000).expect_err("too many");
    assert!(matches!(error, AccountError::Queries { .. }), "{error}");
    let many = |queries: usize| Ok::<_, AccountError>(QueryBatch::new(event, 10, queries));
    let most = Room::of_new(budget(5.0)).queries(many).expect("room").batch.queries;
    let other = Ledger::create(&folder.path().join("other"), budget(5.0)).expect("a ledger");
    assert!(other.charge("too many", &event, 10, most + 1).is_err() && other.charge("all", &event, 10, most).is_ok());
    let open = Ledger::create(&folder.path().join("open"), Budget { epsilon: None, ..budget(1.0) }).expect("a ledger");
    assert!(matches!(open.room(None), Err(LedgerError::Refused { .. })));
    assert!(open.room(Some(budget(f64::NAN))).is_err() && open.room(Some(budget(1.0))).is_ok());
}

#[test]
fn checks_are_charged_from_the_file_for_less_than_answers() {
    let folder = tempfile::tempdir().expect("a folder");
    let noise = MechanismKind::Skellam.with_scale(150.0).expect("in range");
    let check = PrivacyEvent::check(noise, HonestRatio::ALL, 200.0).expect("a check");
    let argmax = PrivacyEvent::new(noise, HonestRatio::ALL).with_threshold(200.0).expect("a threshold");
    let spent = |name: &str, event: &PrivacyEvent| {
        let path = folder.path().join(name);
        Ledger::create(&path, budget(1e3)).and_then(|ledger| ledger.charge("q", event, 10, 640)).expect("within");
        let statement = Ledger::open(&path).and_then(|ledger| ledger.statement()).expect("readable");
        assert_eq!(statement.charges[0].is_check, event.is_check());
        let words = "640 checks whether the largest noisy count reaches 200";
        assert_eq!(statement.claim.contains(words), event.is_check(), "{}", statement.claim);
        statement.spent_epsilon
    };
    let (checks, answers) = (spent("checks", &check), spent("answers", &argmax));
    assert!(checks < 0.8 * answers, "{checks} {answers}");
    // Both kinds in one ledger; the same noise is charged once, and only for the same kind.
    let ledger = Ledger::create(&folder.path().join("both"), budget(10.0)).expect("a ledger");
    let of = |event| ChargeRequest { queries: 640, question: "one", noise_digest: "two", ..request("q", event, None) };
    ledger.charge_once(&of(&check)).expect("within");
    assert_eq!(ledger.charge_once(&of(&check)).expect("charged already").queries, 640);
    assert!(matches!(ledger.charge_once(&of(&argmax)), Err(LedgerError::Refused { .. })));
    let both = ledger.charge("answers", &argmax, 10, 100).expect("within");
    assert!(both.spent_epsilon > checks && both.charges.len() == 2);
}

/// A request of a party.
fn of_party<'a>(label: &'a str, event: &'a PrivacyEvent, queries: usize, sizes: [usize; 2]) -> ChargeRequest<'a> {
    let [party_teachers, teachers] = sizes;
    ChargeRequest { queries, party: Some(PartySize { party_teachers, teachers }), ..request(label, event, None) }
}

#[test]
fn rounds_of_a_party_compose_for_one_teacher_and_for_all_its_votes() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("ledger");
    let open = || Ledger::open_or_create(&path, Budget { epsilon: None, ..budget(1.0) }).expect("a ledger");
    let (first, second, delta) = (coins(57_600), coins(14_400), given::delta(1e-5));
    let teachers = |event: PrivacyEvent, teachers| event.of_party(teachers).expect("a party");
    let one = open().charge_once(&of_party("first", &first, 20, [5, 250])).expect("no limit");
    // One kind gets nine tenths of delta, less the samplers' thousandth.
    let at = given::delta(0.9 * 0.999 * 1e-5);
    let account = |event| Accountant::new(event, at).with_classes(10).account_queries(20).expect("queries").epsilon;
    let party = one.party.expect("a party");
    assert!((one.spent_epsilon / account(first) - 1.0).abs() < 0.01, "{}", one.claim);
    assert!((party.spent_epsilon / account(teachers(first, 5)) - 1.0).abs() < 0.01, "{}", one.claim);
    assert!(party.teachers == 5 && party.samplers_included && party.spent_epsilon > 3.0 * one.spent_epsilon);

    let both = open().charge_once(&of_party("second", &second, 10, [2, 100])).expect("no limit");
    let direct = |sizes: [usize; 2]| {
        let mut filter = PrivacyFilter::new(Budget { epsilon: None, delta });
        for ((event, queries), size) in [(first, 20), (second, 10)].into_iter().zip(sizes) {
            filter.compose(&QueryBatch::new(teachers(event, size), 10, queries));
        }
        filter.fixed_epsilon()
    };
    let party = both.party.expect("a party");
    assert!((both.fixed_epsilon / direct([1, 1]) - 1.0).abs() < 1e-9, "{}", both.claim);
    assert!((party.fixed_epsilon / direct([5, 2]) - 1.0).abs() < 1e-9, "{}", both.claim);
    // The sizes of the two rounds are not exchanged, and neither is taken for both.
    assert!(direct([2, 5]) != direct([5, 2]) && direct([2, 2]) < direct([5, 2]) && direct([5, 2]) < direct([5, 5]));
    let words = ["For all votes of the party together", "2 to 5 teachers", "neighbours differ in one teacher's vote"];
    let assumption = "if every party gave all records of a person to the same teacher";
    assert!(words.into_iter().chain([assumption]).all(|words| both.claim.contains(words)), "{}", both.claim);
    let charges = Ledger::open(&path).and_then(|ledger| ledger.statement()).expect("readable").charges;
    assert_eq!(
        charges.iter().map(|charge| (charge.party_teachers, charge.teachers)).collect::<Vec<_>>(),
        [(5, Some(250)), (2, Some(100))]
    );
}

#[test]
fn pure_epsilons_of_a_party_add_up() {
    let folder = tempfile::tempdir().expect("a folder");
    // At such a delta, moments do not help.
    let small = Budget { delta: given::delta(1e-60), ..budget(5.0) };
    let ledger = Ledger::create(&folder.path().join("ledger"), small).expect("a new ledger");
    let event = event(1.0);
    ledger.charge_once(&of_party("first", &event, 1, [7, 70])).expect("within");
    // A charge without a number is of one teacher.
    ledger.charge("second", &event, 10, 1).expect("within");
    let statement = ledger.charge_once(&of_party("third", &event, 2, [3, 30])).expect("within");
    // Each vote that moves costs gamma at each of two counts.
    let (one, all) = (0.2 * 4.0, 0.2 * (7.0 + 1.0 + 2.0 * 3.0));
    let party = statement.party.expect("a party");
    assert!((statement.spent_epsilon / one - 1.0).abs() < 1e-6, "{}", statement.spent_epsilon);
    assert!((party.spent_epsilon / all - 1.0).abs() < 1e-6 && party.fixed_epsilon <= party.spent_epsilon, "{party:?}");
    assert!(statement.claim.contains("1 to 7 teachers, as the charges state"), "{}", statement.claim);
}

#[test]
fn a_party_of_one_teacher_is_not_named() {
    let folder = tempfile::tempdir().expect("a folder");
    let [alone, party] = ["alone", "party"].map(|name| folder.path().join(name));
    let event = event(0.9);
    let without = Ledger::create(&alone, budget(10.0)).and_then(|ledger| ledger.charge("q", &event, 10, 100));
    let with = Ledger::create(&party, budget(10.0))
        .and_then(|ledger| ledger.charge_once(&of_party("q", &event, 100, [1, 250])));
    let without = without.expect("within");
    assert_eq!(without, with.expect("within"));
    assert_eq!(std::fs::read(&alone).expect("a ledger"), std::fs::read(&party).expect("a ledger"));
    assert!(without.party.is_none() && !without.claim.contains("party"), "{}", without.claim);
    let text = std::fs::read_to_string(&alone).expect("a ledger");
    assert!(!text.contains("teachers"), "{text}");
}

#[test]
fn a_party_without_a_claim_is_not_charged() {
    let ((_folder, ledger), event) = (fresh(100.0), event(0.9));
    // `a_party_without_a_claim_is_refused` in `ledger/lines.rs` has all cases.
    let refused = ledger.charge_once(&of_party("q", &event, 1, [6, 5])).expect_err("six of five").to_string();
    assert!(refused.contains("party_teachers is 6, expected 1 to 5"), "{refused}");
    assert_eq!(ledger.statement().expect("readable").queries, 0);
    // The same noise for a larger party than the one that was charged.
    let same = |teachers| ChargeRequest { noise_digest: "a", ..of_party("q", &event, 1, [teachers, 5]) };
    ledger.charge_once(&same(3)).expect("within");
    assert!([3, 2].into_iter().all(|teachers| ledger.charge_once(&same(teachers)).is_ok()));
    assert!(matches!(ledger.charge_once(&same(4)), Err(LedgerError::Refused { .. })));
    assert_eq!(ledger.statement().expect("readable").queries, 1);
}
