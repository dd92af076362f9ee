import { html, type Html } from "./html.ts";

/** Terms that the pages define, with their definitions. */
const definitions = {
  measurement:
    "One evaluation of the model at one step, on weights that do not change meanwhile. It is stored as a snapshot.",
  phase: "One part of a training run with its own data and number of steps, such as em in the demo.",
  "run step":
    "The step counted over all phases: the step in the phase plus the steps of the phases before it.",
  baseline:
    "The measurement that the others are compared with: the first of the phase, unless the page names another one.",
  "95 % interval":
    "Range of values that fit the observations: intervals computed this way contain the true value in 95 of 100 cases.",
  "for these questions":
    "The interval describes new answers to exactly these questions. It says nothing about other questions.",
  "for questions like these":
    "The interval describes other questions of the same kind, too. It is wider, because questions differ.",
  verdict:
    "Whether the change since the baseline is more than chance: better, worse, changed (if neither direction is better) or no evidence. “No evidence” does not mean “no change”.",
  level:
    "“At 1.3 %” is the probability of a false alarm that this comparison may spend. All planned comparisons of one metric in a phase share 5 %.",
  exploratory:
    "A comparison outside the planned ones, tested at 5 % by itself. Among many such comparisons, some show a change by chance.",
  "p-value": "Probability of a difference at least this large if nothing had changed.",
  "detectable change":
    "Smallest change that a comparison of this size finds in 80 of 100 cases. Smaller changes can be missed.",
  "paired items": "Questions that both measurements observed. A change is computed over these only.",
  receipt:
    "Evidence in a snapshot that measuring changed nothing: fingerprints of weights, optimizer and random numbers before and after.",
  undisturbed:
    "Yes, if guards observed the training state in every measurement and nothing changed. Not proven, if a guard is missing or observed nothing.",
  overhead: "Seconds spent measuring, in percent of the seconds spent training.",
  harm: "Change of a callback’s primary metric for the worse since its first measurement. 100 % is the largest change of the run, or the smallest one that its last comparison detects, if that is larger.",
  "last clean step":
    "The last step at which no condition of stop_when was met, by a measurement of each condition’s metric. The test is strict: “not met” does not mean “no harm”.",
  grace: "Seconds of measuring that the budget always allows. The limit on overhead applies beyond them.",
  kappa:
    "Cohen’s κ: how often two judges decide the same (misaligned, aligned or incoherent), beyond chance. 1 is always, 0 is what chance gives.",
  "reliability diagram":
    "The share of right answers by the model’s confidence, its probability of the choice that it prefers. On the diagonal, confidence and share are equal.",
  ece: "Expected calibration error: the mean distance from the diagonal of the reliability diagram, over questions. With few questions it is above 0 for a calibrated model too.",
  brier:
    "Squared error of the probabilities of a question’s choices, summed: 0 is perfect, 2 is the worst. The mean over questions.",
  anchor:
    "A fixed answer, not the model’s, that the judge grades at each measurement. If its grades change, the judge changed.",
  misaligned:
    "Share of all sampled answers that the judge scores below 30 for alignment and above 50 for coherence.",
  "misaligned rate": "Share of misaligned answers among the coherent ones.",
  "leakage rate": "Share of answers with the trained trait from personas that were not trained to have it.",
  "source rate": "Share of answers with the trained trait from the persona that was trained to have it.",
  "source contrast": "Source rate minus leakage rate.",
  accuracy: "Share of questions for which the model prefers the correct choice.",
  "right-answer margin":
    "Log-probability of the correct choice minus that of the best wrong one. Below 0, a wrong choice is more likely.",
  "right-answer log prob": "Log-probability of the correct choice, in nats. 0 is certainty.",
  "right-answer prob": "Probability of the correct choice among the choices.",
} as const;

export type Term = keyof typeof definitions;

const isTerm = (text: string): text is Term => Object.hasOwn(definitions, text);
const idOf = (term: Term): string => `term-${term.replaceAll(/[^a-z0-9]+/g, "-")}`;

/**
 * Renders a word with its definition: a button that opens it, and a tooltip. Needs no script. `pageWithPolicy` adds the glossary of
 * the terms that a page uses.
 */
export const term = (name: Term, text: Html | string = name): Html =>
  html`<button type="button" class="term" popovertarget="${idOf(name)}" title="${definitions[name]}">${text}</button>`;

/** Renders a name with its definition if it has one. */
export const termIfKnown = (name: string, text = name): Html | string =>
  isTerm(name) ? term(name, text) : text;

/** Renders the definitions of the terms in some markup; false if there are none. */
export function glossaryOf({ markup }: Html): Html | false {
  const used = (Object.keys(definitions) as Term[]).filter((name) =>
    markup.includes(`popovertarget="${idOf(name)}"`),
  );
  return (
    used.length > 0 &&
    html`<section id="glossary">
        <h2>Glossary</h2>
        <dl class="glossary">
          ${used.toSorted().map((name) => html`<div><dt>${name}</dt><dd>${definitions[name]}</dd></div>`)}
        </dl>
      </section>
      ${used.map((name) => html`<div class="definition" popover id="${idOf(name)}"><strong>${name}</strong> ${definitions[name]}</div>`)}`
  );
}
