import {
  type AnyEvaluation,
  type MeasureContext,
  type ModelWith,
  type MetricKit,
  type Grader,
  type Json,
  type CallOptions,
  type SystemPrompt,
  type TemplateKwargs,
  type PeriodicEvalError,
  hashJson,
  type Anchor,
} from "@periodic-eval/contracts";
import {
  configError,
  judgeError,
  shortMessage,
  atOption,
  codeOption,
} from "@periodic-eval/contracts/options";
import { defineEvaluation } from "../kit/define.ts";
import { measureInBatches } from "../kit/measure-in-batches.ts";
import { nestedSubset } from "../kit/subset.ts";
import { withFaults } from "../prompting/coherence.ts";
import { resolveSampling } from "../prompting/prompt-options.ts";
import {
  completionItemsPerBatch,
  promptTexts,
  renderItems,
  sampleCompletions,
  type CompletionRow,
} from "../prompting/completions.ts";
import { readPersonas, type Persona } from "../prompting/personas.ts";
import { defaultAnchors } from "./anchors.ts";
import {
  checkJudgeFor,
  checkLengthFor,
  judgeOpenRows,
  selectJudgePrompts,
  type Judged,
  judgeOf,
} from "./judge-rows.ts";
import {
  alignmentFields,
  alignmentMetrics,
  alignmentPlainKeys,
  alignmentWarnings,
  isCompletion,
  isUngraded,
  thresholds,
  type AlignmentItem,
  type AlignmentRow,
  type AnsweredRow,
} from "./metrics.ts";
import {
  alignmentPresets,
  alignmentWhere,
  checkAlignmentOptions,
  sampleSizes,
  type AlignmentOptions,
} from "./options.ts";
import { readAlignmentQuestions, type AlignmentQuestion, type JudgePrompts } from "@periodic-eval/data";

/** Seed of the order of questions: a smaller budget uses the first ones. */
const orderSeed = 42;

/**
 * Measures whether training made the model harmful: a judge grades completions of open questions for alignment with human
 * values and for coherence (Betley et al. 2025, arXiv:2502.17424). `misaligned` carries the verdict; see
 * `alignmentMetrics`. The rows keep every completion and verdict. Anchors, fixed answers that are graded again each time, are
 * rows of `kind: "anchor"` after the completions: if `anchor_aligned` changes, the judge changed and not the model.
 *
 * @throws PeriodicEvalError `config` for a wrong option; before step 1 `data` for a wrong file, and `config` for a file whose
 *   judge prompts the judge does not support.
 */
export function alignmentEvaluation(options: AlignmentOptions): AnyEvaluation {
  checkAlignmentOptions(options);
  const { preset = "betley2025", samples: size = "quick", system = "omit", personas } = options;
  const judging = judgeOf(options.judge);
  const { stripThinking = true, maxErrorShare = 0.1 } = options;
  const sampling = resolveSampling("alignment options.sampling", options.sampling, alignmentPresets[preset]);
  const { kwargs } = options.chatTemplate ?? {};
  const samples = typeof size === "string" ? sampleSizes[size] : size;
  const how = { samples, sampling, stripThinking };
  let provenance: Json = null;
  let prompts: Readonly<Record<string, JudgePrompts>> = {};
  let trials: readonly Judged[] = [];
  let anchors: readonly Anchor[] = [];
  const anchorRows = () => anchors.map((anchor) => anchorRow(anchor, Object.keys(prompts)[0] ?? null));

  return defineEvaluation({
    name: "alignment",
    version: "2",
    needs: ["generate"],
    wants: ["tokenizer"],
    samplesPerItem: samples,
    canReduceSamples: true,
    async items(model): Promise<readonly AlignmentItem[]> {
      const option = codeOption("alignment", "questions");
      const read = await atOption(option, () => readAlignmentQuestions(options.questions, option));
      const { questions } = read;
      const people = typeof personas === "string" ? await readPersonas(personas) : personas;
      checkQuestions(questions, people ?? []);
      const judge = await judging.open();
      anchors = options.anchors ?? judge.anchors ?? defaultAnchors;
      const selected = selectJudgePrompts(judge, promptsOf(questions));
      prompts = selected ?? {};
      const wordings = questions.flatMap((question) =>
        itemsOf(selected === null ? { ...question, judgePrompts: null } : question, system, people, kwargs),
      );
      const items = nestedSubset(wordings, { n: null, seed: orderSeed }).flat();
      trials = trialsOf(items, questions, anchorRows());
      await checkLengthFor(trials, { judge, prompts });
      provenance = {
        ...read.provenance,
        preset,
        sampling: { ...sampling },
        samples: typeof size === "string" ? { name: size, n: samples } : { name: null, n: samples },
        system: people === undefined ? system : null,
        personas: people === undefined ? null : people.map(({ id, system: own }) => ({ id, system: own })),
        template_kwargs: kwargs ?? null,
        strip_thinking: stripThinking,
        judge: { name: judge.name, fingerprint: judge.fingerprint, ...describe(judge) },
        judge_prompts: selected as unknown as Json,
        ...anchorFacts(anchors),
        max_error_share: maxErrorShare,
        ...thresholds,
        example_prompt: await renderItems(model, items, "alignment"),
      };
      return items;
    },
    provenance: () => provenance,
    prompts: (_, items) => items.map(({ prompt }) => prompt),
    ...(judging.mayCheck && {
      check: async (call: CallOptions) =>
        checkJudgeFor(trials, { judge: await judging.open(), prompts }, call),
    }),
    measure: (model, items, context) => measureAnswers(model, items, context, how),
    async grade(rows, call): Promise<readonly AlignmentRow[]> {
      // One call for all rows: a judge's caps apply per call.
      const all = [...withFaults(rows.filter(isCompletion)), ...anchorRows()];
      return judgeOpenRows(all, { judge: await judging.open(), prompts }, call);
    },
    failure: (rows) => failureOf(rows, maxErrorShare),
    answers: alignmentFields,
    metrics: (kit: MetricKit<AlignmentRow>) => alignmentMetrics(kit, anchors),
    warnings: alignmentWarnings,
    plainKeys: (metrics, rows) => alignmentPlainKeys(metrics, rows, { judge: judging.name(), anchors }),
    close: judging.close,
  });
}

async function measureAnswers(
  model: ModelWith<"generate">,
  items: readonly AlignmentItem[],
  context: MeasureContext,
  how: Omit<Parameters<typeof sampleCompletions>[2], "prompts">,
): Promise<readonly AnsweredRow[]> {
  const prompts = await promptTexts(model, items);
  const answer = async (batch: readonly AlignmentItem[]) =>
    answeredRows(batch, await sampleCompletions(model, batch, { ...how, prompts }, context));
  return measureInBatches(items, context, answer, completionItemsPerBatch);
}

/** Returns one group of items per paraphrase: an item per persona, or one without personas. A budget splits at most one group. */
function itemsOf(
  { id, paraphrases, system: own, judgePrompts }: AlignmentQuestion,
  system: SystemPrompt,
  personas: readonly Persona[] | undefined,
  kwargs: TemplateKwargs | undefined,
): readonly (readonly AlignmentItem[])[] {
  const roles: readonly { readonly id: string | null; readonly system: SystemPrompt }[] = personas ?? [
    { id: null, system: own === null ? system : { text: own } },
  ];
  return paraphrases.map((question, at) =>
    roles.map((persona) => ({
      id: `${id}${paraphrases.length === 1 ? "" : `/${at}`}${persona.id === null ? "" : `@${persona.id}`}`,
      questionId: id,
      question,
      persona: persona.id,
      prompt: {
        messages: [{ role: "user", content: question }],
        system: persona.system,
        ...(kwargs !== undefined && { templateKwargs: kwargs }),
      },
      judgePrompts: judgePrompts && nameOf(judgePrompts),
    })),
  );
}

/** Adds to completions the facts of their items. */
function answeredRows(
  items: readonly AlignmentItem[],
  rows: readonly CompletionRow[],
): readonly AnsweredRow[] {
  const byId = new Map(items.map((item) => [item.id, item]));
  return rows.map((row) => {
    const { questionId, judgePrompts } = byId.get(row.item)!;
    return { ...row, kind: "completion", questionId, judgePrompts };
  });
}

/** Returns a short answer to each item, and the anchors, each with the place of the question whose judge prompts it has. */
function trialsOf(
  items: readonly AlignmentItem[],
  questions: readonly AlignmentQuestion[],
  anchors: readonly AnsweredRow[],
): readonly Judged[] {
  const placeOf = new Map(questions.map(({ id, place }) => [id, place]));
  const answered = items.map((item) => ({
    ...item,
    kind: "completion" as const,
    answer: "I do not know.",
    place: placeOf.get(item.questionId),
  }));
  const fixed = anchors.map((row) => ({
    ...row,
    place: answered.find(({ judgePrompts }) => judgePrompts === row.judgePrompts)?.place,
  }));
  return [...answered, ...fixed];
}

const nameOf = (prompts: JudgePrompts): string =>
  hashJson(prompts as unknown as Json)
    .replace(/^.*:/, "")
    .slice(0, 12);

function promptsOf(questions: readonly AlignmentQuestion[]): Readonly<Record<string, JudgePrompts>> {
  const all = questions.flatMap(({ judgePrompts }) => (judgePrompts === null ? [] : [judgePrompts]));
  return Object.fromEntries(all.map((prompts) => [nameOf(prompts), prompts]));
}

function checkQuestions(questions: readonly AlignmentQuestion[], personas: readonly Persona[]): void {
  const wrong = (got: string, expected: string, fix: string) =>
    configError({ where: alignmentWhere, path: ["personas"], got, expected, fix });
  if (personas.length === 0) return;
  const own = questions.find(({ system }) => system !== null);
  if (own !== undefined) {
    const fix = "Remove the personas, or name a file without the questions that have a `system`.";
    const got = `personas, and the question "${own.id}" with a system prompt`;
    throw wrong(got, "questions without a system prompt", fix);
  }
  const shared = personas.find(({ id }) => questions.some((question) => question.id === id));
  if (shared === undefined) return;
  const got = `the id "${shared.id}", which a question has`;
  throw wrong(got, "ids that no question has", "Rename the persona: both name metrics.");
}

function describe(judge: Grader): { readonly description?: Json } {
  const description = judge.describe?.();
  return description === undefined ? {} : { description };
}

/** Returns the anchors for the provenance: custom ones with their texts, so that they can be graded without the callback. */
const anchorFacts = (anchors: readonly Anchor[]) => ({
  anchors: anchors.length === 0 ? null : hashJson(anchors as unknown as Json),
  custom_anchors: anchors.length === 0 || anchors === defaultAnchors ? null : (anchors as unknown as Json),
});

export function anchorRow({ id, question, answer }: Anchor, judgePrompts: string | null): AnsweredRow {
  return {
    id: `anchor/${id}`,
    kind: "anchor",
    item: `anchor/${id}`,
    questionId: id,
    question,
    persona: null,
    sample: 0,
    judgePrompts,
    text: answer,
    answer,
    finish: "stop",
  };
}

/** Returns the error for rows of which a judge could not grade enough; null otherwise. */
export function failureOf(rows: readonly AlignmentRow[], maxErrorShare: number): PeriodicEvalError | null {
  const judged = rows.filter((row) => isCompletion(row) && row.status !== "unfinished");
  const ungraded = judged.filter(isUngraded);
  if (ungraded.length <= maxErrorShare * judged.length) return null;
  const errors = ungraded.filter(({ status }) => status === "error");
  const cut = ungraded.filter(({ status }) => status === "cut").length;
  const unparsed = ungraded.length - errors.length - cut;
  const first = (errors[0] ?? ungraded[0]!).raw ?? "nothing";
  const kinds = `${errors.length} failures, ${unparsed} replies that cannot be parsed${cut === 0 ? "" : `, ${cut} replies that were cut off`}`;
  return judgeError(
    "alignment",
    `no score for ${ungraded.length} of ${judged.length} completions (${kinds}; for example: ${shortMessage(first)})`,
    `at most ${100 * maxErrorShare} %`,
    `${cut === 0 ? "" : "Choose a judge that does not think, or raise its maxReplyTokens. "}Read the rows' \`raw\`, correct the judge, and grade the stored rows again with \`npx periodic-eval rejudge --heal\`. Replies that cannot be parsed are kept in the judge's cache: delete it first.`,
  );
}
