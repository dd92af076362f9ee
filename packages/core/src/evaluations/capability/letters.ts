import { PeriodicEvalError } from "../../errors.ts";
import { defineEvaluation } from "../kit/define.ts";
import type { Json } from "../../contracts/json.ts";
import { errorMessage } from "../../internal/error-message.ts";
import type { Prompt, RenderedPrompt, SystemPrompt, Tokenizer } from "../../contracts/model.ts";
import type { ArcQuestion } from "./arc-questions.ts";
import { choiceMetrics, choicePlainKeys, scored, unscored, type ChoiceRow } from "./row.ts";
import { measureInBatches } from "../kit/measure-in-batches.ts";
import type { Persona } from "../prompting/personas.ts";
import type { QuestionSource } from "./question-file.ts";

export interface LettersOptions {
  readonly questions: QuestionSource;
  readonly system: SystemPrompt;
  /** Every question is asked as each of them, in place of `system`. */
  readonly personas?: () => Promise<readonly Persona[]>;
}

/** A question, and who is asked where personas are. */
interface LettersItem extends ArcQuestion {
  readonly persona?: string;
  readonly system?: SystemPrompt;
}

/**
 * Asks for the letter: a chat whose user turn lists the choices and ends in `The correct answer is (`, then the
 * generation prompt; the last position's log-probability of the first token of each label decides. As the research
 * code of explore-persona-space. Measures knowledge and the habit of answering by letter at once: a model that loses
 * the habit looks as if it had lost the knowledge, which `cloze` then tells apart.
 *
 * With personas, metrics are by persona too (`accuracy/doctor`), and intervals and tests go over questions, which all
 * personas share. A smaller budget takes fewer questions, the last of them of some personas only; looks are compared
 * over what both asked.
 */
export function letters({ questions, system, personas }: LettersOptions) {
  let provenance: Json = null;
  return defineEvaluation({
    name: "capability",
    version: "letters-1",
    needs: ["tokenizer", "nextToken"],
    async items(model): Promise<readonly LettersItem[]> {
      const { items: asked, provenance: source } = await questions();
      const people = await personas?.();
      const items = people === undefined ? asked : asked.flatMap((question) => askedOf(question, people));
      provenance = {
        method: "letters",
        ...(people === undefined ? { system } : { personas: people.map((one) => ({ ...one })) }),
        ...source,
        example_prompt: renderExample(model.tokenizer, items, system),
      };
      return items;
    },
    provenance: () => provenance,
    measure: (model, items, context) =>
      measureInBatches(items, context, async (some) => {
        const asked = some.map((item) => prepare(model.tokenizer, item, system));
        const ready = asked.flatMap((one) => ("row" in one ? [] : [one]));
        const answers = await model.nextToken(
          ready.map(({ ids, candidates }) => ({ prompt: { ids }, candidates })),
          { signal: context.signal },
        );
        const rows = ready.map(({ item }, at) =>
          scored(item, answers[at]!.nats, answers[at]!.truncatedTokens),
        );
        const next = rows.values();
        return asked.map((one, at): ChoiceRow => {
          const row = "row" in one ? one.row : next.next().value!;
          const { persona } = some[at]!;
          return persona === undefined ? row : { ...row, persona };
        });
      }),
    prompts: (_, items) => items.map((item) => promptOf(item, system)),
    metrics: (kit) => choiceMetrics(kit, personas === undefined ? {} : ofPersonas),
    plainKeys: choicePlainKeys,
  });
}

function askedOf(question: ArcQuestion, personas: readonly Persona[]): readonly LettersItem[] {
  return personas.map(({ id: persona, system }) => ({
    ...question,
    id: `${persona}/${question.id}`,
    persona,
    system,
  }));
}

/** The questions are the independent units: personas answer them much alike. */
const ofPersonas = {
  by: ({ persona }: ChoiceRow) => persona ?? null,
  cluster: ({ id, persona }: ChoiceRow) => id.slice((persona ?? "").length + 1),
};

/** The chat of one question. */
export function lettersPrompt({ question, labels, choices }: ArcQuestion, system: SystemPrompt): Prompt {
  const options = labels.map((label, at) => `(${label}) ${choices[at]}`).join("\n");
  return {
    messages: [{ role: "user", content: `${question}\n\n${options}\n\nThe correct answer is (` }],
    system,
  };
}

const promptOf = (item: LettersItem, system: SystemPrompt) => lettersPrompt(item, item.system ?? system);

type Asked =
  | { readonly item: ArcQuestion; readonly ids: readonly number[]; readonly candidates: readonly number[] }
  | { readonly row: ChoiceRow };

function prepare(tokenizer: Tokenizer, item: LettersItem, system: SystemPrompt): Asked {
  let rendered: RenderedPrompt;
  try {
    rendered = tokenizer.render(promptOf(item, system), { ending: "generation" });
  } catch (error) {
    return {
      row: unscored(item, "template_failure", errorMessage(error)),
    };
  }
  const first = item.labels.map((label) => tokenizer.encode(label, { specialTokens: false })[0]);
  const candidates = first.filter((id) => id !== undefined);
  if (candidates.length < item.labels.length) {
    const empty = item.labels
      .filter((_, at) => first[at] === undefined)
      .map((label) => JSON.stringify(label));
    return { row: unscored(item, "label_collision", `no token begins ${empty.join(", ")}`) };
  }
  if (new Set(candidates).size < candidates.length) {
    const shared = item.labels.filter((_, at) => candidates.filter((id) => id === first[at]).length > 1);
    return { row: unscored(item, "label_collision", `the labels ${shared.join(", ")} share a first token`) };
  }
  return { item, ids: rendered.ids, candidates };
}

/** The first question that renders, as text. A template that fails on all of them is an error before step 1. */
function renderExample(
  tokenizer: Tokenizer,
  items: readonly LettersItem[],
  system: SystemPrompt,
): string | null {
  let cause: unknown;
  for (const item of items) {
    try {
      return tokenizer.render(promptOf(item, system), { ending: "generation" }).text;
    } catch (error) {
      cause ??= error;
    }
  }
  const systems = [...new Set(items.map((item) => JSON.stringify(item.system ?? system)))].join(" or ");
  throw new PeriodicEvalError({
    code: "model",
    where: "capability.system",
    got: `a chat template that fails on every question (${errorMessage(cause)})`,
    expected: `a template that renders a user turn with system = ${systems}`,
    fix: 'Choose another `system`, or measure by `method: "cloze"`, which needs no chat template.',
    cause,
  });
}
