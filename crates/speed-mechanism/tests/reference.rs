//! Compares the analytic distributions with reference values, computed at 30 digits by other formulas (Bessel and
//! Struve functions, hypergeometric series).

use speed_mechanism::{DiscreteLaplace, GeneralisedLaplace, InverseScale, MechanismError};

/// Relative agreement required of every value.
const TOLERANCE: f64 = 1e-12;

/// Shape, x = gamma u, density and tail of the generalised Laplace distribution with gamma = 1.
const CONTINUOUS: [(f64, f64, f64, f64); 20] = [
    (0.3, 0.01, 3.0553175284661, 0.445419902470072),
    (0.3, 1.0, 0.0925515318073304, 0.0649232536109167),
    (0.3, 3.0, 0.00607660302880575, 0.0051408877176692),
    (0.3, 25.0, 3.94532646319278e-13, 3.84222318243849e-13),
    (0.5, 0.01, 1.5028188727034, 0.481789007085514),
    (0.5, 1.0, 0.134016241016994, 0.104496831502326),
    (0.5, 3.0, 0.0110579276872778, 0.00981929872154689),
    (0.5, 25.0, 1.10267687259032e-12, 1.08202026610384e-12),
    (0.7, 0.01, 0.845765898148363, 0.491108385824995),
    (0.7, 1.0, 0.161650640443409, 0.139662329946899),
    (0.7, 3.0, 0.0164703635761799, 0.0153439759430636),
    (0.7, 25.0, 2.49719678696767e-12, 2.46902873526434e-12),
    (0.9, 0.01, 0.571391483570579, 0.494223229710708),
    (0.9, 1.0, 0.178566273497815, 0.170265097961511),
    (0.9, 3.0, 0.0220785224908492, 0.0215667949671751),
    (0.9, 25.0, 5.03875713785874e-12, 5.01974455675442e-12),
    (1.0, 0.01, 0.495024916874584, 0.495024916874584),
    (1.0, 1.0, 0.183939720585721, 0.183939720585721),
    (1.0, 3.0, 0.024893534183932, 0.024893534183932),
    (1.0, 25.0, 6.94397193248201e-12, 6.94397193248201e-12),
];

/// Shape, gamma, `P[X = 0..=3]`, `P[X >= t]` for t = 0, 1, 2, 10 of the integer noise.
type Integer = (f64, f64, [f64; 4], [f64; 4]);
const INTEGER: [Integer; 8] = [
    (
        0.3,
        0.1,
        [0.275782751040118, 0.0871580387912325, 0.054384446598518, 0.0390077524470642],
        [0.637891375520059, 0.362108624479941, 0.274950585688708, 0.0696354072205368],
    ),
    (
        0.3,
        1.0,
        [0.76924146389745, 0.0861872400707468, 0.0207148723961462, 0.00585757840617673],
        [0.884620731948725, 0.115379268051275, 0.029192027980528, 3.62080151703348e-6],
    ),
    (
        0.7,
        0.1,
        [0.0831783729394318, 0.0613377097193724, 0.0500495744587156, 0.0421417466255569],
        [0.541589186469716, 0.458410813530284, 0.397073103810912, 0.147786666524348],
    ),
    (
        0.7,
        1.0,
        [0.564889526846198, 0.147679630233609, 0.0464157587292134, 0.0154076792974294],
        [0.782444763423099, 0.217555236576901, 0.0698756063432918, 1.57031387750218e-5],
    ),
    (
        0.9,
        0.1,
        [0.0575138397332259, 0.0497081139191137, 0.0437738796271825, 0.0388220521251665],
        [0.528756919866613, 0.471243080133387, 0.421534966214273, 0.179201239738068],
    ),
    (
        0.9,
        1.0,
        [0.492691169707106, 0.164176484543857, 0.0575027774972236, 0.0204716042775681],
        [0.746345584853553, 0.253654415146447, 0.0894779306025898, 2.63670336308357e-5],
    ),
    (
        1.0,
        0.1,
        [0.04995837495788, 0.0452042070061605, 0.0409024579518173, 0.0370100744444467],
        [0.52497918747894, 0.47502081252106, 0.4298166055149, 0.19312905011639],
    ),
    (
        1.0,
        1.0,
        [0.46211715726001, 0.170003401568548, 0.0625407563662817, 0.023007458502467],
        [0.731058578630005, 0.268941421369995, 0.0989380198014472, 3.31900081220642e-5],
    ),
];

fn gamma(value: f64) -> InverseScale {
    InverseScale::new(value).expect("a valid scale")
}

fn assert_close(found: f64, reference: f64, what: &str) {
    assert!((found / reference - 1.0).abs() <= TOLERANCE, "{what}: {found:e} against {reference:e}");
}

#[test]
fn continuous_density_and_tail() {
    for (shape, x, density, survival) in CONTINUOUS {
        let noise = GeneralisedLaplace::new(gamma(1.0), shape).expect("a valid shape");
        assert_close(noise.density(x), density, &format!("density of shape {shape} at {x}"));
        assert_close(noise.survival(x), survival, &format!("tail of shape {shape} at {x}"));
        // The same in votes: a smaller gamma stretches the distribution.
        let wide = GeneralisedLaplace::new(gamma(0.1), shape).expect("a valid shape");
        assert_close(wide.survival(x / 0.1), survival, &format!("stretched tail of shape {shape} at {x}"));
        assert_close(wide.density(-x / 0.1), 0.1 * density, &format!("stretched density of shape {shape} at -{x}"));
    }
}

#[test]
fn integer_probabilities_and_tails() {
    for (shape, scale, pmf, survival) in INTEGER {
        let noise = DiscreteLaplace::new(gamma(scale), shape).expect("a valid shape");
        for (k, reference) in (0..).zip(pmf) {
            assert_close(noise.pmf(k), reference, &format!("P[X = {k}] of shape {shape}, gamma {scale}"));
            assert_close(noise.pmf(-k), reference, &format!("P[X = -{k}] of shape {shape}, gamma {scale}"));
        }
        let tails = noise.log_survivals(12);
        for (t, reference) in [0, 1, 2, 10].into_iter().zip(survival) {
            assert_close(noise.survival(t), reference, &format!("P[X >= {t}] of shape {shape}, gamma {scale}"));
            assert_close(
                tails[t as usize].exp(),
                reference,
                &format!("listed P[X >= {t}] of shape {shape}, gamma {scale}"),
            );
        }
    }
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
        for k in [0, 1, 2, 5, 17, 60, 150] {
            let direct: f64 = a.iter().zip(&a[k..]).map(|(x, y)| x * y).sum();
            assert_close(noise.pmf(k as i64), direct, &format!("P[X = {k}] of shape {shape}, gamma {scale}"));
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
        let result = DiscreteLaplace::new(gamma(0.1), shape);
        assert!(matches!(result, Err(MechanismError::Shape { .. })), "{shape}");
    }
}
