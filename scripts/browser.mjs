// Builds examples/browser into .build/browser, a static folder that any host serves from any path.
// TensorFlow.js' WebGPU backend, which nothing else in the repository needs, is downloaded once into .cache/tools/browser.
// Usage: npm run browser
import { spawnSync } from "node:child_process";
import { join } from "node:path";
import { installedTool, Missing, root, runToEnd } from "./steps.mjs";

const webgpu = "@tensorflow/tfjs-backend-webgpu";

/** Returns the folder of TensorFlow.js' WebGPU backend. The page has its own TensorFlow.js, so the peer is not installed. */
const webgpuBackend = () =>
  join(
    installedTool("browser", { [webgpu]: "4.22.0" }, "browser", { flags: ["--legacy-peer-deps"] }),
    "node_modules",
    webgpu,
  );

function main() {
  const folder = join(root, ".build", "browser");
  const tsx = join(root, "node_modules", "tsx", "dist", "cli.mjs");
  const source = ["-C", "@periodic-eval/source", join(root, "examples", "browser", "build.ts")];
  const built = spawnSync(process.execPath, [tsx, ...source, folder, webgpuBackend()], { stdio: "inherit" });
  if (built.status !== 0)
    throw new Missing("examples/browser", "an error (above)", "a bundle", "Fix the error.");
  console.log("Serve the folder with any static server: `npx serve .build/browser`.");
}

await runToEnd(main);
