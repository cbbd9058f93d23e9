#include <windows.h>

#include <map>
#include <mutex>

#include "tests/simgpu/memory.h"

namespace sim {

struct Block {
    HANDLE section;
    std::size_t bytes;
};

namespace {

// Windows lets a file view start only where nothing is reserved. So the addresses without access are kept as reservations of their
// own, cut where a view comes and made anew where it goes.
struct Store {
    std::mutex mutex;
    std::map<char*, std::size_t> guards;
};

Store& store() {
    static Store s;
    return s;
}

void add_guard(Store& s, char* at, std::size_t bytes) {
    if (bytes > 0 && ::VirtualAlloc(at, bytes, MEM_RESERVE, PAGE_NOACCESS)) s.guards[at] = bytes;
}

// Frees the guard around [at, at + bytes) and puts back what is left of it on both sides.
void cut_guard(Store& s, char* at, std::size_t bytes) {
    auto guard = s.guards.upper_bound(at);
    if (guard == s.guards.begin()) return;
    --guard;
    const auto [start, length] = *guard;
    if (start + length < at + bytes) return;
    s.guards.erase(guard);
    ::VirtualFree(start, 0, MEM_RELEASE);
    add_guard(s, start, static_cast<std::size_t>(at - start));
    add_guard(s, at + bytes, length - bytes - static_cast<std::size_t>(at - start));
}

}  // namespace

Block* create_block(std::size_t bytes) {
    const HANDLE section = ::CreateFileMappingW(INVALID_HANDLE_VALUE, nullptr, PAGE_READWRITE, static_cast<DWORD>(std::uint64_t(bytes) >> 32),
                                                static_cast<DWORD>(bytes), nullptr);
    return section ? new Block{section, bytes} : nullptr;
}

void destroy_block(Block* block) {
    ::CloseHandle(block->section);
    delete block;
}

void* reserve_addresses(std::size_t bytes) {
    Store& s = store();
    const std::scoped_lock lock(s.mutex);
    void* at = ::VirtualAlloc(nullptr, bytes, MEM_RESERVE, PAGE_NOACCESS);
    if (at) s.guards[static_cast<char*>(at)] = bytes;
    return at;
}

void free_addresses(void* address, std::size_t bytes) {
    Store& s = store();
    const std::scoped_lock lock(s.mutex);
    char* begin = static_cast<char*>(address);
    for (auto guard = s.guards.lower_bound(begin); guard != s.guards.end() && guard->first < begin + bytes;) {
        ::VirtualFree(guard->first, 0, MEM_RELEASE);
        guard = s.guards.erase(guard);
    }
}

bool map_block(void* address, std::size_t bytes, Block* block) {
    Store& s = store();
    const std::scoped_lock lock(s.mutex);
    cut_guard(s, static_cast<char*>(address), bytes);
    if (!::MapViewOfFileEx(block->section, FILE_MAP_READ | FILE_MAP_WRITE, 0, 0, bytes, address)) {
        add_guard(s, static_cast<char*>(address), bytes);
        return false;
    }
    DWORD before = 0;
    ::VirtualProtect(address, bytes, PAGE_NOACCESS, &before);
    return true;
}

void unmap_block(void* address, std::size_t bytes) {
    Store& s = store();
    const std::scoped_lock lock(s.mutex);
    ::UnmapViewOfFile(address);
    add_guard(s, static_cast<char*>(address), bytes);
}

void allow_access(void* address, std::size_t bytes) {
    DWORD before = 0;
    ::VirtualProtect(address, bytes, PAGE_READWRITE, &before);
}

}  // namespace sim
