//! Properties of the trainings of every method.

use burn::module::{Module, ModuleMapper, Param};
use burn::tensor::{Device, Tensor};
use speed_core::random::Streams;
use speed_data::{ImageShape, Split};
use speed_nn::params::to_record;

use crate::gan::{Dense, GanTraining};
use crate::pseudo_labels::PseudoLabelsTraining;
use crate::test_support::{Bits, Data, config, run};
use crate::{Checkpoint, CheckpointError, EpochMetrics, EpochReport, Images, InvalidData, Lesson, Passes, ReportError};
use crate::{StudentConfig, StudentError, StudentMethod};

const BOTH: [StudentMethod; 2] = [StudentMethod::GAN, StudentMethod::PSEUDO_LABELS];
const SHAPE: ImageShape = ImageShape { channels: 1, height: 10, width: 12 };

fn data() -> Data {
    Data::new(SHAPE, 100, 50)
}

#[test]
fn an_interruption_at_any_epoch_ends_with_the_same_bits() {
    for method in BOTH {
        let (whole, checkpoints) = run(method, &config(), &data(), 1, None);
        let whole = Bits::new(whole);
        assert_eq!(checkpoints.len(), 6);
        for checkpoint in checkpoints {
            let saved = Checkpoint::from_bytes(&checkpoint.to_bytes()).expect("own bytes");
            let resumed = Bits::new(run(method, &config(), &data(), 1, Some(saved)).0);
            assert_eq!(resumed, whole, "{method:?} resumed after epoch {}", checkpoint.epoch());
        }
    }
}

#[test]
fn results_depend_on_the_seed_and_not_on_what_runs_beside() {
    for method in BOTH {
        let train = |seed| Bits::new(run(method, &config(), &data(), seed, None).0);
        let alone = train(1);
        let beside: Vec<Bits> = std::thread::scope(|scope| {
            let threads: Vec<_> = [1, 2].map(|seed| scope.spawn(move || train(seed))).into();
            threads.into_iter().map(|thread| thread.join().expect("no panic")).collect()
        });
        assert_eq!(beside[0], alone);
        assert_ne!(beside[1].student, alone.student);
    }
}

#[test]
fn epochs_are_evaluated_as_configured() {
    for method in BOTH {
        let outcome = run(method, &config(), &data(), 1, None).0.expect("a training");
        let evaluated = outcome.metrics.iter().filter(|metrics| metrics.accuracy_average.is_some());
        assert_eq!(evaluated.map(|metrics| metrics.epoch).collect::<Vec<_>>(), [2, 4, 6]);
        assert!(outcome.metrics.iter().all(|metrics| metrics.measures.len() == method.measures().len()));
        assert_eq!(outcome.metrics[5].accuracy_average, outcome.accuracy);
        assert_eq!(outcome.metrics[5].accuracy_raw, outcome.accuracy_raw);
        let test = data().test;
        let found = outcome.student.predict(Images::new(&test)).expect("a device");
        assert_eq!(found, outcome.predictions);
        let right = found.iter().zip(test.labels()).filter(|(a, b)| a == b).count();
        assert_eq!(Some(right as f64 / test.len() as f64), outcome.accuracy);
    }
}

#[test]
fn labels_of_the_pool_are_not_used() {
    let Data { pool, labelled, test } = data();
    let pixels: Vec<u8> = (0..pool.len()).flat_map(|i| pool.pixels(i).to_vec()).collect();
    let other = Split::new(SHAPE, 3, pixels, vec![0; pool.len()]).expect("a split");
    for method in BOTH {
        let train_on = |pool: &Split| {
            let data = Data { pool: pool.clone(), labelled: labelled.clone(), test: test.clone() };
            Bits::new(run(method, &config(), &data, 1, None).0)
        };
        assert_eq!(train_on(&pool), train_on(&other));
    }
}

#[test]
fn checkpoints_of_other_trainings_are_refused() {
    for (method, other) in BOTH.into_iter().zip(BOTH.into_iter().rev()) {
        let last = run(method, &config(), &data(), 1, None).1.pop().expect("six checkpoints");
        let refused = |method, config, seed, checkpoint| match run(method, &config, &data(), seed, Some(checkpoint)).0 {
            Err(StudentError::Checkpoint(error)) => error,
            other => panic!("not refused: {other:?}"),
        };
        let mut settings = config();
        (settings.gan.batch, settings.pseudo_labels.batch) = (10, 10);
        assert_eq!(refused(method, settings, 1, last.clone()), CheckpointError::Other);
        assert_eq!(refused(method, config(), 2, last.clone()), CheckpointError::Other);
        assert_eq!(refused(other, config(), 1, last.clone()), CheckpointError::Other);
        let damaged = |change: &dyn Fn(&mut Checkpoint)| {
            let mut checkpoint = last.clone();
            change(&mut checkpoint);
            assert_eq!(refused(method, config(), 1, checkpoint), CheckpointError::Damaged, "{method:?}");
        };
        damaged(&|checkpoint| _ = checkpoint.records.pop());
        damaged(&|checkpoint| checkpoint.records.push(Vec::new()));
        damaged(&|checkpoint| _ = checkpoint.metrics[1].measures.pop());
        (0..last.records.len()).for_each(|record| damaged(&|checkpoint| checkpoint.records[record].push(0)));
    }
}

struct NotANumber;

impl ModuleMapper for NotANumber {
    fn map_float<const D: usize>(&mut self, param: Param<Tensor<D>>) -> Param<Tensor<D>> {
        param.map(|value| value * f32::NAN)
    }
}

/// Returns the record of a network in which every parameter is NaN.
fn spoilt(network: impl Module) -> Vec<u8> {
    to_record(&network.map(&mut NotANumber)).expect("a record")
}

#[test]
fn a_loss_that_is_not_finite_names_network_epoch_and_step() {
    let (config, data) = (config(), data());
    let (streams, device) = (&Streams::new(1), &Device::flex());
    let lesson = data.lesson(&config, streams, device);
    for (method, name, record) in [
        (StudentMethod::GAN, "discriminator", spoilt(GanTraining::<Dense>::new(&lesson).discriminator.frozen())),
        (StudentMethod::PSEUDO_LABELS, "classifier", spoilt(PseudoLabelsTraining::new(&lesson).0.frozen())),
    ] {
        let mut checkpoint = run(method, &config, &data, 1, None).1.swap_remove(2);
        checkpoint.records[0] = record;
        match run(method, &config, &data, 1, Some(checkpoint)).0 {
            Err(StudentError::NotFinite { network, epoch: 4, step: 1, loss }) if network == name => {
                assert!(loss.is_nan());
            }
            other => panic!("not refused: {other:?}"),
        }
    }
}

#[test]
fn bad_data_are_named() {
    let refused = |data: &Data| match run(StudentMethod::GAN, &config(), data, 1, None).0 {
        Err(StudentError::Data(error)) => error,
        other => panic!("not refused: {other:?}"),
    };
    let with_labels = |labelled: &[(usize, u8)]| Data { labelled: labelled.to_vec(), ..data() };
    assert_eq!(refused(&with_labels(&[])), InvalidData("expected at least one labelled image, found none".to_owned()));
    let unfit = |data: &Data, end: &str| {
        let message = refused(data).to_string();
        assert!(message.ends_with(end), "{message}");
    };
    unfit(&with_labels(&[(0, 1), (100, 1)]), "label 1: expected an image of the pool of 100 images, found image 100");
    unfit(&with_labels(&[(0, 3)]), "label 0: expected a class below 3, found 3");
    assert_eq!(refused(&Data { test: data().test.slice(0..0), ..data() }), InvalidData::no_test());
    let flat = ImageShape { channels: 1, height: 1, width: 2 };
    let test = Split::new(flat, 3, vec![0, 0], vec![0]).expect("a split");
    unfit(&Data { test, ..data() }, &format!("images, {SHAPE}, found {flat}"));
    let test = Split::new(SHAPE, 4, vec![0; SHAPE.pixels()], vec![0]).expect("a split");
    unfit(&Data { test, ..data() }, "the pool's 3 classes, found 4 classes");
}

#[test]
fn a_student_without_test_images_is_the_same_student() {
    let (data, config, streams, device) = (data(), config(), Streams::new(1), Device::flex());
    let lesson = data.lesson(&config, &streams, &device);
    for method in BOTH {
        let train = |lesson| method.train(&lesson, None, &mut |_: &EpochReport<'_>| Ok(())).expect("a training");
        let (with, without) = (train(lesson), train(Lesson { test: None, ..lesson }));
        assert_eq!(
            with.student.network().to_record().expect("a record"),
            without.student.network().to_record().expect("a record")
        );
        assert!(with.accuracy.is_some() && without.accuracy.is_none() && without.accuracy_raw.is_none());
        assert!(without.predictions.is_empty());
        let is_unknown = |metrics: &EpochMetrics| metrics.accuracy_average.or(metrics.accuracy_raw).is_none();
        assert!(without.metrics.iter().all(is_unknown));
    }
}

#[test]
fn settings_that_do_not_fit_the_images_are_named() {
    let refused =
        |method, config: &StudentConfig, pool| match run(method, config, &Data::new(SHAPE, pool, 9), 1, None).0 {
            Err(StudentError::Config(error)) => error.field,
            other => panic!("not refused: {other:?}"),
        };
    let mut deep = config();
    deep.pseudo_labels.constants.convolutions = vec![4, 4, 4];
    assert_eq!(refused(StudentMethod::PSEUDO_LABELS, &deep, 100), "method");
    let mut bad = config();
    bad.pseudo_labels.learning_rate = 1.0;
    assert_eq!(refused(StudentMethod::GAN, &bad, 100), "pseudo_labels.learning_rate");
}

#[test]
fn few_repeated_and_many_labels_are_trained_on() {
    let Data { pool, test, .. } = Data::new(SHAPE, 47, 10);
    // One label; the same image twice with different labels; more labels than images in an epoch.
    let many: Vec<(usize, u8)> = (0..90).map(|i| (i % 47, pool.label(i % 47))).collect();
    for method in BOTH {
        for labelled in [&[(3, 1)][..], &[(3, 1), (3, 2)], &many] {
            let data = Data { pool: pool.clone(), labelled: labelled.to_vec(), test: test.clone() };
            assert_eq!(run(method, &config(), &data, 1, None).0.expect("a training").metrics.len(), 6);
        }
    }
}

/// Returns a config with small networks for every method. Its epochs have four steps for pools of any size.
fn four_steps() -> StudentConfig {
    let mut config = config();
    config.epoch_images = 80;
    (config.gan.convolutional.channels, config.gan.convolutional.generator) = (vec![4], vec![6]);
    config
}

const METHODS: [StudentMethod; 3] = [StudentMethod::GAN, StudentMethod::CONV_GAN, StudentMethod::PSEUDO_LABELS];

#[test]
fn default_trainings_make_as_many_steps_on_every_pool_as_on_the_papers() {
    let config = StudentConfig::default();
    for (method, steps) in METHODS.into_iter().zip([90, 90, 56]) {
        let passes = method.passes(&config);
        for pool in [1, 30, 400, 9000, 50_000] {
            assert_eq!(passes.steps(pool), steps, "{method:?}, a pool of {pool}");
        }
        // A pass over the pool has at least one step.
        let passes = Passes { epoch_images: 0, ..passes };
        assert_eq!([1, 9000].map(|pool| passes.steps(pool)), [1, steps]);
    }
}

#[test]
fn an_epoch_of_as_many_images_as_the_pool_is_a_pass_over_it() {
    let mut config = config();
    for method in BOTH {
        config.epoch_images = 0;
        let pass = Bits::new(run(method, &config, &data(), 1, None).0);
        config.epoch_images = 100;
        assert_eq!(Bits::new(run(method, &config, &data(), 1, None).0), pass);
        config.epoch_images = 140;
        assert_ne!(Bits::new(run(method, &config, &data(), 1, None).0).student, pass.student);
    }
}

#[test]
fn tiny_pools_are_trained_on_and_resumed_with_the_same_bits() {
    let test = data().test;
    // Labels of some images, of all images, and of one class only; and a pool of one image.
    for (images, labels) in [(1, 1), (7, 3), (19, 19)] {
        let pool = data().pool.slice(0..images);
        let labelled: Vec<(usize, u8)> = (0..labels).map(|image| (image, pool.label(image))).collect();
        let data = Data { pool, labelled, test: test.clone() };
        for config in [four_steps(), config()] {
            // The linear student has the same steps with both.
            let linear = (config.epoch_images > 0).then_some(StudentMethod::LINEAR);
            for method in METHODS.into_iter().chain(linear) {
                let config = StudentConfig { gan: four_steps().gan, ..config.clone() };
                let (whole, checkpoints) = run(method, &config, &data, 1, None);
                let whole = Bits::new(whole);
                let measures = whole.metrics.iter().flat_map(|metrics| metrics.measures.iter().flatten());
                assert!(measures.copied().all(f64::is_finite), "{method:?} on {images}: {:?}", whole.metrics);
                let saved = Checkpoint::from_bytes(&checkpoints[2].to_bytes()).expect("own bytes");
                assert_eq!(Bits::new(run(method, &config, &data, 1, Some(saved)).0), whole, "{method:?} on {images}");
            }
        }
    }
}

#[test]
fn the_callers_error_ends_the_training() {
    #[derive(Debug, thiserror::Error)]
    #[error("disk full")]
    struct Full;

    let (data, config, streams, device) = (data(), config(), Streams::new(1), Device::flex());
    let mut epochs = 0;
    let mut on_epoch = |report: &EpochReport<'_>| {
        epochs = report.metrics().epoch;
        if epochs == 2 { Err(ReportError::from(Full)) } else { Ok(()) }
    };
    let outcome = StudentMethod::GAN.train(&data.lesson(&config, &streams, &device), None, &mut on_epoch);
    let Err(StudentError::Report(error)) = outcome else { panic!("not ended: {outcome:?}") };
    assert!(error.downcast_ref::<Full>().is_some() && epochs == 2);
}

#[test]
fn labelled_images_alone_are_learned_from_with_as_many_steps() {
    let data = data();
    let classes: Vec<u8> = data.labelled.iter().map(|&(_, label)| label).collect();
    let pixels = data.labelled.iter().flat_map(|&(image, _)| data.pool.pixels(image)).copied().collect();
    let labelled_images = Split::new(SHAPE, 3, pixels, vec![0; classes.len()]).expect("a split");
    let labelled = classes.iter().copied().enumerate().collect();
    let alone = Data { pool: labelled_images, labelled, test: data.test.clone() };
    for method in BOTH {
        let settings = method.labelled_only(&config(), data.pool.len()).expect("settings");
        assert_eq!(settings.check(), Ok(()));
        let steps = |config, pool| method.passes(config).steps(pool);
        assert_eq!(steps(&settings, alone.pool.len()), steps(&config(), data.pool.len()));
        let outcome = run(method, &settings, &alone, 1, None).0.expect("a training");
        if method == StudentMethod::PSEUDO_LABELS {
            // Losses and shares of pseudo-labelled images.
            let unlabelled = outcome.metrics.iter().flat_map(|metrics| &metrics.measures[1..]);
            assert!(unlabelled.copied().all(|measure| measure == Some(0.0)), "{:?}", outcome.metrics);
        }
        assert!(outcome.accuracy > Some(0.4), "{method:?}: {:?}", outcome.accuracy);
    }
}
