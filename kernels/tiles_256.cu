// Products of many tokens with weights of 256-wide superblocks.

#include "kernels/tiles.h"

namespace headroom::device {

HR_TILES(q2_k, WeightsQ2K)
HR_TILES(q3_k, WeightsQ3K)
HR_TILES(q4_k, WeightsQ4K)
HR_TILES(q5_k, WeightsQ5K)
HR_TILES(q6_k, WeightsQ6K)
HR_TILES(iq4_xs, WeightsIq4Xs)

}  // namespace headroom::device
