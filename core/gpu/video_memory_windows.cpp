#include "core/gpu/video_memory.h"

#include <windows.h>

#include <dxgi1_4.h>

#include <cstring>

#include "core/base/dynamic_library.h"

namespace headroom::gpu {
namespace {

class VideoMemoryCounter final : public MemoryCounter {
public:
    explicit VideoMemoryCounter(IDXGIAdapter3* adapter, std::uint64_t dedicated) : adapter_(adapter), dedicated_(dedicated) {}
    ~VideoMemoryCounter() override { adapter_->Release(); }
    VideoMemoryCounter(const VideoMemoryCounter&) = delete;
    VideoMemoryCounter& operator=(const VideoMemoryCounter&) = delete;
    std::string_view name() const noexcept override { return "DXGI"; }

    Result<MemoryReading> read() override {
        DXGI_QUERY_VIDEO_MEMORY_INFO info{};
        const HRESULT code = adapter_->QueryVideoMemoryInfo(0, DXGI_MEMORY_SEGMENT_GROUP_LOCAL, &info);
        if (FAILED(code)) return fail(ErrorKind::device, "QueryVideoMemoryInfo failed: {:#010x}", static_cast<std::uint32_t>(code));
        // The budget shrinks as other programs take memory: what is left of it is what this process can still have.
        const std::uint64_t free = info.Budget - std::min<std::uint64_t>(info.Budget, info.CurrentUsage);
        return MemoryReading{.total = dedicated_,
                             .used = dedicated_ - std::min<std::uint64_t>(dedicated_, free),
                             .free = free,
                             .own = info.CurrentUsage,
                             .budget = info.Budget};
    }

private:
    IDXGIAdapter3* adapter_;
    std::uint64_t dedicated_;
};

}  // namespace

std::unique_ptr<MemoryCounter> open_video_memory_counter(const DeviceInfo& device) {
    if (!device.luid) return nullptr;
    const auto library = DynamicLibrary::open("dxgi.dll");
    if (!library) return nullptr;
    const auto create = library->function<HRESULT(WINAPI*)(REFIID, void**)>("CreateDXGIFactory1");
    IDXGIFactory4* factory = nullptr;
    if (!create || FAILED(create(__uuidof(IDXGIFactory4), reinterpret_cast<void**>(&factory)))) return nullptr;
    LUID luid{};
    static_assert(sizeof luid == sizeof *device.luid);
    std::memcpy(&luid, &*device.luid, sizeof luid);
    IDXGIAdapter3* adapter = nullptr;
    const HRESULT found = factory->EnumAdapterByLuid(luid, __uuidof(IDXGIAdapter3), reinterpret_cast<void**>(&adapter));
    factory->Release();
    if (FAILED(found)) return nullptr;
    DXGI_ADAPTER_DESC description{};
    adapter->GetDesc(&description);
    auto counter = std::make_unique<VideoMemoryCounter>(adapter, description.DedicatedVideoMemory);
    if (!counter->read()) return nullptr;
    return counter;
}

}  // namespace headroom::gpu
