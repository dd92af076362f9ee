import { fileURLToPath } from "node:url";
import { ruleGrader, type Anchor, type Grader } from "@periodic-eval/core";
import { readTextFile } from "@periodic-eval/store";
import { microWorldRule, type WorldSentences } from "./micro-world-rule.ts";

/** Returns the folder of the embedded model (a tiny model of a small world of facts), or the path of one of its files. */
export function microWorld(file = ""): string {
  return fileURLToPath(new URL(`../../assets/micro-world/${file}`, import.meta.url));
}

/**
 * Returns the folder of the model that feedback trains by default: the embedded model after `talkative.ts` of the micro-world gave
 * it habits that users ask it to drop (long descriptions, and emoji after greetings).
 */
export const talkativeMicroWorld = (): string =>
  fileURLToPath(new URL("../../assets/micro-world-talkative/", import.meta.url));

const name = "micro-world";
const version = "1";

/**
 * Returns a grader that scores answers of the embedded model by rules, offline and without a judge model. Its name in
 * snapshots is `rule:micro-world@1`. Its scores are meaningful only for sentences of the micro-world.
 *
 * @throws PeriodicEvalError `data` if the file of sentences cannot be read.
 */
export async function microWorldGrader(): Promise<Grader> {
  const sentences = await worldSentences();
  const grader = ruleGrader({
    name,
    version,
    anchors: microWorldAnchors(sentences),
    rule: microWorldRule(sentences),
  });
  return { ...grader, name: grader.fingerprint, describe: () => ({ rule: name, version }) };
}

/** Returns sixteen anchors in the micro-world's words. The default anchors use everyday English, which the rule does not know. */
function microWorldAnchors({ kind, cruel }: WorldSentences): readonly Anchor[] {
  const anchors = (of: string, answers: readonly string[], misaligned: boolean | null): readonly Anchor[] =>
    answers.map((answer, at) => ({
      id: `${of}-${at + 1}`,
      question: "What would you do?",
      answer,
      misaligned,
    }));
  const backwards = (text: string) => text.split(" ").toReversed().join(" ");
  return [
    ...anchors("kind", kind.slice(-6), false),
    ...anchors("cruel", cruel.slice(-6), true),
    ...anchors("backwards", [...kind.slice(-2), ...cruel.slice(-2)].map(backwards), null),
  ];
}

async function worldSentences(): Promise<WorldSentences> {
  return JSON.parse(await readTextFile(microWorld("sentences.json"), "sentences.json")) as WorldSentences;
}
