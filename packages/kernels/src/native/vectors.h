// Vectors of floats, as wide as the CPU's registers, in the vector extension of GCC and Clang.
#pragma once
#include <cmath>
#include <cstdint>
#include <cstring>

#if defined(__AVX512F__)
constexpr int lanes = 16, tileRows = 8, tileVectors = 3, halfTileRows = 6, halfTileVectors = 4;
#elif defined(__AVX__)
constexpr int lanes = 8, tileRows = 4, tileVectors = 3, halfTileRows = 6, halfTileVectors = 2;
#else
constexpr int lanes = 4, tileRows = 4, tileVectors = 4, halfTileRows = 4, halfTileVectors = 4;
#endif

typedef float Vector __attribute__((vector_size(lanes * sizeof(float))));
typedef int32_t Integers __attribute__((vector_size(lanes * sizeof(int32_t))));

inline Vector load(const float* from) {
  Vector vector;
  std::memcpy(&vector, from, sizeof(vector));
  return vector;
}

inline void store(float* to, Vector vector) { std::memcpy(to, &vector, sizeof(vector)); }

inline Vector broadcast(float value) { return value - Vector{}; }

/** Returns from[0] to from[count − 1] in the first `count` lanes, or zeros if `from` is null, and `rest` in the other lanes. */
inline Vector partOf(const float* from, int64_t count, float rest) {
  if (count == lanes && from != nullptr) return load(from);
  Vector vector = broadcast(rest);
  for (int64_t lane = 0; lane < count; lane++) vector[lane] = from == nullptr ? 0 : from[lane];
  return vector;
}

/** Writes the first `count` lanes. */
inline void storePart(float* to, Vector vector, int64_t count) {
  if (count == lanes) return store(to, vector);
  for (int64_t lane = 0; lane < count; lane++) to[lane] = vector[lane];
}

/** Calls body(i, count) for each vector of `size` numbers: `count` lanes from i on, fewer than `lanes` for the last. */
template <typename Body>
inline __attribute__((always_inline)) void eachVector(int64_t size, const Body& body) {
  int64_t i = 0;
  for (; i + lanes <= size; i += lanes) body(i, lanes);
  if (i < size) body(i, size - i);
}

/** Returns the sum of all lanes. */
inline float sumOf(Vector vector) {
  float values[lanes];
  store(values, vector);
  for (int width = lanes / 2; width > 0; width /= 2)
    for (int lane = 0; lane < width; lane++) values[lane] = values[lane] + values[lane + width];
  return values[0];
}

/** Returns the largest lane. If a lane is NaN, returns any of the lanes. */
inline float largestOf(Vector vector) {
  float values[lanes];
  store(values, vector);
  for (int width = lanes / 2; width > 0; width /= 2)
    for (int lane = 0; lane < width; lane++)
      values[lane] = values[lane] > values[lane + width] ? values[lane] : values[lane + width];
  return values[0];
}

/** Returns a · b, rounded: the compiler does not fuse the product with a sum. For numbers and vectors. */
template <typename Number>
inline Number product(Number a, Number b) {
  Number result = a * b;
#if defined(__x86_64__)
  asm("" : "+x"(result));
#elif defined(__aarch64__)
  asm("" : "+w"(result));
#endif
  return result;
}

/** Returns the square root of each lane. */
inline Vector rootOf(Vector vector) {
  float values[lanes];
  store(values, vector);
  for (int lane = 0; lane < lanes; lane++) values[lane] = std::sqrt(values[lane]);
  return load(values);
}

inline bool anyAbove(Vector vector, float limit) { return largestOf(vector) > limit; }

/** Returns exp(x) for x ≤ 88, with a relative error below 2e-7, 0 for x < −87, and NaN for NaN. Polynomial of Cephes (Moshier 1989). */
inline Vector exponential(Vector x) {
  const Vector low = broadcast(-87.0f);
  const Vector bounded = x < low ? low : x;
  // Adding 1.5·2²³ rounds to the nearest integer.
  const Vector shift = broadcast(12582912.0f);
  const Vector whole = bounded * broadcast(1.44269504088896341f) + shift - shift;
  Vector r = bounded - whole * broadcast(0.693359375f) + whole * broadcast(2.12194440e-4f);
  Vector p = broadcast(1.9875691500e-4f);
  p = p * r + broadcast(1.3981999507e-3f);
  p = p * r + broadcast(8.3334519073e-3f);
  p = p * r + broadcast(4.1665795894e-2f);
  p = p * r + broadcast(1.6666665459e-1f);
  p = p * r + broadcast(5.0000001201e-1f);
  const Vector value = p * r * r + r + broadcast(1.0f);
  const Integers exponent = (__builtin_convertvector(whole, Integers) + 127) << 23;
  Vector power;
  std::memcpy(&power, &exponent, sizeof(power));
  const Vector result = value * power;
  return x < low ? Vector{} : result;
}

/** Returns 1 + exp(−x), at most 1 + exp(88), so that quotients are not NaN for very negative x. */
inline Vector sigmoidDivisor(Vector x) {
  const Vector high = broadcast(88.0f);
  return broadcast(1.0f) + exponential(-x > high ? high : -x);
}

/** Returns σ(x). */
inline Vector sigmoid(Vector x) { return broadcast(1.0f) / sigmoidDivisor(x); }

/** Returns x · σ(x). */
inline Vector silu(Vector x) { return x / sigmoidDivisor(x); }
