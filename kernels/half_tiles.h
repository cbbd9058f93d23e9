#pragma once

// Tiles of halves on matrix units, where the device has those of NVIDIA's generation 8.0 and later: HR_HALF_TILES is defined there.

#include "kernels/copies.h"

#if defined(HR_EMULATED)
#define HR_HALF_TILES 1
#elif defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
#define HR_HALF_TILES 1

namespace headroom::device {

// Four tiles of 8 x 8 halves: lanes 8 i … 8 i + 7 name the rows of tile i, 16 bytes each in shared memory. Lane l gets of each tile elements
// 2 (l % 4) and the next of row l / 4; turned: of column l / 4.
HR_DEVICE void load_tiles(const void* row, std::uint32_t (&tiles)[4]) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(tiles[0]), "=r"(tiles[1]), "=r"(tiles[2]), "=r"(tiles[3])
                 : "r"(shared_address(row))
                 : "memory");
}
HR_DEVICE void load_tiles_turned(const void* row, std::uint32_t (&tiles)[4]) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(tiles[0]), "=r"(tiles[1]), "=r"(tiles[2]), "=r"(tiles[3])
                 : "r"(shared_address(row))
                 : "memory");
}

// c += a b: a is 16 x 16 (tiles top left, bottom left, top right, bottom right), b 16 x 8 (two turned tiles), c 16 x 8 floats: c[0], c[1] in
// row l / 4, c[2], c[3] in row l / 4 + 8, columns 2 (l % 4) and the next.
HR_DEVICE void multiply_add(const std::uint32_t (&a)[4], std::uint32_t b0, std::uint32_t b1, float (&c)[4]) {
    asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
        : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

// Two floats as halves, `low` in the low bits.
HR_DEVICE std::uint32_t pack_halves(float low, float high) {
    std::uint32_t packed;
    asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(packed) : "f"(high), "f"(low));
    return packed;
}

// Codes number 2 pair and the next of four, each times one of two halves, rounded to halves.
HR_DEVICE std::uint32_t codes_to_halves(std::uint32_t codes, int pair, std::uint32_t scales) {
    // With 0x64 before it a byte is a half, 1,024 more than its value.
    const std::uint32_t raised = __byte_perm(codes ^ 0x80808080U, 0x64646464U, pair == 0 ? 0x4140 : 0x4342);
    std::uint32_t product;
    asm("{ .reg .b32 code; sub.rn.f16x2 code, %1, %2; mul.rn.f16x2 %0, code, %3; }" : "=r"(product) : "r"(raised), "r"(0x64806480U), "r"(scales));
    return product;
}

// 2^x, about: not part of the arithmetic that is the same everywhere.
HR_DEVICE float fast_exp2(float x) {
    float y;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
}

}  // namespace headroom::device

#endif
