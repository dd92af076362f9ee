// Runs the code blocks of a document.
import { spawn } from "node:child_process";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect } from "vitest";

export const root = fileURLToPath(new URL("..", import.meta.url));

interface CodeBlock {
  readonly language: string;
  readonly code: string;
  /** The name that the page says to save it as. */
  readonly file: string | null;
}

const { codeBlocks } = (await import(new URL("../scripts/docs/markdown.mjs", import.meta.url).href)) as {
  codeBlocks(text: string): readonly CodeBlock[];
};

/** Returns the document's fenced code blocks in one language, in order. */
export const blocksOf = (document: string, language: string): readonly string[] =>
  codeBlocks(readFileSync(join(root, document), "utf8"))
    .filter((block) => block.language === language)
    .map(({ code }) => code);

/** Replaces strings in a block, such as file names and numbers of steps. Each of them must occur in the block. */
export function withReplacements(code: string, replaced: Readonly<Record<string, string>>): string {
  let changed = code;
  for (const [written, used] of Object.entries(replaced)) {
    expect(code).toContain(written);
    changed = changed.replaceAll(written, used);
  }
  return changed;
}

/**
 * Runs TypeScript in `cwd` and returns its stdout. Imports the built packages, as users do.
 *
 * @throws AssertionError with stderr if the code fails.
 */
export async function runCode(
  name: string,
  code: string,
  env: NodeJS.ProcessEnv = {},
  cwd = root,
): Promise<string> {
  // The file must be inside the repository: imports resolve from it.
  mkdirSync(join(root, ".build"), { recursive: true });
  const file = join(root, ".build", `${name}.ts`);
  writeFileSync(file, code);
  // The URL is absolute, because `cwd` may be outside the repository.
  return runNode(["--import", import.meta.resolve("tsx"), file], env, cwd);
}

/** A page of instructions, followed in an empty project. */
export interface FollowedPage {
  readonly document: string;
  /** The heading at which to stop. Default: the whole page. */
  readonly until?: string;
  /** A folder in which the packages are installed. */
  readonly project: string;
  /** Replaces strings of the files that the page says to save. Each of them must occur. */
  readonly files?: Readonly<Record<string, Readonly<Record<string, string>>>>;
  /** Changes a command before it runs. Default: the command as written. */
  readonly command?: (line: string) => string;
}

/**
 * Follows a page as a reader does: saves each block after "Save this as `NAME`", and runs the commands of each `sh` block. Skips
 * commands that install, serve, or contain a placeholder such as `path/to/model`.
 *
 * @returns The commands as written and what each printed.
 */
export async function followPage({
  document,
  until,
  project,
  files = {},
  command = (line) => line,
}: FollowedPage): Promise<readonly { readonly line: string; readonly printed: string }[]> {
  const done: { line: string; printed: string }[] = [];
  const [text] = readFileSync(join(root, document), "utf8").split(until ?? "\0");
  for (const { language, code, file } of codeBlocks(text!)) {
    if (file !== null) {
      mkdirSync(dirname(join(project, file)), { recursive: true });
      writeFileSync(join(project, file), withReplacements(code, files[file] ?? {}));
    }
    if (language !== "sh" || file !== null) continue;
    const lines = code.trim().split("\n").filter(isFollowed);
    const commands = lines.filter((line) => line.startsWith("npx "));
    for (const line of lines.filter((one) => one.startsWith("node ")))
      done.push({ line, printed: await runNode([join(project, line.slice(5))], {}, project) });
    if (commands.length === 0) continue;
    const printed = await runCommands(commands.map(command), project);
    done.push(...commands.map((line, at) => ({ line, printed: printed[at]!.trim() })));
  }
  return done;
}

const isFollowed = (line: string): boolean =>
  /^(npx periodic-eval|node) /.test(line) && !/path\/to| --serve/.test(line);

/** Runs a command from a document, `npx periodic-eval …`, and returns its stdout. */
export const runCommand = async (line: string, cwd: string): Promise<string> =>
  (await runCommands([line], cwd))[0]!;

/** Runs commands from a document one after the other, and returns the stdout of each. One process loads the modules for all. */
export async function runCommands(lines: readonly string[], cwd: string): Promise<readonly string[]> {
  const commands = lines.map((line) => {
    const [command, file = null] = line.replace(/ #.*$/, "").split(/ > ([\w./-]+)$/);
    const words = command!.match(/'[^']*'|[^ ]+/g) ?? [];
    const [npx, name, ...args] = words.map((word) => word.replace(/^'(.*)'$/, "$1"));
    expect([npx, name]).toEqual(["npx", "periodic-eval"]);
    return { args, file };
  });
  const built = (file: string) =>
    JSON.stringify(new URL(`../packages/cli/dist/${file}`, import.meta.url).href);
  const code = `import { writeFileSync } from "node:fs";
    import { runCli } from ${built("program.js")};
    import { processTerminal } from ${built("terminal/terminal.js")};
    const printed = [];
    for (const { args, file } of ${JSON.stringify(commands)}) {
      const lines = [];
      const status = await runCli(args, { ...processTerminal, out: (text) => void lines.push(text + "\\n") });
      if (status !== 0) process.exit(status);
      printed.push(lines.join(""));
      if (file !== null) writeFileSync(file, lines.join(""));
    }
    console.log(JSON.stringify(printed));`;
  return JSON.parse(await runNode(["--input-type=module", "--eval", code], {}, cwd)) as readonly string[];
}

async function runNode(args: readonly string[], env: NodeJS.ProcessEnv, cwd: string): Promise<string> {
  const node = spawn(process.execPath, args, { env: { ...process.env, ...env }, cwd });
  let [stdout, stderr] = ["", ""];
  node.stdout.on("data", (chunk) => (stdout += String(chunk)));
  node.stderr.on("data", (chunk) => (stderr += String(chunk)));
  const status = await new Promise((resolve) => node.on("close", resolve));
  expect(status, stderr).toBe(0);
  return stdout;
}
