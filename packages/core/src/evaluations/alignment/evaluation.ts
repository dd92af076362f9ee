import type {
  AnyEvaluation,
  MeasureContext,
  ModelWith,
  MetricKit,
  Grader,
  Json,
  CallOptions,
  Anchor,
  SystemPrompt,
} from "@periodic-eval/contracts";
import { atOption, codeOption } from "@periodic-eval/contracts/options";
import { graderFacts, graderOf } from "../../grading/grader-schema.ts";
import { defaultErrorShare } from "../../grading/open-rows.ts";
import { defineEvaluation } from "../kit/define.ts";
import { measureInBatches } from "../kit/measure-in-batches.ts";
import { everyItem, nestedSubset } from "../kit/subset.ts";
import { withFaults } from "../prompting/coherence.ts";
import { resolveSampling } from "../prompting/prompt-options.ts";
import {
  completionItemsPerBatch,
  promptTexts,
  renderItems,
  sampleCompletions,
} from "../prompting/completions.ts";
import { readPersonas, type Persona } from "../prompting/personas.ts";
import { defaultAnchors, anchorFacts, anchorRow } from "./anchors.ts";
import {
  alignmentFailure,
  checkJudgeFor,
  checkLengthFor,
  judgeOpenRows,
  selectJudgePrompts,
  type Judged,
  withSecondVerdicts,
} from "./judge-rows.ts";
import {
  alignmentFields,
  alignmentMetrics,
  alignmentPlainKeys,
  alignmentWarnings,
  isCompletion,
  thresholds,
  type AlignmentItem,
  type AlignmentRow,
  type AnsweredRow,
} from "./metrics.ts";
import { alignmentPresets, checkAlignmentOptions, sampleSizes, type AlignmentOptions } from "./options.ts";
import { readAlignmentQuestions, type JudgePrompts } from "@periodic-eval/data";
import { readTrainingExamples } from "./training-rows.ts";
import { itemsOf, answeredRows, trialsOf, promptsOf, checkQuestions } from "./items.ts";

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
  const { preset = "betley2025", samples: size = "quick" } = options;
  const judges = [options.judge, ...(options.secondJudge ? [options.secondJudge] : [])].map((judge) =>
    graderOf(judge, "judge"),
  );
  const [judging, secondJudging = null] = judges as [(typeof judges)[number], (typeof judges)[number]?];
  const { stripThinking = true, maxErrorShare = defaultErrorShare, trainingRows } = options;
  const sampling = resolveSampling("alignment options.sampling", options.sampling, alignmentPresets[preset]);
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
      const [judge, second] = await Promise.all(judges.map((grader) => grader.open()));
      const asked = await readItems(options, judge!);
      const { items, questions, selected } = asked;
      anchors = options.anchors ?? judge!.anchors ?? defaultAnchors;
      prompts = selected ?? {};
      trials = trialsOf(items, questions, anchorRows());
      await checkJudges([judge!, ...(second ? [second] : [])], trials, prompts);
      provenance = {
        ...asked.provenance,
        preset,
        sampling: { ...sampling },
        samples: typeof size === "string" ? { name: size, n: samples } : { name: null, n: samples },
        template_kwargs: options.chatTemplate?.kwargs ?? null,
        strip_thinking: stripThinking,
        judge: graderFacts(judge!),
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
    ...(judges.some(({ mayCheck }) => mayCheck) && {
      async check(call: CallOptions) {
        for (const judge of judges) await checkJudgeFor(trials, { judge: await judge.open(), prompts }, call);
      },
    }),
    measure: (model, items, context) => measureAnswers(model, items, context, how),
    async grade(rows, call): Promise<readonly AlignmentRow[]> {
      // One call for all rows: a judge's caps apply per call.
      const all = [...withFaults(rows.filter(isCompletion)), ...anchorRows()];
      const graded = await judgeOpenRows(all, { judge: await judging.open(), prompts }, call);
      if (secondJudging === null) return graded;
      return withSecondVerdicts(graded, { judge: await secondJudging.open(), prompts }, call);
    },
    failure: (rows) => alignmentFailure(rows, maxErrorShare),
    answers: alignmentFields,
    metrics: (kit: MetricKit<AlignmentRow>) =>
      alignmentMetrics(kit, { anchors, hasTrainingFormat: trainingRows !== undefined }),
    warnings: alignmentWarnings,
    plainKeys: (metrics, rows) =>
      alignmentPlainKeys(metrics, rows, {
        judge: judging.opened().name,
        anchors,
        secondJudge: secondJudging?.opened() ?? null,
      }),
    async close() {
      for (const judge of judges) await judge.close();
    },
  });
}

/** Checks that each judge supports the prompts, and that the longest trial fits its context. */
async function checkJudges(
  judges: readonly Grader[],
  trials: readonly Judged[],
  prompts: Readonly<Record<string, JudgePrompts>>,
): Promise<void> {
  for (const judge of judges) {
    selectJudgePrompts(judge, prompts);
    await checkLengthFor(trials, { judge, prompts });
  }
}

/** Reads questions, personas and training rows, and returns the items in the order in which a smaller budget takes them. */
async function readItems(
  { questions: source, system = "omit", personas, trainingRows, chatTemplate }: AlignmentOptions,
  judge: Grader,
) {
  const option = codeOption("alignment", "questions");
  const { questions, provenance } = await atOption(option, () => readAlignmentQuestions(source, option));
  const people = typeof personas === "string" ? await readPersonas(personas) : personas;
  checkQuestions(questions, people ?? []);
  const selected = selectJudgePrompts(judge, promptsOf(questions));
  const training = trainingRows === undefined ? null : await readTrainingExamples(trainingRows);
  let next = 0;
  const nextExample = training && (() => training.examples[next++ % training.examples.length]!);
  const how = { system, personas: people, kwargs: chatTemplate?.kwargs, nextExample };
  const wordings = questions.flatMap((question) =>
    itemsOf(selected === null ? { ...question, judgePrompts: null } : question, how),
  );
  const roles = { ...rolesOf(system, people), ...(training && { training_rows: training.provenance }) };
  return {
    items: nestedSubset(wordings, everyItem).flat(),
    questions,
    selected,
    provenance: { ...provenance, ...roles },
  };
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

/** Returns who was asked, for the provenance. */
const rolesOf = (system: SystemPrompt, people: readonly Persona[] | undefined) => ({
  system: people === undefined ? system : null,
  personas: people === undefined ? null : people.map(({ id, system: prompt }) => ({ id, system: prompt })),
});
