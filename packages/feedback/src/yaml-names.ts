import { existsSync, readdirSync } from "node:fs";

const ending = /\.ya?ml$/;

/** Names of the YAML files of a folder, without their endings; none where there is no such folder. */
export function namesIn(folder: string): readonly string[] {
  if (!existsSync(folder)) return [];
  return readdirSync(folder)
    .filter((file) => ending.test(file))
    .map((file) => file.replace(ending, ""));
}
