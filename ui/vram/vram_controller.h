#pragma once

#include <QElapsedTimer>
#include <QObject>
#include <QTimer>

#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "core/engine/vram.h"
#include "ui/controller/devices_controller.h"
#include "ui/controller/engine_controller.h"
#include "ui/vram/vram_history.h"
#include "ui/vram/vram_presets.h"

namespace headroom::ui {

// The window's door to the VRAM of the loaded model: figures, wishes, reports, and the history of ten minutes. Lives in the window's thread and
// never waits: figures are copies, wishes are taken up elsewhere, reports come queued.
class VramController : public QObject {
    Q_OBJECT

public:
    enum class State {
        none,       // no model
        loading,
        processor,  // the model holds nothing of any GPU
        card,       // it lies on devices(), in whole or in part
    };

    VramController(EngineController& engine, DevicesController& machine, QObject* parent = nullptr);
    ~VramController() override;

    [[nodiscard]] State state() const { return state_; }
    // `card`: those that the model uses. Else the machine's first GPU as it is, not elastic; or none (found out at the program's start).
    [[nodiscard]] const std::vector<engine::VramDevice>& devices() const { return devices_; }
    [[nodiscard]] const engine::VramDevice* find(const std::string& device) const;  // among them; null: it is not
    // The newest of all devices, of this model.
    [[nodiscard]] const std::optional<engine::VramReport>& report() const { return report_; }
    // What was said no to, in words; empty: nothing.
    [[nodiscard]] const QString& problem() const { return problem_; }
    [[nodiscard]] const VramHistory* history(const std::string& device) const;  // null: no model was on it yet
    // The machine was looked at, and has no GPU.
    [[nodiscard]] bool no_gpu() const;

    // Of any of the machine's devices: what is not in use keeps it for the next load.
    [[nodiscard]] engine::VramWish wish(const std::string& device) const;
    void set_wish(const std::string& device, const engine::VramWish& wish);
    void set_reserve(const std::string& device, std::optional<std::uint64_t> bytes);
    void set_cap(const std::string& device, std::optional<std::uint64_t> bytes);
    void apply(const std::string& device, VramPreset preset);

    // Somebody looks at the figures: they are copied four times a second; else once, for the history.
    void set_watched(bool watched);

signals:
    void devices_changed();   // state, and which devices there are
    void figures_changed();   // of devices(), and wishes
    void reported();          // report() or problem()
    void history_changed();

private:
    void set_model(std::shared_ptr<engine::Vram> vram);
    void update_model();
    void update_machine();
    void on_report(const engine::VramReport& report);
    void on_speed(qint64 answer, const engine::GenerateStats& stats);
    void refresh();
    void sample();
    void send();
    [[nodiscard]] std::vector<engine::VramDevice> of_the_machine() const;
    [[nodiscard]] double speed_of_last_second();

    EngineController& engine_;
    DevicesController& machine_;
    State state_ = State::none;
    std::shared_ptr<engine::Vram> vram_;
    std::shared_ptr<void> listening_;
    quint64 model_ = 0;                 // counts them: late reports of an older one are dropped
    std::vector<engine::VramDevice> devices_;
    std::optional<engine::VramReport> report_;
    QString problem_;
    std::map<std::string, VramHistory> histories_;
    QTimer refresh_;
    bool watched_ = false;
    QElapsedTimer clock_;

    // A hand that drags wishes something else a hundred times a second: the newest is sent, at once and then every 30 ms.
    std::map<std::string, engine::VramWish> unsent_;
    QTimer send_;

    // Of the answer that is being made.
    struct Speed {
        qint64 answer = 0;
        int tokens = 0;
        double seconds = 0;
    };
    std::optional<Speed> newest_, sampled_;
};

}  // namespace headroom::ui
