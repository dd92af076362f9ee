// Drawing tokens from the distributions that logits define.
#pragma once
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <functional>
#include <vector>

#include "call.h"
#include "parallel.h"
#include "softmax.h"
#include "vectors.h"

namespace {

constexpr int wideLanes = lanes / 2;

/** Vectors of doubles, as wide as the CPU's registers. */
typedef double Wide __attribute__((vector_size(wideLanes * sizeof(double))));
typedef int64_t WideIntegers __attribute__((vector_size(wideLanes * sizeof(int64_t))));
typedef float HalfVector __attribute__((vector_size(wideLanes * sizeof(float))));
typedef int32_t HalfIntegers __attribute__((vector_size(wideLanes * sizeof(int32_t))));

/**
 * Returns exp(x) for x ≤ 0 with the bits of `Math.exp` of V8: the algorithm of fdlibm (Sun Microsystems 1993), for a double or a
 * vector of doubles between −700 and −2⁻²⁸, or zero. `k` is its quotient by ln 2, rounded, and `power` is 2ᵏ.
 */
template <typename Number>
inline Number exponentialOf(Number x, Number k, Number power) {
  const Number high = x - product(k, Number{} + 0.6931471803691238);
  const Number low = product(k, Number{} + 1.9082149292705877e-10);
  const Number r = high - low, t = product(r, r);
  Number p = (Number{} + -0.0000016533902205465252) + product(t, Number{} + 4.1381367970572385e-8);
  p = (Number{} + 0.00006613756321437934) + product(t, p);
  p = (Number{} + -0.0027777777777015593) + product(t, p);
  p = (Number{} + 0.16666666666666602) + product(t, p);
  const Number c = r - product(t, p);
  return product((Number{} + 1.0) - (low - product(r, c) / ((Number{} + 2.0) - c) - high), power);
}

/** Returns exp(x) for any x ≤ 0, and NaN for NaN. Below −708, where the result is no normal number, it is 0. */
inline double exponentialOf(double x) {
  if (!(x >= -708)) return x < -708 ? 0 : x;
  if (x > -0x1p-28) return 1 + x;
  const int64_t k = static_cast<int64_t>(product(x, 1.4426950408889634) - 0.5);
  return exponentialOf(x, static_cast<double>(k), std::bit_cast<double>((k + 1023) << 52));
}

/** Writes exp((x − top) / temperature) to y. */
inline void weigh(const float* x, int64_t size, float top, double temperature, double* y) {
  int64_t i = 0;
  for (; i + wideLanes <= size; i += wideLanes) {
    HalfVector some;
    std::memcpy(&some, x + i, sizeof(some));
    const Wide at = (__builtin_convertvector(some, Wide) - static_cast<double>(top)) / temperature;
    // The same in one lane at a time where `exponentialOf` has branches: seldom, because most logits are not that far from the largest.
    const WideIntegers isCommon = (at > -700.0) & ((at <= -0x1p-28) | (at == 0.0));
    bool areCommon = true;
    for (int lane = 0; lane < wideLanes; lane++) areCommon = areCommon && isCommon[lane] != 0;
    if (areCommon) {
      const HalfIntegers k = __builtin_convertvector(product(at, Wide{} + 1.4426950408889634) - 0.5, HalfIntegers);
      const WideIntegers exponents = (__builtin_convertvector(k, WideIntegers) + 1023) << 52;
      Wide power;
      std::memcpy(&power, &exponents, sizeof(power));
      const Wide weights = exponentialOf(at, __builtin_convertvector(k, Wide), power);
      std::memcpy(y + i, &weights, sizeof(weights));
    } else {
      for (int lane = 0; lane < wideLanes; lane++) y[i + lane] = exponentialOf(at[lane]);
    }
  }
  for (; i < size; i++) y[i] = exponentialOf((static_cast<double>(x[i]) - top) / temperature);
}

/** Returns the sum, added from first to last. */
inline double totalOf(const std::vector<double>& weights) {
  double sum = 0;
  for (const double weight : weights) sum += weight;
  return sum;
}

/** The share of the mass at which a token is drawn, in [0, 1), and what is left out before. Without top-k, `topK` is infinite. */
struct Drawing {
  double temperature, share, topK, topP;
};

/** Returns how many of `count` weights are needed to reach a mass; all, if they do not. */
inline int64_t countTo(double mass, const double* weights, int64_t count) {
  double reached = 0;
  for (int64_t at = 0; at < count; at++) {
    reached += weights[at];
    if (reached >= mass) return at + 1;
  }
  return count;
}

/**
 * Sorts the largest weights to the front of `sorted`, largest first: `most`, or fewer if they reach a mass. Returns their number. Sorts
 * them in bands, as `drawToken` does, because few are needed of a large vocabulary.
 */
inline int64_t sortLargest(const std::vector<double>& weights, double total, double mass, double most,
                           std::vector<double>& sorted) {
  double floor = total / 256, above = INFINITY;
  sorted.clear();
  for (;;) {
    const auto before = static_cast<int64_t>(sorted.size());
    for (const double weight : weights)
      if (weight >= floor && weight < above) sorted.push_back(weight);
    std::sort(sorted.begin() + before, sorted.end(), std::greater<double>());
    const auto found = static_cast<int64_t>(sorted.size());
    int64_t enough = countTo(mass, sorted.data(), found);
    if (most < static_cast<double>(enough)) enough = static_cast<int64_t>(most);
    if (enough < found || floor == 0) return enough;
    above = floor;
    floor = floor > 1e-12 * total ? floor / 8 : 0;
  }
}

/** Returns the index at which the sum of the weights passes `share` of their sum; the last index with a weight if rounding leaves it below. */
inline int64_t indexAt(double share, const double* weights, int64_t count) {
  double mass = 0, reached = 0;
  for (int64_t at = 0; at < count; at++) mass += weights[at];
  const double goal = product(share, mass);
  int64_t index = 0;
  for (int64_t at = 0; at < count && !(reached > goal); at++) {
    reached += weights[at];
    if (weights[at] > 0) index = at;
  }
  return index;
}

/** Returns the id of the token that is drawn from weights with this sum. */
inline int64_t drawnFrom(const std::vector<double>& weights, double total, const Drawing& drawing, std::vector<double>& sorted) {
  const auto width = static_cast<int64_t>(weights.size());
  const bool hasTopK = drawing.topK < static_cast<double>(width), hasTopP = drawing.topP != 1;
  if (!hasTopK && !hasTopP) return indexAt(drawing.share, weights.data(), width);
  int64_t kept = hasTopK ? sortLargest(weights, total, INFINITY, drawing.topK, sorted)
                         : sortLargest(weights, total, drawing.topP * total, static_cast<double>(width), sorted);
  if (hasTopK && hasTopP) {
    double mass = 0;
    for (int64_t at = 0; at < kept; at++) mass += sorted[at];
    kept = countTo(drawing.topP * mass, sorted.data(), kept);
  }
  if (kept == 0) return 0;
  const int64_t at = indexAt(drawing.share, sorted.data(), kept);
  // Equal weights are kept in the order of their ids.
  auto equal = at - (std::find(sorted.begin(), sorted.begin() + at, sorted[at]) - sorted.begin());
  auto found = std::find(weights.begin(), weights.end(), sorted[at]);
  for (; equal > 0; equal--) found = std::find(found + 1, weights.end(), sorted[at]);
  return found - weights.begin();
}

/**
 * logits [N, V], settings int32 [N, 8] → draws int32 [N, 5]. The settings of a row are the bits of a `Drawing`. A draw is the token and
 * the bits of two doubles: its logit minus the largest, and the sum of exp(logit − largest). Computes what `drawToken` does, with the same
 * bits. A row with NaN has a sum of NaN.
 */
void draw(void*, TF_OpKernelContext* context) {
  Call call{context};
  Input logits = call.input(0), settings = call.input(1);
  if (call.failed()) return;
  const int64_t rows = logits.dim(0), width = logits.dim(1);
  if (width == 0 || settings.size() != 8 * rows)
    return call.refuse("PeriodicDraw: expected logits of a vocabulary and eight settings for each row");
  int32_t* draws = call.integers({rows, 5});
  if (call.failed()) return;
  const float* from = logits.data();
  const int32_t* given = settings.integers();
  parallelFor(rows, [=](int64_t row) {
    static thread_local std::vector<double> weights, sorted;
    weights.resize(width);
    const float* x = from + row * width;
    Drawing drawing;
    std::memcpy(&drawing, given + 8 * row, sizeof(drawing));
    const float top = largestIn(x, width);
    weigh(x, width, top, 1, weights.data());
    const double partition = totalOf(weights);
    double total = partition;
    if (drawing.temperature != 1) {
      weigh(x, width, top, drawing.temperature, weights.data());
      total = totalOf(weights);
    }
    const int64_t token = drawnFrom(weights, total, drawing, sorted);
    const double results[2] = {static_cast<double>(x[token]) - top, partition};
    draws[5 * row] = static_cast<int32_t>(token);
    std::memcpy(draws + 5 * row + 1, results, sizeof(results));
  });
}

}  // namespace
