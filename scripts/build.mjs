// Builds every package: one `tsc` into `.build/`, then a copy of each package into its `dist/`.
// Depends on the compiler and on esbuild. Does nothing if no source changed; `--force` builds anyway.
import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import { cpSync, existsSync, mkdirSync, readFileSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { basename, join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { bundleLibraries } from "./bundled-libraries.mjs";
import { writeKernels } from "./wasm-kernels.mjs";

const root = fileURLToPath(new URL("..", import.meta.url));
const build = join(root, ".build");
const stamp = join(build, "sources.sha256");
const packages = readdirSync(join(root, "packages")).filter((name) =>
  existsSync(join(root, "packages", name, "package.json")),
);

/** Matches tests and their data. */
const isTest = (path) => /\.(test|test-data)\.(js|d\.ts)(\.map)?$/.test(path);

/** Returns the hash of every input of the build, and of examples and benchmarks, whose types it checks too. */
function sourcesHash() {
  const filesOf = (...folder) =>
    readdirSync(join(root, ...folder), { recursive: true, withFileTypes: true })
      .filter((entry) => entry.isFile())
      .map((entry) => join(entry.parentPath, entry.name));
  const files = [
    ...packages.flatMap((name) => filesOf("packages", name, "src")),
    ...["examples", "benchmarks"].flatMap((name) => filesOf(name).filter((file) => file.endsWith(".ts"))),
  ];
  const hash = createHash("sha256");
  const others = [
    "tsconfig.json",
    "vitest.config.ts",
    "package-lock.json",
    "scripts/build.mjs",
    "scripts/bundled-libraries.mjs",
    "scripts/wasm-kernels.mjs",
  ];
  for (const file of [...files, ...others.map((name) => join(root, name))].sort((a, b) => (a < b ? -1 : 1))) {
    hash.update(file).update("\0").update(readFileSync(file)).update("\0");
  }
  return hash.digest("hex");
}

function isBuilt(hash) {
  return (
    existsSync(stamp) &&
    readFileSync(stamp, "utf8") === hash &&
    packages.every((name) => existsSync(join(root, "packages", name, "dist", "index.js")))
  );
}

/** Returns whether the compiler found no error. Its output is distributed even if it did. */
function compile() {
  rmSync(build, { recursive: true, force: true });
  const tsc = join(root, "node_modules", "typescript", "bin", "tsc");
  try {
    const emit = [
      "--noEmit",
      "false",
      "--outDir",
      build,
      "--sourceMap",
      "false",
      "--declarationMap",
      "false",
    ];
    execFileSync(process.execPath, [tsc, "-p", root, ...emit], { stdio: "inherit" });
    return true;
  } catch {
    return false;
  }
}

async function distribute(name) {
  const dist = join(root, "packages", name, "dist");
  rmSync(dist, { recursive: true, force: true });
  cpSync(join(build, "packages", name, "src"), dist, { recursive: true, filter: (path) => !isTest(path) });
  await bundleLibraries(name, dist);
  cpSync(join(root, "LICENSE"), join(root, "packages", name, "LICENSE"));
}

/** Copies the font files of the pictures, of a package that has 80 of them. */
function copyFonts() {
  const [inter, fonts] = [
    join(root, "node_modules", "@expo-google-fonts", "inter"),
    join(root, "packages", "dashboard", "fonts"),
  ];
  mkdirSync(fonts, { recursive: true });
  for (const file of ["400Regular/Inter_400Regular.ttf", "600SemiBold/Inter_600SemiBold.ttf", "LICENSE_FONT"])
    cpSync(join(inter, file), join(fonts, basename(file)));
}

/** Copies the language profiles of the package `langdetect`, whose own dependency has 144 MB that nothing here opens. */
function copyLanguageProfiles() {
  const [langdetect, languages] = [
    join(root, "node_modules", "langdetect"),
    join(root, "packages", "tasks", "languages"),
  ];
  rmSync(languages, { recursive: true, force: true });
  cpSync(join(langdetect, "profiles"), join(languages, "profiles"), { recursive: true });
  for (const file of ["res/cjk.json", "LICENSE"])
    cpSync(join(langdetect, file), join(languages, basename(file)));
}

/** Writes the JSON Schemas of a snapshot, of the periodic_eval block and of a training file from the built zod schemas. */
async function writeSchemas() {
  const dist = (name) => join(root, "packages", name, "dist");
  const load = (...path) => import(pathToFileURL(join(...path)).href);
  const write = (folder, name, schema) =>
    writeFileSync(join(folder, name), `${JSON.stringify(schema, null, 2)}\n`);
  const [core, cli] = [dist("core"), dist("cli")];
  write(core, "snapshot.schema.json", (await load(dist("store"), "index.js")).snapshotJsonSchema());
  write(core, "config.schema.json", (await load(core, "config", "index.js")).periodicEvalJsonSchema());
  const training = await load(cli, "commands", "train", "json-schema.js");
  write(cli, "train.schema.json", training.trainingJsonSchema());
}

/** Bundles the script of the dashboard's pages. */
async function writeClient() {
  const dist = join(root, "packages", "dashboard", "dist");
  const { bundleClient } = await import(pathToFileURL(join(dist, "html", "client-script.js")).href);
  writeFileSync(join(dist, "client.js"), bundleClient());
}

let hash = sourcesHash();
if (process.argv.includes("--force") || !isBuilt(hash)) {
  const started = performance.now();
  await writeKernels();
  hash = sourcesHash();
  const clean = compile();
  for (const name of packages) await distribute(name);
  copyFonts();
  copyLanguageProfiles();
  await writeSchemas();
  await writeClient();
  if (clean) {
    mkdirSync(build, { recursive: true });
    writeFileSync(stamp, hash);
    console.log(
      `built ${packages.length} packages in ${((performance.now() - started) / 1000).toFixed(1)} s`,
    );
  } else {
    console.error("the compiler reported errors (above)");
    process.exitCode = 1;
  }
}
