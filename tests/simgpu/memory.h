#pragma once

// The simulator's memory: addresses without access, and blocks that can be mapped into them, as a card has them.

#include <cstddef>

namespace sim {

struct Block;  // physical memory

[[nodiscard]] Block* create_block(std::size_t bytes);  // zero-filled; null where the system has no more
void destroy_block(Block* block);

// Addresses that crash on touch. bytes: a multiple of 64 KiB. Null where there are none.
[[nodiscard]] void* reserve_addresses(std::size_t bytes);
void free_addresses(void* address, std::size_t bytes);

// Puts a block (all of it, or its first `bytes`) behind reserved addresses, still without access.
[[nodiscard]] bool map_block(void* address, std::size_t bytes, Block* block);
void unmap_block(void* address, std::size_t bytes);  // exactly as it was mapped
void allow_access(void* address, std::size_t bytes);

}  // namespace sim
