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

constexpr int doubleLanes = lanes / 2;

/** Vectors of doubles, as wide as the CPU's registers, and vectors of as many floats and integers. */
typedef double Doubles __attribute__((vector_size(doubleLanes * sizeof(double))));
typedef int64_t Int64s __attribute__((vector_size(doubleLanes * sizeof(int64_t))));
typedef float NarrowFloats __attribute__((vector_size(doubleLanes * sizeof(float))));
typedef int32_t NarrowIntegers __attribute__((vector_size(doubleLanes * sizeof(int32_t))));

/**
 * The algorithm with which V8's `Math.exp` computes exp(x), of fdlibm (Sun Microsystems 1993), with the same bits: for a number or a
 * vector, from −708 to −2⁻²⁸, and 0. `k` is the quotient of x by ln 2 as fdlibm rounds it, and `power` is 2ᵏ.
 */
template <typename Number>
inline Number fdlibmExponential(Number x, Number k, Number power) {
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

/** Above this, about −ln(2)/2, fdlibm takes 0 as the quotient: it compares the upper half of the bits. */
constexpr double leastWithoutQuotient = -0x1.62e43p-2;

/** Returns exp(x) for x ≤ 0, as `exponential` in TypeScript does, and NaN for NaN. */
inline double fdlibmExponential(double x) {
  if (!(x >= -708)) return x < -708 ? 0 : x;
  if (x > -0x1p-28) return 1 + x;
  const int64_t k = x > leastWithoutQuotient ? 0 : static_cast<int64_t>(product(x, 1.4426950408889634) - 0.5);
  return fdlibmExponential(x, static_cast<double>(k), std::bit_cast<double>((k + 1023) << 52));
}

/** Writes exp((x − top) / temperature) to y. */
inline void weigh(const float* x, int64_t size, float top, double temperature, double* y) {
  int64_t i = 0;
  for (; i + doubleLanes <= size; i += doubleLanes) {
    NarrowFloats some;
    std::memcpy(&some, x + i, sizeof(some));
    const Doubles at = (__builtin_convertvector(some, Doubles) - static_cast<double>(top)) / temperature;
    // Few vectors have a value near 0, below −700 or NaN. Their lanes run alone, because these values have branches.
    const Int64s isCommon = (at > -700.0) & ((at <= -0x1p-28) | (at == 0.0));
    bool areCommon = true;
    for (int lane = 0; lane < doubleLanes; lane++) areCommon = areCommon && isCommon[lane] != 0;
    if (areCommon) {
      const Doubles quotient = product(at, Doubles{} + 1.4426950408889634) - 0.5;
      const NarrowIntegers k = __builtin_convertvector(at > leastWithoutQuotient ? Doubles{} : quotient, NarrowIntegers);
      const Int64s exponents = (__builtin_convertvector(k, Int64s) + 1023) << 52;
      Doubles power;
      std::memcpy(&power, &exponents, sizeof(power));
      const Doubles weights = fdlibmExponential(at, __builtin_convertvector(k, Doubles), power);
      std::memcpy(y + i, &weights, sizeof(weights));
    } else {
      for (int lane = 0; lane < doubleLanes; lane++) y[i + lane] = fdlibmExponential(at[lane]);
    }
  }
  for (; i < size; i++) y[i] = fdlibmExponential((static_cast<double>(x[i]) - top) / temperature);
}

/** Returns the sum, added from first to last. */
inline double totalOf(const double* weights, int64_t count) {
  double sum = 0;
  for (int64_t at = 0; at < count; at++) sum += weights[at];
  return sum;
}

/** Settings of one draw. `share` is the random number in [0, 1). `topK` is infinite if it is not set, and `topP` is 1. */
struct Drawing {
  double temperature, share, topK, topP;
};

/** The bands in which weights are sorted, as shares of their sum. They decide the order of sums: the same as in `largest` in TypeScript. */
constexpr double firstBand = 1.0 / 256, nextBand = 1.0 / 8, smallestBandShare = 1e-12;

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
  double floor = total * firstBand, above = INFINITY;
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
    floor = floor > smallestBandShare * total ? floor * nextBand : 0;
  }
}

/**
 * Returns the first index at which the cumulated weight exceeds `share` of the sum. If rounding prevents that, returns the last index with
 * a weight.
 */
inline int64_t indexAt(double share, const double* weights, int64_t count) {
  const double goal = product(share, totalOf(weights, count));
  double reached = 0;
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
  if (hasTopK && hasTopP) kept = countTo(drawing.topP * totalOf(sorted.data(), kept), sorted.data(), kept);
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
 * the bits of two doubles: its logit minus the largest, and the sum of exp(logit − largest). Computes what `drawToken` does; see
 * `drawKernel`.
 */
void draw(void*, TF_OpKernelContext* context) {
  Call call{context};
  Input logits = call.input(0), settings = call.input(1);
  if (call.failed()) return;
  const int64_t rows = logits.dim(0), width = logits.dim(1);
  if (width == 0 || settings.size() != 8 * rows)
    return call.refuse("PeriodicDraw: expected logits of a vocabulary and eight settings for each row");
  int32_t* draws = call.integerOutput({rows, 5});
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
    const double partition = totalOf(weights.data(), width);
    double total = partition;
    if (drawing.temperature != 1) {
      weigh(x, width, top, drawing.temperature, weights.data());
      total = totalOf(weights.data(), width);
    }
    const int64_t token = drawnFrom(weights, total, drawing, sorted);
    const double results[2] = {static_cast<double>(x[token]) - top, partition};
    draws[5 * row] = static_cast<int32_t>(token);
    std::memcpy(draws + 5 * row + 1, results, sizeof(results));
  });
}

}  // namespace
