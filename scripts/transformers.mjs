// Installs the optional peer @huggingface/transformers, with ONNX Runtime, from npm. Everything is in .cache/transformers;
// node_modules gets a link.
// Usage: npm run transformers [-- --force]      --force reinstalls everything
import { existsSync, mkdirSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { parseArgs } from "node:util";
import {
  checkInstalled,
  installedModules,
  link,
  makeFolder,
  Missing,
  npm,
  root,
  run,
  runToEnd,
  step,
} from "./steps.mjs";

const modules = join(root, ".cache", "transformers", "node_modules");
const name = "@huggingface/transformers";
const version = "4.3.1";

function fetchPackage() {
  makeFolder(modules, (made) => {
    const manifest = { private: true, dependencies: { [name]: version } };
    writeFileSync(join(made, "package.json"), JSON.stringify(manifest));
    npm(["install", "--prefix", made, "--ignore-scripts", "--no-package-lock"], name, "transformers");
    const folder = join(made, "node_modules");
    keepOwnPlatform(join(folder, "onnxruntime-node", "bin"));
    return folder;
  });
}

/** ONNX Runtime's package holds the libraries of all platforms, in `bin/napi-v<N>/<platform>/<arch>`. */
function keepOwnPlatform(bin) {
  for (const level of readdirSync(bin)) {
    const platforms = join(bin, level);
    for (const other of readdirSync(platforms))
      if (other !== process.platform) rmSync(join(platforms, other), { recursive: true });
  }
}

/** Loads the library in a separate process: an incompatible one crashes the process. */
function check() {
  const broken = (got) =>
    new Missing(
      join(installedModules, name),
      got,
      "a library that loads",
      "Run `npm run transformers -- --force`; models of this library work without it.",
    );
  run(process.execPath, ["--input-type=module", "-e", `await import("${name}");`], broken, { cwd: root });
}

await runToEnd(() => {
  const { values } = parseArgs({ options: { force: { type: "boolean", default: false } } });
  checkInstalled();
  if (values.force) rmSync(modules, { recursive: true, force: true });
  step(`${name} ${version}`, existsSync(join(modules, name, "package.json")), fetchPackage);
  mkdirSync(dirname(join(installedModules, name)), { recursive: true });
  link(join(installedModules, name), join(modules, name));
  check();
  console.log(`${name} is installed`);
});
