#pragma once

// Runs the real headroom-cli.

#include <QByteArray>
#include <QProcess>
#include <QString>
#include <QStringList>
#include <QTemporaryDir>

#include <nlohmann/json.hpp>

namespace headroom::test {

struct CliResult {
    int code = -1;  // -1: it did not end by itself
    QByteArray out;
    QByteArray error;
    // The object that --json printed, and that nothing else was printed; null otherwise.
    [[nodiscard]] nlohmann::ordered_json json() const;
};

// A folder of its own for user data, so that no model of the person who runs the tests is found (on Windows, where no variable
// names that folder, it is the person's own).
class Cli {
public:
    Cli();
    // Runs to the end. input: on standard input, then its end.
    [[nodiscard]] CliResult run(const QStringList& arguments, const QByteArray& input = {}) const;
    // Sets program, arguments and environment, without starting it.
    void prepare(QProcess& process, const QStringList& arguments) const;
    // A file of this content in the folder; returns its path.
    [[nodiscard]] QString write(const QString& name, const QByteArray& content) const;
    [[nodiscard]] QString folder() const { return folder_.path(); }
    [[nodiscard]] QString model_folder() const;

private:
    QTemporaryDir folder_;
};

// An argument or a path for the program, from one of std::filesystem.
[[nodiscard]] QString path_argument(const std::string& shared_part);

}  // namespace headroom::test
