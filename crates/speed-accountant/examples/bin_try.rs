use speed_accountant::*;
use std::time::Instant;
fn main() {
    let delta = Delta::new(1e-5).unwrap();
    for (coins, tau, refs) in [
        (800u64, 1.0, [1.053, 1.524, 3.679, 9.381]),
        (800, 0.9, [1.116, 1.625, 3.906, 9.996]),
        (800, 0.7, [1.282, 1.849, 4.509, 11.66]),
        (6400, 1.0, [0.340, 0.0, 1.162, 2.815]),
        (10000, 1.0, [0.267, 0.384, 0.911, 2.196]),
        (57600, 1.0, [0.103, 0.149, 0.353, 0.843]),
    ] {
        for (k, r) in [10usize, 20, 100, 500].into_iter().zip(refs) {
            let event =
                PrivacyEvent::new(Mechanism::binomial(NoiseCoins::new(coins).unwrap()), HonestRatio::new(tau).unwrap());
            let t = Instant::now();
            let a = Accountant::new(event, delta).account_queries(k).unwrap();
            println!(
                "{coins} tau {tau} k {k}: {:.4} ({r}: {:+.2}%) order {:?} {:?} {:.0} ms",
                a.epsilon,
                100.0 * (a.epsilon / r - 1.0),
                a.order,
                a.composition,
                t.elapsed().as_secs_f64() * 1e3
            );
        }
    }
    for sigma in [40.0] {
        let event = PrivacyEvent::new(Mechanism::skellam(NoiseDeviation::new(sigma).unwrap()), HonestRatio::ALL);
        let t = Instant::now();
        let a = Accountant::new(event, delta).account_queries(100).unwrap();
        println!("skellam {sigma}: {:.4} {:?} {:.0} ms", a.epsilon, a.composition, t.elapsed().as_secs_f64() * 1e3);
    }
    for coins in [1u64, 2, 5, 10, 20, 40, 100, 200] {
        let event = PrivacyEvent::new(Mechanism::binomial(NoiseCoins::new(coins).unwrap()), HonestRatio::ALL);
        let t = Instant::now();
        let a = Accountant::new(event, delta).account_queries(1).map(|a| a.epsilon);
        println!("{coins} coins: {a:?} {:.0} ms", t.elapsed().as_secs_f64() * 1e3);
    }
}
