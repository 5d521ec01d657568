"""How the report looks: light and dark, on paper and on a phone."""

from agentmark.report.charts import CHART_STYLE

STYLE = (
    CHART_STYLE
    + """
* { box-sizing:border-box; }
body { font:16px/1.55 system-ui, sans-serif; color:var(--ink); background:var(--paper); max-width:900px;
       margin:2rem auto 4rem; padding:0 1.2rem; overflow-wrap:anywhere; }
h1 { font-size:1rem; font-weight:600; color:var(--soft); margin:0 0 .6rem; }
.first h2 { margin:1.3rem 0 .3rem; font-size:1.1rem; } .small { font-size:.9rem; }
.case { font-size:.9rem; grid-template-columns:5rem 1fr; gap:.1rem 1rem; }
.files { list-style:none; padding:0; } .files li { margin:.3rem 0; } .files code { overflow-wrap:anywhere; }
.glossary { font-size:.88rem; grid-template-columns:9rem 1fr; gap:.2rem 1rem; }
.whole { white-space:nowrap; }
.check, .experts { border-top:1px solid var(--rule); padding-top:1.4rem; }
.experts { font-size:1.35rem; }
h2 { font-size:1.15rem; margin:2.4rem 0 .6rem; } h3 { font-size:.95rem; margin:1.1rem 0 .3rem; color:var(--soft); }
.panel h3 { margin-top:0; }
p { margin:.5rem 0; } .soft { color:var(--soft); font-size:.9rem; }
.panel { background:var(--panel); border:1px solid var(--rule); border-radius:8px; margin:.8rem 0;
         padding:1rem 1.1rem; }
.verdict { border-left:6px solid; padding:1.1rem 1.3rem; }
.verdict > * { color:var(--ink); } .verdict p { margin:0; } .verdict p + * { margin-top:.4rem; }
.verdict p:first-child { font-size:1.35rem; line-height:1.4; }
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
  .verdict p:first-child { font-size:1.2rem; }
  .case, .glossary { grid-template-columns:1fr; }
  .fold thead { display:none; } .fold tr { display:block; border-bottom:1px solid var(--rule); padding:.5rem 0; }
  .fold td { display:block; border:0; padding:.05rem 0; text-align:left; } .fold td.n { text-align:left; }
  .fold td[data-label]::before { content:attr(data-label) ": "; color:var(--soft); }
}
@media print {
  :root { font-size:13px; color-scheme:light;
          --ink:#1c2430; --soft:#4a5361; --paper:#fff; --panel:#f5f7fa; --rule:#cbd2da; --f:#2563a8;
          --r:#1a7a50; --base:#7a8594; --bad:#b3413a; --warn:#946200; --alt:#7a4fb0; }
  body { margin:0; padding:0; max-width:none; font-size:10pt; line-height:1.45; }
  tr, figure { break-inside:avoid; } h2, h3 { break-after:avoid; }
  * { print-color-adjust:exact; -webkit-print-color-adjust:exact; font-variant-ligatures:none; }
  details::details-content { content-visibility:visible; block-size:auto; } summary { display:none; }
  .first { break-after:page; font-size:9.2pt; line-height:1.36; } .check { border:0; padding:0; margin-top:0; }
  .first h2 { margin:.7rem 0 .15rem; font-size:10.5pt; } .first p { margin:.2rem 0; }
  .first .panel { margin:.5rem 0; padding:.6rem .9rem; } .first .verdict p:first-child { font-size:13pt; }
  .first ul { margin:.2rem 0; } .first code { font-size:7.8pt; } .first li { margin:.12rem 0; }
  .first td, .first th { padding:.15rem .6rem .15rem 0; }
  .first .small, .first .case, .first table { font-size:8.8pt; }
  .first.dense { font-size:8.6pt; line-height:1.3; } .dense .small, .dense .case, .dense table { font-size:8.3pt; }
  .first.denser { font-size:7.8pt; line-height:1.22; } .denser .small, .denser .case, .denser table { font-size:7.6pt; }
  .first.denser h2 { margin:.4rem 0 .1rem; } .first.denser p { margin:.12rem 0; }
  .glossary { display:block; columns:2; column-gap:6mm; font-size:8.3pt; }
  .glossary dt, .glossary dd { display:inline; } .glossary dt { font-weight:600; }
  .glossary dt::after { content:":\\a0"; }
  .glossary dd::after { content:"\\A"; white-space:pre; }
  .denser .glossary { font-size:7.3pt; }
}
"""
)


def on_every_sheet(digest: str) -> str:
    """What stands at the foot of every printed sheet, so that it can be told to which report a sheet belongs."""
    return (
        "@page { size:A4; margin:11mm 15mm 14mm; @bottom-left { font:7pt ui-monospace, monospace; color:#4a5361; "
        f'content:"SHA-256 of the report\'s data {digest}"; }} '
        "@bottom-right { font:8pt system-ui, sans-serif; color:#4a5361; "
        'content:"sheet " counter(page) " of " counter(pages); } }\n'
    )
