// One step of AdamW.
#pragma once
#include <algorithm>
#include <cstdint>

#include "call.h"
#include "parallel.h"
#include "vectors.h"

namespace {

/**
 * gradient, weight, mean and meanSq of one shape, numbers [7] → the new weight, mean and meanSq, with the same bits as TensorFlow's
 * operations. `numbers` are β₁, the factor of the gradient, β₂, the factor of its square, ε, the step size and the factor of the weight.
 */
void adamW(void*, TF_OpKernelContext* context) {
  Call call{context};
  Input gradient = call.input(0), weight = call.input(1), mean = call.input(2), meanSq = call.input(3),
        numbers = call.input(4);
  if (call.failed()) return;
  const int64_t size = weight.size();
  if (gradient.size() != size || mean.size() != size || meanSq.size() != size || numbers.size() != 7)
    return call.refuse("PeriodicAdamW: the gradient, the weight and its means differ in size, or there are not seven numbers");
  float *toWeight = call.output(weight.shape(), 0), *toMean = call.output(weight.shape(), 1),
        *toMeanSq = call.output(weight.shape(), 2);
  if (call.failed()) return;
  const float *g = gradient.data(), *w = weight.data(), *m = mean.data(), *v = meanSq.data(), *n = numbers.data();
  const Vector keep1 = broadcast(n[0]), take1 = broadcast(n[1]), keep2 = broadcast(n[2]), take2 = broadcast(n[3]),
               epsilon = broadcast(n[4]), stepSize = broadcast(n[5]), decay = broadcast(n[6]);
  inVectors(size, 16384, [=](int64_t i, int64_t count) __attribute__((always_inline)) {
    const Vector slope = partOf(g + i, count, 0);
    const Vector newMean = product(partOf(m + i, count, 0), keep1) + product(slope, take1);
    const Vector newMeanSq = product(partOf(v + i, count, 0), keep2) + product(product(slope, slope), take2);
    const Vector change = product(newMean / (rootOf(newMeanSq) + epsilon), stepSize);
    storePart(toMean + i, newMean, count);
    storePart(toMeanSq + i, newMeanSq, count);
    storePart(toWeight + i, product(partOf(w + i, count, 0), decay) - change, count);
  });
}

}  // namespace
