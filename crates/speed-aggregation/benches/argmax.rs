//! The steps of a round: encryption, sum, argmax of one query, and the operations inside it.
//!
//! ```console
//! $ cargo bench -p speed-aggregation --bench argmax
//! ```

use std::num::NonZeroUsize;
use std::sync::Mutex;
use std::time::Duration;

use criterion::{Criterion, criterion_group, criterion_main};
use speed_aggregation::cost::{Operations, Work};
use speed_aggregation::error::ServerError;
use speed_aggregation::{
    EncryptedAnswer, EvaluationKey, Message, Parameters, PublicKey, Round, RoundSpec, SecretKey, Server, Teacher,
    generate_keys,
};
use speed_core::{Circuit, Randomness, VoteShape};

/// Simulated keys and noise: every run computes on the same ciphertexts.
const RANDOMNESS: Randomness = Randomness::simulation([1; 32]);
const TEACHERS: usize = 250;
const CLASSES: usize = 10;

struct Keys {
    secret: SecretKey,
    public: PublicKey,
    evaluation: EvaluationKey,
}

fn keys() -> Keys {
    let keys = generate_keys(&Parameters::TOURNAMENT_128, &RANDOMNESS).expect("a simulation needs no entropy");
    Keys { secret: keys.secret, public: keys.public, evaluation: keys.evaluation.expand() }
}

/// Returns a round with `queries` queries in which at least one of 250 teachers must answer.
fn round(queries: usize, classes: usize) -> Round {
    let shape = VoteShape::new(TEACHERS, queries, classes).expect("a shape");
    Round::new(RoundSpec { min_teachers: 1, ..RoundSpec::new(b"bench", shape, 898) }).expect("valid")
}

fn message(keys: &Keys, round: &Round) -> Message {
    let values: Vec<i64> = (0..round.values() as i64).map(|value| value * 7 % 250).collect();
    Teacher::new(0).answer(&keys.public, round, &values, &RANDOMNESS).expect("in range")
}

fn server(keys: &Keys, round: &Round, circuit: Circuit) -> Server {
    let mut server = Server::new(keys.evaluation.clone(), round.clone()).expect("in range");
    server.add(&message(keys, round)).expect("the round's");
    server.with_circuit(circuit).expect("exact").with_randomness(RANDOMNESS)
}

fn answer(server: &Server) -> Vec<EncryptedAnswer> {
    let answers = Mutex::new(Vec::new());
    server
        .answer::<ServerError>(NonZeroUsize::MIN, &[0], &|group, _| {
            answers.lock().expect("no panic").extend(group);
            Ok(())
        })
        .expect("complete");
    answers.into_inner().expect("no panic")
}

/// Measures the message of one teacher for 100 queries: the teacher's encryption, and the server's decoding and sum.
fn messages(criterion: &mut Criterion) {
    let (keys, round) = (keys(), round(100, CLASSES));
    criterion.bench_function("encrypt 100 queries", |bencher| bencher.iter(|| message(&keys, &round)));
    let bytes = message(&keys, &round).to_bytes();
    criterion.bench_function("decode and sum 100 queries", |bencher| {
        bencher.iter_batched(
            || Server::new(keys.evaluation.clone(), round.clone()).expect("in range"),
            |mut server| server.add(&Message::from_bytes(&bytes).expect("intact")),
            criterion::BatchSize::LargeInput,
        );
    });
}

/// Measures one query on one thread: two classes (one comparison), and ten classes with either circuit.
fn argmax(criterion: &mut Criterion) {
    let keys = keys();
    let mut group = criterion.benchmark_group("argmax");
    group.sample_size(10);
    for (name, classes, circuit) in [
        ("compare two classes", 2, Circuit::Tournament),
        ("tournament of ten classes", CLASSES, Circuit::Tournament),
        ("all pairs of ten classes", CLASSES, Circuit::AllPairs),
    ] {
        let server = server(&keys, &round(1, classes), circuit);
        group.bench_function(name, |bencher| bencher.iter(|| answer(&server)));
    }
    group.finish();
    let answers = answer(&server(&keys, &round(1, CLASSES), Circuit::Tournament));
    criterion.bench_function("open one answer", |bencher| bencher.iter(|| keys.secret.open(&answers[0])));
}

/// Measures one operation of each kind, in the batch sizes of a tournament of ten classes.
fn operations(criterion: &mut Criterion) {
    let keys = keys();
    let server = server(&keys, &round(1, CLASSES), Circuit::Tournament);
    let mut group = criterion.benchmark_group("operation");
    group.sample_size(10);
    for (name, operation) in [
        ("coarse bootstrap", (|work| work.coarse_bootstraps) as fn(Work) -> Operations),
        ("fine bootstrap", |work| work.fine_bootstraps),
        ("key switch", |work| work.key_switches),
        ("packing", |work| work.packings),
    ] {
        group.bench_function(name, |bencher| {
            bencher.iter_custom(|iterations| {
                let mut time = Duration::ZERO;
                for _ in 0..iterations {
                    let before = operation(server.work());
                    answer(&server);
                    let after = operation(server.work());
                    time += (after.time - before.time).div_f64((after.count - before.count) as f64);
                }
                time
            });
        });
    }
    group.finish();
}

criterion_group!(benches, messages, argmax, operations);
criterion_main!(benches);
