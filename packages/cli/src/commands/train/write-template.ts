import { existsSync } from "node:fs";
import { copyFile } from "node:fs/promises";
import { dirname, join, relative, resolve, sep } from "node:path";
import { fileURLToPath } from "node:url";
import { PeriodicEvalError } from "@periodic-eval/core";
import { checkWritable, nodeFiles, readTextFile, writeFileAtomic } from "@periodic-eval/store";

/** The schema that the build writes into the package. */
const shippedSchema = fileURLToPath(new URL("../../../dist/train.schema.json", import.meta.url));

/** A commented training file with the options that people change first, at their defaults. */
const template = fileURLToPath(new URL("../../../assets/train.yaml", import.meta.url));

/** The copy of the schema beside a file whose project has not installed the package. */
const copiedSchema = "periodic-eval.train.schema.json";

/**
 * Writes a commented training file. It names the JSON Schema for editors: that of the package in the project's `node_modules`, or
 * a copy that is written beside the file, because npx runs from a cache that vanishes.
 *
 * @returns The files that it wrote.
 * @throws PeriodicEvalError `config` for a file that exists, or a path that is a folder or no YAML file; `store` for a folder that
 *   cannot be written to.
 */
export async function writeTemplate(file: string): Promise<readonly string[]> {
  const refuse = (got: string, expected: string, fix: string) =>
    new PeriodicEvalError({ code: "config", where: file, got, expected, fix });
  if (!/\.ya?ml$/.test(file))
    throw refuse("a name that does not end in .yaml", "a YAML file", "Write train.yaml, for example.");
  if (existsSync(file))
    throw refuse("a file that exists", "a new file", "Choose another name, or delete it.");
  const folder = dirname(resolve(file));
  await checkWritable(folder);
  await nodeFiles.makeFolder(folder);
  const installed = installedSchema(folder);
  const copy = join(dirname(file), copiedSchema);
  if (installed === null) await copyFile(shippedSchema, copy);
  const schema = installed === null ? copiedSchema : relative(folder, installed).split(sep).join("/");
  const text = await readTextFile(template, "train.yaml");
  await writeFileAtomic(file, text.replace("SCHEMA", schema.startsWith(".") ? schema : `./${schema}`));
  return installed === null ? [file, copy] : [file];
}

/** Returns the schema in the nearest `node_modules` at or above a folder that has it; null if none has. */
function installedSchema(folder: string): string | null {
  const path = join(folder, "node_modules/periodic-eval/dist/train.schema.json");
  if (existsSync(path)) return path;
  return dirname(folder) === folder ? null : installedSchema(dirname(folder));
}
