// Builds every package: one `tsc` into `.build/`, then a copy of each package into its `dist/`.
// Depends on the compiler and on esbuild. Does nothing if no source changed; `--force` builds anyway. `--no-types`, which `npm start`
// passes, checks no types and writes no declarations: a sixth of the compiler's time.
import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import { createRequire } from "node:module";
import { cpSync, existsSync, mkdirSync, readFileSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { basename, join, relative } from "node:path";
import { pathToFileURL } from "node:url";
import { build as bundle } from "esbuild";
import wabt from "wabt";
import { bundledFiles, licencesOf, printLicences } from "./licences.mjs";
import { root } from "./steps.mjs";

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
  const config = ["tsconfig.json", "vitest.config.ts", "package-lock.json", "scripts/build.mjs"];
  for (const file of [...files, ...config.map((name) => join(root, name))].sort((a, b) => (a < b ? -1 : 1))) {
    hash.update(file).update("\0").update(readFileSync(file)).update("\0");
  }
  return hash.digest("hex");
}

const noTypes = process.argv.includes("--no-types");
const stampOf = (hash, isUntyped) => `${hash}${isUntyped ? " without types" : ""}`;

function isBuilt(hash) {
  const enough = [stampOf(hash, false), ...(noTypes ? [stampOf(hash, true)] : [])];
  return (
    existsSync(stamp) &&
    enough.includes(readFileSync(stamp, "utf8")) &&
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
      ...(noTypes ? ["--noCheck", "--declaration", "false"] : []),
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
  write(dist("live"), "live.schema.json", (await load(dist("live"), "index.js")).liveJsonSchema());
  const training = await load(cli, "commands", "train", "json-schema.js");
  write(cli, "train.schema.json", training.trainingJsonSchema());
}

/** Bundles the script of the dashboard's pages. */
async function writeClient() {
  const dist = join(root, "packages", "dashboard", "dist");
  const { bundleClient } = await import(pathToFileURL(join(dist, "html", "document.js")).href);
  writeFileSync(join(dist, "client.js"), bundleClient());
  const page = { entryPoints: [join(dist, "client", "main.js")], outfile: "client.js", write: false };
  const { metafile } = await bundle({ absWorkingDir: root, ...page, bundle: true, metafile: true });
  writeLicences(dist, bundledFiles(metafile));
}

/** Writes the licences of what a folder has bundled. */
const writeLicences = (folder, files) =>
  writeFileSync(
    join(folder, "LICENSES.txt"),
    printLicences(
      licencesOf([...new Set(files)]),
      "The scripts in this folder contain code of these packages:",
    ),
  );

/*
 * Libraries are bundled into the packages that use them, so that installing periodic-eval stays small: of a library that only one package
 * calls, and that appears in no public type, a few functions are enough. Sources import the library by its name, as a development
 * dependency; the build replaces these imports in `dist/`.
 */

/** For each package its bundled libraries, and the names that its sources use of each. */
const bundledLibraries = {
  data: {
    "@huggingface/hub": ["datasetInfo", "downloadFile", "listFiles", "modelInfo"],
    "hyparquet-compressors": ["decompressLz4", "decompressLz4Raw", "decompressZstd"],
  },
  loggers: { "@bufbuild/protobuf/wire": ["BinaryReader", "BinaryWriter", "WireType"] },
  kernels: { "@bufbuild/protobuf/wire": ["BinaryWriter", "WireType"] },
  tasks: { ajv: ["Ajv"], "mathjs/number": ["parse"] },
};

/** Builds for browsers that run in Node too. This one lacks only the upload of local files and the library's own cache. */
const buildForBrowsers = { "@huggingface/hub": "dist/browser/index.mjs" };

/**
 * Stays a dependency: it draws from `Math.random` when it loads, where the numbers of training come from. Core has loaded it by
 * then.
 */
const external = ["seedrandom"];

/** Leaves out what a library loads beside the names that are used: hyparquet-compressors' own brotli and snappy are 120 kB. */
const withoutUnused = {
  name: "without unused",
  setup: (build) =>
    build.onResolve({ filter: /brotli|hysnappy|compressors\.js$/ }, ({ importer, resolveDir, path }) =>
      importer.includes("hyparquet-compressors")
        ? { path: createRequire(join(resolveDir, "_.js")).resolve(path), sideEffects: false }
        : undefined,
    ),
};

const fileOf = (library) => `${library.replace("@", "").replaceAll("/", "-")}.js`;

/** Bundles the libraries of a package into `dist/bundled`, with their licences, and makes its files import them from there. */
async function bundleLibraries(name, dist) {
  const libraries = Object.entries(bundledLibraries[name] ?? {});
  if (libraries.length === 0) return;
  const folder = join(dist, "bundled");
  mkdirSync(folder, { recursive: true });
  const files = [];
  for (const [library, names] of libraries) {
    const forBrowsers = buildForBrowsers[library];
    const from = forBrowsers ? join(root, "node_modules", library, forBrowsers) : library;
    const { metafile } = await bundle({
      absWorkingDir: root,
      stdin: {
        contents: `export ${names === "*" ? "*" : `{ ${names.join(", ")} }`} from ${JSON.stringify(from)};`,
        resolveDir: join(root, "packages", name),
      },
      outfile: join(folder, fileOf(library)),
      bundle: true,
      external,
      format: "esm",
      platform: forBrowsers ? "browser" : "node",
      target: "es2022",
      minifySyntax: true,
      minifyWhitespace: true,
      legalComments: "none",
      metafile: true,
      logLevel: "warning",
      plugins: [withoutUnused],
    });
    files.push(...bundledFiles(metafile));
  }
  writeLicences(folder, files);
  const manifest = readFileSync(join(root, "packages", name, "package.json"), "utf8");
  importFromThere(
    dist,
    // A library that `imports` of the package.json maps to its bundle needs no other import.
    libraries
      .map(([library]) => library)
      .filter((library) => !manifest.includes(`./dist/bundled/${fileOf(library)}`)),
  );
}

function importFromThere(dist, libraries) {
  const scripts = readdirSync(dist, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile() && entry.name.endsWith(".js"))
    .filter((entry) => !relative(dist, entry.parentPath).startsWith("bundled"));
  const unused = new Set(libraries);
  for (const entry of scripts) {
    const file = join(entry.parentPath, entry.name);
    const text = readFileSync(file, "utf8");
    let changed = text;
    for (const library of libraries) {
      const path = relative(entry.parentPath, join(dist, "bundled", fileOf(library))).replaceAll("\\", "/");
      const target = path.startsWith(".") ? path : `./${path}`;
      changed = changed
        .replaceAll(`from "${library}"`, `from "${target}"`)
        .replaceAll(`import("${library}")`, `import("${target}")`);
      if (changed.includes(`"${target}"`)) unused.delete(library);
    }
    if (changed !== text) writeFileSync(file, changed);
  }
  if (unused.size > 0)
    throw new Error(
      `[periodic-eval] build.mjs: nothing in ${dist} imports ${[...unused].join(", ")}. ` +
        "Import it by its name, or map a key of `imports` in the package.json to its file in ./dist/bundled.",
    );
}

/** Compiles the kernels of the wasm backend into binary.ts if kernels.wat has changed. */
async function writeKernels() {
  const folder = join(root, "packages", "kernels", "src", "wasm");
  const binary = join(folder, "binary.ts");
  const features = { simd: true, threads: true };
  const { parseWat } = await wabt();
  const module = parseWat("kernels.wat", readFileSync(join(folder, "kernels.wat"), "utf8"), features);
  module.validate(features);
  const bytes = Buffer.from(module.toBinary({}).buffer).toString("base64");
  const text = `/** kernels.wat, compiled by \`npm run build\`. */\nexport const kernelsBase64 =\n  "${bytes}";\n`;
  if (!existsSync(binary) || readFileSync(binary, "utf8") !== text) writeFileSync(binary, text);
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
    writeFileSync(stamp, stampOf(hash, noTypes));
    const seconds = ((performance.now() - started) / 1000).toFixed(1);
    console.log(
      `built ${packages.length} packages in ${seconds} s${noTypes ? ", without checking types" : ""}`,
    );
  } else {
    console.error("the compiler reported errors (above)");
    process.exitCode = 1;
  }
}
