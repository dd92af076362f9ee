/** The style of charts, with colours for light and dark mode. A chart in a separate SVG file needs nothing else. */
export const colours = `
:root {
  color-scheme: light dark;
  --paper: #faf9f5; --panel: #ffffff; --ink: #1b1d22; --muted: #666b75; --line: #e6e3db;
  --phase-1: #2a5bd0; --phase-2: #8b3fb3; --phase-3: #0b7f77; --phase-4: #a86a0b; --phase-5: #b03a68;
  --better: #19794a; --worse: #bd2f25; --changed: #8f6200;
  --serif: "Iowan Old Style", "Palatino Linotype", Palatino, "URW Palladio L", "Source Serif 4", Georgia, "Times New Roman", serif;
  --sans: -apple-system, BlinkMacSystemFont, "Segoe UI", Roboto, "Helvetica Neue", Arial, sans-serif;
  --mono: ui-monospace, "SF Mono", "Cascadia Mono", Menlo, Consolas, "Liberation Mono", monospace;
}
@media (prefers-color-scheme: dark) {
  :root {
    --paper: #131519; --panel: #1a1d22; --ink: #e8e6e1; --muted: #9a9fa9; --line: #2c3037;
    --phase-1: #7ba3ff; --phase-2: #cf95f2; --phase-3: #4fcabd; --phase-4: #e2b15c; --phase-5: #f08fb4;
    --better: #62cf95; --worse: #ff8b7d; --changed: #e4b65a;
  }
}
.accent-1 { --accent: var(--phase-1); } .accent-2 { --accent: var(--phase-2); } .accent-3 { --accent: var(--phase-3); }
.accent-4 { --accent: var(--phase-4); } .accent-5 { --accent: var(--phase-5); }
.chart { --plot-background: var(--panel); display: block; max-width: 100%; height: auto; overflow: visible; color: var(--ink); font-family: inherit; }
.chart text, .chart tspan { white-space: pre; }
`;

/** Colours of a heat map's cells from 10 % to 100 %: at most half of the tone, so that the text keeps its contrast. */
const heatStyle = ["better", "worse", "changed"]
  .flatMap((tone) =>
    Array.from(
      { length: 10 },
      (_, at) =>
        `.heat .${tone}-${at + 1} { background: color-mix(in srgb, var(--${tone}) ${5 * (at + 1)}%, var(--paper)); }`,
    ),
  )
  .join("\n");

/** The style that all pages share. It uses system fonts, because loading a font file would be a request. */
export const style = `${colours}${heatStyle}
* { box-sizing: border-box; }
html { -webkit-text-size-adjust: 100%; text-size-adjust: 100%; }
body { margin: 0; background: var(--paper); color: var(--ink); font: 16px/1.55 var(--sans); font-variant-numeric: tabular-nums lining-nums; }
main { max-width: 1080px; margin: 0 auto; padding: 56px 32px 8px; }
a { color: inherit; text-decoration-color: var(--muted); text-underline-offset: 2px; }
a:focus-visible, summary:focus-visible, .scroll:focus-visible, pre:focus-visible { outline: 2px solid var(--phase-1); outline-offset: 3px; }
h1, section > h2 { font-family: var(--serif); font-weight: 600; letter-spacing: -.012em; line-height: 1.15; text-wrap: balance; }
h1 { margin: 0 0 24px; font-size: clamp(30px, 5vw, 46px); overflow-wrap: anywhere; }
section { margin-top: 60px; }
section > h2 { margin: 0 0 4px; font-size: 27px; }
h3 { margin: 18px 0 6px; font-size: 13px; color: var(--muted); }
.eyebrow { margin: 0 0 8px; color: var(--muted); font-size: 13px; letter-spacing: .06em; text-transform: uppercase; }
.sub { margin: 0 0 18px; color: var(--muted); text-wrap: pretty; }
.key { margin: 10px 0 0; color: var(--muted); font-size: 13.5px; }
.notice { border-left: 3px solid var(--changed); margin: 0 0 20px; padding: 4px 0 4px 14px; }
.sentences { list-style: none; margin: 0 0 26px; padding: 0; display: grid; gap: 8px; font-size: 15px; }
.sentences li { border-left: 3px solid var(--accent, var(--line)); padding-left: 12px; text-wrap: pretty; }
.sentences details { margin: 2px 0 0; border: 0; padding: 0; color: var(--muted); font-size: 13.5px; } .sentences details:not([open]) { display: inline-block; margin-left: 4px; }
.sentences .warning { margin: 2px 0 0; font-size: 14px; } .warning strong { color: var(--changed); }
.to-answers { display: inline-block; max-width: 100%; overflow-wrap: anywhere; color: var(--muted); font-size: 14px; margin-left: 4px; }
.contents { position: sticky; top: 0; z-index: 2; display: flex; flex-wrap: wrap; gap: 4px 18px; margin: 22px 0 0; padding: 9px 0; background: var(--paper); border-bottom: 1px solid var(--line); font-size: 14px; }
.contents a { color: var(--muted); text-decoration: none; } .contents a:hover { color: var(--ink); text-decoration: underline; }
html:has(.contents) { scroll-padding-top: 92px; }
.key.terms { margin: -10px 0 22px; }
.facts { display: grid; grid-template-columns: repeat(auto-fit, minmax(210px, 1fr)); gap: 14px 32px; margin: 0; padding: 18px 0; border-block: 1px solid var(--line); } section .facts { margin-top: 28px; }
dt { color: var(--muted); font-size: 13px; }
dd { margin: 0; overflow-wrap: anywhere; }
.cards { display: grid; grid-template-columns: repeat(auto-fit, minmax(260px, 1fr)); gap: 16px; margin-top: 28px; }
.card { background: var(--panel); border: 1px solid var(--line); border-top: 3px solid var(--accent, var(--muted)); border-radius: 4px 4px 10px 10px; padding: 16px 20px 18px; }
.card h3 { margin: 0; font-size: 14px; font-weight: 500; color: var(--muted); }
.figure { margin: 4px 0 2px; font: 600 32px/1.2 var(--serif); letter-spacing: -.01em; text-wrap: balance; overflow-wrap: anywhere; }
.figure .from { color: var(--muted); font-weight: 400; }
.detail { margin: 0; font-size: 14.5px; }
.unbroken { display: inline-block; }
.interval { color: var(--muted); display: inline-block; overflow-wrap: anywhere; max-width: 100%; }
.phase { color: var(--accent, inherit); font-weight: 600; }
.verdict { font-weight: 600; white-space: nowrap; }
.verdict.better { color: var(--better); } .verdict.worse { color: var(--worse); }
.verdict.changed { color: var(--changed); } .verdict.none { color: var(--muted); font-weight: 500; }
.legend { list-style: none; margin: 8px 0 0; padding: 0; display: flex; flex-wrap: wrap; gap: 4px 20px; font-size: 14px; overflow-wrap: anywhere; }
.panel { margin: 0; background: var(--panel); border: 1px solid var(--line); border-radius: 10px; padding: 18px 18px 10px; }
[data-curve]:not(:has(svg))::after { content: "The script of this page draws this chart."; color: var(--muted); font-size: 13.5px; }
.panel svg { display: block; width: 100%; height: auto; }
.panel circle:last-child { cursor: default; }
.panel svg[tabindex] { cursor: crosshair; touch-action: pan-y; }
.panel svg:focus { outline: none; } .panel svg:focus-visible { outline: 2px solid var(--phase-1); outline-offset: 3px; border-radius: 4px; }
.panel svg :is(line, path, circle) { pointer-events: none; } .panel [fill="transparent"] > circle { pointer-events: auto; }
.panel circle[data-opens] { cursor: pointer; }
.panel:has([data-opens]:focus-visible) > .readout::after { content: " · Enter opens the answers"; color: var(--muted); }
.cross-hair { stroke: var(--ink); stroke-opacity: .55; stroke-dasharray: 3 3; pointer-events: none; }
.readout { margin: 4px 0 0; min-height: 1.5em; color: var(--ink); font-size: 13px; overflow-wrap: anywhere; }
.multiples .readout { min-height: 3em; }
.panel:has(> .readout) { display: grid; grid-template-columns: minmax(0, 1fr) auto; column-gap: 12px; align-items: start; }
.panel:has(> .readout) > * { grid-column: 1 / -1; min-width: 0; } .panel > .readout:not(:has(+ .download[open])) { grid-column: 1; } .panel > .readout + .download:not([open]) { grid-column: 2; }
.download { margin: 4px 0 0; padding: 0; border: 0; font-size: 13px; color: var(--muted); }
button { font: inherit; color: inherit; cursor: pointer; background: none; border: 1px solid var(--muted); border-radius: 6px; padding: 2px 10px; min-height: 26px; }
button:focus-visible { outline: 2px solid var(--phase-1); outline-offset: 2px; }
.download button { margin: 6px 6px 4px 0; }
.term { border: 0; border-bottom: 1px dotted var(--muted); border-radius: 0; padding: 0; min-height: 0; font: inherit; color: inherit; letter-spacing: inherit; text-align: inherit; cursor: help; }
.definition { position: fixed; inset: auto 0 24px; margin: 0 auto; width: min(560px, calc(100vw - 32px)); padding: 14px 18px; background: var(--panel); color: var(--ink); border: 1px solid var(--muted); border-radius: 10px; font-size: 15px; }
.glossary { display: grid; grid-template-columns: repeat(auto-fill, minmax(min(300px, 100%), 1fr)); gap: 14px 32px; margin: 12px 0 0; }
.glossary dt { color: var(--ink); font-weight: 600; font-size: 14.5px; } .glossary dd { font-size: 14.5px; }
.heat td { padding: 6px 10px; text-align: center; } .heat thead th:not(:first-child) { padding: 6px 10px; text-align: center; white-space: normal; min-width: 64px; }
.multiples.scatters { grid-template-columns: repeat(auto-fill, minmax(min(360px, 100%), 1fr)); }
.scatter-step { display: flex; gap: 10px; align-items: center; margin: 6px 0 2px; font-size: 13px; } .scatter-step input { flex: 1; min-width: 0; min-height: 26px; accent-color: var(--accent, var(--phase-1)); }
input:focus-visible { outline: 2px solid var(--phase-1); outline-offset: 2px; }
.narrow, .print-only { display: none; }
.multiples { display: grid; grid-template-columns: repeat(auto-fill, minmax(270px, 1fr)); gap: 16px; margin-top: 20px; }
.multiples .panel { padding: 12px 14px 8px; }
figcaption { margin-bottom: 6px; font-size: 14px; font-weight: 600; }
figcaption span { color: var(--muted); font-weight: 400; }
.scroll { overflow-x: auto; margin-top: 14px; }
table { border-collapse: collapse; width: 100%; font-size: 14.5px; }
caption { text-align: left; padding: 10px 0 8px; color: var(--muted); }
th, td { padding: 7px 18px 7px 0; text-align: right; white-space: nowrap; border-bottom: 1px solid var(--line); vertical-align: baseline; }
th:last-child, td:last-child { padding-right: 0; }
th:first-child { position: sticky; left: 0; background: var(--paper); text-align: left; }
.left { text-align: left; }
thead th { color: var(--muted); font-size: 13px; font-weight: 500; }
tbody th { font-weight: 500; }
tr.primary > * { font-weight: 600; }
td.code, .code, pre { font-family: var(--mono); font-size: 13px; }
td.text, th.text { white-space: normal; min-width: 24ch; }
small.below { display: block; }
small, .same { color: var(--muted); font-family: var(--sans); font-size: 12.5px; font-weight: 400; }
details { margin-top: 14px; border-top: 1px solid var(--line); padding-top: 10px; }
summary { cursor: pointer; }
summary .code, summary span { color: var(--muted); }
.list { margin: 12px 0; display: grid; gap: 6px; }
.list > div { display: grid; grid-template-columns: 120px 1fr; gap: 16px; }
pre { margin: 0; padding: 14px 16px; overflow-x: auto; background: var(--panel); border: 1px solid var(--line); border-radius: 8px; line-height: 1.45; }
footer { max-width: 1080px; margin: 64px auto 0; padding: 18px 32px 48px; color: var(--muted); font-size: 13.5px; overflow-wrap: anywhere; }
@media (max-width: 1000px) { .contents { position: static; } html:has(.contents) { scroll-padding-top: 0; } }
@media (max-width: 640px) {
  main { padding: 32px 18px 8px; } footer { padding-inline: 18px; }
  section { margin-top: 46px; } .contents { flex-wrap: nowrap; overflow-x: auto; } .contents a { white-space: nowrap; }
  .wide { display: none; } .narrow { display: block; }
  .panel { padding: 12px 10px 6px; }
  .facts { grid-template-columns: 1fr 1fr; gap: 12px 20px; } .facts dd { font-size: 14.5px; }
  .list > div { grid-template-columns: 1fr; gap: 0; }
  .scroll { scroll-padding-left: 40vw; } th:first-child { background: linear-gradient(to left, var(--line) 1px, var(--paper) 1px); }
  tbody th:first-child { min-width: 15ch; max-width: 40vw; white-space: normal; overflow-wrap: break-word; padding-right: 10px; }
  caption { position: sticky; left: 0; max-width: calc(100vw - 36px); }
}
@media print {
  .definition, .download, .download-answers, .readout, .scatter-step, .cross-hair, .contents, .to-answers { display: none; } .print-only { display: block; } .term { display: contents; } .panel:has(> .readout) { display: block; }
  h1, h2, h3, .sub, summary, caption { break-after: avoid; }
  main { max-width: none; padding: 0; } .panel, .card, tr, .glossary > div { break-inside: avoid; }
  .scroll, pre { overflow: visible; } pre { white-space: pre-wrap; }
  table, thead th, td.code { font-size: 7.5pt; } small { font-size: 6.5pt; } th:first-child { position: static; }
  th, td, .heat td, .heat thead th:not(:first-child) { padding: 3px 6px 3px 0; white-space: normal; overflow-wrap: break-word; min-width: 0; } .code, td.text, th.text { overflow-wrap: anywhere; min-width: 0; }
  details::details-content { content-visibility: visible; block-size: auto; }
}
`;
