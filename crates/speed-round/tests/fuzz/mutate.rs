//! Mutations of valid files.

use sha2::{Digest, Sha256};

/// Numbers that are often limits.
const EDGES: [u32; 14] = [0, 1, 2, 3, 7, 16, 127, 255, 256, 2048, 1 << 16, 1 << 20, i32::MAX as u32, u32::MAX];

/// Mutates valid inputs, deterministically.
pub(crate) struct Mutator<'a> {
    state: u64,
    inputs: &'a [Vec<u8>],
}

impl<'a> Mutator<'a> {
    pub(crate) fn new(seed: u64, inputs: &'a [Vec<u8>]) -> Self {
        Self { state: seed, inputs }
    }

    /// SplitMix64, which is good enough to choose places.
    fn random(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.state;
        z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ z >> 31
    }

    fn below(&mut self, bound: usize) -> usize {
        (self.random() % bound.max(1) as u64) as usize
    }

    /// Chooses a place, usually in the first 128 bytes, where the fields are.
    fn place(&mut self, length: usize) -> usize {
        if self.below(4) > 0 { self.below(length.min(128)) } else { self.below(length) }
    }

    /// Writes the next input: a valid one with one to four changes. If `sealed`, nine of ten get a matching checksum,
    /// so that the later checks are reached.
    pub(crate) fn next(&mut self, input: &mut Vec<u8>, sealed: bool) {
        input.clear();
        let base = self.below(self.inputs.len());
        input.extend_from_slice(&self.inputs[base]);
        for _ in 0..=self.below(4) {
            self.change(input);
        }
        if sealed && input.len() >= 16 && self.below(10) > 0 {
            let end = input.len() - 16;
            let digest = Sha256::digest(&input[..end]);
            input[end..].copy_from_slice(&digest[..16]);
        }
    }

    fn change(&mut self, input: &mut Vec<u8>) {
        let length = input.len();
        let place = self.place(length);
        match self.below(9) {
            0 if length > 0 => input[place] ^= 1 << self.below(8),
            1 if length > 0 => input[place] = self.random() as u8,
            2 | 3 if length >= 4 => {
                let place = place.min(length - 4) & !3;
                let value = EDGES[self.below(EDGES.len())];
                input[place..place + 4].copy_from_slice(&value.to_le_bytes());
            }
            4 if length >= 4 => {
                // Changes a field by one.
                let place = place.min(length - 4) & !3;
                let field = u32::from_le_bytes([input[place], input[place + 1], input[place + 2], input[place + 3]]);
                let value = if self.below(2) == 0 { field.wrapping_add(1) } else { field.wrapping_sub(1) };
                input[place..place + 4].copy_from_slice(&value.to_le_bytes());
            }
            5 => input.truncate(self.below(length + 1)),
            6 => {
                let more = self.below(64);
                input.extend(std::iter::repeat_n(self.random() as u8, more));
            }
            7 => {
                // Copies a piece of another input to the same place.
                let other = self.below(self.inputs.len());
                let inputs = self.inputs;
                let end = (place + self.below(200)).min(length).min(inputs[other].len());
                if place < end {
                    input[place..end].copy_from_slice(&inputs[other][place..end]);
                }
            }
            _ => {
                // Removes a piece.
                let end = (place + self.below(40)).min(length);
                input.drain(place..end);
            }
        }
    }
}
