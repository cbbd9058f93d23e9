#include "ui/pages/settings_page.h"

#include <QComboBox>
#include <QFileDialog>
#include <QFormLayout>
#include <QHBoxLayout>
#include <QLabel>
#include <QLineEdit>
#include <QPainter>
#include <QPushButton>
#include <QSpinBox>
#include <QVBoxLayout>

#include <algorithm>

#include "ui/pages/page_title.h"
#include "ui/theme/centered_column.h"

namespace headroom::ui {

namespace {

// The style sheet hides the platform's arrow, which would keep its own colours.
class ComboBox : public QComboBox {
public:
    ComboBox(const Theme& theme, QWidget* parent) : QComboBox(parent), theme_(theme) {}

protected:
    void paintEvent(QPaintEvent* event) override {
        QComboBox::paintEvent(event);
        const int size = theme_.px(16);
        const int x = isRightToLeft() ? theme_.px(8) : width() - size - theme_.px(8);
        QPainter painter(this);
        theme_.icon(QStringLiteral("chevron-down")).paint(&painter, x, (height() - size) / 2, size, size);
    }

private:
    const Theme& theme_;
};

}  // namespace

SettingsPage::SettingsPage(Theme& theme, Settings& settings, QWidget* parent) : QWidget(parent), theme_(theme), settings_(settings) {
    auto* colors = new ComboBox(theme, this);
    colors->setObjectName(QStringLiteral("color_mode"));
    colors->addItem(tr("As the system"), to_string(Theme::Mode::system));
    colors->addItem(tr("Light"), to_string(Theme::Mode::light));
    colors->addItem(tr("Dark"), to_string(Theme::Mode::dark));
    colors->setCurrentIndex(colors->findData(to_string(theme_.mode())));
    connect(colors, &QComboBox::currentIndexChanged, this, [this, colors] {
        settings_.set(Settings::Key::color_mode, colors->currentData());
        theme_.set_mode(mode_from(colors->currentData().toString()));
    });
    auto* text = new QSpinBox(this);
    text->setObjectName(QStringLiteral("text_percent"));
    text->setRange(75, 200);
    text->setSingleStep(25);
    text->setSuffix(QStringLiteral(" %"));
    text->setValue(theme_.text_percent());
    text->setKeyboardTracking(false);
    connect(text, &QSpinBox::valueChanged, this, [this](int percent) {
        settings_.set(Settings::Key::text_percent, percent);
        if (percent != theme_.text_percent()) theme_.set_text_percent(percent);
    });
    connect(&theme_, &Theme::changed, text, [this, text] { text->setValue(theme_.text_percent()); });

    const auto make_count = [this](const char* name, Settings::Key key, int maximum) {
        auto* field = new QSpinBox(this);
        field->setObjectName(QLatin1String(name));
        field->setRange(0, maximum);
        field->setSpecialValueText(tr("automatic"));
        field->setValue(settings_.number(key));
        field->setKeyboardTracking(false);
        connect(field, &QSpinBox::valueChanged, this, [this, key](int value) { settings_.set(key, value); });
        return field;
    };
    auto* context = make_count("context_size", Settings::Key::context, 10'000'000);
    context->setSingleStep(1024);
    auto* threads = make_count("threads", Settings::Key::threads, 1024);
    auto* kept = new ComboBox(theme, this);
    kept->setObjectName(QStringLiteral("kv_type"));
    kept->addItem(tr("16 bit"), QStringLiteral("f16"));
    kept->addItem(tr("8 bit"), QStringLiteral("q8_0"));
    kept->setCurrentIndex(std::max(0, kept->findData(settings_.text(Settings::Key::kv_type))));
    connect(kept, &QComboBox::currentIndexChanged, this, [this, kept] { settings_.set(Settings::Key::kv_type, kept->currentData()); });
    auto* reload = new QPushButton(tr("Load the model again"), this);
    reload->setObjectName(QStringLiteral("reload_model"));
    connect(reload, &QPushButton::clicked, this, &SettingsPage::reload_model);

    auto* form = new QFormLayout;
    form->setContentsMargins(0, theme.px(16), 0, 0);
    form->setHorizontalSpacing(theme.px(24));
    form->setVerticalSpacing(theme.px(16));
    form->setLabelAlignment(Qt::AlignLeading | Qt::AlignTop);
    form->setFieldGrowthPolicy(QFormLayout::AllNonFixedFieldsGrow);
    form->setRowWrapPolicy(QFormLayout::DontWrapRows);
    add_row(*form, tr("Colours"), colors, {});
    add_row(*form, tr("Text size"), text, tr("Ctrl + and Ctrl − change it too."));
    add_row(*form, tr("Model folder"), make_folder_row(), tr("GGUF files in it are listed under the model's name."));
    add_row(*form, tr("Context"), context, tr("How many tokens a conversation may have. More takes more memory."));
    add_row(*form, tr("Keys and values"), kept,
            tr("What the model keeps of a conversation. With 8 bit it takes half the memory, and some words of an answer may be others."));
    add_row(*form, tr("Threads"), threads, tr("Automatic: one for each core of the processor."));
    auto* reload_row = new QHBoxLayout;
    reload_row->addWidget(reload);
    reload_row->addStretch(1);
    form->addRow(QString(), reload_row);

    auto* inside = new CenteredColumn(theme, this);
    auto* body = new QWidget(this);
    body->setLayout(form);
    inside->add(new PageTitle(theme, tr("Settings"), this));
    inside->add(body);
    auto* column = new QVBoxLayout(this);
    column->setContentsMargins(0, theme.px(16), 0, theme.px(24));
    column->addWidget(inside);
    column->addStretch(1);
    setFocusProxy(colors);
}

QWidget* SettingsPage::make_folder_row() {
    auto* row = new QWidget(this);
    auto* folder = new QLineEdit(settings_.text(Settings::Key::model_folder), row);
    folder->setObjectName(QStringLiteral("model_folder"));
    auto* choose = new QPushButton(tr("Choose…"), row);
    choose->setObjectName(QStringLiteral("choose_model_folder"));
    connect(folder, &QLineEdit::editingFinished, this, [this, folder] { settings_.set(Settings::Key::model_folder, folder->text()); });
    connect(choose, &QPushButton::clicked, this, [this, folder] {
        const QString chosen = QFileDialog::getExistingDirectory(this, tr("Model folder"), folder->text());
        if (chosen.isEmpty()) return;
        folder->setText(chosen);
        settings_.set(Settings::Key::model_folder, chosen);
    });
    auto* box = new QHBoxLayout(row);
    box->setContentsMargins(0, 0, 0, 0);
    box->setSpacing(theme_.px(8));
    box->addWidget(folder, 1);
    box->addWidget(choose);
    row->setFocusProxy(folder);
    return row;
}

void SettingsPage::add_row(QFormLayout& form, const QString& label, QWidget* field, const QString& help) {
    auto* name = new QLabel(label, this);
    field->ensurePolished();
    name->setMinimumHeight(field->sizeHint().height());
    name->setAlignment(Qt::AlignLeading | Qt::AlignVCenter);
    name->setBuddy(field);
    field->setAccessibleName(label);
    auto* column = new QVBoxLayout;
    column->setSpacing(theme_.px(4));
    column->addWidget(field);
    if (!help.isEmpty()) {
        field->setAccessibleDescription(help);
        auto* words = new QLabel(help, this);
        words->setProperty("muted", true);
        words->setWordWrap(true);
        column->addWidget(words);
    }
    form.addRow(name, column);
}

}  // namespace headroom::ui
