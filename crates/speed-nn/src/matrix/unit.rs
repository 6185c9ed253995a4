//! The arithmetic unit that multiplies large matrices.

use std::cell::Cell;
use std::fmt;
use std::sync::{Mutex, MutexGuard, PoisonError};

use serde::{Deserialize, Serialize};

thread_local! {
    static VECTORS_ONLY: Cell<bool> = const { Cell::new(false) };
}

/// Runs `work` with all products of this thread on the vector unit, whatever the machine has. This is for comparisons
/// over many steps with code that computes in plain `f32`, because training amplifies differences in the last bits.
pub fn on_vectors<R>(work: impl FnOnce() -> R) -> R {
    struct Restore(bool);
    impl Drop for Restore {
        fn drop(&mut self) {
            VECTORS_ONLY.set(self.0);
        }
    }
    let _restore = Restore(VECTORS_ONLY.replace(true));
    work()
}

/// Returns whether this thread is restricted to the vector unit.
pub(super) fn vectors_only() -> bool {
    VECTORS_ONLY.get()
}

/// A unit that multiplies large matrices.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProductUnit {
    /// The vector unit, in `f32`.
    Vectors,
    /// Intel AMX: `f32` split into two bfloat16 each, three products, sums in `f32`; see the module's source.
    Tiles,
    /// The vector unit, in `f32`, with every sum in one order: the same bits on every machine.
    Portable,
}

impl fmt::Display for ProductUnit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Vectors => "f32 vectors",
            Self::Tiles => "tiles of split bfloat16",
            Self::Portable => "f32 in one order",
        })
    }
}

/// Returns the unit that [`multiply`](super::multiply) currently uses for large matrices.
pub fn product_unit() -> ProductUnit {
    if IN_USE.is_portable() {
        return ProductUnit::Portable;
    }
    #[cfg(all(target_os = "linux", target_arch = "x86_64"))]
    if super::tiles::available() {
        return ProductUnit::Tiles;
    }
    ProductUnit::Vectors
}

/// The arithmetic used to compute networks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Arithmetic {
    /// The fastest on the machine: kinds of machine differ in the last bits, and trainings diverge.
    #[default]
    Fastest,
    /// Bit-identical on every machine, at some cost in speed.
    Portable,
}

/// The number of holders, and the arithmetic they hold.
static HELD: Mutex<(usize, Arithmetic)> = Mutex::new((0, Arithmetic::Fastest));
static IN_USE: PortableFlag = PortableFlag(std::sync::atomic::AtomicBool::new(false));

/// Read before every product, changed only under the lock of [`HELD`].
struct PortableFlag(std::sync::atomic::AtomicBool);

impl PortableFlag {
    fn is_portable(&self) -> bool {
        self.0.load(std::sync::atomic::Ordering::Relaxed)
    }

    fn set(&self, portable: bool) {
        self.0.store(portable, std::sync::atomic::Ordering::Relaxed);
    }
}

/// An [`Arithmetic`] in use by the process until its last holder is dropped.
#[derive(Debug)]
#[must_use = "the arithmetic is in use only until this value is dropped"]
pub struct ArithmeticInUse(());

/// The error that the process already uses the other arithmetic.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("another training in this process computes with the other arithmetic: wait until it has finished")]
pub struct OtherArithmetic;

impl Arithmetic {
    /// Makes all threads of this process compute with this arithmetic. The default is the fastest.
    ///
    /// # Errors
    /// If the other one is held.
    pub fn hold(self) -> Result<ArithmeticInUse, OtherArithmetic> {
        let mut held = lock();
        match *held {
            (0, _) => {
                *held = (1, self);
                IN_USE.set(self == Self::Portable);
            }
            (holders, other) if other == self => *held = (holders + 1, other),
            _ => return Err(OtherArithmetic),
        }
        Ok(ArithmeticInUse(()))
    }
}

impl Drop for ArithmeticInUse {
    fn drop(&mut self) {
        let mut held = lock();
        held.0 -= 1;
        if held.0 == 0 {
            IN_USE.set(false);
        }
    }
}

fn lock() -> MutexGuard<'static, (usize, Arithmetic)> {
    // No code can panic between the start and the end of a change.
    HELD.lock().unwrap_or_else(PoisonError::into_inner)
}
