import { existsSync } from "node:fs";
import { fileURLToPath } from "node:url";

/**
 * The built program, for tests that need a process of the command line: it starts in half the time of the source. `npm test`
 * builds first.
 *
 * @throws Error where nothing is built.
 */
export function builtMain(): string {
  const file = fileURLToPath(new URL("../../dist/main.js", import.meta.url));
  if (!existsSync(file)) throw new Error(`${file} does not exist: run \`npm run build\``);
  return file;
}
