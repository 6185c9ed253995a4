//! Checked parameters: accepted values, refused values, and error messages.

use speed_mechanism::{HonestRatio, InverseScale, MechanismError};

#[test]
fn inverse_scales_are_checked() {
    assert_eq!(InverseScale::new(0.1).map(InverseScale::get), Ok(0.1));
    for gamma in [0.0, -0.1, 0.000_999_9, 1e7, f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
        let error = InverseScale::new(gamma).expect_err("out of range");
        assert!(matches!(error, MechanismError::InverseScale { .. }));
        assert!(error.to_string().contains("from 0.001 to 1000000"), "{error}");
    }
}

#[test]
fn ratios_are_checked() {
    assert_eq!(HonestRatio::new(1.0), Ok(HonestRatio::ALL));
    for tau in [0.0, -0.5, 1.000_001, f64::NAN, f64::INFINITY] {
        let error = HonestRatio::new(tau).expect_err("out of range");
        assert!(matches!(error, MechanismError::HonestRatio { .. }));
    }
}

#[test]
fn ratios_count_teachers_as_the_decimal_number_says() {
    // Every ratio of two decimals: floor(percent * n / 100) in integers.
    for teachers in 1..=400usize {
        for percent in 1..=100usize {
            let tau = HonestRatio::new(percent as f64 / 100.0).expect("a valid ratio");
            let expected = percent * teachers / 100;
            match tau.noisy_teachers(teachers) {
                Ok(noisy) => assert_eq!(noisy, expected, "tau {tau:?} of {teachers}"),
                Err(error) => {
                    assert_eq!(expected, 0, "{error}");
                    assert!(matches!(error, MechanismError::NoNoisyTeacher { .. }));
                }
            }
        }
    }
    let tau = HonestRatio::new(0.999).expect("a valid ratio");
    assert_eq!(tau.effective(250).map(HonestRatio::get), Ok(0.996));
    assert_eq!(HonestRatio::new(0.7).and_then(|tau| tau.effective(250)).map(HonestRatio::get), Ok(0.7));
    assert!(HonestRatio::ALL.noisy_teachers(0).is_err());
}

#[test]
fn deserialising_goes_through_the_checks() {
    assert_eq!(serde_json::from_str::<InverseScale>("0.1").ok().map(InverseScale::get), Some(0.1));
    assert_eq!(serde_json::to_string(&HonestRatio::ALL).ok().as_deref(), Some("1.0"));
    let error = serde_json::from_str::<HonestRatio>("1.5").expect_err("out of range");
    assert!(error.to_string().contains("ratio tau is 1.5"), "{error}");
    assert!(serde_json::from_str::<InverseScale>("-1").is_err());
}
