import { execFile } from "node:child_process";
import { existsSync } from "node:fs";
import {
  mkdir,
  mkdtemp,
  readdir,
  readFile,
  realpath,
  rename,
  rm,
  symlink,
  writeFile,
} from "node:fs/promises";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, it, type TestContext } from "vitest";

const root = fileURLToPath(new URL("../../../..", import.meta.url));
const isBuilt = existsSync(join(root, "packages", "cli", "dist", "main.js"));

const execute = promisify(execFile);
const { npmCommand } = (await import(new URL("../../../../scripts/steps.mjs", import.meta.url).href)) as {
  readonly npmCommand: (args: readonly string[]) => readonly [file: string, args: readonly string[]];
};
const run = (cwd: string, program: string, ...options: string[]) => {
  const [file, args] = program === "npm" ? npmCommand(options) : [program, options];
  return execute(file, args, { cwd, maxBuffer: 1 << 26 });
};

interface Manifest {
  readonly name: string;
  readonly bin?: Readonly<Record<string, string>>;
  readonly dependencies?: Readonly<Record<string, string>>;
  readonly peerDependencies?: Readonly<Record<string, string>>;
  readonly peerDependenciesMeta?: Readonly<Record<string, { readonly optional?: boolean }>>;
}

const manifestOf = async (folder: string): Promise<Manifest> =>
  JSON.parse(await readFile(join(folder, "package.json"), "utf8"));

let folder = "";
let tarballs: readonly string[] = [];
/** Core and the packages below it. */
const coreTarballs = () => tarballs.filter((file) => /periodic-eval-(core|contracts|store|data)-/.test(file));

beforeAll(async () => {
  if (!isBuilt) return;
  folder = await mkdtemp(join(tmpdir(), "packed-"));
  await mkdir(join(folder, "packs"));
  await run(root, "npm", "pack", "--workspaces", "--silent", "--pack-destination", join(folder, "packs"));
  tarballs = (await readdir(join(folder, "packs"))).map((name) => join(folder, "packs", name));
});
afterAll(() => (folder === "" ? undefined : rm(folder, { recursive: true, force: true })));

async function emptyProject(name: string): Promise<string> {
  const project = join(folder, name);
  await mkdir(project);
  await writeFile(join(project, "package.json"), JSON.stringify({ private: true, type: "module" }));
  return project;
}

/** Installs tarballs and their dependencies with npm. Skips the test if the registry cannot be reached. */
async function installWithNpm(test: TestContext, project: string, files: readonly string[]): Promise<void> {
  const flags = ["--no-audit", "--no-fund", "--prefer-offline", "--no-save", "--loglevel=error"];
  try {
    await run(project, "npm", "install", ...flags, ...files);
  } catch (error) {
    const isOffline = /ENOTFOUND|EAI_AGAIN|ECONNREFUSED|ETIMEDOUT|ENETUNREACH/.test(
      String((error as { stderr?: string }).stderr),
    );
    test.skip(isOffline, "the npm registry cannot be reached");
    throw error;
  }
}

/**
 * Unpacks tarballs and links exactly the dependencies that their manifests declare to the installed ones, without npm, which
 * takes much longer. An undeclared dependency is missing, as it would be after an installation.
 */
async function installByLinks(_: TestContext, project: string, files: readonly string[]): Promise<void> {
  const modules = join(project, "node_modules");
  const manifests = await Promise.all(
    files.map(async (file) => {
      const unpacked = await mkdtemp(join(project, "unpacked-"));
      await run(project, "tar", "-xzf", file, "-C", unpacked, "--strip-components=1");
      const manifest = await manifestOf(unpacked);
      await link(unpacked, join(modules, manifest.name), { isMoved: true });
      return manifest;
    }),
  );
  const declared = manifests.flatMap(({ dependencies, peerDependencies, peerDependenciesMeta = {} }) => [
    ...Object.keys(dependencies ?? {}),
    ...Object.keys(peerDependencies ?? {}).filter((name) => peerDependenciesMeta[name]?.optional !== true),
  ]);
  const packed = new Set(manifests.map(({ name }) => name));
  for (const name of new Set(declared))
    if (!packed.has(name)) await link(join(root, "node_modules", name), join(modules, name));
}

async function link(from: string, to: string, { isMoved = false } = {}): Promise<void> {
  await mkdir(dirname(to), { recursive: true });
  if (isMoved) await rename(from, to);
  else await symlink(from, to, "junction");
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

/** Returns the folders from which the installed packages load a dependency. */
async function foldersOf(dependency: string, project: string): Promise<ReadonlySet<string>> {
  const modules = join(project, "node_modules");
  const scoped = await readdir(join(modules, "@periodic-eval"));
  const packages = [...scoped.map((name) => join("@periodic-eval", name)), "periodic-eval"];
  const paths = packages.flatMap((name) => {
    try {
      return [createRequire(join(modules, name, "package.json")).resolve(`${dependency}/package.json`)];
    } catch {
      return [];
    }
  });
  return new Set(await Promise.all(paths.map((path) => realpath(path))));
}

const installers = [
  { installer: "linked dependencies", install: installByLinks, isSkipped: !isBuilt },
  { installer: "npm install", install: installWithNpm, isSkipped: !isBuilt },
];

describe.each(installers)("packed packages with $installer", ({ installer, install, isSkipped }) => {
  const isNpm = installer.startsWith("npm");

  it.skipIf(isSkipped)("core installs without TensorFlow.js", async (test) => {
    const project = await emptyProject(`core-alone-${isNpm}`);
    await install(test, project, coreTarballs());
    expect(existsSync(join(project, "node_modules", "@tensorflow"))).toBe(false);
    for (const [name, exports] of Object.entries(
      await importAll(project, ["@periodic-eval/core", "@periodic-eval/store"]),
    )) {
      expect(exports, name).toBeGreaterThan(0);
    }
  });

  it.skipIf(isSkipped)("all packages install into an empty folder and can be imported", async (test) => {
    const project = await emptyProject(`all-${isNpm}`);
    await install(test, project, tarballs);
    const specifiers = [
      "@periodic-eval/core",
      "@periodic-eval/store",
      "@periodic-eval/tfjs",
      "@periodic-eval/testing",
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
      "@periodic-eval/loggers/notify",
      "@periodic-eval/loggers/tensorboard",
      "@periodic-eval/loggers/wandb",
      "@periodic-eval/dashboard",
      "periodic-eval",
    ];
    for (const [name, exports] of Object.entries(await importAll(project, specifiers)))
      expect(exports, name).toBeGreaterThan(0);
    // Two copies of TensorFlow.js could not share tensors.
    expect((await foldersOf("@tensorflow/tfjs-core", project)).size).toBe(1);
    if (isNpm) {
      const { stdout } = await run(project, "npm", "ls", "@tensorflow/tfjs-core", "--all", "--parseable");
      expect(stdout.trim().split("\n")).toHaveLength(1);
    }

    const cliFolder = join(project, "node_modules", "periodic-eval");
    const { bin } = await manifestOf(cliFolder);
    const cli = isNpm
      ? await run(project, "npm", "exec", "--no", "--", "periodic-eval", "--version")
      : await run(project, process.execPath, join(cliFolder, bin!["periodic-eval"]!), "--version");
    expect(cli.stdout.trim()).toBe("0.1.0");
    const packed = await readdir(cliFolder, { recursive: true });
    expect(packed.filter((file) => file.includes(".test."))).toEqual([]);
    expect(packed).toContain(join("assets", "micro-world", "model.safetensors"));
    const core = join(project, "node_modules", "@periodic-eval", "core", "dist");
    for (const schema of ["snapshot.schema.json", "config.schema.json"])
      expect(existsSync(join(core, schema))).toBe(true);
  });
});
