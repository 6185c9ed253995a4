//! Two classes and a threshold have three outcomes: a ledger's charge and an account without votes must cover all
//! three.

use speed_accountant::{Accountant, Delta, PrivacyFilter, QueryBatch};

use crate::oracle::case::{Case, fixed};
use crate::oracle::truth;

const QUERIES: usize = 100;

/// Returns a hundred queries between two classes at these votes of 250 teachers, 75 of whom add their noise.
fn case(row: [u32; 2], threshold: Option<i64>) -> Case {
    Case { threshold, ..fixed("two classes", 0.1, 250, (75, 0), &row, QUERIES) }
}

/// Returns the claims of a case without votes: of an account, of a ledger, and of a ledger that does not know the
/// number of classes.
fn claims(case: &Case) -> [f64; 3] {
    let delta = Delta::new(case.delta).expect("a delta");
    let event = case.event().expect("an event");
    let account = Accountant::new(event, delta).with_classes(2).account_queries(QUERIES).expect("finite").epsilon;
    let ledger = |classes: Option<usize>| {
        PrivacyFilter::least_budget(delta, &[QueryBatch::new(event, classes, QUERIES)]).expect("few").epsilon
    };
    [account, ledger(Some(2)), ledger(None)]
}

#[test]
fn a_threshold_is_an_outcome_of_its_own() {
    // The votes and thresholds that cost the most: one class is next to the threshold, the other far below it.
    for (row, threshold) in [([0, 250], 250), ([50, 200], 200), ([200, 50], 201), ([125, 125], 125)] {
        let case = case(row, Some(threshold));
        let truth = truth::least_epsilon(&case);
        assert!(threshold == 125 || (truth - 36.977).abs() < 1e-3, "{row:?} {threshold}: {truth}");
        for claim in claims(&case) {
            assert!(claim >= truth, "{row:?} {threshold}: {claim} is below {truth}");
        }
    }
    let without = case([125, 125], None);
    let truth = truth::least_epsilon(&without);
    let [account, ledger, of_any] = claims(&without);
    assert!(account >= truth && ledger >= truth && of_any > ledger, "{account} {ledger} {of_any} {truth}");
    // The cost of two classes without a threshold is not enough for two classes with a threshold.
    assert!(ledger < 22.0, "{ledger}");
}
