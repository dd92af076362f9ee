// Cross-entropy and its gradient in one pass.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstdint>

#include "call.h"
#include "parallel.h"
#include "softmax.h"

namespace {

/**
 * logits [N, V], targets int32 [N] → −log softmax of each row's target in nats [N], and the gradient of their sum, softmax − one-hot
 * [N, V]. NaN or Inf in a row gives NaN or Inf. Fails if a target is outside [0, V).
 */
void targetLosses(void*, TF_OpKernelContext* context) {
  Call call{context};
  Input logits = call.input(0), targets = call.input(1);
  if (call.failed()) return;
  const int64_t rows = logits.dim(0), width = logits.dim(1);
  const int32_t* target = targets.integers();
  const auto isValid = [=](int32_t id) { return id >= 0 && id < width; };
  if (targets.size() != rows || !std::all_of(target, target + rows, isValid))
    return call.refuse("PeriodicTargetLosses: expected one target of the vocabulary for each row");
  float *losses = call.output({rows}, 0), *gradient = call.output({rows, width}, 1);
  if (call.failed()) return;
  const float* from = logits.data();
  const int64_t size = 16384 / std::max<int64_t>(1, width) + 1;
  parallelFor((rows + size - 1) / size, [=](int64_t task) {
    for (int64_t row = task * size; row < std::min(rows, (task + 1) * size); row++) {
      const float* x = from + row * width;
      float* y = gradient + row * width;
      const float top = largestIn(x, width), sum = exponentialsOf(x, width, top, y), inverse = 1 / sum;
      for (int64_t i = 0; i < width; i++) y[i] *= inverse;
      y[target[row]] -= 1;
      losses[row] = std::log(sum) + (top - x[target[row]]);
    }
  });
}

}  // namespace
