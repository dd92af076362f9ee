import { existsSync } from "node:fs";
import { join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { PeriodicEvalError } from "@periodic-eval/core";
import { checkKeys, checkName, nearest, quoteValue } from "@periodic-eval/core/internal";
import type { ValuePath } from "@periodic-eval/core";
import { readConfigFile, type ConfigFile } from "@periodic-eval/core/config";
import { configNames, configSchema, metricPresets, trainingNames, type HarnessConfig } from "./schema.ts";
import { namesIn } from "../yaml-names.ts";

export interface LoadConfigOptions {
  /** Folder of configurations; default those that ship: `all`, `quick` and `micro-world`. */
  readonly configDir?: string;
  /** Name of a YAML file in it, with or without its ending; default `all`. */
  readonly configName?: string;
  /** `num_steps=10`, `training.alpha=1`, `preferences=[concise]`: values in YAML. */
  readonly overrides?: readonly string[];
  /** Names the folder of the run where `output_dir` does not; default now. */
  readonly now?: Date;
}

/** The configurations that ship. */
export const shippedConfigs = fileURLToPath(new URL("../../configs", import.meta.url));

/** Keys by which other harnesses call ours. */
const aliases: Readonly<Record<string, string>> = { claas_url: "service_url", openclaw_url: "gateway_url" };

/** What runs on machines that are rented by the minute, with an account. */
const cloudModes = ["modal", "tinker"];

/**
 * The configuration of a run: a YAML file, overrides over it, defaults under it.
 *
 * @throws PeriodicEvalError `config` with file and line, or the override, for an unknown key (the nearest is named), a
 *   value that is wrong or out of range, a mode that needs a cloud account, credentials in an address; or for a file
 *   that is not there.
 */
export async function loadHarnessConfig(options: LoadConfigOptions = {}): Promise<HarnessConfig> {
  checkKeys("loadHarnessConfig", options, ["configDir", "configName", "overrides", "now"]);
  const { configDir = shippedConfigs, configName = "all", overrides = [], now = new Date() } = options;
  return parseHarnessConfig(await readConfigFile(fileOf(configDir, configName), overrides), now);
}

/** `loadHarnessConfig` of a file that was read. */
export function parseHarnessConfig(file: ConfigFile, now: Date = new Date()): HarnessConfig {
  const { value, where } = file;
  checkKeysOf(file, [], value as object, [...configNames, ...Object.keys(aliases)]);
  const given = { ...(value as Readonly<Record<string, unknown>>) };
  const paths = new Map<string, ValuePath>();
  for (const [alias, name] of Object.entries(aliases)) {
    if (!Object.hasOwn(given, alias)) continue;
    if (Object.hasOwn(given, name))
      throw wrong(
        where([alias]),
        `${alias} beside ${name}`,
        "one of the two",
        "They mean the same: leave one out.",
      );
    given[name] = given[alias];
    delete given[alias];
    paths.set(name, [alias]);
  }
  const at = (path: ValuePath): string => where(paths.get(String(path[0])) ?? path);
  refuseCloud(given["mode"], at(["mode"]));
  if (typeof given["metrics"] === "string") given["metrics"] = presetOf(given["metrics"], at(["metrics"]));
  const { training } = given;
  if (typeof training === "object" && training !== null)
    checkKeysOf(file, ["training"], training, trainingNames);
  const parsed = configSchema.safeParse(given);
  if (!parsed.success) {
    const [issue] = parsed.error.issues;
    const path = issue!.path as ValuePath;
    const got = path.reduce<unknown>(
      (of, key) => (of as Record<string | number, unknown> | null)?.[key],
      given,
    );
    throw wrong(
      at(path),
      got === undefined ? "nothing" : quoteValue(got),
      issue!.message.replace(/^expected /, ""),
      "Correct the value.",
    );
  }
  const {
    output_dir: output,
    preferences_dir: preferences,
    collapse_probes: probes,
    ...config
  } = parsed.data;
  checkName(at(["lora_id_prefix"]), config.lora_id_prefix);
  refuseTwice(config.preferences, at(["preferences"]));
  for (const name of ["service_url", "gateway_url"] as const) refuseCredentials(config[name], name);
  const absolute = (path: ValuePath, named: string) => resolve(file.folderOf(path), named);
  return {
    ...config,
    preferences: config.preferences.map((one, i) => (isPath(one) ? absolute(["preferences", i], one) : one)),
    preferences_dir: preferences === null ? null : absolute(["preferences_dir"], preferences),
    collapse_probes: probes === null ? null : absolute(["collapse_probes"], probes),
    output_dir:
      output === undefined ? resolve("data", "evals", stampOf(now)) : absolute(["output_dir"], output),
  };
}

/** Whether a preference is named by its file. */
export const isPath = (preference: string): boolean => /[\\/]|\.ya?ml$/.test(preference);

/** An override is named by its key: what it sets, a token perhaps, is not repeated. */
function checkKeysOf(
  { where, isOverridden }: ConfigFile,
  path: ValuePath,
  map: object,
  known: readonly string[],
): void {
  const set = Object.keys(map ?? {}).find((key) => !known.includes(key) && isOverridden([...path, key]));
  if (set !== undefined) checkKeys(`override ${[...path, set].join(".")}`, { [set]: null }, known);
  checkKeys(where(path), map, known);
}

function fileOf(folder: string, name: string): string {
  const file = [name, `${name}.yaml`, `${name}.yml`]
    .map((one) => join(folder, one))
    .find((one) => /\.ya?ml$/.test(one) && existsSync(one));
  if (file !== undefined) return file;
  const there = namesIn(folder);
  const close = nearest(name, there);
  throw wrong(
    `configuration ${name}`,
    existsSync(folder) ? `a folder without it (${folder})` : `a folder that is not there (${folder})`,
    there.length === 0 ? "a YAML file of that name" : `one of ${there.join(", ")}`,
    close === null ? "Name a file of the folder." : `Did you mean "${close}"?`,
  );
}

function refuseCloud(mode: unknown, where: string): void {
  if (!cloudModes.includes(mode as string)) return;
  throw wrong(
    where,
    `"${mode as string}", which runs on rented machines and needs an account with them`,
    '"local"',
    "Leave mode out to train in this process, or start a service where there is a GPU and name it in service_url.",
  );
}

function presetOf(name: string, where: string): readonly string[] {
  const metrics = metricPresets[name];
  if (metrics !== undefined) return metrics;
  const names = Object.keys(metricPresets);
  throw wrong(
    where,
    quoteValue(name),
    `a list, or one of ${names.join(", ")}`,
    `Write [${name}] for this metric alone.`,
  );
}

function refuseTwice(preferences: readonly string[], where: string): void {
  const twice = preferences.find((one, at) => preferences.indexOf(one) !== at);
  if (twice === undefined) return;
  throw wrong(
    where,
    `${quoteValue(twice)} twice`,
    "each once",
    "Name it once: its files lie in a folder of its name.",
  );
}

/** Configurations are written beside the results, and results are shown to others. */
function refuseCredentials(address: string | null, where: string): void {
  // The place is the key alone: an override is quoted with what it sets.
  if (address === null) return;
  const { username, password, search } = new URL(address);
  if (username === "" && password === "" && search === "") return;
  throw wrong(
    where,
    "an address with a user, a password or parameters in it",
    "an address alone",
    "Take them out: the gateway's token is read from the environment, OPENCLAW_GATEWAY_TOKEN.",
  );
}

/** `20261122T133000Z`. */
const stampOf = (now: Date): string => now.toISOString().replaceAll(/[-:]|\.\d+/g, "");

const wrong = (where: string, got: string, expected: string, fix: string): PeriodicEvalError =>
  new PeriodicEvalError({ code: "config", where, got, expected, fix });
