#include <QLockFile>

#include <windows.h>

#include "ui/single_instance/foreground.h"

namespace headroom::ui {

void let_take_foreground(const QLockFile& lock) {
    qint64 process = 0;
    QString host;
    QString program;
    if (lock.getLockInfo(&process, &host, &program)) ::AllowSetForegroundWindow(static_cast<DWORD>(process));
}

}  // namespace headroom::ui
