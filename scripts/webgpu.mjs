// Installs the optional backend webgpu: Dawn, Chromium's WebGPU, from npm, and TensorFlow.js' backend. Keeps only the files for
// this platform. Everything is in .cache/webgpu; node_modules gets two links.
// Usage: npm run webgpu [-- --force]      --force reinstalls everything
import { existsSync, mkdirSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
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

const modules = join(root, ".cache", "webgpu", "node_modules");
const versions = { webgpu: "0.6.2", "@tensorflow/tfjs-backend-webgpu": "4.22.0" };
const names = Object.keys(versions);

function fetchPackages() {
  makeFolder(modules, (made) => {
    writeFileSync(join(made, "package.json"), JSON.stringify({ private: true, dependencies: versions }));
    const args = ["install", "--prefix", made, "--ignore-scripts", "--no-package-lock", "--legacy-peer-deps"];
    npm(args, names.join(" and "), "webgpu");
    const folder = join(made, "node_modules");
    // A second TensorFlow.js would register separate backends: imports find the project's further up.
    for (const name of readdirSync(join(folder, "@tensorflow")))
      if (name !== "tfjs-backend-webgpu") rmSync(join(folder, "@tensorflow", name), { recursive: true });
    const dist = join(folder, "webgpu", "dist");
    const own = process.platform === "darwin" ? "darwin-universal" : `${process.platform}-${process.arch}`;
    if (!existsSync(join(dist, own))) {
      const fix = "Use the backend wasm, or on Linux tfjs-node (`npm run native`).";
      throw new Missing(`webgpu@${versions.webgpu}`, `nothing for ${own}`, readdirSync(dist).join(", "), fix);
    }
    for (const other of readdirSync(dist)) if (other !== own) rmSync(join(dist, other), { recursive: true });
    return folder;
  });
}

/** Detects a GPU in a separate process: an incompatible library crashes the process. */
function check() {
  const code = `
    const { create } = await import("webgpu");
    const adapter = await create([]).requestAdapter();
    console.log("adapter: " + (adapter === null ? "" : adapter.info.description || adapter.info.vendor));`;
  const broken = (got) =>
    new Missing(
      join(installedModules, "webgpu"),
      got,
      "a library that loads",
      "Run `npm run webgpu -- --force`; where that does not help, use the backend wasm.",
    );
  const said = run(process.execPath, ["--input-type=module", "-e", code], broken, { cwd: root });
  return said.trim().split("\n").at(-1).slice("adapter:".length).trim();
}

await runToEnd(() => {
  const { values } = parseArgs({ options: { force: { type: "boolean", default: false } } });
  checkInstalled();
  if (values.force) rmSync(modules, { recursive: true, force: true });
  step(`webgpu ${versions.webgpu}`, existsSync(join(modules, "webgpu", "package.json")), fetchPackages);
  for (const name of names) {
    mkdirSync(join(installedModules, name, ".."), { recursive: true });
    link(join(installedModules, name), join(modules, name));
  }
  const adapter = check();
  console.log(
    adapter === ""
      ? "webgpu is installed, and there is no GPU that a driver knows; tests use the driver of Debian's chromium where it is"
      : `webgpu works on ${adapter}: PERIODIC_EVAL_BACKEND=webgpu`,
  );
});
