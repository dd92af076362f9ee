// Installs the optional backend webgpu: Dawn, Chromium's WebGPU, from npm, and TensorFlow.js' backend. Keeps only the files for
// this platform. Everything is in .cache/webgpu; node_modules gets two links.
// Usage: npm run webgpu [-- --force]      --force reinstalls everything
import { existsSync, readdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import { installOptional } from "./optional-packages.mjs";
import { Missing } from "./steps.mjs";

const versions = { webgpu: "0.6.2", "@tensorflow/tfjs-backend-webgpu": "4.22.0" };

function prune(modules) {
  // A second TensorFlow.js would register separate backends: imports find the project's further up.
  for (const name of readdirSync(join(modules, "@tensorflow")))
    if (name !== "tfjs-backend-webgpu") rmSync(join(modules, "@tensorflow", name), { recursive: true });
  const dist = join(modules, "webgpu", "dist");
  const own = process.platform === "darwin" ? "darwin-universal" : `${process.platform}-${process.arch}`;
  if (!existsSync(join(dist, own))) {
    const fix = "Use the backend wasm, or on Linux tfjs-node (`npm run native`).";
    throw new Missing(`webgpu@${versions.webgpu}`, `nothing for ${own}`, readdirSync(dist).join(", "), fix);
  }
  for (const other of readdirSync(dist)) if (other !== own) rmSync(join(dist, other), { recursive: true });
}

await installOptional("webgpu", versions, {
  flags: ["--legacy-peer-deps"],
  prune,
  code: `
    const { create } = await import("webgpu");
    const adapter = await create([]).requestAdapter();
    console.log(adapter?.info.description || adapter?.info.vendor || "none");`,
  otherwise: "where that does not help, use the backend wasm.",
  done: (adapter) =>
    adapter === "none"
      ? "webgpu is installed, and there is no GPU that a driver knows; tests use the driver of Debian's chromium where it is"
      : `webgpu works on ${adapter}: PERIODIC_EVAL_BACKEND=webgpu`,
});
