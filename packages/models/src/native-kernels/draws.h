// Drawing tokens from the distributions that logits define.
#pragma once
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
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

/**
 * logits [N, V], settings int32 [N, 4] → draws int32 [N, 5]. The settings of a row are the bits of two doubles: the temperature, and the
 * share of the row's mass at which a token is drawn, in [0, 1). A draw is the token and the bits of two doubles: its logit minus the
 * largest, and the sum of exp(logit − largest). Computes what `drawToken` does without top-k and top-p, with the same bits. A row with NaN
 * has a sum of NaN.
 */
void draw(void*, TF_OpKernelContext* context) {
  Call call{context};
  Input logits = call.input(0), settings = call.input(1);
  if (call.failed()) return;
  const int64_t rows = logits.dim(0), width = logits.dim(1);
  if (width == 0 || settings.size() != 4 * rows)
    return call.refuse("PeriodicDraw: expected logits of a vocabulary and four settings for each row");
  int32_t* draws = call.integers({rows, 5});
  if (call.failed()) return;
  const float* from = logits.data();
  const int32_t* given = settings.integers();
  parallelFor(rows, [=](int64_t row) {
    static thread_local std::vector<double> weights;
    weights.resize(width);
    const float* x = from + row * width;
    double setting[2];
    std::memcpy(setting, given + 4 * row, sizeof(setting));
    const auto [temperature, share] = setting;
    const float top = largestIn(x, width);
    weigh(x, width, top, 1, weights.data());
    const double partition = totalOf(weights);
    if (temperature != 1) weigh(x, width, top, temperature, weights.data());
    const double goal = product(share, temperature == 1 ? partition : totalOf(weights));
    double reached = 0;
    int64_t token = 0;
    // If rounding leaves the sum below the goal at the end, the last token with a weight is drawn.
    for (int64_t id = 0; id < width && !(reached > goal); id++) {
      reached += weights[id];
      if (weights[id] > 0) token = id;
    }
    const double results[2] = {static_cast<double>(x[token]) - top, partition};
    draws[5 * row] = static_cast<int32_t>(token);
    std::memcpy(draws + 5 * row + 1, results, sizeof(results));
  });
}

}  // namespace
