// Attention over cached keys and values, which are in several pieces.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <type_traits>
#include <vector>

#include "call.h"
#include "parallel.h"
#include "vectors.h"

namespace {

struct AttentionOptions {
  int64_t heads = 0, keyValueHeads = 0, pieces = 0;
};

/** Cached keys, values and mask of some tokens. `rows` is the number of sequences, or 1 if all of them share the piece. */
struct Piece {
  const float *keys, *values, *mask;
  int64_t tokens, rows;
};

/** A mask below this value hides a token. */
constexpr float maskedBelow = -1e8f;

constexpr int64_t queriesAtOnce = 4;
/**
 * Vectors of tokens that are scored together. Neighbouring dimensions of a key are a whole row apart in memory, so each visit to a row
 * reads several vectors.
 */
constexpr int vectorsAtOnce = lanes == 16 ? 4 : 2;

/**
 * Writes the scores of R queries with the C·lanes tokens of a piece from `p` on, and raises each query's `top` to its largest score. With
 * C = 1 the piece may end within the vector. `keys` are those of the key-value head [width, tokens]; `stride` is the distance of two
 * queries in `scores`.
 */
template <int R, int C>
inline void scoreTile(const Piece& piece, const float* keys, int64_t p, const float* const* queries, const int64_t* tokens,
                      int64_t width, float* scores, int64_t stride, float* top) {
  const int64_t count = std::min<int64_t>(lanes, piece.tokens - p);
  Vector masks[R][C];
  bool isAttended[C];
  for (int c = 0; c < C; c++) {
    isAttended[c] = piece.mask == nullptr;
    for (int r = 0; r < R; r++) {
      // Lanes after the last token get no weight.
      const float* mask = piece.mask == nullptr ? nullptr : piece.mask + tokens[r] * piece.tokens + p + c * lanes;
      masks[r][c] = partOf(mask, count, -INFINITY);
      if (mask != nullptr) isAttended[c] = isAttended[c] || anyAbove(masks[r][c], maskedBelow);
    }
  }
  Vector sums[R][C];
  for (int r = 0; r < R; r++)
    for (int c = 0; c < C; c++) sums[r][c] = Vector{};
  if (std::any_of(isAttended, isAttended + C, [](bool is) { return is; })) {
    const auto add = [&](const auto& keyAt) __attribute__((always_inline)) {
      for (int64_t d = 0; d < width; d++) {
        Vector some[C];
        const float* row = keys + d * piece.tokens + p;
        for (int c = 0; c < C; c++) {
          __builtin_prefetch(row + (C + c) * lanes, 0, 2);
          some[c] = keyAt(row + c * lanes);
        }
        for (int r = 0; r < R; r++)
          for (int c = 0; c < C; c++) sums[r][c] += broadcast(queries[r][d]) * some[c];
      }
    };
    if (count == lanes) add([](const float* from) { return load(from); });
    else add([=](const float* from) { return partOf(from, count, 0.0f); });
  }
  for (int r = 0; r < R; r++)
    for (int c = 0; c < C; c++) {
      const Vector score = isAttended[c] ? sums[r][c] + masks[r][c] : broadcast(-INFINITY);
      store(scores + r * stride + c * lanes, score);
      top[r] = std::max(top[r], largestOf(score));
    }
}

/** Computes the attention of R queries that have the same sequence (`row`) and the same key-value head (`head`). */
template <int R>
void attendTile(const std::vector<Piece>& pieces, const float* const* queries, const int64_t* tokens, float* const* out,
                int64_t row, int64_t head, int64_t keyValueHeads, int64_t width, std::vector<float>& buffer) {
  int64_t all = 0;
  for (const Piece& piece : pieces) all += (piece.tokens + lanes - 1) / lanes * lanes;
  buffer.resize(R * all);
  float top[R];
  std::fill(top, top + R, -INFINITY);
  int64_t at = 0;
  for (const Piece& piece : pieces) {
    const int64_t of = (piece.rows == 1 ? 0 : row) * keyValueHeads + head;
    const float* keys = piece.keys + of * width * piece.tokens;
    int64_t p = 0;
    const auto score = [&]<int C>(std::integral_constant<int, C>) __attribute__((always_inline)) {
      scoreTile<R, C>(piece, keys, p, queries, tokens, width, buffer.data() + at, all, top);
      p += C * lanes;
      at += C * lanes;
    };
    while (p + vectorsAtOnce * lanes <= piece.tokens) score(std::integral_constant<int, vectorsAtOnce>{});
    while (p < piece.tokens) score(std::integral_constant<int, 1>{});
  }
  // A score of NaN makes the total NaN, and so does an infinite largest score.
  float totals[R];
  for (int r = 0; r < R; r++) {
    Vector sum{};
    float* scores = buffer.data() + r * all;
    for (int64_t i = 0; i < all; i += lanes) {
      const Vector weight = exponential(load(scores + i) - broadcast(top[r]));
      store(scores + i, weight);
      sum += weight;
    }
    totals[r] = sumOf(sum);
  }
  for (int64_t d = 0; d < width; d += 4 * lanes) {
    const int64_t vectors = std::min<int64_t>(4, (width - d + lanes - 1) / lanes);
    Vector means[R][4];
    for (int r = 0; r < R; r++)
      for (int c = 0; c < 4; c++) means[r][c] = Vector{};
    at = 0;
    for (const Piece& piece : pieces) {
      const int64_t of = (piece.rows == 1 ? 0 : row) * keyValueHeads + head;
      const float* values = piece.values + of * width * piece.tokens + d;
      for (int64_t p = 0; p < piece.tokens; p++) {
        float weights[R];
        float largest = 0;
        for (int r = 0; r < R; r++) {
          weights[r] = buffer[r * all + at + p];
          largest = std::max(largest, weights[r]);
        }
        if (largest == 0) continue;
        if (vectors == 4 && d + 4 * lanes <= width) {
          for (int c = 0; c < 4; c++) {
            const Vector value = load(values + p * width + c * lanes);
            for (int r = 0; r < R; r++) means[r][c] += broadcast(weights[r]) * value;
          }
        } else {
          for (int64_t c = 0; c < vectors; c++) {
            const int64_t count = std::min<int64_t>(lanes, width - d - c * lanes);
            const Vector value = partOf(values + p * width + c * lanes, count, 0.0f);
            for (int r = 0; r < R; r++) means[r][c] += broadcast(weights[r]) * value;
          }
        }
      }
      at += (piece.tokens + lanes - 1) / lanes * lanes;
    }
    for (int r = 0; r < R; r++)
      for (int64_t c = 0; c < vectors; c++) {
        const int64_t from = d + c * lanes;
        storePart(out[r] + from, means[r][c] / broadcast(totals[r]), std::min<int64_t>(lanes, width - from));
      }
  }
}

/**
 * Attention over pieces as if they were concatenated. B sequences of T new tokens, H heads, G key-value heads, D dimensions per head;
 * a piece has P cached tokens for b sequences, where b is B, or 1 if all sequences share it. The last piece has b = B.
 *
 * query [B·T, H·D], rotated and scaled; the keys [b·G, D, P] of each piece; the values [b·G, P, D] of each; the masks [B, T·P] of each,
 * which are added to the scores, or [0] for no mask → [B·T, H·D]. Each query attends to at least one token.
 */
void attend(void* kernel, TF_OpKernelContext* context) {
  const AttentionOptions options = *static_cast<AttentionOptions*>(kernel);
  Call call{context};
  Input query = call.input(0);
  std::vector<Input> inputs;
  for (int64_t i = 0; i < 3 * options.pieces; i++) inputs.push_back(call.input(static_cast<int>(1 + i)));
  if (call.failed()) return;
  const int64_t heads = options.heads, groups = options.keyValueHeads, perGroup = heads / groups;
  const int64_t all = query.dim(0), width = query.dim(1) / heads;
  // Only the last piece always has keys of its own for each sequence.
  const int64_t batch = inputs[options.pieces - 1].dim(0) / groups, length = all / batch;
  std::vector<Piece> pieces;
  for (int64_t i = 0; i < options.pieces; i++) {
    const Input &keys = inputs[i], &values = inputs[options.pieces + i], &mask = inputs[2 * options.pieces + i];
    const int64_t tokens = keys.dim(2);
    if (tokens > 0)
      pieces.push_back(
          {keys.data(), values.data(), mask.size() == 0 ? nullptr : mask.data(), tokens, keys.dim(0) / groups});
  }
  float* y = call.output({all, heads * width});
  if (call.failed()) return;
  const float* from = query.data();
  const int64_t queries = perGroup * length, tiles = (queries + queriesAtOnce - 1) / queriesAtOnce;
  // One task has several tiles, so that its keys stay in the cache.
  const int64_t tilesPerTask = std::min<int64_t>(tiles, 16), tasksPerHead = (tiles + tilesPerTask - 1) / tilesPerTask;
  parallelFor(batch * groups * tasksPerHead, [=, &pieces](int64_t task) {
    static thread_local std::vector<float> buffer;
    const int64_t row = task / tasksPerHead / groups, head = task / tasksPerHead % groups;
    const int64_t firstTile = task % tasksPerHead * tilesPerTask;
    std::vector<Piece> own = pieces;
    for (Piece& piece : own)
      if (piece.mask != nullptr) piece.mask += row * length * piece.tokens;
    for (int64_t tile = firstTile; tile < std::min(tiles, firstTile + tilesPerTask); tile++) {
      const float* of[queriesAtOnce];
      float* out[queriesAtOnce];
      int64_t tokens[queriesAtOnce];
      const int64_t first = tile * queriesAtOnce, count = std::min(queriesAtOnce, queries - first);
      for (int64_t i = 0; i < count; i++) {
        // Neighbouring queries belong to one token, so a whole tile can skip the keys that the mask hides from it.
        tokens[i] = (first + i) / perGroup;
        const int64_t place = ((row * length + tokens[i]) * heads + head * perGroup + (first + i) % perGroup) * width;
        of[i] = from + place;
        out[i] = y + place;
      }
      switch (count) {
        case 1: attendTile<1>(own, of, tokens, out, row, head, groups, width, buffer); break;
        case 2: attendTile<2>(own, of, tokens, out, row, head, groups, width, buffer); break;
        case 3: attendTile<3>(own, of, tokens, out, row, head, groups, width, buffer); break;
        default: attendTile<4>(own, of, tokens, out, row, head, groups, width, buffer); break;
      }
    }
  });
}

}  // namespace
