//! The operations of a trace as ONNX nodes, equal in the operator sets 13 to 21.

use burn::backend::ir::{
    ActivationOperationIr, BaseOperationIr, Conv2dOpIr, FloatOperationIr, MaxPool2dOpIr, ModuleOperationIr,
    NumericOperationIr, OperationIr, PadModeIr, PadOpIr, ScalarIr, ScalarOpIr, SliceOpIr, TensorIr,
};
use burn::tensor::DType;
use tract_onnx::pb::AttributeProto;
use tract_onnx::pb::tensor_proto::DataType;

use crate::onnx::OnnxError;
use crate::onnx::proto::{Builder, integer, integers, length, number, signed};
use crate::onnx::shapes::{Length, Shapes, name};
use crate::onnx::values::{Value, Values};
use crate::training::Trace;

/// A graph in which operations of a trace become nodes.
#[derive(Debug)]
pub(crate) struct Lowering<'a> {
    pub(crate) graph: Builder,
    values: Values<'a>,
    shapes: &'a Shapes,
}

/// An input of a node that treats all values alike.
#[derive(Clone, Copy)]
enum Operand<'a> {
    Tensor(&'a TensorIr),
    Number(ScalarIr),
}

use Operand::{Number, Tensor};

impl<'a> Lowering<'a> {
    /// Begins with a graph whose value `images` is the trace's input with the channel as second axis.
    pub(crate) fn new(graph: Builder, trace: &'a Trace, shapes: &'a Shapes, images: String) -> Self {
        Self { graph, values: Values::new(trace, trace.captured.graph.inputs[0], images), shapes }
    }

    pub(crate) fn name(&mut self, tensor: &TensorIr) -> Result<String, OnnxError> {
        self.values.name(tensor, &mut self.graph)
    }

    pub(crate) fn operation(&mut self, operation: &OperationIr) -> Result<(), OnnxError> {
        let done = match operation {
            OperationIr::Init(_) | OperationIr::Drop(_) => true,
            OperationIr::BaseFloat(base) | OperationIr::BaseInt(base) | OperationIr::BaseBool(base) => {
                self.base(base)?
            }
            OperationIr::NumericFloat(_, numeric) | OperationIr::NumericInt(_, numeric) => self.numeric(numeric)?,
            OperationIr::Float(_, float) => self.float(float)?,
            OperationIr::Activation(activation) => self.activation(activation)?,
            OperationIr::Module(ModuleOperationIr::Conv2d(conv)) => self.conv(conv)?,
            OperationIr::Module(ModuleOperationIr::MaxPool2d(pool)) => self.max_pool(pool)?,
            _ => false,
        };
        let found = || format!("{}, which has no form there for any number of images", name(operation));
        if done { Ok(()) } else { Err(OnnxError::form("operations that ONNX has", found())) }
    }

    fn base(&mut self, operation: &BaseOperationIr) -> Result<bool, OnnxError> {
        match operation {
            BaseOperationIr::Reshape(reshape) => self.shaped("Reshape", &reshape.input, -1, &reshape.out),
            // A length of 1 keeps that of the input.
            BaseOperationIr::Expand(expand) => self.shaped("Expand", &expand.input, 1, &expand.out),
            BaseOperationIr::SwapDims(swap) => {
                let mut axes: Vec<usize> = (0..swap.out.shape.num_dims()).collect();
                axes.swap(swap.dim1, swap.dim2);
                self.values.permute(&swap.input, &axes, &swap.out, &mut self.graph).map(|()| true)
            }
            BaseOperationIr::Permute(permute) => {
                self.values.permute(&permute.input, &permute.axes, &permute.out, &mut self.graph).map(|()| true)
            }
            BaseOperationIr::Slice(slice) => self.slice(slice),
            BaseOperationIr::Cat(cat) => {
                let tensors: Vec<Operand<'_>> = cat.tensors.iter().map(Tensor).collect();
                self.along("Concat", &tensors, cat.dim, &cat.out)
            }
            BaseOperationIr::MaskWhere(mask) => {
                self.each("Where", &[Tensor(&mask.mask), Tensor(&mask.value), Tensor(&mask.tensor)], &mask.out)
            }
            BaseOperationIr::MaskFill(mask) if is_f32(&mask.tensor) => {
                self.each("Where", &[Tensor(&mask.mask), Number(mask.value), Tensor(&mask.tensor)], &mask.out)
            }
            BaseOperationIr::Zeros(creation) => self.filled(&creation.out, ScalarIr::Float(0.0)),
            BaseOperationIr::Ones(creation) => self.filled(&creation.out, ScalarIr::Float(1.0)),
            _ => Ok(false),
        }
    }

    fn numeric(&mut self, operation: &NumericOperationIr) -> Result<bool, OnnxError> {
        use NumericOperationIr as Op;
        match operation {
            Op::Add(op) => self.each("Add", &[Tensor(&op.lhs), Tensor(&op.rhs)], &op.out),
            Op::Sub(op) => self.each("Sub", &[Tensor(&op.lhs), Tensor(&op.rhs)], &op.out),
            Op::Mul(op) => self.each("Mul", &[Tensor(&op.lhs), Tensor(&op.rhs)], &op.out),
            Op::Div(op) => self.each("Div", &[Tensor(&op.lhs), Tensor(&op.rhs)], &op.out),
            Op::Greater(op) => self.each("Greater", &[Tensor(&op.lhs), Tensor(&op.rhs)], &op.out),
            Op::Lower(op) => self.each("Less", &[Tensor(&op.lhs), Tensor(&op.rhs)], &op.out),
            Op::GreaterEqual(op) => self.each("GreaterOrEqual", &[Tensor(&op.lhs), Tensor(&op.rhs)], &op.out),
            Op::LowerEqual(op) => self.each("LessOrEqual", &[Tensor(&op.lhs), Tensor(&op.rhs)], &op.out),
            Op::AddScalar(op) => self.with_number("Add", op),
            Op::SubScalar(op) => self.with_number("Sub", op),
            Op::MulScalar(op) => self.with_number("Mul", op),
            Op::DivScalar(op) => self.with_number("Div", op),
            Op::ClampMin(op) => self.with_number("Max", op),
            Op::ClampMax(op) => self.with_number("Min", op),
            Op::GreaterElem(op) => self.with_number("Greater", op),
            Op::LowerElem(op) => self.with_number("Less", op),
            Op::PowiScalar(op) if op.rhs.elem::<i64>() == 2 => {
                self.each("Mul", &[Tensor(&op.lhs), Tensor(&op.lhs)], &op.out)
            }
            Op::PowiScalar(op) => self.with_number("Pow", op),
            Op::Clamp(op) if is_f32(&op.tensor) => {
                self.each("Clip", &[Tensor(&op.tensor), Number(op.min), Number(op.max)], &op.out)
            }
            Op::Abs(op) => self.each("Abs", &[Tensor(&op.input)], &op.out),
            Op::Neg(op) => self.each("Neg", &[Tensor(&op.input)], &op.out),
            Op::Full(full) => self.filled(&full.out, full.value),
            Op::MeanDim(op) => self.reduce("ReduceMean", &op.input, op.axis, &op.out),
            Op::MaxDim(op) => self.reduce("ReduceMax", &op.input, op.axis, &op.out),
            Op::MinDim(op) => self.reduce("ReduceMin", &op.input, op.axis, &op.out),
            Op::SumDim(op) => self.reduce("ReduceSum", &op.input, op.axis, &op.out),
            Op::Pad(op) => self.pad(op),
            _ => Ok(false),
        }
    }

    fn float(&mut self, operation: &FloatOperationIr) -> Result<bool, OnnxError> {
        use FloatOperationIr as Op;
        match operation {
            Op::Exp(op) => self.each("Exp", &[Tensor(&op.input)], &op.out),
            Op::Log(op) => self.each("Log", &[Tensor(&op.input)], &op.out),
            Op::Log1p(op) => {
                let (input, one) = (self.name(&op.input)?, self.graph.number(1.0));
                let sum = self.graph.node("Add", vec![input, one], vec![]);
                self.put("Log", vec![sum], vec![], &[&op.input], &op.out)
            }
            Op::Sqrt(op) => self.each("Sqrt", &[Tensor(&op.input)], &op.out),
            Op::Recip(op) => self.each("Reciprocal", &[Tensor(&op.input)], &op.out),
            Op::Tanh(op) => self.each("Tanh", &[Tensor(&op.input)], &op.out),
            Op::Erf(op) => self.each("Erf", &[Tensor(&op.input)], &op.out),
            Op::PowfScalar(op) => self.with_number("Pow", op),
            Op::Powf(op) => self.each("Pow", &[Tensor(&op.lhs), Tensor(&op.rhs)], &op.out),
            Op::Matmul(op) => {
                let factors = vec![self.name(&op.lhs)?, self.name(&op.rhs)?];
                self.put("MatMul", factors, vec![], &[&op.lhs, &op.rhs], &op.out)
            }
            _ => Ok(false),
        }
    }

    fn activation(&mut self, operation: &ActivationOperationIr) -> Result<bool, OnnxError> {
        use ActivationOperationIr as Op;
        match operation {
            Op::Relu(op) => self.each("Relu", &[Tensor(&op.input)], &op.out),
            Op::Sigmoid(op) => self.each("Sigmoid", &[Tensor(&op.input)], &op.out),
            Op::LeakyRelu(op) => {
                let slope = number("alpha", op.rhs.elem());
                self.each_with("LeakyRelu", &[Tensor(&op.lhs)], &op.out, vec![slope])
            }
            Op::Softmax(op) => self.along("Softmax", &[Tensor(&op.input)], op.axis, &op.out),
            Op::LogSoftmax(op) => self.along("LogSoftmax", &[Tensor(&op.input)], op.axis, &op.out),
            _ => Ok(false),
        }
    }

    fn conv(&mut self, conv: &Conv2dOpIr) -> Result<bool, OnnxError> {
        let mut inputs = vec![self.name(&conv.x)?, self.name(&conv.weight)?];
        if let Some(bias) = &conv.bias {
            inputs.push(self.name(bias)?);
        }
        let options = &conv.options;
        let [(above, below), (left, right)] = options.padding;
        let kernel: Vec<usize> = conv.weight.shape.iter().skip(2).copied().collect();
        let attributes = vec![
            integers("kernel_shape", &kernel),
            integers("strides", &options.stride),
            integers("dilations", &options.dilation),
            integers("pads", &[above, left, below, right]),
            integer("group", length(options.groups)),
        ];
        self.put("Conv", inputs, attributes, &[&conv.x], &conv.out)
    }

    fn max_pool(&mut self, pool: &MaxPool2dOpIr) -> Result<bool, OnnxError> {
        if pool.ceil_mode {
            return Ok(false);
        }
        let input = self.name(&pool.x)?;
        let [rows, columns] = pool.padding;
        let attributes = vec![
            integers("kernel_shape", &pool.kernel_size),
            integers("strides", &pool.stride),
            integers("dilations", &pool.dilation),
            integers("pads", &[rows, columns, rows, columns]),
        ];
        self.put("MaxPool", vec![input], attributes, &[&pool.x], &pool.out)
    }

    fn pad(&mut self, pad: &PadOpIr) -> Result<bool, OnnxError> {
        let PadModeIr::Constant(value) = pad.mode else { return Ok(false) };
        let Value { name, axes } = self.values.value(&pad.input, &mut self.graph)?;
        if pad.padding.iter().all(|of_axis| *of_axis == (0, 0)) {
            return self.set(&[&pad.input], &pad.out, name, axes);
        }
        // The padding of every axis of the value.
        let mut padding = pad.padding.clone();
        for (&axis, &of_axis) in axes.iter().flatten().zip(&pad.padding) {
            padding[axis] = of_axis;
        }
        let (before, after): (Vec<usize>, Vec<usize>) = padding.into_iter().unzip();
        let pads = self.graph.integers(&signed(&[before, after].concat()));
        let value = self.graph.number(value.elem());
        let name = self.graph.node("Pad", vec![name, pads, value], vec![]);
        self.set(&[&pad.input], &pad.out, name, axes)
    }

    fn slice(&mut self, slice: &SliceOpIr) -> Result<bool, OnnxError> {
        let Value { mut name, axes } = self.values.value(&slice.tensor, &mut self.graph)?;
        let lengths = self.shapes.of(&slice.tensor);
        let (mut starts, mut ends, mut along) = (Vec::new(), Vec::new(), Vec::new());
        for (place, range) in slice.ranges.iter().enumerate() {
            let all = length(slice.tensor.shape[place]);
            let (start, end) = (range.start as i64, range.end.map_or(all, |end| end as i64));
            if (start, end, range.step) == (0, all, 1) {
                continue;
            }
            if range.step != 1 || start < 0 || end < 0 || lengths[place] == Length::Batch {
                return Ok(false);
            }
            starts.push(start);
            ends.push(end);
            along.push(length(axes.as_ref().map_or(place, |axes| axes[place])));
        }
        if !along.is_empty() {
            let [starts, ends, along] = [starts, ends, along].map(|values| self.graph.integers(&values));
            name = self.graph.node("Slice", vec![name, starts, ends, along], vec![]);
        }
        self.set(&[&slice.tensor], &slice.out, name, axes)
    }

    /// Adds a constant tensor of equal numbers.
    fn filled(&mut self, out: &TensorIr, value: ScalarIr) -> Result<bool, OnnxError> {
        let Some(shape) = self.shapes.fixed(out).filter(|_| is_f32(out)) else { return Ok(false) };
        let bytes = value.elem::<f32>().to_le_bytes().repeat(shape.iter().product());
        let name = format!("filled_{}", out.id.value());
        self.graph.constant(name.clone(), DataType::Float, &shape, bytes);
        self.set(&[], out, name, None)
    }

    /// Adds a node that has the shape of its result as an input, with `batch` for the length that depends on the number of images.
    /// Returns `false` if there are several such lengths.
    fn shaped(&mut self, kind: &str, input: &TensorIr, batch: i64, out: &TensorIr) -> Result<bool, OnnxError> {
        let lengths = self.shapes.of(out);
        if lengths.iter().filter(|length| **length == Length::Batch).count() > 1 {
            return Ok(false);
        }
        let of_node = |of_out| match of_out {
            Length::Fixed(fixed) => length(fixed),
            Length::Batch => batch,
        };
        let shape: Vec<i64> = lengths.into_iter().map(of_node).collect();
        let name = self.name(input)?;
        let is_fixed = kind == "Reshape" && shape.iter().all(|&length| length >= 0);
        if let Some(name) = is_fixed.then(|| self.graph.reshaped(&name, &shape)).flatten() {
            return self.set(&[input], out, name, None);
        }
        let inputs = vec![name, self.graph.integers(&shape)];
        self.put(kind, inputs, vec![], &[input], out)
    }

    fn reduce(&mut self, kind: &str, input: &TensorIr, axis: usize, out: &TensorIr) -> Result<bool, OnnxError> {
        let Value { name, axes } = self.values.value(input, &mut self.graph)?;
        let axis = axes.as_ref().map_or(axis, |axes| axes[axis]);
        let name = self.graph.reduced(kind, name, axis);
        self.set(&[input], out, name, axes)
    }

    fn with_number(&mut self, kind: &str, op: &ScalarOpIr) -> Result<bool, OnnxError> {
        if !is_f32(&op.lhs) {
            return Ok(false);
        }
        self.each(kind, &[Tensor(&op.lhs), Number(op.rhs)], &op.out)
    }

    fn along(&mut self, kind: &str, inputs: &[Operand<'_>], axis: usize, out: &TensorIr) -> Result<bool, OnnxError> {
        let (names, axes) = self.operands(inputs)?;
        let axis = axes.as_ref().map_or(axis, |axes| axes[axis]);
        let name = self.graph.node(kind, names, vec![integer("axis", length(axis))]);
        self.set(&tensors(inputs), out, name, axes)
    }

    /// Adds a node that computes every value of the result from the values at the same place.
    fn each(&mut self, kind: &str, inputs: &[Operand<'_>], out: &TensorIr) -> Result<bool, OnnxError> {
        self.each_with(kind, inputs, out, vec![])
    }

    fn each_with(
        &mut self,
        kind: &str,
        inputs: &[Operand<'_>],
        out: &TensorIr,
        attributes: Vec<AttributeProto>,
    ) -> Result<bool, OnnxError> {
        let (names, axes) = self.operands(inputs)?;
        let name = self.graph.node(kind, names, attributes);
        self.set(&tensors(inputs), out, name, axes)
    }

    /// Returns the names of operands in a common order of their axes: in that of a permuted one, if constants are the only
    /// others.
    fn operands(&mut self, inputs: &[Operand<'_>]) -> Result<(Vec<String>, Option<Vec<usize>>), OnnxError> {
        let axes = self.common_axes(&tensors(inputs))?;
        let names = inputs.iter().map(|input| match (input, &axes) {
            (Tensor(tensor), Some(axes)) => self.values.before(axes, tensor, &mut self.graph),
            (Tensor(tensor), None) => self.values.name(tensor, &mut self.graph),
            (Number(value), _) => Ok(self.graph.number(value.elem())),
        });
        Ok((names.collect::<Result<_, _>>()?, axes))
    }

    fn common_axes(&mut self, tensors: &[&TensorIr]) -> Result<Option<Vec<usize>>, OnnxError> {
        for tensor in tensors {
            let Some(axes) = self.values.value(tensor, &mut self.graph)?.axes else { continue };
            let fit = tensors.iter().map(|tensor| self.values.fits(&axes, tensor, &mut self.graph));
            if fit.collect::<Result<Vec<bool>, _>>()?.into_iter().all(|fits| fits) {
                return Ok(Some(axes));
            }
        }
        Ok(None)
    }

    fn put(
        &mut self,
        kind: &str,
        names: Vec<String>,
        attributes: Vec<AttributeProto>,
        inputs: &[&TensorIr],
        out: &TensorIr,
    ) -> Result<bool, OnnxError> {
        let name = self.graph.node(kind, names, attributes);
        self.set(inputs, out, name, None)
    }

    fn set(
        &mut self,
        inputs: &[&TensorIr],
        out: &TensorIr,
        name: String,
        axes: Option<Vec<usize>>,
    ) -> Result<bool, OnnxError> {
        self.values.set(inputs, out, Value { name, axes });
        Ok(true)
    }
}

fn tensors<'a>(inputs: &[Operand<'a>]) -> Vec<&'a TensorIr> {
    let tensor = |input: &Operand<'a>| match input {
        Tensor(tensor) => Some(*tensor),
        Number(_) => None,
    };
    inputs.iter().filter_map(tensor).collect()
}

fn is_f32(tensor: &TensorIr) -> bool {
    tensor.dtype == DType::F32
}
