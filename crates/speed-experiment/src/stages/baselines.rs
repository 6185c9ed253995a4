//! Baselines: other classifiers on the students' labels and test images, and the teachers on these images.

use serde::{Deserialize, Serialize};
use serde_json::json;
use speed_data::Split;
use speed_student::Images as Unlabelled;
use speed_student::label_spreading::{ALPHA, ITERATIONS, NEIGHBOURS, Spreading, TOLERANCE};
use speed_teacher::Unknown;

use super::complete::complete;
use super::context::Context;
use super::images::Images;
use super::kind::{Kind, Node};
use super::outputs::Outputs;
use super::stage::{JsonStage, StageFacts};
use super::students::{LabelledQueries, StudentSpec, costs, specs_of_run, train_labelled_only};
use super::teachers::TrainedTeachers;
use super::votes::ask_teachers;
use crate::error::ExperimentError;
use crate::report::{BASELINE_STAGE, Baselines, Classification, Score};

pub(crate) struct RowBaselines(pub(crate) Vec<Baselines>);

pub(crate) struct TeachersOnTest(pub(crate) f64);

pub(super) static BASELINE_MEASUREMENT: Kind = Kind {
    is_needed_by_shards: false,
    cost: |config, meter| match config.table.baselines {
        true => costs(config, meter, BASELINE_STAGE, "baselines"),
        false => Ok(Vec::new()),
    },
    ..Kind::new(BASELINE_STAGE, |config, _| config.table.baselines, measure)
};

fn measure(context: &Context<'_>, _: &Node, outputs: &mut Outputs) -> Result<(), ExperimentError> {
    let Some(images) = context.images() else { return Ok(()) };
    let specs = specs_of_run(context.config, outputs);
    let splits = specs.iter().map(|spec| labelled_images(&images.pool, spec)).collect::<Result<Vec<_>, _>>()?;
    let labelled_only = train_labelled_only(context, images, &specs, &splits)?;
    let spreading = specs.iter().map(|spec| spread(context, images, spec)).collect::<Result<Vec<_>, _>>()?;
    let of_row = |(labelled_only, label_spreading)| Baselines { labelled_only, label_spreading };
    let rows = RowBaselines(labelled_only.into_iter().zip(spreading).map(of_row).collect());
    let trained = outputs.find::<TrainedTeachers>();
    let on_test = trained.map(|trained| on_test_images(context, trained, images)).transpose()?;
    on_test.into_iter().for_each(|accuracy| outputs.put(TeachersOnTest(accuracy)));
    outputs.put(rows);
    Ok(())
}

/// Returns the images with a label, in the order of the labels. Their true labels are not copied.
fn labelled_images(pool: &Split, spec: &StudentSpec<'_>) -> Result<Split, ExperimentError> {
    let queries = &spec.labelled.queries;
    let pixels = queries.iter().flat_map(|&image| pool.pixels(image)).copied().collect();
    Ok(Split::new(pool.shape(), pool.classes(), pixels, vec![0; queries.len()])?)
}

/// Returns the accuracy of label spreading with the labels of a row, if it has any. Rows with the same labels share it.
fn spread(context: &Context<'_>, images: &Images, spec: &StudentSpec<'_>) -> Result<Option<Score>, ExperimentError> {
    if spec.is_empty() {
        return Ok(None);
    }
    let (name, LabelledQueries { queries, labels, .. }) =
        (format!("{BASELINE_STAGE}-spreading-{}", spec.hash()), &spec.labelled);
    let stage = JsonStage {
        facts: StageFacts::new(&name),
        file: "spreading.json",
        inputs: json!({
            "queries": queries,
            "labels": labels,
            "pool": Images::digest(&images.pool),
            "test": Images::digest(&images.test),
            "settings": [json!(NEIGHBOURS), json!(ALPHA), json!(ITERATIONS), json!(TOLERANCE)],
        }),
        work: || classify(context, images, &spec.labelled),
    };
    let result = complete(context, &stage)?;
    Ok(Score::new(name.clone(), &result))
}

fn classify(
    context: &Context<'_>,
    images: &Images,
    labelled: &LabelledQueries<'_>,
) -> Result<Classification, ExperimentError> {
    let Images { pool, test, class_names, .. } = images;
    let LabelledQueries { row, queries, labels, .. } = labelled;
    let labelled: Vec<(usize, u8)> = queries.iter().copied().zip(labels.iter().copied()).collect();
    let task = Spreading {
        pool: Unlabelled::new(pool),
        labelled: &labelled,
        test: Unlabelled::new(test),
        classes: test.classes(),
    };
    let progress = context.progress;
    progress.begin(&format!("{row}: label spreading"), "images", (pool.len() + test.len()) as u64, 0);
    let found = task.predict(context.threads.get(), &|images| progress.advance(images as u64, ""))?;
    let result = Classification::new(class_names, test.labels().iter().copied().zip(found))?;
    let percent = 100.0 * result.accuracy().unwrap_or_default();
    let figure = context.unless_secret(format!(", accuracy {percent:.1} %"));
    progress.end(&format!("{row}: label spreading{figure}"));
    Ok(result)
}

#[derive(Serialize, Deserialize)]
struct Measured {
    teachers: usize,
    images: usize,
    /// From 0 to 1.
    mean_accuracy: f64,
}

/// Returns the mean accuracy of the teachers.
fn on_test_images(context: &Context<'_>, trained: &TrainedTeachers, images: &Images) -> Result<f64, ExperimentError> {
    let (name, test) = (format!("{BASELINE_STAGE}-teachers"), &images.test);
    let work = || {
        let votes = ask_teachers(context, trained, test, Unknown::Vote, "teachers on the test images")?;
        let mean_accuracy = votes.mean_accuracy(test.labels())?;
        let figure = context.unless_secret(format!(": accuracy {:.1} %", 100.0 * mean_accuracy));
        context.progress.end(&format!("mean teacher on the test images{figure}"));
        Ok(Measured { teachers: votes.shape().teachers(), images: test.len(), mean_accuracy })
    };
    let stage = JsonStage {
        facts: StageFacts { depends_on_machine: true, ..StageFacts::new(&name) },
        file: "teachers.json",
        inputs: json!({ "teachers": trained.hash(), "test": Images::digest(test) }),
        work,
    };
    Ok(complete(context, &stage)?.mean_accuracy)
}
