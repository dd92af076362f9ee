import { join } from "@periodic-eval/store/platform";
import { readdir } from "@periodic-eval/store/browser";
import { parseOptions } from "@periodic-eval/contracts/options";
import { openSafetensors, type SafetensorsFile } from "@periodic-eval/safetensors";
import * as z from "zod";
import { modelName, type CheckpointLM, type ModelParts } from "../checkpoint/model.ts";
import { tensorOf } from "../checkpoint/save.ts";
import { checkShapes, readFloats, shapeText } from "../checkpoint/tensors.ts";
import type { LiveWeight } from "../decoder/causal-lm.ts";
import { checkpointValues } from "../decoder/variables.ts";
import { familyOf } from "../families/registry.ts";
import { rejectPickled } from "../folder/file-names.ts";
import { modelError } from "../folder/model-error.ts";
import { requireJsonObject } from "../folder/read-file.ts";
import { adapterNames, onDownloadSchema, type DownloadProgress, modelFolder } from "../hub/fetch-model.ts";
import {
  planAdapter,
  tensorPrefix,
  type AdapterPlan,
  type AdapterTensor,
  modulesOf,
  type ModelShape,
  type Modules,
} from "./adapter-plan.ts";
import { parseLoraConfig, type AdapterConfig } from "./lora-config.ts";
import { adaptable, createLora, type LoraLM } from "./lora-model.ts";

export interface LoadLoraOptions {
  /** Called with the progress of each file that is downloaded from the hub. */
  readonly onDownload?: (progress: DownloadProgress) => void;
}

const optionsSchema = z.strictObject({
  onDownload: onDownloadSchema.optional(),
} satisfies Record<keyof LoadLoraOptions, z.ZodType>);

/**
 * Loads an adapter that PEFT saved onto a model: `adapter_config.json` and `adapter_model.safetensors` from a folder, or
 * from the hub as `owner/name` or `owner/name@revision`. Outputs equal those of PEFT 0.21; float16 and bfloat16 are
 * widened. The adapter can be trained further, with the dropout of its configuration. The caller disposes the result, and
 * the model separately.
 *
 * Supports `r`, `lora_alpha`, `lora_dropout`, `use_rslora`, `rank_pattern`, `alpha_pattern`, `target_modules` and
 * `exclude_modules` as names or regular expressions, `layers_to_transform`, `layers_pattern`, and
 * `modules_to_save` with the embedding and an untied head. Any other key that would change a number throws. As in PEFT,
 * `null` for `r` or `lora_alpha` throws: it does not select the default.
 *
 * @throws PeriodicEvalError `model` if the adapter cannot be read, is not supported or does not fit the model, for example
 *   because a tensor is missing, unknown or of another shape; `config` for a wrong option of the call.
 */
export async function loadLora(
  model: CheckpointLM,
  source: string,
  options: LoadLoraOptions = {},
): Promise<LoraLM> {
  parseOptions("loadLora options", optionsSchema, options);
  const parts = adaptable(model, "loadLora");
  const { folder, config, file, modules, plan } = await openAdapter(
    source,
    { ...parts, isHeadTied: parts.weights.head === null },
    options,
  );
  try {
    await checkTensors(file, plan, ownTensors(modules, parts));
    const read = new Map<string, Float32Array>();
    for (const { name } of tensorsOf(plan)) read.set(name, await readFloats(file, name));
    const name = adapterName(folder, config);
    return createLora(model, parts, { plan, config, name, values: (tensor) => read.get(tensor.name)! });
  } finally {
    await file.close();
  }
}

/**
 * Returns the folder of an adapter: `source` itself, or the cache folder of `owner/name` on the hub, downloaded if needed. A server
 * reads adapters by their folders.
 *
 * @throws PeriodicEvalError `model` if `source` is neither, or if the download fails.
 */
export const adapterFolder = (source: string, { onDownload }: LoadLoraOptions = {}): Promise<string> =>
  modelFolder(source, { need: "adapter", ...(onDownload && { onDownload }) });

interface OpenAdapter {
  readonly folder: string;
  readonly config: AdapterConfig;
  /** The caller closes it. */
  readonly file: SafetensorsFile;
  readonly modules: Modules;
  readonly plan: AdapterPlan;
}

/** Opens an adapter for a model of this shape, without checking its tensors. Throws as `loadLora`. */
export async function openAdapter(
  source: string,
  { isHeadTied, ...shape }: ModelShape & { readonly isHeadTied: boolean },
  options: LoadLoraOptions,
): Promise<OpenAdapter> {
  const folder = await adapterFolder(source, options);
  const path = join(folder, adapterNames.config);
  const fix = "Pass a folder with an adapter that PEFT saved.";
  const config = await requireJsonObject(folder, adapterNames.config, fix);
  const parsed = parseLoraConfig(config, path);
  await rejectPickled(folder, await readdir(folder).catch((): string[] => []), adapterNames.weights);
  const file = await openSafetensors(join(folder, adapterNames.weights));
  try {
    const family = familyOf(shape.config, path);
    const heads = [family.otherHead, family.names.head].filter((name) => name !== undefined);
    const head = heads.find((name) => hasTensorsOf(file, name)) ?? heads[0]!;
    const modules = modulesOf(shape.description, shape.weights, family, head);
    return { folder, config, file, modules, plan: planAdapter(parsed, modules, path, isHeadTied) };
  } catch (error) {
    await file.close();
    throw error;
  }
}

const hasTensorsOf = ({ tensors }: SafetensorsFile, module: string): boolean =>
  [...tensors.keys()].some((name) => name.startsWith(`${tensorPrefix}${module}.`));

/** Checks the tensors of the file before anything is allocated in the sizes that the configuration names. */
async function checkTensors(file: SafetensorsFile, plan: AdapterPlan, weights: OwnTensors): Promise<void> {
  const { path, tensors } = file;
  const fix = "Check that adapter_config.json, the weights and the model belong together.";
  const planned = tensorsOf(plan);
  checkShapes(path, planned, tensors, fix);
  const expected = new Set(planned.map(({ name }) => name));
  for (const name of tensors.keys()) {
    if (expected.has(name)) continue;
    const where = `${path}, tensor ${name}`;
    const weight = weights.get(name);
    if (weight === undefined)
      throw modelError({
        where,
        got: "a tensor without an entry in the configuration",
        expected: `only the ${expected.size} configured tensors`,
        fix,
      });
    if (await isSame(file, name, weight)) continue;
    throw modelError({
      where,
      got: "values or sizes that differ from the model's",
      expected: "a copy of the model's weight, or modules_to_save with its name",
      fix: "Load the model that the adapter was trained on, with its vocabulary.",
    });
  }
}

/** The model's weights that PEFT repeats in the file of an adapter on the head, by their names there. */
type OwnTensors = ReadonlyMap<string, LiveWeight>;

function ownTensors({ embedding, head }: Modules, { weights }: ModelParts): OwnTensors {
  const namesOf = (module: string) =>
    ["", ".base_layer"].map((part) => `${tensorPrefix}${module}${part}.weight`);
  const headWeight = weights.head?.weight ?? weights.embedding;
  return new Map([
    ...namesOf(embedding).map((name) => [name, weights.embedding] as const),
    ...namesOf(head).map((name) => [name, headWeight] as const),
  ]);
}

async function isSame(file: SafetensorsFile, name: string, weight: LiveWeight): Promise<boolean> {
  if (shapeText(file.tensors.get(name)!.shape) !== shapeText(tensorOf(weight).shape)) return false;
  const [stored, current] = [await readFloats(file, name), await checkpointValues(weight)];
  return stored.every((value, i) => value === current[i]);
}

function tensorsOf({ adapters, embedding, head }: AdapterPlan): readonly AdapterTensor[] {
  return [...adapters.flatMap(({ a, b }) => [a, b]), embedding, head].filter((tensor) => tensor !== null);
}

/** Returns the adapter's name in snapshots. */
function adapterName(folder: string, config: AdapterConfig): string {
  const name = modelName(folder);
  const base = config["base_model_name_or_path"];
  return typeof base === "string" && base !== "" ? `${name} of ${base.slice(0, 200)}` : name;
}
