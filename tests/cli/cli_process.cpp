#include "tests/cli/cli_process.h"

#include <QCoreApplication>
#include <QDir>
#include <QFile>
#include <QProcessEnvironment>

#include "core/base/paths.h"
#include "tests/support/shared_data.h"

namespace headroom::test {

nlohmann::ordered_json CliResult::json() const {
    // One line, ended.
    if (!out.endsWith('\n') || out.count('\n') != 1) return {};
    return nlohmann::ordered_json::parse(out.toStdString(), nullptr, false);
}

Cli::Cli() { QDir(folder_.path()).mkpath(model_folder()); }

QString Cli::model_folder() const { return folder_.filePath("headroom/models"); }

void Cli::prepare(QProcess& process, const QStringList& arguments) const {
    auto environment = QProcessEnvironment::systemEnvironment();
    environment.insert("XDG_DATA_HOME", folder_.path());
    process.setProcessEnvironment(environment);
    process.setProgram(QCoreApplication::applicationDirPath() + "/headroom-cli");
    process.setArguments(arguments);
}

CliResult Cli::run(const QStringList& arguments, const QByteArray& input) const {
    QProcess process;
    prepare(process, arguments);
    process.start();
#ifdef Q_OS_WIN
    // On a busy machine wine refuses now and then to start a program ("Internal error").
    for (int again = 0; again < 3 && !process.waitForStarted(60'000) && process.error() == QProcess::FailedToStart; ++again) process.start();
#endif
    process.write(input);
    process.closeWriteChannel();
    CliResult result;
    if (process.waitForFinished(120'000) && process.exitStatus() == QProcess::NormalExit) result.code = process.exitCode();
    result.out = process.readAllStandardOutput();
    result.error = process.readAllStandardError();
    if (result.code == -1) {
        qWarning("%s did not end: %s", qPrintable(arguments.join(' ')), qPrintable(process.errorString()));
        process.kill();
        process.waitForFinished();
    }
    return result;
}

QString Cli::write(const QString& name, const QByteArray& content) const {
    QFile file(folder_.filePath(name));
    if (!file.open(QIODevice::WriteOnly) || file.write(content) != content.size()) qFatal("cannot write %s", qPrintable(name));
    return file.fileName();
}

QString path_argument(const std::string& shared_part) {
    const auto path = shared_data(shared_part);
    return path.empty() ? QString() : QString::fromStdString(to_utf8(path));
}

}  // namespace headroom::test
