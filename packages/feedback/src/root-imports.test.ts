import { readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, it } from "vitest";

/** Returns all modules that loading `file` imports, transitively: package names and file paths. */
function loaded(file: string, seen = new Set<string>()): ReadonlySet<string> {
  if (seen.has(file)) return seen;
  seen.add(file);
  const text = readFileSync(file, "utf8");
  for (const [, name] of text.matchAll(/^(?:import|export) (?!type\b)[^;]*?from "([^"]+)";/gms)) {
    if (name!.startsWith(".")) loaded(join(dirname(file), name!), seen);
    else seen.add(name!);
  }
  return seen;
}

const from = (path: string) => loaded(fileURLToPath(new URL(path, import.meta.url)));

it("imports the server only in service/index.ts", () => {
  const isServer = (name: string) => /^(hono|@hono)\b/.test(name) || name.includes("/service/");
  expect([...from("index.ts")].filter(isServer)).toEqual([]);
  expect([...from("index.ts")]).toContain("@periodic-eval/remote");
  expect([...from("service/index.ts")]).toContain("@hono/node-server");
});
