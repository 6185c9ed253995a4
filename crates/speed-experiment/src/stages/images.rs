//! Images: the private training split, and the public test split, which is divided into pool and test images.

use std::collections::HashSet;
use std::fmt::Display;
use std::num::NonZeroUsize;
use std::ops::Range;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use speed_aggregation::Outcomes;
use speed_core::random::Streams;
use speed_core::{printable, printable_path};
use speed_data::digits::{self, DigitsConfig};
use speed_data::pictures::{self, PassedOver};
use speed_data::{DataError, Dataset, Facts, ImageShape, Split, arrays, class_names, locate, mnist, partition, street};

use crate::config::{AggregationKind, Config, DataSource, PatientRule, PoolOrigin};
use crate::encoder::{PictureEncoder, check_shape, read_pictures};
use crate::error::ExperimentError;
use crate::image_warnings::{MEASURES_LITTLE, dark, first_names, in_several_parts, known};
use crate::model::ModelEncoder;
use crate::patients::{Division, Patients, patients, relative};

/// Numbers of built-in training and test digits from which street digits are made if MNIST is missing.
const BUILT_IN: [usize; 2] = [20_000, 5_000];

pub(crate) struct Images {
    /// Private images in the order of the teachers' parts; pictures for an encoder in the order of their source.
    pub(crate) train: Split,
    /// The order of the parts, if it is not that of `train`. The encoder's stage applies it to the vectors, so that all divisions of
    /// the pictures share them.
    pub(crate) order: Option<Vec<usize>>,
    /// The part of every teacher.
    pub(crate) parts: Vec<Range<usize>>,
    /// The number of parties with training images of each class, if a party lacks one and no noise protects the parties.
    pub(crate) parties_by_class: Option<Vec<usize>>,
    /// Public images for the student, which does not see their labels; the queries are drawn from them. Without true labels
    /// (`data.labels`) every label is 0.
    pub(crate) pool: Split,
    /// Public held-out images, only for measuring the student.
    pub(crate) test: Split,
    pub(crate) class_names: Vec<String>,
    pub(crate) handwriting: Option<String>,
    pub(crate) notes: Vec<String>,
    /// The files of the training, pool and test pictures for an encoder, if each has one.
    pub(crate) files: Option<[Vec<PathBuf>; 3]>,
    pub(crate) encoder: Option<PictureEncoder>,
}

impl Images {
    /// Loads or generates the images of `config`, if it uses images.
    pub(crate) fn load(
        config: &Config,
        streams: &Streams,
        datasets: Option<&Path>,
    ) -> Result<Option<Self>, ExperimentError> {
        let encoder = PictureEncoder::read(config)?;
        let Some(mut loaded) = dataset(config, streams, datasets, encoder.as_ref())? else { return Ok(None) };
        loaded.divide(config, streams)?;
        let (notes, parties_by_class) = (loaded.notes(config), loaded.parties_by_class(config));
        let SourceImages { images, order, parts, handwriting, unlabelled, files, .. } = loaded;
        let Dataset { train, test, class_names, .. } = images;
        let (train, order) = match order {
            Some(order) if encoder.is_none() => (train.select(&order), None),
            order => (train, order),
        };
        check_sizes(config, train.len(), test.len(), unlabelled)?;
        check_classes(config, train.classes())?;
        check_shape(config, encoder.as_ref(), train.shape())?;
        let pool = config.data.pool_images;
        let first = unlabelled.unwrap_or(pool);
        let (public, test) = (test.slice(0..pool), test.slice(first..test.len()));
        let files = files.filter(|_| encoder.is_some());
        let files = files.map(|[train, public]| [train, public[..pool].to_vec(), public[first..].to_vec()]);
        Ok(Some(Self {
            train,
            order,
            parts,
            parties_by_class,
            pool: public,
            test,
            class_names,
            handwriting,
            notes,
            files,
            encoder,
        }))
    }

    /// Returns a split's digest in the form that fingerprints use.
    pub(crate) fn digest(split: &Split) -> Value {
        json!(hex::encode(split.digest()))
    }

    /// Returns the digest of the training images and of their division among the teachers.
    pub(crate) fn divided_digest(&self) -> Value {
        let images = Self::digest(&self.train);
        if partition::blocks(self.train.len(), self.parts.len()).is_ok_and(|blocks| blocks == self.parts) {
            return images;
        }
        let sizes: Vec<usize> = self.parts.iter().map(Range::len).collect();
        json!({ "images": images, "parts": sizes })
    }
}

struct SourceImages {
    images: Dataset,
    /// The order in which the teachers' images follow each other; `None` for that of the source.
    order: Option<Vec<usize>>,
    /// The part of every teacher, as places in this order; empty before [`Self::divide`], and if there are too few images.
    parts: Vec<Range<usize>>,
    /// The patients of the training images, if they determine the parts.
    patients: Option<Patients>,
    handwriting: Option<String>,
    /// The number of public images without labels, which come before the test images; `None` if all images have labels.
    unlabelled: Option<usize>,
    files: Option<[Vec<PathBuf>; 2]>,
    /// Files in a directory of pictures that were not read.
    passed_over: Option<PassedOver>,
}

impl SourceImages {
    /// Divides the training images among the teachers, without moving them. The pool has its images before.
    fn divide(&mut self, config: &Config, streams: &Streams) -> Result<(), ExperimentError> {
        self.move_pool(config)?;
        let (ensemble, train) = (&config.ensemble, &self.images.train);
        // An error about too few images is reported elsewhere.
        self.parts = partition::blocks(train.len(), ensemble.teachers).unwrap_or_default();
        let divided = if let Some(rule) = config.data.patients() {
            self.by_patient(config, &rule)?
        } else if let Some(parties) = ensemble.unequal_parties().filter(|_| !self.parts.is_empty()) {
            partition::unequal(train.labels(), train.classes(), &parties, ensemble.skew, streams)
                .map_err(|error| ExperimentError::fault(format_args!("ensemble.skew: {error}")))?
        } else {
            return Ok(());
        };
        let (order, parts) = partition::consecutive(&divided);
        (self.order, self.parts) = (Some(order), parts);
        Ok(())
    }

    fn by_patient(&mut self, config: &Config, rule: &PatientRule) -> Result<Vec<Vec<usize>>, ExperimentError> {
        let (teachers, train) = (config.ensemble.teachers, &self.images.train);
        let folder = Path::new(&config.data.folder).join("train");
        let names: Vec<String> = match &self.files {
            Some([files, _]) => relative(&folder, files),
            None => (0..train.len()).map(|image| image.to_string()).collect(),
        };
        let found = self.patients.insert(patients(&folder, &names, train, Some(rule))?);
        let division = Division::of_seed(config.seed);
        let parts = NonZeroUsize::new(teachers).expect("a config that was checked has teachers");
        let teacher_of: Vec<usize> = found.of_image.iter().map(|patient| division.part(patient, parts)).collect();
        partition::by_teacher(&teacher_of, teachers).map_err(|teacher| {
            let count = found.count();
            ExperimentError::fault(format_args!(
                "ensemble.teachers = {teachers}: teacher {teacher} has no image, because a keyed hash divides {count} patients \
                 (data.patients): use fewer teachers, or another seed"
            ))
        })
    }

    /// Moves the last training images to the beginning of the test images if they are the pool, so that no teacher has them.
    fn move_pool(&mut self, config: &Config) -> Result<(), ExperimentError> {
        if config.data.pool != PoolOrigin::Train {
            return Ok(());
        }
        let Dataset { train, test, .. } = &mut self.images;
        let pool = config.data.pool_images;
        let images = train.len();
        let rest = images.checked_sub(pool).filter(|rest| *rest > 0);
        let rest = rest.ok_or_else(|| {
            let reason = "because the others train the teachers";
            of_pool(pool, format_args!("fewer than the {images} training images, {reason}"))
        })?;
        *test = train.slice(rest..images).followed_by(test)?;
        *train = train.slice(0..rest);
        if let Some([train, public]) = &mut self.files {
            public.splice(0..0, train.split_off(rest));
        }
        Ok(())
    }

    fn notes(&self, config: &Config) -> Vec<String> {
        let pool = config.data.pool_images;
        let unused = self.unlabelled.and_then(|images| images.checked_sub(pool)).filter(|unused| *unused > 0);
        let unused =
            unused.map(|unused| format!("the last {unused} public images are not used (data.pool_images = {pool})"));
        // Unequal parties are intended, patients cannot be mixed, and with real noise a figure of private images is secret.
        let is_intended = config.ensemble.unequal_parties().is_some() || config.data.patients().is_some();
        let is_shown = !is_intended && !config.protects_answers();
        let uneven = is_shown.then(|| partition::uneven(&self.images.train, &self.parts)).flatten();
        let parties = self.parties_by_class(config).map(|counts| {
            let each = self
                .images
                .class_names
                .iter()
                .zip(counts)
                .map(|(name, parties)| format!("{} {parties}", printable(name)));
            let each = each.collect::<Vec<_>>().join(", ");
            format!("parties with images of each class, of {}: {each}", config.ensemble.parties)
        });
        let passed_over = self.passed_over.as_ref().map(|files| format!("pictures: {files}"));
        let warnings = uneven.map(|uneven| uneven.to_string()).into_iter().chain(self.warnings(config));
        let warnings = warnings.map(|warning| format!("warning: {warning}"));
        passed_over.into_iter().chain(unused).chain(parties).chain(warnings).collect()
    }

    /// Returns the number of parties with training images of each class, if a party lacks one. It is secret if noise protects the parties.
    fn parties_by_class(&self, config: &Config) -> Option<Vec<usize>> {
        let teachers_of = config.ensemble.teachers_of_parties();
        if config.protects_answers() || self.parts.is_empty() {
            return None;
        }
        let train = &self.images.train;
        let labels = match &self.order {
            None => train.labels().to_vec(),
            Some(order) => order.iter().map(|&image| train.label(image)).collect(),
        };
        let counts = partition::parties_by_class(&labels, train.classes(), &self.parts, &teachers_of);
        counts.iter().any(|parties| *parties < teachers_of.len()).then_some(counts)
    }

    /// Returns warnings about a user's own images. With real noise they have no figures of private images, because logs have none.
    fn warnings(&self, config: &Config) -> Vec<String> {
        let Dataset { train, test: public, .. } = &self.images;
        // Too few public images are refused elsewhere.
        let (pool, first) = (config.data.pool_images, self.unlabelled.unwrap_or(config.data.pool_images));
        if !config.data.source.has_folder() || pool.max(first) > public.len() {
            return Vec::new();
        }
        let (pool, test) = (public.slice(0..pool), public.slice(first..public.len()));
        let name = |half: usize, image: usize| match &self.files {
            Some(files) => printable_path(&files[half][image]),
            None => format!("image {image} of the {} images", ["training", "public"][half]),
        };
        let (of_pool, of_test) = (|image| name(1, image), |image| name(1, first + image));
        let private = (!config.protects_answers()).then_some(("training images", train));
        let all = private.into_iter().chain([("pool", &pool), ("test images", &test)]);
        let mut warnings: Vec<String> = all.filter_map(|(what, images)| dark(what, images)).collect();
        warnings.extend(known("test images", &test, ("in the pool", &pool), of_test, MEASURES_LITTLE));
        let Some(private) = private else { return warnings };
        warnings.extend(known("test images", &test, private, of_test, MEASURES_LITTLE));
        warnings.extend(known("pool", &pool, private, of_pool, "and no claim covers a public image"));
        let mut part_of = vec![0; train.len()];
        for (part, places) in self.parts.iter().enumerate() {
            places.clone().for_each(|place| part_of[self.order.as_ref().map_or(place, |order| order[place])] = part);
        }
        warnings.extend(in_several_parts(train, &part_of, |image| name(0, image)));
        warnings.extend(self.patients.iter().flat_map(|patients| patients.warnings.iter().cloned()));
        warnings.extend(self.known_patients(config, (0..pool.len(), "pool"), "and no claim covers a public image"));
        let effect = "so the accuracy on them says little about new patients";
        warnings.extend(self.known_patients(config, (first..public.len(), "test images"), effect));
        warnings
    }

    fn known_patients(&self, config: &Config, (range, what): (Range<usize>, &str), effect: &str) -> Option<String> {
        let (rule, patients, [_, public]) = (config.data.patients()?, self.patients.as_ref()?, self.files.as_ref()?);
        let private: HashSet<&String> = patients.of_image.iter().collect();
        let is_known = |image: &usize| rule.of_image(&public[*image]).is_some_and(|patient| private.contains(&patient));
        let (all, known) = (range.len(), range.filter(is_known).collect::<Vec<_>>());
        (!known.is_empty()).then(|| {
            let (count, names) = (known.len(), first_names(&known, |image| printable_path(&public[image])));
            format!("{what}: {count} of {all} images are of patients of the training images, {effect}: {names}")
        })
    }
}

fn dataset(
    config: &Config,
    streams: &Streams,
    datasets: Option<&Path>,
    encoder: Option<&PictureEncoder>,
) -> Result<Option<SourceImages>, ExperimentError> {
    let data = &config.data;
    let (folder, counts) = (Path::new(&data.folder), [data.train_images, data.test_images]);
    let (mut handwriting_of, mut unlabelled, mut files, mut passed_over) = (None, None, None, None);
    let images = match data.source {
        DataSource::None => return Ok(None),
        DataSource::Digits => digits::generate(DigitsConfig { train: counts[0], test: counts[1] }, streams),
        DataSource::StreetDigits => {
            let handwriting = handwriting(streams, datasets)?;
            let images = street::generate(&handwriting, counts, streams)?;
            handwriting_of = Some(handwriting.name);
            images
        }
        DataSource::Pictures if data.has_labelled_pool() => {
            let pictures = read_pictures(encoder, config.reading(), |reading| pictures::load(folder, reading))?;
            (files, passed_over) = (Some(pictures.files), pictures.passed_over);
            pictures.dataset
        }
        DataSource::Pictures => {
            let pictures =
                read_pictures(encoder, config.reading(), |reading| pictures::load_with_public(folder, reading))?;
            (unlabelled, passed_over) = (Some(pictures.unlabelled), pictures.passed_over);
            files = Some(pictures.files);
            pictures.dataset
        }
        DataSource::Arrays if data.has_labelled_pool() => named(config, arrays::load(folder)?)?,
        DataSource::Arrays => {
            let (images, public) = arrays::load_with_public(folder)?;
            unlabelled = Some(public);
            named(config, images)?
        }
        DataSource::SvhnLike => named(config, speed_data::load_svhn_like(folder)?)?,
        published => {
            let name = published.published().expect("every other source is published");
            speed_data::load(name, &locate(name, datasets)?)?
        }
    };
    let (order, parts, patients) = (None, Vec::new(), None);
    let handwriting = handwriting_of;
    Ok(Some(SourceImages { images, order, parts, patients, handwriting, unlabelled, files, passed_over }))
}

/// Returns images with the names of their classes in the config, if it has any.
fn named(config: &Config, images: Dataset) -> Result<Dataset, ExperimentError> {
    let (names, expected) = (&config.data.classes, images.train.classes());
    match names.len() {
        0 => Ok(images),
        found if found == expected => Ok(images.with_class_names(names.clone())),
        found => {
            let fault = format!("expected the names of {expected} classes, as the images have, found {found}");
            Err(ExperimentError::fault(format_args!("data.classes: {fault}")))
        }
    }
}

fn handwriting(streams: &Streams, datasets: Option<&Path>) -> Result<Dataset, ExperimentError> {
    match locate("mnist", datasets) {
        Ok(folder) => Ok(mnist::load(&folder)?),
        Err(DataError::NotFound { .. }) => {
            Ok(digits::generate(DigitsConfig { train: BUILT_IN[0], test: BUILT_IN[1] }, streams))
        }
        Err(error) => Err(error.into()),
    }
}

/// What a network of a run classifies.
pub(crate) struct Subjects {
    /// The shape of the images, or of the encoder's vectors.
    pub(crate) shape: ImageShape,
    /// The encoder, if the run has one.
    pub(crate) encoder: Option<ModelEncoder>,
    pub(crate) classes: Vec<String>,
}

impl Subjects {
    /// Finds those of a config, if it uses images. Reads the images if they are in a directory, and the encoder.
    pub(crate) fn find(config: &Config, datasets: Option<&Path>) -> Result<Option<Self>, ExperimentError> {
        let encoder = PictureEncoder::read(config)?;
        let found = if let Some(facts) = config.data.facts() {
            let numbers = || (0..facts.classes).map(|class| class.to_string()).collect();
            let published = config.data.source.published().and_then(class_names);
            Some((facts.shape, published.unwrap_or_else(numbers)))
        } else {
            let loaded = dataset(config, &Streams::new(config.seed), datasets, encoder.as_ref())?;
            loaded.map(|SourceImages { images, .. }| (images.train.shape(), images.class_names))
        };
        Ok(found.map(|(pictures, classes)| Self {
            shape: encoder.as_ref().map_or(pictures, PictureEncoder::vectors_shape),
            encoder: encoder.map(|encoder| encoder.of_model(config, pictures.channels)),
            classes,
        }))
    }
}

pub(crate) struct ImageFacts {
    /// The facts about the images that networks learn from, if the run uses images.
    pub(crate) facts: Option<Facts>,
    pub(crate) notes: Vec<String>,
    /// The encoder, if the config has one, and the shape of the pictures that it reads.
    pub(crate) encoder: Option<(PictureEncoder, ImageShape)>,
}

impl ImageFacts {
    /// Finds the facts about a run's images. Reads the images if they are in a directory, and the encoder.
    pub(crate) fn find(config: &Config, datasets: Option<&Path>) -> Result<Self, ExperimentError> {
        let encoder = PictureEncoder::read(config)?;
        let (facts, unlabelled, notes) = match config.data.facts() {
            Some(facts) => (Some(facts), None, Vec::new()),
            None => match dataset(config, &Streams::new(config.seed), datasets, encoder.as_ref())? {
                Some(mut loaded) => {
                    loaded.divide(config, &Streams::new(config.seed))?;
                    (Some(Facts::from_dataset(&loaded.images)), loaded.unlabelled, loaded.notes(config))
                }
                None => (None, None, Vec::new()),
            },
        };
        let Some(found) = facts else { return Ok(Self { facts, notes, encoder: None }) };
        check_sizes(config, found.train, found.test, unlabelled)?;
        check_classes(config, found.classes)?;
        check_shape(config, encoder.as_ref(), found.shape)?;
        let shape = encoder.as_ref().map_or(found.shape, PictureEncoder::vectors_shape);
        let facts = Facts { shape, ..found };
        Ok(Self { facts: Some(facts), notes, encoder: encoder.map(|encoder| (encoder, found.shape)) })
    }
}

/// Checks the numbers of training and public images. The first `unlabelled` public images have no labels, if this is known.
fn check_sizes(config: &Config, train: usize, public: usize, unlabelled: Option<usize>) -> Result<(), ExperimentError> {
    let (teachers, pool) = (config.ensemble.teachers, config.data.pool_images);
    if teachers > train {
        let fault = format!("more teachers than the {train} training images");
        return Err(ExperimentError::fault(format_args!("ensemble.teachers = {teachers}: {fault}")));
    }
    let measures = config.table.repeats > 0 || config.table.baselines;
    match unlabelled {
        None if pool >= public => {
            let reason = "because the others measure the student";
            Err(of_pool(pool, format_args!("fewer than the {public} test images, {reason}")))
        }
        Some(images) if pool > images => {
            Err(of_pool(pool, format_args!("at most the {images} public images without labels")))
        }
        Some(images) if public == images && measures => Err(ExperimentError::fault(
            "data.labels = \"none\": expected labelled test images in data.folder for students and baselines, or table.repeats = 0 and \
             table.baselines = false",
        )),
        _ => Ok(()),
    }
}

fn of_pool(pool: usize, expected: impl Display) -> ExperimentError {
    ExperimentError::fault(format_args!("data.pool_images = {pool}: expected {expected}"))
}

/// Checks before any training that the students' prior has all classes, and that encrypted answers can represent them.
fn check_classes(config: &Config, found: usize) -> Result<(), ExperimentError> {
    config.check_classes(found)?;
    let max = Outcomes::MAX;
    match config.rows.iter().find(|row| row.aggregation == AggregationKind::Encrypted) {
        Some(row) if found > max => {
            let expected = format!("expected images of at most {max} classes, found {found}");
            Err(ExperimentError::fault(format_args!("row {:?} is encrypted: {expected}", row.name)))
        }
        _ => Ok(()),
    }
}
