//! Times of the accountant's hot paths: accounts of 100 rows of votes, accounts without votes, and a convolution.

use std::hint::black_box;

use criterion::{BenchmarkId, Criterion, criterion_group, criterion_main};
use speed_accountant::composition::{Composition, PrivacyProfile};
use speed_accountant::{Accountant, Adversary, Budget, Delta, PrivacyEvent, PrivacyFilter, QueryBatch};
use speed_mechanism::{HonestRatio, InverseScale, Mechanism};

/// 100 queries to 250 teachers with 10 classes, from agreement to a close vote.
fn votes() -> Vec<Vec<u32>> {
    (0..100).map(|query| vec![240 - query, 2 + query, 1, 1, 1, 1, 1, 1, 1, 1]).collect()
}

fn event(tau: f64) -> PrivacyEvent {
    let gamma = InverseScale::new(0.1).expect("a scale");
    PrivacyEvent::new(Mechanism::discrete_laplace(gamma), HonestRatio::new(tau).expect("a ratio"))
}

fn delta() -> Delta {
    Delta::new(1e-5).expect("a delta")
}

fn account(criterion: &mut Criterion) {
    let votes = votes();
    let mut group = criterion.benchmark_group("account");
    for tau in [1.0, 0.9] {
        let accountant = Accountant::new(event(tau), delta());
        group.bench_function(BenchmarkId::new("100 rows", tau), |bench| {
            bench.iter(|| accountant.account(black_box(&votes), 250).expect("valid votes").epsilon);
        });
    }
    let colluding = Accountant::new(event(0.9), delta()).with_adversary(Adversary::Colluding);
    group.bench_function("100 rows, collusion", |bench| {
        bench.iter(|| colluding.account(black_box(&votes), 250).expect("valid votes").epsilon);
    });
    let paper = Accountant::paper(event(0.9), delta());
    group.bench_function("100 rows, the paper's formulas", |bench| {
        bench.iter(|| paper.account(black_box(&votes), 250).expect("valid votes").epsilon);
    });
    group.finish();
}

fn account_queries(criterion: &mut Criterion) {
    let accountant = Accountant::new(event(0.9), delta());
    criterion.bench_function("account_queries, 1000", |bench| {
        bench.iter(|| accountant.account_queries(black_box(1_000)).expect("queries").epsilon);
    });
    criterion.bench_function("privacy filter, two kinds", |bench| {
        bench.iter(|| {
            let mut filter = PrivacyFilter::new(Budget { epsilon: Some(20.0), delta: delta() });
            let batches = [QueryBatch::new(event(1.0), 10, 100), QueryBatch::new(event(0.9), 10, 100)];
            filter.try_compose(black_box(&batches)).expect("within the budget");
            filter
        });
    });
}

fn convolution(criterion: &mut Criterion) {
    let parts = [(PrivacyProfile::pure(0.2, 64).connect(), 100), (PrivacyProfile::pure(0.1, 32).connect(), 1_000)];
    criterion.bench_function("convolution, 1100 queries", |bench| {
        bench.iter(|| Composition::new(black_box(&parts), 2.0).expect("a window").epsilon(1e-5));
    });
}

criterion_group!(benches, account, account_queries, convolution);
criterion_main!(benches);
