//! Tests that every invalid config is refused with one message that names file, line, key and allowed values.

use speed_nn::onnx::TokenPool;
use speed_student::{GanSize, StudentMethod};

use speed_core::Digest;

use super::defaults::DEFAULTS;
use super::{Config, PatientRule, Source, Sweep};
use crate::error::ExperimentError;

fn load(text: &str, overrides: &[&str]) -> Result<Config, ExperimentError> {
    let overrides: Vec<String> = overrides.iter().map(|&entry| entry.to_owned()).collect();
    let config = Config::load(&Source::new("test.toml", text).with_overrides(&overrides)?)?;
    let resolved = Config::load(&Source::new("config.toml", config.to_toml()));
    assert_eq!(resolved.expect("a resolved config"), config);
    Ok(config)
}

#[track_caller]
fn refused(text: &str, overrides: &[&str], parts: &[&str]) {
    let message = load(text, overrides).expect_err("must be refused").to_string();
    for part in parts {
        assert!(message.contains(part), "{part:?} is not in {message:?}");
    }
}

#[test]
fn a_rule_for_patients_fits_its_images() {
    let pictures = "name = \"x\"\n[data]\nsource = \"pictures\"\nfolder = \"x\"\n";
    for (text, rule) in [
        ("prefix:_", PatientRule::Prefix("_".into())),
        ("a:b.csv", PatientRule::File("a:b.csv".into())),
        ("dicom", PatientRule::Dicom),
    ] {
        let config = load(pictures, &[&format!("data.patients={text}")]).expect("a config");
        assert_eq!(config.data.patients(), Some(rule));
    }
    assert!(!load(pictures, &[]).expect("a config").to_toml().contains("patients"));
    let refused = |overrides: &[&str], part: &str| refused(pictures, overrides, &["data.patients", part]);
    refused(&["data.patients=prefix:"], "found none");
    refused(&["data.patients=dicom", "data.source=arrays"], "an array has no names");
    refused(&["data.patients=a.csv", "data.source=digits", "data.folder="], "\"pictures\" and \"arrays\" only");
    refused(&["data.patients=a.csv", "data.pool=train"], "use \"test\"");
}

#[test]
fn a_file_and_the_command_line_change_the_defaults() {
    assert_eq!(load(DEFAULTS, &[]).expect("defaults as a file"), load("", &[]).expect("defaults"));
    let text = "name = \"x\"\n[student]\nepochs = 7\n[noise]\ngamma = 1\n[[row]]\nname = \"only\"\naggregation = \"trusted\"\n";
    let config = load(text, &["student.epochs=9", "student.size=small", "queries.selection=first"]).expect("config");
    assert_eq!((config.student.epochs, config.rows[0].noise.mechanism().scale(), config.rows.len()), (9, 1.0, 1));
    assert_eq!(config.rows[0].honest_ratio.get(), 1.0);
    assert_eq!(config.student.size, GanSize::Small);
    assert_eq!(config.ensemble.teachers, 250);
}

/// The run ids of the presets; finished runs are found by them.
const PRESETS: [(&str, &str); 29] = [
    ("argmax-accuracy", "338383fe1a0b"),
    ("confident", "75362eaac2cc"),
    ("confident-svhn", "208c2ccd4c76"),
    ("default", "846054a3501b"),
    ("frontier", "4e3e41882e6d"),
    ("frontier-select", "373f925780c5"),
    ("frontier-street-digits", "8b0630ff6e96"),
    ("frontier-votes", "982d1cdb5f6b"),
    ("mnist", "d856c194233c"),
    ("mnist-500-epochs", "8f583f0dae24"),
    ("mnist-paper", "7a1bba09ee5a"),
    ("mnist-sweeps", "11e0b7540f43"),
    ("mnist-sweeps", "11e0b7540f43"),
    ("mnist-sweeps", "9b304de76e00"),
    ("mnist-teachers", "1ec94f76a097"),
    ("photographs", "803b71167958"),
    ("photographs-cifar", "757c3e656177"),
    ("pictures", "8021238de965"),
    ("published-votes", "d8444fa46f82"),
    ("published-votes-students", "aed6c9cd100c"),
    ("published-votes-svhn", "d0e0c42a71fa"),
    ("quickstart", "19b8f1d5eada"),
    ("street-digits", "37055e8971f0"),
    ("street-digits-select", "4f1c7b01ad97"),
    ("svhn", "bf3284e96014"),
    ("svhn-paper", "499b2252ce76"),
    ("ten-parties", "cead651d5cb7"),
    ("ten-parties-one-vote", "78163a4d23cf"),
    ("unequal-sites", "89c79931a6e4"),
];

#[test]
fn every_preset_is_a_config_and_keeps_its_run_id() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../configs");
    // A package of this crate alone has no presets.
    let Ok(entries) = std::fs::read_dir(folder) else { return };
    let mut found: Vec<(String, String)> = Vec::new();
    for entry in entries {
        let path = entry.expect("entry").path();
        let config = Config::load(&Source::read(&path).expect("readable")).unwrap_or_else(|error| panic!("{error}"));
        found.push((config.name.clone(), Digest::of(config.to_toml()).to_hex()[..12].to_owned()));
    }
    found.sort();
    let expected: Vec<(String, String)> = PRESETS.map(|(name, id)| (name.to_owned(), id.to_owned())).to_vec();
    assert_eq!(found, expected);
    let copy = std::fs::read_to_string(format!("{folder}/default.toml")).expect("configs/default.toml");
    assert!(copy == DEFAULTS, "configs/default.toml must be a copy of src/config/default.toml");
}

#[test]
fn unequal_parties_are_simulated_only() {
    let simulated = "[ensemble]\nteachers = 12\nskew = 0.2\n[noise]\nsource = \"simulation\"\n";
    let parties = |sets: &[&str]| load(simulated, sets).expect("a config").ensemble.unequal_parties();
    assert_eq!(parties(&[]), Some(vec![2, 2, 1, 1, 1, 1, 1, 1, 1, 1]));
    assert_eq!(parties(&["ensemble.parties=5"]), Some(vec![3, 3, 2, 2, 2]));
    assert_eq!(parties(&["ensemble.teachers=3"]), Some(vec![1; 3]));
    assert_eq!(parties(&["ensemble.skew=0"]), None);
    let key = "`ensemble.skew`";
    refused("[ensemble]\nskew = 0.2\n", &[], &["test.toml:2", key, "set noise.source = \"simulation\""]);
    refused(simulated, &["ensemble.skew=0.001"], &[key, "expected 0 or from 0.01 to 1000"]);
    refused(simulated, &["ensemble.skew=-1"], &[key, "expected 0 or from 0.01 to 1000"]);
    refused(simulated, &["votes.source=truth"], &[key, "is read only with votes.source"]);
    refused(
        simulated,
        &["data.source=pictures", "data.folder=x", "data.size=24x24", "data.patients=prefix:_"],
        &[key, "data.patients", "set one"],
    );
}

#[test]
fn a_row_has_the_papers_figures() {
    let row = "[[row]]\nname = \"a\"\naggregation = \"trusted\"\n";
    let config = load(&format!("{row}paper_epsilon = 1.41\npaper_accuracy = 96\n"), &[]).expect("figures");
    let paper = config.rows[0].paper;
    assert_eq!((paper.epsilon, paper.accuracy, paper.deviation, paper.minutes), (Some(1.41), Some(96.0), None, None));

    let refuse = |keys: &str, parts: &[&str]| refused(&format!("{row}{keys}"), &[], parts);
    let meant = "unknown key; did you mean `paper_epsilon`?";
    refuse("paper_epsilom = 1.0\n", &["test.toml:4", "`row.0.paper_epsilom`", meant]);
    refuse("paper_epsilon = \"x\"\n", &["test.toml:4", "`row.0.paper_epsilon`", "expected float"]);
    refuse("\npaper_epsilon = -1.0\n", &["test.toml:5", "`row.0.paper_epsilon`", "at least 0"]);
    refuse("[row.paper]\nepsilon = 1.0\n", &["test.toml:4", "`row.0.paper`", "unknown key"]);
}

#[test]
fn a_mechanism_that_experiments_do_not_draw_is_refused() {
    refused(
        "[noise]\nmechanism = \"gaussian\"\n",
        &[],
        &["test.toml:2", "`noise.mechanism`", "discrete-laplace or skellam"],
    );
    refused("[noise]\nmechanism = \"none\"\n", &[], &["test.toml:2", "`noise.mechanism`", "discrete-laplace"]);
    let skellam = "[noise]\nmechanism = \"skellam\"\nsource = \"simulation\"\n";
    refused(skellam, &[], &["`noise.sigma`", "0.01"]);
    let text = format!("{skellam}sigma = 2000000\n");
    refused(&text, &[], &["test.toml:4", "`noise.sigma`", "2000000.0", "from 0.01 to 1000000"]);
    let config = load(&format!("{skellam}sigma = 40\n"), &[]).expect("a config");
    assert_eq!(
        config.rows[0].noise.mechanism().to_string(),
        "integer (Skellam) noise of standard deviation sigma = 40 votes"
    );
}

#[test]
fn binomial_noise_has_coins_of_a_teacher_or_a_deviation() {
    let binomial = "[noise]\nmechanism = \"binomial\"\n";
    let with = |keys: &str| load(&format!("{binomial}{keys}"), &[]).expect("a config");
    let all = |config: &Config| config.rows[0].noise.mechanism().scale();
    // 250 teachers, and sqrt(1000) / 2 = 15.81.
    let four = with("coins = 4\n");
    assert_eq!([all(&four), all(&with("sigma = 15.8\n")), all(&with("sigma = 15.9\n"))], [1_000.0, 1_000.0, 1_250.0]);
    assert!(four.to_toml().contains("coins = 4") && !load("", &[]).expect("defaults").to_toml().contains("coins"));
    assert_eq!(four.to_raw().noise_in_words(), "binomial, coins 4 a teacher (deviation 15.8)");
    let refuse = |keys: &str, parts: &[&str]| refused(&format!("{binomial}{keys}"), &[], parts);
    refuse("", &["`noise.coins`", "or sigma"]);
    refuse("coins = 4\nsigma = 15.0\n", &["test.toml:3", "`noise.coins`", "sigma = 15", "only one of the two"]);
    refuse("coins = 1.5\n", &["test.toml:3", "`noise.coins`", "expected an integer"]);
    refuse("coins = -1\n", &["test.toml:3", "`noise.coins`"]);
    refuse("sigma = -1\n", &["test.toml:3", "`noise.sigma`", "from 0.01"]);
    refuse("coins = 65537\n", &["test.toml:3", "`noise.coins`", "from 1 to 1048576"]);
    // With a threshold, the coins of a teacher are even: sqrt(750) / 2 = 13.7 would be enough for 13.5 votes.
    let row = "[[row]]\nname = \"a\"\naggregation = \"trusted\"\n";
    refuse(&format!("coins = 3\n{row}threshold = 9\n"), &["test.toml:3", "`noise.coins`", "3 coins", "an even number"]);
    let confident = with(&format!("sigma = 13.5\n{row}threshold = 9\n"));
    assert_eq!([all(&with("sigma = 13.5\n")), confident.rows[0].noise.mechanism().scale()], [750.0, 1_000.0]);
    assert_eq!(confident.to_raw().noise_in_words(), "binomial, sigma 13.5, threshold 9");
    // A server draws all coins by itself.
    refuse(&format!("coins = 400\n{row}placement = \"central\"\n"), &["test.toml:3", "`noise.coins`", "100000 coins"]);
    refused("[noise]\ncoins = 4\n", &[], &["test.toml:2", "`noise.coins`", "discrete-laplace"]);
    let sweep = format!("{binomial}coins = 4\n[sweep]\ncoins = [2, 6]\n");
    let sweep = Sweep::load(&Source::new("test.toml", &sweep)).expect("a sweep");
    assert_eq!(sweep.settings.iter().map(|setting| all(&setting.config)).collect::<Vec<_>>(), [500.0, 1_500.0]);
}

#[test]
fn a_row_replaces_coins_and_deviation_together() {
    let rows = "[noise]\nmechanism = \"binomial\"\ncoins = 4\n\
                [[row]]\nname = \"a\"\naggregation = \"trusted\"\n\
                [[row]]\nname = \"b\"\naggregation = \"trusted\"\nsigma = 15.9\n\
                [[row]]\nname = \"c\"\naggregation = \"trusted\"\ncoins = 6\n\
                [[row]]\nname = \"d\"\naggregation = \"trusted\"\nmechanism = \"discrete-laplace\"\n\
                [[row]]\nname = \"e\"\naggregation = \"trusted\"\nmechanism = \"skellam\"\nsigma = 40\n";
    let config = load(rows, &[]).expect("a config");
    let noise = |row: usize| {
        let mechanism = config.rows[row].noise.mechanism();
        (mechanism.kind().name(), mechanism.scale())
    };
    assert_eq!([0, 1, 2].map(noise), [1_000.0, 1_250.0, 1_500.0].map(|all| ("binomial", all)));
    assert_eq!([3, 4].map(noise), [("discrete-laplace", 0.1), ("skellam", 40.0)]);
    refused(&rows.replace("\"d\"", "\"d\"\ncoins = 2"), &[], &["`row.3.coins`", "discrete-laplace"]);
    let odd = rows.replace("coins = 6", "coins = 5");
    refused(&odd.replace("coins = 5", "coins = 5\nthreshold = 9"), &[], &["`row.2.coins`", "an even number"]);
    assert!(load(&odd, &[]).is_ok());
    refused(&rows.replace("sigma = 15.9", "sigma = 15.9\ncoins = 2"), &[], &["`row.1.coins`", "only one"]);
}

#[test]
fn a_row_may_have_noise_of_its_own() {
    let rows = "[noise]\nsource = \"simulation\"\n[[row]]\nname = \"a\"\naggregation = \"encrypted\"\nthreshold = 150\n\
                [[row]]\nname = \"b\"\naggregation = \"trusted\"\nmechanism = \"skellam\"\nsigma = 40\nthreshold = 200\n\
                [[row]]\nname = \"c\"\naggregation = \"encrypted\"\nplacement = \"central\"\nthreshold = 150\n";
    let config = load(rows, &[]).expect("a config");
    let noise = |row: usize| {
        let noise = config.rows[row].noise;
        (noise.mechanism().kind().name(), noise.mechanism().scale(), noise.is_central(), noise.threshold)
    };
    assert_eq!(noise(0), ("discrete-laplace", 0.1, false, Some(150)));
    assert_eq!(noise(1), ("skellam", 40.0, false, Some(200)));
    assert_eq!(noise(2), ("discrete-laplace", 0.1, true, Some(150)));
    let refuse = |keys: &str, parts: &[&str]| refused(&format!("{rows}{keys}"), &[], parts);
    refuse("honest_ratio = 0.9\n", &["test.toml:18", "`row.2.honest_ratio`", "central"]);
    refuse("circuit = \"paper\"\n", &["test.toml:18", "`row.2.circuit`", "no threshold"]);
    refuse("mechanism = \"laplace\"\n", &["test.toml:18", "`row.2.mechanism`", "discrete-laplace or skellam"]);
    refuse("sigma = -1\nmechanism = \"skellam\"\n", &["test.toml:18", "`row.2.sigma`"]);
    refuse("[[row]]\nname = \"d\"\naggregation = \"non-private\"\nsigma = 1\n", &["`row.3.aggregation`", "no noise"]);
    refused(&rows.replace("threshold = 150", "threshold = 9007199254740993"), &[], &["`row.0.threshold`"]);
    refused("[noise]\nthreshold = 150\n", &[], &["test.toml:2", "`noise.threshold`", "row.0.threshold"]);
}

#[test]
fn rows_are_set_by_number_or_all_at_once() {
    let rows = "[noise]\nsource = \"simulation\"\n[[row]]\nname = \"a\"\naggregation = \"non-private\"\n\
                [[row]]\nname = \"b\"\naggregation = \"trusted\"\n";
    let config = load(rows, &["row.1.honest_ratio=0.9", "row.1.paper_epsilon=1.5", "row.*.queries=7"]).expect("set");
    assert_eq!(config.rows[1].honest_ratio.get(), 0.9);
    assert_eq!(config.rows[1].paper.epsilon, Some(1.5));
    assert!(config.rows.iter().all(|row| row.query_count(100) == 7));
    refused(rows, &["row.2.honest_ratio=0.9"], &["--set", "`row.2.honest_ratio`", "2 rows, from 0 to 1"]);
    refused(rows, &["row.b.honest_ratio=0.9"], &["--set", "row.0"]);
    refused(rows, &["row.threshold=4"], &["--set", "which row?", "row.0.threshold", "row.noisy.threshold"]);
    refused(rows, &["row.1.honest=0.9"], &["--set", "unknown key", "honest_ratio"]);
    refused(rows, &["row.0.honest_ratio=0.5"], &["--set", "`row.0.honest_ratio`", "no noise"]);
}

#[test]
fn syntax_unknown_keys_and_types_name_file_line_and_key() {
    refused("name = \"x\"\nseed == 3\n", &[], &["test.toml:2", "not valid TOML"]);
    refused("\n[teacher]\nsteps = 5\nstep = 5\n", &[], &["test.toml:4", "`teacher.step`", "did you mean `steps`?"]);
    // Suggestions: a similar name here, and the same name in another section.
    let meant = "unknown key here; did you mean `teacher` or `ensemble.teachers`?";
    refused("[teachers]\n", &[], &["test.toml:1", "`teachers`", meant]);
    let allowed = "unknown key; allowed here: arithmetic, data, device, ensemble";
    refused("[colours]\n", &[], &["test.toml:1", "`colours`", allowed]);
    refused("[noise]\ngamma = \"big\"\n", &[], &["test.toml:2", "`noise.gamma`", "expected float, found string"]);
    refused("[teacher]\nsteps = 1.5\n", &[], &["test.toml:2", "`teacher.steps`", "found 1.5, expected an integer"]);
    refused("[teacher]\nsteps = -1\n", &[], &["test.toml:2", "`teacher.steps`"]);
    refused("[teacher]\nunknown = \"guess\"\n", &[], &["test.toml:2", "unknown", "abstain"]);
    refused("[teacher]\noptimizer = \"sdg\"\n", &[], &["test.toml:2", "`teacher.optimizer`", "sdg", "adam", "sgd"]);
    refused("[[row]]\nname = \"a\"\ncircuit = \"all\"\n", &[], &["test.toml:3", "tournament", "all-pairs", "paper"]);
    refused("[[row]]\nname = \"a\"\naggregation = \"trust\"\n", &[], &["test.toml:3", "trust", "trusted", "encrypted"]);
    refused("[[row]]\nnom = \"a\"\n", &[], &["test.toml:2", "`row.0.nom`", "honest_ratio"]);
    refused("row = 3\n", &[], &["test.toml:1", "[[row]]"]);
    refused("", &["student.epoch=3"], &["--set", "`student.epoch`", "did you mean `epochs`?"]);
    refused("", &["student=3"], &["--set", "is a section"]);
    refused("", &["student.epochs"], &["--set", "key=value"]);
    refused("", &["row=3"], &["--set", "row.0.KEY"]);
}

#[test]
fn an_encoder_needs_networks_for_vectors() {
    let text = "[features]\nencoder = \"a.onnx\"\nmean = [0.5, 0, 0.5]\ndeviation = [1, 1, 1]\npool = \"first\"\nsize = \"32x64\"\n\
                [votes]\nsource = \"neighbours\"\n[table]\nrepeats = 0\n";
    let config = load(text, &[]).expect("a config");
    let settings = config.encoder_settings();
    assert_eq!(
        (settings.size, settings.mean, settings.pool),
        (Some([32, 64]), vec![0.5, 0.0, 0.5], Some(TokenPool::First))
    );
    // Vectors are not shifted, and configs without an encoder keep their text.
    assert_eq!((config.teacher.shift, load("", &[]).expect("defaults").teacher.shift), (0, 2));
    assert!(!load("", &[]).expect("defaults").to_toml().contains("features"));
    refused(text, &["table.repeats=1"], &["`student.method`", "\"gan\" reads pictures", "table.repeats = 0"]);
    refused(text, &["table.repeats=1", "row.1.student=conv-gan"], &["`student.method`"]);
    let own = ["table.repeats=1", "row.0.student=conv-gan"];
    refused(text, &own, &["--set", "`row.0.student`", "\"conv-gan\" reads pictures"]);
    refused(text, &["votes.source=teachers"], &["`teacher.architecture`", "\"small\" reads pictures"]);
    refused(text, &["queries.features=gradients", "queries.beliefs=true"], &["`queries.features`", "features.encoder"]);
    let without = ["data.source=none", "votes.source=uniform"];
    refused(text, &without, &["test.toml:2", "`features.encoder`", "no pictures"]);
    refused(text, &["features.encoder="], &["test.toml:3", "`features.mean`", "features.encoder"]);
    refused(text, &["features.mean=[0.1, 0.2]"], &["`features.mean`", "found 2 numbers"]);
    refused(text, &["features.deviation=[0.1]"], &["`features.deviation`", "found 1 numbers, expected 3"]);
    refused(text, &["features.deviation=[1, 0.0, 1]"], &["`features.deviation`", "found 0.0"]);
    refused(text, &["features.pool=last"], &["`features.pool`", "\"last\"", "\"mean\""]);
    refused(text, &["features.size=32y64"], &["`features.size`", "HEIGHTxWIDTH"]);
}

#[test]
fn values_that_cannot_run_are_refused() {
    refused("schema = 2\n", &[], &["test.toml:1", "`schema`", "found 2", "reads 1"]);
    refused("name = \"../x\"\n", &[], &["test.toml:1", "`name`"]);
    refused("name = \"published\"\n", &[], &["test.toml:1", "`name`", "published runs"]);
    refused("[ensemble]\nteachers = 0\n", &[], &["test.toml:2", "`ensemble.teachers`"]);
    refused("[ensemble]\nteachers = 9999\n", &[], &["test.toml:2", "9999 teachers share 5000 training images"]);
    refused("[student]\n\nepochs = 0\n", &[], &["test.toml:3", "`student.epochs`"]);
    let epoch = "[student]\nepoch_images = ";
    refused(&format!("{epoch}100000000\n"), &[], &["test.toml:2", "`student.epoch_images`", "at most 10000000"]);
    refused(&format!("{epoch}-1\n"), &[], &["test.toml:2", "`student.epoch_images`"]);
    refused("[noise]\ngamma = 0.0\n", &[], &["test.toml:2", "`noise.gamma`", "from 0.001 to 1000000"]);
    refused("[noise]\ngamma = nan\n", &[], &["test.toml:2", "`noise.gamma`"]);
    refused("[privacy]\ndelta = 1.0\n", &[], &["test.toml:2", "`privacy.delta`", "less than 1"]);
    refused("[queries]\ncount = 1501\n", &[], &["test.toml:2", "`queries.count`", "1500"]);
    refused("[data]\npool_images = 2000\n", &[], &["test.toml:2", "`data.pool_images`"]);
    for tau in ["0.0", "1.5", "-0.1", "nan"] {
        let row = format!("[[row]]\nname = \"a\"\naggregation = \"trusted\"\nhonest_ratio = {tau}\n");
        refused(&row, &[], &["test.toml:4", "`row.0.honest_ratio`"]);
    }
    // No teacher is left to add noise.
    let row = "[ensemble]\nteachers = 3\n[[row]]\nname = \"a\"\naggregation = \"trusted\"\nhonest_ratio = 0.3\n";
    refused(row, &[], &["test.toml:6", "`row.0.honest_ratio`"]);
    refused("[[row]]\nname = \"a\"\n[[row]]\nname = \"a\"\n", &[], &["test.toml:4", "two rows"]);
}

#[test]
fn rare_classes_have_weights_and_a_prior() {
    refused("[teacher]\nclass_weights = \"even\"\n", &[], &["test.toml:2", "`teacher.class_weights`", "balanced"]);
    let weighted = load("", &["teacher.class_weights=balanced"]).expect("weights");
    assert!(weighted.to_toml().contains("class_weights = \"balanced\""));

    let student = "[student]\nmethod = \"pseudo-labels\"\nprior = ";
    let prior = |value: &str, words: &[&str]| {
        refused(&format!("{student}{value}\n"), &[], &[&["test.toml:3", "`student.prior`"], words].concat());
    };
    prior("\"even\"", &["`uniform`", "`estimated`"]);
    prior("0.5", &["expected string, found float"]);
    prior("[0.5, 0.25]", &["sum 1", "0.75"]);
    prior("[1.5, -0.5]", &["positive", "-0.5"]);
    prior("[0.5, 0.5]", &["10 classes", "found 2"]);
    let of_a_gan = "[student]\nprior = \"estimated\"\n";
    refused(of_a_gan, &[], &["test.toml:2", "`student.prior`", "pseudo-labels, linear"]);

    for value in ["\"estimated\"", "[0.55, 0.05, 0.05, 0.05, 0.05, 0.05, 0.05, 0.05, 0.05, 0.05]"] {
        let config = load(&format!("{student}{value}\n"), &[]).expect(value);
        let set = load("", &["student.method=pseudo-labels", &format!("student.prior={value}")]).expect(value);
        assert_eq!(set.student.prior, config.student.prior);
    }
    let plain = load("", &[]).expect("defaults").to_toml();
    assert!(!plain.contains("prior") && !plain.contains("class_weights"), "equal weights keep the ids of runs");
}

#[test]
fn keys_that_contradict_each_other_are_refused() {
    refused("[votes]\nsource = \"file\"\n", &[], &["`votes.file`", "needs the path"]);
    refused("[votes]\nfile = \"x.npy\"\n", &[], &["test.toml:2", "`votes.file`", "source = \"file\""]);
    refused("[queries]\nselection = \"file\"\n", &[], &["`queries.file`"]);
    refused("[data]\nsource = \"none\"\n", &[], &["`table.repeats`", "must be 0"]);
    refused("[data]\nsource = \"none\"\n[table]\nrepeats = 0\n", &[], &["`votes.source`", "without images", "uniform"]);
    refused("[votes]\nsource = \"uniform\"\nfile = \"x.npy\"\n", &[], &["test.toml:3", "`votes.file`"]);
    let no_images = "[data]\nsource = \"none\"\n[table]\nrepeats = 0\n[votes]\nsource = ";
    refused(&format!("{no_images}\"truth\"\n"), &[], &["test.toml:6", "`votes.source`", "no true labels"]);
    for circuit in ["paper", "all-pairs"] {
        let row = format!("[[row]]\nname = \"a\"\naggregation = \"trusted\"\ncircuit = \"{circuit}\"\n");
        refused(&row, &[], &["test.toml:4", "`row.0.circuit`", "encrypted"]);
    }
    let row = "[[row]]\nname = \"a\"\naggregation = \"encrypted\"\nqueries = 101\n";
    refused(row, &[], &["test.toml:4", "`row.0.queries`", "found 101", "queries.count = 100"]);
    refused(row, &["queries.count=100"], &["`row.0.queries`"]);
    assert_eq!(load(row, &["queries.count=101"]).expect("as many as there are").rows[0].query_count(101), 101);
}

#[test]
fn a_row_may_train_another_student_on_the_labels_of_an_earlier_one() {
    let rows = "[[row]]\nname = \"a\"\naggregation = \"trusted\"\n[[row]]\nname = \"b\"\nlabels_of = \"a\"\nstudent = \"pseudo-labels\"\n";
    let config = load(rows, &[]).expect("config");
    assert_eq!([config.labels_of(0), config.labels_of(1)], [0, 0]);
    assert_eq!(
        [0, 1].map(|row| config.method_of(&config.rows[row])),
        [StudentMethod::GAN, StudentMethod::PSEUDO_LABELS]
    );
    let config = load(rows, &["student.method=pseudo-labels"]).expect("config");
    assert_eq!(config.method_of(&config.rows[0]), StudentMethod::PSEUDO_LABELS);

    refused(
        &rows.replace("of = \"a\"", "of = \"b\""),
        &[],
        &["test.toml:6", "`row.1.labels_of`", "not an earlier row"],
    );
    refused(&rows.replace("pseudo-labels", "best"), &[], &["test.toml:7", "best", "gan", "pseudo-labels"]);
    let third = format!("{rows}[[row]]\nname = \"c\"\nlabels_of = \"b\"\n");
    refused(&third, &[], &["test.toml:10", "`row.2.labels_of`", "name that row"]);
}

#[test]
fn settings_of_the_other_student_are_checked_with_their_line() {
    refused("[student]\nmethod = \"best\"\n", &[], &["test.toml:2", "`student.method`", "gan", "pseudo-labels"]);
    let text = "[student.pseudo_labels]\nepochs = 0\n";
    refused(text, &[], &["test.toml:2", "`student.pseudo_labels.epochs`", "at least 1"]);
    let text = "[student.pseudo_labels]\nviews = \"broad\"\n";
    refused(text, &[], &["test.toml:2", "`student.pseudo_labels.views`", "broad", "narrow"]);
    let rate = "student.pseudo_labels.learning_rate";
    refused("", &[&format!("{rate}=1.5")], &["--set", &format!("`{rate}`"), "below 1"]);
    let text = "[student.pseudo_labels]\nepoch = 3\n";
    refused(text, &[], &["test.toml:2", "`student.pseudo_labels.epoch`", "unknown key; did you mean `epochs`?"]);
    let text = "[student.pseudo_labels]\nmomentum = 3\n";
    refused(text, &[], &["test.toml:2", "unknown key; allowed here: batch, ", "warmup_epochs"]);
    let default = load("", &["student.method=pseudo-labels"]).expect("config").student.pseudo_labels.clone();
    assert_eq!(default, speed_student::pseudo_labels::PseudoLabelsConfig::default(), "one default, in both places");
    let default = load("", &[]).expect("config").teacher.clone();
    assert_eq!(default, speed_teacher::TeacherConfig::SMALL, "one default, in both places");
}

#[test]
fn a_sweep_is_a_config_for_every_combination() {
    let text = "[noise]\nsource = \"simulation\"\n[sweep]\ngamma = [0.05, 0.1]\ntau = [1.0, 0.9]\nstudent.pseudo_labels.epochs = [50]\n\
                [[row]]\nname = \"a\"\naggregation = \"non-private\"\n[[row]]\nname = \"b\"\naggregation = \"trusted\"\n";
    let sweep = |text: &str| Sweep::load(&Source::new("test.toml", text));
    let found = sweep(text).expect("a sweep");
    assert_eq!(found.keys, ["gamma", "student.pseudo_labels.epochs", "tau"]);
    let settings: Vec<_> = found.settings.iter().map(|setting| setting.values.join(" ")).collect();
    assert_eq!(settings, ["0.05 50 1.0", "0.05 50 0.9", "0.1 50 1.0", "0.1 50 0.9"]);
    let last = &found.settings[3].config;
    assert_eq!((last.rows[0].honest_ratio.get(), last.rows[1].honest_ratio.get()), (1.0, 0.9));
    // A run's own config does not contain the sweep, so its stages are those of the config without a sweep.
    let plain = load(
        &text
            .replace("[sweep]\n", "")
            .replace("tau = [1.0, 0.9]\n", "")
            .replace("gamma = [0.05, 0.1]\n", "")
            .replace("student.pseudo_labels.epochs = [50]\n", ""),
        &["student.pseudo_labels.epochs=50", "row.1.honest_ratio=0.9"],
    );
    assert_eq!(plain.expect("a config"), *last);
    assert!(sweep("name = \"x\"\n").expect("a config").is_plain() && !found.is_plain());

    let refused = |from: &str, to: &str, parts: &[&str]| {
        let message = sweep(&text.replace(from, to)).expect_err("must be refused").to_string();
        for part in parts {
            assert!(message.contains(part), "{part:?} is not in {message:?}");
        }
    };
    refused("gamma = [0.05, 0.1]", "gamma = []", &["test.toml:4", "`sweep.gamma`", "no values"]);
    refused("gamma = [0.05, 0.1]", "gamma = 0.1", &["test.toml:4", "`sweep.gamma`", "a list of values"]);
    refused("gamma = [0.05, 0.1]", "gamma = [0.1, 0.1]", &["test.toml:4", "a repeated value"]);
    refused("gamma = [0.05, 0.1]", "gamma = [0.1, -1]", &["[sweep], gamma = -1", "`noise.gamma`"]);
    refused(
        "gamma = [0.05, 0.1]",
        "gama = [0.1]",
        &["test.toml:4", "`sweep.gama`", "unknown key; did you mean `gamma`?"],
    );
    refused("gamma = [0.05, 0.1]", "gamma = [0.1]\nnoise.gamma = [0.2]", &["the same key as gamma"]);
    refused("gamma = [0.05, 0.1]", "gamma = [1, 1.0]", &["are the same run"]);
    refused("gamma = [0.05, 0.1]", "name = [\"a\", \"b\"]", &["`sweep.name`", "a separate config"]);
    refused("gamma = [0.05, 0.1]", "noise.source = [\"simulation\"]", &["`sweep.noise.source`", "a separate config"]);
    refused("gamma = [0.05, 0.1]", "\"row.1.honest_ratio\" = [0.5]", &["sets the same key of a row"]);
    refused(
        "gamma = [0.05, 0.1]",
        &format!("seed = {:?}", (0..600).collect::<Vec<_>>()),
        &["1200 settings", "1 to 1000"],
    );
}
