import type { EvaluableModel, OpenCheckpoint, Tokenizer } from "@periodic-eval/core";
import { parseOptions } from "@periodic-eval/contracts/options";
import * as z from "zod";
import { servedOptions } from "../http/request-limits.ts";
import { environmentValue, missingKey } from "../http/secrets.ts";

export interface ServerOptions {
  /** The addresses of one server, or of replicas that serve the same model: `http://127.0.0.1:8000`. */
  readonly urls: string | readonly string[];
  /** The name of the base model on the server (`--served-model-name`). */
  readonly model: string;
  /** The environment variable that holds the API key; null sends none. Default: VLLM_API_KEY. */
  readonly apiKeyEnv?: string | null;
  /** The tokenizer of the model and its adapters. Without it, the server renders chats, and nothing can be scored. */
  readonly tokenizer?: Tokenizer;
  /** Time limit of one attempt, including the body of the reply. Default 290. */
  readonly timeoutSeconds?: number;
  /**
   * Further attempts of a request that failed with 408, 429, 500, 502, 503, 504, a timeout or a broken connection; on another
   * replica if there is one. Default 8, within about 90 seconds, so that a server can restart.
   */
  readonly maxRetries?: number;
  /** Requests in flight per replica. Default 8. A request for scores holds up to 16 sequences. */
  readonly concurrency?: number;
  /** Aborts the start. Later calls have their own signals. */
  readonly signal?: AbortSignal;
}

/** A model on a server, or on several replicas of it. */
export interface ServedModel extends EvaluableModel {
  /**
   * Opens the base model (`path` null), or an adapter in PEFT's format that the server can read at the same path. The base must be
   * this model, by its name on the server or by the name of its folder.
   */
  readonly openCheckpoint: OpenCheckpoint;
  /** Unloads all adapters that this object has loaded. */
  dispose(): Promise<void>;
}

/** The environment variable of the API key, as vLLM names it. */
export const defaultKeyEnv = "VLLM_API_KEY";

const addresses = "an address, or an array of one or more addresses";
const optionsSchema = z.strictObject({
  urls: z.union([z.string(), z.array(z.string()).min(1)], addresses),
  tokenizer: z.custom<Tokenizer>().optional(),
  ...servedOptions({ timeoutSeconds: 290, maxRetries: 8 }),
  signal: z.custom<AbortSignal>().optional(),
} satisfies Record<keyof ServerOptions, z.ZodType>);

/** The options with their defaults. */
export interface ServerSettings extends Pick<
  z.infer<typeof optionsSchema>,
  "model" | "timeoutSeconds" | "maxRetries" | "concurrency"
> {
  /** Names the function and the model in errors. */
  readonly where: string;
  readonly engine: "vllm" | "openai-compatible";
  readonly urls: readonly string[];
  readonly tokenEnv: string | null;
  readonly tokenizer: Tokenizer | null;
}

/** @throws PeriodicEvalError `config` for a wrong option, and for a named environment variable that is not set. */
export function parseServerOptions(
  name: string,
  engine: ServerSettings["engine"],
  options: ServerOptions,
): ServerSettings {
  const where = `${name} options`;
  const { urls, apiKeyEnv, tokenizer = null, ...rest } = parseOptions(where, optionsSchema, options);
  if (typeof apiKeyEnv === "string" && environmentValue(apiKeyEnv) === null)
    throw missingKey(where, apiKeyEnv);
  return {
    ...rest,
    where: `${name}("${rest.model}")`,
    engine,
    urls: [urls].flat(),
    tokenEnv: apiKeyEnv === undefined ? defaultKeyEnv : apiKeyEnv,
    tokenizer,
  };
}
