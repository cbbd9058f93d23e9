#include "ui/theme/style_sheet.h"

#include <QRegularExpression>

#include <utility>

namespace headroom::ui {
namespace {

// @role stands for a colour, a number with "dp" for a length that scales with the text.
constexpr const char* kSheet = R"(
QWidget { color: @text; }
QMainWindow, QWidget#chat_page, QStackedWidget, QScrollArea, QWidget#message_column, QWidget#devices_column, QWidget#server_column { background: @page; }
QToolTip { background: @text; color: @page; border: none; padding: 4dp 8dp; }

QFrame#sidebar { background: @sidebar; border: none; }
QFrame#header, QFrame#footer { background: @page; border: none; }
QFrame#line { background: @border; border: none; max-height: 1px; min-height: 1px; }
QLabel[muted="true"] { color: @muted; }
QLabel[heading="true"] { font-weight: 600; }

QToolButton { border: none; border-radius: 8dp; padding: 4dp; background: transparent; }
QToolButton:hover, QToolButton:checked { background: @hover; }
QToolButton:pressed { background: @border; }
QToolButton:focus { border: 2px solid @accent; padding: 2dp; }
QToolButton::menu-indicator { image: none; }
QToolButton[row="true"] { padding: 4dp 8dp; text-align: left; min-height: 24dp; }
QToolButton[row="true"]:checked { background: @accent_soft; }
QToolButton#model_button { padding: 4dp 8dp; font-weight: 600; min-height: 24dp; }
QToolButton#to_end { background: @page; border: 1px solid @border; border-radius: 14dp; }
QToolButton#to_end:hover { background: @hover; }
QToolButton#reasoning_toggle, QToolButton#device_steps_toggle { padding: 4dp 8dp 4dp 0; }
QToolButton#reasoning_toggle:checked, QToolButton#device_steps_toggle:checked, QToolButton#vram_toggle:checked { background: transparent; }
QToolButton#reasoning_toggle:hover, QToolButton#device_steps_toggle:hover, QToolButton#vram_toggle:hover { background: @hover; }
QToolButton#send_button { background: @accent; border-radius: 16dp; padding: 6dp; }
QToolButton#send_button:hover { background: @accent; }
QToolButton#send_button:disabled { background: @hover; }
QToolButton#send_button:focus { border: 2px solid @text; }

QPushButton { background: @page; border: 1px solid @border; border-radius: 8dp; padding: 5dp 16dp; min-height: 20dp; }
QPushButton:hover { background: @hover; }
QPushButton:focus { border: 2px solid @accent; padding: 4dp 15dp; }
QPushButton:disabled { color: @muted; }
QPushButton[primary="true"] { background: @accent; color: @on_accent; border: 1px solid @accent; }
QPushButton[primary="true"]:focus { border: 2px solid @text; }
QPushButton[example="true"] { text-align: left; padding: 11dp 16dp; border-radius: 12dp; background: @surface; border: 1px solid @surface; }
QPushButton[example="true"]:hover { background: @hover; }
QPushButton[example="true"]:focus { border: 2px solid @accent; padding: 10dp 15dp; }
QPushButton[link="true"] { border: 1px solid transparent; background: transparent; color: @accent; padding: 5dp 8dp; }
QPushButton[link="true"]:hover { background: @accent_soft; }
QPushButton[link="true"]:focus { border: 2px solid @accent; padding: 4dp 7dp; }

QLineEdit, QSpinBox, QDoubleSpinBox, QComboBox { background: @page; border: 1px solid @border; border-radius: 8dp; padding: 5dp 8dp; min-height: 20dp; selection-background-color: @accent; selection-color: @on_accent; }
QLineEdit:focus, QSpinBox:focus, QDoubleSpinBox:focus, QComboBox:focus { border: 2px solid @accent; padding: 4dp 7dp; }
QSpinBox::up-button, QSpinBox::down-button, QDoubleSpinBox::up-button, QDoubleSpinBox::down-button { width: 0; border: none; }
QComboBox::drop-down { border: none; width: 24dp; }
QComboBox::down-arrow { image: none; }
QComboBox QAbstractItemView { background: @page; border: 1px solid @border; selection-background-color: @accent_soft; selection-color: @text; outline: none; }
QPlainTextEdit, QTextBrowser { background: transparent; border: none; selection-background-color: @accent; selection-color: @on_accent; }
QFrame#input_frame { background: @surface; border: 1px solid @border; border-radius: 16dp; }
QFrame#input_frame[active="true"] { border: 1px solid @accent; }
QPlainTextEdit#system_prompt, QPlainTextEdit#log_text, QPlainTextEdit#edit_input { background: @page; border: 1px solid @border; border-radius: 8dp; padding: 4dp; }
QPlainTextEdit#system_prompt:focus, QPlainTextEdit#log_text:focus, QPlainTextEdit#edit_input:focus { border: 2px solid @accent; padding: 3dp; }

QFrame#user_bubble { background: @surface; border-radius: 16dp; }
QFrame#code_block { background: @code; border: 1px solid @border; border-radius: 8dp; }
QFrame#error_box { background: @danger_soft; border-radius: 12dp; }
QFrame#error_box QLabel { color: @text; }
QFrame#notice { background: @warning_soft; border-radius: 8dp; }
QFrame#model_strip { background: @surface; border-radius: 12dp; }
QFrame#model_strip[problem="true"] { background: @danger_soft; }
QFrame#device_card { background: @page; border: 1px solid @border; border-radius: 12dp; }
QFrame#devices_none { background: @surface; border-radius: 12dp; }
QLabel#device_badge { background: @hover; border-radius: 8dp; padding: 3dp 12dp; }
QLabel#device_badge[verdict="on"] { background: @success_soft; }
QLabel#device_badge[verdict="fixed"], QFrame#device_reason_box[verdict="fixed"] { background: @warning_soft; }
QLabel#device_badge[verdict="off"], QFrame#device_reason_box[verdict="off"] { background: @danger_soft; }
QFrame#device_reason_box { border-radius: 8dp; }
QPushButton#vram_why { padding: 0 8dp; min-height: 16dp; }
QPushButton#vram_why:focus { padding: 0 7dp; }
QFrame#sampling_panel { background: @page; border: none; border-left: 1px solid @border; }

QListView { background: transparent; border: none; outline: none; }
QProgressBar { background: @border; border: none; border-radius: 2dp; max-height: 4dp; min-height: 4dp; }
QProgressBar::chunk { background: @accent; border-radius: 2dp; }
QMenu { background: @page; border: 1px solid @border; border-radius: 8dp; padding: 4dp; }
QMenu::item { padding: 6dp 16dp 6dp 12dp; border-radius: 6dp; }
QMenu::item:selected { background: @accent_soft; color: @text; }
QMenu::item:disabled { color: @muted; }
QMenu::separator { height: 1px; background: @border; margin: 4dp 8dp; }
QCheckBox { spacing: 8dp; }
QSlider::groove:horizontal { height: 4dp; background: @border; border-radius: 2dp; }
QSlider::sub-page:horizontal { background: @accent; border-radius: 2dp; }
QSlider::handle:horizontal { background: @page; border: 2px solid @accent; width: 12dp; height: 12dp; margin: -6dp 0; border-radius: 8dp; }
QSlider::handle:horizontal:focus { background: @accent; }

QScrollBar:vertical { background: transparent; width: 12dp; margin: 0; }
QScrollBar:horizontal { background: transparent; height: 12dp; margin: 0; }
QScrollBar::handle { background: @border; border-radius: 3dp; margin: 3dp; }
QScrollBar::handle:vertical { min-height: 32dp; }
QScrollBar::handle:horizontal { min-width: 32dp; }
QScrollBar::handle:hover { background: @muted; }
QScrollBar::add-line, QScrollBar::sub-line { width: 0; height: 0; }
QScrollBar::add-page, QScrollBar::sub-page { background: transparent; }
)";

constexpr std::pair<const char*, ColorRole> kNames[] = {
    {"page", ColorRole::page}, {"sidebar", ColorRole::sidebar}, {"surface", ColorRole::surface}, {"hover", ColorRole::hover},
    {"border", ColorRole::border}, {"text", ColorRole::text}, {"muted", ColorRole::muted}, {"accent", ColorRole::accent},
    {"on_accent", ColorRole::on_accent}, {"accent_soft", ColorRole::accent_soft}, {"danger", ColorRole::danger},
    {"danger_soft", ColorRole::danger_soft}, {"success_soft", ColorRole::success_soft}, {"warning_soft", ColorRole::warning_soft}, {"code", ColorRole::code},
};

}  // namespace

QString make_style_sheet(const std::function<QString(ColorRole)>& color, const std::function<int(int)>& px) {
    static const QRegularExpression token(QStringLiteral("@([a-z_]+)|(-?)\\b(\\d+)dp"));
    const QString sheet = QString::fromLatin1(kSheet);
    QString result;
    qsizetype last = 0;
    for (auto matches = token.globalMatch(sheet); matches.hasNext();) {
        const auto match = matches.next();
        result += QStringView(sheet).sliced(last, match.capturedStart() - last);
        last = match.capturedEnd();
        if (match.capturedLength(1) > 0) {
            for (const auto& [name, role] : kNames) {
                if (match.captured(1) == QLatin1String(name)) result += color(role);
            }
        } else {
            result += match.captured(2) + QString::number(px(match.captured(3).toInt())) + QLatin1String("px");
        }
    }
    result += QStringView(sheet).sliced(last);
    return result;
}

}  // namespace headroom::ui
