#pragma once

#include <QLocalServer>
#include <QLockFile>
#include <QObject>
#include <QStringList>

namespace headroom::ui {

// One running program per data folder. A second start hands its arguments over to the first and ends.
class SingleInstance : public QObject {
    Q_OBJECT

public:
    // folder: the data folder, which exists; it tells users and tests apart.
    explicit SingleInstance(const QString& folder, QObject* parent = nullptr);

    // True: this is the first one, which from now on gets the arguments of later ones. False: `arguments` were taken by the one that
    // runs (or it does not answer within two seconds, which is logged).
    [[nodiscard]] bool claim(const QStringList& arguments);

signals:
    void started_again(const QStringList& arguments);  // the window should come to the front

private:
    void read_message();
    bool hand_over(const QStringList& arguments);

    QLockFile lock_;
    QString name_;
    QLocalServer server_;
};

}  // namespace headroom::ui
