#pragma once

// Where a test's kernels run: on the simulated driver with the emulated device code, on the simulated driver with its own kernels (the CPU
// operators, which the engine's tests run on), or on a real card. The same test code for all:
//
//   private slots:
//     void initTestCase_data() { KernelDevice::list(); }   // every test function runs once on each
//     void adds() {
//         auto& device = KernelDevice::chosen();
//         Array<float> x(device, values), y(device, 100);
//         REQUIRE(kernels::some_rows(device.queue(), {.x = x.data(), .y = y.data()}));
//         QVERIFY(same_bits(y.read(), expected));
//     }

#include <QString>

#include <bit>
#include <cstring>
#include <memory>
#include <optional>
#include <vector>

#include "core/compute/gpu/ops.h"
#include "tests/simgpu/fixture.h"

namespace headroom::test {

class KernelDevice {
public:
    // The rows of a test's global data: "emulator" and "simulator" (where the simulated driver lies beside the test), and each real card that this build has
    // kernels for ("cuda:0"). Ends the program where there is neither.
    static void list();
    // That of the row that runs. Ends the program where it cannot be opened.
    static KernelDevice& chosen();
    ~KernelDevice();

    // On the processor, by either way: tests keep their sizes small there.
    [[nodiscard]] bool emulated() const noexcept { return !!simulator_; }
    // On the simulated card's own kernels, which all keep the exact order.
    [[nodiscard]] bool simulated() const noexcept { return simulator_ && !emulated_; }
    [[nodiscard]] kernels::Queue queue() { return {*kernels_, stream_}; }
    [[nodiscard]] gpu::Driver& driver() noexcept { return *driver_; }
    // Launches as on a card without matrix units; nothing where this build has no code for one.
    [[nodiscard]] std::optional<kernels::Queue> queue_without_matrix_units() {
        return without_matrix_units_ ? std::optional(kernels::Queue{*without_matrix_units_, stream_}) : std::nullopt;
    }
    // Waits for everything enqueued; ends the program with the driver's sentence where that failed.
    void wait();

    // Memory that kernels see. On the emulator exactly so many bytes of the host's, which the sanitizers watch.
    [[nodiscard]] void* allocate(std::size_t bytes);
    void free(void* memory);
    void write(void* to, const void* from, std::size_t bytes);
    void read(void* to, const void* from, std::size_t bytes);

private:
    explicit KernelDevice(const QString& name);

    std::unique_ptr<SimGpu> simulator_;  // null on a real card
    bool emulated_ = false;
    std::unique_ptr<gpu::Driver> driver_;
    std::unique_ptr<kernels::Kernels> kernels_;
    std::unique_ptr<kernels::Kernels> without_matrix_units_;
    gpu::StreamHandle stream_ = nullptr;
};

// An array in the device's memory.
template <class T>
class Array {
public:
    // Filled with 0xff: floats are NaNs until a kernel writes them.
    Array(KernelDevice& device, std::size_t count) : Array(device, std::vector<T>(count, filler())) {}
    Array(KernelDevice& device, const std::vector<T>& values) : device_(device), count_(values.size()) {
        data_ = static_cast<T*>(device.allocate(bytes()));
        write(values);
    }
    ~Array() { device_.free(data_); }
    Array(const Array&) = delete;
    Array& operator=(const Array&) = delete;

    [[nodiscard]] T* data() const noexcept { return data_; }
    [[nodiscard]] std::size_t size() const noexcept { return count_; }
    void write(const std::vector<T>& values) { device_.write(data_, values.data(), bytes()); }
    [[nodiscard]] std::vector<T> read() const {
        std::vector<T> values(count_);
        device_.read(values.data(), data_, bytes());
        return values;
    }

private:
    static T filler() {
        T value;
        std::memset(&value, 0xff, sizeof value);
        return value;
    }
    [[nodiscard]] std::size_t bytes() const noexcept { return count_ * sizeof(T); }

    KernelDevice& device_;
    std::size_t count_;
    T* data_ = nullptr;
};

// Whether two results are the same, bit for bit.
template <class T>
[[nodiscard]] bool same_bits(const std::vector<T>& a, const std::vector<T>& b) {
    return a.size() == b.size() && (a.empty() || std::memcmp(a.data(), b.data(), a.size() * sizeof(T)) == 0);
}

// Where they differ first, in words, for a test's message; empty where they do not.
[[nodiscard]] QByteArray difference(const std::vector<float>& seen, const std::vector<float>& expected);

}  // namespace headroom::test
