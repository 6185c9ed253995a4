//! The coded data of a scan, decoded only as far as the check for completeness requires.

use super::bits::{Bits, CodeFault, HuffmanTable};

/// The coefficients of a component that earlier scans coded.
pub(super) struct Component {
    pub(super) id: u8,
    /// Blocks across and down in an interleaved unit.
    pub(super) sampling: [usize; 2],
    /// Blocks across and down in the picture, and blocks in a row including those that fill the last unit.
    pub(super) blocks: [usize; 2],
    pub(super) stride: usize,
    /// For each coefficient: the lowest bit that was coded.
    pub(super) lowest: [Option<u8>; 64],
    /// For each block of a progressive picture: a bit for each coefficient that is not zero.
    pub(super) nonzero: Vec<u64>,
}

/// The coding of the blocks of a scan.
#[derive(Clone, Copy)]
pub(super) enum Coding {
    Baseline,
    DcFirst,
    DcRefinement,
    AcFirst,
    AcRefinement,
}

/// Coefficients of a scan, and their coding.
pub(super) struct Band {
    pub(super) coding: Coding,
    pub(super) start: u32,
    pub(super) end: u32,
}

impl Band {
    /// Returns whether the coding uses tables for DC and for AC coefficients.
    pub(super) fn tables(&self) -> [bool; 2] {
        match self.coding {
            Coding::Baseline => [true, true],
            Coding::DcFirst => [true, false],
            Coding::DcRefinement => [false, false],
            Coding::AcFirst | Coding::AcRefinement => [false, true],
        }
    }
}

const INDEX: CodeFault = CodeFault::Damaged("coefficients within the block");
const SIZE: CodeFault = CodeFault::Damaged("a coefficient of a size that this coding allows");

/// A decoder of blocks between two restart markers.
pub(super) struct Blocks<'a> {
    pub(super) bits: Bits<'a>,
    /// Number of following blocks whose bands are empty.
    pub(super) run: u32,
}

impl Blocks<'_> {
    /// Decodes one block. `tables` are the tables of DC and AC coefficients; `nonzero` belongs to the block.
    pub(super) fn pass(
        &mut self,
        band: &Band,
        tables: [Option<&HuffmanTable>; 2],
        nonzero: Option<&mut u64>,
    ) -> Result<(), CodeFault> {
        let [dc, ac] = tables.map(|table| table.ok_or(CodeFault::Damaged("a Huffman table")));
        match band.coding {
            Coding::Baseline => {
                self.dc(dc?)?;
                self.baseline_ac(ac?)
            }
            Coding::DcFirst => self.dc(dc?),
            Coding::DcRefinement => self.bits.take(1).map(drop),
            Coding::AcFirst => self.first_ac(band, ac?, nonzero.unwrap_or(&mut 0)),
            Coding::AcRefinement => self.refined_ac(band, ac?, nonzero.unwrap_or(&mut 0)),
        }
    }

    fn dc(&mut self, table: &HuffmanTable) -> Result<(), CodeFault> {
        let size = self.bits.symbol(table)?;
        if size > 11 {
            return Err(SIZE);
        }
        self.bits.take(size.into()).map(drop)
    }

    fn baseline_ac(&mut self, table: &HuffmanTable) -> Result<(), CodeFault> {
        let mut index = 1;
        while index < 64 {
            let symbol = self.bits.symbol(table)?;
            let (zeros, size) = (u32::from(symbol >> 4), u32::from(symbol & 15));
            index += zeros + 1;
            match (zeros, size) {
                (0, 0) => return Ok(()),
                (15, 0) => {}
                (_, 0) => return Err(SIZE),
                _ if index > 64 => return Err(INDEX),
                _ => drop(self.bits.take(size)?),
            }
        }
        if index == 64 { Ok(()) } else { Err(INDEX) }
    }

    fn first_ac(&mut self, band: &Band, table: &HuffmanTable, nonzero: &mut u64) -> Result<(), CodeFault> {
        if self.run > 0 {
            self.run -= 1;
            return Ok(());
        }
        let mut index = band.start;
        while index <= band.end {
            let symbol = self.bits.symbol(table)?;
            let (zeros, size) = (u32::from(symbol >> 4), u32::from(symbol & 15));
            if size == 0 && zeros < 15 {
                self.run = (1 << zeros) - 1 + self.bits.take(zeros)?;
                return Ok(());
            }
            index += zeros + 1;
            if index > band.end + 1 {
                return Err(INDEX);
            }
            if size > 0 {
                *nonzero |= 1 << (index - 1);
                self.bits.take(size)?;
            }
        }
        Ok(())
    }

    fn refined_ac(&mut self, band: &Band, table: &HuffmanTable, nonzero: &mut u64) -> Result<(), CodeFault> {
        let mut index = band.start;
        while self.run == 0 && index <= band.end {
            let symbol = self.bits.symbol(table)?;
            let (mut zeros, size) = (u32::from(symbol >> 4), symbol & 15);
            match size {
                0 if zeros < 15 => {
                    self.run = (1 << zeros) + self.bits.take(zeros)?;
                    break;
                }
                0 => {}
                1 => drop(self.bits.take(1)?),
                _ => return Err(SIZE),
            }
            // Skips this number of zeros and refines the other coefficients.
            while index <= band.end {
                if *nonzero >> index & 1 == 1 {
                    self.bits.take(1)?;
                } else if zeros == 0 {
                    break;
                } else {
                    zeros -= 1;
                }
                index += 1;
            }
            if size == 1 {
                if index > band.end {
                    return Err(INDEX);
                }
                *nonzero |= 1 << index;
            }
            index += 1;
        }
        if self.run > 0 {
            let known = (index..=band.end).filter(|index| *nonzero >> index & 1 == 1).count();
            for _ in 0..known {
                self.bits.take(1)?;
            }
            self.run -= 1;
        }
        Ok(())
    }
}
