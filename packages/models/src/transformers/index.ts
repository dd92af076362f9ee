/** Models of `@huggingface/transformers`, an optional peer, as models to measure. */
export type { TransformersTokenizer } from "@periodic-eval/tfjs";
export { classifierGrader, type ClassifierGraderOptions, type TextClassifier } from "./classifier-grader.ts";
export { fromTransformers, type FromTransformersOptions, type TransformersLM } from "./from-transformers.ts";
export type { TransformersModel } from "./onnx-model.ts";
export {
  openTransformers,
  type OpenTransformers,
  type OpenTransformersOptions,
} from "./open-transformers.ts";
