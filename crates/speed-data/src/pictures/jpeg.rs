//! A check that a JPEG file (ITU-T T.81) contains its complete picture, in colours whose meaning is known.
//!
//! Decoders fill missing blocks with grey and skip other bytes, also in strict modes. The Huffman codes of the data show where every block
//! ends. A file is complete if it has all blocks of all scans, the scans code every coefficient to its last bit, and there are no other bytes
//! between the markers. A changed bit that violates none of these conditions is not detected, because JPEG has no checksum.

use std::fmt::Display;

use zune_jpeg::zune_core::colorspace::ColorSpace;

use super::size::{MAX_SIDE, MAX_UNPACKED};

/// Largest number of scans in a file: the limit of the decoder.
const MAX_SCANS: usize = 100;
/// The lowest bit of a coefficient that no scan has coded.
const UNCODED: u8 = 0xff;

/// Checks a file that begins with the marker of an image's start, and returns the meaning of its values.
pub(super) fn check(bytes: &[u8]) -> Result<ColorSpace, String> {
    let mut file = File { bytes, position: 2, ..File::default() };
    loop {
        let marker = file.marker()?;
        if marker == 0xd9 {
            return file.colours();
        }
        let segment = file.segment()?;
        let scan = file.read_segment(marker, segment).ok_or_else(|| {
            let found = &bytes[file.place..bytes.len().min(file.place + 20)];
            let size = format!("at most {MAX_SIDE} rows and columns and {MAX_UNPACKED} bytes unpacked");
            let expected =
                format!("baseline or progressive JPEG with Huffman codes, 8 bits, 1, 3 or 4 channels, {size}");
            file.damaged(expected, hex::encode(found))
        })?;
        if !scan.parts.is_empty() {
            file.read_data(&scan)?;
        }
    }
}

/// The numbers of Huffman codes of 1 to 16 bits, and a symbol for each code.
type Table<'a> = (&'a [u8; 16], &'a [u8]);

#[derive(Default)]
struct File<'a> {
    bytes: &'a [u8],
    position: usize,
    /// The place of the last marker or coded data, for messages.
    place: usize,
    /// Units between restart markers; 0 without restart markers.
    interval: usize,
    /// Huffman tables by kind (DC, AC) and number.
    tables: [[Option<Table<'a>>; 4]; 2],
    is_progressive: bool,
    components: Vec<Component>,
    /// Units in a scan of several components.
    units: usize,
    scans: usize,
    is_jfif: bool,
    adobe: Option<u8>,
}

struct Component {
    id: u8,
    /// Blocks in a unit of a scan of several components.
    blocks: usize,
    /// For each coefficient: the lowest coded bit.
    lowest: [u8; 64],
    /// For each block in a scan of this component: a bit for each coefficient that is not zero.
    nonzero: Vec<u64>,
}

impl<'a> File<'a> {
    fn damaged(&self, expected: impl Display, found: impl Display) -> String {
        let next = "copy or create the file again, or save it as PNG in RGB";
        format!("expected {expected} at byte {}, found {found}; {next}", self.place)
    }

    /// Reads the next marker, after any number of bytes 0xff.
    fn marker(&mut self) -> Result<u8, String> {
        self.place = self.position;
        let rest = &self.bytes[self.position..];
        let fill = rest.iter().take_while(|&&byte| byte == 0xff).count();
        let marker = *rest.get(fill).ok_or_else(|| self.damaged("a marker", "the end of the file"))?;
        self.position += fill + 1;
        if fill > 0 { Ok(marker) } else { Err(self.damaged("a marker", format!("{marker:02x}"))) }
    }

    fn segment(&mut self) -> Result<&'a [u8], String> {
        let rest = &self.bytes[self.position..];
        let length = rest.first_chunk().map_or(0, |&length| u16::from_be_bytes(length).into());
        let segment = rest.get(2..length).ok_or_else(|| self.damaged("a complete segment", "a part"))?;
        self.position += length;
        Ok(segment)
    }

    /// Reads a segment and returns the scan that it begins, or a scan of no components. Returns `None` if it is damaged or unsupported.
    fn read_segment(&mut self, marker: u8, segment: &'a [u8]) -> Option<Scan<'a>> {
        match marker {
            0xc0..=0xc2 => self.read_frame(segment, marker == 0xc2)?,
            0xc4 => self.read_tables(segment)?,
            0xda => return self.read_scan(segment),
            0xdd => self.interval = u16::from_be_bytes(segment.try_into().ok()?).into(),
            0xe0 => self.is_jfif |= segment.starts_with(b"JFIF\0"),
            0xee if segment.starts_with(b"Adobe") => self.adobe = segment.get(11).copied().or(self.adobe),
            0xdb | 0xe1..=0xf6 | 0xf8..=0xfe => {}
            _ => return None,
        }
        Some(Scan::default())
    }

    fn read_frame(&mut self, segment: &[u8], is_progressive: bool) -> Option<()> {
        let (&[8, h1, h0, w1, w0, count @ (1 | 3 | 4)], parts) = segment.split_first_chunk()? else { return None };
        let sides = [[w1, w0], [h1, h0]].map(|side| usize::from(u16::from_be_bytes(side)));
        let (parts, others) = parts.as_chunks::<3>();
        let samplings = parts.iter().map(|[_, factors, _]| [factors >> 4, factors & 15].map(usize::from));
        let is_valid = samplings.clone().flatten().all(|factor| (1..=4).contains(&factor))
            && sides.iter().all(|side| (1..=MAX_SIDE as usize).contains(side))
            && (sides[0] * sides[1] * parts.len()) as u64 <= MAX_UNPACKED;
        if !is_valid || parts.len() != count.into() || !others.is_empty() || !self.components.is_empty() {
            return None;
        }
        let most = [0, 1].map(|axis| samplings.clone().map(|sampling| sampling[axis]).max().unwrap_or(1));
        self.units = [0, 1].map(|axis| sides[axis].div_ceil(8 * most[axis])).iter().product();
        self.is_progressive = is_progressive;
        for (&[id, ..], sampling) in parts.iter().zip(samplings) {
            let alone = [0, 1].map(|axis| (sides[axis] * sampling[axis]).div_ceil(8 * most[axis]));
            let nonzero = vec![0; alone.iter().product()];
            self.components.push(Component { id, blocks: sampling.iter().product(), lowest: [UNCODED; 64], nonzero });
        }
        Some(())
    }

    fn read_tables(&mut self, mut rest: &'a [u8]) -> Option<()> {
        while !rest.is_empty() {
            let ([place, counts @ ..], after) = rest.split_first_chunk::<17>()?;
            let (symbols, after) = after.split_at_checked(counts.iter().map(|&count| usize::from(count)).sum())?;
            let used: u32 = (1..=16).zip(counts).map(|(length, &count)| u32::from(count) << (16 - length)).sum();
            let table = self.tables.get_mut(usize::from(place >> 4))?.get_mut(usize::from(place & 15))?;
            *table = Some((used <= 1 << 16).then_some((counts, symbols))?);
            rest = after;
        }
        Some(())
    }

    /// Reads the header of a scan and records its coefficients.
    fn read_scan(&mut self, header: &[u8]) -> Option<Scan<'a>> {
        self.scans += 1;
        let (&count, rest) = header.split_first()?;
        let (parts, &[start, end, bits]) = rest.split_last_chunk()?;
        // Encoders of pictures that are not progressive write any numbers here.
        let [start, end, high, low] =
            if self.is_progressive { [start, end, bits >> 4, bits & 15] } else { [0, 63, 0, 0] };
        let is_band = start <= end && end <= 63 && low <= 13 && (high == 0 || high == low + 1);
        let is_split = !self.is_progressive || end == 0 || start > 0 && count == 1;
        if self.scans > MAX_SCANS || count == 0 || parts.len() != 2 * usize::from(count) || !is_band || !is_split {
            return None;
        }
        let parts = parts.as_chunks().0.iter().map(|&[id, numbers]| {
            let index = self.components.iter().position(|component| component.id == id)?;
            let lowest = &mut self.components[index].lowest[start.into()..=end.into()];
            let is_next = lowest.iter().all(|&known| known == if high == 0 { UNCODED } else { high });
            lowest.fill(low);
            let tables = [(0, numbers >> 4), (1, numbers & 15)];
            let tables = tables.map(|(kind, number)| *self.tables[kind].get(usize::from(number)).unwrap_or(&None));
            is_next.then_some((index, tables))
        });
        let parts = parts.collect::<Option<_>>()?;
        Some(Scan { parts, start: start.into(), end: end.into(), is_refinement: high > 0 })
    }

    /// Reads the coded data of a scan.
    fn read_data(&mut self, scan: &Scan) -> Result<(), String> {
        let alone = scan.parts.len() == 1;
        let units = if alone { self.components[scan.parts[0].0].nonzero.len() } else { self.units };
        let interval = if self.interval == 0 { units } else { self.interval };
        for start in (0..units).step_by(interval) {
            if start > 0 {
                let (expected, found) = (0xd0 + (start / interval - 1) % 8, self.marker()?);
                if expected != found.into() {
                    return Err(self.damaged(format!("the restart marker ff{expected:x}"), format!("ff{found:x}")));
                }
            }
            self.place = self.position;
            let mut data = Data::default();
            self.position += data.fill(&self.bytes[self.position..]);
            for unit in start..units.min(start + interval) {
                for &(index, tables) in &scan.parts {
                    let Component { blocks, nonzero, .. } = &mut self.components[index];
                    for _ in 0..if alone { 1 } else { *blocks } {
                        let nonzero = if alone { &mut nonzero[unit] } else { &mut 0 };
                        if let Err(expected) = data.block(scan, tables, nonzero) {
                            let place = format!("unit {unit} of {units} of scan {}, in the data", self.scans);
                            return Err(self.damaged(format!("{expected} in {place}"), "other bits or their end"));
                        }
                    }
                }
            }
            if data.run > 0 || data.taken + 8 <= data.bits {
                let expected = format!("a marker after {units} units of scan {}, in the data", self.scans);
                return Err(self.damaged(expected, "more data"));
            }
        }
        Ok(())
    }

    /// Checks that no scan is missing, and returns the meaning of the values by the rules of libjpeg.
    fn colours(&self) -> Result<ColorSpace, String> {
        let mut lowest = self.components.iter().flat_map(|component| component.lowest);
        if self.components.is_empty() || lowest.any(|lowest| lowest != 0) {
            return Err(self.damaged("scans of every coefficient's last bit", "the end of the picture"));
        }
        let ids: Vec<u8> = self.components.iter().map(|component| component.id).collect();
        Ok(match (&ids[..], self.adobe) {
            ([_], _) => ColorSpace::Luma,
            ([_, _, _], _) if self.is_jfif => ColorSpace::YCbCr,
            ([_, _, _], Some(0)) | ([b'R', b'G', b'B'], None) => ColorSpace::RGB,
            ([_, _, _], Some(1) | None) => ColorSpace::YCbCr,
            ([_, _, _, _], Some(0)) => ColorSpace::CMYK,
            ([_, _, _, _], Some(2)) => ColorSpace::YCCK,
            _ => return Err(self.damaged("Adobe's marker with the meaning of the colours", "the end of the picture")),
        })
    }
}

#[derive(Default)]
struct Scan<'a> {
    parts: Vec<(usize, [Option<Table<'a>>; 2])>,
    start: u32,
    end: u32,
    /// Whether the scan adds a bit to coefficients of earlier scans.
    is_refinement: bool,
}

#[derive(Default)]
struct Data {
    /// The data without stuffed bytes, and four zeros.
    bytes: Vec<u8>,
    bits: usize,
    /// Bits before the next one.
    taken: usize,
    /// Number of following blocks that have no more coefficients in the scan.
    run: u32,
}

impl Data {
    /// Copies the data before the next marker, and returns its length in the file.
    fn fill(&mut self, rest: &[u8]) -> usize {
        let length = rest.windows(2).position(|pair| pair[0] == 0xff && pair[1] != 0).unwrap_or(rest.len());
        let mut last = 0;
        let mut is_stuffed = |byte| std::mem::replace(&mut last, byte) == 0xff && byte == 0;
        self.bytes.extend(rest[..length].iter().filter(|&&byte| !is_stuffed(byte)));
        self.bits = 8 * self.bytes.len();
        self.bytes.extend([0; 4]);
        length
    }

    /// Returns the next 16 bits, with zeros after the end.
    fn next(&self) -> u32 {
        let next = self.bytes.get(self.taken / 8..).and_then(<[u8]>::first_chunk);
        next.map_or(0, |&next| u32::from_be_bytes(next) << (self.taken % 8) >> 16)
    }

    fn take(&mut self, bits: u32) -> Result<u32, &'static str> {
        let value = self.next() >> (16 - bits);
        self.taken += bits as usize;
        if self.taken <= self.bits { Ok(value) } else { Err("more bits") }
    }

    /// Takes a Huffman code and returns its symbol in two parts of four bits: a number of zeros, and the size of a coefficient.
    fn symbol(&mut self, table: Option<Table>) -> Result<[u32; 2], &'static str> {
        let (counts, symbols) = table.ok_or("a Huffman table")?;
        let (next, mut first, mut place) = (self.next(), 0, 0);
        for (length, count) in (1..=16).zip(counts.map(u32::from)) {
            // The code's place among those of this length, which follow the shorter codes.
            let offset = (next >> (16 - length)) - first;
            if offset < count {
                self.taken += length as usize;
                let symbol = symbols[(place + offset) as usize];
                return Ok([symbol >> 4, symbol & 15].map(u32::from));
            }
            (first, place) = ((first + count) << 1, place + count);
        }
        Err("a Huffman code")
    }

    /// Reads a block. `nonzero` has a bit for each of its coefficients that is not zero.
    fn block(&mut self, scan: &Scan, [dc, ac]: [Option<Table>; 2], nonzero: &mut u64) -> Result<(), &'static str> {
        const SIZE: &str = "a coefficient of a possible size";
        let &Scan { start, end, is_refinement, .. } = scan;
        if start == 0 {
            let [zeros, size] = if is_refinement { [0, 1] } else { self.symbol(dc)? };
            self.take(if zeros == 0 && size <= 11 { size } else { return Err(SIZE) })?;
        }
        let mut index = start.max(1);
        while index <= end {
            // In a run, all coefficients up to the last one are passed.
            let [mut zeros, size] = if self.run > 0 { [64, 0] } else { self.symbol(ac)? };
            if is_refinement && size > 1 || start == 0 && size == 0 && (1..15).contains(&zeros) {
                return Err(SIZE);
            }
            if size == 0 && zeros < 15 {
                self.run = (1 << zeros) + self.take(zeros)?;
                zeros = 64;
            }
            self.take(size)?;
            if self.run > 0 && *nonzero >> index == 0 {
                break;
            }
            // Passes this number of zeros and refines the other coefficients.
            while index <= end {
                match *nonzero >> index & 1 {
                    0 if zeros == 0 => break,
                    0 => zeros -= 1,
                    _ => drop(self.take(1)?),
                }
                index += 1;
            }
            if index > end && self.run == 0 && (size > 0 || !is_refinement) {
                return Err("coefficients within the block");
            }
            *nonzero |= u64::from(size > 0) << (index & 63);
            index += 1;
        }
        self.run = self.run.saturating_sub(1);
        Ok(())
    }
}

#[cfg(test)]
mod tests;
