import * as z from "zod";
import { existsSync } from "node:fs";
import { join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import {
  checkName,
  configError,
  isRecord,
  didYouMean,
  parseOptions,
  quoteValue,
} from "@periodic-eval/contracts/options";
import type { ValuePath } from "@periodic-eval/core";
import { readConfigFile, type ConfigFile } from "@periodic-eval/data/config";
import { atFile, parseFile, namesIn, yamlFile } from "./file-errors.ts";
import { configSchema, metricPresets, type HarnessConfig, type HarnessConfigInput } from "./schema.ts";

/** Entries of `defaults` that add no keys: the file itself, and the schema of CLaaS. */
const ownDefaults: readonly unknown[] = ["_self_", "_eval_schema"];

/** Modes of CLaaS that need an account with a cloud provider. */
const cloudModes: readonly unknown[] = ["modal", "tinker"];

/**
 * Removes the keys that only Hydra and the harness of CLaaS read: `defaults` that name the file itself, and a cloud mode beside a
 * service. Replaces `${now:FORMAT}` in `output_dir` by the time in UTC.
 *
 * @throws PeriodicEvalError `config` for other `defaults`, other interpolations, and a cloud mode without a service.
 */
function withoutHydra(values: Readonly<Record<string, unknown>>, now: Date): Record<string, unknown> {
  const { defaults, mode, output_dir: output, ...rest } = values;
  if (
    defaults !== undefined &&
    !(Array.isArray(defaults) && defaults.every((entry) => ownDefaults.includes(entry)))
  )
    throw configError({
      where: "",
      path: ["defaults"],
      value: defaults,
      expected: `only ${ownDefaults.join(" and ")}`,
      fix: "Copy the keys of the other files into this one: Hydra does not run here.",
    });
  const isCloud = cloudModes.includes(mode);
  if (isCloud && (rest["service_url"] ?? null) === null)
    throw configError({
      where: "",
      path: ["mode"],
      got: `${quoteValue(mode)}, which needs an account with a cloud provider`,
      expected: '"local"',
      fix: "Remove mode to train in this process, or start a service on a machine with a GPU and set service_url.",
    });
  return {
    ...rest,
    ...(mode !== undefined && !isCloud && { mode }),
    ...(output !== undefined && { output_dir: typeof output === "string" ? withTime(output, now) : output }),
  };
}

/** Replaces `${now:%Y%m%d}` by the time. */
function withTime(text: string, now: Date): string {
  const iso = now.toISOString();
  const parts: Readonly<Record<string, string>> = {
    Y: iso.slice(0, 4),
    m: iso.slice(5, 7),
    d: iso.slice(8, 10),
    H: iso.slice(11, 13),
    M: iso.slice(14, 16),
    S: iso.slice(17, 19),
  };
  const dated = text.replaceAll(/\$\{now:([^}]*)\}/g, (_, format: string) =>
    format.replaceAll(/%([YmdHMS])/g, (__, part: string) => parts[part]!),
  );
  if (!/\$\{|%[A-Za-z]/.test(dated)) return dated;
  throw configError({
    where: "",
    path: ["output_dir"],
    value: text,
    expected: "a path; ${now:%Y%m%d-%H%M%S} is the only interpolation, with %Y %m %d %H %M %S",
    fix: "Write the path without it.",
  });
}

export interface LoadConfigOptions {
  /** Folder of configurations. Default: `shippedConfigs`, which contains `all`, `quick` and `micro-world`. */
  readonly configDir?: string;
  /** Name of a YAML file in the folder, with or without its extension. Default `all`. */
  readonly configName?: string;
  /** Overrides with values in YAML: `num_steps=10`, `training.alpha=1`, `preferences=[concise]`. */
  readonly overrides?: readonly string[];
  /** Names the run's folder if `output_dir` is absent. Default: the current time. */
  readonly now?: Date;
}

const optionsSchema = z.strictObject({
  configDir: z.string().optional(),
  configName: z.string().optional(),
  overrides: z.array(z.string()).optional(),
  now: z.date("a Date").optional(),
} satisfies Record<keyof LoadConfigOptions, z.ZodType>);

/** Folder of the shipped configurations. */
export const shippedConfigs = fileURLToPath(new URL("../../configs", import.meta.url));

/** Keys of other harnesses, each with our key for the same setting. */
const aliases: Readonly<Record<string, string>> = { claas_url: "service_url", openclaw_url: "gateway_url" };

/**
 * Loads the configuration of a run: defaults, overridden by a YAML file, overridden by `overrides`.
 *
 * @throws PeriodicEvalError `config` with file and line, or the override: for an unknown key (names the nearest), a wrong value,
 *   a mode that needs a cloud account, or credentials in a URL; and for a missing file.
 */
export async function loadHarnessConfig(options: LoadConfigOptions = {}): Promise<HarnessConfig> {
  parseOptions("loadHarnessConfig options", optionsSchema, options);
  const { configDir = shippedConfigs, configName = "all", overrides = [], now = new Date() } = options;
  return parseHarnessConfig(await readConfigFile(fileOf(configDir, configName), overrides), now);
}

/** Does the same as `loadHarnessConfig` for a file that has already been read. */
export const parseHarnessConfig = (file: ConfigFile, now: Date = new Date()): HarnessConfig =>
  completeConfig(file, { now, preferences: join(file.folderOf([]), "preference") });

/**
 * Returns a configuration of a program with its defaults. Relative paths are relative to the working directory.
 *
 * @throws PeriodicEvalError `config` as `loadHarnessConfig`.
 */
export const completeHarnessConfig = (config: HarnessConfigInput, now: Date): HarnessConfig =>
  completeConfig(
    {
      value: config,
      where: (path) => ["runHarness config", ...path].join("."),
      isOverridden: () => false,
      folderOf: () => process.cwd(),
    },
    { now, preferences: null },
  );

/** @param preferences A folder in which preferences are found by name, after `preferences_dir`. */
function completeConfig(
  file: ConfigFile,
  { now, preferences: beside }: { readonly now: Date; readonly preferences: string | null },
): HarnessConfig {
  const { values: raw, keyOf } = withoutAliases(file);
  const values = withoutNulls(atFile(file, () => withoutHydra(raw, now)));
  const { metrics } = values;
  if (typeof metrics === "string") values["metrics"] = atFile(file, () => presetOf(metrics));
  if (Array.isArray(metrics))
    values["metrics"] = [...new Set((metrics as unknown[]).flatMap((name) => expanded(name)))];
  const parsed = parseFile(file, configSchema, values, keyOf);
  const {
    output_dir: output,
    preferences_dir: preferences,
    collapse_probes: collapse,
    general_probes: general,
    ...config
  } = parsed;
  const check = () => {
    checkName("", config.lora_id_prefix, ["lora_id_prefix"]);
    refuseDuplicates(config.preferences);
    for (const name of ["service_url", "gateway_url"] as const) refuseCredentials(config[name], name);
  };
  atFile(file, check, keyOf);
  const absolute = (path: ValuePath, named: string) => resolve(file.folderOf(path), named);
  const folder = preferences === null ? null : absolute(["preferences_dir"], preferences);
  const pathBeside = (name: string) =>
    (folder === null || yamlFile(folder, name) === null) && beside !== null ? yamlFile(beside, name) : null;
  return {
    ...config,
    preferences: config.preferences.map((preference, i) =>
      isPath(preference) ? absolute(["preferences", i], preference) : (pathBeside(preference) ?? preference),
    ),
    preferences_dir: folder,
    collapse_probes: collapse === null ? null : absolute(["collapse_probes"], collapse),
    general_probes: general === null ? null : absolute(["general_probes"], general),
    output_dir: output === undefined ? resolve("runs", `feedback-${timestamp(now)}`) : resolve(output),
  };
}

/** Whether a preference is given as the path of its file. */
export const isPath = (preference: string): boolean => /[\\/]|\.ya?ml$/.test(preference);

/** Leaves out keys that are null, and those of `training`: they have their defaults. */
function withoutNulls(values: Readonly<Record<string, unknown>>): Record<string, unknown> {
  const isSet = Object.entries(values).filter(([, value]) => value !== null);
  return Object.fromEntries(
    isSet.map(([key, value]) => [key, key === "training" && isRecord(value) ? withoutNulls(value) : value]),
  );
}

/** Replaces aliases by our keys. `keyOf` returns a value's path with the key that the file uses. */
function withoutAliases(file: ConfigFile) {
  const values: Record<string, unknown> = isRecord(file.value) ? { ...file.value } : {};
  if (!isRecord(file.value)) parseFile(file, configSchema);
  const original = new Map<string, string>();
  for (const [alias, name] of Object.entries(aliases)) {
    if (!Object.hasOwn(values, alias)) continue;
    if (Object.hasOwn(values, name))
      atFile(file, () => {
        throw configError({
          where: "",
          path: [alias],
          got: `both ${alias} and ${name}`,
          expected: "one of the two",
          fix: "Remove one: they mean the same.",
        });
      });
    values[name] = values[alias];
    delete values[alias];
    original.set(name, alias);
  }
  const keyOf = ([first, ...rest]: ValuePath): ValuePath =>
    first === undefined ? [] : [original.get(String(first)) ?? first, ...rest];
  return { values, keyOf };
}

function fileOf(folder: string, name: string): string {
  const file = /\.ya?ml$/.test(name) && existsSync(join(folder, name)) ? join(folder, name) : null;
  const named = file ?? yamlFile(folder, name);
  if (named !== null) return named;
  const names = namesIn(folder);
  throw configError({
    where: `configuration ${name}`,
    got: existsSync(folder) ? `no such file in ${folder}` : `a missing folder (${folder})`,
    expected: names.length === 0 ? "a YAML file with that name" : `one of ${names.join(", ")}`,
    fix: didYouMean(name, names) ?? "Use the name of a file in that folder.",
  });
}

/** Returns the metrics of a preset; any other value alone. */
const expanded = (name: unknown): readonly unknown[] =>
  typeof name === "string" && Object.hasOwn(metricPresets, name) ? metricPresets[name]! : [name];

function presetOf(name: string): readonly string[] {
  const metrics = Object.hasOwn(metricPresets, name) ? metricPresets[name] : undefined;
  if (metrics !== undefined) return metrics;
  throw configError({
    where: "",
    path: ["metrics"],
    value: name,
    expected: `an array, or one of ${Object.keys(metricPresets).join(", ")}`,
    fix: `Write [${name}] for this metric alone.`,
  });
}

function refuseDuplicates(preferences: readonly string[]): void {
  const second = preferences.findIndex((name, at) => preferences.indexOf(name) !== at);
  if (second < 0) return;
  throw configError({
    where: "",
    path: ["preferences", second],
    got: `${quoteValue(preferences[second])} twice`,
    expected: "unique preferences",
    fix: "Remove one: the results of a preference are stored in a folder with its name.",
  });
}

/** Rejects a URL with credentials: the configuration is stored with the results, which users share. */
function refuseCredentials(address: string | null, name: string): void {
  if (address === null) return;
  const { username, password, search } = new URL(address);
  if (username === "" && password === "" && search === "") return;
  throw configError({
    where: "",
    path: [name],
    got: "a URL with a user, a password or a query",
    expected: "a URL without credentials",
    fix: "Remove them: the gateway's token is read from the environment variable OPENCLAW_GATEWAY_TOKEN.",
  });
}

/** Formats a time as `20261122T133000Z`. */
const timestamp = (now: Date): string => now.toISOString().replaceAll(/[-:]|\.\d+/g, "");
