import { join, resolve } from "@periodic-eval/store/platform";
import { readdir } from "@periodic-eval/store/browser";
import { errorMessage, parseOptions } from "@periodic-eval/contracts/options";
import { hashFiles } from "@periodic-eval/store";
import * as z from "zod";
import { missingOnnx, onDownloadSchema, type DownloadProgress, modelFolder } from "../hub/fetch-model.ts";
import { modelError } from "../folder/model-error.ts";
import { loadTokenizer } from "../tokenizer/load-tokenizer.ts";
import { fromTransformers, type TransformersLM } from "./from-transformers.ts";
import { importTransformers, packageName } from "./onnx-model.ts";

/** The ONNX file of each dtype, as `@huggingface/transformers` 4 names them. */
const files = {
  fp32: "model.onnx",
  fp16: "model_fp16.onnx",
  int8: "model_int8.onnx",
  uint8: "model_uint8.onnx",
  q8: "model_quantized.onnx",
  q4: "model_q4.onnx",
  q4f16: "model_q4f16.onnx",
  bnb4: "model_bnb4.onnx",
} as const;

const devices = ["cpu", "wasm", "webgpu", "cuda", "dml", "coreml"] as const;

export interface OpenTransformersOptions {
  /** Default `fp32`. */
  readonly dtype?: keyof typeof files;
  /** Where the model runs. Default `cpu`. */
  readonly device?: (typeof devices)[number];
  /** Called with the progress of each file that is downloaded from the hub. */
  readonly onDownload?: (progress: DownloadProgress) => void;
}

export const openTransformersShape = {
  dtype: z.enum(Object.keys(files) as (keyof typeof files)[]).optional(),
  device: z.enum(devices).optional(),
  onDownload: onDownloadSchema.optional(),
} satisfies Record<keyof OpenTransformersOptions, z.ZodType>;

const optionsSchema = z.strictObject(openTransformersShape);

export interface OpenTransformers {
  readonly model: TransformersLM;
  dispose(): Promise<void>;
}

/**
 * Loads an ONNX model with `@huggingface/transformers`, and its tokenizer with `loadTokenizer`, as a model to measure. Files of the
 * hub come from the cache shared with huggingface_hub. `identity.weights` is the SHA-256 of the ONNX files. The caller disposes the
 * result.
 *
 * @param source A folder with `onnx/model.onnx` (`optimum-cli export onnx` writes one), or `owner/name` or `owner/name@revision`.
 * @throws PeriodicEvalError `config` for a wrong option, or if `@huggingface/transformers` is missing; `model` if the files cannot be
 *   had or read, or as `fromTransformers`.
 */
export async function openTransformers(
  source: string,
  options: OpenTransformersOptions = {},
): Promise<OpenTransformers> {
  const {
    dtype = "fp32",
    device = "cpu",
    onDownload,
  } = parseOptions("openTransformers options", optionsSchema, options);
  const { AutoModelForCausalLM, env } = await importTransformers("openTransformers");
  const onnxFile = `onnx/${files[dtype]}`;
  const folder = resolve(
    await modelFolder(source, { need: "onnx", onnxFile, ...(onDownload && { onDownload }) }),
  );
  const onnxFiles = await onnxFilesOf(folder, onnxFile);
  const tokenizer = await loadTokenizer(folder);
  const weights = await hashFiles(onnxFiles.toSorted());
  const local = { dtype, device, local_files_only: true };
  const loaded = await AutoModelForCausalLM.from_pretrained(folder, local).catch((cause: unknown) => {
    throw modelError({
      where: join(folder, onnxFile),
      got: `the error "${errorMessage(cause)}" of ${packageName}`,
      expected: "an ONNX model that loads",
      fix: "Export it again, or choose another dtype or device.",
      cause,
    });
  });
  try {
    const model = fromTransformers(tokenizer, loaded, { name: source, weights });
    const { identity } = model;
    const details = { ...(identity.details as object), [packageName]: env.version ?? null };
    return {
      model: { ...model, identity: { ...identity, details } },
      dispose: async () => void (await loaded.dispose()),
    };
  } catch (error) {
    await loaded.dispose();
    throw error;
  }
}

/** Returns the paths of an ONNX file and of the files with its weights. */
async function onnxFilesOf(folder: string, onnxFile: string): Promise<readonly string[]> {
  const names = (await readdir(join(folder, "onnx")).catch(() => [])).map((name) => `onnx/${name}`);
  if (!names.includes(onnxFile)) throw missingOnnx(folder, onnxFile, names);
  return names
    .filter((name) => name === onnxFile || name.startsWith(`${onnxFile}_data`))
    .map((name) => join(folder, name));
}
