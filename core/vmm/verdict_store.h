#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "core/gpu/device.h"
#include "core/vmm/verdict.h"

namespace headroom::vmm {

// Verdicts on disk: a JSON file, by the device's UUID + driver + runtime + operating system. A verdict of an older self-test does not count.
// Objects are cheap; each call reads or writes the file, and writing replaces it whole. Thread-safe between processes in that sense.
class VerdictStore {
public:
    // user_data_folder()/verdicts.json
    [[nodiscard]] static std::filesystem::path default_file();

    explicit VerdictStore(std::filesystem::path file) : file_(std::move(file)) {}

    // The verdict kept for this device as it is now; nothing where there is none, or the file cannot be read (the log says so).
    [[nodiscard]] std::optional<Verdict> find(const gpu::DeviceInfo& device) const;
    // Keeps a verdict in place of an older one for the same device and backend version. Errors: io.
    [[nodiscard]] Result<> keep(const Verdict& verdict) const;

private:
    [[nodiscard]] std::vector<Verdict> load() const;

    std::filesystem::path file_;
};

}  // namespace headroom::vmm
