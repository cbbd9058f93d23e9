#include "ui/single_instance/single_instance.h"

#include <QCryptographicHash>
#include <QDataStream>
#include <QDir>
#include <QElapsedTimer>
#include <QLocalSocket>
#include <QThread>

#include <spdlog/spdlog.h>

#include "ui/single_instance/foreground.h"

namespace headroom::ui {
namespace {

constexpr int kWaitMs = 2'000;
constexpr qint64 kLargestMessage = 1 << 20;

QString server_name(const QString& folder) {
    const QByteArray hash = QCryptographicHash::hash(QDir(folder).canonicalPath().toUtf8(), QCryptographicHash::Sha256);
    return QStringLiteral("headroom-") + QString::fromLatin1(hash.toHex().first(16));
}

}  // namespace

SingleInstance::SingleInstance(const QString& folder, QObject* parent)
    : QObject(parent), lock_(QDir(folder).filePath(QStringLiteral("lock"))), name_(server_name(folder)) {
    lock_.setStaleLockTime(0);  // a lock is only as old as its process
    server_.setSocketOptions(QLocalServer::UserAccessOption);
    connect(&server_, &QLocalServer::newConnection, this, &SingleInstance::read_message);
}

bool SingleInstance::claim(const QStringList& arguments) {
    if (!lock_.tryLock() && lock_.error() == QLockFile::LockFailedError) {
        if (!hand_over(arguments)) spdlog::error("Headroom is running already, but does not answer.");
        return false;
    }
    QLocalServer::removeServer(name_);  // of a program that was killed
    if (!server_.listen(name_)) spdlog::warn("a second start will not reach this one: {}", server_.errorString().toStdString());
    return true;
}

bool SingleInstance::hand_over(const QStringList& arguments) {
    QElapsedTimer time;
    time.start();
    QLocalSocket socket;
    while (time.elapsed() < kWaitMs) {  // the first one may be just starting
        socket.connectToServer(name_);
        if (socket.waitForConnected(kWaitMs)) break;
        QThread::msleep(20);
    }
    if (socket.state() != QLocalSocket::ConnectedState) return false;
    let_take_foreground(lock_);
    QDataStream stream(&socket);
    stream << arguments;
    return socket.waitForBytesWritten(kWaitMs) && socket.waitForReadyRead(kWaitMs);
}

void SingleInstance::read_message() {
    while (QLocalSocket* socket = server_.nextPendingConnection()) {
        connect(socket, &QLocalSocket::disconnected, socket, &QObject::deleteLater);
        const auto read = [this, socket] {
            if (socket->bytesAvailable() > kLargestMessage) {
                socket->abort();
                return;
            }
            QDataStream stream(socket);
            stream.startTransaction();
            QStringList arguments;
            stream >> arguments;
            if (!stream.commitTransaction()) return;
            socket->write("k");
            socket->flush();
            emit started_again(arguments);
        };
        connect(socket, &QLocalSocket::readyRead, this, read);
        if (socket->bytesAvailable() > 0) read();
    }
}

}  // namespace headroom::ui
