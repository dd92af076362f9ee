import { PeriodicEvalError } from "@periodic-eval/core";
import { readTextFile, writeFileAtomic } from "@periodic-eval/core/snapshots";
import { existsSync } from "node:fs";
import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import { parse, stringify } from "yaml";
import type { TrainConfig } from "./train-config.ts";

/** Of these another one is another run: a checkpoint has no trace of the weights under an adapter. */
const lasting = /^(model|tokenizer|adapter|lora)(\.|$)/;
/** Where and by what this command trains: nothing of the run. */
const passing = /^(run_dir|backend)$/;

export interface RunConfig {
  /** What is other than the run had last, one a line. */
  readonly differences: readonly string[];
  /**
   * Writes what the run now uses to `<run_dir>/train.yaml`, whole; what it had before stays beside it, as `train.1.yaml` and
   * so on. To be called once training goes on by it: what is refused until then is not the run's. Later calls do nothing.
   */
  keep(): Promise<void>;
}

/**
 * Compares a configuration with that of the run, which `<run_dir>/train.yaml` holds, without the credentials of addresses in
 * it: it describes the run by itself. Until the first checkpoint it is written at once, for nothing was trained by another.
 *
 * @throws PeriodicEvalError `config` where model or adapter are others and `resume` is not `never`; nothing is then written.
 */
export async function openRunConfig(config: TrainConfig): Promise<RunConfig> {
  const { run_dir: folder } = config;
  const path = join(folder, "train.yaml");
  const { resume, ...lasts } = config;
  const kept = withoutCredentials(lasts);
  const text = stringify(kept);
  if (!existsSync(path) || !existsSync(join(folder, "checkpoints"))) {
    await mkdir(folder, { recursive: true });
    await writeFileAtomic(path, text);
    return { differences: [], keep: async () => {} };
  }
  const before = await readTextFile(path, "run_dir");
  const written = leaves(parse(before));
  const given = leaves(kept);
  const names = [...new Set([...Object.keys(written), ...Object.keys(given)])].filter(
    (name) => !passing.test(name) && written[name] !== given[name],
  );
  const shown = (from: Readonly<Record<string, string>>, name: string) => from[name] ?? "nothing";
  const others = resume === "never" ? [] : names.filter((name) => lasting.test(name));
  if (others.length > 0) {
    throw new PeriodicEvalError({
      code: "config",
      where: path,
      got: others.map((name) => `${name} ${shown(given, name)}`).join(", "),
      expected: `${others.map((name) => `${name} ${shown(written, name)}`).join(", ")}, as the run was begun with`,
      fix: "Choose another run_dir, or begin anew with resume=never; where the same model lies elsewhere now, correct this file.",
    });
  }
  let isKept = names.length === 0;
  return {
    differences:
      resume === "never"
        ? []
        : names.map((name) => `${name}: ${shown(given, name)}, where the run had ${shown(written, name)}`),
    async keep() {
      if (isKept) return;
      isKept = true;
      let count = 1;
      while (existsSync(join(folder, `train.${count}.yaml`))) count += 1;
      // The new one takes the place of the old at once: there is always a train.yaml.
      await writeFileAtomic(join(folder, `train.${count}.yaml`), before);
      await writeFileAtomic(path, text);
    },
  };
}

/** User and password of a logger's address are no part of a run, which may be shown to others. */
const withoutCredentials = <T>(config: T): T =>
  JSON.parse(
    JSON.stringify(config, (_key, value: unknown) =>
      typeof value === "string" ? value.replace(/^([a-z][\w+.-]*:\/\/)[^/?#]*@/i, "$1") : value,
    ),
  ) as T;

/** Values by their paths; lists of maps are gone into, others are values. */
function leaves(value: unknown, path: readonly string[] = []): Record<string, string> {
  const isMap =
    typeof value === "object" && value !== null && (!Array.isArray(value) || typeof value[0] === "object");
  if (!isMap) return { [path.join(".")]: JSON.stringify(value) };
  const entries: [string, unknown][] = Object.entries(value);
  return Object.fromEntries(entries.flatMap(([key, one]) => Object.entries(leaves(one, [...path, key]))));
}
