import {
  PeriodicEvalError,
  type BulkTokenizer,
  type Prompt,
  type RenderedPrompt,
} from "@periodic-eval/contracts";
import { encodePrompts } from "@periodic-eval/core/model";
import { hasAddedBlock, systemProbe } from "@periodic-eval/tokenizers";
import type { Connection } from "./connection.ts";
import type { Hello, ParamsOf } from "./protocol.ts";

type Chat = Extract<Prompt, { readonly messages: unknown }>;
type WireChat = ParamsOf<"render">["chats"][number];

/** The trainer's own tokenizer and chat template: no second implementation can then differ. */
export function liveTokenizer(
  connection: Connection,
  { fingerprint, vocab_size, stop_ids, eos_id, has_template }: Hello["tokenizer"],
): BulkTokenizer {
  const tokenizer: BulkTokenizer = {
    fingerprint,
    vocabSize: vocab_size,
    stopIds: stop_ids,
    eosId: eos_id,
    encode: (texts, { specialTokens = true, signal } = {}) =>
      connection.rows(
        "encode",
        { texts: [...texts], special_tokens: specialTokens },
        texts.length,
        signal && { signal },
      ),
    decode: (rows, { specialTokens = true, signal } = {}) =>
      connection.rows(
        "decode",
        { rows: rows.map((ids) => [...ids]), special_tokens: specialTokens },
        rows.length,
        signal && { signal },
      ),
    async render(prompts, { ending = "generation", signal } = {}) {
      const options = signal && { signal };
      const chats = prompts.filter((prompt) => "messages" in prompt);
      const texts = prompts.filter((prompt) => "text" in prompt);
      const wire = chats.map(wireChat);
      await checkSystemBlocks(connection, chats, wire);
      const rendered = await connection
        .rows("render", { chats: wire, ending }, wire.length, options)
        .catch((error: unknown) => {
          // A tokenizer may render chats with custom code, and have no template.
          throw has_template || !PeriodicEvalError.is(error, "data")
            ? error
            : noTemplate(connection.where, error);
        });
      const encoded = await encodePrompts(
        tokenizer,
        texts.map(({ text }) => text),
        options,
      );
      const [nextChat, nextText] = [rendered.values(), encoded.values()];
      return prompts.map((prompt): RenderedPrompt => {
        if ("ids" in prompt) return { text: null, ids: prompt.ids, assistantMask: null };
        if ("text" in prompt) return { text: prompt.text, ids: nextText.next().value!, assistantMask: null };
        const { text, ids } = nextChat.next().value!;
        return { text, ids, assistantMask: null };
      });
    },
  };
  return tokenizer;
}

const noTemplate = (where: string, cause: unknown) =>
  new PeriodicEvalError({
    code: "model",
    where,
    got: "a tokenizer without a chat template",
    expected: "one that renders chats",
    fix: "Set `tokenizer.chat_template`.",
    detail: { kind: "no-template" },
    cause,
  });

/** A chat with its system prompt as a message. */
function wireChat({ messages, system = "omit", templateKwargs }: Chat): WireChat {
  const prompt = typeof system === "string" ? null : system;
  if (prompt !== null && messages[0]?.role === "system")
    throw new PeriodicEvalError({
      code: "config",
      where: "prompt",
      path: ["system"],
      got: "a system prompt for a chat that begins with a system message",
      expected: "one of the two",
      fix: 'Remove the message from the chat, or set system: "omit".',
    });
  return {
    messages: [
      ...(prompt === null ? [] : [{ role: "system", content: prompt.text }]),
      ...messages.map((message) => ({ ...message })),
    ],
    ...(templateKwargs !== undefined && { template_kwargs: { ...templateKwargs } }),
  };
}

/** @throws PeriodicEvalError `model` if a chat must have no system block, and the template adds one. */
async function checkSystemBlocks(
  connection: Connection,
  chats: readonly Chat[],
  wire: readonly WireChat[],
): Promise<void> {
  const strict = wire.filter((_, at) => chats[at]!.system === "no_system_block");
  if (strict.length === 0) return;
  // A template adds its block to all chats or to none.
  const [first] = strict;
  const probed = { ...first!, messages: [systemProbe, ...first!.messages] };
  const textOf = async (chat: WireChat) =>
    (await connection.rows("render", { chats: [chat], ending: "complete" }, 1))[0]!.text;
  const withProbe = await textOf(probed).catch(() => null);
  if (withProbe === null || !hasAddedBlock(await textOf(first!), withProbe)) return;
  throw new PeriodicEvalError({
    code: "model",
    where: connection.where,
    got: "a template that adds a system block to a chat without one",
    expected: "no system block",
    fix: 'Use system: "omit", { text: "" } or your own system prompt.',
  });
}
