#include "cli/terminal.h"

#include <cstdio>

#include "core/base/utf8.h"

namespace headroom::cli {

void write_output(std::string_view text) {
    std::fwrite(text.data(), 1, text.size(), stdout);
    std::fflush(stdout);
}

std::string without_control_characters(std::string_view text) {
    std::string out;
    while (!text.empty()) {
        const Utf8Step step = utf8_step(text);
        // C0 but for tab and line feed, DEL, C1: among them everything that begins an escape sequence.
        const char32_t code = step.code_point;
        const bool control = (code < 0x20 && code != '\t' && code != '\n') || (code >= 0x7F && code < 0xA0);
        if (step.status == Utf8Status::valid && !control) out.append(text.substr(0, step.length));
        text.remove_prefix(step.length);
    }
    return out;
}

bool output_arrived() { return std::fflush(stdout) == 0 && std::ferror(stdout) == 0; }

}  // namespace headroom::cli
