import { PeriodicEvalError } from "@periodic-eval/core";
import { readConfigFile } from "@periodic-eval/data/config";
import { checkWritable, readTextFile, writeFileAtomic, nodeFiles } from "@periodic-eval/store";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { parse, stringify } from "yaml";
import type { TrainConfig } from "./training-file.ts";

/** Options that define a run. A checkpoint does not record the weights under its adapter, so only these reveal another model. */
const definingOptions = /^(model|tokenizer|adapter|lora)(\.|$)/;
/** Options that may change between commands without a message. */
const ignoredOptions = /^(run_dir|backend|engine)(\.|$)/;

export interface KeptConfig {
  /** Options that differ from the run's last configuration, one line each. */
  readonly differences: readonly string[];
  /**
   * Writes the new configuration to `<run_dir>/train.yaml` and the previous one to `train.1.yaml`, `train.2.yaml` … To be
   * called once training accepts the configuration. Later calls do nothing.
   */
  keep(): Promise<void>;
}

/**
 * Compares a configuration with `<run_dir>/train.yaml`, the run's last one. The file holds no credentials of URLs. A run
 * without a checkpoint gets the new configuration at once, because nothing was trained with the old one; a file of the user in
 * that place is copied to `train.1.yaml` first.
 *
 * @throws PeriodicEvalError `store` if the folder cannot be created or written to, `config` if model or adapter differ and `resume` is not `never`; nothing is written then.
 */
export async function openKeptConfig(config: TrainConfig): Promise<KeptConfig> {
  const { run_dir: folder } = config;
  const path = join(folder, "train.yaml");
  const { resume, ...lasting } = config;
  const stored = withoutCredentials(lasting);
  const yaml = stringify(stored);
  if (!existsSync(path) || !existsSync(join(folder, "checkpoints"))) {
    await checkWritable(folder);
    await nodeFiles.makeFolder(folder);
    const differences = await keepFileOfUser(path);
    await writeFileAtomic(path, yaml);
    return { differences, keep: async () => {} };
  }
  const previousYaml = await readTextFile(path, "run_dir");
  const previous = flatten((await readConfigFile(path)).value);
  const current = flatten(stored);
  const changed = [...new Set([...Object.keys(previous), ...Object.keys(current)])].filter(
    (name) => !ignoredOptions.test(name) && previous[name] !== current[name],
  );
  if (resume !== "never") refuseOtherRun(path, changed, { previous, current });
  let isKept = changed.length === 0;
  return {
    differences:
      resume === "never"
        ? []
        : changed.map(
            (name) => `${name}: ${valueText(current, name)} (before: ${valueText(previous, name)})`,
          ),
    async keep() {
      if (isKept) return;
      isKept = true;
      // Writing the copy first and replacing train.yaml atomically means that train.yaml always exists.
      await writeFileAtomic(freeName(path), previousYaml);
      await writeFileAtomic(path, yaml);
    },
  };
}

function freeName(path: string): string {
  let count = 1;
  const numbered = () => path.replace(/\.yaml$/, `.${count}.yaml`);
  while (existsSync(numbered())) count += 1;
  return numbered();
}

/** Copies a `train.yaml` that this module did not write, such as one with comments in a run's folder. Returns what it did. */
async function keepFileOfUser(path: string): Promise<readonly string[]> {
  if (!existsSync(path)) return [];
  const text = await readTextFile(path, "run_dir");
  if (isWrittenHere(text)) return [];
  const copy = freeName(path);
  await writeFileAtomic(copy, text);
  return [`${path} now holds the run's configuration; the file as you wrote it is ${copy}`];
}

function isWrittenHere(text: string): boolean {
  try {
    return stringify(parse(text)) === text;
  } catch {
    return false;
  }
}

type FlatConfig = Readonly<Record<string, string>>;

const valueText = (from: FlatConfig, name: string): string => from[name] ?? "not set";

function refuseOtherRun(
  path: string,
  changed: readonly string[],
  { previous, current }: { readonly previous: FlatConfig; readonly current: FlatConfig },
): void {
  const defining = changed.filter((name) => definingOptions.test(name));
  if (defining.length === 0) return;
  const list = (from: FlatConfig) => defining.map((name) => `${name} ${valueText(from, name)}`).join(", ");
  throw new PeriodicEvalError({
    code: "config",
    where: path,
    got: list(current),
    expected: `${list(previous)}, as at the start of the run`,
    fix: "Choose another run_dir, or start over with resume=never. If only the path of the same model has changed, correct it in this file.",
  });
}

/** Removes user and password from URLs, because a run's folder may be shared. */
const withoutCredentials = <T>(config: T): T =>
  JSON.parse(
    JSON.stringify(config, (_key, value: unknown) =>
      typeof value === "string" ? value.replace(/^([a-z][\w+.-]*:\/\/)[^/?#]*@/i, "$1") : value,
    ),
  ) as T;

/** Returns values as JSON by their dotted path. Lists of maps are flattened; other lists are values. */
function flatten(value: unknown, path: readonly string[] = []): Record<string, string> {
  const isMap =
    typeof value === "object" && value !== null && (!Array.isArray(value) || typeof value[0] === "object");
  if (!isMap) return { [path.join(".")]: JSON.stringify(value) };
  const entries: [string, unknown][] = Object.entries(value);
  return Object.fromEntries(entries.flatMap(([key, item]) => Object.entries(flatten(item, [...path, key]))));
}
