#include "core/compute/gpu/ops.h"

namespace headroom::kernels {

bool has_tiles(gguf::TensorType) noexcept { return false; }

Result<> product_tiles(Queue, const ProductTilesArguments&) { return fail(ErrorKind::unsupported, "this build has no kernels for tiles"); }

Result<> experts_tiles(Queue, gguf::TensorType, const ExpertsTilesArguments&) {
    return fail(ErrorKind::unsupported, "this build has no kernels for tiles");
}

}  // namespace headroom::kernels
