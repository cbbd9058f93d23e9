#include "ui/chat/model_strip.h"

#include <QHBoxLayout>
#include <QStyle>
#include <QVBoxLayout>

#include "core/base/bytes.h"
#include "core/base/paths.h"

namespace headroom::ui {
namespace {

QString bytes(std::uint64_t count) { return QString::fromStdString(format_bytes(count)); }

QString file_name(const ModelStatus& model) {
    if (model.path.empty() && model.request.name == "builtin") return ModelStrip::tr("the built-in model");
    const auto path = model.path.empty() ? from_utf8(model.request.name) : model.path;
    return QString::fromStdString(to_utf8(path.filename()));
}

}  // namespace

ModelStrip::ModelStrip(const Theme& theme, EngineController& engine, QWidget* parent)
    : QFrame(parent), engine_(engine), title_(new QLabel(this)), detail_(new QLabel(this)), bar_(new QProgressBar(this)),
      cancel_(new QPushButton(tr("Cancel"), this)), anyway_(new QPushButton(tr("Load anyway"), this)),
      again_(new QPushButton(tr("Try again"), this)), open_(new QPushButton(tr("Open a model…"), this)),
      builtin_(new QPushButton(tr("Use the built-in model"), this)) {
    setObjectName(QStringLiteral("model_strip"));
    title_->setObjectName(QStringLiteral("model_strip_title"));
    title_->setProperty("heading", true);
    title_->setTextFormat(Qt::PlainText);
    detail_->setObjectName(QStringLiteral("model_strip_detail"));
    detail_->setTextFormat(Qt::PlainText);
    detail_->setWordWrap(true);
    detail_->setTextInteractionFlags(Qt::TextSelectableByMouse | Qt::TextSelectableByKeyboard);
    bar_->setTextVisible(false);
    bar_->setRange(0, 1000);
    bar_->setObjectName(QStringLiteral("load_progress"));
    bar_->setAccessibleName(tr("Loading"));
    cancel_->setObjectName(QStringLiteral("cancel_load"));
    anyway_->setObjectName(QStringLiteral("load_anyway"));
    again_->setObjectName(QStringLiteral("load_again"));
    open_->setObjectName(QStringLiteral("strip_open_model"));
    builtin_->setObjectName(QStringLiteral("strip_builtin"));

    auto* buttons = new QHBoxLayout;
    buttons->setSpacing(theme.px(8));
    buttons->addStretch(1);
    for (QPushButton* button : {builtin_, open_, again_, anyway_, cancel_}) buttons->addWidget(button);
    auto* column = new QVBoxLayout(this);
    column->setContentsMargins(theme.px(16), theme.px(12), theme.px(12), theme.px(12));
    column->setSpacing(theme.px(8));
    column->addWidget(title_);
    column->addWidget(detail_);
    column->addWidget(bar_);
    column->addLayout(buttons);

    connect(cancel_, &QPushButton::clicked, &engine_, &EngineController::cancel_load);
    connect(anyway_, &QPushButton::clicked, &engine_, &EngineController::load_anyway);
    connect(again_, &QPushButton::clicked, this, [this] { engine_.open(OpenRequest(engine_.model().request)); });
    connect(open_, &QPushButton::clicked, this, &ModelStrip::open_model);
    connect(builtin_, &QPushButton::clicked, this, &ModelStrip::open_builtin);
    connect(&engine_, &EngineController::model_changed, this, &ModelStrip::update_state);
    connect(&engine_, &EngineController::load_progress, this, &ModelStrip::update_progress);
    update_state();
}

void ModelStrip::update_state() {
    using State = ModelStatus::State;
    const ModelStatus& model = engine_.model();
    const bool builtin = model.request.name == "builtin";
    setVisible(model.state != State::ready);
    bar_->setVisible(model.state == State::loading || model.state == State::inspecting);
    cancel_->setVisible(model.state == State::loading || model.state == State::inspecting || model.state == State::asking);
    anyway_->setVisible(model.state == State::asking);
    again_->setVisible(model.state == State::failed || (model.state == State::none && !model.path.empty()));
    open_->setVisible(model.state == State::failed || model.state == State::none);
    builtin_->setVisible((model.state == State::failed || model.state == State::none) && !builtin);
    setProperty("problem", model.state == State::failed);
    style()->unpolish(this);
    style()->polish(this);
    switch (model.state) {
        case State::none:
            title_->setText(tr("No model is loaded"));
            detail_->setText(tr("What you send is answered as soon as one is."));
            break;
        case State::inspecting:
            bar_->setValue(0);
            title_->setText(tr("Loading %1").arg(file_name(model)));
            detail_->setText(model.held ? tr("Testing whether this computer's GPU can give memory back. This is done once.") : tr("Opening the file…"));
            break;
        case State::asking:
            title_->setText(tr("%1 may not fit").arg(file_name(model)));
            detail_->setText(tr("It needs about %1 of memory (%2 for the model, %3 for the conversation), and %4 are available now. "
                                "It may be very slow, or fail.")
                                 .arg(bytes(model.estimate.total()), bytes(model.estimate.weights_bytes), bytes(model.estimate.kv_bytes),
                                      bytes(model.estimate.available_ram)));
            break;
        case State::loading:
            title_->setText(tr("Loading %1").arg(file_name(model)));
            update_progress();
            break;
        case State::ready: break;
        case State::failed:
            title_->setText(tr("%1 could not be loaded").arg(file_name(model)));
            detail_->setText(model.problem);
            break;
    }
}

void ModelStrip::update_progress() {
    const ModelStatus& model = engine_.model();
    if (model.state != ModelStatus::State::loading) return;
    const engine::LoadProgress& progress = model.progress;
    bar_->setValue(static_cast<int>(progress.fraction * 1000));
    QString text;
    switch (progress.stage) {
        case engine::LoadProgress::Stage::opening: text = tr("Opening the file…"); break;
        case engine::LoadProgress::Stage::reading:
            text = tr("Reading: %1 %, %2 of %3")
                       .arg(static_cast<int>(progress.fraction * 100))
                       .arg(bytes(progress.bytes_done), bytes(progress.bytes_total));
            break;
        case engine::LoadProgress::Stage::preparing: text = tr("Preparing: %1 %").arg(static_cast<int>(progress.fraction * 100)); break;
    }
    const engine::Estimate& estimate = model.estimate;
    const QString need = estimate.available_ram == 0
                             ? tr("needs about %1 of memory").arg(bytes(estimate.total()))
                             : tr("needs about %1 of memory, %2 are available").arg(bytes(estimate.total()), bytes(estimate.available_ram));
    detail_->setText(text + QStringLiteral(" · ") + need);
}

}  // namespace headroom::ui
