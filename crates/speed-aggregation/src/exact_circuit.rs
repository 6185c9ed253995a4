//! The argmax circuits that are exact.

use speed_core::Circuit;

/// A circuit that is exact for every round with an [`Encoding`](crate::Encoding). Both give the same winners.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ExactCircuit {
    /// [`Circuit::Tournament`].
    #[default]
    Tournament,
    /// [`Circuit::AllPairs`].
    AllPairs,
}

impl ExactCircuit {
    /// Both circuits.
    pub const ALL: [Self; 2] = [Self::Tournament, Self::AllPairs];

    /// Returns the circuit's number in files, from 1.
    pub fn code(self) -> usize {
        match self {
            Self::Tournament => 1,
            Self::AllPairs => 2,
        }
    }
}

/// An inexact circuit, where an exact one is required.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("circuit {found} is not exact: expected {} or {}", Circuit::Tournament, Circuit::AllPairs)]
pub struct InexactCircuit {
    /// The circuit.
    pub found: Circuit,
}

impl From<ExactCircuit> for Circuit {
    fn from(circuit: ExactCircuit) -> Self {
        match circuit {
            ExactCircuit::Tournament => Self::Tournament,
            ExactCircuit::AllPairs => Self::AllPairs,
        }
    }
}

impl TryFrom<Circuit> for ExactCircuit {
    type Error = InexactCircuit;

    fn try_from(circuit: Circuit) -> Result<Self, InexactCircuit> {
        match circuit {
            Circuit::Tournament => Ok(Self::Tournament),
            Circuit::AllPairs => Ok(Self::AllPairs),
            Circuit::Paper => Err(InexactCircuit { found: circuit }),
        }
    }
}
