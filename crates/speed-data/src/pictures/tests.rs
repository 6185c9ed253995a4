//! Directories of pictures, valid and with faults.

use std::fs;

use image::{Rgb, RgbImage};
use tempfile::TempDir;

use super::*;

const COLOUR: Reading = Reading { size: None, least_side: 1, is_colour: true, max_values: 1000 };

fn picture(folder: &TempDir, name: &str, [width, height]: [u32; 2], colour: [u8; 3]) {
    let path = folder.path().join(name);
    fs::create_dir_all(path.parent().expect("a folder")).expect("folders");
    RgbImage::from_pixel(width, height, Rgb(colour)).save(path).expect("a picture");
}

/// Returns a directory with two classes of pictures, 4 wide and 3 high.
fn folder() -> TempDir {
    let folder = tempfile::tempdir().expect("a temporary folder");
    for (name, colour) in [
        ("train/dog/1.png", [10, 20, 30]),
        ("train/dog/2.PNG", [11, 20, 30]),
        ("train/cat/1.png", [12, 20, 30]),
        ("test/dog/9.png", [13, 20, 30]),
        ("test/cat/9.png", [14, 20, 30]),
    ] {
        picture(&folder, name, [4, 3], colour);
    }
    fs::write(folder.path().join("train/dog/notes.txt"), "no picture").expect("a file");
    fs::write(folder.path().join("train/.hidden"), "").expect("a file");
    folder
}

fn refused(folder: &TempDir, words: &str) {
    let text = load(folder.path(), COLOUR).expect_err("refused").to_string();
    assert!(text.contains(words), "{words:?} is not in {text:?}");
}

#[test]
fn classes_are_folders_in_order_and_pictures_are_mixed() {
    let data = load(folder().path(), COLOUR).unwrap_or_else(|error| panic!("{error}")).dataset;
    assert_eq!(data.train.shape(), ImageShape { channels: 3, height: 3, width: 4 });
    assert_eq!((data.train.len(), data.test.len(), data.train.classes()), (3, 2, 2));
    for image in 0..3 {
        let pixels = data.train.pixels(image);
        // The cat's red is 12.
        assert_eq!(data.train.label(image) == 0, pixels[0] == 12);
        assert!(pixels[12..24].iter().all(|green| *green == 20) && pixels[24..].iter().all(|blue| *blue == 30));
    }
    assert_eq!(
        [0, 1].map(|image| usize::from(data.test.pixels(image)[0])),
        [0, 1].map(|image| 14 - usize::from(data.test.label(image)))
    );
    let grey =
        load(folder().path(), Reading { is_colour: false, ..COLOUR }).unwrap_or_else(|error| panic!("{error}")).dataset;
    assert_eq!(grey.train.shape().channels, 1);
}

#[test]
fn public_pictures_without_labels_come_before_the_test_pictures() {
    let folder = folder();
    for (name, red) in [("public/b.png", 2), ("public/a/2.png", 1), ("public/a/1.png", 0)] {
        picture(&folder, name, [4, 3], [red, 20, 30]);
    }
    fs::write(folder.path().join("public/list.csv"), "name").expect("a file");
    let load = || load_with_public(folder.path(), COLOUR);
    let found = load().unwrap_or_else(|error| panic!("{error}"));
    let test = &found.dataset.test;
    assert_eq!((found.unlabelled, test.len()), (3, 5));
    assert_eq!([0, 1, 2].map(|image| (test.pixels(image)[0], test.label(image))), [(0, 0), (1, 0), (2, 0)]);
    assert!([3, 4].iter().all(|&image| test.pixels(image)[0] == 14 - test.label(image)), "the test pictures");
    assert_eq!(found.passed_over.expect("notes").count, 2);
    fs::remove_dir_all(folder.path().join("test/dog")).expect("a folder");
    assert!(load().expect_err("refused").to_string().contains("class \"dog\" of the training pictures has none"));
    fs::remove_dir_all(folder.path().join("test")).expect("a folder");
    let found = load().unwrap_or_else(|error| panic!("{error}"));
    assert_eq!((found.unlabelled, found.dataset.test.len(), found.dataset.test.classes()), (3, 3, 2));
    picture(&folder, "public/c.png", [3, 4], [1, 2, 3]);
    assert!(load().expect_err("refused").to_string().contains("c.png: expected 3x4"));
    fs::remove_dir_all(folder.path().join("public")).expect("a folder");
    assert!(load().expect_err("refused").to_string().contains("public"));
}

#[test]
fn other_sizes_are_refused_or_resized() {
    let folder = folder();
    picture(&folder, "train/cat/2.png", [5, 3], [1, 2, 3]);
    refused(&folder, "expected 3x4 like the other pictures, found 3x5");
    let size = Some(Size { height: 6, width: 2 });
    let data = load(folder.path(), Reading { size, ..COLOUR }).unwrap_or_else(|error| panic!("{error}")).dataset;
    assert_eq!(data.train.shape(), ImageShape { channels: 3, height: 6, width: 2 });
}

#[test]
fn invalid_datasets_of_pictures_are_refused_by_name() {
    let empty = tempfile::tempdir().expect("a temporary folder");
    let error = load(empty.path(), COLOUR).expect_err("empty").to_string();
    assert!(error.starts_with("cannot read"), "{error}");
    let folder = folder();
    fs::write(folder.path().join("train/cat/3.jpg"), "no picture").expect("a file");
    refused(&folder, "3.jpg: cannot be read as a PNG or JPEG picture");
    fs::remove_file(folder.path().join("train/cat/3.jpg")).expect("a file");
    picture(&folder, "test/cow/1.png", [4, 3], [1, 2, 3]);
    refused(&folder, "cow: expected a class of the training pictures");
    fs::remove_dir_all(folder.path().join("test/cow")).expect("a folder");
    fs::create_dir(folder.path().join("train/ant")).expect("a folder");
    refused(&folder, "class \"ant\" of the training pictures has none");
    fs::create_dir(folder.path().join("test/ant")).expect("a folder");
    refused(&folder, &format!("ant: {EMPTY}"));
    for half in ["train", "test"] {
        fs::remove_dir(folder.path().join(half).join("ant")).expect("a folder");
    }
    // Files that must not be skipped silently.
    fs::write(folder.path().join("train/loose"), include_bytes!("fixtures/turned.jpg")).expect("a file");
    refused(&folder, "loose: expected one folder for each class, found a picture outside of them");
    fs::remove_file(folder.path().join("train/loose")).expect("a file");
    fs::write(folder.path().join("train/cat/4.webp"), "a picture").expect("a file");
    refused(&folder, &format!("4.webp: {}", not_read("a picture in another format")));
    fs::remove_file(folder.path().join("train/cat/4.webp")).expect("a file");
    fs::create_dir(folder.path().join("train/cat/more")).expect("a folder");
    refused(&folder, &format!("more: {}", not_read("a folder")));
    fs::remove_dir(folder.path().join("train/cat/more")).expect("a folder");
    for half in ["train", "test"] {
        fs::remove_dir_all(folder.path().join(half).join("dog")).expect("a folder");
    }
    refused(&folder, "2 to 256 classes, found 1");
}

#[test]
fn photographs_are_refused_at_the_first_one_and_names_are_shown_safely() {
    let folder = folder();
    picture(&folder, "train/cat/0\u{1b}[31m\nforged.png", [40, 30], [1, 2, 3]);
    let text = load(folder.path(), Reading { max_values: 30, ..COLOUR }).expect_err("too large").to_string();
    assert!(text.contains("expected at most 30 values") && text.contains("data.size"), "{text}");
    let text = load(folder.path(), COLOUR).expect_err("too large").to_string();
    assert!(text.contains("0\\u{1b}[31m\\u{a}forged.png") && !text.contains(char::is_control), "{text}");
}

#[test]
fn a_picture_of_a_huge_size_is_not_unpacked() {
    let folder = folder();
    let path = folder.path().join("train/cat/1.png");
    let mut bytes = fs::read(&path).expect("a picture");
    // Changes width and height in the header, and so invalidates its checksum too; either fault may be reported.
    bytes[16..24].copy_from_slice(&[0x40, 0, 0, 0, 0x40, 0, 0, 0]);
    fs::write(&path, bytes).expect("a file");
    let text = load(folder.path(), COLOUR).expect_err("refused").to_string();
    assert!(
        text.contains("1.png: expected a picture of at most 10000") || text.contains("1.png: cannot be read"),
        "{text}"
    );
}

#[test]
fn sizes_are_written_height_first() {
    let size = |text: &str| text.parse::<Size>();
    assert_eq!(size("32x20").expect("a size"), Size { height: 32, width: 20 });
    for text in ["32", "0x3", "x", "3x10001", "-1x3", "axb", "3x4x5"] {
        assert!(size(text).is_err(), "{text}");
    }
}

#[test]
fn other_files_are_counted_and_the_first_is_named() {
    let folder = folder();
    let passed_over = || load(folder.path(), COLOUR).expect("pictures").passed_over;
    let found = passed_over().expect("notes");
    assert_eq!((found.count, found.hidden), (1, 1));
    assert_eq!(found.first, folder.path().join("train/dog/notes.txt"));
    assert!(found.to_string().contains("1 file is not read as a picture and was passed over: "), "{found}");
    fs::write(folder.path().join("test/labels.csv"), "1,2").expect("a file");
    fs::write(folder.path().join("train/dog/.DS_Store"), "").expect("a file");
    let found = passed_over().expect("notes");
    assert_eq!((found.count, found.hidden, found.first), (2, 2, folder.path().join("test/labels.csv")));
    for name in ["test/labels.csv", "train/dog/notes.txt"] {
        fs::remove_file(folder.path().join(name)).expect("a file");
    }
    // Files of an operating system alone are not reported.
    assert_eq!(passed_over(), None);
}

#[test]
fn pictures_are_decoded_as_other_programs_decode_them() {
    let decode = |bytes: &[u8]| decode::decode(bytes.to_vec()).unwrap_or_else(|problem| panic!("{problem}")).to_rgb8();
    // Pixels as decoded by Pillow 13.
    for (bytes, [at_3_5, at_11_6]) in [
        (&include_bytes!("fixtures/baseline.jpg")[..], [[215, 185, 37], [130, 214, 74]]),
        (include_bytes!("fixtures/restarts.jpg"), [[219, 183, 33], [135, 211, 77]]),
        (include_bytes!("fixtures/progressive.jpg"), [[215, 185, 37], [130, 214, 74]]),
        (include_bytes!("fixtures/progressive-restarts.jpg"), [[211, 183, 24], [132, 211, 68]]),
        (include_bytes!("fixtures/grey.jpg"), [[177; 3], [173; 3]]),
        (include_bytes!("fixtures/rgb.jpg"), [[209, 182, 28], [129, 215, 76]]),
        (include_bytes!("fixtures/cmyk-adobe.jpg"), [[200, 50, 50]; 2]),
    ] {
        let picture = decode(bytes);
        for ((x, y), expected) in [((3, 5), at_3_5), ((11, 6), at_11_6)] {
            let found = picture.get_pixel(x, y).0;
            let is_close =
                found.iter().zip(expected).all(|(&found, expected)| i32::abs_diff(found.into(), expected) <= 3);
            assert!(is_close, "{x}, {y}: expected {expected:?}, found {found:?}");
        }
    }
    // The same values as luminance, colour differences and black.
    let mut ycck = include_bytes!("fixtures/cmyk-adobe.jpg").to_vec();
    let adobe = ycck.windows(5).position(|bytes| bytes == b"Adobe").expect("a marker");
    ycck[adobe + 11] = 2;
    let found = decode(&ycck).get_pixel(3, 5).0;
    assert!(
        found.iter().zip([164, 0, 193]).all(|(&found, expected)| i32::abs_diff(found.into(), expected) <= 3),
        "{found:?}"
    );
    // The dark half is at the top after a rotation to the right.
    let turned = decode(include_bytes!("fixtures/turned.jpg"));
    assert_eq!((turned.width(), turned.height()), (8, 16));
    assert!(turned.get_pixel(3, 2).0[0] < 20 && turned.get_pixel(3, 13).0[0] > 230);
}

#[test]
fn cut_pictures_are_refused_by_name() {
    let folder = folder();
    let path = folder.path().join("train/cat/1.png");
    let png = fs::read(&path).expect("a picture");
    for cut in 0..png.len() {
        fs::write(&path, &png[..cut]).expect("a file");
        refused(&folder, "1.png: ");
    }
}

#[test]
fn pictures_of_16_bits_that_use_few_of_them_are_refused() {
    let folder = folder();
    let path = folder.path().join("train/dog/deep.png");
    let deep = |largest: u16| {
        let picture = image::ImageBuffer::from_fn(4, 3, |x, _| image::Luma([largest * u16::from(x == 1)]));
        image::DynamicImage::ImageLuma16(picture).save(&path).expect("a picture");
        load(folder.path(), Reading { is_colour: false, ..COLOUR })
    };
    let error = deep(4095).expect_err("12 bits").to_string();
    assert!(error.contains("deep.png") && error.contains("4095 of 65535"), "{error}");
    assert!(deep(65_534).is_ok() && deep(0).is_ok());
}

#[test]
fn given_classes_fix_the_labels_and_may_be_empty() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    ["dog/1.png", "cat/1.png", "cat/2.png"].iter().for_each(|name| picture(&folder, name, [3, 2], [7; 3]));
    let load = |classes: Option<&[String]>| load_labelled(folder.path(), COLOUR, classes).expect("pictures");
    let refused = |classes: Option<&[&str]>| {
        let classes = classes.map(|classes| classes.iter().map(|class| (*class).to_owned()).collect::<Vec<_>>());
        load_labelled(folder.path(), COLOUR, classes.as_deref()).expect_err("refused").to_string()
    };
    let found = load(None);
    assert_eq!((found.class_names.join(" "), found.images.len(), found.empty.len()), ("cat dog".to_owned(), 3, 0));
    let classes = ["owl", "dog", "cat"].map(str::to_owned);
    let given = load(Some(&classes));
    assert_eq!((&given.class_names[..], &given.empty[..]), (&classes[..], &["owl".to_owned()][..]));
    for (image, file) in given.files.iter().enumerate() {
        let class = &classes[usize::from(given.images.label(image))];
        assert!(file.starts_with(folder.path().join(class)), "{}", file.display());
    }
    assert_eq!(given.files, found.files, "the order does not depend on the classes");
    let text = refused(Some(&["cat", "owl"]));
    assert!(text.contains("dog") && text.contains("cat, owl"), "{text}");
    assert!(refused(Some(&["cat"])).contains("dog"));
    fs::create_dir(folder.path().join("owl")).expect("a folder");
    assert!(refused(None).contains("found none"));
    assert_eq!(load(Some(&classes)).empty, ["owl"]);
}

#[test]
fn pictures_without_labels_keep_the_order_of_their_names() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    (0..).zip(["b.png", "a/2.png", "a/1.png"]).for_each(|(red, name)| picture(&folder, name, [3, 2], [red, 0, 0]));
    let found = load_unlabelled(folder.path(), COLOUR, 4).expect("pictures");
    assert_eq!(found.files, ["a/1.png", "a/2.png", "b.png"].map(|name| folder.path().join(name)));
    assert_eq!((found.images.pixels(0)[0], found.images.classes()), (2, 4));
}
