/* Hides AVX-512 and tiles (AMX) from a program, so that its own code and all its libraries choose AVX2: CPUID is made to fault, and answers
 * without their bits. With -DTILES_ONLY, AVX-512 stays. For figures of processors without these units. Linux on x86-64 with CPUID faulting;
 * threads and child processes of `fork` inherit it.
 *
 *     cc -O1 -shared -fPIC -o hide-units.so hide-units.c && LD_PRELOAD=$PWD/hide-units.so PROGRAM
 */
#define _GNU_SOURCE
#include <cpuid.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

enum { ARCH_SET_CPUID = 0x1012 };

static void answer(int signal_number, siginfo_t *information, void *context) {
    (void)information;
    greg_t *registers = ((ucontext_t *)context)->uc_mcontext.gregs;
    if (memcmp((void *)registers[REG_RIP], "\x0f\xa2", 2) != 0) { /* not CPUID: a real fault, which repeats without this handler */
        signal(signal_number, SIG_DFL);
        return;
    }
    unsigned leaf = registers[REG_RAX], part = registers[REG_RCX], a, b, c, d;
    syscall(SYS_arch_prctl, ARCH_SET_CPUID, 1);
    __cpuid_count(leaf, part, a, b, c, d);
    syscall(SYS_arch_prctl, ARCH_SET_CPUID, 0);
    if (leaf == 7 && part == 0) {
        d &= ~(1u << 22 | 1u << 24 | 1u << 25); /* AMX-BF16, AMX-TILE, AMX-INT8 */
#ifndef TILES_ONLY
        b &= ~(bit_AVX512F | bit_AVX512DQ | bit_AVX512IFMA | 1u << 26 | 1u << 27 | bit_AVX512CD | bit_AVX512BW | bit_AVX512VL);
        c &= ~(bit_AVX512VBMI | bit_AVX512VBMI2 | bit_AVX512VNNI | bit_AVX512BITALG | bit_AVX512VPOPCNTDQ);
        d &= ~(1u << 2 | 1u << 3 | 1u << 8 | 1u << 23); /* 4VNNIW, 4FMAPS, VP2INTERSECT, FP16 */
#endif
    } else if (leaf == 7 && part == 1) {
        a &= ~(1u << 21); /* AMX-FP16 */
        d &= ~(1u << 8);  /* AMX-COMPLEX */
#ifndef TILES_ONLY
        a &= ~(1u << 5);  /* AVX512-BF16 */
        d &= ~(1u << 19); /* AVX10 */
#endif
    }
    registers[REG_RAX] = a;
    registers[REG_RBX] = b;
    registers[REG_RCX] = c;
    registers[REG_RDX] = d;
    registers[REG_RIP] += 2;
}

__attribute__((constructor)) static void hide(void) {
    struct sigaction action = {.sa_sigaction = answer, .sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER};
    sigaction(SIGSEGV, &action, NULL);
    if (syscall(SYS_arch_prctl, ARCH_SET_CPUID, 0) != 0) {
        perror("hide-units: this processor or kernel has no CPUID faulting");
        _exit(1);
    }
}
