import { createServer, type IncomingMessage, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { isRecord } from "@periodic-eval/contracts/options";
import * as z from "zod";

/** A request that the double received. */
export interface ClaasRequest {
  readonly path: string;
  readonly body: Readonly<Record<string, unknown>>;
}

export interface ClaasDoubleOptions {
  /** Returns the answer to the user's last message, after a number of gradient steps. */
  readonly answer: (prompt: string, steps: number) => string;
  /** Returns log p of each token of a completion, in nats; tokens are words. Default: −1 per word. */
  readonly logProbs?: (prompt: string, completion: string, steps: number) => readonly number[];
  /** The fields of `distill_result.metadata`. Null: the reply has no `distill_result`. */
  readonly metadata?: (steps: number) => Readonly<Record<string, unknown>> | null;
  /** Models that `/v1/lora/init` accepts as `base_model`. Default: all. */
  readonly baseModels?: readonly string[];
  /**
   * Returns the fault with which a request is answered; null for none. `drop` closes the connection after the request was carried
   * out; a status is returned without carrying it out.
   */
  readonly fault?: (request: ClaasRequest, nth: number) => "drop" | number | null;
  /** Returns the body to send instead of the reply's, for replies that lack a field. Default: the reply's. */
  readonly rewrite?: (request: ClaasRequest, body: unknown) => unknown;
}

export interface ClaasDouble {
  readonly url: string;
  readonly received: readonly ClaasRequest[];
  /** Returns the gradient steps that an adapter made, which a real service does not report. */
  steps(loraId: string): number;
  close(): Promise<void>;
}

/**
 * Starts a scripted double of CLaaS on 127.0.0.1, for tests without a GPU: the routes, fields and status codes that
 * github.com/kfallah/CLaaS publishes (commit 34fa060), without a model. As there, an answer is trained only if the service gave it
 * to a conversation with a system message, a repeated request trains again, and no reply has the number of updates.
 */
export async function claasDouble(options: ClaasDoubleOptions): Promise<ClaasDouble> {
  const received: ClaasRequest[] = [];
  const state: State = { steps: new Map(), system: new Map() };
  const server = createServer((message, response) => {
    void bodyOf(message).then((body) => {
      const { pathname: path, searchParams } = new URL(message.url!, "http://double");
      const request = { path, body };
      received.push(request);
      const nth = received.filter((call) => call.path === path).length;
      const fault = options.fault?.(request, nth) ?? null;
      const route = routes[`${message.method} ${path}`];
      const reply =
        typeof fault === "number"
          ? failed(fault, "a fault of the test")
          : (route?.(body, { options, state, prefix: searchParams.get("prefix") ?? "" }) ??
            failed(404, "Not Found"));
      if (fault === "drop") return void message.socket.destroy();
      response
        .writeHead(reply.status, { "content-type": "application/json" })
        .end(
          JSON.stringify(options.rewrite === undefined ? reply.body : options.rewrite(request, reply.body)),
        );
    });
  });
  await new Promise<void>((done) => server.listen(0, "127.0.0.1", done));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    received,
    steps: (loraId) => state.steps.get(loraId) ?? 0,
    close: () => closed(server),
  };
}

interface State {
  /** Gradient steps by adapter. */
  readonly steps: Map<string, number>;
  /** The system message of each cached answer; empty for an answer without one. */
  readonly system: Map<string, string>;
}

interface Served {
  readonly options: ClaasDoubleOptions;
  readonly state: State;
  readonly prefix: string;
}

interface Reply {
  readonly status: number;
  readonly body: unknown;
}

type Route = (body: ClaasRequest["body"], served: Served) => Reply;

const ok = (body: unknown): Reply => ({ status: 200, body });
const failed = (status: number, detail: unknown): Reply => ({ status, body: { detail } });

const messages = z.array(z.object({ role: z.string(), content: z.string() }));
const init = z.object({ lora_id: z.string(), base_model: z.string().default("Qwen/Qwen3-8B") });
const chat = z.object({ model: z.string().default(""), messages });
const score = z.object({ model: z.string(), messages, completion: z.string() });
const filled = z.string().min(1);
const training = z.object({
  learning_rate: z.number().gt(0).default(3e-5),
  alpha: z.number().min(0).max(1).default(0.5),
  is_clip: z.number().min(1).max(20).default(5),
  max_grad_norm: z.number().min(0).default(1),
  kl_reg_weight: z.number().min(0).max(1).default(0),
  teacher_top_k: z.number().min(10).max(100).default(100),
});
const feedback = z.object({
  requests: z
    .array(
      z.object({
        lora_id: z.string(),
        prompt: filled,
        response: filled,
        feedback: filled,
        training: training.prefault({}),
      }),
    )
    .min(1),
});

/** Calls `work` with a valid body; replies 422 to any other, as FastAPI does. */
const checked =
  <S extends z.ZodType>(schema: S, work: (body: z.output<S>, served: Served) => Reply): Route =>
  (body, served) => {
    const parsed = schema.safeParse(body);
    if (parsed.success) return work(parsed.data, served);
    const detail = parsed.error.issues.map(({ path, message }) => ({ loc: ["body", ...path], msg: message }));
    return failed(422, detail);
  };

const words = (text: string): readonly string[] => text.split(/\s+/).filter((word) => word !== "");
/** The service finds a cached answer by its text, with all white space as single spaces. */
const keyOf = (text: string): string => words(text).join(" ");
const promptOf = (list: z.infer<typeof messages>): string =>
  list.findLast(({ role }) => role === "user")?.content ?? "";
/** An adapter's steps, found by its name or by the name under which the inference server loads it. */
const stepsOf = ({ steps }: State, model: string): number =>
  [...steps].find(([id]) => id === model || id.replaceAll(/[^\w.-]+/g, "-") === model)?.[1] ?? 0;

const routes: Readonly<Record<string, Route>> = {
  "GET /v1/health": () => ok({ status: "healthy", worker: { status: "healthy", error: null } }),

  "GET /v1/lora": (_, { state, prefix }) =>
    ok({ loras: [...state.steps.keys()].filter((id) => id.startsWith(prefix)).sort() }),

  "POST /v1/lora/init": checked(init, ({ lora_id: id, base_model: model }, { options, state }) => {
    if (options.baseModels?.includes(model) === false)
      return failed(403, `base_model '${model}' is not allowed for initialization.`);
    state.steps.set(`${id}-init`, 0);
    return ok({ lora_id: `${id}-init` });
  }),

  "POST /v1/chat/completions": checked(chat, ({ model, messages: list }, { options, state }) => {
    const content = options.answer(promptOf(list), stepsOf(state, model));
    state.system.set(keyOf(content), list.find(({ role }) => role === "system")?.content ?? "");
    const tokens = { prompt_tokens: words(promptOf(list)).length, completion_tokens: words(content).length };
    return ok({
      id: "chatcmpl-double",
      object: "chat.completion",
      created: 0,
      model,
      choices: [{ index: 0, message: { role: "assistant", content }, finish_reason: "stop", logprobs: null }],
      usage: { ...tokens, total_tokens: tokens.prompt_tokens + tokens.completion_tokens },
    });
  }),

  "POST /v1/score": checked(score, ({ model, messages: list, completion }, { options, state }) => {
    const { logProbs = (_: string, text: string) => words(text).map(() => -1) } = options;
    const logprobs = logProbs(promptOf(list), completion, stepsOf(state, model));
    return ok({
      logprobs,
      tokens: words(completion),
      prompt_tokens: words(promptOf(list)).length,
      completion_tokens: logprobs.length,
      logprob_sum: logprobs.reduce((sum, logprob) => sum + logprob, 0),
    });
  }),

  "POST /v1/feedback": checked(feedback, ({ requests }, { options, state }) => {
    const loraId = requests[0]!.lora_id;
    if (requests.some((request) => request.lora_id !== loraId))
      return failed(400, "all requests must use the same lora_id");
    for (const { response } of requests) {
      const system = state.system.get(keyOf(response));
      if (system === undefined) return failed(404, "No cached completion");
      if (system === "") return failed(422, "Cached completion has no system prompt");
    }
    if (!state.steps.has(loraId)) return failed(404, `LoRA not found: ${loraId}`);
    const steps = state.steps.get(loraId)! + 1;
    state.steps.set(loraId, steps);
    const { metadata = defaultMetadata } = options;
    const distilled = metadata(steps);
    return ok({
      status: "ok",
      request_id: `request-${steps}`,
      lora_id: loraId,
      distill_result: distilled && {
        lora_id: loraId,
        metadata: { ...distilled, batch_size: requests.length },
      },
      vllm: { slept: true, woke: true },
      feedback_log_path: "",
      timing_ms: { sleep: 0, distill: 1, save: 0, wake: 0, logprobs: 0, total: 1 },
      batch_size: requests.length,
    });
  }),
};

const defaultMetadata = (steps: number) => ({
  total_loss: 1 / steps,
  distill_loss: 1 / steps,
  kl_reg: 0,
  mean_is_ratio: 1,
  clip_fraction: 0,
  grad_norm: 0.5,
  tokens_processed: 100,
});

async function bodyOf(message: IncomingMessage): Promise<ClaasRequest["body"]> {
  const chunks: Buffer[] = [];
  for await (const chunk of message) chunks.push(chunk as Buffer);
  const body: unknown = chunks.length === 0 ? {} : JSON.parse(Buffer.concat(chunks).toString());
  return isRecord(body) ? body : {};
}

const closed = (server: Server): Promise<void> =>
  new Promise((done) => {
    server.close(() => done());
    server.closeAllConnections();
  });
