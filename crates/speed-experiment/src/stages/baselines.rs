//! Baselines: other classifiers on the students' labels and test images, and the teachers on these images.

mod spreading;
mod teachers;

use speed_data::Split;

use self::spreading::SpreadingStage;
use self::teachers::TeachersStage;
use super::complete::complete;
use super::context::Context;
use super::images::Images;
use super::kind::{Kind, Node};
use super::outputs::Outputs;
use super::students::{StudentSpec, costs, specs_of_run, train_labelled_only};
use super::teachers::TrainedTeachers;
use crate::error::ExperimentError;
use crate::report::{BASELINE_STAGE, Baselines, Score};

/// The baselines of every row, by the rows' places in the config.
pub(crate) struct RowBaselines(pub(crate) Vec<Baselines>);

/// The mean accuracy of the trained teachers on the test images.
pub(crate) struct TeachersOnTest(pub(crate) f64);

/// The measurement of all baselines.
pub(super) static BASELINE_MEASUREMENT: Kind = Kind {
    is_needed_by_shards: false,
    cost: |config, meter| {
        let students = (0..config.rows.len()).map(|row| (row, config.table.repeats));
        if config.table.baselines {
            costs(config, meter, (BASELINE_STAGE, "baselines"), students)
        } else {
            Ok(Vec::new())
        }
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
    let teachers = outputs.find::<TrainedTeachers>();
    let on_test = teachers.map(|trained| complete(context, &TeachersStage::new(trained, images))).transpose()?;
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

/// Returns the accuracy of label spreading with the labels of a row, if it has any.
fn spread(context: &Context<'_>, images: &Images, spec: &StudentSpec<'_>) -> Result<Option<Score>, ExperimentError> {
    if spec.is_empty() {
        return Ok(None);
    }
    let stage = SpreadingStage::new(spec, images);
    let result = complete(context, &stage)?;
    Ok(Score::new(stage.name.to_string(), &result))
}
