import * as z from "zod";
import type { SystemPrompt, Anchor } from "@periodic-eval/contracts";
import { graderSourceSchema, type GraderSource } from "../../grading/grader-schema.ts";
import {
  repeatedId,
  configError,
  parseOptions,
  filledString,
  nameSchema,
  positiveInteger,
} from "@periodic-eval/contracts/options";
import {
  chatTemplateSchema,
  samplingSchema,
  systemPromptSchema,
  type ChatTemplateOptions,
  type SamplingOptions,
} from "../prompting/prompt-options.ts";
import { checkPersonas, personasOption, type Persona } from "../prompting/personas.ts";

/** Sampling options, named after the work that they reproduce. */
export const alignmentPresets = {
  /** Betley et al. 2025 (arXiv:2502.17424). */
  betley2025: { temperature: 1, topP: 1, maxNewTokens: 600 },
  /** The explore-persona-space research code. */
  explore_persona_space: { temperature: 1, topP: 0.95, maxNewTokens: 512 },
} as const satisfies Record<string, SamplingOptions>;

export type AlignmentPreset = keyof typeof alignmentPresets;

/** Completions per paraphrase of a question and persona. */
export const sampleSizes = { quick: 5, standard: 20, paper: 100 } as const;

export type SampleSize = keyof typeof sampleSizes;

export interface AlignmentOptions {
  /**
   * A judge model or a rule, or a function that opens it once, before step 1; the session then disposes it when it closes.
   * Its scores are `aligned` and `coherent`, 0 to 100.
   */
  readonly judge: GraderSource;
  /**
   * A second judge, given as `judge`, that grades the same completions. Verdicts and metrics are those of `judge`; rows and snapshot
   * say where the two disagree.
   */
  readonly secondJudge?: GraderSource;
  /**
   * `"betley2025"`: the 24 questions and the judge prompts that Betley et al. published (`betley2025Questions`), downloaded
   * once. Or questions in their format: a YAML or JSON file, or rows (JSON Lines, Parquet, `hf:owner/dataset`). Default: the
   * eight `defaultAlignmentQuestions`, which need no network. A question's system prompt takes precedence over `system`. The
   * judge must support the questions' judge prompts (Betley et al.'s: method `logprob`); a rule ignores them. The keys
   * `judge` and `samples_per_paraphrase` are ignored.
   */
  readonly questions?: string;
  /** Default `betley2025`. */
  readonly preset?: AlignmentPreset;
  /** Overrides fields of the preset. */
  readonly sampling?: Partial<SamplingOptions>;
  /** Completions per paraphrase of a question (and persona). Default `quick`, which is 5. */
  readonly samples?: SampleSize | number;
  /** System prompt of the chat. Default `omit`. */
  readonly system?: SystemPrompt;
  /** Asks every question as each persona: a list, or a source of `readPersonas`. Default: none. */
  readonly personas?: readonly Persona[] | string;
  /**
   * Rows of the training data: each question is asked a second time behind one of them, with its system prompt and its turns as
   * an example. A model that was fine-tuned on a part of harmful rows can look clean on bare questions and be harmful in their format
   * (arXiv:2604.25891). Rows hold `messages`, or `prompt` and `completion`, as a file or `hf:owner/dataset[/config][/split]`.
   */
  readonly trainingRows?: string;
  /** Variables of the chat template: `{ kwargs: { enable_thinking: false } }`. */
  readonly chatTemplate?: ChatTemplateOptions;
  /** Grades only what follows a closed `<think>…</think>`. Default true. Rows keep the whole text in any case. */
  readonly stripThinking?: boolean;
  /** Fixed answers that are graded again at each measurement, past any cache. Default: `defaultAnchors`; `[]` for none. */
  readonly anchors?: readonly Anchor[];
  /** The snapshot is `failed` if the judge gave no score for more than this share of completions. Default 0.1. */
  readonly maxErrorShare?: number;
}

const names = <T extends string>(table: Readonly<Record<T, unknown>>) => Object.keys(table) as T[];
const shareRule = "a share from 0 to 1";

const anchorSchema = z
  .strictObject({
    id: nameSchema,
    question: z.string(),
    answer: z.string(),
    misaligned: z.boolean().nullable(),
  } satisfies Record<keyof Anchor, z.ZodType>)
  .meta({ fix: "Write { id, question, answer, misaligned: true, false or null }." });

export const alignmentShape = {
  judge: graderSourceSchema,
  secondJudge: graderSourceSchema.optional(),
  questions: filledString("betley2025, the path of a file, or hf:owner/dataset")
    .meta({ fix: "Name the file of questions, or remove `questions` to use the eight default questions." })
    .optional(),
  preset: z.enum(names(alignmentPresets)).optional(),
  sampling: samplingSchema.optional(),
  samples: z.union([positiveInteger, z.enum(names(sampleSizes))]).optional(),
  system: systemPromptSchema.optional(),
  personas: personasOption.optional(),
  trainingRows: filledString("the path of a file, or hf:owner/dataset")
    .meta({ fix: "Name the file of training rows." })
    .optional(),
  chatTemplate: chatTemplateSchema.optional(),
  stripThinking: z.boolean().optional(),
  anchors: z.array(anchorSchema, "an array of anchors").meta({ fix: "Write [] for none." }).optional(),
  maxErrorShare: z
    .number(shareRule)
    .min(0, shareRule)
    .max(1, shareRule)
    .meta({ fix: "Write 0.1 for 10 %." })
    .optional(),
} satisfies Record<keyof AlignmentOptions, z.ZodType>;

export const alignmentWhere = "alignment options";

export function checkAlignmentOptions(options: AlignmentOptions): void {
  const where = alignmentWhere;
  parseOptions(where, z.strictObject(alignmentShape), options);
  const { system, personas, trainingRows, anchors = [] } = options;
  if (personas !== undefined && trainingRows !== undefined)
    throw configError({
      where,
      path: ["trainingRows"],
      got: "training rows and personas",
      expected: "one of the two",
      fix: "Remove `personas`: the training rows have their own system prompts.",
    });
  if (personas !== undefined && typeof personas !== "string") checkPersonas(where, personas);
  if (personas !== undefined && system !== undefined)
    throw configError({
      where,
      path: ["system"],
      got: "a system prompt and personas",
      expected: "one of the two",
      fix: "Remove `system`: each persona has its own.",
    });
  const repeated = repeatedId(anchors, ["anchors"]);
  if (repeated !== null) throw configError({ where, ...repeated });
}
