#include "ui/program/run_window.h"

#include <QApplication>
#include <QCommandLineParser>
#include <QDir>
#include <QFileInfo>

#include <algorithm>

#include "core/base/log.h"
#include "core/base/paths.h"
#include "ui/controller/engine_backend.h"
#include "ui/program/program.h"
#include "ui/single_instance/single_instance.h"

namespace headroom::ui {
namespace {

struct Arguments {
    QString model;  // empty: none
    int context = 0;
    int threads = 0;
};

void add_options(QCommandLineParser& parser) {
    parser.setApplicationDescription(QCoreApplication::translate("Program", "Runs language models, and gives VRAM back when something else needs it."));
    parser.addHelpOption();
    parser.addVersionOption();
    parser.addPositionalArgument(QStringLiteral("model"), QCoreApplication::translate("Program", "A GGUF file to open."), QStringLiteral("[MODEL.gguf]"));
    parser.addOption({QStringLiteral("ctx"), QCoreApplication::translate("Program", "Context in tokens."), QStringLiteral("N")});
    parser.addOption({QStringLiteral("threads"), QCoreApplication::translate("Program", "Threads to compute with."), QStringLiteral("N")});
}

Arguments read_arguments(const QCommandLineParser& parser) {
    Arguments arguments;
    if (!parser.positionalArguments().isEmpty()) {
        const QString name = parser.positionalArguments().first();
        arguments.model = QFileInfo::exists(name) ? QFileInfo(name).absoluteFilePath() : name;  // the other instance has its own folder
    }
    arguments.context = std::max(0, parser.value(QStringLiteral("ctx")).toInt());
    arguments.threads = std::max(0, parser.value(QStringLiteral("threads")).toInt());
    return arguments;
}

}  // namespace

int run_window(int argc, char** argv) {
    QApplication application(argc, argv);
    QCoreApplication::setApplicationName(QStringLiteral("Headroom"));
    QCoreApplication::setApplicationVersion(QStringLiteral(HEADROOM_VERSION));
    QCommandLineParser parser;
    add_options(parser);
    parser.process(application);
    const Arguments arguments = read_arguments(parser);

    const std::filesystem::path folder = user_data_folder();
    const QString folder_name = QString::fromStdString(to_utf8(folder));
    QDir().mkpath(folder_name);
    start_log(LogLevel::info, folder / "headroom.log");
    SingleInstance instance(folder_name);
    QStringList handed{arguments.model, QString::number(arguments.context), QString::number(arguments.threads)};
    if (!instance.claim(handed)) return 0;

    Program program(folder, std::make_unique<EngineBackend>(), std::make_unique<EngineDeviceBackend>(folder),
                    std::make_unique<EngineServerBackend>(HEADROOM_VERSION, folder));
    QObject::connect(&instance, &SingleInstance::started_again, &program.window(), [&](const QStringList& again) {
        program.window().bring_to_front();
        if (!again.value(0).isEmpty()) program.window().open_model(again[0], again.value(1).toInt(), again.value(2).toInt());
    });
    program.window().show();
    program.open_first_model(arguments.model, arguments.context, arguments.threads);
    return QApplication::exec();
}

}  // namespace headroom::ui
