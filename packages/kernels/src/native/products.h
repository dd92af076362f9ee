// Matrix products x·w in which x has few rows, so that reading w takes most of the time.
#pragma once
#include <algorithm>
#include <atomic>
#include <bit>
#include <cstdint>
#include <cstring>
#include <type_traits>
#include <vector>

#include "call.h"
#include "parallel.h"
#include "vectors.h"

namespace {

/**
 * Two weights that are exactly bfloat16: the upper halves of two floats. Half-width weights are stored in panels of `panelColumns<Half>`
 * columns, one after the other, and a panel row by row. In a panel of `width` columns, word i of a row holds the columns i (its lower
 * half) and i + width / 2.
 */
typedef uint32_t Half;


/** The shape of a tile of results, which fits in the registers: rows, and vectors of columns. */
template <typename Weight>
constexpr int rowsPerTile = std::is_same_v<Weight, Half> ? halfTileRows : tileRows;
template <typename Weight>
constexpr int vectorsPerTile = std::is_same_v<Weight, Half> ? halfTileVectors : tileVectors;

/** The columns that a thread multiplies at once. */
template <typename Weight>
constexpr int64_t panelColumns = vectorsPerTile<Weight> * lanes;

/** Reads a row of C vectors of a panel. */
template <int C>
inline void loadRow(const float* row, Vector* weights) {
  for (int c = 0; c < C; c++) weights[c] = load(row + c * lanes);
}

template <int C>
inline void loadRow(const Half* row, Vector* weights) {
  for (int c = 0; c < C / 2; c++) {
    Integers words;
    std::memcpy(&words, row + c * lanes, sizeof(words));
    const Integers low = words << 16, high = words & -0x10000;
    std::memcpy(&weights[c], &low, sizeof(low));
    std::memcpy(&weights[c + C / 2], &high, sizeof(high));
  }
}

/** The panel of columns of w that a thread multiplies next. Each tile fetches `rowsAtOnce` of its `depth` rows into the cache. */
struct Ahead {
  const float* w;
  int64_t stride, row, rowsAtOnce, depth;
};

/**
 * Multiplies R rows of x with C vectors of columns: x [R, depth], w [depth, C·lanes] with `stride` numbers per row. With `copy` it
 * also writes w there as floats, without the gaps between its rows.
 */
template <int R, int C, typename Weight>
inline void productTile(const float* x, int64_t depth, const Weight* w, int64_t stride, float* y, int64_t columns,
                        float* copy, Ahead* ahead) {
  Vector sums[R][C];
  for (int r = 0; r < R; r++)
    for (int c = 0; c < C; c++) sums[r][c] = Vector{};
  const auto step = [&](int64_t k) __attribute__((always_inline)) {
    Vector weights[C];
    loadRow<C>(w + k * stride, weights);
    if (copy != nullptr)
      for (int c = 0; c < C; c++) store(copy + (k * C + c) * lanes, weights[c]);
    for (int r = 0; r < R; r++) {
      const Vector value = broadcast(x[r * depth + k]);
      for (int c = 0; c < C; c++) sums[r][c] += value * weights[c];
    }
  };
  int64_t k = 0;
  if (ahead != nullptr) {
    // The rows of a wide matrix are on different pages, and a CPU prefetches only within a page.
    const int64_t last = std::min(ahead->depth, ahead->row + ahead->rowsAtOnce);
    const float* next = ahead->w + ahead->row * ahead->stride;
    for (; k < depth && ahead->row < last; k++) {
      for (int c = 0; c < C; c++) __builtin_prefetch(next + c * lanes, 0, 2);
      next += ahead->stride;
      ahead->row++;
      step(k);
    }
  }
  for (; k < depth; k++) step(k);
  for (int r = 0; r < R; r++)
    for (int c = 0; c < C; c++) store(y + r * columns + c * lanes, sums[r][c]);
}

/** Runs the tile of `rows` rows, at most R. */
template <int R, int C, typename Weight>
inline void tileOf(int64_t rows, const float* x, int64_t depth, const Weight* w, int64_t stride, float* y, int64_t columns,
                   float* copy, Ahead* ahead) {
  if (rows == R) return productTile<R, C>(x, depth, w, stride, y, columns, copy, ahead);
  if constexpr (R > 1) tileOf<R - 1, C>(rows, x, depth, w, stride, y, columns, copy, ahead);
}

/**
 * Multiplies all rows with one panel. Of a panel with gaps, the first of several tiles writes a `copy` without gaps, which the next tiles
 * read.
 */
template <int R, int C, typename Weight>
void productRows(int64_t rows, const float* x, int64_t depth, const Weight* w, int64_t stride, float* y, int64_t columns,
                 float* copy, Ahead* ahead) {
  // Tiles of nearly equal size, because the sums of a small tile wait for each other.
  const int64_t tiles = (rows + R - 1) / R, atOnce = (rows + tiles - 1) / tiles;
  for (int64_t row = 0; row < rows; row += atOnce) {
    const float* from = x + row * depth;
    float* to = y + row * columns;
    const int64_t count = std::min(atOnce, rows - row);
    if (copy == nullptr || tiles == 1) tileOf<R, C>(count, from, depth, w, stride, to, columns, nullptr, ahead);
    else if (row == 0) tileOf<R, C>(count, from, depth, w, stride, to, columns, copy, ahead);
    else tileOf<R, C>(count, from, depth, copy, C * lanes, to, columns, nullptr, ahead);
  }
}

/** Writes the first `width` columns of a row of a panel to `to` as floats. */
inline void widenRow(const float* row, int64_t width, float* to) { std::memcpy(to, row, width * sizeof(float)); }
inline void widenRow(const Half* row, int64_t width, float* to) {
  for (int64_t i = 0; i < width / 2; i++) {
    to[i] = std::bit_cast<float>(row[i] << 16);
    to[width / 2 + i] = std::bit_cast<float>(row[i] & 0xffff0000);
  }
}

/** Multiplies all rows with the `width` columns of a panel, which starts at `w`. */
template <typename Weight>
void productPanel(int64_t rows, const float* x, int64_t depth, const Weight* w, int64_t stride, int64_t width, float* y,
                  int64_t columns, Ahead* ahead) {
  constexpr int R = rowsPerTile<Weight>, C = vectorsPerTile<Weight>;
  constexpr int64_t full = panelColumns<Weight>;
  static thread_local std::vector<float> copy, result;
  if (static_cast<int64_t>(copy.size()) < depth * full) copy.resize(depth * full);
  if (width == full) {
    float* const gapless = std::is_same_v<Weight, Half> ? nullptr : copy.data();
    return productRows<R, C>(rows, x, depth, w, stride, y, columns, gapless, ahead);
  }
  // The last columns, filled up with zeros.
  std::fill(copy.begin(), copy.begin() + depth * full, 0.0f);
  for (int64_t k = 0; k < depth; k++) widenRow(w + k * stride, width, copy.data() + k * full);
  result.resize(rows * full);
  productRows<R, C>(rows, x, depth, copy.data(), full, result.data(), full, nullptr, nullptr);
  for (int64_t row = 0; row < rows; row++)
    std::memcpy(y + row * columns, result.data() + row * full, width * sizeof(float));
}

/** Multiplies x [rows, depth] with weights [depth, columns] → y [rows, columns]. */
template <typename Weight>
void multiply(int64_t rows, const float* x, int64_t depth, const Weight* w, int64_t columns, float* y) {
  constexpr int64_t full = panelColumns<Weight>, chunk = 144;
  const int64_t chunks = (rows + chunk - 1) / chunk, panels = (columns + full - 1) / full;
  // Neighbouring panels go to the same thread, which fetches the next one while it computes.
  const int64_t panelsPerTask = std::max<int64_t>(1, panels / (4 * threadCount()));
  const int64_t tasks = (panels + panelsPerTask - 1) / panelsPerTask;
  parallelFor(tasks * chunks, [=](int64_t task) {
    const int64_t first = task % chunks * chunk, count = std::min(chunk, rows - first);
    const int64_t begin = task / chunks * panelsPerTask, last = std::min(panels, begin + panelsPerTask);
    for (int64_t panel = begin; panel < last; panel++) {
      const int64_t column = panel * full, width = std::min(full, columns - column);
      const float* from = x + first * depth;
      float* to = y + first * columns + column;
      if constexpr (std::is_same_v<Weight, Half>) {
        productPanel(count, from, depth, w + column * depth / 2, width / 2, width, to, columns, nullptr);
      } else {
        const int64_t tiles = (count + rowsPerTile<Weight> - 1) / rowsPerTile<Weight>;
        Ahead ahead{w + column + full, columns, 0, (depth + tiles - 1) / tiles, depth};
        const bool isNext = panel + 1 < panels && column + 2 * full <= columns;
        productPanel(count, from, depth, w + column, columns, width, to, columns, isNext ? &ahead : nullptr);
      }
    }
  });
}

/** x [M, K], w [K, N] → x·w [M, N]. Fails if x and w differ in K. Half-width weights, an int32 tensor [K, N / 2], give the same bits as float32. */
void matMul(void*, TF_OpKernelContext* context) {
  Call call{context};
  Input x = call.input(0), w = call.input(1);
  if (call.failed()) return;
  const bool isHalf = TF_TensorType(w.tensor) == TF_INT32;
  const int64_t rows = x.dim(0), depth = x.dim(1), columns = w.dim(1) * (isHalf ? 2 : 1);
  if (w.dim(0) != depth) return call.refuse("PeriodicMatMul: the columns of x and the rows of w differ in number");
  float* y = call.output({rows, columns});
  if (call.failed()) return;
  if (isHalf) multiply(rows, x.data(), depth, reinterpret_cast<const Half*>(w.integers()), columns, y);
  else multiply(rows, x.data(), depth, w.data(), columns, y);
}

/**
 * w [K, N], or [N, K] if `isTransposed` → the half-width weights of `multiply`, int32 [K, N / 2]. If N is odd or a weight is not exactly
 * bfloat16, the result is empty.
 */
void halve(void* kernel, TF_OpKernelContext* context) {
  const bool isTransposed = *static_cast<bool*>(kernel);
  Call call{context};
  Input w = call.input(0);
  if (call.failed()) return;
  const float* from = w.data();
  const int64_t depth = w.dim(isTransposed ? 1 : 0), columns = w.dim(isTransposed ? 0 : 1), full = panelColumns<Half>;
  std::atomic<bool> isExact{columns % 2 == 0};
  inRanges(w.size(), 65536, [&](int64_t first, int64_t last) {
    // Blocks, because the first weights of a trained model already show that it is trained.
    for (int64_t at = first; at < last && isExact.load(std::memory_order_relaxed); at += 4096) {
      uint32_t rest = 0;
      for (int64_t i = at; i < std::min(last, at + 4096); i++) rest |= std::bit_cast<uint32_t>(from[i]) & 0xffff;
      if (rest != 0) isExact.store(false, std::memory_order_relaxed);
    }
  });
  int32_t* words = call.integerOutput(isExact ? std::vector<int64_t>{depth, columns / 2} : std::vector<int64_t>{0});
  if (call.failed() || !isExact) return;
  parallelFor((columns + full - 1) / full, [=](int64_t panel) {
    const int64_t column = panel * full, half = std::min(full, columns - column) / 2;
    int32_t* to = words + column * depth / 2;
    const auto bitsAt = [=](int64_t k, int64_t at) {
      return std::bit_cast<uint32_t>(from[isTransposed ? at * depth + k : k * columns + at]);
    };
    for (int64_t k = 0; k < depth; k++)
      for (int64_t i = 0; i < half; i++)
        to[k * half + i] = static_cast<int32_t>(bitsAt(k, column + i) >> 16 | bitsAt(k, column + half + i));
  });
}

/** The result of `halve` without transposition, int32 [K, N / 2] → the weights [K, N]. */
void widen(void*, TF_OpKernelContext* context) {
  Call call{context};
  Input half = call.input(0);
  if (call.failed()) return;
  const int64_t depth = half.dim(0), columns = 2 * half.dim(1), full = panelColumns<Half>;
  const Half* words = reinterpret_cast<const Half*>(half.integers());
  float* to = call.output({depth, columns});
  if (call.failed()) return;
  parallelFor((columns + full - 1) / full, [=](int64_t panel) {
    const int64_t column = panel * full, width = std::min(full, columns - column);
    const Half* from = words + column * depth / 2;
    for (int64_t k = 0; k < depth; k++) widenRow(from + k * (width / 2), width, to + k * columns + column);
  });
}

}  // namespace
