// The blocks of a document, run as they stand.
import { spawn } from "node:child_process";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect } from "vitest";

export const root = fileURLToPath(new URL("..", import.meta.url));

/** The texts of a document's fenced blocks of a language, in order. */
export const blocksOf = (document: string, language: string): readonly string[] =>
  [...readFileSync(join(root, document), "utf8").matchAll(/```(\w+)\n([^]*?)```/g)].flatMap(([, of, text]) =>
    of === language ? [text!] : [],
  );

/** The code with other files and fewer steps in it: each text that is replaced must stand there. */
export function withOthers(code: string, replaced: Readonly<Record<string, string>>): string {
  let changed = code;
  for (const [written, used] of Object.entries(replaced)) {
    expect(code).toContain(written);
    changed = changed.replaceAll(written, used);
  }
  return changed;
}

/** Runs TypeScript to its end, which must be a good one; gives what it printed. */
export async function runCode(name: string, code: string, env: NodeJS.ProcessEnv = {}): Promise<string> {
  // Within the repository, so that the packages resolve as they do for a user.
  mkdirSync(join(root, ".build"), { recursive: true });
  const file = join(root, ".build", `${name}.ts`);
  writeFileSync(file, code);
  const node = spawn(process.execPath, ["--import", "tsx", "-C", "@periodic-eval/source", file], {
    env: { ...process.env, ...env },
  });
  let [stdout, stderr] = ["", ""];
  node.stdout.on("data", (chunk) => (stdout += String(chunk)));
  node.stderr.on("data", (chunk) => (stderr += String(chunk)));
  const status = await new Promise((resolve) => node.on("close", resolve));
  expect(status, stderr).toBe(0);
  return stdout;
}
