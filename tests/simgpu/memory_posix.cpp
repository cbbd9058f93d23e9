#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <map>
#include <mutex>
#include <vector>

#include "tests/simgpu/memory.h"

namespace sim {

// All blocks are parts of one memory file: one open file, however many there are.
struct Block {
    off_t offset;
    std::size_t bytes;
};

namespace {

struct Store {
    std::mutex mutex;
    int file = ::memfd_create("simgpu", MFD_CLOEXEC);
    off_t end = 0;
    std::map<std::size_t, std::vector<off_t>> unused;  // by size
};

Store& store() {
    static Store s;
    return s;
}

}  // namespace

Block* create_block(std::size_t bytes) {
    Store& s = store();
    const std::scoped_lock lock(s.mutex);
    if (auto& list = s.unused[bytes]; !list.empty()) {
        const off_t offset = list.back();
        list.pop_back();
        return new Block{offset, bytes};
    }
    if (::ftruncate(s.file, s.end + static_cast<off_t>(bytes)) != 0) return nullptr;
    auto* block = new Block{s.end, bytes};
    s.end += static_cast<off_t>(bytes);
    return block;
}

void destroy_block(Block* block) {
    Store& s = store();
    const std::scoped_lock lock(s.mutex);
    ::fallocate(s.file, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, block->offset, static_cast<off_t>(block->bytes));
    s.unused[block->bytes].push_back(block->offset);
    delete block;
}

void* reserve_addresses(std::size_t bytes) {
    constexpr std::size_t alignment = 2 << 20;  // as drivers align
    void* at = ::mmap(nullptr, bytes + alignment, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (at == MAP_FAILED) return nullptr;
    char* first = static_cast<char*>(at);
    char* aligned = reinterpret_cast<char*>((reinterpret_cast<std::size_t>(first) + alignment - 1) / alignment * alignment);
    if (aligned > first) ::munmap(first, static_cast<std::size_t>(aligned - first));
    char* end = first + bytes + alignment;
    if (end > aligned + bytes) ::munmap(aligned + bytes, static_cast<std::size_t>(end - aligned) - bytes);
    return aligned;
}

void free_addresses(void* address, std::size_t bytes) { ::munmap(address, bytes); }

bool map_block(void* address, std::size_t bytes, Block* block) {
    return ::mmap(address, bytes, PROT_NONE, MAP_SHARED | MAP_FIXED, store().file, block->offset) != MAP_FAILED;
}

void unmap_block(void* address, std::size_t bytes) {
    ::mmap(address, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
}

void allow_access(void* address, std::size_t bytes) { ::mprotect(address, bytes, PROT_READ | PROT_WRITE); }

}  // namespace sim
