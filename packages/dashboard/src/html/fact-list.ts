import { html, type Html } from "./html.ts";

/** Renders the facts at the top of a page as terms and values. */
export function factList(facts: readonly (readonly [term: string | Html, value: string | Html])[]): Html {
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
