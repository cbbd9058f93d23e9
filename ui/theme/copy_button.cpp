#include "ui/theme/copy_button.h"

#include <QClipboard>
#include <QGuiApplication>

#include <chrono>

namespace headroom::ui {

using namespace std::chrono_literals;

CopyButton::CopyButton(const Theme& theme, const QString& text, QWidget* parent) : IconButton(theme, QStringLiteral("copy"), text, parent) {
    back_.setSingleShot(true);
    back_.setInterval(1500ms);
    connect(&back_, &QTimer::timeout, this, [this, text] {
        set_icon(QStringLiteral("copy"));
        set_text(text);
    });
    connect(this, &QToolButton::clicked, this, [this] {
        if (source_) QGuiApplication::clipboard()->setText(source_());
        set_icon(QStringLiteral("check"), ColorRole::accent);
        set_text(tr("Copied"));
        back_.start();
    });
}

}  // namespace headroom::ui
