import * as tf from "@tensorflow/tfjs-core";

/** The part of tfjs-backend-webgpu that runs shaders. */
interface WebGpuBackend {
  runWebGPUProgram(
    program: object,
    inputs: readonly tf.Tensor[],
    dtype: "int32",
    uniforms: readonly { readonly type: "int32"; readonly data: readonly number[] }[],
  ): tf.TensorInfo;
}

/** Sums per tensor, each computed by one thread. */
const sumCount = 1024;
const threadsPerGroup = 64;

/** Returns the backend if it runs WebGPU's shaders, else null. */
export function webGpuBackend(): WebGpuBackend | null {
  if (tf.getBackend() !== "webgpu") return null;
  const backend = tf.backend() as unknown as Partial<WebGpuBackend>;
  return typeof backend.runWebGPUProgram === "function" ? (backend as WebGpuBackend) : null;
}

/**
 * Sums hashes of the bits of a float32 tensor on the GPU, modulo 2³²: sum s is over the entries s, s + 1024, s + 2048 … The hash is
 * MurmurHash3's `fmix32` of the bits plus a multiple of the index. It is a bijection of the bits, so every change of a single value
 * changes its sum; several changes in a sum cancel with a probability of about 2⁻³².
 *
 * @returns int32 [1024], which the caller disposes.
 */
export function webGpuBitSums(backend: WebGpuBackend, tensor: tf.Tensor): tf.Tensor {
  const program = {
    variableNames: ["x"],
    outputShape: [sumCount],
    dispatchLayout: { x: [0] },
    dispatch: [sumCount / threadsPerGroup, 1, 1],
    workgroupSize: [threadsPerGroup, 1, 1],
    shaderKey: "periodic_eval_bit_sums",
    uniforms: "count : i32,",
    getUserCode: () => shader,
  };
  // The entries in one dimension, so that tensors of all shapes share a shader.
  const flat = tf.reshape(tensor, [tensor.size]);
  const count = { type: "int32", data: [tensor.size] } as const;
  try {
    return tf.engine().makeTensorFromTensorInfo(backend.runWebGPUProgram(program, [flat], "int32", [count]));
  } finally {
    flat.dispose();
  }
}

const shader = `
  fn fmix32(bits : u32) -> u32 {
    var h = bits;
    h = (h ^ (h >> 16u)) * 0x85ebca6bu;
    h = (h ^ (h >> 13u)) * 0xc2b2ae35u;
    return h ^ (h >> 16u);
  }
  fn main(index : i32) {
    var sum = 0u;
    for (var i = index; i < uniforms.count; i += ${sumCount}) {
      sum += fmix32(bitcast<u32>(x[i]) + u32(i) * 0x9e3779b9u);
    }
    if (index < ${sumCount}) {
      result[index] = bitcast<i32>(sum);
    }
  }`;
