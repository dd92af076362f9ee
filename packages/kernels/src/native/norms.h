// Norms and their gradients. A gradient computes the norm of each row again, so that only x and the weight are kept.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "call.h"
#include "parallel.h"
#include "vectors.h"

namespace {

struct NormOptions {
  float epsilon = 0, offset = 0;
};

/** The mean of a row, which is 0 for RMS norm, and 1 / √(the mean of (x − mean)² + epsilon). */
struct RowNorm {
  float mean, inverse;
};

inline RowNorm normOf(const float* x, int64_t width, bool isCentered, float epsilon) {
  float mean = 0;
  if (isCentered) {
    Vector sums{};
    eachVector(width, [&](int64_t i, int64_t count) __attribute__((always_inline)) { sums += partOf(x + i, count, 0); });
    mean = sumOf(sums) / width;
  }
  Vector squares{};
  eachVector(width, [&](int64_t i, int64_t count) __attribute__((always_inline)) {
    const Vector centered = partOf(x + i, count, mean) - broadcast(mean);
    squares += centered * centered;
  });
  return {mean, 1 / std::sqrt(sumOf(squares) / width + epsilon)};
}

/** x [N, H·D], weight [D] → x / √(mean(x²) + epsilon) · (weight + offset) [N, H·D]; the mean is over D numbers at a time. */
void rmsNorm(void* kernel, TF_OpKernelContext* context) {
  const NormOptions options = *static_cast<NormOptions*>(kernel);
  Call call{context};
  Input input = call.input(0), weight = call.input(1);
  if (call.failed()) return;
  const int64_t width = weight.size();
  if (width == 0 || input.size() % width != 0) return call.refuse("PeriodicRmsNorm: x and weight differ in width");
  float* y = call.output(input.shape());
  if (call.failed()) return;
  const float *from = input.data(), *factors = weight.data();
  inRanges(input.size() / width, 32768 / width + 1, [=](int64_t first, int64_t last) {
    for (int64_t row = first; row < last; row++) {
      const float* x = from + row * width;
      const Vector inverse = broadcast(normOf(x, width, false, options.epsilon).inverse);
      eachVector(width, [&](int64_t i, int64_t count) __attribute__((always_inline)) {
        const Vector factor = partOf(factors + i, count, 0) + broadcast(options.offset);
        storePart(y + row * width + i, partOf(x + i, count, 0) * inverse * factor, count);
      });
    }
  });
}

/** x [N, D], weight, bias [D] → (x − mean) / √(variance + epsilon) · weight + bias [N, D]. */
void layerNorm(void* kernel, TF_OpKernelContext* context) {
  const float epsilon = static_cast<NormOptions*>(kernel)->epsilon;
  Call call{context};
  Input input = call.input(0), weight = call.input(1), bias = call.input(2);
  if (call.failed()) return;
  const int64_t width = weight.size();
  if (width == 0 || input.size() % width != 0 || bias.size() != width)
    return call.refuse("PeriodicLayerNorm: x, weight and bias differ in width");
  float* y = call.output(input.shape());
  if (call.failed()) return;
  const float *from = input.data(), *factors = weight.data(), *added = bias.data();
  inRanges(input.size() / width, 16384 / width + 1, [=](int64_t first, int64_t last) {
    for (int64_t row = first; row < last; row++) {
      const float* x = from + row * width;
      const RowNorm norm = normOf(x, width, true, epsilon);
      eachVector(width, [&](int64_t i, int64_t count) __attribute__((always_inline)) {
        const Vector normed = (partOf(x + i, count, 0) - broadcast(norm.mean)) * broadcast(norm.inverse);
        storePart(y + row * width + i, normed * partOf(factors + i, count, 0) + partOf(added + i, count, 0), count);
      });
    }
  });
}

/**
 * The gradient of the output, x [N, H·D], weight [D] → the gradients of x [N, H·D], of the weight [D] and, if x is centered, of the bias [D].
 * There is a norm for each D numbers, a row. Rows are summed in groups of a fixed size, so that the sums do not depend on the threads.
 */
void normGradient(const NormOptions& options, bool isCentered, TF_OpKernelContext* context) {
  Call call{context};
  Input gradient = call.input(0), input = call.input(1), weight = call.input(2);
  if (call.failed()) return;
  const int64_t width = weight.size();
  if (width == 0 || input.size() % width != 0 || gradient.size() != input.size())
    return call.refuse(isCentered ? "PeriodicLayerNormGradient: gradient, x and weight differ in size"
                                  : "PeriodicRmsNormGradient: gradient, x and weight differ in size");
  const int64_t rows = input.size() / width, rowsOfGroup = 8192 / width + 32, groups = (rows + rowsOfGroup - 1) / rowsOfGroup;
  float *ofX = call.output(input.shape(), 0), *ofWeight = call.output(weight.shape(), 1);
  float* ofBias = isCentered ? call.output(weight.shape(), 2) : nullptr;
  if (call.failed()) return;
  const float *ofOutput = gradient.data(), *from = input.data(), *factors = weight.data();
  // The sums of each group: for the weight, then for the bias.
  const int64_t sums = isCentered ? 2 * width : width;
  std::vector<float> ofGroups(static_cast<size_t>(groups * sums));
  float* groupSums = ofGroups.data();
  parallelFor(groups, [=](int64_t group) {
    float *weightSum = groupSums + group * sums, *biasSum = isCentered ? weightSum + width : nullptr;
    for (int64_t row = group * rowsOfGroup; row < std::min(rows, (group + 1) * rowsOfGroup); row++) {
      const float *x = from + row * width, *ofY = ofOutput + row * width;
      const RowNorm norm = normOf(x, width, isCentered, options.epsilon);
      const auto normedAt = [&](int64_t i, int64_t count) __attribute__((always_inline)) {
        return (partOf(x + i, count, norm.mean) - broadcast(norm.mean)) * broadcast(norm.inverse);
      };
      const auto ofNormedAt = [&](int64_t i, int64_t count) __attribute__((always_inline)) {
        return partOf(ofY + i, count, 0) * (partOf(factors + i, count, 0) + broadcast(options.offset));
      };
      Vector sum{}, sumAlong{};
      eachVector(width, [&](int64_t i, int64_t count) __attribute__((always_inline)) {
        const Vector ofNormed = ofNormedAt(i, count);
        sum += ofNormed;
        sumAlong += ofNormed * normedAt(i, count);
      });
      const Vector mean = broadcast(isCentered ? sumOf(sum) / width : 0), meanAlong = broadcast(sumOf(sumAlong) / width);
      eachVector(width, [&](int64_t i, int64_t count) __attribute__((always_inline)) {
        const Vector normed = normedAt(i, count), ofPart = partOf(ofY + i, count, 0);
        const Vector ofRow = (ofNormedAt(i, count) - mean - normed * meanAlong) * broadcast(norm.inverse);
        storePart(ofX + row * width + i, ofRow, count);
        storePart(weightSum + i, partOf(weightSum + i, count, 0) + ofPart * normed, count);
        if (biasSum != nullptr) storePart(biasSum + i, partOf(biasSum + i, count, 0) + ofPart, count);
      });
    }
  });
  inVectors(sums, 1024, [=](int64_t i, int64_t count) __attribute__((always_inline)) {
    Vector sum{};
    for (int64_t group = 0; group < groups; group++) sum += partOf(groupSums + group * sums + i, count, 0);
    // A vector can hold the last sums for the weight and the first ones for the bias.
    for (int64_t lane = 0; lane < count; lane++)
      (i + lane < width ? ofWeight[i + lane] : ofBias[i + lane - width]) = sum[lane];
  });
}

void rmsNormGradient(void* kernel, TF_OpKernelContext* context) {
  normGradient(*static_cast<NormOptions*>(kernel), false, context);
}

void layerNormGradient(void* kernel, TF_OpKernelContext* context) {
  normGradient(*static_cast<NormOptions*>(kernel), true, context);
}

}  // namespace
