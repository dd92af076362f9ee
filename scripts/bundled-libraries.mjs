// Bundles libraries into the packages that use them, so that installing periodic-eval stays small: of a library that only one
// package calls, and that appears in no public type, a few functions are enough. Sources import the library by its name, as a
// development dependency; the build replaces these imports in `dist/`.
import { build } from "esbuild";
import { mkdirSync, readFileSync, readdirSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join, relative } from "node:path";
import { fileURLToPath } from "node:url";

const root = fileURLToPath(new URL("..", import.meta.url));

/** For each package its bundled libraries, and the names that its sources use of each. */
export const bundledLibraries = {
  data: {
    "@huggingface/hub": ["datasetInfo", "downloadFile", "listFiles", "modelInfo"],
    "hyparquet-compressors": ["decompressLz4", "decompressLz4Raw", "decompressZstd"],
  },
  dashboard: { "@observablehq/plot": "*", linkedom: ["parseHTML"] },
  loggers: { "@bufbuild/protobuf/wire": ["BinaryReader", "BinaryWriter", "WireType"] },
  models: { "@bufbuild/protobuf/wire": ["BinaryWriter", "WireType"] },
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
export async function bundleLibraries(name, dist) {
  const libraries = Object.entries(bundledLibraries[name] ?? {});
  if (libraries.length === 0) return;
  const folder = join(dist, "bundled");
  mkdirSync(folder, { recursive: true });
  const licences = new Map();
  for (const [library, names] of libraries) {
    const forBrowsers = buildForBrowsers[library];
    const from = forBrowsers ? join(root, "node_modules", library, forBrowsers) : library;
    const { metafile } = await build({
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
    for (const input of Object.keys(metafile.inputs)) addLicence(licences, input);
  }
  writeFileSync(join(folder, "LICENSES.txt"), `${[...licences.values()].join("\n\n")}\n`);
  const manifest = readFileSync(join(root, "packages", name, "package.json"), "utf8");
  importFromThere(
    dist,
    // A library that `imports` of the package.json maps to its bundle needs no other import.
    libraries
      .map(([library]) => library)
      .filter((library) => !manifest.includes(`./dist/bundled/${fileOf(library)}`)),
  );
}

/** Adds the licence of the package that a bundled file comes from. */
function addLicence(licences, input) {
  const folder = /^.*node_modules\/(?:@[^/]+\/)?[^/]+/.exec(input)?.[0];
  if (folder === undefined || licences.has(folder)) return;
  const at = join(process.cwd(), folder);
  const { name, version, license } = JSON.parse(readFileSync(join(at, "package.json"), "utf8"));
  const file = readdirSync(at).find((one) => /^licen[cs]e/i.test(one));
  const text = file === undefined ? "" : `\n\n${readFileSync(join(at, file), "utf8").trim()}`;
  licences.set(folder, `${name} ${version} (${license})${text}`);
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
      `[periodic-eval] bundled-libraries.mjs: nothing in ${dist} imports ${[...unused].join(", ")}. ` +
        "Import it by its name, or map a key of `imports` in the package.json to its file in ./dist/bundled.",
    );
}
