#include "ui/theme/size_text.h"

#include "core/base/bytes.h"

namespace headroom::ui {

QString size_text(std::uint64_t bytes) { return QString::fromStdString(format_bytes(bytes)).replace(u' ', QChar::Nbsp); }

}  // namespace headroom::ui
