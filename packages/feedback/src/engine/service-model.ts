import type {
  CallOptions,
  Completion,
  EvaluableModel,
  GenerateRequest,
  Json,
  LogLikelihood,
  LogLikelihoodRequest,
  Sampling,
} from "@periodic-eval/core";
import { isCount, isNats, natsTolerance, quoteValue } from "@periodic-eval/core/internal";
import { canonicalJson } from "@periodic-eval/core/random";
import {
  at,
  chatOf,
  completionOf,
  isString,
  arrayOrNull,
  seedNumber,
  trackCall,
  totalTokens,
  usageOf,
  type JsonService,
  type ServedChat,
  type TrackedCall,
} from "@periodic-eval/remote";
import pLimit from "p-limit";
import type { ServiceFacts } from "./service-facts.ts";
import { unscoredError } from "../metrics/unscored.ts";

export interface ServiceModelParts {
  /** Name of the model in requests. */
  readonly name: string;
  readonly service: JsonService;
  /** Receives chat requests. Null: the service receives them. */
  readonly gateway: JsonService | null;
  readonly facts: ServiceFacts;
  readonly adapter: string | null;
}

/** A model that a service runs. Metrics use it. */
export interface ServiceModel extends EvaluableModel {
  /** Does the same as `generate`, with the ids and log p of the sampled tokens if the server returns them. */
  traced(requests: readonly GenerateRequest[], options: CallOptions): Promise<readonly Completion[]>;
  readonly generate: NonNullable<EvaluableModel["generate"]>;
}

/** Maximum number of concurrent requests to a server that does not accept batches. */
const concurrency = 8;

type Fields = { readonly [field: string]: Json };

export function serviceModel({ name, service, gateway, facts, adapter }: ServiceModelParts): ServiceModel {
  const chats = gateway ?? service;
  const batches = facts.extensions.has("batch");
  const limit = pLimit(concurrency);
  const where = `${name} at ${chats.url}`;
  const isClaas = facts.wire === "claas";
  const chatModel = isClaas && gateway !== null ? gatewayAgent : name;
  /** A CLaaS service trains only answers to a conversation with a system message. Its gateway adds one itself. */
  const messagesOf = (chat: ServedChat, isBehindGateway: boolean): Json =>
    plain(isClaas && !isBehindGateway ? withSystem(chat.messages) : chat.messages);

  async function complete(
    requests: readonly GenerateRequest[],
    { signal, countTokens, send }: TrackedCall,
    traces: boolean,
  ): Promise<readonly Completion[]> {
    const chatRequests = requests.map(({ prompt, sampling }) => ({ chat: chatOf(where, prompt), sampling }));
    const ask = async (path: string, body: Fields, count: number) => {
      const traceFields = { logprobs: true, return_token_ids: true };
      const whole = { model: chatModel, ...body, ...(traces && !isClaas && traceFields) };
      const reply = await send(() => chats.ask(path, whole, signal));
      const tokens = totalTokens(usageOf(reply, "prompt_tokens", "completion_tokens"));
      if (tokens !== null) countTokens?.(tokens);
      return Array.from({ length: count }, (_, index) => completionOf(reply, where, { index }));
    };
    if (gateway === null && batches) return completeGroups(chatRequests, ask);
    const one = async ({ chat, sampling }: ChatRequest): Promise<Completion> => {
      const seed =
        facts.extensions.has("named_seeds") && gateway === null ? sampling.seed : seedNumber(sampling.seed);
      const body = {
        messages: messagesOf(chat, gateway !== null),
        ...fieldsOf(chat, sampling),
        ...(!isClaas && { seed }),
      };
      const [answer] = await ask("v1/chat/completions", body, 1);
      return isClaas ? withFinish(answer!, sampling) : answer!;
    };
    return Promise.all(chatRequests.map((request) => limit(() => one(request))));
  }

  async function logLikelihoods(
    requests: readonly LogLikelihoodRequest[],
    { signal, send }: TrackedCall,
  ): Promise<readonly LogLikelihood[]> {
    if (requests.length === 0) return [];
    const bodies = requests.map((request) => scoredOf(where, request, (chat) => messagesOf(chat, false)));
    const ask = (body: Fields) => send(() => service.ask("v1/score", { model: name, ...body }, signal));
    if (batches) {
      const reply = await ask({ requests: bodies });
      return bodies.map((body, index) => scoreOf(at(reply, "results", index), service.url, body));
    }
    return Promise.all(bodies.map((body) => limit(async () => scoreOf(await ask(body), service.url, body))));
  }

  return {
    identity: {
      name,
      engine: `http at ${new URL(service.url).host}`,
      dtype: "unknown",
      weights: null,
      adapter,
    },
    contextLength: null,
    isServed: true,
    generate: (requests, options) => trackCall(options, (call) => complete(requests, call, false)),
    traced: (requests, options) => trackCall(options, (call) => complete(requests, call, true)),
    ...(facts.canScore && {
      logLikelihoods: (requests: readonly LogLikelihoodRequest[], options: CallOptions) =>
        trackCall(options, (call) => logLikelihoods(requests, call)),
    }),
    ...(facts.extensions.has("entropies") && {
      textEntropies: (texts: readonly string[], options: CallOptions) =>
        trackCall(options, async ({ send, signal }) => {
          const body = { model: name, entropies_of: [...texts] };
          const reply = await send(() => service.ask("v1/score", body, signal));
          return texts.map((_, index) => numbersOf(reply, service.url, entropies, "entropies", index));
        }),
    }),
  };
}

/** Sends one batch request per group of requests with equal fields. Returns completions in the order of `chatRequests`. */
async function completeGroups(
  chatRequests: readonly ChatRequest[],
  ask: (path: string, body: Fields, count: number) => Promise<readonly Completion[]>,
): Promise<readonly Completion[]> {
  const answers = new Map<ChatRequest, Completion>();
  for (const group of groupsOf(chatRequests)) {
    const { chat, sampling } = group[0]!;
    const body = {
      messages: group.map((one) => plain(one.chat.messages)),
      ...fieldsOf(chat, sampling),
      seeds: group.map((one) => one.sampling.seed),
    };
    const completions = await ask("v1/chat/completions/batch", body, group.length);
    group.forEach((one, index) => answers.set(one, completions[index]!));
  }
  return chatRequests.map((one) => answers.get(one)!);
}

interface ChatRequest {
  readonly chat: ServedChat;
  readonly sampling: Sampling;
}

/** The name under which OpenClaw, the gateway of CLaaS, answers. */
const gatewayAgent = "openclaw";

/** Adds a system message to a conversation without one. */
const withSystem = (messages: ServedChat["messages"]): ServedChat["messages"] =>
  messages.some(({ role }) => role === "system")
    ? messages
    : [{ role: "system", content: "You are a helpful assistant." }, ...messages];

/** A CLaaS service reports `stop` for every answer, so the number of tokens shows whether the answer was cut off. */
const withFinish = (answer: Completion, { maxNewTokens }: Sampling): Completion =>
  (answer.usage?.outputTokens ?? 0) >= maxNewTokens ? { ...answer, finish: "length" } : answer;

const plain = (messages: ServedChat["messages"]): Json =>
  messages.map(({ role, content }) => ({ role, content }));

function fieldsOf(
  { templateKwargs }: ServedChat,
  { maxNewTokens, temperature, topP, topK, stop, topTokens }: Sampling,
): Fields {
  return {
    max_tokens: maxNewTokens,
    temperature,
    ...(topP !== undefined && { top_p: topP }),
    ...(topK !== undefined && { top_k: topK }),
    ...(stop !== undefined && { stop: [...stop] }),
    ...(topTokens !== undefined && { logprobs: true, top_logprobs: topTokens }),
    ...(templateKwargs !== null && { chat_template_kwargs: { ...templateKwargs } }),
  };
}

/** Groups requests that differ only in messages and seed. One batch request can hold such a group. */
function groupsOf(chatRequests: readonly ChatRequest[]): Iterable<readonly ChatRequest[]> {
  const groups = new Map<string, ChatRequest[]>();
  for (const one of chatRequests) {
    const key = canonicalJson(fieldsOf(one.chat, one.sampling));
    const group = groups.get(key);
    if (group === undefined) groups.set(key, [one]);
    else group.push(one);
  }
  return groups.values();
}

function scoredOf(
  where: string,
  { context, continuation }: LogLikelihoodRequest,
  messagesOf: (chat: ServedChat) => Json,
): Fields {
  const completion =
    typeof continuation === "string"
      ? { completion: continuation }
      : { completion_token_ids: [...continuation.ids] };
  if ("text" in context) return { prompt: context.text, ...completion };
  if ("ids" in context) return { prompt_token_ids: [...context.ids], ...completion };
  const chat = chatOf(where, context);
  const { templateKwargs } = chat;
  return {
    messages: messagesOf(chat),
    ...completion,
    ...(templateKwargs !== null && { chat_template_kwargs: { ...templateKwargs } }),
  };
}

function scoreOf(result: unknown, url: string, { completion }: Fields): LogLikelihood {
  const tokenNats = numbersOf(result, url, logProbs, "logprobs");
  // A sum over no token is 0, which would look like a certain answer.
  if (tokenNats.length === 0 && isString(completion) && completion !== "")
    throw unscoredError(url, "a reply with an empty array of logprobs for a text");
  const isGreedy = at(result, "is_greedy");
  const greedy = arrayOrNull(at(result, "token_is_greedy"));
  const isComplete = greedy?.length === tokenNats.length;
  const truncated = at(result, "truncated_tokens");
  return {
    sumNats: tokenNats.reduce((total, nats) => total + nats, 0),
    tokenNats,
    isGreedy: typeof isGreedy === "boolean" ? isGreedy : null,
    tokenIsGreedy: isComplete && greedy.every((one) => typeof one === "boolean") ? greedy : null,
    truncatedTokens: isCount(truncated) ? truncated : null,
  };
}

interface NumberRule {
  readonly isValid: (value: unknown) => value is number;
  readonly expected: string;
}

const logProbs: NumberRule = { isValid: isNats, expected: `numbers of at most ${natsTolerance}` };
/** Rounding can move an entropy of 0 as far below 0 as a log-probability above it. */
const entropies: NumberRule = {
  isValid: (value): value is number => Number.isFinite(value) && (value as number) >= -natsTolerance,
  expected: `numbers of at least ${-natsTolerance}`,
};

function numbersOf(
  reply: unknown,
  url: string,
  { isValid, expected }: NumberRule,
  ...path: readonly (string | number)[]
): readonly number[] {
  const value = at(reply, ...path);
  const list = arrayOrNull(value);
  if (list?.every(isValid)) return list;
  const name = path.join(".");
  throw unscoredError(
    url,
    value === undefined
      ? `a reply without ${name}`
      : `a reply with ${quoteValue(value, 60)} for ${name}, which is not an array of ${expected}`,
  );
}
