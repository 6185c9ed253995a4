/* Hides AVX-512 and AMX from a program, so that its own code and all its libraries choose AVX2: CPUID is made to fault, and answers without
 * their bits. For figures of processors without AVX-512. Linux on x86-64 with CPUID faulting; threads and child processes of `fork` inherit it.
 *
 *     cc -O1 -shared -fPIC -o hide-avx512.so hide-avx512.c && LD_PRELOAD=$PWD/hide-avx512.so PROGRAM
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
        b &= ~(bit_AVX512F | bit_AVX512DQ | bit_AVX512IFMA | 1u << 26 | 1u << 27 | bit_AVX512CD | bit_AVX512BW | bit_AVX512VL);
        c &= ~(bit_AVX512VBMI | bit_AVX512VBMI2 | bit_AVX512VNNI | bit_AVX512BITALG | bit_AVX512VPOPCNTDQ);
        d &= ~(1u << 2 | 1u << 3 | 1u << 8 | 1u << 22 | 1u << 23 | 1u << 24 | 1u << 25); /* 4VNNIW, 4FMAPS, VP2INTERSECT, AMX, FP16 */
    } else if (leaf == 7 && part == 1) {
        a &= ~(1u << 5 | 1u << 21); /* AVX512-BF16, AMX-FP16 */
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
        perror("hide-avx512: this processor or kernel has no CPUID faulting");
        _exit(1);
    }
}
