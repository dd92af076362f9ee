import { execFileSync } from "node:child_process";
import { readFileSync, readdirSync } from "node:fs";
import { join } from "node:path";
import type { TemplateInput } from "@periodic-eval/tokenizers";
import { describe, expect, it } from "vitest";
import { chats } from "../testing/chats.test-data.ts";
import { askJinja, compareWith } from "../testing/jinja-reference.test-data.ts";
import { needsPython, python, pythonHas } from "../testing/python.test-data.ts";
import { compileTemplate } from "./load-tokenizer.ts";

const special = { bos_token: "<s>", eos_token: "</s>", unk_token: "<unk>", pad_token: "<pad>" };

/** The folder of TRL's templates; null if Python does not have TRL. */
function folderOfTrl(): string | null {
  if (!pythonHas("transformers")) return null;
  const program =
    "import importlib.util as u; spec = u.find_spec('trl'); print(spec and spec.submodule_search_locations[0])";
  const folder = execFileSync(python, ["-c", program], { encoding: "utf8" }).trim();
  return folder === "None" ? null : join(folder, "chat_templates");
}

const folder = folderOfTrl();
const all = chats();

function question(
  template: string,
  { messages, tools = null, kwargs = {}, addGenerationPrompt }: TemplateInput,
) {
  const { documents = null, ...rest } = kwargs;
  const variables = { ...special, ...rest };
  return {
    template,
    messages,
    tools,
    documents,
    add_generation_prompt: addGenerationPrompt,
    kwargs: variables,
  };
}

// Reference: transformers' `render_jinja_template`, in one Python process. The templates are read where pip put them.
describe.skipIf(folder === null)(
  `templates that TRL publishes (${needsPython("transformers and TRL")})`,
  () => {
    const names = folder === null ? [] : readdirSync(folder).filter((name) => name.endsWith(".jinja"));
    const sources = names.map((name) => readFileSync(join(folder!, name), "utf8"));
    const references =
      names.length === 0
        ? []
        : askJinja({ chats: sources.flatMap((source) => all.map(({ input }) => question(source, input))) });

    it.each(names.map((name, i) => [name, i] as const))(
      "%s renders all chats as transformers does",
      (_, i) => {
        const render = compileTemplate(sources[i]!, special);
        const different = all.flatMap(({ name, input }, j) => {
          const result = compareWith(references[i * all.length + j]!, () => render(input));
          return result === null ? [] : [{ name, result }];
        });
        expect(different).toEqual([]);
      },
    );
  },
);
