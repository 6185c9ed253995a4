//! Strict reading of little-endian bytes.

/// The bytes that are not read yet.
#[derive(Debug)]
pub(crate) struct Reader<'a> {
    rest: &'a [u8],
}

/// There are fewer bytes than required.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct UnexpectedEnd;

impl<'a> Reader<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes }
    }

    pub(crate) fn take(&mut self, count: usize) -> Result<&'a [u8], UnexpectedEnd> {
        let (taken, rest) = self.rest.split_at_checked(count).ok_or(UnexpectedEnd)?;
        self.rest = rest;
        Ok(taken)
    }

    pub(crate) fn array<const N: usize>(&mut self) -> Result<[u8; N], UnexpectedEnd> {
        let (taken, rest) = self.rest.split_first_chunk().ok_or(UnexpectedEnd)?;
        self.rest = rest;
        Ok(*taken)
    }

    pub(crate) fn u32(&mut self) -> Result<u32, UnexpectedEnd> {
        self.array().map(u32::from_le_bytes)
    }

    pub(crate) fn u64(&mut self) -> Result<u64, UnexpectedEnd> {
        self.array().map(u64::from_le_bytes)
    }

    pub(crate) fn f64(&mut self) -> Result<f64, UnexpectedEnd> {
        self.array().map(f64::from_le_bytes)
    }

    /// Reads a number of items of `size` bytes each. Enough bytes must remain for them, so a false number cannot make
    /// the caller reserve memory.
    pub(crate) fn count(&mut self, size: usize) -> Result<usize, UnexpectedEnd> {
        let count = usize::try_from(self.u64()?).map_err(|_| UnexpectedEnd)?;
        if count.checked_mul(size).is_some_and(|bytes| bytes <= self.rest.len()) {
            Ok(count)
        } else {
            Err(UnexpectedEnd)
        }
    }

    /// Returns the number of remaining bytes.
    pub(crate) fn remaining(&self) -> usize {
        self.rest.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_in_order_and_stops_at_the_end() {
        let mut reader = Reader::new(&[1, 0, 0, 0, 7, 8]);
        assert_eq!(reader.u32(), Ok(1));
        assert_eq!(reader.u64(), Err(UnexpectedEnd));
        assert_eq!(reader.take(3), Err(UnexpectedEnd));
        assert_eq!(reader.take(2), Ok(&[7, 8][..]));
        assert_eq!((reader.remaining(), reader.f64()), (0, Err(UnexpectedEnd)));
    }

    #[test]
    fn a_count_beyond_the_bytes_is_refused() {
        for count in [3_u64, u64::MAX] {
            let mut bytes = count.to_le_bytes().to_vec();
            bytes.extend([0; 8]);
            assert_eq!(Reader::new(&bytes).count(4), Err(UnexpectedEnd));
        }
        let mut bytes = 2_u64.to_le_bytes().to_vec();
        bytes.extend([0; 8]);
        assert_eq!(Reader::new(&bytes).count(4), Ok(2));
    }
}
