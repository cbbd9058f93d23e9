#pragma once

#include <QString>
#include <QStringView>

#include <vector>

namespace headroom::ui::markdown {

// A piece of a line of text, all of one look.
struct Span {
    QString text;
    bool bold = false;
    bool italic = false;
    bool strike = false;
    bool code = false;
    QString link;  // http, https or mailto; empty: none
    bool operator==(const Span&) const = default;
};

// Takes emphasis, code, links and escapes of a paragraph apart, in time about linear in its length. Images become links to them; links to
// anything but web pages and mail stay text, as does HTML.
[[nodiscard]] std::vector<Span> parse_inline(QStringView text);

}  // namespace headroom::ui::markdown
