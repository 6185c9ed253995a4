//! Twenty steps written down for another implementation, and compared with what it found: scripts/peers/training.

use super::*;
use speed_data::{ImageShape, Split};
use speed_nn::matrix::Matrix;
use trace::Trace;

#[path = "../../../../scripts/peers/training/trace.rs"]
mod trace;

const STEPS: usize = 20;

/// Runs the steps of a training and records them; with `every_step`, also the networks after each.
fn record(config: &StudentConfig, side: usize, classes: u8, every_step: bool) -> Trace {
    let streams = Streams::new(11);
    let pool = images(side, classes, &mut streams.stream("images", 0));
    let pool = Images::of(&pool);
    let mut workspace = Workspace::new(&streams);
    let mut state = State::new(config, pool, usize::from(classes), &streams, &mut workspace);

    let mut trace = Trace::default();
    record_initialisation(&mut trace, config, pool, &state, &streams, &workspace);
    record_networks(&mut trace, |network| format!("start/{network}"), true, &state);
    for step in 1..=STEPS {
        record_step(&mut trace, step, config, pool, classes, &mut state, &mut workspace, &streams);
        if every_step {
            record_networks(&mut trace, |network| format!("{step}/{network}/after"), false, &state);
        }
    }
    if !every_step {
        record_networks(&mut trace, |network| format!("end/{network}"), false, &state);
    }
    trace
}

/// Images at random.
fn images(side: usize, classes: u8, stream: &mut Stream) -> Split {
    const IMAGES: usize = 500;
    let shape = ImageShape { channels: 1, height: side, width: side };
    let pixels = (0..IMAGES * shape.pixels()).map(|_| rand::RngExt::random(stream)).collect();
    Split::new(shape, classes.into(), pixels, vec![0; IMAGES]).expect("a split")
}

/// Returns the images and the noise that scales and biases were initialised on; what they became is in "start".
fn record_initialisation(
    trace: &mut Trace,
    config: &StudentConfig,
    pool: Images<'_>,
    state: &State,
    streams: &Streams,
    workspace: &Workspace,
) {
    let mut stream = streams.stream("initial images", 0);
    let indices = rand::seq::index::sample(&mut stream, pool.len(), config.initial_images).into_vec();
    record_images(trace, "initial/images", pool, &indices);
    let noise = noise(&state.discriminator, Depth::Logits, indices.len(), pool, workspace, &mut stream);
    record_columns(trace, "initial/noise", &noise);
}

#[expect(clippy::too_many_arguments, reason = "a step needs all there is")]
fn record_step(
    trace: &mut Trace,
    step: usize,
    config: &StudentConfig,
    pool: Images<'_>,
    classes: u8,
    state: &mut State,
    workspace: &mut Workspace,
    streams: &Streams,
) {
    let n = config.batch;
    let mut stream = streams.stream("step", step as u64);
    let mut draw = || rand::seq::index::sample(&mut stream, pool.len(), n).into_vec();
    let (labelled, unlabelled, other) = (draw(), draw(), draw());
    let labels: Vec<u8> = labelled.iter().map(|&i| (i % usize::from(classes)) as u8).collect();

    let mut replay = stream.clone();
    state.generator.forward(n, &mut GeneratorTrace::default(), &mut replay);
    let values = noise(&state.discriminator, Depth::Logits, 3 * n, pool, workspace, &mut replay);
    let before = state.discriminator.clone();
    let loss = state.discriminator_step(pool, (&labelled, &labels), &unlabelled, 1.0, workspace, &mut stream);
    assert_eq!(stream, replay, "the noise read out is not the noise of the step");
    let name = |what: &str| format!("{step}/discriminator/{what}");
    record_images(trace, &name("labelled"), pool, &labelled);
    trace.input(name("labels"), &[n], &labels.iter().map(|&label| f32::from(label)).collect::<Vec<_>>());
    record_images(trace, &name("unlabelled"), pool, &unlabelled);
    record_columns(trace, &name("latent"), std::slice::from_ref(workspace.generator.latent()));
    record_columns(trace, &name("noise"), &values);
    trace.result(name("loss"), &[1], &[loss as f32]);
    record_layers(
        trace,
        &name("gradient"),
        false,
        &shapes(&before.state()),
        workspace.discriminator.gradients(&before),
    );

    let mut replay = stream.clone();
    state.generator.forward(n, &mut GeneratorTrace::default(), &mut replay);
    let values = noise(&state.discriminator, Depth::Features, 2 * n, pool, workspace, &mut replay);
    let before = state.generator.clone();
    let loss = state.generator_step(pool, &other, workspace, &mut stream);
    assert_eq!(stream, replay, "the noise read out is not the noise of the step");
    let name = |what: &str| format!("{step}/generator/{what}");
    record_images(trace, &name("unlabelled"), pool, &other);
    record_columns(trace, &name("latent"), std::slice::from_ref(workspace.generator.latent()));
    record_columns(trace, &name("noise"), &values);
    trace.result(name("loss"), &[1], &[loss as f32]);
    let gradients = workspace.generator.gradients(&before);
    record_layers(trace, &name("gradient"), false, &shapes(&before.state()), gradients);
}

/// Returns the noise that a forward pass from this place of the stream would add before each layer: what reaches the layers of
/// a network whose outputs are all zero, from images that are.
fn noise(
    network: &Discriminator,
    depth: Depth,
    columns: usize,
    pool: Images<'_>,
    workspace: &Workspace,
    stream: &mut Stream,
) -> Vec<Matrix> {
    let mut silent = network.clone();
    let mut array = 0;
    let no_bias_no_scale = |values: &mut [f32]| {
        if array % 3 != 0 {
            values.fill(0.0);
        }
        array += 1;
        Ok::<(), std::convert::Infallible>(())
    };
    let Ok(()) = silent.restore(no_bias_no_scale);
    let mut trace = DiscriminatorTrace::default();
    trace.images(pool.shape().pixels(), columns).values_mut().fill(0.0);
    silent.forward(&mut trace, depth, Some(&mut Noise { pool: &workspace.noise, stream }));
    trace.inputs().iter().filter(|input| input.columns() == columns).cloned().collect()
}

/// Returns one image a row.
fn record_images(trace: &mut Trace, name: &str, pool: Images<'_>, indices: &[usize]) {
    let mut columns = Matrix::zeros(pool.shape().pixels(), indices.len());
    pool.write(&mut columns, 0, indices);
    record_columns(trace, name, &[columns]);
}

/// Matrices of one example a column.
fn record_columns(trace: &mut Trace, name: &str, matrices: &[Matrix]) {
    for (index, matrix) in matrices.iter().enumerate() {
        trace.input(format!("{name}/{index}"), &[matrix.rows(), matrix.columns()], matrix.values());
    }
}

fn record_networks(trace: &mut Trace, name: impl Fn(&str) -> String, is_input: bool, state: &State) {
    let networks = [("discriminator", state.discriminator.state()), ("generator", state.generator.state())];
    for (network, arrays) in networks {
        let values = arrays.iter().map(|array| array.to_vec()).collect();
        record_layers(trace, &name(network), is_input, &shapes(&arrays), values);
    }
}

/// Weights are `[outputs, inputs]`, the arrays that follow them `[outputs]`.
fn shapes(arrays: &[&[f32]]) -> Vec<Vec<usize>> {
    let is_weight = |i: usize| i == 0 || arrays[i].len() > arrays[i - 1].len();
    let shape = |i: usize| match is_weight(i) {
        true => vec![arrays[i + 1].len(), arrays[i].len() / arrays[i + 1].len()],
        false => vec![arrays[i].len()],
    };
    (0..arrays.len()).map(shape).collect()
}

fn record_layers(trace: &mut Trace, name: &str, is_input: bool, shapes: &[Vec<usize>], arrays: Vec<Vec<f32>>) {
    for (index, (shape, values)) in shapes.iter().zip(arrays).enumerate() {
        let name = format!("{name}/{index}");
        if is_input { trace.input(name, shape, &values) } else { trace.result(name, shape, &values) }
    }
}

/// Small networks of every kind of layer.
fn tiny() -> StudentConfig {
    StudentConfig {
        batch: 20,
        discriminator: vec![24, 16, 12],
        generator: vec![14, 12],
        latent: 6,
        initial_images: 60,
        ..StudentConfig::default()
    }
}

#[test]
fn losses_and_gradients_of_twenty_steps_are_those_of_another_implementation() {
    record(&tiny(), 6, 4, false).assert_agrees(include_str!("../../tests/peers/student.json"));
}

#[test]
#[ignore = "writes traces to $SPEED_TRACE, for scripts/peers/training/check"]
fn write_peer_traces() {
    let folder = std::path::PathBuf::from(std::env::var_os("SPEED_TRACE").expect("SPEED_TRACE names a folder"));
    record(&tiny(), 6, 4, false).write(&folder.join("student-tiny"));
    record(&StudentConfig::default(), 28, 10, true).write(&folder.join("student"));
}
