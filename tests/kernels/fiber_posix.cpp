// Fibers for x86-64 Linux: a switch saves the registers that a call preserves on the stack and changes stacks.

#include <sys/mman.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>

#include "tests/kernels/fiber.h"

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#define HR_ASAN 1
#endif

// headroom_switch_stack(save, load): pushes the registers, stores the stack pointer in *save, takes the one of load, pops and returns there.
extern "C" void headroom_switch_stack(void** save, void* load);
asm(R"(
.text
.globl headroom_switch_stack
.type headroom_switch_stack, @function
headroom_switch_stack:
    pushq %rbp
    pushq %rbx
    pushq %r12
    pushq %r13
    pushq %r14
    pushq %r15
    movq %rsp, (%rdi)
    movq %rsi, %rsp
    popq %r15
    popq %r14
    popq %r13
    popq %r12
    popq %rbx
    popq %rbp
    ret
.size headroom_switch_stack, . - headroom_switch_stack
)");

namespace headroom::test {

struct Fiber::Context {
    void (*body)() = nullptr;
    char* stack = nullptr;
    void* inside = nullptr;   // the stack pointer of the fiber while it does not run
    void* outside = nullptr;  // that of whoever resumed it, while it runs
#ifdef HR_ASAN
    void* inside_fake = nullptr;
    void* outside_fake = nullptr;
    const void* outside_bottom = nullptr;
    std::size_t outside_size = 0;
#endif
};

namespace {

Fiber::Context* starting = nullptr;

void entered([[maybe_unused]] Fiber::Context& c) {
#ifdef HR_ASAN
    __sanitizer_finish_switch_fiber(c.inside_fake, &c.outside_bottom, &c.outside_size);
#endif
}

void begin() {
    auto& c = *starting;
    entered(c);
    c.body();
    std::abort();  // a body must not return
}

}  // namespace

Fiber::Fiber(void (*body)()) : context_(std::make_unique<Context>()) {
    auto& c = *context_;
    c.body = body;
    // The lowest page stays without access: an overflow crashes.
    constexpr std::size_t guard = 4096;
    void* memory = ::mmap(nullptr, kStackBytes + guard, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED || ::mprotect(memory, guard, PROT_NONE) != 0) {
        std::fputs("no memory for a fiber's stack\n", stderr);
        std::abort();
    }
    c.stack = static_cast<char*>(memory);
    // As if it had switched away at the start of begin(), whose stack pointer is 8 below a multiple of 16.
    auto* top = reinterpret_cast<std::uintptr_t*>(c.stack + kStackBytes + guard);
    *(top - 2) = reinterpret_cast<std::uintptr_t>(&begin);
    c.inside = top - 2 - 6;
}

Fiber::~Fiber() {
    auto& c = *context_;
#ifdef HR_ASAN
    __asan_unpoison_memory_region(c.stack, kStackBytes + 4096);
#endif
    ::munmap(c.stack, kStackBytes + 4096);
}

void Fiber::resume() {
    auto& c = *context_;
    starting = &c;
#ifdef HR_ASAN
    __sanitizer_start_switch_fiber(&c.outside_fake, c.stack, kStackBytes + 4096);
#endif
    headroom_switch_stack(&c.outside, c.inside);
#ifdef HR_ASAN
    __sanitizer_finish_switch_fiber(c.outside_fake, nullptr, nullptr);
#endif
}

void Fiber::leave() {
    auto& c = *context_;
#ifdef HR_ASAN
    __sanitizer_start_switch_fiber(&c.inside_fake, c.outside_bottom, c.outside_size);
#endif
    headroom_switch_stack(&c.inside, c.outside);
    entered(c);
}

}  // namespace headroom::test
