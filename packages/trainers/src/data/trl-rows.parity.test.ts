import { execFileSync } from "node:child_process";
import { existsSync } from "node:fs";
import { copyFile, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { isDeepStrictEqual } from "node:util";
import { fileURLToPath } from "node:url";
import type { Tokenizer } from "@periodic-eval/core";
import { loadTokenizer } from "@periodic-eval/models/tokenizer";
import { describe, expect, it } from "vitest";
import { fixtures } from "../../../testing/src/fixtures.test-data.ts";
import { smollm2 } from "../../../models/src/testing/fixtures.test-data.ts";
import { needsPython, python, pythonHas } from "../../../models/src/testing/python.test-data.ts";
import { temporaryFolder } from "../testing/tiny-run.test-data.ts";
import { isBadRow } from "./bad-row.ts";
import { parseRow } from "./forms.ts";
import { parsePreference, renderPreference } from "./preference-rows.ts";
import { renderRow, type LossOn } from "./render-row.ts";
import { pairs, partsRow, rows } from "./trl-rows.test-data.ts";

interface Case {
  readonly template: string;
  readonly name: string;
  readonly row: object;
  readonly trainer: "sft" | "dpo";
  readonly assistant: boolean;
}
type Result =
  | { readonly error: string }
  | { readonly ids: number[]; readonly scored: number[] }
  | { readonly prompt_ids: number[]; readonly chosen_ids: number[]; readonly rejected_ids: number[] };

const script = fileURLToPath(new URL("trl-rows.test-data.py", import.meta.url));
const ask = (work: object): unknown =>
  JSON.parse(
    execFileSync(python, [script], {
      input: JSON.stringify(work),
      encoding: "utf8",
      stdio: ["pipe", "pipe", "ignore"],
      maxBuffer: 2 ** 28,
      env: { ...process.env, HF_HUB_OFFLINE: "1" },
    }),
  );

/**
 * Whether TRL's training template does what no rendering reveals, so that all tokens are scored by default: it adds an end of turn,
 * leaves replies of tools out of answers, or scores what comes between a reply and an answer.
 */
const isUnderivable = ({ template, name }: Case): boolean =>
  /glm4moe|diffusion_gemma/.test(template) ||
  (/deepseek/.test(template) && /^(an empty content|a call with words|an answer after tool\b.*)$/.test(name));
/** Cohere2's training template writes no end of turn for a role that the template does not know. */
const isForgotten = ({ template, name, assistant }: Case): boolean =>
  template === "cohere2.jinja" && name === "a developer's turn" && assistant;
/** Templates that read content in parts. To others TRL passes a list, which they print as Python does, or omit. */
const readsParts = /gemma3|qwen3_[568]|_vl|smolvlm|idefics3/;

const tokenizers = [
  join(fixtures, "tok-llama3"),
  join(fixtures, "tok-metaspace-first-zephyr"),
  smollm2,
].filter((folder) => existsSync(folder));
const needed = needsPython("trl, datasets");
const templates = (pythonHas("trl", "datasets") ? ask({}) : {}) as Readonly<Record<string, string>>;
const losses = ["assistant", "default"] as const;

/** Returns a tokenizer with another chat template. */
async function withTemplate(folder: string, template: string, date: string): Promise<Tokenizer> {
  const copy = await temporaryFolder();
  await copyFile(join(folder, "tokenizer.json"), join(copy, "tokenizer.json"));
  const { chat_template: _, ...config } = JSON.parse(
    await readFile(join(folder, "tokenizer_config.json"), "utf8"),
  ) as Record<string, unknown>;
  await writeFile(join(copy, "tokenizer_config.json"), JSON.stringify(config));
  await writeFile(join(copy, "chat_template.jinja"), templates[template]!);
  return loadTokenizer(copy, { date });
}

const options = { maxLength: Infinity, truncate: false };

/** Returns what the trainer reads in a case, in the form of the script's results. */
function read(
  tokenizer: Tokenizer,
  { row, trainer, assistant }: Case,
  loss: LossOn | null = assistant ? "assistant" : "completion" in row ? "completion" : "full",
): Result {
  if (trainer === "dpo") {
    const parsed = parsePreference(row, { where: "row", isPrecomputed: false });
    const pair = isBadRow(parsed) ? parsed : renderPreference(tokenizer, parsed, options);
    if (isBadRow(pair)) return { error: `${pair.reason}: ${pair.got}` };
    const { ids: chosen, scored } = pair.chosen;
    const start = scored[0]!;
    return {
      prompt_ids: [...chosen.subarray(0, start)],
      chosen_ids: [...chosen.subarray(start)],
      rejected_ids: [...pair.rejected.ids.subarray(start)],
    };
  }
  const parsed = parseRow(row, "row");
  const rendered = isBadRow(parsed) ? parsed : renderRow(tokenizer, parsed, { ...options, loss });
  if (isBadRow(rendered)) return { error: `${rendered.reason}: ${rendered.got}` };
  return { ids: [...rendered.ids], scored: [...rendered.scored] };
}

/** TRL 1.16.0's `SFTTrainer` and `DPOTrainer`, with the templates of its package. */
describe.skipIf(Object.keys(templates).length === 0)(`rows (${needed})`, () => {
  const all = [...rows.map((row) => ["sft", row] as const), ...pairs.map((row) => ["dpo", row] as const)];
  const cases = Object.keys(templates).flatMap((template) =>
    [...all, ...(readsParts.test(template) ? [["sft", partsRow] as const] : [])].flatMap(
      ([trainer, { name, row }]) =>
        losses
          .filter((loss) => trainer === "sft" || loss === "default")
          .map((loss): Case => ({ template, name, row, trainer, assistant: loss === "assistant" })),
    ),
  );

  it("come with templates to compare", () => expect(Object.keys(templates).length).toBeGreaterThan(25));

  describe.each(Object.keys(templates).length === 0 ? [] : tokenizers)("%s", (folder) => {
    let asked: { readonly date: string; readonly results: readonly Result[] } | undefined;
    const answers = () => (asked ??= ask({ tokenizer: folder, cases }) as NonNullable<typeof asked>);

    it.each(Object.keys(templates))("have the ids and the scored tokens of TRL with %s", async (template) => {
      const { date, results } = answers();
      const tokenizer = await withTemplate(folder, template, date);
      const differences: unknown[] = [];
      for (const [i, each] of cases.entries()) {
        if (each.template !== template || isForgotten(each)) continue;
        let [expected, actual] = [results[i]!, read(tokenizer, each)];
        if (isUnderivable(each) && each.assistant && "error" in actual) {
          // The case after it is the same row with TRL's default, which scores all tokens.
          [expected, actual] = [results[i + 1]!, read(tokenizer, each, null)];
        }
        // A training template may accept what the template refuses. A pair of equal answers teaches nothing.
        const mayRefuse =
          "error" in expected ||
          (each.assistant && "error" in results[i + 1]!) ||
          ("chosen_ids" in expected && isDeepStrictEqual(expected.chosen_ids, expected.rejected_ids));
        if ("error" in actual ? mayRefuse : isDeepStrictEqual(actual, expected)) continue;
        differences.push({ ...each, expected, actual });
      }
      expect(differences).toEqual([]);
    });
  });
});
