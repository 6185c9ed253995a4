//! The preparation of an encoder's pictures: from settings, or from a `preprocessor_config.json` as Hugging Face stores it.

use std::io::ErrorKind;
use std::path::Path;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use speed_core::{Digest, read_regular};

use crate::onnx::OnnxError;

/// The file beside a model that describes the preparation of its pictures.
const FILE: &str = "preprocessor_config.json";
/// Largest length of the file in bytes.
const MAX_FILE: u64 = 1 << 20;
/// The smallest and the largest height or width of a picture.
const SIDES: [usize; 2] = [8, 1024];
/// The largest absolute value of a mean, a deviation or a factor; the smallest deviation is its inverse.
const MAX_NUMBER: f64 = 1e4;
/// Steps that change pixels in ways that no mean and deviation express.
const UNKNOWN_STEPS: [&str; 4] = ["do_flip_channel_order", "include_top", "offset", "rescale_offset"];

/// The token whose vector stands for a picture, if a model gives several.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum TokenPool {
    /// The first token, where many vision transformers collect the picture.
    First,
    /// The mean of all tokens.
    Mean,
}

/// Settings of an encoder. Without them, they come from a `preprocessor_config.json` beside the model, or else from the
/// model.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct EncoderSettings {
    /// Height and width of the pictures, for models that leave them open.
    pub size: Option<[usize; 2]>,
    /// The mean of each channel, with pixels from 0 to 1; empty for the default.
    pub mean: Vec<f32>,
    /// The standard deviation of each channel, with pixels from 0 to 1; empty for the default.
    pub deviation: Vec<f32>,
    /// The token whose vector stands for a picture, for models that give several.
    pub pool: Option<TokenPool>,
    /// Whether a picture's features are those of the picture plus those of its mirror image.
    pub mirror: bool,
}

/// The preparation of an encoder's pictures and of its vectors, complete. The model reads `(byte / 255 - mean) / deviation`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EncoderPreparation {
    /// Height and width.
    pub size: [usize; 2],
    /// The mean of each channel; 0 for models that read bytes.
    pub mean: Vec<f32>,
    /// The standard deviation of each channel; 1 for models that read bytes.
    pub deviation: Vec<f32>,
    /// The token whose vector stands for a picture; none for models that give one vector.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pool: Option<TokenPool>,
    /// Whether a picture's features are those of the picture plus those of its mirror image.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub mirror: bool,
}

impl EncoderPreparation {
    /// Returns the settings that repeat this preparation, whatever is beside the model.
    pub fn settings(&self) -> EncoderSettings {
        let Self { size, mean, deviation, pool, mirror } = self.clone();
        EncoderSettings { size: Some(size), mean, deviation, pool, mirror }
    }

    /// Checks a preparation of a file.
    ///
    /// # Errors
    /// If no encoder has this size, mean or deviation.
    pub fn check(&self) -> Result<(), OnnxError> {
        if self.mean.is_empty() {
            return Err(OnnxError::form("a mean and a deviation for each channel", "none"));
        }
        self.settings().check()
    }

    pub(crate) fn digest(&self) -> Digest {
        let Self { size: [height, width], mean, deviation, pool, mirror } = self;
        let mut bytes: Vec<u8> = [*height, *width, mean.len()].iter().flat_map(|&n| (n as u64).to_le_bytes()).collect();
        bytes.extend(mean.iter().chain(deviation).flat_map(|value| value.to_le_bytes()));
        bytes.push(match pool {
            None => 0,
            Some(TokenPool::First) => 1,
            Some(TokenPool::Mean) => 2,
        });
        bytes.push(u8::from(*mirror));
        Digest::of(bytes)
    }
}

/// Returns the height and the width if they are allowed.
pub(crate) fn checked_size(size: [usize; 2]) -> Result<[usize; 2], OnnxError> {
    let [min, max] = SIDES;
    if size.iter().all(|side| (min..=max).contains(side)) {
        return Ok(size);
    }
    let [height, width] = size;
    let expected = format!("pictures of {min} to {max} pixels in height and width");
    Err(OnnxError::form(expected, format!("{height} x {width}: give the encoder another size, or export it with one")))
}

impl EncoderSettings {
    /// Returns these settings, completed from the file in a model's directory.
    pub(crate) fn completed(&self, directory: &Path) -> Result<Self, OnnxError> {
        self.check()?;
        if !self.mean.is_empty() && self.size.is_some() {
            return Ok(self.clone());
        }
        let path = directory.join(FILE);
        let bytes = match read_regular(&path, MAX_FILE) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(self.clone()),
            Err(error) => return Err(OnnxError::unreadable(&path, error)),
        };
        let stored = stored(&bytes)?;
        let mut settings = self.clone();
        settings.size = settings.size.or(stored.size);
        if settings.mean.is_empty() {
            (settings.mean, settings.deviation) = (stored.mean, stored.deviation);
        }
        settings.check()?;
        Ok(settings)
    }

    fn check(&self) -> Result<(), OnnxError> {
        self.size.map_or(Ok([0; 2]), checked_size)?;
        let Self { mean, deviation, .. } = self;
        if mean.len() != deviation.len() || !matches!(mean.len(), 0 | 1 | 3) {
            let found = format!("{} and {}: give both or none", mean.len(), deviation.len());
            return Err(OnnxError::form("a mean and a deviation for each channel, or one for all", found));
        }
        let wrong_mean = mean.iter().find(|mean| mean.is_nan() || mean.abs() > MAX_NUMBER as f32);
        let is_deviation = |value: f32| (MAX_NUMBER.recip() as f32..=MAX_NUMBER as f32).contains(&value);
        let wrong = wrong_mean.or_else(|| deviation.iter().find(|&&deviation| !is_deviation(deviation)));
        wrong.map_or(Ok(()), |found| {
            let expected =
                format!("means of at most {MAX_NUMBER} and deviations of {} to {MAX_NUMBER}", 1.0 / MAX_NUMBER);
            Err(OnnxError::form(expected, format!("{found}: give them for pixels from 0 to 1")))
        })
    }

    pub(crate) fn of_channels(&self, channels: usize) -> Result<[Vec<f32>; 2], OnnxError> {
        let Self { mean, deviation, .. } = self;
        match mean.len() {
            0 => Ok([vec![0.0; channels], vec![1.0; channels]]),
            1 => Ok([mean.repeat(channels), deviation.repeat(channels)]),
            found if found == channels => Ok([mean.clone(), deviation.clone()]),
            found => {
                let expected = format!("means and deviations of {channels} channels");
                Err(OnnxError::form(expected, format!("{found}: give one for each channel of the encoder")))
            }
        }
    }
}

/// Returns the settings in the bytes of a `preprocessor_config.json`.
fn stored(bytes: &[u8]) -> Result<EncoderSettings, OnnxError> {
    let fault = |expected: &str, found: &str| {
        let found = format!("{found}: give the encoder's size, mean and deviation yourself, or remove the file");
        OnnxError::form(format!("{expected} in {FILE}"), found)
    };
    let config: Value = serde_json::from_slice(bytes).map_err(|error| fault("JSON", &error.to_string()))?;
    let config = config.as_object().ok_or_else(|| fault("an object", "another value"))?;
    let value = |key: &str| config.get(key).filter(|value| !value.is_null());
    let flag = |key: &str, default: bool| match value(key) {
        None => Ok(default),
        Some(Value::Bool(flag)) => Ok(*flag),
        Some(other) => Err(fault(&format!("{key} of true or false"), &shown(other))),
    };
    for step in UNKNOWN_STEPS {
        if flag(step, false)? {
            return Err(fault("steps that a mean and a deviation express", step));
        }
    }
    let number = |key: &str, value: &Value| {
        let found = value.as_f64().filter(|number| number.abs() <= MAX_NUMBER);
        found.ok_or_else(|| fault(&format!("{key} of finite numbers of at most {MAX_NUMBER}"), &shown(value)))
    };
    // The model reads factor * byte, less a mean.
    let factor = match value("rescale_factor") {
        _ if !flag("do_rescale", true)? => 1.0,
        None => 1.0 / 255.0,
        Some(factor) => number("rescale_factor", factor)?,
    };
    let numbers = |key: &str, default: f64| match value(key) {
        _ if !flag("do_normalize", true)? => Ok(vec![default]),
        None => Err(fault(&format!("{key} beside do_normalize"), "none")),
        Some(Value::Array(list)) if list.len() == 1 || list.len() == 3 => {
            list.iter().map(|value| number(key, value)).collect::<Result<Vec<f64>, _>>()
        }
        Some(Value::Number(one)) => Ok(vec![number(key, &Value::Number(one.clone()))?]),
        Some(other) => Err(fault(&format!("{key} of one number for each channel"), &shown(other))),
    };
    let [mut mean, mut deviation] = [numbers("image_mean", 0.0)?, numbers("image_std", 1.0)?];
    let channels = mean.len().max(deviation.len());
    for list in [&mut mean, &mut deviation] {
        if list.len() == 1 {
            *list = list.repeat(channels);
        }
        list.iter_mut().for_each(|value| *value /= 255.0 * factor);
    }
    let is_cropped = flag("do_center_crop", true)?;
    let crop = value("crop_size").filter(|_| is_cropped);
    let size = crop.map(|size| ("crop_size", size)).or_else(|| value("size").map(|size| ("size", size)));
    let size = size.map(|(key, size)| {
        side(size)
            .ok_or_else(|| fault(&format!("{key} of a number, of height and width, or of shortest_edge"), &shown(size)))
    });
    let reals = |list: Vec<f64>| list.into_iter().map(|value| value as f32).collect();
    let [mean, deviation] = [mean, deviation].map(reals);
    Ok(EncoderSettings { size: size.transpose()?, mean, deviation, ..EncoderSettings::default() })
}

fn side(value: &Value) -> Option<[usize; 2]> {
    let number = |value: &Value| value.as_u64().and_then(|side| usize::try_from(side).ok());
    match value {
        Value::Object(sides) => match (sides.get("height"), sides.get("width"), sides.get("shortest_edge")) {
            (Some(height), Some(width), _) => Some([number(height)?, number(width)?]),
            (None, None, Some(edge)) => Some([number(edge)?; 2]),
            _ => None,
        },
        Value::Array(sides) => match &sides[..] {
            [height, width] => Some([number(height)?, number(width)?]),
            _ => None,
        },
        one => Some([number(one)?; 2]),
    }
}

fn shown(value: &Value) -> String {
    value.to_string().chars().take(80).collect()
}
