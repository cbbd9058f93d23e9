#include "ui/chat/reasoning.h"

namespace headroom::ui {
namespace {

constexpr QStringView kOpen = u"<think>";
constexpr QStringView kClose = u"</think>";

QStringView trim_start(QStringView text) {
    qsizetype begin = 0;
    while (begin < text.size() && text[begin].isSpace()) ++begin;
    return text.sliced(begin);
}

}  // namespace

AnswerParts split_reasoning(QStringView text) {
    const QStringView body = trim_start(text);
    const bool opened = body.startsWith(kOpen);
    const qsizetype close = text.indexOf(kClose);
    if (!opened && close < 0) {
        // The tag itself may still be arriving.
        if (!body.isEmpty() && body.size() < kOpen.size() && kOpen.startsWith(body)) return {{}, {}, true};
        return {{}, text, false};
    }
    const QStringView rest = opened ? body.sliced(kOpen.size()) : text;
    const qsizetype end = rest.indexOf(kClose);
    if (end < 0) return {rest.trimmed(), {}, true};
    return {rest.first(end).trimmed(), trim_start(rest.sliced(end + kClose.size())), false};
}

}  // namespace headroom::ui
