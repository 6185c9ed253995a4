//! Bits and Huffman codes of a scan's coded data.

/// Number of bits that a table's shortcut resolves.
const SHORT: u32 = 8;
/// Length of the longest code in bits.
const LONG: u32 = 16;

/// The fault of coded data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CodeFault {
    /// A marker or the end of the file comes where bits are needed.
    End,
    /// The bits are not the named item.
    Damaged(&'static str),
}

/// A Huffman table.
pub(super) struct HuffmanTable {
    /// For each value of the next eight bits: length and symbol of a short code, or zeros.
    short: [(u8, u8); 1 << SHORT],
    /// For each length: the first code, and the place of its symbol.
    first: [(u32, usize); LONG as usize + 1],
    counts: [u8; LONG as usize],
    symbols: Vec<u8>,
}

impl HuffmanTable {
    /// Creates a table from the numbers of codes of 1 to 16 bits and a symbol for each code. Returns `None` if there are too many codes of a
    /// length.
    pub(super) fn new(counts: [u8; 16], symbols: &[u8]) -> Option<Self> {
        let mut short = [(0, 0); 1 << SHORT];
        let mut first = [(0, 0); LONG as usize + 1];
        let (mut code, mut place) = (0u32, 0);
        for (length, &count) in (1..=LONG).zip(&counts) {
            code <<= 1;
            first[length as usize] = (code, place);
            if code + u32::from(count) > 1 << length {
                return None;
            }
            for _ in 0..count {
                if length <= SHORT {
                    let start = (code << (SHORT - length)) as usize;
                    short[start..start + (1 << (SHORT - length))].fill((length.try_into().ok()?, *symbols.get(place)?));
                }
                (code, place) = (code + 1, place + 1);
            }
        }
        (place == symbols.len()).then(|| Self { short, first, counts, symbols: symbols.to_vec() })
    }

    /// Returns length and symbol of the code at the beginning of sixteen bits.
    fn find(&self, window: u32) -> Option<(u32, u8)> {
        let (length, symbol) = self.short[(window >> (LONG - SHORT)) as usize];
        if length > 0 {
            return Some((length.into(), symbol));
        }
        (SHORT + 1..=LONG).find_map(|length| {
            let (first, place) = self.first[length as usize];
            let offset = (window >> (LONG - length)).checked_sub(first)?;
            let is_code = offset < self.counts[length as usize - 1].into();
            is_code.then(|| (length, self.symbols[place + offset as usize]))
        })
    }
}

/// A reader of coded data, up to the next marker.
pub(super) struct Bits<'a> {
    bytes: &'a [u8],
    position: usize,
    buffer: u32,
    count: u32,
}

impl<'a> Bits<'a> {
    /// Creates a reader that begins at a byte of the file.
    pub(super) fn new(bytes: &'a [u8], position: usize) -> Self {
        Self { bytes, position, buffer: 0, count: 0 }
    }

    fn fill(&mut self) {
        while self.count <= 24 {
            let (byte, taken) = match self.bytes[self.position..] {
                [0xff, 0, ..] => (0xff, 2),
                [0xff, ..] | [] => return,
                [byte, ..] => (byte, 1),
            };
            self.position += taken;
            self.buffer = self.buffer << 8 | u32::from(byte);
            self.count += 8;
        }
    }

    /// Reads up to 16 bits.
    pub(super) fn take(&mut self, bits: u32) -> Result<u32, CodeFault> {
        if self.count < bits {
            self.fill();
        }
        self.count = self.count.checked_sub(bits).ok_or(CodeFault::End)?;
        Ok(self.buffer.checked_shr(self.count).unwrap_or(0) & ((1 << bits) - 1))
    }

    /// Reads a code and returns its symbol.
    pub(super) fn symbol(&mut self, table: &HuffmanTable) -> Result<u8, CodeFault> {
        if self.count < LONG {
            self.fill();
        }
        let window = match self.count {
            0 => return Err(CodeFault::End),
            count @ 1..LONG => self.buffer << (LONG - count),
            count => self.buffer >> (count - LONG),
        };
        match table.find(window & 0xffff) {
            Some((length, symbol)) if length <= self.count => {
                self.count -= length;
                Ok(symbol)
            }
            None if self.count >= LONG => Err(CodeFault::Damaged("a Huffman code")),
            _ => Err(CodeFault::End),
        }
    }

    /// Returns the place of the next marker or of the end of the file, if only the padding of the last byte is left.
    pub(super) fn end(&self) -> Option<usize> {
        let is_end = matches!(self.bytes[self.position..], [] | [0xff] | [0xff, 1..=0xff, ..]);
        (is_end && self.count < 8).then_some(self.position)
    }
}
