#include <array>
#include <cstdio>
#include <iostream>
#include <optional>

#include <windows.h>

#include <fcntl.h>
#include <io.h>
#include <shellapi.h>

#include "cli/terminal.h"

namespace headroom::cli {
namespace {

std::string utf8(std::wstring_view text) {
    const int size = ::WideCharToMultiByte(CP_UTF8, 0, text.data(), static_cast<int>(text.size()), nullptr, 0, nullptr, nullptr);
    std::string out(static_cast<std::size_t>(size), '\0');
    ::WideCharToMultiByte(CP_UTF8, 0, text.data(), static_cast<int>(text.size()), out.data(), size, nullptr, nullptr);
    return out;
}

bool is_console(DWORD stream) {
    DWORD mode = 0;
    return ::GetConsoleMode(::GetStdHandle(stream), &mode) != 0;
}

bool allow_escape_sequences(DWORD stream) {
    DWORD mode = 0;
    const HANDLE handle = ::GetStdHandle(stream);
    return ::GetConsoleMode(handle, &mode) != 0 && ::SetConsoleMode(handle, mode | ENABLE_VIRTUAL_TERMINAL_PROCESSING) != 0;
}

}  // namespace

Terminal prepare_terminal() {
    ::_setmode(::_fileno(stdin), _O_BINARY);
    ::_setmode(::_fileno(stdout), _O_BINARY);
    ::_setmode(::_fileno(stderr), _O_BINARY);
    ::SetConsoleOutputCP(CP_UTF8);
    // A console that knows no escape sequences is treated as if it were none: plain text, no progress.
    return {is_console(STD_INPUT_HANDLE), allow_escape_sequences(STD_OUTPUT_HANDLE), allow_escape_sequences(STD_ERROR_HANDLE)};
}

std::vector<std::string> utf8_arguments(int /*argc*/, char** /*argv*/) {
    int count = 0;
    wchar_t** wide = ::CommandLineToArgvW(::GetCommandLineW(), &count);
    std::vector<std::string> arguments;
    for (int i = 1; wide != nullptr && i < count; ++i) arguments.push_back(utf8(wide[i]));
    ::LocalFree(wide);
    return arguments;
}

bool read_line(std::string& line) {
    line.clear();
    if (!is_console(STD_INPUT_HANDLE)) {
        if (!std::getline(std::cin, line)) return false;
        if (line.ends_with('\r')) line.pop_back();
        return true;
    }
    // The console gives UTF-16: its code page cannot be UTF-8 for reading.
    std::wstring wide;
    while (!wide.ends_with(L'\n')) {
        std::array<wchar_t, 512> part{};
        DWORD count = 0;
        if (::ReadConsoleW(::GetStdHandle(STD_INPUT_HANDLE), part.data(), static_cast<DWORD>(part.size()), &count, nullptr) == 0 ||
            count == 0)
            return false;
        wide.append(part.data(), count);
    }
    if (wide.starts_with(L'\x1A')) return false;  // Ctrl-Z
    while (wide.ends_with(L'\n') || wide.ends_with(L'\r')) wide.pop_back();
    line = utf8(wide);
    return true;
}

}  // namespace headroom::cli
