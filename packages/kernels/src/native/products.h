// Matrix products x·w in which x has few rows, so that reading w takes most of the time.
#pragma once
#include <algorithm>
#include <cstdint>
#include <cstring>
#include <vector>

#include "call.h"
#include "parallel.h"
#include "vectors.h"

namespace {

/** The panel of columns of w that a thread multiplies next. Each tile fetches `rowsPerTile` of its `depth` rows into the cache. */
struct Ahead {
  const float* w;
  int64_t stride, row, rowsPerTile, depth;
};

/**
 * Multiplies R rows of x with C vectors of columns: x [R, depth], w [depth, C·lanes] with `stride` floats per row. With `copy` it
 * also writes w there, without the gaps between its rows.
 */
template <int R, int C>
inline void productTile(const float* x, int64_t depth, const float* w, int64_t stride, float* y, int64_t columns,
                        float* copy, Ahead* ahead) {
  Vector sums[R][C];
  for (int r = 0; r < R; r++)
    for (int c = 0; c < C; c++) sums[r][c] = Vector{};
  const auto step = [&](int64_t k) __attribute__((always_inline)) {
    const float* row = w + k * stride;
    Vector weights[C];
    for (int c = 0; c < C; c++) weights[c] = load(row + c * lanes);
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
    const int64_t last = std::min(ahead->depth, ahead->row + ahead->rowsPerTile);
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

/** Runs the tile of `rows` rows, at most R. Only a full tile has a `copy`. */
template <int R, int C>
inline void tileOf(int64_t rows, const float* x, int64_t depth, const float* w, int64_t stride, float* y, int64_t columns,
                   float* copy, Ahead* ahead) {
  if (rows == R) return productTile<R, C>(x, depth, w, stride, y, columns, copy, ahead);
  if constexpr (R > 1) tileOf<R - 1, C>(rows, x, depth, w, stride, y, columns, nullptr, ahead);
}

/** Multiplies all rows with one panel. The first tile writes the panel to `copy` without gaps, and the next tiles read it there. */
template <int C>
void productRows(int64_t rows, const float* x, int64_t depth, const float* w, int64_t stride, float* y, int64_t columns,
                 float* copy, Ahead* ahead) {
  for (int64_t row = 0; row < rows; row += tileRows) {
    const int64_t count = std::min<int64_t>(tileRows, rows - row);
    const bool isCopied = row == 0 && rows > tileRows && stride != C * lanes;
    tileOf<tileRows, C>(count, x + row * depth, depth, w, stride, y + row * columns, columns, isCopied ? copy : nullptr, ahead);
    if (!isCopied) continue;
    w = copy;
    stride = C * lanes;
  }
}

/** Multiplies all rows with `width` columns of the weights, which start at `w`. */
void productPanel(int64_t rows, const float* x, int64_t depth, const float* w, int64_t columns, int64_t width, float* y,
                  Ahead* ahead) {
  constexpr int64_t full = tileVectors * lanes;
  static thread_local std::vector<float> copy, result;
  if (static_cast<int64_t>(copy.size()) < depth * full) copy.resize(depth * full);
  if (width == full) return productRows<tileVectors>(rows, x, depth, w, columns, y, columns, copy.data(), ahead);
  // The last columns, filled up with zeros.
  for (int64_t k = 0; k < depth; k++) {
    std::memcpy(copy.data() + k * full, w + k * columns, width * sizeof(float));
    std::memset(copy.data() + k * full + width, 0, (full - width) * sizeof(float));
  }
  result.resize(rows * full);
  productRows<tileVectors>(rows, x, depth, copy.data(), full, result.data(), full, nullptr, nullptr);
  for (int64_t row = 0; row < rows; row++)
    std::memcpy(y + row * columns, result.data() + row * full, width * sizeof(float));
}

/** x [M, K], w [K, N] → x·w [M, N]. Fails if x and w differ in K. */
void matMul(void*, TF_OpKernelContext* context) {
  Call call{context};
  Input x = call.input(0), w = call.input(1);
  if (call.failed()) return;
  const int64_t rows = x.dim(0), depth = x.dim(1), columns = w.dim(1);
  if (w.dim(0) != depth) return call.refuse("PeriodicMatMul: the columns of x and the rows of w differ in number");
  float* y = call.output({rows, columns});
  if (call.failed()) return;
  const float *from = x.data(), *weights = w.data();
  constexpr int64_t full = tileVectors * lanes, chunk = 256;
  const int64_t chunks = (rows + chunk - 1) / chunk, panels = (columns + full - 1) / full;
  // Neighbouring panels go to the same thread, which fetches the next one while it computes.
  const int64_t panelsPerTask = std::max<int64_t>(1, panels / (4 * threadCount()));
  const int64_t tasks = (panels + panelsPerTask - 1) / panelsPerTask;
  parallelFor(tasks * chunks, [=](int64_t task) {
    const int64_t first = task % chunks * chunk, count = std::min(chunk, rows - first);
    const int64_t begin = task / chunks * panelsPerTask, last = std::min(panels, begin + panelsPerTask);
    for (int64_t panel = begin; panel < last; panel++) {
      const int64_t column = panel * full, tiles = (count + tileRows - 1) / tileRows;
      const bool isNext = panel + 1 < panels && column + 2 * full <= columns;
      Ahead ahead{weights + column + full, columns, 0, (depth + tiles - 1) / tiles, depth};
      productPanel(count, from + first * depth, depth, weights + column, columns, std::min(full, columns - column),
                   y + first * columns + column, isNext ? &ahead : nullptr);
    }
  });
}

}  // namespace
