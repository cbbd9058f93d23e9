#include <QSettings>

#include "ui/theme/system_colors.h"

namespace headroom::ui {

bool system_is_dark() {
    const QSettings personalize(
        QStringLiteral("HKEY_CURRENT_USER\\Software\\Microsoft\\Windows\\CurrentVersion\\Themes\\Personalize"), QSettings::NativeFormat);
    return personalize.value(QStringLiteral("AppsUseLightTheme"), 1).toInt() == 0;
}

}  // namespace headroom::ui
