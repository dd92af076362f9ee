import { html, trusted, type Html } from "./html.ts";

/** Renders a value as a block of JSON for the page's script. An escaped `<` cannot end the block. */
export const dataBlock = ([id, value]: readonly [string, unknown]): Html =>
  html`<script type="application/json" id="${id}">${trusted(JSON.stringify(value).replaceAll("<", "\\u003c"))}</script>`;
