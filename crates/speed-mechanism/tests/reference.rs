//! Compares the integer noise with sums from its definition. The accountant's `tests/reference.rs` compares both kinds of
//! Laplace noise with values computed at 30 digits by other formulas.

use speed_mechanism::{DiscreteLaplace, GeneralisedLaplace, InverseScale, MechanismError};

/// Relative agreement required of every value.
const TOLERANCE: f64 = 1e-12;

fn gamma(value: f64) -> InverseScale {
    InverseScale::new(value).expect("a valid scale")
}

fn assert_close(found: f64, reference: f64, what: &str) {
    assert!((found / reference - 1.0).abs() <= TOLERANCE, "{what}: {found:e} against {reference:e}");
}

#[test]
fn integer_noise_is_the_convolution_of_negative_binomials() {
    // P_k = sum_j a_j a_{j+k}: slow and direct. Shapes above one are differences of two classes' noise.
    for (shape, scale) in [(0.004, 0.1), (0.7, 0.1), (1.4, 0.1), (1.8, 0.5), (2.0, 0.05), (1.0, 3.0)] {
        let p = f64::exp(-scale);
        let terms = (60.0 / scale) as usize + 400;
        let mut a = vec![(1.0 - p).powf(shape)];
        for j in 1..terms {
            a.push(a[j - 1] * p * (j as f64 - 1.0 + shape) / j as f64);
        }
        let noise = DiscreteLaplace::new(gamma(scale), shape).expect("a valid shape");
        let table = noise.lattice(150);
        for k in [0, 1, 2, 5, 17, 60, 150] {
            let direct: f64 = a.iter().zip(&a[k..]).map(|(x, y)| x * y).sum();
            assert_close(table.log_pmf(k as i64).exp(), direct, &format!("P[X = {k}] of shape {shape}, gamma {scale}"));
        }
        let total = noise.survival(-20) + noise.survival(21);
        assert!((total - 1.0).abs() < 1e-14, "both sides of 20 sum to {total}");
    }
}

#[test]
fn integer_tails_do_not_underflow() {
    // Shape 1: P[X >= t] = p^t / (1 + p).
    let noise = DiscreteLaplace::new(gamma(10.0), 1.0).expect("a valid shape");
    let exact = -10.0 * 250.0 - (-10f64).exp().ln_1p();
    assert!((noise.log_survival(250) - exact).abs() < 1e-9);
    assert_eq!(noise.survival(250), 0.0);
}

#[test]
fn refuses_a_shape_out_of_range() {
    for shape in [0.0, -0.5, 2.001, f64::NAN, f64::INFINITY] {
        let refused =
            [DiscreteLaplace::new(gamma(0.1), shape).map(drop), GeneralisedLaplace::new(gamma(0.1), shape).map(drop)];
        assert!(refused.iter().all(|result| matches!(result, Err(MechanismError::Shape { .. }))), "{shape}");
    }
}
