#include "core/text/byte_alphabet.h"

#include <array>

#include "core/base/utf8.h"

namespace headroom::text {
namespace {

struct Alphabet {
    std::array<std::string, 256> letters;
    std::array<int, 0x144> bytes;  // by code point; -1: not in the alphabet
};

Alphabet make_alphabet() {
    Alphabet alphabet;
    alphabet.bytes.fill(-1);
    char32_t next = 0x100;
    for (int byte = 0; byte < 256; ++byte) {
        const bool printable = (byte >= 0x21 && byte <= 0x7E) || (byte >= 0xA1 && byte <= 0xAC) || byte >= 0xAE;
        const char32_t code = printable ? static_cast<char32_t>(byte) : next++;
        append_utf8(alphabet.letters[static_cast<std::size_t>(byte)], code);
        alphabet.bytes[code] = byte;
    }
    return alphabet;
}

const Alphabet& alphabet() {
    static const Alphabet instance = make_alphabet();
    return instance;
}

}  // namespace

std::string_view byte_letter(unsigned char byte) noexcept { return alphabet().letters[byte]; }

std::string letters_to_bytes(std::string_view letters) {
    std::string out;
    while (!letters.empty()) {
        const Utf8Step step = utf8_step(letters);
        const bool known = step.status == Utf8Status::valid && step.code_point < alphabet().bytes.size() &&
                           alphabet().bytes[step.code_point] >= 0;
        if (known) {
            out.push_back(static_cast<char>(alphabet().bytes[step.code_point]));
        } else {
            out.append(letters.substr(0, step.length));
        }
        letters.remove_prefix(step.length);
    }
    return out;
}

}  // namespace headroom::text
