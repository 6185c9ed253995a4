//! The accountant against reference values, computed by independent code at 30 digits (single formulas) or in double
//! precision (sums). The vote rows of the composed runs are fitted, not real.

use speed_accountant::{
    Delta, Noise, PrivacyEvent, account, account_data_independent, account_up_to, moment, per_query_epsilon, q,
};
use speed_mechanism::{HonestRatio, InverseScale};

const TOLERANCE: f64 = 1e-9;

/// tau, gamma, epsilon' of Theorem 2.
#[rustfmt::skip]
const THEOREM_2: [(f64, f64, f64); 50] = [
    (0.3, 0.01, 0.23107156494635),
    (0.3, 0.1, 0.91450485447318),
    (0.3, 0.33, 1.9125107583818),
    (0.3, 1.0, 3.9379558002263),
    (0.3, 10.0, 23.438554284879),
    (0.5, 0.01, 0.074946452127545),
    (0.5, 0.1, 0.51192436890716),
    (0.5, 0.33, 1.3567931102553),
    (0.5, 1.0, 3.2804204759071),
    (0.5, 10.0, 22.446230281706),
    (0.6, 0.01, 0.049748624085412),
    (0.6, 0.1, 0.4042627358777),
    (0.6, 0.33, 1.1722714588377),
    (0.6, 1.0, 3.0356329729556),
    (0.6, 10.0, 22.036922112651),
    (0.7, 0.01, 0.036163309828165),
    (0.7, 0.1, 0.3296163971303),
    (0.7, 0.33, 1.0263007012355),
    (0.7, 1.0, 2.8255963152701),
    (0.7, 10.0, 21.663890634783),
    (0.8, 0.01, 0.028284349715769),
    (0.8, 0.1, 0.27655753131675),
    (0.8, 0.33, 0.89044236475971),
    (0.8, 1.0, 2.5735450770668),
    (0.8, 10.0, 21.318930386272),
    (0.9, 0.01, 0.023369362635101),
    (0.9, 0.1, 0.23149167545413),
    (0.9, 0.33, 0.75460257667929),
    (0.9, 1.0, 2.246663497797),
    (0.9, 10.0, 20.996606421866),
    (0.95, 0.01, 0.021515319499643),
    (0.95, 0.1, 0.2143309818106),
    (0.95, 0.33, 0.70348458338685),
    (0.95, 1.0, 2.1154134259029),
    (0.95, 10.0, 20.704662253609),
    (0.99, 0.01, 0.020280512178754),
    (0.99, 0.1, 0.20267426759563),
    (0.99, 0.33, 0.6681731018997),
    (0.99, 1.0, 2.021961457001),
    (0.99, 10.0, 20.157650615552),
    (0.996, 0.01, 0.020110967034181),
    (0.996, 0.1, 0.20105907342708),
    (0.996, 0.33, 0.66324005263888),
    (0.996, 1.0, 2.0087211737882),
    (0.996, 10.0, 20.064414913763),
    (1.0, 0.01, 0.02),
    (1.0, 0.1, 0.2),
    (1.0, 0.33, 0.66),
    (1.0, 1.0, 2.0),
    (1.0, 10.0, 20.0),
];

/// tau, gamma, the maximum over integers t of ln P[X >= t] / P[X >= t + 2].
#[rustfmt::skip]
const INTEGER_LEMMA: [(f64, f64, f64); 25] = [
    (0.3, 0.05, 0.56456230722575),
    (0.3, 0.1, 0.84157661792776),
    (0.3, 0.5, 2.1844072189316),
    (0.3, 1.0, 3.4112633440496),
    (0.3, 2.0, 5.5653098866462),
    (0.5, 0.05, 0.27458244431782),
    (0.5, 0.1, 0.47533989889191),
    (0.5, 0.5, 1.6441360241497),
    (0.5, 1.0, 2.8142112534553),
    (0.5, 2.0, 4.9301387447035),
    (0.7, 0.05, 0.16388263569874),
    (0.7, 0.1, 0.31038735118384),
    (0.7, 0.5, 1.3116566558498),
    (0.7, 1.0, 2.4157067210678),
    (0.7, 2.0, 4.4881575455093),
    (0.9, 0.05, 0.11456011962983),
    (0.9, 0.1, 0.22662608687434),
    (0.9, 0.5, 1.0865681108844),
    (0.9, 1.0, 2.1211967339826),
    (0.9, 2.0, 4.1461109402917),
    (1.0, 0.05, 0.1),
    (1.0, 0.1, 0.2),
    (1.0, 0.5, 1.0),
    (1.0, 1.0, 2.0),
    (1.0, 2.0, 4.0),
];

/// tau, gamma, votes, q of Proposition 4 with its cap.
#[rustfmt::skip]
const PROPOSITION_4: [(f64, f64, [u32; 10], f64); 27] = [
    (0.3, 0.05, [130, 120, 0, 0, 0, 0, 0, 0, 0, 0], 0.664749708042594),
    (0.3, 0.05, [170, 48, 20, 12, 0, 0, 0, 0, 0, 0], 0.00590818049307073),
    (0.3, 0.1, [125, 125, 0, 0, 0, 0, 0, 0, 0, 0], 0.500042422187031),
    (0.3, 1.0, [25, 25, 25, 25, 25, 25, 25, 25, 25, 25], 0.9),
    (0.5, 0.05, [144, 105, 1, 0, 0, 0, 0, 0, 0, 0], 0.150925560630146),
    (0.5, 0.1, [130, 120, 0, 0, 0, 0, 0, 0, 0, 0], 0.34268081092076),
    (0.5, 0.1, [170, 48, 20, 12, 0, 0, 0, 0, 0, 0], 7.51284005384048e-6),
    (0.5, 1.0, [125, 125, 0, 0, 0, 0, 0, 0, 0, 0], 0.5),
    (0.6, 0.05, [25, 25, 25, 25, 25, 25, 25, 25, 25, 25], 0.9),
    (0.6, 0.1, [144, 105, 1, 0, 0, 0, 0, 0, 0, 0], 0.0252632009824255),
    (0.6, 1.0, [130, 120, 0, 0, 0, 0, 0, 0, 0, 0], 6.3681705304207e-5),
    (0.6, 1.0, [170, 48, 20, 12, 0, 0, 0, 0, 0, 0], 2.0636805822302e-53),
    (0.7, 0.05, [125, 125, 0, 0, 0, 0, 0, 0, 0, 0], 0.523374652513016),
    (0.7, 0.1, [25, 25, 25, 25, 25, 25, 25, 25, 25, 25], 0.9),
    (0.7, 1.0, [144, 105, 1, 0, 0, 0, 0, 0, 0, 0], 3.01203914288732e-17),
    (0.9, 0.05, [130, 120, 0, 0, 0, 0, 0, 0, 0, 0], 0.438346985366968),
    (0.9, 0.05, [170, 48, 20, 12, 0, 0, 0, 0, 0, 0], 0.00893483391825682),
    (0.9, 0.1, [125, 125, 0, 0, 0, 0, 0, 0, 0, 0], 0.500087082611369),
    (0.9, 1.0, [25, 25, 25, 25, 25, 25, 25, 25, 25, 25], 0.9),
    (0.996, 0.05, [144, 105, 1, 0, 0, 0, 0, 0, 0, 0], 0.154609022304824),
    (0.996, 0.1, [130, 120, 0, 0, 0, 0, 0, 0, 0, 0], 0.276943324273239),
    (0.996, 0.1, [170, 48, 20, 12, 0, 0, 0, 0, 0, 0], 2.07719276014741e-5),
    (0.996, 1.0, [125, 125, 0, 0, 0, 0, 0, 0, 0, 0], 0.5),
    (1.0, 0.05, [25, 25, 25, 25, 25, 25, 25, 25, 25, 25], 0.9),
    (1.0, 0.1, [144, 105, 1, 0, 0, 0, 0, 0, 0, 0], 0.029875326733536),
    (1.0, 1.0, [130, 120, 0, 0, 0, 0, 0, 0, 0, 0], 0.000136199789287455),
    (1.0, 1.0, [170, 48, 20, 12, 0, 0, 0, 0, 0, 0], 3.21688030383181e-52),
];

/// epsilon, q, order, moment of Theorem 3.
#[rustfmt::skip]
const THEOREM_3: [(f64, f64, u32, f64); 28] = [
    (0.1, 1e-09, 1, 2.1034183614023655e-10),
    (0.1, 0.0001, 5, 0.00011745234765575604),
    (0.1, 0.01, 10, 0.02738325462059118),
    (0.1, 0.1, 25, 0.8861152012661915),
    (0.1, 0.44, 1, 0.010000000000000002),
    (0.1, 0.6, 5, 0.15000000000000002),
    (0.2, 1e-09, 10, 8.603083646221896e-09),
    (0.2, 0.0001, 25, 0.015179193094454726),
    (0.2, 0.1, 1, 0.04000000000000001),
    (0.2, 0.3, 5, 0.6000000000000001),
    (0.2, 0.44, 10, 1.951199527399953),
    (0.2, 0.6, 25, 5.0),
    (0.23149167545413, 0.0001, 1, 5.209508832909691e-05),
    (0.23149167545413, 0.01, 5, 0.034348997934365556),
    (0.23149167545413, 0.1, 10, 0.7973456259898424),
    (0.23149167545413, 0.3, 25, 4.712565713025791),
    (0.23149167545413, 0.6, 1, 0.05358839580456025),
    (0.3296163971303, 1e-09, 5, 6.1491755772142975e-09),
    (0.3296163971303, 0.0001, 10, 0.0029869365036212588),
    (0.3296163971303, 0.01, 25, 3.6636574437153433),
    (0.3296163971303, 0.3, 1, 0.10864696925715964),
    (0.3296163971303, 0.44, 5, 1.6297045388573945),
    (0.3296163971303, 0.6, 10, 3.2961639713029998),
    (2.0, 1e-09, 25, 29.27673416305378),
    (2.0, 0.01, 1, 0.12415276135488439),
    (2.0, 0.1, 5, 7.878776501937488),
    (2.0, 0.3, 10, 20.0),
    (2.0, 0.44, 25, 50.0),
];

/// Queries, per-query epsilon, epsilon at delta = 1e-5 from the branches of Theorem 3 that use no votes.
#[rustfmt::skip]
const DATA_INDEPENDENT: [(usize, f64, f64); 24] = [
    (1, 0.1, 0.5605170185988091),
    (1, 0.2, 0.6605170185988092),
    (1, 0.224776466761, 0.6852934853598092),
    (1, 0.23149167545413, 0.6920086940529392),
    (1, 0.3042581029834, 0.7647751215822092),
    (1, 0.3296163971303, 0.7901334157291092),
    (10, 0.1, 1.4605170185988092),
    (10, 0.2, 2.460517018598809),
    (10, 0.224776466761, 2.708281686208809),
    (10, 0.23149167545413, 2.7754337731401093),
    (10, 0.3042581029834, 3.5030980484328094),
    (10, 0.3296163971303, 3.756680989901809),
    (100, 0.1, 5.302585092994046),
    (100, 0.2, 11.756462732485115),
    (100, 0.224776466761, 13.335131733918956),
    (100, 0.23149167545413, 13.79472210316915),
    (100, 0.3042581029834, 19.642411717143702),
    (100, 0.3296163971303, 22.05350812105906),
    (500, 0.1, 13.256462732485115),
    (500, 0.2, 31.51292546497023),
    (500, 0.224776466761, 36.7751554697497),
    (500, 0.23149167545413, 38.307123367250355),
    (500, 0.3042581029834, 57.79942208049885),
    (500, 0.3296163971303, 65.83641009355004),
];

/// Votes with how many queries have them; epsilon and best order at gamma = 0.1, delta = 1e-5, tau = 1, 0.9, 0.7, 0.5,
/// and epsilon at gamma = 0.05, tau = 1 with orders up to 8 (PATE 2017).
struct Composed {
    name: &'static str,
    votes: &'static [([u32; 10], usize)],
    results: [(f64, f64, u32); 4],
    pate: f64,
}

#[rustfmt::skip]
const COMPOSED: [Composed; 5] = [
    Composed {
        name: "mnist_fit_mingap9_round",
        votes: &[([129, 120, 1, 0, 0, 0, 0, 0, 0, 0], 1), ([141, 109, 0, 0, 0, 0, 0, 0, 0, 0], 3), ([141, 108, 1, 0, 0, 0, 0, 0, 0, 0], 1), ([142, 108, 0, 0, 0, 0, 0, 0, 0, 0], 1), ([151, 98, 1, 0, 0, 0, 0, 0, 0, 0], 1), ([154, 96, 0, 0, 0, 0, 0, 0, 0, 0], 2), ([155, 95, 0, 0, 0, 0, 0, 0, 0, 0], 10), ([93, 78, 78, 1, 0, 0, 0, 0, 0, 0], 1), ([170, 48, 20, 12, 0, 0, 0, 0, 0, 0], 20), ([180, 42, 17, 11, 0, 0, 0, 0, 0, 0], 1), ([205, 27, 11, 7, 0, 0, 0, 0, 0, 0], 2), ([245, 3, 1, 1, 0, 0, 0, 0, 0, 0], 57)],
        results: [(1.0, 1.4149888669201307, 18), (0.9, 1.6550174285829515, 16), (0.7, 2.3736153371426285, 11), (0.5, 3.587807908447652, 8)],
        pate: 2.0359061936270098,
    },
    Composed {
        name: "svhn_fit_round",
        votes: &[([126, 123, 1, 0, 0, 0, 0, 0, 0, 0], 3), ([128, 122, 0, 0, 0, 0, 0, 0, 0, 0], 1), ([128, 121, 1, 0, 0, 0, 0, 0, 0, 0], 1), ([139, 111, 0, 0, 0, 0, 0, 0, 0, 0], 32), ([83, 83, 83, 1, 0, 0, 0, 0, 0, 0], 1), ([92, 79, 79, 0, 0, 0, 0, 0, 0, 0], 3), ([94, 77, 77, 2, 0, 0, 0, 0, 0, 0], 2), ([250, 0, 0, 0, 0, 0, 0, 0, 0, 0], 457)],
        results: [(1.0, 4.725092316452575, 11), (0.9, 5.588022142939316, 5), (0.7, 8.164901202555226, 4), (0.5, 12.370458002538289, 4)],
        pate: 3.3785928058341415,
    },
    Composed {
        name: "all_unanimous_100",
        votes: &[([250, 0, 0, 0, 0, 0, 0, 0, 0, 0], 100)],
        results: [(1.0, 0.46051753476392243, 25), (0.9, 0.46051780040476564, 25), (0.7, 0.4605213210437535, 25), (0.5, 0.4607817767195321, 25)],
        pate: 1.442256599127494,
    },
    Composed {
        name: "all_130_120_100",
        votes: &[([130, 120, 0, 0, 0, 0, 0, 0, 0, 0], 100)],
        results: [(1.0, 11.756462732485115, 2), (0.9, 13.794722103169441, 2), (0.7, 22.05350812105873, 2), (0.5, 37.71958141306947, 1)],
        pate: 5.302585092994046,
    },
    Composed {
        name: "tie_x1_unanimous99",
        votes: &[([125, 125, 0, 0, 0, 0, 0, 0, 0, 0], 1), ([250, 0, 0, 0, 0, 0, 0, 0, 0, 0], 99)],
        results: [(1.0, 0.6605175296022714, 25), (0.9, 0.6920094680408403, 25), (0.7, 0.7901376751496008, 25), (0.5, 0.9727034980454832, 25)],
        pate: 1.487225189967432,
    },
];

fn event(noise: Noise, gamma: f64, tau: f64) -> PrivacyEvent {
    let gamma = InverseScale::new(gamma).expect("a valid scale");
    PrivacyEvent::new(noise, gamma, HonestRatio::new(tau).expect("a valid ratio"))
}

fn delta() -> Delta {
    Delta::new(1e-5).expect("a valid delta")
}

fn rows(votes: &[([u32; 10], usize)]) -> Vec<Vec<u32>> {
    votes.iter().flat_map(|&(row, times)| std::iter::repeat_n(row.to_vec(), times)).collect()
}

fn assert_close(found: f64, reference: f64, what: &str) {
    assert!((found / reference - 1.0).abs() <= TOLERANCE, "{what}: {found} against {reference}");
}

#[test]
fn theorem_2() {
    for (tau, gamma, epsilon) in THEOREM_2 {
        assert_close(
            per_query_epsilon(&event(Noise::Laplace, gamma, tau)),
            epsilon,
            &format!("tau {tau}, gamma {gamma}"),
        );
    }
}

#[test]
fn integer_lemma() {
    for (tau, gamma, epsilon) in INTEGER_LEMMA {
        let found = per_query_epsilon(&event(Noise::DiscreteLaplace, gamma, tau));
        assert_close(found, epsilon, &format!("tau {tau}, gamma {gamma}"));
    }
}

#[test]
fn proposition_4() {
    for (tau, gamma, counts, reference) in PROPOSITION_4 {
        let found = q(&counts, &event(Noise::Laplace, gamma, tau)).expect("valid votes");
        assert_close(found, reference, &format!("tau {tau}, gamma {gamma}, {counts:?}"));
    }
}

#[test]
fn theorem_3() {
    for (epsilon, q, order, reference) in THEOREM_3 {
        assert_close(moment(epsilon, q.ln(), order), reference, &format!("epsilon {epsilon}, q {q}, order {order}"));
    }
}

#[test]
fn composed_runs() {
    for Composed { name, votes, results, pate } in COMPOSED {
        let rows = rows(votes);
        for (tau, epsilon, order) in results {
            let found = account(&rows, event(Noise::Laplace, 0.1, tau), delta()).expect("valid votes");
            assert_close(found.epsilon, epsilon, &format!("{name}, tau {tau}"));
            assert_eq!(found.order, order, "{name}, tau {tau}");
            assert_eq!(found.order_at_edge, order == 1 || order == 25);
            assert_eq!(found.queries, rows.len());
        }
        let found = account_up_to(&rows, event(Noise::Laplace, 0.05, 1.0), delta(), 8).expect("valid votes");
        assert_close(found.epsilon, pate, &format!("{name}, PATE's settings"));
    }
}

#[test]
fn composition_without_votes() {
    for (queries, per_query, epsilon) in DATA_INDEPENDENT {
        // The per-query epsilon is given: with the noise of all teachers it is twice gamma.
        let event = event(Noise::DiscreteLaplace, per_query / 2.0, 1.0);
        let found = account_data_independent(queries, event, delta()).expect("some queries");
        assert_close(found.epsilon, epsilon, &format!("{queries} queries of {per_query}"));
        assert_eq!(found.data_dependent_queries, 0);
    }
}

#[test]
fn little_noise_reaches_the_paper_s_limit_and_does_not_underflow() {
    // Figure 2 of the paper and erratum 17: the limit is ln(1/delta) / 4 for a smallest gap of 9 votes. At gamma = 50
    // and above q is far below the smallest double.
    let rows = rows(COMPOSED[0].votes);
    for gamma in [50.0, 1e3, 1e5] {
        let found = account(&rows, event(Noise::Laplace, gamma, 0.9), delta()).expect("valid votes");
        assert_close(found.epsilon, 1e5f64.ln() / 4.0, &format!("gamma {gamma}"));
        assert_eq!(found.order, 4);
    }
}

#[test]
fn the_integer_q_is_the_sum_over_pairs_of_the_exact_tail_ties_included() {
    // Brute force: P[Y_k - Y_winner >= gap] over pairs of values of the discrete Laplace distribution.
    let (gamma, p) = (0.3f64, (-0.3f64).exp());
    let pmf = |k: i64| (1.0 - p) / (1.0 + p) * p.powi(k.unsigned_abs() as i32);
    let pair = |gap: i64| -> f64 {
        (-150..=150)
            .flat_map(|a| (-150..=150).map(move |b| (a, b)))
            .filter(|(a, b)| a - b >= gap)
            .map(|(a, b)| pmf(a) * pmf(b))
            .sum()
    };
    let found = q(&[12, 4, 7], &event(Noise::DiscreteLaplace, gamma, 1.0)).expect("valid votes");
    assert_close(found, pair(8) + pair(5), "votes 12, 4, 7");
    // A tie: the winner can lose it, so q is more than a half and not capped at 1 - 1/K.
    let tie = q(&[5, 5], &event(Noise::DiscreteLaplace, gamma, 1.0)).expect("valid votes");
    assert_close(tie, pair(0), "votes 5, 5");
    assert!(tie > 0.5);
    let all = q(&[2; 10], &event(Noise::DiscreteLaplace, gamma, 1.0)).expect("valid votes");
    assert_eq!(all, 1.0);
    let continuous = q(&[2; 10], &event(Noise::Laplace, gamma, 1.0)).expect("valid votes");
    assert!((continuous - 0.9).abs() < 1e-15);
}
