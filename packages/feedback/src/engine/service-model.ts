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
import { isCount, isNats, natsTolerance, quoteValue } from "@periodic-eval/contracts/options";
import {
  at,
  chatOf,
  completionOf,
  isString,
  arrayOrNull,
  trackCall,
  totalTokens,
  usageOf,
  type JsonService,
  type ServedChat,
  type TrackedCall,
} from "@periodic-eval/remote";
import pLimit from "p-limit";
import type { ServiceFacts } from "./service-facts.ts";
import { unscoredError } from "../metrics/collapse-reference.ts";

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
  readonly generate: NonNullable<EvaluableModel["generate"]>;
}

/** Maximum number of concurrent requests to a service. */
const concurrency = 8;

type Fields = { readonly [field: string]: Json };

export function serviceModel({ name, service, gateway, facts, adapter }: ServiceModelParts): ServiceModel {
  const chats = gateway ?? service;
  const limit = pLimit(concurrency);
  const where = `${name} at ${chats.url}`;
  const chatModel = gateway === null ? name : gatewayAgent;
  /** A CLaaS service trains only answers to a conversation with a system message. Its gateway adds one itself. */
  const messagesOf = (chat: ServedChat, isBehindGateway: boolean): Json =>
    plain(isBehindGateway ? chat.messages : withSystem(chat.messages));

  async function complete(
    requests: readonly GenerateRequest[],
    { signal, countTokens, send }: TrackedCall,
  ): Promise<readonly Completion[]> {
    const answerTo = async ({ prompt, sampling }: GenerateRequest): Promise<Completion> => {
      const chat = chatOf(where, prompt);
      const body = {
        model: chatModel,
        messages: messagesOf(chat, gateway !== null),
        ...fieldsOf(chat, sampling),
      };
      const reply = await send(() => chats.ask("v1/chat/completions", body, signal));
      const tokens = totalTokens(usageOf(reply, "prompt_tokens", "completion_tokens"));
      if (tokens !== null) countTokens?.(tokens);
      return withFinish(completionOf(reply, where), sampling);
    };
    return Promise.all(requests.map((request) => limit(() => answerTo(request))));
  }

  async function logLikelihoods(
    requests: readonly LogLikelihoodRequest[],
    { signal, send }: TrackedCall,
  ): Promise<readonly LogLikelihood[]> {
    const bodies = requests.map((request) => scoredOf(where, request, (chat) => messagesOf(chat, false)));
    const ask = (body: Fields) => send(() => service.ask("v1/score", { model: name, ...body }, signal));
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
    generate: (requests, options) => trackCall(options, (call) => complete(requests, call)),
    ...(facts.canScore && {
      logLikelihoods: (requests: readonly LogLikelihoodRequest[], options: CallOptions) =>
        trackCall(options, (call) => logLikelihoods(requests, call)),
    }),
  };
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
  const tokenNats = logProbsOf(result, url);
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
    tokenIsGreedy: isComplete && greedy.every((flag) => typeof flag === "boolean") ? greedy : null,
    truncatedTokens: isCount(truncated) ? truncated : null,
  };
}

/** @throws PeriodicEvalError for a reply without log-probabilities. */
function logProbsOf(reply: unknown, url: string): readonly number[] {
  const value = at(reply, "logprobs");
  const list = arrayOrNull(value);
  if (list?.every(isNats)) return list;
  throw unscoredError(
    url,
    value === undefined
      ? "a reply without logprobs"
      : `a reply with ${quoteValue(value, 60)} for logprobs, which is not an array of numbers of at most ${natsTolerance}`,
  );
}
