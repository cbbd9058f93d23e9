// Fibers as Windows has them.

#include <windows.h>

#include <cstdio>
#include <cstdlib>

#include "tests/kernels/fiber.h"

namespace headroom::test {

struct Fiber::Context {
    void (*body)() = nullptr;
    void* inside = nullptr;
    void* outside = nullptr;
};

namespace {

void CALLBACK begin(void* context) {
    static_cast<Fiber::Context*>(context)->body();
    std::abort();  // a body must not return
}

}  // namespace

Fiber::Fiber(void (*body)()) : context_(std::make_unique<Context>()) {
    context_->body = body;
    context_->inside = ::CreateFiberEx(16 << 10, kStackBytes, 0, begin, context_.get());
    if (!context_->inside) {
        std::fputs("no memory for a fiber's stack\n", stderr);
        std::abort();
    }
}

Fiber::~Fiber() { ::DeleteFiber(context_->inside); }

void Fiber::resume() {
    // A thread has to be a fiber itself before it can switch to one; it stays one.
    context_->outside = ::IsThreadAFiber() ? ::GetCurrentFiber() : ::ConvertThreadToFiber(nullptr);
    ::SwitchToFiber(context_->inside);
}

void Fiber::leave() { ::SwitchToFiber(context_->outside); }

}  // namespace headroom::test
