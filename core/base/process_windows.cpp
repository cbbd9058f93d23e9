#include "core/base/process.h"

#include <windows.h>

#include <string>

#include "core/base/paths.h"

namespace headroom {
namespace {

using Clock = std::chrono::steady_clock;

struct Handle {
    HANDLE value = nullptr;
    ~Handle() { close(); }
    void close() {
        if (value && value != INVALID_HANDLE_VALUE) ::CloseHandle(value);
        value = nullptr;
    }
};

// One argument as CommandLineToArgvW and the C runtime read it back: quotes, and backslashes doubled in front of quotes.
void append_argument(std::wstring& line, const std::wstring& argument) {
    if (!line.empty()) line += L' ';
    line += L'"';
    std::size_t slashes = 0;
    for (const wchar_t c : argument) {
        if (c == L'\\') {
            ++slashes;
            continue;
        }
        line.append(c == L'"' ? slashes * 2 + 1 : slashes, L'\\');
        slashes = 0;
        line += c;
    }
    line.append(slashes * 2, L'\\');
    line += L'"';
}

// Exit codes that are exceptions: the system sets the two top bits ("error") for them.
bool is_exception(DWORD code) noexcept { return (code & 0xC0000000u) == 0xC0000000u; }

}  // namespace

Result<ChildResult> run_child(const ChildCommand& command) {
    SECURITY_ATTRIBUTES inheritable{sizeof inheritable, nullptr, TRUE};
    Handle read, write, nowhere;
    if (!::CreatePipe(&read.value, &write.value, &inheritable, 1 << 16)) {
        return fail(ErrorKind::io, "a pipe cannot be made: Windows error {}", ::GetLastError());
    }
    ::SetHandleInformation(read.value, HANDLE_FLAG_INHERIT, 0);
    nowhere.value = ::CreateFileW(L"NUL", GENERIC_READ | GENERIC_WRITE, FILE_SHARE_READ | FILE_SHARE_WRITE, &inheritable,
                                  OPEN_EXISTING, 0, nullptr);
    std::wstring line;
    append_argument(line, command.program.wstring());
    for (const auto& argument : command.arguments) append_argument(line, from_utf8(argument).wstring());

    // A job whose processes end with it: what the child starts goes too.
    Handle job{::CreateJobObjectW(nullptr, nullptr)};
    JOBOBJECT_EXTENDED_LIMIT_INFORMATION limits{};
    limits.BasicLimitInformation.LimitFlags = JOB_OBJECT_LIMIT_KILL_ON_JOB_CLOSE | JOB_OBJECT_LIMIT_DIE_ON_UNHANDLED_EXCEPTION;
    if (job.value) ::SetInformationJobObject(job.value, JobObjectExtendedLimitInformation, &limits, sizeof limits);

    STARTUPINFOW startup{};
    startup.cb = sizeof startup;
    startup.dwFlags = STARTF_USESTDHANDLES;
    startup.hStdInput = nowhere.value;
    startup.hStdOutput = write.value;
    startup.hStdError = nowhere.value;
    PROCESS_INFORMATION info{};
    const auto start = Clock::now();
    if (!::CreateProcessW(command.program.c_str(), line.data(), nullptr, nullptr, TRUE, CREATE_NO_WINDOW | CREATE_SUSPENDED, nullptr,
                          nullptr, &startup, &info)) {
        return fail(ErrorKind::io, "{} cannot be started: Windows error {}", to_utf8(command.program), ::GetLastError());
    }
    Handle process{info.hProcess}, thread{info.hThread};
    if (job.value) ::AssignProcessToJobObject(job.value, process.value);
    ::ResumeThread(thread.value);
    write.close();

    ChildResult result;
    const auto deadline = start + command.time_limit;
    bool killed = false;
    for (;;) {
        const bool over = ::WaitForSingleObject(process.value, 0) == WAIT_OBJECT_0;
        const bool stopped = command.stop.stop_requested();
        if (!over && !killed && (stopped || Clock::now() >= deadline)) {
            if (!job.value || !::TerminateJobObject(job.value, 1)) ::TerminateProcess(process.value, 1);
            killed = true;
            result.end = stopped ? ChildResult::End::stopped : ChildResult::End::timed_out;
        }
        DWORD ready = 0;
        const bool open = ::PeekNamedPipe(read.value, nullptr, 0, nullptr, &ready, nullptr);
        if (open && ready > 0) {
            char buffer[16384];
            DWORD got = 0;
            if (::ReadFile(read.value, buffer, std::min<DWORD>(ready, sizeof buffer), &got, nullptr) && got > 0) {
                if (command.on_output) command.on_output({buffer, got});
                const std::size_t room = command.output_limit - std::min(command.output_limit, result.output.size());
                result.output.append(buffer, std::min<std::size_t>(room, got));
            }
            continue;
        }
        if (over) break;
        ::WaitForSingleObject(process.value, 2);
    }
    result.seconds = std::chrono::duration<double>(Clock::now() - start).count();
    DWORD code = 0;
    ::GetExitCodeProcess(process.value, &code);
    result.code = static_cast<int>(code);
    if (killed) return result;
    if (is_exception(code)) {
        result.end = ChildResult::End::crashed;
        result.crash = fmt::format("exception {:#010x}", code);
    }
    return result;
}

bool write_standard_output(std::string_view text) noexcept {
    const HANDLE out = ::GetStdHandle(STD_OUTPUT_HANDLE);
    if (!out || out == INVALID_HANDLE_VALUE) return false;
    while (!text.empty()) {
        DWORD done = 0;
        if (!::WriteFile(out, text.data(), static_cast<DWORD>(std::min<std::size_t>(text.size(), 1 << 16)), &done, nullptr) || done == 0) {
            return false;
        }
        text.remove_prefix(done);
    }
    return true;
}

std::uint32_t process_id() noexcept { return ::GetCurrentProcessId(); }

}  // namespace headroom
