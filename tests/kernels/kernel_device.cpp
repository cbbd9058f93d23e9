#include "tests/kernels/kernel_device.h"

#include <QCoreApplication>
#include <QTest>

#include <map>

#include "core/base/paths.h"
#include "tests/kernels/emulator.h"
#include "tests/simgpu/simulated_images.h"

namespace headroom::test {
namespace {

template <class T>
T required(Result<T> result) {
    if (!result) qFatal("%s", result.error().message.c_str());
    if constexpr (!std::is_void_v<T>) return std::move(*result);
}

gpu::DevicePointer address(const void* pointer) { return reinterpret_cast<gpu::DevicePointer>(pointer); }

}  // namespace

void KernelDevice::list() {
    QTest::addColumn<QString>("device");
    int rows = 0;
    if (std::filesystem::exists(SimGpu::library())) {
        QTest::newRow("emulator") << "emulator";
        QTest::newRow("simulator") << "simulator";
        rows += 2;
    }
    for (const auto backend : {gpu::Backend::cuda, gpu::Backend::hip}) {
        const auto driver = gpu::Driver::load(backend, gpu::SearchPath{});
        if (!driver) continue;
        for (const auto& device : (*driver)->devices()) {
            if (const auto current = (*driver)->make_current(device.index); !current) qFatal("%s", current.error().message.c_str());
            const auto kernels = kernels::Kernels::load(**driver, device);
            if (!kernels && kernels.error().kind == ErrorKind::unsupported) continue;
            QTest::newRow(device.id.c_str()) << QString::fromStdString(device.id);
            ++rows;
        }
    }
    if (rows == 0) qFatal("there is neither a card that this build has kernels for nor the simulated driver (%s)", to_utf8(SimGpu::library()).c_str());
}

KernelDevice& KernelDevice::chosen() {
    QFETCH_GLOBAL(QString, device);
    // Kept for the following test functions, and closed with the application, while the drivers are still there.
    static std::map<QString, std::unique_ptr<KernelDevice>> open;
    if (open.empty()) qAddPostRoutine([] { open.clear(); });
    // There is one simulator in a process: opening it for one of the two forgets the other.
    if (device == "emulator") open.erase("simulator");
    if (device == "simulator") open.erase("emulator");
    auto& found = open[device];
    if (!found) found.reset(new KernelDevice(device));
    required((found->driver_->make_current(found->kernels_->device().index)));
    return *found;
}

KernelDevice::KernelDevice(const QString& name) {
    if (name == "emulator" || name == "simulator") {
        simulator_ = std::make_unique<SimGpu>();
        emulated_ = name == "emulator";
        if (emulated_) {  // every kernel there is
            auto description = SimGpu::healthy();
            description["cuda"][0]["architecture"] = "9.0";
            simulator_->reset(description);
        }
        if (emulated_) register_emulated_kernels(*simulator_);
        driver_ = required(gpu::Driver::load(gpu::Backend::cuda, simulator_->path()));
        required(driver_->make_current(0));
        kernels_ = required(kernels::Kernels::load(*driver_, driver_->devices()[0], simulated_images()));
    } else {
        const auto backend = gpu::backend_from(name.section(':', 0, 0).toStdString());
        const int index = name.section(':', 1).toInt();
        driver_ = required(gpu::Driver::load(backend.value(), gpu::SearchPath{}));
        required(driver_->make_current(index));
        kernels_ = required(kernels::Kernels::load(*driver_, driver_->devices()[static_cast<std::size_t>(index)]));
    }
    gpu::DeviceInfo older = kernels_->device();
    older.architecture = "sm_75";
    if (auto loaded = simulator_ ? kernels::Kernels::load(*driver_, older, simulated_images()) : kernels::Kernels::load(*driver_, older)) without_matrix_units_ = std::move(*loaded);
    stream_ = required(driver_->create_stream());
}

KernelDevice::~KernelDevice() { required(driver_->destroy_stream(stream_)); }

void KernelDevice::wait() { required(driver_->synchronize()); }

void* KernelDevice::allocate(std::size_t bytes) {
    if (emulated_) return ::operator new(bytes, std::align_val_t{256});
    return reinterpret_cast<void*>(required(driver_->allocate(std::max<std::size_t>(bytes, 1))));
}

void KernelDevice::free(void* memory) {
    wait();
    if (emulated_) return ::operator delete(memory, std::align_val_t{256});
    required(driver_->free(address(memory)));
}

void KernelDevice::write(void* to, const void* from, std::size_t bytes) {
    wait();
    if (bytes == 0) return;
    if (emulated_) {
        std::memcpy(to, from, bytes);
    } else {
        required(driver_->copy_to_device(address(to), from, bytes));
        wait();
    }
}

void KernelDevice::read(void* to, const void* from, std::size_t bytes) {
    wait();
    if (bytes == 0) return;
    if (emulated_) {
        std::memcpy(to, from, bytes);
    } else {
        required(driver_->copy_to_host(to, address(from), bytes));
        wait();
    }
}

QByteArray difference(const std::vector<float>& seen, const std::vector<float>& expected) {
    if (seen.size() != expected.size()) return QByteArray::fromStdString(fmt::format("{} values instead of {}", seen.size(), expected.size()));
    std::size_t count = 0, first = 0;
    for (std::size_t i = 0; i < seen.size(); ++i) {
        if (std::bit_cast<std::uint32_t>(seen[i]) != std::bit_cast<std::uint32_t>(expected[i]) && count++ == 0) first = i;
    }
    if (count == 0) return {};
    return QByteArray::fromStdString(fmt::format("{} of {} values differ, first number {}: {} instead of {}", count, seen.size(), first, seen[first],
                                                 expected[first]));
}

}  // namespace headroom::test
