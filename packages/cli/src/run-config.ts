import { PeriodicEvalError } from "@periodic-eval/core";
import { readTextFile, writeWhole } from "@periodic-eval/core/snapshots";
import { existsSync } from "node:fs";
import { mkdir, rename } from "node:fs/promises";
import { join } from "node:path";
import { parse, stringify } from "yaml";
import type { TrainConfig } from "./train-config.ts";

/** Of these another one is another run: a checkpoint has no trace of the weights under an adapter. */
const lasting = /^(model|tokenizer|adapter|lora)(\.|$)/;
/** Where and by what this command trains: nothing of the run. */
const passing = /^(run_dir|backend)$/;

/**
 * Keeps the configuration of a run in `<run_dir>/train.yaml`, from the first checkpoint on the same; it describes the run
 * by itself, without the credentials of addresses in it. Of a later one that is other, the differences are returned, one a
 * line. One that begins anew (`resume: never`) takes the place of the old one, which stays beside it.
 *
 * @throws PeriodicEvalError `config` where model or adapter are others; nothing is then written.
 */
export async function keepRunConfig(config: TrainConfig): Promise<readonly string[]> {
  const path = join(config.run_dir, "train.yaml");
  const { resume, ...lasts } = config;
  const kept = withoutCredentials(lasts);
  // Before its first checkpoint nothing was trained by what is written: a mistake in it can be mended.
  if (!existsSync(path) || !existsSync(join(config.run_dir, "checkpoints"))) {
    await mkdir(config.run_dir, { recursive: true });
    await writeWhole(path, stringify(kept));
    return [];
  }
  const written = leaves(parse(await readTextFile(path, "run_dir")));
  const given = leaves(kept);
  const names = [...new Set([...Object.keys(written), ...Object.keys(given)])].filter(
    (name) => !passing.test(name) && written[name] !== given[name],
  );
  if (names.length > 0 && resume === "never") {
    let count = 1;
    while (existsSync(join(config.run_dir, `train.${count}.yaml`))) count += 1;
    await rename(path, join(config.run_dir, `train.${count}.yaml`));
    await writeWhole(path, stringify(kept));
    return [];
  }
  const shown = (from: Readonly<Record<string, string>>, name: string) => from[name] ?? "nothing";
  const others = names.filter((name) => lasting.test(name));
  if (others.length > 0) {
    throw new PeriodicEvalError({
      code: "config",
      where: path,
      got: others.map((name) => `${name} ${shown(given, name)}`).join(", "),
      expected: `${others.map((name) => `${name} ${shown(written, name)}`).join(", ")}, as the run was begun with`,
      fix: "Choose another run_dir, or begin anew with resume=never; where the same model lies elsewhere now, correct this file.",
    });
  }
  return names.map(
    (name) => `${name}: ${shown(given, name)}, where the run was begun with ${shown(written, name)}`,
  );
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
