// Builds examples/browser into .build/browser: a static folder that any host serves from any path. Prints the sizes of its files.
// Usage: npm run browser
import { build } from "esbuild";
import { cpSync, existsSync, mkdirSync, readFileSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { gzipSync } from "node:zlib";
import { makeFolder, npm, root, runToEnd } from "./optional-engine.mjs";

const example = join(root, "examples", "browser");
const webgpu = { name: "@tensorflow/tfjs-backend-webgpu", version: "4.22.0" };

/** Returns the folder of the WebGPU backend, which is downloaded once, because nothing else in the repository needs it. */
function webgpuBackend() {
  const modules = join(root, ".cache", "browser", "node_modules");
  if (!existsSync(join(modules, webgpu.name)))
    makeFolder(modules, (made) => {
      const manifest = { private: true, dependencies: { [webgpu.name]: webgpu.version } };
      writeFileSync(join(made, "package.json"), JSON.stringify(manifest));
      const args = ["install", "--prefix", made, "--ignore-scripts", "--no-package-lock", "--legacy-peer-deps"];
      npm(args, webgpu.name, "browser");
      return join(made, "node_modules");
    });
  return join(modules, webgpu.name);
}

/**
 * Builds the example into a folder.
 *
 * @param backend The folder of the WebGPU backend; null for a page without WebGPU.
 */
export async function buildBrowserExample(folder, backend) {
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(folder, { recursive: true });
  const options = {
    bundle: true,
    platform: "browser",
    format: "esm",
    target: "es2022",
    minify: true,
    legalComments: "none",
    logLevel: "warning",
    conditions: ["@periodic-eval/source"],
    // One TensorFlow.js, although the WebGPU backend is in a folder of its own.
    alias: {
      "@tensorflow/tfjs-core": join(root, "node_modules", "@tensorflow", "tfjs-core"),
      ...(backend !== null && { [webgpu.name]: backend }),
    },
  };
  const worker = [...(backend === null ? [] : [webgpu.name]), "./worker.ts"];
  await Promise.all([
    build({ ...options, entryPoints: [join(example, "page.ts")], outfile: join(folder, "page.js") }),
    build({
      ...options,
      stdin: {
        contents: worker.map((name) => `import ${JSON.stringify(name)};`).join("\n"),
        resolveDir: example,
      },
      outfile: join(folder, "worker.js"),
    }),
  ]);
  const { outputFiles } = await build({
    ...options,
    stdin: { contents: `export { pageStyle } from "@periodic-eval/dashboard/page";`, resolveDir: example },
    write: false,
  });
  const style = `data:text/javascript;base64,${Buffer.from(outputFiles[0].contents).toString("base64")}`;
  const { pageStyle } = await import(style);
  writeFileSync(join(folder, "page.css"), pageStyle + readFileSync(join(example, "page.css"), "utf8"));
  cpSync(join(example, "index.html"), join(folder, "index.html"));
  // The worker looks for them beside itself.
  const wasm = dirname(createRequire(join(root, "packages/models/package.json")).resolve(`${"@tensorflow/tfjs-backend-wasm"}/package.json`));
  for (const name of ["tfjs-backend-wasm.wasm", "tfjs-backend-wasm-simd.wasm"])
    cpSync(join(wasm, "dist", name), join(folder, name));
  const world = join(root, "packages", "cli", "assets", "micro-world");
  cpSync(world, join(folder, "micro-world"), { recursive: true });
}

/** Returns the size of each file, of all, and of those that a first visit loads, in bytes: plain and compressed with gzip. */
export function sizesOf(folder) {
  return readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => {
      const path = join(entry.parentPath, entry.name);
      const bytes = readFileSync(path);
      return { name: path.slice(folder.length + 1).replaceAll("\\", "/"), bytes: bytes.length, gzip: gzipSync(bytes).length };
    })
    .sort((a, b) => b.gzip - a.gzip);
}

async function main() {
  const folder = join(root, ".build", "browser");
  await buildBrowserExample(folder, webgpuBackend());
  const sizes = sizesOf(folder);
  const kB = (bytes) => `${(bytes / 1000).toFixed(0).padStart(6)} kB`;
  for (const { name, bytes, gzip } of sizes.filter((size) => size.gzip > 5000))
    console.log(`${kB(bytes)} ${kB(gzip)} gzip  ${name}`);
  const sum = (key) => sizes.reduce((total, size) => total + size[key], 0);
  console.log(`${kB(sum("bytes"))} ${kB(sum("gzip"))} gzip  ${folder}`);
}

if (process.argv[1] === fileURLToPath(import.meta.url)) runToEnd(main);
