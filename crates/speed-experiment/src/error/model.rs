//! Faults of models' files and of predictions.

use speed_core::{ExitCode, printable};
use speed_nn::onnx::OnnxError;
use speed_nn::training::{TensorError, TraceError};
use speed_student::StudentError;
use speed_teacher::TeacherError;

/// The fault of a file that holds a model, or of a prediction: found and expected values.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ModelFault {
    /// The file cannot be read.
    #[error("cannot read the model: {0}")]
    Unreadable(#[source] std::io::Error),
    /// The header is longer than any model needs.
    #[error("expected a model with a header of at most {max} bytes, found {found}")]
    LongHeader {
        /// The largest number of bytes.
        max: u64,
        /// The number found.
        found: u64,
    },
    /// The file is not in the safetensors format, or is truncated.
    #[error(
        "expected a model of speed (models/ROW/student-0.safetensors of a run), found other or truncated bytes: {}",
        printable(reason)
    )]
    Format {
        /// The reader's message.
        reason: String,
    },
    /// The file has tensors but not the description of a model of this program.
    #[error("expected a model of speed, found tensors without its description (metadata entry `speed`)")]
    Foreign,
    /// Another version of the program wrote the file.
    #[error("expected model format {expected}, found {found}: use the version of speed that wrote it")]
    Version {
        /// The version found.
        found: u64,
        /// The version that this program reads.
        expected: u32,
    },
    /// The description is not valid.
    #[error("its description is not valid: {}", printable(reason))]
    Description {
        /// The fault.
        reason: String,
    },
    /// Description or tensors were changed.
    #[error("it is damaged or was changed: its contents do not match its checksum; copy it again, or train again")]
    Damaged,
    /// The network of this name has changed.
    #[error(
        "expected version {expected} of the network {name}, found {found}: use the version of speed that wrote the model"
    )]
    NetworkVersion {
        /// The method's or architecture's name.
        name: &'static str,
        /// The version that this program has.
        expected: u32,
        /// The version found.
        found: u32,
    },
    /// The network of this name has changed since the run trained its teachers.
    #[error(
        "expected teachers of version {expected} of the network {name}, found another version: use the version of speed that \
         trained them"
    )]
    TeacherVersion {
        /// The architecture's name.
        name: &'static str,
        /// The version that this program has.
        expected: u32,
    },
    /// A tensor is not of 32-bit floating-point numbers.
    #[error("tensor {}: expected type F32, found {found}", printable(name))]
    Type {
        /// The tensor's name.
        name: String,
        /// The type found.
        found: String,
    },
    /// The tensors do not belong to the network.
    #[error("its tensors do not fit its description: {0}")]
    Tensors(#[from] TensorError),
    /// The description's student does not exist.
    #[error("its description names an impossible network: {0}")]
    Student(#[source] Box<StudentError>),
    /// The description's teacher does not exist, or the bytes are not the teacher's.
    #[error("{0}")]
    Teacher(#[source] Box<TeacherError>),
    /// A teacher's stored weights outside of a run, or in a directory that was set aside.
    #[error(
        "expected a teacher in its run's directory (RUN/stages/teachers/teacher-0000.bin with RUN/config.toml), because the \
         weights alone do not describe their network"
    )]
    NoRun,
    /// The network computes more values for an image than the memory is meant for.
    #[error("expected a network that computes at most {max} values at once for an image, found {found}")]
    Activations {
        /// The largest number.
        max: usize,
        /// The number found.
        found: usize,
    },
    /// The operations of a network of one's own cannot be recorded, so their memory is unknown.
    #[error(transparent)]
    Trace(#[from] TraceError),
    /// A network gave a value that is not finite.
    #[error("expected finite logits of every class for this image, found {found}: the model is unusable")]
    Logits {
        /// The value.
        found: f32,
    },
    /// The network cannot leave in ONNX's format.
    #[error("cannot export the network: {0}")]
    Onnx(#[source] Box<OnnxError>),
    /// The file is not an ONNX model that classifies images, or its runtime fails.
    #[error("{0}")]
    Runtime(#[source] Box<OnnxError>),
    /// The names of an ONNX model's classes are not valid.
    #[error(
        "expected a JSON list of different names in the metadata entry `classes`, or --classes: {}",
        printable(reason)
    )]
    ClassList {
        /// The fault.
        reason: String,
    },
    /// An ONNX model without names of its classes.
    #[error("expected the names of the classes, found no metadata entry `classes`: give them with --classes")]
    NoClassNames,
    /// Another number of names than the model has scores.
    #[error("expected the names of its {expected} classes, found {found}")]
    ClassCount {
        /// Number of scores.
        expected: usize,
        /// Number of names.
        found: usize,
    },
    /// The names of the classes contradict those of the metadata.
    #[error(
        "expected the classes {} of --classes, found {} in its metadata: the order gives the labels their meaning",
        printable(&expected.join(", ")),
        printable(&found.join(", "))
    )]
    OtherClasses {
        /// The names given.
        expected: Vec<String>,
        /// The names in the metadata.
        found: Vec<String>,
    },
    /// The model cannot be written.
    #[error("cannot write the model: {reason}")]
    Unwritable {
        /// The writer's message.
        reason: String,
    },
}

impl ModelFault {
    /// Returns the documented exit code.
    pub(super) fn exit_code(&self) -> ExitCode {
        match self {
            Self::Logits { .. } | Self::Onnx(_) | Self::Unwritable { .. } => ExitCode::Computation,
            _ => ExitCode::Input,
        }
    }
}

impl From<OnnxError> for ModelFault {
    fn from(error: OnnxError) -> Self {
        Self::Runtime(Box::new(error))
    }
}

impl From<StudentError> for ModelFault {
    fn from(error: StudentError) -> Self {
        Self::Student(Box::new(error))
    }
}

impl From<TeacherError> for ModelFault {
    fn from(error: TeacherError) -> Self {
        Self::Teacher(Box::new(error))
    }
}
