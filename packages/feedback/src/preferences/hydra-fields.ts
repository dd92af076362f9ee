import { configError, isRecord, nearest, quoteValue } from "@periodic-eval/contracts/options";
import { isString } from "@periodic-eval/remote";
import type { ValuePath } from "@periodic-eval/core";

/** Our grader for each verifier class of kfallah/CLaaS (commit 34fa060), by class name. */
const graders: Readonly<Record<string, string>> = {
  NoEmojiVerifier: "no_emoji",
  ConciseVerifier: "concise",
  IdentityVerifier: "identity",
};

/** Hydra's keys, which are not arguments of the class. */
const ignoredKeys = ["_target_", "_recursive_", "_convert_", "_partial_"];

/**
 * Replaces the fields of a Hydra preference file by ours: a verifier `{ _target_: package.Class }` by the grader for the class
 * name, and a pair's `prompt_messages, positive_response, negative_response` by `prompt, chosen, rejected`. Other values stay as
 * they are.
 *
 * @returns The content, and the path in the file of each path in the content.
 * @throws PeriodicEvalError `config` for an unknown class (names the known ones) or a prompt of several messages.
 */
export function fromHydra(content: unknown): {
  readonly value: unknown;
  readonly keyOf: (path: ValuePath) => ValuePath;
} {
  if (!isRecord(content)) return { value: content, keyOf: (path) => path };
  const { verifier, logprob_pairs: pairs } = content;
  const value = {
    ...content,
    ...(isRecord(verifier) && "_target_" in verifier && { verifier: graderOf(verifier) }),
    ...(Array.isArray(pairs) && { logprob_pairs: pairs.map(pairOf) }),
  };
  return { value, keyOf: (path) => pathInFile(content, path) };
}

function graderOf(verifier: Readonly<Record<string, unknown>>): unknown {
  const { _target_: target } = verifier;
  const className = isString(target) ? target.split(".").at(-1)! : "";
  const known = Object.keys(graders);
  if (!Object.hasOwn(graders, className)) {
    const close = nearest(className, known);
    throw configError({
      where: "",
      path: ["verifier", "_target_"],
      value: target,
      expected: `a path that ends in ${known.slice(0, -1).join(", ")} or ${known.at(-1)}`,
      fix: `${close === null ? "" : `Did you mean "${close}"? `}Python classes do not run here: for any other verifier write { module: ./verify.mjs, export: name }, a function (answer, task) => reward from 0 to 1.`,
    });
  }
  const args = Object.entries(verifier).filter(([key]) => !ignoredKeys.includes(key));
  return { name: graders[className], args: Object.fromEntries(args) };
}

const pairKeys = {
  prompt: "prompt_messages",
  chosen: "positive_response",
  rejected: "negative_response",
} as const;

function pairOf(pair: unknown, at: number): unknown {
  if (!isRecord(pair) || !("prompt_messages" in pair)) return pair;
  const { prompt_messages: messages, positive_response: chosen, negative_response: rejected, ...rest } = pair;
  const [message, ...more] = Array.isArray(messages) ? (messages as unknown[]) : [];
  if (more.length > 0 || !isRecord(message) || message["role"] !== "user" || !isString(message["content"]))
    throw configError({
      where: "",
      path: ["logprob_pairs", at, "prompt_messages"],
      got: quoteValue(messages),
      expected: "one message { role: user, content }",
      fix: "Write the conversation as one user message: margins are measured after one turn.",
    });
  return { ...rest, prompt: message["content"], chosen, rejected };
}

function pathInFile(content: Readonly<Record<string, unknown>>, path: ValuePath): ValuePath {
  const [list, index, key] = path;
  const pairs = content["logprob_pairs"];
  const pair = list === "logprob_pairs" && Array.isArray(pairs) ? (pairs[Number(index)] as unknown) : null;
  if (isRecord(pair) && "prompt_messages" in pair && Object.hasOwn(pairKeys, String(key)))
    return [list!, index!, pairKeys[key as keyof typeof pairKeys]];
  return path;
}
