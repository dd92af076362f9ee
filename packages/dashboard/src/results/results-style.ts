/** Style of the page of benchmark results, in addition to the shared style. */
export const resultsStyle = `
.run { white-space: normal; min-width: 11ch; max-width: 30ch; overflow-wrap: anywhere; }
.run small { display: block; }
.reference { font-weight: 600; }
td small { display: block; line-height: 1.35; }
td.score { white-space: nowrap; }
.plot { padding-block: 0; vertical-align: middle; }
.plot svg { display: block; margin-left: auto; color: var(--ink); }
.plot .of-reference { stroke: var(--muted); stroke-dasharray: 2 3; }
.better { color: var(--better); } .worse { color: var(--worse); } .changed { color: var(--changed); }
.none { color: var(--muted); }
section > h2 small { font-size: 15px; margin-left: 8px; }
@media (max-width: 640px) {
  .run { min-width: 12ch; max-width: 16ch; }
  thead th { white-space: normal; min-width: 9ch; }
  th, td { padding-right: 12px; }
  .plot { display: none; }
}
`;
