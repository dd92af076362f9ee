import type { JudgePrice } from "@periodic-eval/core/grading";
import { formatSeconds } from "@periodic-eval/dashboard";
import type { PlannedCallback } from "./run.ts";
import { plainTable } from "../../terminal/plain-table.ts";
import type { Colours } from "../../terminal/terminal.ts";

/** About four characters are a token of English, and a judge's own prompt has about so many tokens. */
const charactersPerToken = 4;
const promptTokens = 450;

/** By method, of each answer: prompts, with question and answer in each, and the tokens of a reply. */
const judging = {
  json: { prompts: 1, replyTokens: 60 },
  logprob: { prompts: 2, replyTokens: 1 },
  rule: { prompts: 0, replyTokens: 0 },
};

/**
 * Of one look, about; null where nothing is judged or no price was told.
 *
 * @param told goes before the configuration's; null where it stands.
 */
export function costOfLook({ look }: PlannedCallback, told: JudgePrice | null): number | null {
  if (look === null || look.judged === 0) return null;
  if (look.judgeMethod === "rule") return 0;
  const price = told ?? look.judgePrice;
  if (price === null) return null;
  const { prompts, replyTokens } = judging[look.judgeMethod];
  const input = look.judged * promptTokens + look.judgedCharacters / charactersPerToken;
  return (
    (prompts * (input * price.inputPerMillion + look.judged * replyTokens * price.outputPerMillion)) / 1e6
  );
}

const columns = [
  { words: "callback" },
  { words: "steps" },
  "looks",
  "items",
  "seconds a look",
  "tokens a look",
  "judged a look",
  "cost of all",
];

/** A table per phase, and below each what all looks take. */
export function planTables(
  planned: readonly PlannedCallback[],
  price: JudgePrice | null,
  colours: Colours,
): string {
  const phases = [...new Set(planned.map(({ phase }) => phase))];
  return phases
    .map((phase) => {
      const own = planned.filter((one) => one.phase === phase);
      return [
        colours.bold(phase),
        plainTable(
          columns,
          own.map((one) => rowOf(one, price)),
          colours,
        ),
        ...own.flatMap(({ id, missing }) => (missing === null ? [] : [`${id}: ${missing}`])),
        totalOf(own),
      ].join("\n");
    })
    .join("\n\n");
}

const unknown = "–";

function rowOf(one: PlannedCallback, price: JudgePrice | null): string[] {
  const { id, steps, look, missing } = one;
  if (missing !== null) return [id, "skipped: no file", ...columns.slice(2).map(() => unknown)];
  const cost = costOfLook(one, price);
  const ofLook = (value: number | null | undefined) => (value == null ? unknown : value.toLocaleString("en"));
  return [
    id,
    steps === null ? "by epochs or seconds" : shortened(steps),
    steps === null ? unknown : String(steps.length),
    ofLook(look?.items),
    look === null ? unknown : formatSeconds(look.seconds),
    ofLook(look?.tokens),
    ofLook(look?.judged),
    cost === null || steps === null ? unknown : (cost * steps.length).toFixed(2),
  ];
}

/** `0, 20, 40, … 100`. */
const shortened = (steps: readonly number[]): string =>
  steps.length <= 8 ? steps.join(", ") : `${steps.slice(0, 5).join(", ")}, … ${steps.at(-1)}`;

function totalOf(planned: readonly PlannedCallback[]): string {
  const known = planned.filter(({ steps, look }) => steps !== null && look !== null);
  if (known.length === 0) return "Name a model (--model) to learn what a look takes.";
  const seconds = known.reduce((sum, { steps, look }) => sum + steps!.length * look!.seconds, 0);
  return `about ${formatSeconds(seconds)} of measuring, were nothing shortened by the budget`;
}
