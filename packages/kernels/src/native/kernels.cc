// Operations of a decoder for native TensorFlow on the CPU. Each computes in one pass what TensorFlow computes with several
// operations, and products of few rows read each weight once. `periodic-eval native` compiles this file for the CPU of the machine.
//
// All tensors are float32, except targets, draws and their settings, and half-width weights. Sums are added in one order, so a row of a result does not depend on the other rows or on the threads.
// A change that rounds differently raises `kernelsVersion` in packages/tfjs/src/in-memory.ts.
#include <node_api.h>
#include <tensorflow/c/ops.h>

#include <cmath>
#include <mutex>
#include <string>

#include "activations.h"
#include "adamw.h"
#include "attention.h"
#include "call.h"
#include "draws.h"
#include "norms.h"
#include "parallel.h"
#include "products.h"
#include "softmax.h"
#include "target-losses.h"
#include "vectors.h"

namespace {

struct RotaryOptions {
  int64_t pairs = 0;
  float scale = 1;
};

/**
 * x [N, H·D], cosines and sines [N, D] of the angles → [N, H·D]: each head rotated and scaled. Dimension i < pairs is rotated with
 * dimension i + pairs; the others are only multiplied by their cosine and by the scale.
 */
void rotate(void* kernel, TF_OpKernelContext* context) {
  const RotaryOptions options = *static_cast<RotaryOptions*>(kernel);
  Call call{context};
  Input x = call.input(0), cosines = call.input(1), sines = call.input(2);
  if (call.failed()) return;
  const int64_t tokens = x.dim(0), all = x.dim(1), width = cosines.dim(1), pairs = options.pairs;
  const float scale = options.scale;
  float* y = call.output({tokens, all});
  if (call.failed()) return;
  const float *from = x.data(), *cosine = cosines.data(), *sine = sines.data();
  inRanges(tokens, 16384 / all + 1, [=](int64_t first, int64_t last) {
    for (int64_t token = first; token < last; token++) {
      const float *c = cosine + token * width, *s = sine + token * width;
      for (int64_t at = token * all; at < (token + 1) * all; at += width) {
        const float* in = from + at;
        float* out = y + at;
        for (int64_t i = 0; i < pairs; i++) {
          out[i] = (in[i] * c[i] - in[i + pairs] * s[i]) * scale;
          out[i + pairs] = (in[i + pairs] * c[i + pairs] + in[i] * s[i + pairs]) * scale;
        }
        for (int64_t i = 2 * pairs; i < width; i++) out[i] = in[i] * c[i] * scale;
      }
    }
  });
}

/** Returns an attribute of an operation. If it is missing, TensorFlow reports that the kernel cannot be created. */
float floatOf(TF_OpKernelConstruction* construction, const char* name) {
  TF_Status* status = TF_NewStatus();
  float value = 0;
  TF_OpKernelConstruction_GetAttrFloat(construction, name, &value, status);
  if (TF_GetCode(status) != TF_OK) TF_OpKernelConstruction_Failure(construction, status);
  TF_DeleteStatus(status);
  return value;
}

/** Returns an attribute of an operation, as `floatOf` does. */
int64_t integerOf(TF_OpKernelConstruction* construction, const char* name) {
  TF_Status* status = TF_NewStatus();
  int64_t value = 0;
  TF_OpKernelConstruction_GetAttrInt64(construction, name, &value, status);
  if (TF_GetCode(status) != TF_OK) TF_OpKernelConstruction_Failure(construction, status);
  TF_DeleteStatus(status);
  return value;
}

void* makeRmsNorm(TF_OpKernelConstruction* construction) {
  return new NormOptions{floatOf(construction, "epsilon"), floatOf(construction, "offset")};
}
void* makeLayerNorm(TF_OpKernelConstruction* construction) {
  return new NormOptions{floatOf(construction, "epsilon"), 0};
}
void deleteNorm(void* kernel) { delete static_cast<NormOptions*>(kernel); }

void* makeRotary(TF_OpKernelConstruction* construction) {
  return new RotaryOptions{integerOf(construction, "pairs"), floatOf(construction, "scale")};
}
void deleteRotary(void* kernel) { delete static_cast<RotaryOptions*>(kernel); }

void* makeAttention(TF_OpKernelConstruction* construction) {
  return new AttentionOptions{integerOf(construction, "heads"), integerOf(construction, "keyValueHeads"),
                              integerOf(construction, "pieces")};
}
void deleteAttention(void* kernel) { delete static_cast<AttentionOptions*>(kernel); }

void* makeHalve(TF_OpKernelConstruction* construction) {
  return new bool{integerOf(construction, "transposed") != 0};
}
void deleteHalve(void* kernel) { delete static_cast<bool*>(kernel); }

using Create = void* (*)(TF_OpKernelConstruction*);
using Compute = void (*)(void*, TF_OpKernelContext*);
using Delete = void (*)(void*);

/**
 * Registers an operation and its kernel for the CPU in TensorFlow.
 *
 * @param inputs Names and types of the tensors that it takes.
 * @param attributes Names and types of the parameters that `create` reads.
 * @param outputs Names and types of its results.
 * @return TensorFlow's error, or an empty string.
 */
std::string registerOp(const char* name, const std::vector<const char*>& inputs, const std::vector<const char*>& attributes,
                       Compute compute, Create create = nullptr, Delete remove = nullptr,
                       const std::vector<const char*>& outputs = {"y: float"}) {
  TF_Status* status = TF_NewStatus();
  TF_OpDefinitionBuilder* op = TF_NewOpDefinitionBuilder(name);
  for (const char* attribute : attributes) TF_OpDefinitionBuilderAddAttr(op, attribute);
  for (const char* input : inputs) TF_OpDefinitionBuilderAddInput(op, input);
  for (const char* output : outputs) TF_OpDefinitionBuilderAddOutput(op, output);
  TF_OpDefinitionBuilderSetShapeInferenceFunction(op, &TF_ShapeInferenceContextSetUnknownShape);
  TF_RegisterOpDefinition(op, status);
  if (TF_GetCode(status) == TF_OK) {
    TF_KernelBuilder* kernel = TF_NewKernelBuilder(name, "CPU", create, compute, remove);
    TF_RegisterKernelBuilder(name, kernel, status);
  }
  std::string error = TF_GetCode(status) == TF_OK ? "" : TF_Message(status);
  TF_DeleteStatus(status);
  return error;
}

std::string registerAll() {
  std::string errors;
  errors += registerOp("PeriodicMatMul", {"x: float", "w: W"}, {"W: {float, int32}"}, matMul);
  errors += registerOp("PeriodicHalve", {"w: float"}, {"transposed: int"}, halve, makeHalve, deleteHalve, {"halves: int32"});
  errors += registerOp("PeriodicWiden", {"halves: int32"}, {}, widen);
  errors += registerOp("PeriodicRmsNorm", {"x: float", "weight: float"}, {"epsilon: float", "offset: float"}, rmsNorm,
                       makeRmsNorm, deleteNorm);
  errors += registerOp("PeriodicRmsNormGradient", {"gradient: float", "x: float", "weight: float"},
                       {"epsilon: float", "offset: float"}, rmsNormGradient, makeRmsNorm, deleteNorm,
                       {"of_x: float", "of_weight: float"});
  errors += registerOp("PeriodicLayerNorm", {"x: float", "weight: float", "bias: float"}, {"epsilon: float"}, layerNorm,
                       makeLayerNorm, deleteNorm);
  errors += registerOp("PeriodicLayerNormGradient", {"gradient: float", "x: float", "weight: float"}, {"epsilon: float"},
                       layerNormGradient, makeLayerNorm, deleteNorm,
                       {"of_x: float", "of_weight: float", "of_bias: float"});
  errors += registerOp("PeriodicGatedSilu", {"gate: float", "up: float"}, {}, gatedSilu);
  errors += registerOp("PeriodicGatedSiluGradient", {"gradient: float", "gate: float", "up: float"}, {}, gatedSiluGradient,
                       nullptr, nullptr, {"of_gate: float", "of_up: float"});
  errors += registerOp("PeriodicGeluTanh", {"x: float"}, {}, geluTanh);
  errors += registerOp("PeriodicGeluTanhGradient", {"gradient: float", "x: float"}, {}, geluTanhGradient);
  errors += registerOp("PeriodicMaskedSoftmax", {"scores: float", "mask: float"}, {}, maskedSoftmax);
  errors += registerOp("PeriodicSoftmaxGradient", {"gradient: float", "weights: float"}, {}, softmaxGradient);
  errors += registerOp("PeriodicRotate", {"x: float", "cosines: float", "sines: float"}, {"pairs: int", "scale: float"},
                       rotate, makeRotary, deleteRotary);
  errors += registerOp("PeriodicAttend",
                       {"query: float", "keys: pieces * float", "values: pieces * float",
                        "masks: pieces * float"},
                       {"heads: int", "keyValueHeads: int", "pieces: int >= 1"}, attend, makeAttention, deleteAttention);
  errors += registerOp("PeriodicAdamW",
                       {"gradient: float", "weight: float", "mean: float", "mean_sq: float", "numbers: float"}, {}, adamW,
                       nullptr, nullptr, {"new_weight: float", "new_mean: float", "new_mean_sq: float"});
  errors += registerOp("PeriodicTargetLosses", {"logits: float", "targets: int32"}, {}, targetLosses, nullptr, nullptr,
                       {"losses: float", "gradient: float"});
  errors += registerOp("PeriodicDraw", {"logits: float", "settings: int32"}, {}, draw, nullptr, nullptr, {"draws: int32"});
  return errors;
}

}  // namespace

/**
 * Registers the operations in TensorFlow when Node loads this file, once per process. Exports nothing: tfjs-node calls an operation
 * by its name. Throws TensorFlow's error if a registration fails.
 */
NAPI_MODULE_INIT() {
  static std::once_flag once;
  static std::string errors;
  std::call_once(once, [] { errors = registerAll(); });
  if (!errors.empty()) napi_throw_error(env, nullptr, errors.c_str());
  return exports;
}
