/** Style of the server's pages, in addition to the shared style. */
export const serverStyle = `
.breadcrumbs { margin: 0 0 10px; color: var(--muted); font-size: 14px; overflow-wrap: anywhere; }
.runs { margin-top: 8px; border-bottom: 1px solid var(--line); }
details.entry { margin: 0; padding: 0; border-top: 1px solid var(--line); }
details.entry > summary { display: grid; grid-template-columns: 14px minmax(0, 1fr) 104px 172px; gap: 2px 14px; align-items: baseline; padding: 14px 0; list-style: none; }
details.entry > summary::-webkit-details-marker { display: none; }
details.entry > summary::before { content: "›"; color: var(--muted); font: 600 20px/1 var(--serif); }
details.entry[open] > summary::before { transform: rotate(90deg); transform-origin: 35% 60%; }
.run { display: grid; } .run > * { grid-area: 1 / 1; min-width: 0; } .run > a { z-index: 1; place-self: start; margin: 14px 304px 0 28px; text-decoration: none; }
.run > a:hover { text-decoration: underline; text-underline-offset: 3px; text-decoration-color: var(--muted); } summary .title { visibility: hidden; }
details.entry[open] { padding-bottom: 40px; }
details.entry section { margin-top: 36px; }
details.entry .panels, details.entry .multiples { margin-top: 28px; }
details.entry section > h2 { font-size: 21px; }
summary .title, .run > .title { color: var(--ink); font: 600 18px/1.3 var(--serif); overflow-wrap: anywhere; }
summary time, summary .summary-line, .kind { color: var(--muted); font-size: 13.5px; }
summary time { text-align: right; white-space: nowrap; }
summary .summary-line { grid-column: 2 / -1; display: flex; flex-wrap: wrap; gap: 0 18px; }
summary .summary-line small { display: none; }
.state span { color: inherit; }
summary .summary-line .verdict.better { color: var(--better); } summary .summary-line .verdict.worse { color: var(--worse); }
summary .summary-line .verdict.changed { color: var(--changed); }
.kind, .compare { margin: 0 0 10px; } .compare { font-size: 13.5px; }
.state { color: var(--muted); font-size: 14px; font-weight: 600; white-space: nowrap; }
summary .state.running, .state.running { color: var(--phase-1); } .notice.damaged { border-color: var(--worse); }
summary .state.finished, .state.finished { color: var(--better); } summary .state.interrupted, .state.interrupted { color: var(--changed); }
.notice.running { border-color: var(--phase-1); } .notice.interrupted { border-color: var(--changed); }
.notice.finished { border-color: var(--better); } .notice.unknown { border-color: var(--muted); }
.notice { overflow-wrap: anywhere; }
.pagination { display: flex; justify-content: center; gap: 24px; margin-top: 28px; color: var(--muted); }
.cut a { margin-left: 6px; }
.lost { position: fixed; inset: auto 0 0; z-index: 3; margin: 0; padding: 10px 32px; background: var(--panel); border-top: 3px solid var(--changed); }
@media print { .lost { position: static; } }
.selection { list-style: none; margin: 8px 0; padding: 0; columns: 280px; } .selection a { text-decoration: none; overflow-wrap: anywhere; }
.legend { list-style: none; margin: 8px 0 0; padding: 0; display: flex; flex-wrap: wrap; gap: 4px 20px; font-size: 14px; overflow-wrap: anywhere; }
@media (max-width: 640px) {
  details.entry > summary { grid-template-columns: 14px minmax(0, 1fr) auto; } .run > a { margin-right: 110px; }
  summary time { grid-column: 2; grid-row: 2; text-align: left; }
  summary .summary-line { grid-column: 2 / -1; }
}
`;
