#pragma once

// The three standard streams, where systems differ.

#include <string>
#include <string_view>
#include <vector>

namespace headroom::cli {

// Which of the streams are terminals.
struct Terminal {
    bool input = false;
    bool output = false;
    bool error = false;
};

// Once, before anything is read or written. On Windows: UTF-8, escape sequences, and no "\r\n" for "\n".
[[nodiscard]] Terminal prepare_terminal();

// What main was given, in UTF-8.
[[nodiscard]] std::vector<std::string> utf8_arguments(int argc, char** argv);

// A line of standard input, without its end. False where the input is over.
[[nodiscard]] bool read_line(std::string& line);

// Writes to standard output at once; text from a model has its control characters taken out when it goes to a terminal.
void write_output(std::string_view text);
[[nodiscard]] std::string without_control_characters(std::string_view text);

// False where something written to standard output has not arrived.
[[nodiscard]] bool output_arrived();

}  // namespace headroom::cli
