import { execFile } from "node:child_process";
import { existsSync } from "node:fs";
import { mkdir, mkdtemp, readdir, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { afterAll, beforeAll, expect, it, type TestContext } from "vitest";

const root = fileURLToPath(new URL("../../../..", import.meta.url));
const isWindows = process.platform === "win32";

const execute = promisify(execFile);
const run = (cwd: string, file: string, ...args: string[]) =>
  execute(file, args, { cwd, shell: isWindows, maxBuffer: 1 << 26 });

/** Installs tarballs and their dependencies. Skips the test if the registry cannot be reached. */
async function install(test: TestContext, cwd: string, ...what: string[]): Promise<void> {
  try {
    await run(
      cwd,
      "npm",
      "install",
      "--no-audit",
      "--no-fund",
      "--prefer-offline",
      "--no-save",
      "--loglevel=error",
      ...what,
    );
  } catch (error) {
    const isOffline = /ENOTFOUND|EAI_AGAIN|ECONNREFUSED|ETIMEDOUT|ENETUNREACH/.test(
      String((error as { stderr?: string }).stderr),
    );
    test.skip(isOffline, "the npm registry cannot be reached");
    throw error;
  }
}

let folder = "";
let tarballs: readonly string[] = [];
const tarballOf = (name: string) => tarballs.find((file) => file.includes(`periodic-eval-${name}-`))!;

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "packed-"));
  await mkdir(join(folder, "packs"));
  await run(root, "npm", "pack", "--workspaces", "--silent", "--pack-destination", join(folder, "packs"));
  tarballs = (await readdir(join(folder, "packs"))).map((name) => join(folder, "packs", name));
});
afterAll(() => rm(folder, { recursive: true, force: true }));

async function emptyProject(name: string): Promise<string> {
  const project = join(folder, name);
  await mkdir(project);
  await writeFile(join(project, "package.json"), JSON.stringify({ private: true, type: "module" }));
  return project;
}

/** Imports each specifier in one new process and returns its number of exports. */
async function importAll(
  project: string,
  specifiers: readonly string[],
): Promise<Readonly<Record<string, number>>> {
  const code = `const found = {};
    for (const name of ${JSON.stringify(specifiers)}) found[name] = Object.keys(await import(name)).length;
    console.log(JSON.stringify(found));`;
  const { stdout } = await run(project, process.execPath, "--input-type=module", "--eval", code);
  return JSON.parse(stdout.trim().split("\n").at(-1)!);
}

const isBuilt = existsSync(join(root, "packages", "cli", "dist", "main.js"));

// Nearly all of the time is npm's, which packs, checks and unpacks 120 MB: what can run side by side does.
it.skipIf(!isBuilt)("core installs without TensorFlow.js", { concurrent: true }, async (test) => {
  const project = await emptyProject("core-alone");
  await install(test, project, tarballOf("core"));
  expect(existsSync(join(project, "node_modules", "@tensorflow"))).toBe(false);
  for (const [name, exports] of Object.entries(
    await importAll(project, ["@periodic-eval/core", "@periodic-eval/core/snapshots"]),
  )) {
    expect(exports, name).toBeGreaterThan(0);
  }
});

it.skipIf(!isBuilt)(
  "all packages install into an empty folder and can be imported",
  { concurrent: true },
  async (test) => {
    const project = await emptyProject("all");
    await install(test, project, ...tarballs);
    const specifiers = [
      "@periodic-eval/core",
      "@periodic-eval/core/snapshots",
      "@periodic-eval/core/tfjs",
      "@periodic-eval/core/testing",
      "@periodic-eval/safetensors",
      "@periodic-eval/models",
      "@periodic-eval/models/tokenizer",
      "@periodic-eval/trainers",
      "@periodic-eval/remote",
      "@periodic-eval/loggers",
      "@periodic-eval/loggers/console",
      "@periodic-eval/loggers/csv",
      "@periodic-eval/loggers/jsonl",
      "@periodic-eval/loggers/mlflow",
      "@periodic-eval/loggers/tensorboard",
      "@periodic-eval/loggers/wandb",
      "@periodic-eval/dashboard",
      "periodic-eval",
    ];
    for (const [name, exports] of Object.entries(await importAll(project, specifiers)))
      expect(exports, name).toBeGreaterThan(0);
    // Two copies of TensorFlow.js could not share tensors.
    const { stdout } = await run(project, "npm", "ls", "@tensorflow/tfjs-core", "--all", "--parseable");
    expect(stdout.trim().split("\n")).toHaveLength(1);

    const cli = await run(project, "npx", "--no-install", "periodic-eval", "--version");
    expect(cli.stdout.trim()).toBe("0.1.0");
    const packed = await readdir(join(project, "node_modules", "periodic-eval"), { recursive: true });
    expect(packed.filter((file) => file.includes(".test."))).toEqual([]);
    expect(packed).toContain(join("assets", "micro-world", "model.safetensors"));
    const core = join(project, "node_modules", "@periodic-eval", "core", "dist");
    for (const schema of ["snapshot.schema.json", "config.schema.json"])
      expect(existsSync(join(core, schema))).toBe(true);
  },
);
