#!/usr/bin/env python3
"""Compares the pixels of DICOM files of mixed kinds with pydicom's. Exits with 1 if a pixel differs by more than one level.

    pip install -r scripts/peers/dicom/requirements.txt
    python scripts/peers/dicom/compare.py [--files 1000] [--seed 1] [--program FILE]

pydicom writes the files and gives the reference: `pixel_array`, `apply_modality_lut`, `apply_voi_lut`, scaled to 0 to 255 by the range of
its output, and inverted for MONOCHROME1. Without a window the range is that of the picture. The other side is the example `pixels` of
speed-data; --program is its file, which is built without this option.
"""

import argparse
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path

import numpy as np
from pydicom.dataset import Dataset, FileMetaDataset
from pydicom.pixels import apply_modality_lut, apply_voi_lut
from pydicom.sequence import Sequence
from pydicom.uid import ExplicitVRLittleEndian, ImplicitVRLittleEndian, SecondaryCaptureImageStorage, generate_uid

ROOT = Path(__file__).resolve().parents[3]
# Rows and columns; some areas are odd.
SIZES = [(1, 1), (7, 5), (16, 16), (31, 20), (64, 48)]
BITS = [(8, 8), (8, 6), (16, 8), (16, 10), (16, 12), (16, 14), (16, 16)]


def described(draw, size, samples, bits, signed, photometric):
    data = Dataset()
    data.file_meta = FileMetaDataset()
    data.file_meta.TransferSyntaxUID = str(draw.choice([ExplicitVRLittleEndian, ImplicitVRLittleEndian]))
    data.SOPClassUID = data.file_meta.MediaStorageSOPClassUID = SecondaryCaptureImageStorage
    data.SOPInstanceUID = data.file_meta.MediaStorageSOPInstanceUID = generate_uid()
    data.PatientName, data.PatientID = "Example^Jane", "1"
    data.Rows, data.Columns = size
    data.SamplesPerPixel, data.PhotometricInterpretation = samples, photometric
    data.BitsAllocated, data.BitsStored = bits
    data.HighBit, data.PixelRepresentation = bits[1] - 1, int(signed)
    if draw.random() < 0.5:
        item, inner = Dataset(), Dataset()
        inner.Rows, item.ReferencedSOPInstanceUID = 3, generate_uid()
        item.PurposeOfReferenceCodeSequence = Sequence([inner] * int(draw.integers(3)))
        item.is_undefined_length_sequence_item = bool(draw.integers(2))
        data.ReferencedImageSequence = Sequence([item] * int(draw.integers(3)))
        data["ReferencedImageSequence"].is_undefined_length = bool(draw.integers(2))
    if draw.random() < 0.3:
        data.NumberOfFrames = 1
    return data


def grey(draw, size):
    bits = BITS[draw.integers(len(BITS))]
    signed = bool(draw.integers(2))
    data = described(draw, size, 1, bits, signed, str(draw.choice(["MONOCHROME1", "MONOCHROME2"])))
    low, high = (-(2 ** (bits[1] - 1)), 2 ** (bits[1] - 1)) if signed else (0, 2 ** bits[1])
    values = draw.integers(low, high, size)
    if draw.random() < 0.3:
        # A picture that uses a part of the range.
        values = low + (values - low) // 5
    unused = draw.integers(0, 2 ** (bits[0] - bits[1]), size) << bits[1]
    data.stored_bytes = ((values % 2 ** bits[1]) + unused).astype(f"<u{bits[0] // 8}").tobytes()
    kinds = [f"{bits[1]} of {bits[0]} bits", "signed" if signed else "unsigned", data.PhotometricInterpretation]
    slope, intercept = [(None, None), (1, -1024), (0.5, 3.25), (-2, 100)][draw.integers(4)]
    if slope is not None:
        data.RescaleSlope, data.RescaleIntercept = slope, intercept
        kinds.append("rescaled")
    scaled = sorted(value * (slope or 1) + (intercept or 0) for value in (low, high - 1))
    window = draw.integers(5)
    if window:
        center = round(float(draw.uniform(*scaled)), 2)
        width = max(1.0, round(float(draw.uniform(0.01, 1.2)) * (scaled[1] - scaled[0]), 2)) if window > 1 else 1.0
        several = draw.random() < 0.3
        data.WindowCenter, data.WindowWidth = ([center, 40], [width, 400]) if several else (center, width)
        if window == 4:
            data.VOILUTFunction = str(draw.choice(["LINEAR", "LINEAR_EXACT"]))
        kinds.append("window")
    return data, kinds


def colour(draw, size):
    data = described(draw, size, 3, (8, 8), False, "RGB")
    data.PlanarConfiguration = int(draw.integers(2))
    data.stored_bytes = draw.integers(0, 256, (*size, 3)).astype("u1").tobytes()
    return data, [f"RGB, planar configuration {data.PlanarConfiguration}"]


def write(data, path):
    pixels = data.stored_bytes
    del data.stored_bytes
    data.PixelData = pixels + b"\0" * (len(pixels) % 2)
    data["PixelData"].VR = "OB" if data.BitsAllocated == 8 else "OW"
    data.save_as(path, enforce_file_format=True)


def reference(data):
    """The levels of 0 to 255, channel by channel, before rounding."""
    values = data.pixel_array
    if data.SamplesPerPixel == 3:
        return values.transpose(2, 0, 1).astype(float)
    values = apply_modality_lut(values, data).astype(float)
    if "WindowWidth" in data:
        values = apply_voi_lut(values, data)
        signed = data.PixelRepresentation
        ends = np.array([-signed * 2 ** (data.BitsStored - 1), 2 ** (data.BitsStored - signed) - 1])
        least, largest = ends * float(data.get("RescaleSlope", 1)) + float(data.get("RescaleIntercept", 0))
    else:
        least, largest = values.min(), values.max()
    levels = np.zeros(values.shape) if least == largest else 255 * (values - least) / (largest - least)
    return 255 - levels if data.PhotometricInterpretation == "MONOCHROME1" else levels


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--files", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--program")
    options = parser.parse_args()
    draw = np.random.default_rng(options.seed)
    program = [options.program] if options.program else [
        "cargo", "run", "--quiet", "--release", "-p", "speed-data", "--features", "dicom", "--example", "pixels", "--"]
    expected, folders, kinds_of = {}, set(), Counter()
    with tempfile.TemporaryDirectory() as work:
        for number in range(options.files):
            size = SIZES[draw.integers(len(SIZES))]
            data, kinds = colour(draw, size) if draw.random() < 0.15 else grey(draw, size)
            # The program reads pictures of one size and one number of channels at a time.
            folder = Path(work, f"{size[0]}x{size[1]}-{'colour' if data.SamplesPerPixel == 3 else 'grey'}")
            folder.mkdir(exist_ok=True)
            folders.add(folder)
            # The name does not matter.
            path = folder / f"{number}{draw.choice(['', '.dcm', '.png', '.IMA'])}"
            write(data, path)
            expected[str(path)] = reference(data)
            kinds_of.update([*kinds, data.file_meta.TransferSyntaxUID.name])
        worst, equal, found = 0.0, 0, 0
        for folder in sorted(folders):
            run = subprocess.run([*program, folder, folder.name.rpartition("-")[2]], cwd=ROOT, capture_output=True, text=True)
            if run.returncode != 0:
                sys.exit(run.stderr)
            for line in run.stdout.splitlines():
                path, _, digits = line.rpartition(" ")
                levels = expected[path]
                pixels = np.frombuffer(bytes.fromhex(digits), "u1").reshape(levels.shape)
                # Rounding alone differs by half a level.
                worst = max(worst, float(np.abs(pixels - levels).max()))
                equal += bool((pixels == np.rint(levels)).all())
                found += 1
    for kind, count in sorted(kinds_of.items()):
        print(f"{count:5} {kind}")
    print(f"{found} of {options.files} files read, {equal} equal to pydicom's rounded pixels, largest difference {worst:.4f} levels before rounding")
    sys.exit(found != options.files or worst > 1)


if __name__ == "__main__":
    main()
