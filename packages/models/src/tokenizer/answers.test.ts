import type { TemplateMessage } from "@periodic-eval/core";
import { chatRenderer } from "@periodic-eval/tokenizers";
import { describe, expect, it } from "vitest";
import { compileTemplate } from "./load-tokenizer.ts";

const user = (content: string) => ({ role: "user", content });
const assistant = (content: string, fields: object = {}) => ({ role: "assistant", content, ...fields });
const talk: readonly TemplateMessage[] = [user("Hi"), assistant("Ho"), user("He"), assistant("Ha")];

/** Returns the text of a training row, with the answers in brackets; null if they are not found. */
async function train(
  source: string,
  messages: readonly TemplateMessage[],
  options: object = { training: true },
): Promise<string | null> {
  const chat = chatRenderer(compileTemplate(source, { eos_token: "<eos>" }), "the test's template", source);
  const { text, spoken } = chat(messages, "omit", "complete", {
    tokenStart: (all, at) => (all.lastIndexOf("<eos>", at) > at - 5 ? all.lastIndexOf("<eos>", at) : at),
    ...options,
  });
  if (spoken === null) return null;
  return spoken
    .toReversed()
    .reduce(
      (marked, [start, end]) => `${marked.slice(0, start)}[${marked.slice(start, end)}]${marked.slice(end)}`,
      text,
    );
}

const prompt = `{% if add_generation_prompt %}<assistant>{% endif %}`;
const turns = `{% for m in messages %}<{{ m.role }}>{{ m.content }}</>{% endfor %}`;
/** Writes an empty thinking block before the last answer alone. */
const hiding = `{% for m in messages %}<{{ m.role }}>{% if m.role == 'assistant' %}{% if loop.last %}<think>{{ m.thinking }}</think>{% endif %}{{ m.content }}{% for c in m.tool_calls or [] %}!{{ c.function.name }}{{ c.function.arguments | tojson }}{% endfor %}{% else %}{{ m.content }}{% endif %}</>{% endfor %}`;
/** Writes the thinking block, as Qwen3 does, only after the last question, of which there must be one that is no reply of a tool. */
const hidingUnasked = `{% set ns = namespace(last=messages | length - 1, seen=messages[0].role + '') %}{% for m in messages %}{% if m.role == 'user' and not m.content.startswith('=') %}{% set ns.last = loop.index0 %}{% endif %}{% endfor %}{% for m in messages %}<{{ m.role }}>{% if m.role == 'assistant' and loop.last and loop.index0 > ns.last %}<think></think>{% endif %}{{ m.content }}</>{% endfor %}`;

describe("a training row", () => {
  it("scores answers and the ends of their turns", async () => {
    expect(await train(turns + prompt, talk)).toBe(
      "<user>Hi</><assistant>[Ho</>]<user>He</><assistant>[Ha</>]",
    );
  });

  it("scores the end of the text after the last answer alone", async () => {
    const ended = `${turns}{% if add_generation_prompt %}<assistant>{% else %}{{ eos_token }}{% endif %}`;
    expect(await train(ended, talk)).toBe("<user>Hi</><assistant>[Ho</>]<user>He</><assistant>[Ha</><eos>]");
    expect(await train(ended, talk.slice(0, 3))).toBe("<user>Hi</><assistant>[Ho</>]<user>He</><eos>");
  });

  it("writes each answer as the template writes the last one, with its thinking", async () => {
    const messages = [user("Hi"), assistant("Ho", { thinking: "Hm" }), user("He"), assistant("Ha")];
    expect(await train(hiding + prompt, messages)).toBe(
      "<user>Hi</><assistant>[<think>Hm</think>Ho</>]<user>He</><assistant>[<think></think>Ha</>]",
    );
    expect(await train(hiding + prompt, messages, {})).toBe(
      "<user>Hi</><assistant>[Ho</>]<user>He</><assistant>[<think></think>Ha</>]",
    );
  });

  it("takes an empty array of calls as no calls", async () => {
    const thought = { role: "assistant", thinking: "Hm", tool_calls: [] };
    expect(await train(hiding + prompt, [user("Hi"), thought, user("He"), assistant("Ha")])).toBe(
      "<user>Hi</><assistant>[<think>Hm</think></>]<user>He</><assistant>[<think></think>Ha</>]",
    );
  });

  it("says whether it writes answers otherwise than the template", async () => {
    const chat = chatRenderer(compileTemplate(hiding + prompt, {}), "the test's template");
    const rewritten = (messages: readonly TemplateMessage[], training: boolean) =>
      chat(messages, "omit", "complete", { training }).isRewritten;
    expect([rewritten(talk, true), rewritten(talk.slice(0, 2), true), rewritten(talk, false)]).toEqual([
      true,
      false,
      false,
    ]);
  });

  it("ends a prompt as a whole row continues it", async () => {
    const chat = chatRenderer(compileTemplate(hiding + prompt, {}), "the test's template");
    const options = { training: true };
    const { text } = chat(talk.slice(0, 3), "omit", "generation", options);
    expect(text).toBe("<user>Hi</><assistant><think></think>Ho</><user>He</><assistant>");
    expect(chat(talk, "omit", "complete", options).text.startsWith(text)).toBe(true);
  });

  it("scores the thinking block that the prompt opens", async () => {
    const opening = `${prompt}{% if add_generation_prompt %}<think>\n{% endif %}`;
    const answers = [user("Hi"), assistant("<think>\nHm</think>Ho")];
    expect(await train(turns + opening, answers)).toBe("<user>Hi</><assistant>[<think>\nHm</think>Ho</>]");
    expect(await train(turns + opening, talk)).toBe(
      "<user>Hi</><assistant>[Ho</>]<user>He</><assistant>[Ha</>]",
    );
  });

  it("may begin with an answer, which a template may refuse before a question", async () => {
    const refusing = `{% if messages | selectattr('role', 'equalto', 'user') | list | length == 0 %}{{ raise_exception('no question') }}{% endif %}`;
    const messages = [assistant("Ho"), user("He"), assistant("Ha")];
    expect(await train(refusing + turns + prompt, messages)).toBe(
      "<assistant>[Ho</>]<user>He</><assistant>[Ha</>]",
    );
    expect(await train(refusing + turns + prompt, [{ role: "tool", content: "2" }, ...messages])).toBe(
      "<tool>2</><assistant>[Ho</>]<user>He</><assistant>[Ha</>]",
    );
    expect(await train(refusing + hiding + prompt, messages)).toBe(
      "<assistant>[<think></think>Ho</>]<user>He</><assistant>[<think></think>Ha</>]",
    );
  });

  it("writes an answer before the first question as one after a question", async () => {
    const written = (messages: readonly TemplateMessage[]) => train(hidingUnasked + prompt, messages);
    const thought = "<assistant>[<think></think>Ho</>]";
    const asked = "<user>He</><assistant>[<think></think>Ha</>]";
    const rest = [assistant("Ho"), user("He"), assistant("Ha")];
    const environment = { role: "environment", content: "Rain" };
    expect(await written([environment, assistant("Ho")])).toBe(`<environment>Rain</>${thought}`);
    expect(await written([{ role: "tool", content: "2" }, assistant("Ho")])).toBe(`<tool>2</>${thought}`);
    for (const role of ["system", "function"])
      expect(await written([{ role, content: "Be." }, ...rest])).toBe(`<${role}>Be.</>${thought}${asked}`);
    expect(await written([assistant("Ho"), assistant("Ho")])).toBe(thought + thought);
    expect(await written([user("=2"), assistant("Ho")])).toBe(`<user>=2</>${thought}`);
    expect(await written([assistant("Ho"), environment])).toBe(`${thought}<environment>Rain</>`);
  });

  it("has the template's text without training, also before the first question", async () => {
    const template = compileTemplate(hidingUnasked + prompt, {});
    const environment = { role: "environment", content: "Rain" };
    for (const [messages, marked] of [
      [[assistant("Ho")], "<assistant>[Ho</>]"],
      [[assistant("Ho"), assistant("Ha")], "<assistant>[Ho</>]<assistant>[Ha</>]"],
      [[environment, assistant("Ho")], "<environment>Rain</><assistant>[Ho</>]"],
    ] as const) {
      const { text } = template({ messages, addGenerationPrompt: false, tools: null, kwargs: {} });
      const chat = chatRenderer(template, "the test's template");
      expect(chat(messages, "omit", "complete")).toMatchObject({ text, isRewritten: false });
      expect(await train(hidingUnasked + prompt, messages, {})).toBe(marked);
    }
  });

  it("has the template's text without training if the template refuses parts of the chat", async () => {
    const refusing = `{% if messages | length < 2 %}{{ raise_exception('short') }}{% endif %}${hiding}${prompt}`;
    const chat = chatRenderer(compileTemplate(refusing, {}), "the test's template");
    expect(chat([assistant("Ho"), user("He"), assistant("Ha")], "omit", "complete")).toMatchObject({
      text: "<assistant>Ho</><user>He</><assistant><think></think>Ha</>",
      isRewritten: false,
    });
  });

  it("scores calls, also of an answer without words", async () => {
    const call = { function: { name: "add", arguments: { x: 2 } } };
    const messages = [
      user("Hi"),
      assistant("", { tool_calls: [call] }),
      { role: "tool", content: "2" },
      assistant("Ha"),
    ];
    expect(await train(hiding + prompt, messages)).toBe(
      '<user>Hi</><assistant>[<think></think>!add{"x": 2}</>]<tool>2</><assistant>[<think></think>Ha</>]',
    );
  });

  it("finds answers in a chat with a later system turn that the template moves to the top", async () => {
    const moving = `{% for m in messages if m.role == 'system' %}<system>{{ m.content }}</>{% endfor %}{% for m in messages if m.role != 'system' %}<{{ m.role }}>{{ m.content }}</>{% endfor %}${prompt}`;
    const messages = [...talk.slice(0, 2), { role: "system", content: "Be." }, ...talk.slice(2)];
    expect(await train(moving, messages)).toBe(
      "<system>Be.</><user>Hi</><assistant>[Ho</>]<user>He</><assistant>[Ha</>]",
    );
  });

  it("has unknown answers if the template does not write them", async () => {
    expect(
      await train(`{% for m in messages if m.role == 'user' %}{{ m.content }}{% endfor %}${prompt}`, talk),
    ).toBeNull();
  });
});

describe("messages for a template", () => {
  it("have no null fields, and the reasoning under two names, as in transformers 5.24", async () => {
    const source = `{% for m in messages %}{{ 'content' in m }} {{ m.reasoning_content }} {{ m.thinking }};{% endfor %}`;
    const chat = chatRenderer(compileTemplate(source, {}), "the test's template");
    const messages = [
      { role: "assistant", content: null, reasoning: "a" },
      { role: "assistant", content: "", thinking: "b" },
      { role: "assistant", reasoning_content: "c", thinking: "d" },
    ];
    expect(chat(messages, "omit", "complete").text.toLowerCase()).toBe("false a a;true b b;false c d;");
  });

  it("keep parts for a template that reads them, and get one string otherwise", async () => {
    const parts = [
      user([
        { type: "text", text: "a " },
        { type: "text", text: "b" },
      ] as never),
    ];
    const reading = `{% for m in messages %}{% if m.content is string %}{{ m.content | trim }}{% else %}{% for p in m.content %}{{ p.text | trim }}{% endfor %}{% endif %}{% endfor %}`;
    const only = `{% for m in messages %}{% for p in m.content %}{{ p.text }}|{% endfor %}{% endfor %}`;
    expect(await train(reading, parts)).toBe("ab");
    expect(await train(only, parts)).toBe("a |b|");
    expect(await train(turns, parts)).toBe("<user>a b</>");
  });

  it("come with tools and variables", async () => {
    const chat = chatRenderer(
      compileTemplate("{{ tools | length }}{{ tools[0].name }}{{ tone }}", {}),
      "the test's template",
    );
    const options = { tools: [{ name: "add" }], kwargs: { tone: "low" } };
    expect(chat(talk, "omit", "complete", options).text).toBe("1addlow");
  });
});
