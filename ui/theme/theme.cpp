#include "ui/theme/theme.h"

#include <QApplication>
#include <QFontDatabase>
#include <QPainter>
#include <QPixmap>
#include <QStyleFactory>

#include "ui/theme/style_sheet.h"
#include "ui/theme/system_colors.h"

// At file scope, as the macro needs it: the icons lie in a static library.
static void init_icons() { Q_INIT_RESOURCE(headroom_icons); }

namespace headroom::ui {
namespace {

constexpr int kRoles = static_cast<int>(ColorRole::count_);

// In the order of ColorRole. tst_theme checks the contrast of every pair that is used.
constexpr std::array<QRgb, kRoles> kLight = {
    0xffffffff, 0xfff5f6f8, 0xfff0f2f6, 0xffe7eaf0, 0xffdde1e8, 0xff1a1f29, 0xff5a6372,
    0xff2463d9, 0xffffffff, 0xffe3ecfc, 0xffb3261e, 0xfffdeceb, 0xffdff3e6, 0xfffff4dc, 0xfff6f7f9,
    0xffb4bbc7, 0xfff0a04b, 0xff2463d9, 0xff9cc0f7,
};
constexpr std::array<QRgb, kRoles> kDark = {
    0xff16181d, 0xff1c1f26, 0xff252932, 0xff2d323d, 0xff363c48, 0xffe6e9ef, 0xffa0a8b6,
    0xff7aa7ff, 0xff0d1526, 0xff233352, 0xfff5958c, 0xff3b2322, 0xff1b3a28, 0xff3a3018, 0xff1c1f26,
    0xff59616f, 0xffe8a152, 0xff7aa7ff, 0xff3a5891,
};

QPixmap tinted(const QPixmap& drawing, const QColor& color) {
    QPixmap result = drawing;
    QPainter painter(&result);
    painter.setCompositionMode(QPainter::CompositionMode_SourceIn);
    painter.fillRect(result.rect(), color);
    return result;
}

}  // namespace

Theme::Theme(Mode mode, int text_percent, QObject* parent)
    : QObject(parent), mode_(mode), text_percent_(qBound(75, text_percent, 200)), system_font_(QApplication::font()) {
    init_icons();
    QIcon program;
    for (const char* size : {"16", "32", "48", "64", "128", "256"}) {
        program.addPixmap(QPixmap(QStringLiteral(":/icons/%1/headroom.png").arg(QLatin1String(size))));
    }
    QApplication::setWindowIcon(program);
    QApplication::setStyle(QStyleFactory::create(QStringLiteral("Fusion")));
    apply();
}

void Theme::set_mode(Mode mode) {
    mode_ = mode;
    apply();
}

void Theme::set_text_percent(int percent) {
    text_percent_ = qBound(75, percent, 200);
    apply();
}

void Theme::system_changed() {
    if (mode_ == Mode::system && system_is_dark() != dark_) apply();
}

void Theme::apply() {
    dark_ = mode_ == Mode::dark || (mode_ == Mode::system && system_is_dark());
    QFont font = system_font_;
    if (font.pointSizeF() > 0) {
        font.setPointSizeF(font.pointSizeF() * text_percent_ / 100);
    } else {
        font.setPixelSize(font.pixelSize() * text_percent_ / 100);
    }
    QApplication::setFont(font);
    qApp->setStyleSheet(style_sheet());
    emit changed();
}

QColor Theme::color(ColorRole role) const {
    return QColor::fromRgba((dark_ ? kDark : kLight)[static_cast<std::size_t>(role)]);
}

ColorRole Theme::text_on(ColorRole role) const {
    const auto distance = [&](ColorRole other) { return std::abs(qGray(color(role).rgb()) - qGray(color(other).rgb())); };
    return distance(ColorRole::text) >= distance(ColorRole::page) ? ColorRole::text : ColorRole::page;
}

QPalette Theme::palette() const {
    QPalette palette;
    const auto set = [&](QPalette::ColorRole to, ColorRole from) { palette.setColor(to, color(from)); };
    set(QPalette::Window, ColorRole::page);
    set(QPalette::Base, ColorRole::page);
    set(QPalette::AlternateBase, ColorRole::surface);
    set(QPalette::Button, ColorRole::surface);
    set(QPalette::WindowText, ColorRole::text);
    set(QPalette::Text, ColorRole::text);
    set(QPalette::ButtonText, ColorRole::text);
    set(QPalette::BrightText, ColorRole::danger);
    set(QPalette::PlaceholderText, ColorRole::muted);
    set(QPalette::Highlight, ColorRole::accent);
    set(QPalette::HighlightedText, ColorRole::on_accent);
    set(QPalette::Link, ColorRole::accent);
    set(QPalette::LinkVisited, ColorRole::accent);
    set(QPalette::ToolTipBase, ColorRole::text);
    set(QPalette::ToolTipText, ColorRole::page);
    set(QPalette::Light, ColorRole::border);
    set(QPalette::Midlight, ColorRole::border);
    set(QPalette::Mid, ColorRole::border);
    set(QPalette::Dark, ColorRole::border);
    for (const auto role : {QPalette::WindowText, QPalette::Text, QPalette::ButtonText}) {
        palette.setColor(QPalette::Disabled, role, color(ColorRole::muted));
    }
    return palette;
}

QIcon Theme::icon(const QString& name, ColorRole role) const {
    QIcon icon;
    QColor disabled = color(ColorRole::muted);
    disabled.setAlphaF(0.5F);
    for (const char* size : {"20", "40", "80"}) {
        const QPixmap drawing(QStringLiteral(":/icons/%1/%2.png").arg(QLatin1String(size), name));
        icon.addPixmap(tinted(drawing, color(role)));
        icon.addPixmap(tinted(drawing, disabled), QIcon::Disabled);
    }
    return icon;
}

QFont Theme::code_font() const {
    QFont font = QFontDatabase::systemFont(QFontDatabase::FixedFont);
    font.setPointSizeF(QApplication::font().pointSizeF() * 0.95);
    return font;
}

QString Theme::style_sheet() const {
    return make_style_sheet([this](ColorRole role) { return color(role).name(); }, [this](int length) { return px(length); });
}

QString to_string(Theme::Mode mode) {
    switch (mode) {
        case Theme::Mode::system: return QStringLiteral("system");
        case Theme::Mode::light: return QStringLiteral("light");
        case Theme::Mode::dark: return QStringLiteral("dark");
    }
    return {};
}

Theme::Mode mode_from(const QString& text) {
    if (text == QLatin1String("light")) return Theme::Mode::light;
    return text == QLatin1String("dark") ? Theme::Mode::dark : Theme::Mode::system;
}

}  // namespace headroom::ui
