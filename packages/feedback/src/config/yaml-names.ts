import { existsSync, readdirSync } from "node:fs";
import { join } from "node:path";

const extension = /\.ya?ml$/;

/** Returns the names of a folder's YAML files without their extensions; an empty array if the folder does not exist. */
export function namesIn(folder: string): readonly string[] {
  if (!existsSync(folder)) return [];
  return readdirSync(folder)
    .filter((file) => extension.test(file))
    .map((file) => file.replace(extension, ""));
}

/** Returns the path of the YAML file with this name in a folder; null if there is none. */
export const yamlFile = (folder: string, name: string): string | null =>
  [`${name}.yaml`, `${name}.yml`].map((file) => join(folder, file)).find(existsSync) ?? null;
