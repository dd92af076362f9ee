import { basename, join, resolve } from "node:path";
import { readdir } from "node:fs/promises";
import { checkKeys } from "@periodic-eval/core/internal";
import { openSafetensors, type SafetensorsFile } from "@periodic-eval/safetensors";
import type { CheckpointLM, ModelParts } from "../checkpoint/model.ts";
import { tensorOf } from "../checkpoint/save.ts";
import { readFloats } from "../checkpoint/tensors.ts";
import type { LiveWeight } from "../decoder/causal-lm.ts";
import { checkpointValues } from "../decoder/variables.ts";
import { familyOf } from "../families/registry.ts";
import { failure } from "../folder/failure.ts";
import { pickled } from "../folder/pickled.ts";
import { pathInFolder, readJsonObject } from "../folder/read-file.ts";
import { hubNameOf } from "../hub/cache.ts";
import { adapterNames, type DownloadProgress } from "../hub/fetch-model.ts";
import { modelFolder } from "../hub/model-folder.ts";
import { planAdapter, tensorPrefix, type AdapterPlan, type AdapterTensor } from "./adapter-plan.ts";
import { parseLoraConfig, type AdapterConfig } from "./lora-config.ts";
import { adaptable, createLora, type LoraLM } from "./lora-model.ts";
import { modulesOf, type ModelShape, type Modules } from "./modules.ts";

export interface LoadLoraOptions {
  /** Told how far a file is that has to be fetched from the hub. */
  readonly onDownload?: (progress: DownloadProgress) => void;
}

const known = { onDownload: true } as const satisfies Record<keyof LoadLoraOptions, true>;

/**
 * A model with an adapter as PEFT saves it: `adapter_config.json` and `adapter_model.safetensors` of a folder or, as
 * `owner/name` or `owner/name@revision`, of the hub. Its numbers are those of PEFT 0.21; f16 and bf16 are widened. It can
 * be trained further, with the dropout of its configuration. The caller disposes it, and the model by itself.
 *
 * Read: `r`, `lora_alpha`, `lora_dropout`, `use_rslora`, `rank_pattern`, `alpha_pattern`, `target_modules` and
 * `exclude_modules` as names or expressions, `layers_to_transform`, `layers_pattern`, `lora_bias`, and `modules_to_save`
 * of the embedding and an untied head. Everything else that would change a number is refused by name.
 *
 * @throws PeriodicEvalError `model` where the adapter cannot be read, is not supported or is not of this model: a tensor is
 *   missing, unknown or of another shape; `config` for a wrong option of the call.
 */
export async function loadLora(
  model: CheckpointLM,
  source: string,
  options: LoadLoraOptions = {},
): Promise<LoraLM> {
  checkKeys("loadLora", options, Object.keys(known));
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
    const name = nameOf(folder, config);
    return createLora(model, parts, { plan, config, name, values: (tensor) => read.get(tensor.name)! });
  } finally {
    await file.close();
  }
}

interface OpenAdapter {
  readonly folder: string;
  readonly config: AdapterConfig;
  /** The caller closes it. */
  readonly file: SafetensorsFile;
  readonly modules: Modules;
  readonly plan: AdapterPlan;
}

/** An adapter for a model of this shape, its tensors not compared with it. Throws as `loadLora`. */
export async function openAdapter(
  source: string,
  { isHeadTied, ...shape }: ModelShape & { readonly isHeadTied: boolean },
  { onDownload }: LoadLoraOptions,
): Promise<OpenAdapter> {
  const folder = await modelFolder(source, { need: "adapter", ...(onDownload && { onDownload }) });
  const path = join(folder, adapterNames.config);
  const config = await readConfig(folder, path);
  const parsed = parseLoraConfig(config, path);
  const file = await openWeights(folder);
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

async function readConfig(folder: string, path: string): Promise<AdapterConfig> {
  const fix = "Point to a folder with an adapter as PEFT saves it.";
  const config = await readJsonObject(folder, adapterNames.config, fix);
  if (config === null) throw failure(path, "no such file", "a JSON object", fix);
  const base = config["base_model_name_or_path"] ?? null;
  if (base === null || typeof base === "string") return config;
  throw failure(`${path}, base_model_name_or_path`, typeof base, "a text or null", fix);
}

async function openWeights(folder: string): Promise<SafetensorsFile> {
  const names = await readdir(folder).catch((): string[] => []);
  const refused = names.includes(adapterNames.weights) ? null : pickled(folder, names);
  if (refused !== null) throw refused;
  return openSafetensors(await pathInFolder(folder, adapterNames.weights));
}

const hasTensorsOf = ({ tensors }: SafetensorsFile, module: string): boolean =>
  [...tensors.keys()].some((name) => name.startsWith(`${tensorPrefix}${module}.`));

/** Before anything is made in the sizes that the configuration speaks of. */
async function checkTensors(file: SafetensorsFile, plan: AdapterPlan, own: OwnTensors): Promise<void> {
  const { path, tensors } = file;
  const fix = "Check that adapter_config.json, the weights and the model belong together.";
  const expected = new Set(tensorsOf(plan).map(({ name }) => name));
  for (const { name, shape } of tensorsOf(plan)) {
    const got = tensors.get(name)?.shape;
    if (got !== undefined && shapeText(got) === shapeText(shape)) continue;
    const found = got === undefined ? "none" : shapeText(got);
    throw failure(`${path}, tensor ${name}`, found, shapeText(shape), fix);
  }
  for (const name of tensors.keys()) {
    if (expected.has(name)) continue;
    const weight = own.get(name);
    if (weight !== undefined && (await isSame(file, name, weight))) continue;
    const isOwn = weight !== undefined;
    throw failure(
      `${path}, tensor ${name}`,
      isOwn ? "other values or sizes than the model's" : "a tensor that the configuration does not speak of",
      isOwn ? "the model's own, or modules_to_save that names it" : `the ${expected.size} that it speaks of`,
      isOwn ? "Load the model that the adapter was trained on, with its vocabulary." : fix,
    );
  }
}

const shapeText = (shape: readonly number[]) => `[${shape.join(", ")}]`;

/** What PEFT saves once more beside an adapter of the head. */
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
  const [found, own] = [await readFloats(file, name), await checkpointValues(weight)];
  return found.every((value, i) => value === own[i]);
}

function tensorsOf({ adapters, embedding, head }: AdapterPlan): readonly AdapterTensor[] {
  const all = adapters.flatMap(({ a, b, bias }) => [a, b, bias]).concat(embedding, head);
  return all.filter((tensor) => tensor !== null);
}

/** As snapshots tell it. */
function nameOf(folder: string, config: AdapterConfig): string {
  const name = hubNameOf(folder) ?? basename(resolve(folder));
  const base = config["base_model_name_or_path"];
  return typeof base === "string" && base !== "" ? `${name} of ${base.slice(0, 200)}` : name;
}
