#include "core/base/system.h"

#include <windows.h>

#include <psapi.h>
#include <shlobj.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "core/base/paths.h"

namespace headroom {

int physical_cores() noexcept {
    DWORD bytes = 0;
    ::GetLogicalProcessorInformationEx(RelationProcessorCore, nullptr, &bytes);
    try {
        std::vector<char> buffer(bytes);
        auto* info = reinterpret_cast<SYSTEM_LOGICAL_PROCESSOR_INFORMATION_EX*>(buffer.data());
        if (bytes == 0 || !::GetLogicalProcessorInformationEx(RelationProcessorCore, info, &bytes)) return 1;
        int cores = 0;
        for (DWORD at = 0; at < bytes; ++cores) {
            const auto* entry = reinterpret_cast<const SYSTEM_LOGICAL_PROCESSOR_INFORMATION_EX*>(buffer.data() + at);
            if (entry->Size == 0) break;
            at += entry->Size;
        }
        return std::max(1, cores);
    } catch (...) {
        return 1;
    }
}

std::uint64_t total_ram() noexcept {
    MEMORYSTATUSEX status{};
    status.dwLength = sizeof status;
    return ::GlobalMemoryStatusEx(&status) ? status.ullTotalPhys : 0;
}

std::uint64_t available_ram() noexcept {
    MEMORYSTATUSEX status{};
    status.dwLength = sizeof status;
    return ::GlobalMemoryStatusEx(&status) ? status.ullAvailPhys : 0;
}

std::uint64_t peak_resident_bytes() noexcept {
    PROCESS_MEMORY_COUNTERS counters{};
    counters.cb = sizeof counters;
    return ::GetProcessMemoryInfo(::GetCurrentProcess(), &counters, sizeof counters) ? counters.PeakWorkingSetSize : 0;
}

std::string os_name() {
    // GetVersionEx answers with the version a program says it was made for; this one with the real one.
    using RtlGetVersion = LONG(WINAPI*)(OSVERSIONINFOW*);
    OSVERSIONINFOW info{};
    info.dwOSVersionInfoSize = sizeof info;
    const HMODULE library = ::GetModuleHandleW(L"ntdll.dll");
    const auto get = library ? reinterpret_cast<RtlGetVersion>(reinterpret_cast<void*>(::GetProcAddress(library, "RtlGetVersion"))) : nullptr;
    if (!get || get(&info) != 0) return "Windows";
    return fmt::format("Windows {}.{}.{}", info.dwMajorVersion, info.dwMinorVersion, info.dwBuildNumber);
}

std::optional<OpenFileLimit> open_file_limit() noexcept { return std::nullopt; }

std::optional<OpenFileLimit> raise_open_file_limit(std::uint64_t) noexcept { return std::nullopt; }

std::optional<std::uint64_t> open_file_count() noexcept { return std::nullopt; }

std::string to_utf8(const std::filesystem::path& path) {
    const std::wstring& name = path.native();
    const int length = static_cast<int>(name.size());
    const int bytes = ::WideCharToMultiByte(CP_UTF8, 0, name.data(), length, nullptr, 0, nullptr, nullptr);
    std::string text(static_cast<std::size_t>(std::max(bytes, 0)), '\0');
    ::WideCharToMultiByte(CP_UTF8, 0, name.data(), length, text.data(), bytes, nullptr, nullptr);
    return text;
}

std::filesystem::path from_utf8(std::string_view text) {
    const int bytes = static_cast<int>(text.size());
    const int length = ::MultiByteToWideChar(CP_UTF8, 0, text.data(), bytes, nullptr, 0);
    std::wstring name(static_cast<std::size_t>(std::max(length, 0)), L'\0');
    ::MultiByteToWideChar(CP_UTF8, 0, text.data(), bytes, name.data(), length);
    return std::filesystem::path(std::move(name));
}

std::filesystem::path user_data_folder() {
    wchar_t folder[MAX_PATH] = {};
    if (::SHGetFolderPathW(nullptr, CSIDL_APPDATA, nullptr, SHGFP_TYPE_CURRENT, folder) == S_OK) {
        return std::filesystem::path(folder) / "Headroom";
    }
    return std::filesystem::path(L".") / "Headroom";
}

std::filesystem::path program_file() {
    std::wstring name(32768, L'\0');
    const DWORD length = ::GetModuleFileNameW(nullptr, name.data(), static_cast<DWORD>(name.size()));
    name.resize(length);
    return std::filesystem::path(name);
}

std::chrono::local_seconds local_time() noexcept {
    using namespace std::chrono;
    SYSTEMTIME local{};
    ::GetLocalTime(&local);
    const local_days day{year(local.wYear) / local.wMonth / local.wDay};
    return day + hours(local.wHour) + minutes(local.wMinute) + seconds(local.wSecond);
}

}  // namespace headroom
