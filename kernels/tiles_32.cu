// Products of many tokens with weights of 32-wide blocks.

#include "kernels/tiles.h"

namespace headroom::device {

HR_TILES(q4_0, WeightsQ40)
HR_TILES(q4_1, WeightsQ41)
HR_TILES(q5_0, WeightsQ50)
HR_TILES(q5_1, WeightsQ51)
HR_TILES(q8_0, WeightsQ80)
HR_TILES(iq4_nl, WeightsIq4Nl)

}  // namespace headroom::device
