#pragma once

// The real window over scripted backends and a folder of its own.

#include <QTemporaryDir>
#include <QTest>

#include "core/base/paths.h"
#include "tests/ui/support/scripted_backend.h"
#include "tests/ui/support/scripted_devices.h"
#include "tests/ui/support/scripted_server.h"
#include "ui/program/program.h"

namespace headroom::test {

class WindowFixture {
    static constexpr int kLongest = 60'000;  // ms for what takes a moment, on a machine that has much else to do

public:
    explicit WindowFixture(std::shared_ptr<Script> with = std::make_shared<Script>()) : script(std::move(with)) {}

    // Builds the program, shows its window and (unless told otherwise) loads the model.
    void start(bool load = true) {
        program = std::make_unique<ui::Program>(path(), std::make_unique<ScriptedBackend>(script), std::make_unique<ScriptedDevices>(devices),
                                                std::make_unique<ScriptedServer>(server));
        window().show();
        if (!QTest::qWaitForWindowExposed(&window(), kLongest)) qFatal("the window was not shown");
        if (!load) return;
        program->open_first_model({}, 0, 0);
        if (!QTest::qWaitFor([this] { return ready(); }, kLongest)) qFatal("the scripted model was not loaded");
    }
    void stop() { program.reset(); }

    [[nodiscard]] std::filesystem::path path() const { return from_utf8(folder.path().toStdString()); }
    [[nodiscard]] bool ready() const { return program->engine().model().state == ui::ModelStatus::State::ready; }
    [[nodiscard]] ui::MainWindow& window() const { return program->window(); }

    // A visible widget of the window by its object name; null where there is none.
    template <class Widget = QWidget>
    [[nodiscard]] Widget* find(const char* name) const {
        Widget* last = nullptr;
        for (Widget* widget : window().findChildren<Widget*>(QLatin1String(name))) {
            if (widget->isVisible()) last = widget;
        }
        return last;
    }
    void click(const char* name) const {
        auto* widget = find(name);
        if (!widget) qFatal("there is no visible %s", name);
        QTest::mouseClick(widget, Qt::LeftButton);
    }
    // Types a message and sends it with Enter.
    void send(const QString& text) const {
        auto* input = find("message_input");
        input->setFocus();
        QTest::keyClicks(input, text);
        QTest::keyClick(input, Qt::Key_Return);
    }
    void wait_idle() const {
        if (!QTest::qWaitFor([this] { return !program->chats().busy(); }, kLongest)) qFatal("the answer did not end");
        QTest::qWait(50);  // the last update of the view
    }

    QTemporaryDir folder;
    std::shared_ptr<Script> script;
    std::shared_ptr<DeviceScript> devices = std::make_shared<DeviceScript>();
    std::shared_ptr<ServerScript> server = std::make_shared<ServerScript>();
    std::unique_ptr<ui::Program> program;
};

}  // namespace headroom::test
