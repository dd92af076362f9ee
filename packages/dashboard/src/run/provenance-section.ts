import type { Json, Snapshot } from "@periodic-eval/core";
import type { RunRecord } from "@periodic-eval/contracts";
import { missingValueText } from "../html/format.ts";
import { html, type Html } from "../html/html.ts";

/** Renders everything needed to reproduce the numbers, once for each distinct provenance. */
export function provenance(run: RunRecord): Html {
  const groups = new Map<string, Snapshot[]>();
  for (const snapshot of run.phases.flatMap((phase) => phase.snapshots)) {
    const { hash } = snapshot.provenance;
    // A measurement without a hash ended before its preparation: it has no number to reproduce.
    if (hash === null) continue;
    groups.set(hash, [...(groups.get(hash) ?? []), snapshot]);
  }
  return html`<section id="provenance">
    <h2>Provenance</h2>
    <p class="sub">Values can be compared only if they have the same provenance.</p>
    ${[...groups].map(([hash, snapshots]) => group(hash, snapshots))}
  </section>`;
}

function group(hash: string, snapshots: readonly Snapshot[]): Html {
  const { id, evaluation, evaluation_version, provenance: source } = snapshots[0]!;
  const phases = [...new Set(snapshots.map(({ phase }) => phase))].join(", ");
  const rows: readonly (readonly [string, string])[] = [
    ["evaluation", `${evaluation}, version ${evaluation_version}`],
    ["items", `${source.items ?? missingValueText}, ${source.items_hash ?? missingValueText}`],
    ["tokenizer", source.tokenizer ?? missingValueText],
    ["seed", source.seed],
    ["created by", source.created_by],
    ["provenance", hash],
  ];
  return html`<details>
    <summary>${id} in ${phases} <span class="code">${hash.slice(0, 12)}</span></summary>
    <dl class="list">
      ${rows.map(
        ([term, value]) =>
          html`<div>
            <dt>${term}</dt>
            <dd class="code">${value}</dd>
          </div>`,
      )}
    </dl>
    ${json("Model", source.model)} ${json("Evaluation", source.evaluation)}
  </details>`;
}

const json = (title: string, value: Json): Html | null =>
  value === null
    ? null
    : html`<h3>${title}</h3>
        <pre tabindex="0">${JSON.stringify(value, null, 2)}</pre>`;
