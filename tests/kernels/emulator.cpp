#include "tests/kernels/emulator.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "core/compute/cpu/arithmetic.h"
#include "tests/kernels/emulated_device.h"
#include "tests/kernels/fiber.h"

namespace headroom::device::emulated {

// A place in the source, for messages.
struct At {
    explicit At(Site where) : site(where) {}
    Site site;
};

}  // namespace headroom::device::emulated

template <>
struct fmt::formatter<headroom::device::emulated::At> {
    constexpr auto parse(format_parse_context& context) { return context.begin(); }
    auto format(const headroom::device::emulated::At& at, format_context& context) const {
        return fmt::format_to(context.out(), "{}:{}", at.site.file_name(), at.site.line());
    }
};

namespace headroom::device {

namespace emulated {

Place place;

namespace {

struct Code {
    std::size_t argument_bytes;
    int most_threads;
    void (*run)(const void* arguments);
};

std::map<std::string_view, Code>& code() {
    static std::map<std::string_view, Code> all;
    return all;
}

struct Thread {
    enum State { ready, at_warp, at_barrier, at_part, done } state = done;
    int part = 0;
    Site site;
    std::unique_ptr<test::Fiber> fiber;
};

struct Warp {
    int lanes = 0, arrived = 0, ended = 0;
    Site site;
    unsigned generation = 0;
    // Two generations: a lane may be one exchange ahead of those that have still to read.
    alignas(16) unsigned char handed[2][32 * kMostExchanged];
};

// The launch that runs.
struct Launch {
    std::vector<Thread> threads;  // as many as ever were needed; their fibers are kept
    std::vector<std::unique_ptr<Warp>> warps;
    int live = 0, at_barrier = 0;
    int at_part[16] = {};
    Site barrier;
    void (*run)(const void*) = nullptr;
    const void* arguments = nullptr;
    unsigned char* shared = nullptr;
    std::string error;
};
Launch launch;
std::mutex one_at_a_time;

bool same(const Site& a, const Site& b) { return a.line() == b.line() && a.column() == b.column() && std::strcmp(a.file_name(), b.file_name()) == 0; }

Thread& self() { return launch.threads[static_cast<std::size_t>(place.thread)]; }

// Gives the launch up: nothing of it runs any more. Its fibers stay where they are, so nothing on their stacks may own memory.
template <class... Values>
void give_up(fmt::format_string<const Values&...> format, const Values&... values) {
    launch.error = fmt::format(format, values...);
    launch.error += fmt::format(" (block {}, {}, {}, thread {})", place.block_x, place.block_y, place.block_z, place.thread);
    for (;;) self().fiber->leave();
}

void open_barrier() {
    launch.at_barrier = 0;
    for (auto& thread : launch.threads) {
        if (thread.state == Thread::at_barrier) thread.state = Thread::ready;
    }
}

// Where a fiber waits to be run by the next block, for ever.
void body() {
    for (;;) {
        launch.run(launch.arguments);
        Thread& thread = self();
        thread.state = Thread::done;
        Warp& warp = *launch.warps[static_cast<std::size_t>(place.thread / 32)];
        ++warp.ended;
        if (warp.arrived > 0) give_up("a lane ended while others of its warp wait at the warp function of {}", At(warp.site));
        if (--launch.live > 0 && launch.at_barrier == launch.live) open_barrier();
        thread.fiber->leave();
    }
}

void run_warp(int first, int count, bool descending) {
    for (bool any = true; any && launch.error.empty();) {
        any = false;
        for (int i = 0; i < count && launch.error.empty(); ++i) {
            const int number = first + (descending ? count - 1 - i : i);
            auto& thread = launch.threads[static_cast<std::size_t>(number)];
            if (thread.state != Thread::ready) continue;
            any = true;
            place.thread = number;
            thread.fiber->resume();
        }
    }
}

// One block, to its end or an error.
void run_block(int threads, bool descending) {
    const int warps = (threads + 31) / 32;
    for (int i = 0; i < threads; ++i) {
        auto& thread = launch.threads[static_cast<std::size_t>(i)];
        if (!thread.fiber) thread.fiber = std::make_unique<test::Fiber>(body);
        thread.state = Thread::ready;
    }
    for (int w = 0; w < warps; ++w) {
        auto& warp = *launch.warps[static_cast<std::size_t>(w)];
        warp.lanes = std::min(32, threads - w * 32);
        warp.arrived = warp.ended = 0;
    }
    launch.live = threads;
    launch.at_barrier = 0;
    std::ranges::fill(launch.at_part, 0);
    while (launch.live > 0 && launch.error.empty()) {
        const auto ready = [](const Thread& thread) { return thread.state == Thread::ready; };
        if (std::ranges::none_of(launch.threads, ready)) {
            std::string waiting;
            for (const auto& thread : launch.threads) {
                if (thread.state == Thread::ready || thread.state == Thread::done) continue;
                const auto site = fmt::format("{}", At(thread.site));
                if (waiting.find(site) == std::string::npos) waiting += (waiting.empty() ? "" : " and ") + site;
            }
            launch.error = fmt::format("threads of a block wait for each other at {}", waiting);
            break;
        }
        for (int w = 0; w < warps && launch.error.empty(); ++w) {
            const int warp = descending ? warps - 1 - w : w;
            run_warp(warp * 32, launch.warps[static_cast<std::size_t>(warp)]->lanes, descending);
        }
    }
}

}  // namespace

Registration::Registration(const char* name, std::size_t argument_bytes, int most_threads, void (*run)(const void*)) {
    code()[name] = {argument_bytes, most_threads, run};
}

unsigned char* dynamic_shared() { return launch.shared; }

void sync(Site at) {
    if (launch.at_barrier == 0) {
        launch.barrier = at;
    } else if (!same(launch.barrier, at)) {
        give_up("threads of a block are at different barriers: {} and {}", At(launch.barrier), At(at));
    }
    Thread& thread = self();
    thread.state = Thread::at_barrier;
    thread.site = at;
    if (++launch.at_barrier == launch.live) {
        open_barrier();
    } else {
        thread.fiber->leave();
    }
}

void sync_part(int part, int count, Site at) {
    Thread& thread = self();
    thread.state = Thread::at_part;
    thread.part = part;
    thread.site = at;
    if (++launch.at_part[part] == count) {
        launch.at_part[part] = 0;
        for (auto& other : launch.threads) {
            if (other.state == Thread::at_part && other.part == part) other.state = Thread::ready;
        }
    } else {
        thread.fiber->leave();
    }
}

const unsigned char* exchange(const void* mine, std::size_t bytes, Site at) {
    const int number = place.thread;
    Warp& warp = *launch.warps[static_cast<std::size_t>(number / 32)];
    if (warp.lanes != 32) give_up("the warp function of {} is called in a warp of {} lanes", At(at), warp.lanes);
    if (warp.ended > 0) give_up("the warp function of {} is called after a lane of the warp has ended", At(at));
    if (warp.arrived == 0) {
        warp.site = at;
    } else if (!same(warp.site, at)) {
        give_up("lanes of a warp are at different warp functions: {} and {}", At(warp.site), At(at));
    }
    unsigned char* handed = warp.handed[warp.generation & 1];
    std::memcpy(handed + static_cast<std::size_t>(number % 32) * kMostExchanged, mine, bytes);
    if (++warp.arrived == 32) {
        warp.arrived = 0;
        ++warp.generation;
        for (int i = number / 32 * 32; i < number / 32 * 32 + 32; ++i) launch.threads[static_cast<std::size_t>(i)].state = Thread::ready;
    } else {
        Thread& thread = self();
        thread.state = Thread::at_warp;
        thread.site = at;
        thread.fiber->leave();
    }
    return handed;
}

}  // namespace emulated

float fma(float a, float b, float c) { return cpu::fma(a, b, c); }
float rint(float x) { return std::rint(x); }
float sqrt(float x) { return std::sqrt(x); }
float fast_exp2(float x) { return std::exp2(x); }
float half_to_float(std::uint16_t half) { return cpu::half_to_float(half); }
std::uint16_t float_to_half(float value) { return cpu::float_to_half(value); }

}  // namespace headroom::device

namespace headroom::test {
namespace {

using namespace device::emulated;

template <kernels::Kernel kernel>
void run_in_simulator(const SimLaunch* how, void** parameters) {
    const auto done = emulate(kernel, {how->grid[0], how->grid[1], how->grid[2]}, {how->block[0], how->block[1], how->block[2]}, how->shared_bytes,
                              parameters[0]);
    if (done) return;
    std::fprintf(stderr, "%s\n", done.error().message.c_str());
    std::abort();
}

}  // namespace

bool is_emulated(kernels::Kernel kernel) { return code().contains(kernels::to_string(kernel)); }

Result<> emulate(kernels::Kernel kernel, gpu::Grid grid, gpu::Grid block, unsigned shared_bytes, const void* arguments) {
    const auto found = code().find(kernels::to_string(kernel));
    if (found == code().end()) return fail(ErrorKind::not_found, "there is no emulated kernel {}", kernels::to_string(kernel));
    const Code& kernel_code = found->second;
    const int threads = static_cast<int>(block.x);
    if (block.y != 1 || block.z != 1 || threads == 0 || threads > kernel_code.most_threads) {
        return fail(ErrorKind::invalid_argument, "{} takes blocks of up to {} x 1 x 1 threads; it was launched with {} x {} x {}", found->first,
                    kernel_code.most_threads, block.x, block.y, block.z);
    }
    if (grid.x == 0 || grid.y == 0 || grid.z == 0 || grid.y > 65535 || grid.z > 65535) {
        return fail(ErrorKind::invalid_argument, "{} was launched with a grid of {} x {} x {} blocks", found->first, grid.x, grid.y, grid.z);
    }
    const std::scoped_lock lock(one_at_a_time);
    auto& l = launch;
    const auto warps = static_cast<std::size_t>((threads + 31) / 32);
    if (l.threads.size() < static_cast<std::size_t>(threads)) l.threads.resize(static_cast<std::size_t>(threads));
    while (l.warps.size() < warps) l.warps.push_back(std::make_unique<Warp>());
    // Its own aligned copy of the arguments, and exactly as much shared memory as the launch asks for: the sanitizers see what is beyond.
    std::vector<std::max_align_t> copy((kernel_code.argument_bytes + sizeof(std::max_align_t) - 1) / sizeof(std::max_align_t));
    std::memcpy(copy.data(), arguments, kernel_code.argument_bytes);
    const auto shared = std::make_unique<unsigned char[]>(shared_bytes);
    l.run = kernel_code.run;
    l.arguments = copy.data();
    l.shared = shared.get();
    l.error.clear();
    bool descending = false;
    for (unsigned z = 0; z < grid.z && l.error.empty(); ++z) {
        for (unsigned y = 0; y < grid.y && l.error.empty(); ++y) {
            for (unsigned x = 0; x < grid.x && l.error.empty(); ++x) {
                std::memset(l.shared, 0xff, shared_bytes);
                place = {0, static_cast<int>(x), static_cast<int>(y), static_cast<int>(z), threads, static_cast<int>(grid.x)};
                run_block(threads, descending);
                descending = !descending;
            }
        }
    }
    l.shared = nullptr;
    if (l.error.empty()) return {};
    // Fibers that stopped in the middle cannot be used again.
    for (auto& thread : l.threads) thread = {};
    return fail(ErrorKind::device, "{}: {}", found->first, l.error);
}

void register_emulated_kernels(SimGpu& simulator) {
    // Also those that are not part of the program: else the simulator would run the CPU operator, and a test would compare it with itself.
#define HR_REGISTER(name, arguments) \
    simulator.register_kernel("headroom_" #name, run_in_simulator<kernels::Kernel::name>, {sizeof(kernels::arguments)});
    HR_KERNELS(HR_REGISTER)
#undef HR_REGISTER
}

}  // namespace headroom::test
