import { randomUUID } from "node:crypto";
import { existsSync } from "node:fs";
import { mkdir, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { isRecord, quoteValue } from "@periodic-eval/contracts/options";
import { readSafetensorsHeader, writeSafetensors, type SafetensorsHeader } from "@periodic-eval/safetensors";
import { stateOfProcess, thisProcess, hashFiles } from "@periodic-eval/store";
import { serverError } from "./wire.ts";

const prefix = "periodic-eval";

/** Returns a name that no adapter has had: a server's prefix cache keeps numbers by name. It names this process. */
export function newAdapterName(): string {
  const { pid, processStart, system } = thisProcess;
  return [prefix, pid, processStart ?? 0, randomUUID().slice(0, 13), system ?? ""].join(".");
}

/** Whether an adapter was loaded by a process of this system that has ended. */
export function isLeftover(name: string): boolean {
  const [, pid, start, system] = /^periodic-eval\.(\d+)\.(\w+)\.[\w-]+\.(.+)$/.exec(name) ?? [];
  if (pid === undefined || system !== thisProcess.system) return false;
  if (Number(pid) === thisProcess.pid) return start !== (thisProcess.processStart ?? "0");
  const processStart = start === undefined || start === "0" ? null : start;
  return stateOfProcess(Number(pid), processStart) === "ended";
}

/** An adapter in PEFT's format. */
export interface AdapterFiles {
  readonly folder: string;
  readonly config: Readonly<Record<string, unknown>>;
  /** One pair of matrices per kind of module (`q_proj`), to try the kind with. */
  readonly samples: ReadonlyMap<string, ModulePair>;
  /** Whether `rank_pattern` or `alpha_pattern` sets the scale of some modules. Old servers ignore them. */
  readonly hasPatterns: boolean;
  readonly hash: string;
}

interface ModulePair {
  readonly names: readonly [a: string, b: string];
  /** [r, in] and [out, r]. */
  readonly shapes: readonly [readonly [number, number], readonly [number, number]];
}

const configFile = "adapter_config.json";
const weightsFile = "adapter_model.safetensors";

/** Keys that a server reads, or that change no number of a saved adapter. Any other key must be off. */
const knownKeys =
  /^(peft_type|task_type|r|lora_alpha|use_rslora|target_modules|lora_dropout|init_lora_weights|base_model_name_or_path|revision|inference_mode|auto_mapping|peft_version|megatron_core|qalora_group_size|fan_in_fan_out|eva_config|exclude_modules|layers_to_transform|layers_pattern|bias|rank_pattern|alpha_pattern)$/;

const isOff = (value: unknown): boolean =>
  value === null ||
  value === undefined ||
  value === false ||
  (Array.isArray(value) && value.length === 0) ||
  (isRecord(value) && Object.keys(value).length === 0);

/**
 * Reads the parts of an adapter that decide whether a server computes it as PEFT does.
 *
 * @throws PeriodicEvalError `model` for a folder without an adapter, or one that servers read differently.
 */
export async function readAdapter(folder: string): Promise<AdapterFiles> {
  const where = join(folder, configFile);
  const config = await readJson(where);
  const wrong = Object.keys(config).find((key) => !knownKeys.test(key) && !isOff(config[key]));
  const { peft_type: type, bias = "none", init_lora_weights: init = true } = config;
  const isPlain = [true, false, "gaussian", "orthogonal", "eva"].includes(init as never);
  const bad =
    wrong ??
    (type !== "LORA" ? "peft_type" : bias !== "none" ? "bias" : isPlain ? null : "init_lora_weights");
  if (bad !== null)
    throw serverError({
      where: `${where}: ${bad}`,
      path: [bad],
      got: quoteValue(config[bad]),
      expected: "a plain LoRA adapter: servers ignore other settings or compute them differently",
      fix: "Merge the adapter into its base model and serve the result, or measure it in this process.",
    });
  const weights = join(folder, weightsFile);
  const samples = samplesOf(await readHeader(weights), weights);
  const hasPatterns = !isOff(config["rank_pattern"]) || !isOff(config["alpha_pattern"]);
  return { folder, config, samples, hasPatterns, hash: await hashFiles([where, weights]) };
}

async function readJson(path: string): Promise<Record<string, unknown>> {
  const parsed = await readFile(path, "utf8").then(
    (text) => JSON.parse(text) as unknown,
    () => null,
  );
  if (isRecord(parsed)) return parsed;
  throw notReadable(path);
}

const notReadable = (path: string) =>
  serverError({
    where: path,
    got: "no readable file",
    expected: "an adapter that PEFT has saved",
    fix: "Name a folder with adapter_config.json and adapter_model.safetensors.",
  });

/** @throws PeriodicEvalError `model` for a missing or damaged file. */
async function readHeader(path: string): Promise<SafetensorsHeader["tensors"]> {
  if (!existsSync(path)) throw notReadable(path);
  return (await readSafetensorsHeader(path)).tensors;
}

function samplesOf(tensors: SafetensorsHeader["tensors"], where: string): ReadonlyMap<string, ModulePair> {
  const samples = new Map<string, ModulePair>();
  const parts = /^(.*\.([^.]+))\.lora_(?:embedding_)?([AB])(\.weight)?$/;
  for (const [name, { shape }] of tensors) {
    const [, , kind, side] = parts.exec(name) ?? [];
    const other = name.replace(
      /lora_(embedding_)?([AB])/,
      (_, embedding = "", letter) => `lora_${embedding as string}${letter === "A" ? "B" : "A"}`,
    );
    const otherShape = tensors.get(other)?.shape;
    if (kind === undefined || shape.length !== 2 || otherShape?.length !== 2)
      throw serverError({
        where: `${where}: ${name}`,
        got: "a tensor that is not one of LoRA's two matrices",
        expected: "lora_A and lora_B of each module",
        fix: "Merge the adapter into its base model and serve the result, or measure it in this process.",
      });
    if (side === "A" && !samples.has(kind))
      samples.set(kind, {
        names: [name, other],
        shapes: [shape, otherShape] as unknown as ModulePair["shapes"],
      });
  }
  if (samples.size === 0) throw notReadable(where);
  return samples;
}

/**
 * Writes an adapter on one module that changes the model's numbers strongly, runs `work` with its folder, and removes it. The folder is
 * beside the real adapter, where the server can read it.
 *
 * @param byPattern Whether patterns set the module's rank and alpha. The numbers are the same if the server reads patterns.
 */
export async function withSampleAdapter<T>(
  { folder, config, samples }: AdapterFiles,
  kind: string,
  { byPattern }: { readonly byPattern: boolean },
  work: (folder: string) => Promise<T>,
): Promise<T> {
  const { names, shapes } = samples.get(kind)!;
  const made = await makeSampleFolder(dirname(folder));
  try {
    const tensors = names.map((name, index) => ({
      name,
      shape: shapes[index]!,
      values: () => strongValues(shapes[index]!),
    }));
    const [rank] = shapes[0];
    const scale = byPattern
      ? {
          r: rank === 1 ? 2 : 1,
          lora_alpha: 1,
          rank_pattern: { [kind]: rank },
          alpha_pattern: { [kind]: 2 * rank },
        }
      : { r: rank, lora_alpha: 2 * rank, rank_pattern: {}, alpha_pattern: {} };
    await writeFile(join(made, configFile), JSON.stringify({ ...config, target_modules: [kind], ...scale }));
    await writeSafetensors(join(made, weightsFile), tensors);
    return await work(made);
  } finally {
    await rm(made, { recursive: true, force: true });
  }
}

const samplePrefix = ".probe.";

/** Makes a folder for a sample in `parent`, or in the temporary folder. Removes those that crashed processes left in `parent`. */
async function makeSampleFolder(parent: string): Promise<string> {
  for (const name of await readdir(parent))
    if (name.startsWith(samplePrefix) && isLeftover(name.slice(samplePrefix.length)))
      await rm(join(parent, name), { recursive: true, force: true });
  const name = `${samplePrefix}${newAdapterName()}`;
  const make = async (path: string) => (await mkdir(path), path);
  return make(join(parent, name)).catch(() => make(join(tmpdir(), name)));
}

/** Values of alternating signs with an irregular pattern, of a size that changes a module's output by its own size. */
const strongValues = ([rows, columns]: readonly [number, number]): Float32Array =>
  Float32Array.from({ length: rows * columns }, (_, at) => Math.sin(at * at + at) / Math.sqrt(columns));
