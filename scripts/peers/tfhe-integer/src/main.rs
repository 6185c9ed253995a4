//! The argmax of ten encrypted counts with tfhe's high-level integers: a tournament on `FheInt12`, for
//! `scripts/bench-argmax`. Prints one line of JSON.
//!
//! `tfhe-integer [QUERIES]`. The counts are encrypted directly, so the time excludes the sum of 250 votes and the
//! expansion of their messages, which are both costly here.

use std::error::Error;

use tfhe::prelude::*;
use tfhe::safe_serialization::safe_serialized_size;
use tfhe::shortint::parameters::{
    PARAM_KEYSWITCH_MESSAGE_2_CARRY_2_KS_PBS_TUNIFORM_2M128 as MESSAGE_KEY_SWITCH,
    PARAM_MESSAGE_2_CARRY_2_KS_PBS_TUNIFORM_2M128 as PARAMETERS,
    PARAM_PKE_MESSAGE_2_CARRY_2_KS_PBS_TUNIFORM_2M128 as MESSAGE_KEY,
};
use tfhe::{
    ClientKey, CompactCiphertextList, CompactPublicKey, CompressedServerKey, ConfigBuilder, FheInt12, FheUint4,
    set_server_key,
};

const CLASSES: usize = 10;

fn main() -> Result<(), Box<dyn Error>> {
    let queries: usize = std::env::args().nth(1).map_or(Ok(2), |text| text.parse())?;
    let config = ConfigBuilder::with_custom_parameters(PARAMETERS)
        .use_dedicated_compact_public_key_parameters((MESSAGE_KEY, MESSAGE_KEY_SWITCH))
        .build();
    let start = processor_seconds()?;
    let client_key = ClientKey::generate(config);
    let compressed = CompressedServerKey::new(&client_key);
    let server_key = compressed.decompress();
    let key_seconds = processor_seconds()? - start;
    let key_bytes = safe_serialized_size(&compressed)?;
    // Apart from headers, the serialised expanded key has the same size as the key in memory.
    let key_memory_bytes = safe_serialized_size(&server_key)?;
    drop(compressed);
    set_server_key(server_key);

    let public_key = CompactPublicKey::new(&client_key);
    let public_key_bytes = safe_serialized_size(&public_key)?;
    let message_bytes = [1, 100].map(|queries| {
        let mut message = CompactCiphertextList::builder(&public_key);
        message.extend((0..queries).flat_map(counts));
        safe_serialized_size(&message.build_packed())
    });
    let [message_bytes_1, message_bytes_100] = message_bytes;
    let (message_bytes_1, message_bytes_100) = (message_bytes_1?, message_bytes_100?);

    let (mut seconds, mut agree) = (0.0, 0);
    for query in 0..queries {
        let counts = counts(query);
        let encrypted: Vec<FheInt12> = counts.iter().map(|&count| FheInt12::encrypt(count, &client_key)).collect();
        let start = processor_seconds()?;
        let winner = tournament(encrypted);
        seconds += processor_seconds()? - start;
        let winner: u8 = winner.decrypt(&client_key);
        let highest = counts.iter().max();
        agree += usize::from(counts.iter().position(|count| Some(count) == highest) == Some(winner.into()));
    }
    println!(
        "{{\"parameters\":\"PARAM_MESSAGE_2_CARRY_2_KS_PBS_TUNIFORM_2M128\",\"queries\":{queries},\"agree\":{agree},\
         \"core_seconds_per_query\":{},\"key_core_seconds\":{key_seconds},\
         \"message_bytes\":{{\"1\":{message_bytes_1},\"100\":{message_bytes_100}}},\
         \"public_key_bytes\":{public_key_bytes},\"evaluation_key_bytes\":{key_bytes},\
         \"evaluation_key_memory_bytes\":{key_memory_bytes},\"peak_memory_bytes\":{}}}",
        seconds / queries as f64,
        peak_memory_bytes()?
    );
    Ok(())
}

/// Returns the class with the highest count, and on a tie the lowest class.
fn tournament(counts: Vec<FheInt12>) -> FheUint4 {
    let mut left: Vec<(FheInt12, FheUint4)> =
        counts.into_iter().zip((0u8..).map(FheUint4::encrypt_trivial)).collect();
    while left.len() > 1 {
        left = left
            .chunks(2)
            .map(|pair| match pair {
                [(a, a_class), (b, b_class)] => {
                    let later = b.gt(a);
                    (later.if_then_else(b, a), later.if_then_else(b_class, a_class))
                }
                rest => rest[0].clone(),
            })
            .collect();
    }
    left.swap_remove(0).1
}

/// Returns counts that differ between queries. The time does not depend on them.
fn counts(query: usize) -> [i16; CLASSES] {
    std::array::from_fn(|class| ((query * 7919 + class * 4093 + class * class * 257) % 400) as i16 - 150)
}

/// Returns the processor time of all threads of this process so far, in seconds (Linux).
fn processor_seconds() -> Result<f64, Box<dyn Error>> {
    let stat = std::fs::read_to_string("/proc/self/stat")?;
    // Fields 14 and 15, counted from 1, in hundredths of a second. The second field may contain spaces but ends with a bracket.
    let fields: Vec<&str> = stat.rsplit_once(')').ok_or("unreadable /proc/self/stat")?.1.split_whitespace().collect();
    let ticks = fields.get(11).zip(fields.get(12)).ok_or("short /proc/self/stat")?;
    Ok((ticks.0.parse::<f64>()? + ticks.1.parse::<f64>()?) / 100.0)
}

/// Returns the peak memory of this process so far (Linux).
fn peak_memory_bytes() -> Result<u64, Box<dyn Error>> {
    let status = std::fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).ok_or("no VmHWM in /proc/self/status")?;
    Ok(1024 * line.trim().trim_end_matches(" kB").parse::<u64>()?)
}
