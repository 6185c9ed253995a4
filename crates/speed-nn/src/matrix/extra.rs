//! Additional work of a product.

/// Additional work that a product does on the way.
#[derive(Default)]
pub(super) struct Extra<'a> {
    /// Modifies complete rows in place after they are computed.
    pub(super) finish: Option<Finish<'a>>,
    /// Receives the sums of squares of the columns of the right operand, in complete panels; on tiles only.
    pub(super) squares: Option<&'a mut [f32]>,
}

/// A callback that takes the number of the first of some rows, and the rows.
pub(super) type Finish<'a> = &'a mut dyn FnMut(usize, &mut [f32]);
