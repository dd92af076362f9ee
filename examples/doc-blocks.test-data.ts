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

/** Runs TypeScript to its end, which must be a good one, in a folder; gives what it printed. */
export async function runCode(
  name: string,
  code: string,
  env: NodeJS.ProcessEnv = {},
  cwd = root,
): Promise<string> {
  // Within the repository, so that the packages resolve as they do for a user.
  mkdirSync(join(root, ".build"), { recursive: true });
  const file = join(root, ".build", `${name}.ts`);
  writeFileSync(file, code);
  return runNode([file], env, cwd);
}

/** Runs a command of a document, `npx periodic-eval …`, as `runCode` does. */
export const runCommand = (line: string, cwd: string): Promise<string> => {
  const [npx, name, ...args] = line.replace(/ #.*$/, "").trim().split(/ +/);
  expect([npx, name]).toEqual(["npx", "periodic-eval"]);
  return runNode([join(root, "packages/cli/src/main.ts"), ...args], {}, cwd);
};

async function runNode(args: readonly string[], env: NodeJS.ProcessEnv, cwd: string): Promise<string> {
  // Named whole: the folder may be outside of the repository.
  const tsx = import.meta.resolve("tsx");
  const node = spawn(process.execPath, ["--import", tsx, "-C", "@periodic-eval/source", ...args], {
    env: { ...process.env, ...env },
    cwd,
  });
  let [stdout, stderr] = ["", ""];
  node.stdout.on("data", (chunk) => (stdout += String(chunk)));
  node.stderr.on("data", (chunk) => (stderr += String(chunk)));
  const status = await new Promise((resolve) => node.on("close", resolve));
  expect(status, stderr).toBe(0);
  return stdout;
}
