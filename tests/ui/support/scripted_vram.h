#pragma once

// The VRAM of a loaded model that does what a test says.

#include <map>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "core/engine/vram.h"

namespace headroom::test {

// Holds one card of 12 GiB unless told otherwise. Its functions may be called by any thread, as the real one's.
class ScriptedVram : public engine::Vram {
public:
    // "cuda:0", a card of 12 GiB: 1 GiB of other programs, 1 GiB of KV, 6 GiB of weights, 0.5 GiB of working memory, 3.5 GiB free; the default
    // reserve of 1 GiB in force, and a curve from 2 GiB (20 tok/s) by 4 GiB (40) to 7.5 GiB (71).
    [[nodiscard]] static engine::VramDevice card();
    [[nodiscard]] static engine::VramReport report();  // of giving back 4 GiB of it

    explicit ScriptedVram(std::vector<engine::VramDevice> devices = {card()}) : devices_(std::move(devices)) {}

    // From the test: what devices() says from now on; a report to the listeners, from another thread than the window's.
    void change(const engine::VramDevice& device);
    void tell(const engine::VramReport& report);
    [[nodiscard]] std::vector<std::pair<std::string, engine::VramWish>> wishes() const;  // in the order of set()
    [[nodiscard]] int listeners() const;
    void close();  // as when the model is unloaded

    [[nodiscard]] std::vector<engine::VramDevice> devices() const override;
    // Takes the wish up, without a report. Unsupported where the device is not elastic.
    Result<> set(std::string_view device, const engine::VramWish& wish, Done done) override;
    [[nodiscard]] Result<engine::VramReport> set_and_wait(std::string_view device, const engine::VramWish& wish) override;
    [[nodiscard]] std::shared_ptr<void> listen(Listener listener) override;

private:
    mutable std::mutex mutex_;
    std::vector<engine::VramDevice> devices_;
    std::vector<std::pair<std::string, engine::VramWish>> wishes_;
    struct Listeners {
        std::mutex mutex;
        std::map<int, Listener> all;
        int next = 0;
    };
    std::shared_ptr<Listeners> listeners_ = std::make_shared<Listeners>();
};

}  // namespace headroom::test
