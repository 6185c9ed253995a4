//! A record of the inputs and results of some training steps.
//!
//! Included by the tests of speed-student and speed-teacher. check.py reads a written record and repeats the steps in
//! float64. Its results for small networks are kept as fixtures, which this code compares.

use std::collections::BTreeMap;
use std::io::Write;
use std::path::Path;

use burn::module::{Module, ModuleVisitor, Param};
use burn::optim::GradientsParams;
use burn::tensor::Tensor;

/// Allowed difference of a value, relative to the largest absolute value of its array.
const TOLERANCE: f64 = 1e-4;

/// Number of evenly spaced values of an array in a fixture.
const KEPT: usize = 32;

/// Arrays in the order of their use.
#[derive(Default)]
pub(crate) struct Trace {
    arrays: Vec<(Entry, Vec<f32>)>,
}

#[derive(serde::Serialize)]
struct Entry {
    name: String,
    shape: Vec<usize>,
}

/// The results in a fixture, see `fixture` in check.py.
#[derive(serde::Deserialize)]
struct ArraySummary {
    largest: f64,
    length: f64,
    values: Vec<f64>,
}

#[derive(serde::Deserialize)]
struct Fixture {
    /// A weighted sum of every input, which detects a different input.
    inputs: BTreeMap<String, f64>,
    results: BTreeMap<String, ArraySummary>,
}

impl Trace {
    /// Adds an input of a step.
    pub(crate) fn input(&mut self, name: impl Into<String>, shape: &[usize], values: &[f32]) {
        self.add(format!("in/{}", name.into()), shape, values);
    }

    /// Adds a result of a step.
    pub(crate) fn result(&mut self, name: impl Into<String>, shape: &[usize], values: &[f32]) {
        self.add(format!("out/{}", name.into()), shape, values);
    }

    fn add(&mut self, name: String, shape: &[usize], values: &[f32]) {
        assert_eq!(shape.iter().product::<usize>(), values.len(), "{name}");
        self.arrays.push((Entry { name, shape: shape.to_vec() }, values.to_vec()));
    }

    /// Adds all parameters of a network, or their gradients, in its order and in the `layout` of other implementations.
    pub(crate) fn network(
        &mut self,
        name: &str,
        is_input: bool,
        network: &impl Module,
        gradients: Option<&GradientsParams>,
        layout: fn(usize, Array) -> Array,
    ) {
        let mut visitor = Visitor { gradients, arrays: Vec::new() };
        network.visit(&mut visitor);
        for (index, array) in visitor.arrays.into_iter().enumerate() {
            let (name, (shape, values)) = (format!("{name}/{index}"), layout(index, array));
            if is_input { self.input(name, &shape, &values) } else { self.result(name, &shape, &values) }
        }
    }

    /// Writes `trace.json` with names and shapes, and `trace.bin` with the values as little-endian f32.
    pub(crate) fn write(&self, folder: &Path) {
        let entries: Vec<&Entry> = self.arrays.iter().map(|(entry, _)| entry).collect();
        std::fs::create_dir_all(folder).expect("a folder to write to");
        let file = std::fs::File::create(folder.join("trace.bin")).expect("a file to write to");
        let mut file = std::io::BufWriter::new(file);
        for value in self.arrays.iter().flat_map(|(_, values)| values) {
            file.write_all(&value.to_le_bytes()).expect("a trace is written");
        }
        file.flush().expect("a trace is written");
        let json = serde_json::to_string(&entries).expect("plain data");
        std::fs::write(folder.join("trace.json"), json).expect("an index is written");
    }

    /// Compares every result with the fixture.
    #[track_caller]
    pub(crate) fn assert_agrees(&self, fixture: &str) {
        let mut fixture: Fixture = serde_json::from_str(fixture).expect("a fixture that check.py wrote");
        for (Entry { name, .. }, values) in &self.arrays {
            if let Some(expected) = fixture.inputs.remove(name) {
                let found: f64 = values.iter().enumerate().map(|(i, &v)| (1.0 + (i % 7) as f64) * f64::from(v)).sum();
                let same = (found - expected).abs() <= 1e-4 * (1.0 + expected.abs());
                assert!(same, "{name} is drawn otherwise now: scripts/peers/training/check --fixture makes it again");
                continue;
            }
            let ArraySummary { largest, length, values: kept } =
                fixture.results.remove(name).expect("a result in the fixture");
            let found_length = values.iter().map(|&v| f64::from(v).powi(2)).sum::<f64>().sqrt();
            assert!((found_length - length).abs() <= TOLERANCE * length, "{name}: |.| {found_length}, not {length}");
            assert_eq!(kept.len(), values.len().min(KEPT), "{name}");
            for (k, expected) in kept.iter().enumerate() {
                let found = f64::from(values[k * values.len() / kept.len()]);
                let close = (found - expected).abs() <= TOLERANCE * largest;
                assert!(close, "{name}, kept value {k}: {found}, not {expected}, beside {largest}");
            }
        }
        assert!(fixture.inputs.is_empty() && fixture.results.is_empty(), "the fixture has more than the trace");
    }
}

/// The shape and the values of an array.
pub(crate) type Array = (Vec<usize>, Vec<f32>);

struct Visitor<'a> {
    gradients: Option<&'a GradientsParams>,
    arrays: Vec<Array>,
}

impl ModuleVisitor for Visitor<'_> {
    fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
        let tensor = match self.gradients {
            Some(gradients) => gradients.get::<D>(param.id).expect("a gradient of every parameter"),
            None => param.val().inner(),
        };
        self.arrays.push((tensor.dims().to_vec(), values(tensor)));
    }
}

pub(crate) fn values<const D: usize>(tensor: Tensor<D>) -> Vec<f32> {
    speed_nn::device::values(tensor).expect("f32")
}
