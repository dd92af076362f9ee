/** The exports that also run in browsers. */
export { type GraphBackend, GraphFunction } from "./graph/graph-function.ts";
export { GraphSet, registerFusedCalls } from "./graph/graph-set.ts";
export { checkEqual, trace, type TensorSpec, type Trace } from "./graph/trace.ts";
export { tracePass, type TracedPass } from "./graph/trace-pass.ts";
export { type GraphType, type Sizes, valueOf } from "./graph/tracer.ts";
export type { AddedKernel } from "./wasm/added-kernels.ts";
export { registerWasmKernels } from "./wasm/register.ts";
