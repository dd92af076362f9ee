// Activations and their gradients. A gradient computes its activation again, so that only the inputs are kept.
#pragma once
#include <cstdint>

#include "call.h"
#include "parallel.h"
#include "vectors.h"

namespace {

/** gate, up [N, F] → gate · σ(gate) · up [N, F]. */
void gatedSilu(void*, TF_OpKernelContext* context) {
  Call call{context};
  Input gate = call.input(0), up = call.input(1);
  if (call.failed()) return;
  if (up.size() != gate.size()) return call.refuse("PeriodicGatedSilu: gate and up differ in size");
  float* y = call.output(gate.shape());
  if (call.failed()) return;
  const float *a = gate.data(), *b = up.data();
  inVectors(gate.size(), 16384, [=](int64_t i, int64_t count) __attribute__((always_inline)) {
    storePart(y + i, silu(partOf(a + i, count, 0)) * partOf(b + i, count, 0), count);
  });
}

/** The gradient of the output, gate, up [N, F] → the gradients of gate and of up [N, F]. */
void gatedSiluGradient(void*, TF_OpKernelContext* context) {
  Call call{context};
  Input gradient = call.input(0), gate = call.input(1), up = call.input(2);
  if (call.failed()) return;
  if (gradient.size() != gate.size() || up.size() != gate.size())
    return call.refuse("PeriodicGatedSiluGradient: gradient, gate and up differ in size");
  float *ofGate = call.output(gate.shape(), 0), *ofUp = call.output(gate.shape(), 1);
  if (call.failed()) return;
  const float *ofOutput = gradient.data(), *a = gate.data(), *b = up.data();
  inVectors(gate.size(), 8192, [=](int64_t i, int64_t count) __attribute__((always_inline)) {
    const Vector x = partOf(a + i, count, 0), ofY = partOf(ofOutput + i, count, 0);
    const Vector sigma = sigmoid(x), activated = x * sigma;
    storePart(ofGate + i, ofY * partOf(b + i, count, 0) * (sigma + activated - activated * sigma), count);
    storePart(ofUp + i, ofY * activated, count);
  });
}

/** The tanh approximation of GELU is x · σ(2√(2/π) · (x + 0.044715 · x³)) (Hendrycks and Gimpel 2016). */
constexpr float geluLinear = 1.5957691216057308f, geluCubic = 0.044715f * geluLinear;

/** x [N, F] → the tanh approximation of GELU [N, F]. */
void geluTanh(void*, TF_OpKernelContext* context) {
  Call call{context};
  Input input = call.input(0);
  if (call.failed()) return;
  float* y = call.output(input.shape());
  if (call.failed()) return;
  const float* from = input.data();
  inVectors(input.size(), 16384, [=](int64_t i, int64_t count) __attribute__((always_inline)) {
    const Vector x = partOf(from + i, count, 0);
    storePart(y + i, x * sigmoid(x * (x * x * broadcast(geluCubic) + broadcast(geluLinear))), count);
  });
}

/** The gradient of the output, x [N, F] → the gradient of x [N, F]. */
void geluTanhGradient(void*, TF_OpKernelContext* context) {
  Call call{context};
  Input gradient = call.input(0), input = call.input(1);
  if (call.failed()) return;
  if (gradient.size() != input.size()) return call.refuse("PeriodicGeluTanhGradient: gradient and x differ in size");
  float* ofX = call.output(input.shape());
  if (call.failed()) return;
  const float *ofOutput = gradient.data(), *from = input.data();
  inVectors(input.size(), 8192, [=](int64_t i, int64_t count) __attribute__((always_inline)) {
    const Vector x = partOf(from + i, count, 0), square = x * x;
    const Vector sigma = sigmoid(x * (square * broadcast(geluCubic) + broadcast(geluLinear)));
    const Vector inner = square * broadcast(3 * geluCubic) + broadcast(geluLinear);
    const Vector derivative = sigma + x * sigma * (broadcast(1.0f) - sigma) * inner;
    storePart(ofX + i, partOf(ofOutput + i, count, 0) * derivative, count);
  });
}

}  // namespace
