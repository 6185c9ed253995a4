//! A check that a JPEG file contains its complete picture, in colours whose meaning is known.
//!
//! Decoders accept incomplete data: where coded data ends early they continue with grey, even in a strict mode if an end marker follows.
//! This check therefore decodes the Huffman codes of the data, which show where every block ends. A file is complete if it has all blocks of
//! all scans, the scans code every coefficient to its last bit, and there are no other bytes between the markers. A changed bit that
//! violates none of these conditions is not detected, because JPEG has no checksum. The format: ITU-T T.81.

mod bits;
mod error;
mod scan;

use super::size::{MAX_SIDE, MAX_UNPACKED};
use bits::{Bits, CodeFault, HuffmanTable};
pub use error::JpegError;
use scan::{Band, Blocks, Coding, Component};

/// Largest number of scans in a file: the limit of the decoder.
const MAX_SCANS: usize = 100;

/// Markers: frames, tables, restarts, the end, scans, and segments with a meaning.
const BASELINE: u8 = 0xc0;
const PROGRESSIVE: u8 = 0xc2;
const HUFFMAN: u8 = 0xc4;
const RESTART: u8 = 0xd0;
const END: u8 = 0xd9;
const SCAN: u8 = 0xda;
const INTERVAL: u8 = 0xdd;
const APP0: u8 = 0xe0;
const APP14: u8 = 0xee;

/// The meaning of a picture's values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Colours {
    Grey,
    YCbCr,
    Rgb,
    Cmyk,
    Ycck,
}

/// Checks a file that begins with the marker of an image's start, and returns the meaning of its values.
///
/// # Errors
/// [`JpegError`] names the missing or damaged part, or the unsupported kind of file.
pub(super) fn check(bytes: &[u8]) -> Result<Colours, JpegError> {
    let mut file = File { bytes, position: 2, ..File::default() };
    loop {
        let at = file.position;
        match file.marker()? {
            kind @ (BASELINE..=PROGRESSIVE) => file.read_frame(kind == PROGRESSIVE)?,
            HUFFMAN => file.read_tables()?,
            SCAN => file.read_scan()?,
            INTERVAL => {
                let (at, segment) = file.segment()?;
                let &[high, low] = segment else { return Err(damaged("restart interval", at, "2 bytes")) };
                file.interval = u16::from_be_bytes([high, low]).into();
            }
            APP0 => file.is_jfif |= file.segment()?.1.starts_with(b"JFIF\0"),
            APP14 => {
                if let &[b'A', b'd', b'o', b'b', b'e', _, _, _, _, _, _, transform, ..] = file.segment()?.1 {
                    file.adobe = Some(transform);
                }
            }
            END => return file.finish(),
            0xc3 | 0xcf | 0xcb | 0xf7 => return Err(kind("lossless JPEG")),
            0xc5..=0xc7 | 0xcd..=0xce | 0xde | 0xdf => return Err(kind("hierarchical JPEG")),
            0xc9 | 0xca | 0xcc => return Err(kind("arithmetic codes")),
            0xdc => return Err(kind("a height after the picture (marker DNL)")),
            0xdb | APP0..=0xfe => drop(file.segment()?),
            found => return Err(JpegError::Marker { expected: "the marker of a segment, scan or end", at, found }),
        }
    }
}

fn kind(found: &'static str) -> JpegError {
    JpegError::Kind { found }
}

fn damaged(segment: &'static str, at: usize, expected: &'static str) -> JpegError {
    JpegError::Segment { segment, at, expected }
}

/// The state of a file that is being read.
#[derive(Default)]
struct File<'a> {
    bytes: &'a [u8],
    position: usize,
    /// Units between restart markers; 0 without restart markers.
    interval: usize,
    /// Huffman tables by kind (DC, AC) and number.
    tables: [[Option<HuffmanTable>; 4]; 2],
    is_progressive: bool,
    components: Vec<Component>,
    /// Interleaved units of the picture.
    units: usize,
    scans: usize,
    is_jfif: bool,
    adobe: Option<u8>,
}

/// A scan: its components, each with the numbers of its tables, and their coefficients.
struct Scan {
    components: Vec<(usize, [usize; 2])>,
    band: Band,
}

impl<'a> File<'a> {
    fn cut(&self, expected: &'static str) -> JpegError {
        JpegError::Cut { expected, at: self.bytes.len() }
    }

    /// Reads the next marker, after any number of bytes 0xff.
    fn marker(&mut self) -> Result<u8, JpegError> {
        const EXPECTED: &str = "a marker";
        let at = self.position;
        let mut rest = self.bytes.get(at..).unwrap_or_default();
        let Some((&first, _)) = rest.split_first() else { return Err(self.cut("the end marker")) };
        if first != 0xff {
            return Err(JpegError::Marker { expected: EXPECTED, at, found: first });
        }
        while let [0xff, more @ ..] = rest {
            rest = more;
        }
        let &[marker, ..] = rest else { return Err(self.cut("the end marker")) };
        self.position = self.bytes.len() - rest.len() + 1;
        Ok(marker)
    }

    /// Reads the segment after a marker; returns the place of its content and the content.
    fn segment(&mut self) -> Result<(usize, &'a [u8]), JpegError> {
        let rest = self.bytes.get(self.position..).unwrap_or_default();
        let &[high, low, ..] = rest else { return Err(self.cut("the length of a segment")) };
        let length = usize::from(u16::from_be_bytes([high, low]));
        if length < 2 {
            return Err(damaged("segment", self.position, "a length of at least 2"));
        }
        let content = rest.get(2..length).ok_or_else(|| self.cut("the rest of a segment"))?;
        let at = self.position + 2;
        self.position += length;
        Ok((at, content))
    }

    fn read_frame(&mut self, is_progressive: bool) -> Result<(), JpegError> {
        let (at, segment) = self.segment()?;
        let &[precision, h1, h0, w1, w0, count, ref components @ ..] = segment else {
            return Err(damaged("frame header", at, "at least 6 bytes"));
        };
        if !self.components.is_empty() {
            return Err(damaged("frame header", at, "a single frame header in the file"));
        }
        if precision != 8 {
            return Err(kind(if precision == 12 { "12 bits" } else { "a number of bits other than 8" }));
        }
        let [height, width] = [[h1, h0], [w1, w0]].map(|side| usize::from(u16::from_be_bytes(side)));
        if height == 0 {
            return Err(kind("a height after the picture (height 0)"));
        }
        if width == 0 || components.len() != 3 * usize::from(count) {
            return Err(damaged("frame header", at, "a width and three bytes for each component"));
        }
        if !matches!(count, 1 | 3 | 4) {
            return Err(kind("a number of colour channels other than 1, 3 or 4"));
        }
        let unpacked = (height * width * usize::from(count)) as u64;
        if height.max(width) > MAX_SIDE as usize || unpacked > MAX_UNPACKED {
            return Err(JpegError::Huge);
        }
        let samplings: Vec<[usize; 2]> =
            components.chunks_exact(3).map(|part| [usize::from(part[1] >> 4), usize::from(part[1] & 15)]).collect();
        if samplings.iter().flatten().any(|factor| !(1..=4).contains(factor)) {
            return Err(damaged("frame header", at, "sampling factors of 1 to 4"));
        }
        let most = [0, 1].map(|axis| samplings.iter().map(|sampling| sampling[axis]).max().unwrap_or(1));
        let sides = [width, height];
        let units = [0, 1].map(|axis| sides[axis].div_ceil(8 * most[axis]));
        self.is_progressive = is_progressive;
        self.units = units[0] * units[1];
        for (part, sampling) in components.chunks_exact(3).zip(samplings) {
            let blocks = [0, 1].map(|axis| (sides[axis] * sampling[axis]).div_ceil(most[axis]).div_ceil(8));
            let stride = units[0] * sampling[0];
            let all = if is_progressive { stride * units[1] * sampling[1] } else { 0 };
            self.components.push(Component {
                id: part[0],
                sampling,
                blocks,
                stride,
                lowest: [None; 64],
                nonzero: vec![0; all],
            });
        }
        Ok(())
    }

    fn read_tables(&mut self) -> Result<(), JpegError> {
        const SEGMENT: &str = "segment of Huffman tables";
        let (at, mut rest) = self.segment()?;
        while let Some((head, symbols)) = rest.split_first_chunk::<17>() {
            let [place, counts @ ..] = *head;
            let count = counts.iter().map(|&count| usize::from(count)).sum();
            let wrong = || damaged(SEGMENT, at, "codes for each of its symbols, in tables 0 to 3");
            let (symbols, others) = symbols.split_at_checked(count).ok_or_else(wrong)?;
            let tables = self.tables.get_mut(usize::from(place >> 4)).ok_or_else(wrong)?;
            *tables.get_mut(usize::from(place & 15)).ok_or_else(wrong)? =
                Some(HuffmanTable::new(counts, symbols).ok_or_else(wrong)?);
            rest = others;
        }
        if rest.is_empty() { Ok(()) } else { Err(damaged(SEGMENT, at, "17 bytes for each table")) }
    }

    fn read_scan(&mut self) -> Result<(), JpegError> {
        self.scans += 1;
        if self.scans > MAX_SCANS {
            return Err(JpegError::ManyScans { max: MAX_SCANS });
        }
        let scan = self.scan_header()?;
        let units = match scan.components[..] {
            [(component, _)] => self.components[component].blocks.iter().product(),
            _ => self.units,
        };
        let interval = if self.interval == 0 { units } else { self.interval };
        let mut restarts = 0;
        for start in (0..units).step_by(interval) {
            if start > 0 {
                let at = self.position;
                match self.marker()? {
                    found if found == RESTART + restarts => {}
                    END => return Err(self.short(&scan, units, start)),
                    found => return Err(JpegError::Marker { expected: "the next restart marker", at, found }),
                }
                restarts = (restarts + 1) % 8;
            }
            self.read_units(&scan, start..units.min(start + interval), units)?;
        }
        Ok(())
    }

    /// Reads components, tables and coefficients of a scan, and records them.
    fn scan_header(&mut self) -> Result<Scan, JpegError> {
        let (at, segment) = self.segment()?;
        let wrong = |expected| damaged("scan header", at, expected);
        let (&count, rest) = segment.split_first().ok_or_else(|| wrong("the number of components"))?;
        let (parts, band) = rest.split_at_checked(2 * usize::from(count)).unwrap_or_default();
        let &[start, end, bits] = band else { return Err(wrong("two bytes for each component, and three more bytes")) };
        let band = self.band([start, end, bits >> 4, bits & 15]).ok_or_else(|| wrong("coefficients of this coding"))?;
        let low = if self.is_progressive { bits & 15 } else { 0 };
        let mut components = Vec::new();
        for part in parts.chunks_exact(2) {
            let index = self.components.iter().position(|component| component.id == part[0]);
            let index = index.ok_or_else(|| wrong("components of the frame"))?;
            let tables = [part[1] >> 4, part[1] & 15].map(usize::from);
            for (kind, is_needed) in band.tables().into_iter().enumerate() {
                if is_needed && !self.tables[kind].get(tables[kind]).is_some_and(Option::is_some) {
                    return Err(wrong("Huffman tables that the file has"));
                }
            }
            for lowest in &mut self.components[index].lowest[band.start as usize..=band.end as usize] {
                let is_next = match *lowest {
                    None => !matches!(band.coding, Coding::DcRefinement | Coding::AcRefinement),
                    Some(known) => {
                        matches!(band.coding, Coding::DcRefinement | Coding::AcRefinement) && known == low + 1
                    }
                };
                if !is_next {
                    return Err(wrong("every coefficient's bits once, from the highest on"));
                }
                *lowest = Some(low);
            }
            components.push((index, tables));
        }
        let is_ac = matches!(band.coding, Coding::AcFirst | Coding::AcRefinement);
        if components.is_empty() || is_ac && components.len() > 1 {
            return Err(wrong("one component, or several components with interleaved units"));
        }
        Ok(Scan { components, band })
    }

    /// Returns the coefficients of a scan from the last bytes of its header: the first and the last coefficient, and the lowest coded bit
    /// before and after the scan.
    fn band(&self, [start, end, high, low]: [u8; 4]) -> Option<Band> {
        if !self.is_progressive {
            // Encoders write other numbers here too; their values are ignored.
            return Some(Band { coding: Coding::Baseline, start: 0, end: 63 });
        }
        let is_valid = end <= 63 && low <= 13 && (high == 0 || high == low + 1);
        let coding = match (start, high) {
            _ if !is_valid || start > end || start == 0 && end > 0 => return None,
            (0, 0) => Coding::DcFirst,
            (0, _) => Coding::DcRefinement,
            (_, 0) => Coding::AcFirst,
            _ => Coding::AcRefinement,
        };
        Some(Band { coding, start: start.into(), end: end.into() })
    }

    /// Decodes units of a scan without a restart marker between them.
    fn read_units(&mut self, scan: &Scan, units: std::ops::Range<usize>, all: usize) -> Result<(), JpegError> {
        let mut blocks = Blocks { bits: Bits::new(self.bytes, self.position), run: 0 };
        let Self { components, tables, .. } = self;
        let is_single = scan.components.len() == 1;
        for unit in units.clone() {
            for &(index, [dc, ac]) in &scan.components {
                let tables = [tables[0].get(dc), tables[1].get(ac)].map(|table| table.and_then(Option::as_ref));
                let component = &mut components[index];
                let [across, down] = if is_single { [1, 1] } else { component.sampling };
                let in_row = if is_single { component.blocks[0] } else { component.stride / across };
                let first = unit / in_row * down * component.stride + unit % in_row * across;
                for block in 0..across * down {
                    let place = first + block / across * component.stride + block % across;
                    let passed = blocks.pass(&scan.band, tables, component.nonzero.get_mut(place));
                    match passed {
                        Ok(()) => {}
                        Err(CodeFault::End) => return Err(self.short(scan, all, unit)),
                        Err(CodeFault::Damaged(expected)) => {
                            return Err(JpegError::Damaged { scan: self.scans, unit, units: all, expected });
                        }
                    }
                }
            }
        }
        let end = blocks.bits.end().ok_or(JpegError::Long { scan: self.scans, units: units.end })?;
        if blocks.run > 0 {
            let expected = "a run of empty blocks that ends";
            return Err(JpegError::Damaged { scan: self.scans, unit: units.end - 1, units: all, expected });
        }
        self.position = end;
        Ok(())
    }

    /// Returns the error for data of a scan that ends before this unit.
    fn short(&self, scan: &Scan, expected: usize, found: usize) -> JpegError {
        let blocks = match scan.components[..] {
            [_] => 1,
            ref all => all.iter().map(|&(index, _)| self.components[index].sampling.iter().product::<usize>()).sum(),
        };
        JpegError::Short { scan: self.scans, blocks, expected, found }
    }

    /// Checks that no scan is missing, and returns the meaning of the values by the rules of libjpeg.
    fn finish(&self) -> Result<Colours, JpegError> {
        if self.components.is_empty() {
            return Err(damaged("end", self.position, "a picture before it"));
        }
        let is_incomplete = |component: &Component| component.lowest.iter().any(|lowest| *lowest != Some(0));
        if let Some(component) = self.components.iter().position(is_incomplete) {
            return Err(JpegError::Scans { component: component + 1 });
        }
        let ids: Vec<u8> = self.components.iter().map(|component| component.id).collect();
        match (&ids[..], self.adobe) {
            ([_], _) => Ok(Colours::Grey),
            ([_, _, _], _) if self.is_jfif => Ok(Colours::YCbCr),
            ([_, _, _], Some(0)) | ([b'R', b'G', b'B'], None) => Ok(Colours::Rgb),
            ([_, _, _], Some(1) | None) => Ok(Colours::YCbCr),
            ([_, _, _, _], Some(0)) => Ok(Colours::Cmyk),
            ([_, _, _, _], Some(2)) => Ok(Colours::Ycck),
            ([_, _, _, _], None) => {
                Err(kind("four colour channels without Adobe's marker, which defines their meaning"))
            }
            _ => Err(kind("colour channels whose meaning Adobe's marker does not define")),
        }
    }
}

#[cfg(test)]
mod tests;
