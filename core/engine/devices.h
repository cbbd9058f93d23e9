#pragma once

// The machine's GPUs as the window shows them: what they are, whether their memory can be given back, how full they are.

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

namespace headroom::engine {

// What one step of a device's self-test saw.
struct DeviceTestStep {
    enum class Outcome : std::uint8_t { passed, noted, failed, skipped } outcome = Outcome::passed;
    std::string title;  // "Patterns in unequal segments"
    std::string seen;   // a sentence with numbers
    double seconds = 0;
};

// What a device's memory can be trusted with (docs/virtual-memory.md).
struct DeviceVerdict {
    enum class Kind : std::uint8_t { on, fixed, off } kind = Kind::off;
    std::string meaning;            // of the kind, a sentence
    std::string reason;             // empty where kind is on
    std::uint64_t segment_bytes = 0;
    std::string tested_at;          // UTC, "2026-11-29T20:15:00Z"
    double seconds = 0;             // the test took
    std::vector<DeviceTestStep> steps;
};

struct Device {
    std::string id;             // "cuda:0"
    std::string name;           // "NVIDIA GeForce RTX 4070"
    std::string bus;            // "0000:01:00.0"
    std::string uuid;
    std::string architecture;   // "sm_89"; may be empty
    std::string driver;         // "580.159.04"; may be empty
    std::string runtime;        // "CUDA 13.0"
    std::uint64_t total_bytes = 0;
    bool integrated = false;
    std::optional<DeviceVerdict> verdict;  // nothing: it has to be tested
};

struct DeviceList {
    std::vector<Device> devices;
    std::string explanation;  // no devices: what was looked for and what to do
};

// VRAM of a device, in bytes, as the driver of record counts it for all programs together.
struct DeviceMemory {
    std::uint64_t total = 0, used = 0, free = 0;
    std::optional<std::uint64_t> own;  // used by this program, where the driver says so
};

struct DeviceTestProgress {
    std::string step;      // the one that begins, its title
    int number = 0;        // from 1
    int count = 0;
};

// find() first; it is not to be called beside the other functions.
class Devices {
public:
    // data_folder: where verdicts and the list of devices are kept.
    explicit Devices(const std::filesystem::path& data_folder);
    ~Devices();
    Devices(const Devices&) = delete;
    Devices& operator=(const Devices&) = delete;

    // The devices, with the verdicts that are kept. Loads the drivers: may take a second.
    [[nodiscard]] DeviceList find();
    // Tests a device in a child process and keeps the verdict. Blocks: seconds, 20 at most. Several devices may be tested side by side, from
    // several threads. Nothing where it was stopped, or there is no such device. Needs a main() that calls vmm::run_hidden_command.
    [[nodiscard]] std::optional<DeviceVerdict> test(std::string_view id, const std::function<void(const DeviceTestProgress&)>& on_progress,
                                                    std::stop_token stop) const;
    // Takes well under a millisecond. Nothing where nobody counts this device's memory. One thread at a time.
    [[nodiscard]] std::optional<DeviceMemory> read(std::string_view id) const;

private:
    struct Found;
    std::unique_ptr<Found> found_;
};

}  // namespace headroom::engine
