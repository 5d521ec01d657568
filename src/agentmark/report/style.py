"""How the report looks: light and dark, on paper and on a phone."""

from agentmark.report.charts import CHART_STYLE

STYLE = (
    CHART_STYLE
    + """
* { box-sizing:border-box; }
body { font:16px/1.55 system-ui, sans-serif; color:var(--ink); background:var(--paper); max-width:900px;
       margin:2rem auto 4rem; padding:0 1.2rem; overflow-wrap:anywhere; }
h1 { font-size:1rem; font-weight:600; color:var(--soft); margin:0 0 1rem; }
h2 { font-size:1.15rem; margin:2.4rem 0 .6rem; } h3 { font-size:.95rem; margin:0 0 .3rem; color:var(--soft); }
p { margin:.5rem 0; } .soft { color:var(--soft); font-size:.9rem; }
.panel { background:var(--panel); border:1px solid var(--rule); border-radius:8px; margin:.8rem 0;
         padding:1rem 1.1rem; }
.verdict { border-left:6px solid; padding:1.1rem 1.3rem; }
.verdict p { color:var(--ink); font-size:1.35rem; line-height:1.4; margin:0; }
.yes { color:var(--r); } .no { color:var(--bad); } .maybe { color:var(--warn); } .none { color:var(--soft); }
.two { display:grid; grid-template-columns:1fr 1fr; gap:.8rem; } .two .panel { margin:0; }
dl { display:grid; grid-template-columns:minmax(8rem, 13rem) 1fr; gap:.35rem 1rem; margin:.4rem 0; }
dt { color:var(--soft); } dd { margin:0; } .big { font-size:1.2rem; font-weight:650; }
table { border-collapse:collapse; width:100%; font-size:.9rem; } td, th { text-align:left; vertical-align:top;
        padding:.35rem .8rem .35rem 0; border-bottom:1px solid var(--rule); overflow-wrap:break-word; }
th { white-space:nowrap; color:var(--soft); font-weight:600; } td.n, th.n { text-align:right; white-space:nowrap;
        font-variant-numeric:tabular-nums; }
code, pre { font:.85rem/1.5 ui-monospace, monospace; } pre { white-space:pre-wrap; margin:.3rem 0; }
td code, .odds, .steps b, td bdi { overflow-wrap:anywhere; } .steps { font-size:.85rem; }
.steps td:nth-child(2), .steps td:nth-child(4), .chain td:nth-child(2), .finding { min-width:6rem; }
.finding { display:inline-block; }
.odds { display:flex; flex-wrap:wrap; gap:0 .9em; color:var(--soft); }
.odds span { display:inline-flex; align-items:center; gap:.35em; }
.odds i { height:.65em; min-width:1px; background:var(--f); opacity:.5; border-radius:2px; flex:none; }
.odds em { font-style:normal; white-space:nowrap; }
.odds .chosen { color:var(--ink); font-weight:650; } .odds .chosen i { opacity:1; }
.strip { display:flex; height:2rem; border-radius:6px; overflow:hidden; margin:.6rem 0; border:1px solid var(--rule); }
.strip span { background:currentColor; min-width:2px; } .strip .none { opacity:.25; }
.swatch { display:inline-block; width:.8em; height:.8em; border-radius:2px; margin-right:.5em;
          background:currentColor; }
figure.panel { margin-left:0; margin-right:0; }
details { margin:.8rem 0; } summary { cursor:pointer; color:var(--f); padding:.4rem 0; }
ul { margin:.4rem 0; padding-left:1.2rem; }
@media (max-width: 620px) {
  body { margin-top:1rem; padding:0 .9rem; } .two { grid-template-columns:1fr; }
  dl { grid-template-columns:1fr; gap:0; } dd { margin-bottom:.6rem; }
  .verdict p { font-size:1.15rem; }
  .fold thead { display:none; } .fold tr { display:block; border-bottom:1px solid var(--rule); padding:.5rem 0; }
  .fold td { display:block; border:0; padding:.05rem 0; text-align:left; } .fold td.n { text-align:left; }
  .fold td[data-label]::before { content:attr(data-label) ": "; color:var(--soft); }
}
@media print { body { margin:0; max-width:none; font-size:11pt; } .panel, tr { break-inside:avoid; }
  h2 { break-after:avoid; } * { print-color-adjust:exact; -webkit-print-color-adjust:exact; } }
"""
)
