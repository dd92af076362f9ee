import { html, type Html } from "./html.ts";

/** What stands at the head of a page: a term and what is said of it, in order. */
export function factList(facts: readonly (readonly [term: string, value: string | Html])[]): Html {
  return html`<dl class="facts">
    ${facts.map(
      ([term, value]) =>
        html`<div>
          <dt>${term}</dt>
          <dd>${value}</dd>
        </div>`,
    )}
  </dl>`;
}
