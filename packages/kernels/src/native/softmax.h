// Softmax and its gradient.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "call.h"
#include "parallel.h"
#include "vectors.h"

namespace {

/** Returns the largest of `size` numbers. If one is NaN, returns any of them. */
inline float largestIn(const float* x, int64_t size) {
  Vector largest = broadcast(-INFINITY);
  for (int64_t i = 0; i < size; i += lanes) {
    const Vector some = partOf(x + i, std::min<int64_t>(lanes, size - i), -INFINITY);
    largest = largest > some ? largest : some;
  }
  return largestOf(largest);
}

/** Writes exp(x − top) to y and returns the sum. Sums blocks first, because a long sum of floats is inexact. */
inline float exponentialsOf(const float* x, int64_t size, float top, float* y) {
  constexpr int64_t block = 64 * lanes;
  Vector sums{};
  for (int64_t begin = 0; begin < size; begin += block) {
    Vector ofBlock{};
    for (int64_t i = begin; i < std::min(size, begin + block); i += lanes) {
      const int64_t count = std::min<int64_t>(lanes, size - i);
      const Vector some = exponential(partOf(x + i, count, -INFINITY) - broadcast(top));
      storePart(y + i, some, count);
      ofBlock += some;
    }
    sums += ofBlock;
  }
  return sumOf(sums);
}

/**
 * scores [A, T, P] and a mask [A, T, P] or [T, P] → softmax(scores + mask) [A, T, P], over the last axis. Sums more than 87 below the row's
 * largest give 0.
 */
void maskedSoftmax(void*, TF_OpKernelContext* context) {
  Call call{context};
  Input scores = call.input(0), mask = call.input(1);
  if (call.failed()) return;
  const std::vector<int64_t> shape = scores.shape();
  const int64_t masked = mask.size();
  if (shape.size() != 3 || scores.size() == 0 || (masked != scores.size() && masked != shape[1] * shape[2]))
    return call.refuse("PeriodicMaskedSoftmax: expected scores [A, T, P] and a mask [A, T, P] or [T, P], none of them empty");
  const int64_t width = shape[2], rows = scores.size() / width;
  float* y = call.output(scores.shape());
  if (call.failed()) return;
  const float *from = scores.data(), *added = mask.data();
  inRanges(rows, 16384 / width + 1, [=](int64_t first, int64_t last) {
    for (int64_t row = first; row < last; row++) {
      const float *x = from + row * width, *m = added + row * width % masked;
      float* out = y + row * width;
      eachVector(width, [&](int64_t i, int64_t count) __attribute__((always_inline)) {
        storePart(out + i, partOf(x + i, count, 0) + partOf(m + i, count, 0), count);
      });
      const float sum = exponentialsOf(out, width, largestIn(out, width), out);
      const Vector inverse = broadcast(1 / sum);
      eachVector(width, [&](int64_t i, int64_t count) __attribute__((always_inline)) {
        storePart(out + i, partOf(out + i, count, 0) * inverse, count);
      });
    }
  });
}

/** The gradient of the weights, weights [A, T, P] → the gradient of the scores: weights ∘ (gradient − Σ gradient ∘ weights), Σ over the last axis. */
void softmaxGradient(void*, TF_OpKernelContext* context) {
  Call call{context};
  Input gradient = call.input(0), weights = call.input(1);
  if (call.failed()) return;
  if (TF_NumDims(weights.tensor) != 3 || weights.size() == 0 || gradient.size() != weights.size())
    return call.refuse("PeriodicSoftmaxGradient: expected gradient and weights of one shape [A, T, P], none of them empty");
  const int64_t width = weights.dim(2), rows = weights.size() / width;
  float* y = call.output(weights.shape());
  if (call.failed()) return;
  const float *ofWeights = gradient.data(), *from = weights.data();
  inRanges(rows, 16384 / width + 1, [=](int64_t first, int64_t last) {
    for (int64_t row = first; row < last; row++) {
      const float *g = ofWeights + row * width, *w = from + row * width;
      Vector sums{};
      eachVector(width, [&](int64_t i, int64_t count) __attribute__((always_inline)) {
        sums += partOf(g + i, count, 0) * partOf(w + i, count, 0);
      });
      const Vector sum = broadcast(sumOf(sums));
      eachVector(width, [&](int64_t i, int64_t count) __attribute__((always_inline)) {
        storePart(y + row * width + i, partOf(w + i, count, 0) * (partOf(g + i, count, 0) - sum), count);
      });
    }
  });
}

}  // namespace
