import type {
  Abilities,
  Awaitable,
  CallOptions,
  Completion,
  EvaluableModel,
  GenerateRequest,
  Json,
  Message,
  ModelIdentity,
  TemplateKwargs,
  Usage,
} from "@periodic-eval/core";
import { integerFromZero, modelError, parseContent } from "@periodic-eval/contracts/options";
import * as z from "zod";

/** A chat for an engine function. */
export interface EnginePrompt {
  /** Begins with the system message, if there is one; the last message is the user's. */
  readonly messages: readonly Message[];
  /** Variables for the chat template, such as `enable_thinking`. */
  readonly templateKwargs?: TemplateKwargs;
}

/** The sampling of one call of an engine function. */
export interface EngineSampling {
  readonly maxNewTokens: number;
  /** 0 decodes greedily. */
  readonly temperature: number;
  /** One per prompt: names the random stream of its completion. */
  readonly seeds: readonly string[];
  readonly signal: AbortSignal;
}

/** A completion of an engine. Fields that it leaves out are unknown. */
export type EngineCompletion = Pick<Completion, "text"> & {
  readonly [Field in "ids" | "tokenNats" | "finish"]?: Completion[Field] | null;
} & { readonly usage?: Partial<Usage> | null };

/** Returns one completion per prompt, in order: a string, or an object with `text`. */
export type EngineFunction = (
  prompts: readonly EnginePrompt[],
  sampling: EngineSampling,
) => Awaitable<readonly (string | EngineCompletion)[]>;

/** A model, or any object with `generate`. */
export type EngineObject = Partial<Omit<EvaluableModel, "generate" | "identity">> & {
  readonly identity?: Partial<ModelIdentity>;
  generate(
    requests: readonly GenerateRequest[],
    options: CallOptions,
  ): Awaitable<readonly (string | EngineCompletion)[]>;
};

/** Generates a benchmark's completions instead of the measured model. */
export type BenchmarkEngine = EngineFunction | EngineObject;

/** A completion whose end may be unknown. */
export type AnsweredCompletion = Omit<Completion, "finish"> & {
  readonly finish: Completion["finish"] | null;
};

/** An engine, or the measured model: it generates a benchmark's completions. */
export interface CompletionModel
  extends Partial<Pick<Abilities, "tokenizer">>, Pick<EvaluableModel, "contextLength" | "check"> {
  readonly identity: ModelIdentity;
  generate(
    requests: readonly GenerateRequest[],
    options: CallOptions,
  ): Promise<readonly AnsweredCompletion[]>;
}

export const isEngine = (value: unknown): boolean =>
  typeof value === "function" || typeof (value as Partial<EngineObject> | null)?.generate === "function";

/**
 * Returns an engine as a model that checks its replies: `generate` throws `model` unless each prompt has a completion with a
 * text.
 */
export function openEngine(engine: BenchmarkEngine): CompletionModel {
  const isFunction = typeof engine === "function";
  const parts: Partial<EngineObject> = isFunction ? {} : engine;
  const identityOf = (): ModelIdentity => ({
    name: (isFunction && engine.name) || "engine",
    engine: "custom",
    dtype: "unknown",
    weights: null,
    adapter: null,
    ...parts.identity,
  });
  const { tokenizer } = parts;
  return {
    get identity() {
      return identityOf();
    },
    get contextLength() {
      return parts.contextLength ?? null;
    },
    ...(tokenizer && { tokenizer }),
    ...(parts.check && { check: (call) => parts.check!(call) }),
    async generate(requests, call) {
      const replies = isFunction
        ? await engine(requests.map(promptOf), samplingOf(requests, call))
        : await engine.generate(requests, call);
      return completionsOf(replies, requests.length, identityOf().name);
    },
  };
}

/** Returns the name, software and settings of an engine, for provenance. Its weights may change from step to step. */
export function engineFacts({ identity }: CompletionModel): Json {
  const { weights: _, ...facts } = identity;
  return JSON.parse(JSON.stringify(facts)) as Json;
}

function promptOf({ prompt }: GenerateRequest): EnginePrompt {
  if (!("messages" in prompt)) throw new Error("Benchmarks ask in chats.");
  const { messages, system, templateKwargs } = prompt;
  const first = typeof system === "object" ? [{ role: "system", content: system.text }] : [];
  return { messages: [...first, ...messages], ...(templateKwargs && { templateKwargs }) };
}

/** All requests of a measurement have the same limits. */
function samplingOf(requests: readonly GenerateRequest[], { signal }: CallOptions): EngineSampling {
  const { maxNewTokens, temperature } = requests[0]!.sampling;
  return { maxNewTokens, temperature, seeds: requests.map(({ sampling }) => sampling.seed), signal };
}

const tokenCount = integerFromZero.nullable().default(null);
const completionSchema = z.object(
  {
    text: z.string("a string"),
    ids: z.array(integerFromZero, "an array of token ids").nullable().default(null),
    tokenNats: z.array(z.number("a number"), "an array of numbers").nullable().default(null),
    finish: z.enum(["stop", "length"]).nullable().default(null),
    usage: z
      .object({ inputTokens: tokenCount, outputTokens: tokenCount }, "{ inputTokens, outputTokens }")
      .nullish(),
  },
  "a string, or an object with `text`",
);
const replySchema = z.preprocess(
  (reply) => (typeof reply === "string" ? { text: reply } : reply),
  completionSchema,
);
const repliesSchema = z.object({ completions: z.array(replySchema, "an array of completions") });

function completionsOf(replies: unknown, prompts: number, engine: string): readonly AnsweredCompletion[] {
  const where = `engine "${engine}"`;
  const fix = "Return one completion per prompt, in order: its text, or { text, finish, ids, usage }.";
  const details = { code: "model", where, fix } as const;
  const { completions } = parseContent(repliesSchema, { completions: replies }, details);
  if (completions.length !== prompts)
    throw modelError(
      where,
      `${completions.length} completions for ${prompts} prompts`,
      "one per prompt",
      fix,
    );
  return completions.map(({ usage, ...completion }) => ({ ...completion, ...(usage && { usage }) }));
}
