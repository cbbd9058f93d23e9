#include "core/base/system.h"

#include <algorithm>
#include <cstdlib>
#include <ctime>
#include <dirent.h>
#include <fstream>
#include <pwd.h>
#include <sched.h>
#include <set>
#include <string>
#include <sys/resource.h>
#include <sys/utsname.h>
#include <unistd.h>
#include <utility>

#include <fmt/format.h>

#include "core/base/bytes.h"
#include "core/base/paths.h"

namespace headroom {
namespace {

int read_int(const std::string& path, int fallback) {
    std::ifstream in(path);
    int value = fallback;
    return in >> value ? value : fallback;
}

// A line "Name:   123 kB" of a file under /proc, in bytes; 0 if it is not there.
std::uint64_t read_kib_line(const char* path, const std::string& name) {
    std::ifstream in(path);
    std::string word;
    while (in >> word) {
        std::uint64_t kib = 0;
        if (word == name && in >> kib) return kib * KiB;
        in.ignore(1024, '\n');
    }
    return 0;
}

}  // namespace

int physical_cores() noexcept {
    try {
        cpu_set_t allowed;
        CPU_ZERO(&allowed);
        if (::sched_getaffinity(0, sizeof allowed, &allowed) != 0) return 1;
        std::set<std::pair<int, int>> cores;  // (package, core)
        for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
            if (!CPU_ISSET(cpu, &allowed)) continue;
            const std::string folder = fmt::format("/sys/devices/system/cpu/cpu{}/topology/", cpu);
            cores.emplace(read_int(folder + "physical_package_id", 0), read_int(folder + "core_id", cpu));
        }
        return std::max(1, static_cast<int>(cores.size()));
    } catch (...) {
        return 1;
    }
}

std::uint64_t total_ram() noexcept {
    try {
        return read_kib_line("/proc/meminfo", "MemTotal:");
    } catch (...) {
        return 0;
    }
}

std::uint64_t available_ram() noexcept {
    try {
        return read_kib_line("/proc/meminfo", "MemAvailable:");
    } catch (...) {
        return 0;
    }
}

std::uint64_t peak_resident_bytes() noexcept {
    rusage usage{};
    if (::getrusage(RUSAGE_SELF, &usage) != 0) return 0;
    return static_cast<std::uint64_t>(usage.ru_maxrss) * KiB;
}

std::string os_name() {
    utsname name{};
    if (::uname(&name) != 0) return "Linux";
    return fmt::format("{} {}", name.sysname, name.release);
}

std::optional<OpenFileLimit> open_file_limit() noexcept {
    rlimit limit{};
    if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return std::nullopt;
    return OpenFileLimit{limit.rlim_cur, limit.rlim_max};
}

std::optional<OpenFileLimit> raise_open_file_limit(std::uint64_t wanted) noexcept {
    rlimit limit{};
    if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return std::nullopt;
    if (limit.rlim_cur < wanted) {
        rlimit raised = limit;
        raised.rlim_cur = std::min<rlim_t>(wanted, limit.rlim_max);
        if (::setrlimit(RLIMIT_NOFILE, &raised) == 0) limit = raised;
    }
    return OpenFileLimit{limit.rlim_cur, limit.rlim_max};
}

std::optional<std::uint64_t> open_file_count() noexcept {
    DIR* folder = ::opendir("/proc/self/fd");
    if (!folder) return std::nullopt;
    std::uint64_t count = 0;
    while (const dirent* entry = ::readdir(folder)) count += entry->d_name[0] != '.';
    ::closedir(folder);
    return count - 1;  // without the folder itself
}

std::string to_utf8(const std::filesystem::path& path) { return path.native(); }

std::filesystem::path from_utf8(std::string_view text) { return std::filesystem::path(text); }

std::filesystem::path user_data_folder() {
    if (const char* data = std::getenv("XDG_DATA_HOME"); data && *data == '/') return std::filesystem::path(data) / "headroom";
    const char* home = std::getenv("HOME");
    if (!home || *home != '/') {
        const passwd* user = ::getpwuid(::getuid());
        home = user && user->pw_dir ? user->pw_dir : "/";
    }
    return std::filesystem::path(home) / ".local/share/headroom";
}

std::filesystem::path program_file() {
    std::error_code code;
    const auto program = std::filesystem::read_symlink("/proc/self/exe", code);
    return code ? std::filesystem::path() : program;
}

std::chrono::local_seconds local_time() noexcept {
    using namespace std::chrono;
    const std::time_t now = system_clock::to_time_t(system_clock::now());  // std::time's clock ticks late
    std::tm local{};
    if (::localtime_r(&now, &local) == nullptr) return local_seconds(seconds(now));
    const local_days day{year(local.tm_year + 1900) / (local.tm_mon + 1) / local.tm_mday};
    return day + hours(local.tm_hour) + minutes(local.tm_min) + seconds(local.tm_sec);
}

}  // namespace headroom
