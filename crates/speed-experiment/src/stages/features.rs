//! The vectors of a run's pictures, which the encoder computes: one unit of work for each block of pictures.
//!
//! A block is a function of its pictures and the encoder only. The later stages read vectors as images of one row, and do not
//! know about encoders.

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use speed_core::npy::ByteArray;
use speed_core::printable_path;
use speed_data::Split;
use speed_nn::threads;

use super::complete::complete;
use super::context::Context;
use super::data;
use super::images::Images;
use super::kind::{Kind, Node, Units};
use super::stage::{Stage, StageFacts};
use super::units::StageUnits;
use crate::config::Config;
use crate::cost::StageCost;
use crate::encoder::PictureEncoder;
use crate::environment::processor;
use crate::error::ExperimentError;
use crate::npy;
use crate::report::csv;
use crate::store::{Fingerprint, FinishedStage, Identity, StageFolder, part_of_stage, unit_payload};

pub(crate) const KIND: &str = "features";

const BLOCK: usize = 200;
/// The largest number of blocks of pictures whose number is known only after they are read.
const MAX_BLOCKS: usize = 50_000;
const TOGETHER: usize = 10;

const ENCODER: &str = "encoder";
const UNIT: &str = "block-";
/// The splits in the order of the blocks. Their vectors are in a file each; only the first split is private.
const SPLITS: [&str; 3] = ["train", "pool", "test"];
const METRICS: &str = "metrics.csv";
const METRICS_HEAD: [&str; 5] = ["block", "pictures", "seconds", "arithmetic", "processor"];

pub(super) static ENCODING: Kind = Kind {
    units: Some(Units {
        name: "blocks of pictures",
        count: |config, _| known_blocks(config).unwrap_or(MAX_BLOCKS),
        are_serial: true,
        work: |context, node, _, shard| {
            let Some(stage) = FeaturesStage::new(&node.name, context) else { return Ok(()) };
            let blocks = stage.blocks()?;
            shard.work_on(context, &stage, blocks, |folder, own| Encoding::new(&stage, context, folder).encode(own))
        },
        found: |run, config, node, _| Some(found(run, config, node)),
    }),
    cost: |_, meter| {
        let Some((core_seconds, memory_bytes)) = meter.vectors()? else { return Ok(Vec::new()) };
        let core_seconds = Some(core_seconds);
        Ok(vec![StageCost { stage: KIND, kind: KIND.to_owned(), core_seconds, memory_bytes }])
    },
    ..Kind::new(
        KIND,
        |config, _| config.features.encoder().is_some(),
        |context, node, _| {
            if let Some(stage) = FeaturesStage::new(&node.name, context) {
                context.keep_vectors(complete(context, &stage)?);
            }
            Ok(())
        },
    )
};

fn known_blocks(config: &Config) -> Option<usize> {
    config.data.facts().map(|facts| (facts.train + facts.test).div_ceil(BLOCK))
}

fn found(run: &Path, config: &Config, node: &Node) -> StageUnits {
    let blocks = known_blocks(config)
        .or_else(|| data::pictures_in(run).map(|pictures| pictures.div_ceil(BLOCK).min(MAX_BLOCKS)));
    match blocks {
        Some(blocks) => StageUnits::in_stage(run, &node.name, blocks, unit),
        None => StageUnits { at_most: true, ..StageUnits::count(&node.name, MAX_BLOCKS, |_| false) },
    }
}

/// Returns whether the encoder with this digest computed the vectors of the run in the directory `run`; `None` if the stage is not
/// there.
pub(crate) fn is_encoder_of_run(run: &Path, digest: &str) -> Option<bool> {
    Some(part_of_stage(run, KIND, ENCODER)? == Fingerprint::of(&json!(digest)))
}

fn unit(block: usize) -> String {
    format!("{UNIT}{block:05}")
}

fn file(split: &str) -> String {
    format!("{split}.npy")
}

struct FeaturesStage<'a> {
    name: &'a str,
    pictures: &'a Images,
    encoder: &'a PictureEncoder,
}

impl<'a> FeaturesStage<'a> {
    fn new(name: &'a str, context: &Context<'a>) -> Option<Self> {
        let pictures = context.pictures?;
        Some(Self { name, pictures, encoder: pictures.encoder.as_ref()? })
    }

    fn splits(&self) -> [&'a Split; 3] {
        let Images { train, pool, test, .. } = self.pictures;
        [train, pool, test]
    }

    fn all(&self) -> usize {
        self.splits().map(Split::len).iter().sum()
    }

    fn blocks(&self) -> Result<usize, ExperimentError> {
        match self.all().div_ceil(BLOCK) {
            blocks if blocks <= MAX_BLOCKS => Ok(blocks),
            blocks => {
                let (expected, found) = (MAX_BLOCKS * BLOCK, blocks * BLOCK);
                let fault =
                    format_args!("an encoder reads at most {expected} pictures, found about {found}: use fewer");
                Err(ExperimentError::fault(fault))
            }
        }
    }

    /// Returns the pictures of a block, as places in all splits one after the other.
    fn pictures_of(&self, block: usize) -> Range<usize> {
        block * BLOCK..((block + 1) * BLOCK).min(self.all())
    }

    fn place(&self, mut picture: usize) -> (usize, usize) {
        let mut split = 0;
        for length in self.splits().map(Split::len) {
            if picture < length {
                break;
            }
            picture -= length;
            split += 1;
        }
        (split, picture)
    }

    fn vector(&self, picture: usize) -> Result<Vec<u8>, ExperimentError> {
        let (split, place) = self.place(picture);
        let images = self.splits()[split];
        let name = || {
            let file = self.pictures.files.as_ref().map(|files| format!(", {}", printable_path(&files[split][place])));
            format!("picture {place} (from 0) of the split {}{}", SPLITS[split], file.unwrap_or_default())
        };
        self.encoder.vector(images.shape(), images.pixels(place), name)
    }
}

impl Stage for FeaturesStage<'_> {
    type Output = Images;

    fn facts(&self) -> StageFacts<'_> {
        StageFacts { depends_on_machine: true, ..StageFacts::new(self.name) }
    }

    fn inputs(&self, _: &Context<'_>) -> Result<Value, ExperimentError> {
        let [train, pool, test] = self.splits().map(Images::digest);
        Ok(json!({ ENCODER: self.encoder.digest().to_hex(), "train": train, "pool": pool, "test": test }))
    }

    fn run(&self, context: &Context<'_>, folder: &mut StageFolder) -> Result<Vec<String>, ExperimentError> {
        let blocks: Vec<usize> = (0..self.blocks()?).collect();
        let work = Encoding::new(self, context, folder);
        let here = work.encode(&blocks)?;
        let metrics = work.metrics_csv(&blocks)?;
        self.write(folder, &blocks)?;
        folder.resumed(blocks.len() - here);
        folder.write(METRICS, metrics.as_bytes())?;
        Ok(SPLITS.map(file).to_vec())
    }

    fn clean_up(&self, context: &Context<'_>, _: &Identity) -> Result<(), ExperimentError> {
        // The files of the splits contain the blocks.
        context.store.remains_of(self.name).remove_all(UNIT);
        Ok(())
    }

    fn load(&self, _: &Context<'_>, done: &FinishedStage) -> Result<Images, ExperimentError> {
        let shape = self.encoder.vectors_shape();
        let read = |split: usize| {
            let (pictures, name) = (self.splits()[split], file(SPLITS[split]));
            let bytes = done.read(&name)?;
            let array = ByteArray::parse(&bytes).map_err(|error| ExperimentError::from(error).at(done.path(&name)))?;
            let expected = [pictures.len(), shape.width];
            if array.shape != expected {
                let fault = format_args!("expected vectors of shape {expected:?}, found {:?}", array.shape);
                return Err(ExperimentError::results(done.path(&name), fault));
            }
            Ok(Split::new(shape, pictures.classes(), array.values.to_vec(), pictures.labels().to_vec())?)
        };
        let train = read(0)?;
        Ok(Images {
            train: match &self.pictures.order {
                None => train,
                Some(order) => train.select(order),
            },
            order: None,
            parts: self.pictures.parts.clone(),
            parties_by_class: None,
            pool: read(1)?,
            test: read(2)?,
            class_names: self.pictures.class_names.clone(),
            handwriting: None,
            notes: Vec::new(),
            files: None,
            encoder: None,
        })
    }
}

impl FeaturesStage<'_> {
    fn write(&self, folder: &StageFolder, blocks: &[usize]) -> Result<(), ExperimentError> {
        let width = self.encoder.vectors_shape().width;
        let mut vectors = Vec::with_capacity(self.all() * width);
        for block in blocks {
            vectors.extend(folder.read_partial(&unit_payload(&unit(*block))).unwrap_or_default());
        }
        if vectors.len() != self.all() * width {
            let fault = "blocks of vectors were saved and cannot be read back: run again";
            return Err(ExperimentError::results(folder.path(), fault));
        }
        let mut rest = &vectors[..];
        for (index, (name, split)) in SPLITS.into_iter().zip(self.splits()).enumerate() {
            let (own, others) = rest.split_at(split.len() * width);
            rest = others;
            let bytes = npy::rows_to_bytes(own, width);
            if index == 0 { folder.write_secret(&file(name), &bytes)? } else { folder.write(&file(name), &bytes)? }
        }
        Ok(())
    }
}

#[derive(Clone, Debug, Serialize, Deserialize)]
struct Metrics {
    seconds: f64,
    /// The encoder's kernels differ between processors, also with portable arithmetic.
    processor: String,
}

/// A finished block, and the kind of machine that computed it.
type Done = (Metrics, String);

struct Encoding<'a> {
    context: &'a Context<'a>,
    stage: &'a FeaturesStage<'a>,
    folder: &'a StageFolder,
    processor: String,
    done: Mutex<BTreeMap<usize, Done>>,
}

impl<'a> Encoding<'a> {
    fn new(stage: &'a FeaturesStage<'a>, context: &'a Context<'a>, folder: &'a StageFolder) -> Self {
        Self { context, stage, folder, processor: processor(), done: Mutex::default() }
    }

    fn done(&self) -> MutexGuard<'_, BTreeMap<usize, Done>> {
        self.done.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Ensures that these blocks are encoded, and returns how many this process encoded.
    fn encode(&self, blocks: &[usize]) -> Result<usize, ExperimentError> {
        let (progress, threads) = (self.context.progress, self.context.threads.get());
        // Saved blocks are read concurrently.
        threads::for_each(blocks, threads, |&block, _| {
            let found = self.folder.read_unit(&unit(block));
            self.done().extend(found.map(|found| (block, found)));
            Ok::<_, ExperimentError>(())
        })?;
        let pictures = |blocks: &[usize]| blocks.iter().map(|block| self.stage.pictures_of(*block).len() as u64).sum();
        let todo: Vec<usize> = blocks.iter().copied().filter(|block| !self.done().contains_key(block)).collect();
        let all: u64 = pictures(blocks);
        progress.begin("encode pictures", "pictures", all, all - pictures(&todo));
        threads::for_each(&todo, threads, |&block, stop| self.encode_one(block, stop))?;
        progress.end(&format!("{all} pictures encoded"));
        Ok(todo.len())
    }

    /// Encodes and saves a block. Ends early once `stop` is true.
    fn encode_one(&self, block: usize, stop: &AtomicBool) -> Result<(), ExperimentError> {
        let (start, pictures) = (Instant::now(), self.stage.pictures_of(block));
        let all: Vec<usize> = pictures.clone().collect();
        let mut vectors = Vec::new();
        for few in all.chunks(TOGETHER) {
            for &picture in few {
                vectors.extend(self.stage.vector(picture)?);
            }
            if stop.load(Ordering::Relaxed) {
                return Ok(());
            }
            self.context.progress.advance(few.len() as u64, "");
        }
        let metrics = Metrics { seconds: start.elapsed().as_secs_f64(), processor: self.processor.clone() };
        let is_private = pictures.start < self.stage.pictures.train.len();
        let arithmetic = self.context.arithmetic;
        self.folder.write_unit(&unit(block), &vectors, is_private, arithmetic, &metrics)?;
        self.done().insert(block, (metrics, arithmetic.to_owned()));
        Ok(())
    }

    fn metrics_csv(&self, blocks: &[usize]) -> Result<String, ExperimentError> {
        let done = self.done();
        let lines = blocks.iter().map(|block| {
            let lost = || ExperimentError::fault(format_args!("block {block} was saved and cannot be read back"));
            let (Metrics { seconds, processor }, arithmetic) = done.get(block).ok_or_else(lost)?;
            let (pictures, seconds) = (self.stage.pictures_of(*block).len(), format!("{seconds:.3}"));
            Ok(vec![block.to_string(), pictures.to_string(), seconds, arithmetic.clone(), processor.clone()])
        });
        let lines: Result<Vec<Vec<String>>, ExperimentError> = lines.collect();
        Ok(csv::write(METRICS_HEAD, lines?))
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::num::NonZeroUsize;
    use std::path::PathBuf;
    use std::time::Duration;

    use speed_accountant::PriceLimit;
    use speed_core::ExitCode;
    use speed_core::random::Streams;
    use speed_nn::onnx::small_encoder;

    use super::*;
    use crate::config::{Source, Sweep};
    use crate::options::RunOptions;
    use crate::progress::Silent;
    use crate::runner::{complete_until, run_shard};
    use crate::store::{RunStore, Shard};

    /// A directory with the small encoder and results of a run on grey digits in three blocks of pictures, of which the first two
    /// have private ones.
    struct Place {
        folder: tempfile::TempDir,
        source: Source,
        config: Config,
    }

    impl Place {
        fn new() -> Self {
            let folder = tempfile::tempdir().expect("a folder");
            let encoder = folder.path().join("encoder.onnx");
            fs::write(&encoder, small_encoder()).expect("written");
            let text = format!(
                "[data]\ntrain_images = 250\ntest_images = 160\npool_images = 60\n[features]\nencoder = {encoder:?}\n[ensemble]\n\
                 teachers = 25\n[votes]\nsource = \"neighbours\"\n[queries]\ncount = 10\n[noise]\nsource = \"simulation\"\n[table]\n\
                 repeats = 0\n[[row]]\nname = \"a\"\naggregation = \"trusted\"\n"
            );
            let source = Source::new("test.toml", text);
            let config = Config::load(&source).expect("a config");
            Self { folder, source, config }
        }

        fn options(&self, results: &str) -> RunOptions {
            RunOptions {
                results: self.folder.path().join(results),
                datasets: None,
                threads: NonZeroUsize::new(2).expect("two"),
                force: Vec::new(),
                limit: PriceLimit::default(),
                mix_machines: false,
                latency_wait: Duration::ZERO,
            }
        }

        fn run(&self, results: &str, stage: &str) {
            complete_until(&self.config, &self.options(results), stage, &Silent).expect(stage);
        }

        fn shard(&self, results: &str, number: usize) -> Result<[usize; 2], ExperimentError> {
            let sweep = Sweep::load(&self.source).expect("a config");
            let shard = Shard { stage: KIND.into(), number, of: 2 };
            run_shard(&sweep, &self.options(results), &shard, &Silent).map(|report| [report.units, report.done_here])
        }

        fn run_folder(&self, results: &str) -> PathBuf {
            RunStore::folder_of(&self.options(results).results, &self.config)
        }

        fn read(&self, results: &str, name: &str) -> Vec<u8> {
            fs::read(self.run_folder(results).join("stages").join(KIND).join(name)).expect(name)
        }
    }

    #[test]
    fn parts_give_the_bytes_of_one_process_and_private_vectors_are_for_their_owner() {
        let place = Place::new();
        place.run("whole", KIND);
        place.run("parts", "data");
        assert_eq!(place.shard("parts", 1).expect("a shard"), [2, 2]);
        let run = place.run_folder("parts");
        let units = StageUnits::of_run(&run).expect("units");
        let units = units.iter().find(|units| units.stage == KIND).expect("blocks");
        assert_eq!((units.done, units.of, units.at_most, &units.missing[..]), (2, 3, false, &[1][..]));
        #[cfg(unix)]
        let expect_private = |results: &str, name: &str| {
            use std::os::unix::fs::PermissionsExt as _;
            let path = place.run_folder(results).join("stages").join(KIND).join(name);
            assert_eq!(fs::metadata(path).expect(name).permissions().mode() & 0o777, 0o600, "{name}");
        };
        #[cfg(unix)]
        expect_private("parts", "block-00000.bin");
        assert_eq!(place.shard("parts", 1).expect("again"), [2, 0], "nothing is done twice");
        place.run("parts", KIND);
        let record: Value = serde_json::from_slice(&place.read("parts", "stage.json")).expect("a record");
        assert_eq!(record["resumed_units"], 2);
        for name in SPLITS.map(file) {
            assert_eq!(place.read("parts", &name), place.read("whole", &name), "{name}");
        }
        #[cfg(unix)]
        ["whole", "parts"].iter().for_each(|results| expect_private(results, "train.npy"));
        let left = fs::read_dir(run.join("stages").join(KIND)).expect("a folder").flatten();
        let names = left.map(|entry| entry.file_name().to_string_lossy().into_owned());
        assert_eq!(names.filter(|name| name.starts_with(UNIT)).count(), 0);
        assert_eq!(place.shard("parts", 2).expect("done"), [1, 0]);

        let images =
            Images::load(&place.config, &Streams::new(place.config.seed), None).expect("images").expect("some");
        let encoder = images.encoder.as_ref().expect("an encoder");
        let bytes = place.read("whole", "pool.npy");
        let array = ByteArray::parse(&bytes).expect("an array");
        assert_eq!(array.shape, [60, encoder.vectors_shape().width]);
        for picture in [0, 59] {
            let expected =
                encoder.vector(images.pool.shape(), images.pool.pixels(picture), String::new).expect("a vector");
            assert_eq!(array.values[picture * expected.len()..][..expected.len()], expected);
        }
    }

    #[test]
    fn divisions_share_the_vectors_and_another_encoder_repeats_them() {
        let place = Place::new();
        place.run("results", "votes");
        let [record, vectors, private] =
            ["stage.json", "pool.npy", "train.npy"].map(|name| place.read("results", name));
        let text = place.source.text().replace("teachers = 25", "teachers = 25\nskew = 1.0");
        let config = Config::load(&Source::new("test.toml", text)).expect("a config");
        complete_until(&config, &place.options("results"), "votes", &Silent).expect("votes");
        let [first, other] = [&place.config, &config]
            .map(|config| RunStore::folder_of(&place.options("results").results, config).join("stages"));
        let read = |stages: &Path, name: &str| fs::read(stages.join(name)).expect(name);
        assert_eq!(read(&other, "features/stage.json"), record, "not encoded again");
        assert_ne!(read(&first, "votes/votes.npy"), read(&other, "votes/votes.npy"));

        let normalised = "{\"image_mean\": [0.5, 0.4, 0.3], \"image_std\": [0.2, 0.3, 0.4]}";
        fs::write(place.folder.path().join("preprocessor_config.json"), normalised).expect("written");
        let error = place.shard("results", 1).expect_err("another encoder");
        assert_eq!(error.exit_code(), ExitCode::Results);
        assert!(error.to_string().contains("encoder"), "{error}");
        place.run("results", "votes");
        assert!(vectors != place.read("results", "pool.npy") && private != place.read("results", "train.npy"));
        for name in ["features", "map", "votes"] {
            assert!(first.join(format!("{name}.superseded-1")).is_dir(), "{name}");
        }
        assert!(!first.join("data.superseded-1").exists());
    }
}
