//! The processor that the binary was built for, and the one that it runs on.

/// Returns whether the processor lacks AVX2 and FMA although the build assumes them. Only integer arithmetic is used,
/// because compiled code for anything else may already need them.
#[cfg(target_arch = "x86_64")]
#[inline(never)]
pub(crate) fn lacks_basics() -> bool {
    use std::arch::x86_64::{__cpuid, __cpuid_count};
    const AVX_AND_FMA: u32 = 1 << 28 | 1 << 12;
    const AVX2: u32 = 1 << 5;
    cfg!(target_feature = "avx2")
        && (__cpuid(0).eax < 7 || __cpuid(1).ecx & AVX_AND_FMA != AVX_AND_FMA || __cpuid_count(7, 0).ebx & AVX2 == 0)
}

/// The error message for such a processor.
pub(crate) const LACKS_BASICS: &[u8] =
    b"error: this binary was built for processors with AVX2 and FMA, which this one lacks: build it on this machine \
      (docs/experiments.md)\n";

/// Reports missing features. Otherwise the first of these instructions would end the program without a message.
#[cfg(target_arch = "x86_64")]
pub(crate) fn check() -> Result<(), String> {
    // Asks the processor itself, because the standard library assumes the features of the build without checking.
    let processor = raw_cpuid::CpuId::new();
    let (basic, more) = (processor.get_feature_info(), processor.get_extended_feature_info());
    let extended = processor.get_extended_processor_and_feature_identifiers();
    let basic = |has: fn(&raw_cpuid::FeatureInfo) -> bool| basic.as_ref().is_some_and(has);
    let more = |has: fn(&raw_cpuid::ExtendedFeatures) -> bool| more.as_ref().is_some_and(has);
    let needed = [
        ("F16C", cfg!(target_feature = "f16c"), basic(|has| has.has_f16c())),
        ("MOVBE", cfg!(target_feature = "movbe"), basic(|has| has.has_movbe())),
        ("BMI1", cfg!(target_feature = "bmi1"), more(|has| has.has_bmi1())),
        ("BMI2", cfg!(target_feature = "bmi2"), more(|has| has.has_bmi2())),
        ("LZCNT", cfg!(target_feature = "lzcnt"), extended.as_ref().is_some_and(|has| has.has_lzcnt())),
        ("SHA", cfg!(target_feature = "sha"), more(|has| has.has_sha())),
        ("GFNI", cfg!(target_feature = "gfni"), more(|has| has.has_gfni())),
        ("VAES", cfg!(target_feature = "vaes"), more(|has| has.has_vaes())),
        ("VPCLMULQDQ", cfg!(target_feature = "vpclmulqdq"), more(|has| has.has_vpclmulqdq())),
        ("AVX-512CD", cfg!(target_feature = "avx512cd"), more(|has| has.has_avx512cd())),
        ("AVX-512IFMA", cfg!(target_feature = "avx512ifma"), more(|has| has.has_avx512_ifma())),
        ("AVX-512VBMI", cfg!(target_feature = "avx512vbmi"), more(|has| has.has_avx512vbmi())),
        ("AVX-512VBMI2", cfg!(target_feature = "avx512vbmi2"), more(|has| has.has_avx512vbmi2())),
        ("AVX-512BITALG", cfg!(target_feature = "avx512bitalg"), more(|has| has.has_avx512bitalg())),
        ("AVX-512VPOPCNTDQ", cfg!(target_feature = "avx512vpopcntdq"), more(|has| has.has_avx512vpopcntdq())),
        ("AVX-512FP16", cfg!(target_feature = "avx512fp16"), more(|has| has.has_avx512_fp16())),
        ("AVX-512F", cfg!(target_feature = "avx512f"), more(|has| has.has_avx512f())),
        ("AVX-512BW", cfg!(target_feature = "avx512bw"), more(|has| has.has_avx512bw())),
        ("AVX-512DQ", cfg!(target_feature = "avx512dq"), more(|has| has.has_avx512dq())),
        ("AVX-512VL", cfg!(target_feature = "avx512vl"), more(|has| has.has_avx512vl())),
        ("AVX-512VNNI", cfg!(target_feature = "avx512vnni"), more(|has| has.has_avx512vnni())),
        ("AVX-512BF16", cfg!(target_feature = "avx512bf16"), more(|has| has.has_avx512_bf16())),
    ];
    match needed.iter().find(|(_, is_needed, is_there)| *is_needed && !is_there) {
        Some((name, ..)) => Err(format!(
            "this binary was built for processors with {name}, which this one lacks: build it on this machine \
             (docs/experiments.md)"
        )),
        None => Ok(()),
    }
}

#[cfg(not(target_arch = "x86_64"))]
pub(crate) fn lacks_basics() -> bool {
    false
}

/// Other processors have only one build.
#[cfg(not(target_arch = "x86_64"))]
pub(crate) fn check() -> Result<(), String> {
    Ok(())
}
