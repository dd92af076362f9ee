// Builds examples/browser into .build/browser, a static folder that any host serves from any path, and prints the sizes of its files.
// TensorFlow.js' WebGPU backend, which nothing else in the repository needs, is downloaded once into .cache/tools/browser.
// Usage: npm run browser
import { spawnSync } from "node:child_process";
import { readFileSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { gzipSync } from "node:zlib";
import { installedTool, Missing, root, runToEnd } from "./steps.mjs";

const webgpu = "@tensorflow/tfjs-backend-webgpu";

/** Returns the folder of TensorFlow.js' WebGPU backend. The page has its own TensorFlow.js, so the peer is not installed. */
const webgpuBackend = () =>
  join(
    installedTool("browser", { [webgpu]: "4.22.0" }, "browser", { flags: ["--legacy-peer-deps"] }),
    "node_modules",
    webgpu,
  );

/** Returns the size of each file in bytes, plain and compressed with gzip, the largest first. */
function sizesOf(folder) {
  return readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => {
      const path = join(entry.parentPath, entry.name);
      const content = readFileSync(path);
      const name = path.slice(folder.length + 1).replaceAll("\\", "/");
      return { name, plain: content.length, gzip: gzipSync(content).length };
    })
    .sort((a, b) => b.gzip - a.gzip);
}

function main() {
  const folder = join(root, ".build", "browser");
  const tsx = join(root, "node_modules", "tsx", "dist", "cli.mjs");
  const source = ["-C", "@periodic-eval/source", join(root, "examples", "browser", "build.ts")];
  const built = spawnSync(process.execPath, [tsx, ...source, folder, webgpuBackend()], { stdio: "inherit" });
  if (built.status !== 0)
    throw new Missing("examples/browser", "an error (above)", "a bundle", "Fix the error.");
  const sizes = sizesOf(folder);
  const kB = (bytes) => `${(bytes / 1000).toFixed(0).padStart(6)} kB`;
  const line = (plain, gzip, name) => console.log(`${kB(plain)} ${kB(gzip)} gzip  ${name}`);
  for (const { name, plain, gzip } of sizes.filter((size) => size.gzip > 5000)) line(plain, gzip, name);
  const sum = (key) => sizes.reduce((total, size) => total + size[key], 0);
  line(sum("plain"), sum("gzip"), folder);
  console.log("Serve the folder with any static server: `npx serve .build/browser`.");
}

await runToEnd(main);
