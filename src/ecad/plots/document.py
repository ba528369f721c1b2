"""title, body -> a whole HTML document, its style inside."""

from __future__ import annotations

from html import escape


def document(title: str, body: str) -> str:
    """A page that needs nothing else, from what stands in its middle."""
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{escape(title)}</title><style>{_CSS}</style></head>\n<body><main>\n{body}\n"
        "<footer>Written by ECAD. This file is complete: no script, nothing from the network.</footer>\n"
        "</main></body></html>\n"
    )


_CSS = """
:root{--ink:#1d2b36;--soft:#5b6b78;--line:#dde3e7;--hit:#007a59;--false:#b34e00}
*{box-sizing:border-box}
body{margin:0;background:#f5f6f4;color:var(--ink);
font:16px/1.5 system-ui,-apple-system,"Segoe UI",Roboto,"Helvetica Neue",Arial,sans-serif}
main{max-width:1180px;margin:0 auto;padding:40px 24px 56px}
.brand{margin:0 0 6px;font-size:13px;font-weight:700;letter-spacing:.14em;color:#0072b2}
h1{margin:0;font-size:clamp(28px,4.2vw,42px);line-height:1.12;letter-spacing:-.02em}
.lead{margin:10px 0 24px;color:var(--soft);font-size:17px}
.tiles{display:grid;grid-template-columns:repeat(auto-fit,minmax(165px,1fr));gap:12px}
.tile{background:#fff;border:1px solid var(--line);border-radius:10px;padding:14px 16px}
.tile b{display:block;font-size:28px;line-height:1.15;letter-spacing:-.01em;font-variant-numeric:tabular-nums}
.tile span{display:block;font-weight:600;font-size:14px}
.tile small{color:var(--soft);font-size:13px}
.tile.hit b{color:var(--hit)}.tile.false b{color:var(--false)}
section{margin-top:44px}
h2{margin:0 0 4px;font-size:22px;letter-spacing:-.01em}
.guide{margin:0 0 12px;color:var(--soft);max-width:78ch}
.keys{display:flex;flex-wrap:wrap;gap:6px 18px;margin:0 0 14px;font-size:14px}
.keys span{display:inline-flex;align-items:center;gap:6px}
.keys svg{width:22px;height:14px}
figure{margin:0 0 14px;background:#fff;border:1px solid var(--line);border-radius:10px;
padding:14px 12px 8px;overflow-x:auto}
figure svg{display:block;width:100%;height:auto}
figcaption{margin:0 6px 6px;color:var(--soft);font-size:14px}
figcaption b{color:var(--ink);font-size:18px;margin-right:8px}
figure.wide svg{min-width:720px}
figure svg text{font-family:system-ui,-apple-system,"Segoe UI",Roboto,"Helvetica Neue",Arial,sans-serif!important}
.split{display:grid;grid-template-columns:minmax(0,1.25fr) minmax(0,1fr);gap:14px;align-items:stretch}
.split figure{margin:0}
.ranking{background:#fff;border:1px solid var(--line);border-radius:10px;padding:10px 14px;overflow-x:auto}
.ranking table{width:100%;border-spacing:0;font-size:14px;font-variant-numeric:tabular-nums}
.ranking th,.ranking td{padding:9px 6px;text-align:right;border-bottom:1px solid #eef1f3;white-space:nowrap}
.ranking thead th{color:var(--soft);font-weight:600;font-size:12.5px}
.ranking tbody tr:last-child>*{border-bottom:0}
.ranking th:first-child,.ranking th[colspan]{text-align:left}
.ranking .bar{width:34%;text-align:left}
.bar i{display:block;height:10px;border-radius:2px;background:#d98544;min-width:1px}
ol{list-style:none;margin:0;padding:0;background:#fff;border:1px solid var(--line);border-radius:10px}
li{display:grid;grid-template-columns:128px minmax(0,1fr) 160px;gap:4px 18px;align-items:center;padding:12px 16px;
border-bottom:1px solid #eef1f3}
li:last-child{border-bottom:0}
details li{grid-template-columns:128px minmax(0,1fr)}
.when time{display:block;font-size:14px;font-variant-numeric:tabular-nums}
.when small{color:var(--soft)}
.what p{margin:0 0 4px;line-height:1.4}
.names span{display:inline-block;font-size:12.5px;color:var(--soft);background:#eef2f4;border-radius:4px;
padding:0 6px;margin:0 3px 2px 0}
.badge{display:inline-flex;align-items:center;gap:4px;font-size:12.5px;font-weight:600;white-space:nowrap}
.badge svg{width:11px;height:12px}
.badge.excused{color:#4f6d8c}.badge.hit{color:var(--hit)}.badge.false{color:var(--false)}
.spark{width:160px;height:44px}
details{margin-top:12px}
summary{cursor:pointer;padding:8px 2px;font-weight:600;color:#0072b2}
footer{margin-top:40px;color:var(--soft);font-size:13px}
@media (max-width:860px){.split{grid-template-columns:minmax(0,1fr)}main{padding:24px 14px 40px}
li,details li{grid-template-columns:minmax(0,1fr)}.when time,.when small{display:inline;margin-right:8px}}
@media print{body{background:#fff}figure,li{break-inside:avoid}}
"""
