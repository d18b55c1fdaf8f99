// The parts of every report that do not change. Style: colours are variables with a light and a dark
// set; .s0 to .s9 colour series. Script: values under the pointer.
#pragma once

namespace wam::train {

inline constexpr const char* kPageStyle = R"css(
:root{color-scheme:light dark;--page:#f6f7f9;--card:#fff;--ink:#1b1f24;--soft:#5b6470;--rule:#e1e5ea;--axis:#9aa3ad;
--c0:#2166c4;--c1:#d1571f;--c2:#1a8a57;--c3:#8746c2;--c4:#c22a5c;--c5:#0e8ca3;--c6:#9c7400;--c7:#6a7078;--c8:#587a1c;--c9:#ae4d9e}
@media(prefers-color-scheme:dark){:root{--page:#14171b;--card:#1c2026;--ink:#e6e9ed;--soft:#9aa4b0;--rule:#2c323a;--axis:#65707c;
--c0:#6aa5f2;--c1:#f08b57;--c2:#4fc08d;--c3:#b98ae8;--c4:#ee7399;--c5:#4cc0d4;--c6:#d4ad3f;--c7:#a5acb5;--c8:#9cc05a;--c9:#dd8fd0}}
*{box-sizing:border-box}
body{margin:0;background:var(--page);color:var(--ink);font:15px/1.5 system-ui,-apple-system,"Segoe UI",Roboto,sans-serif}
main{max-width:1500px;margin:0 auto;padding:24px;display:grid;gap:16px;grid-template-columns:repeat(auto-fit,minmax(min(100%,560px),1fr))}
main>*{grid-column:1/-1;min-width:0;margin:0}
main>figure.chart{grid-column:auto}
h1{font-size:26px;line-height:1.25;font-weight:650}
h2{font-size:19px;font-weight:650;margin-top:14px;padding-top:14px;border-top:1px solid var(--rule)}
p{max-width:80ch;white-space:pre-line;overflow-wrap:anywhere}
figure,.table{background:var(--card);border:1px solid var(--rule);border-radius:10px;padding:14px 16px}
figcaption{font-weight:600;margin-bottom:6px;overflow-wrap:anywhere}
.chart{position:relative}
.chart>svg{display:block;width:100%;height:auto;touch-action:pan-y}
.legend{list-style:none;margin:0 0 4px;padding:0;display:flex;flex-wrap:wrap;gap:2px 16px;color:var(--soft);font-size:13px}
.legend li{display:flex;align-items:center;gap:6px;overflow-wrap:anywhere}
.legend svg{width:22px;height:8px;flex:none}
.line{fill:none;stroke:currentColor;stroke-width:1.6;stroke-linejoin:round;stroke-linecap:round}
.raw{opacity:.28;stroke-width:1}
.dash .line{stroke-dasharray:6 4}
.chart g circle{fill:currentColor}
.legend li>svg{color:var(--s)}.chart g{color:var(--s)}
.s0{--s:var(--c0)}.s1{--s:var(--c1)}.s2{--s:var(--c2)}.s3{--s:var(--c3)}.s4{--s:var(--c4)}
.s5{--s:var(--c5)}.s6{--s:var(--c6)}.s7{--s:var(--c7)}.s8{--s:var(--c8)}.s9{--s:var(--c9)}
.grid{stroke:var(--rule);stroke-width:1}.axis,.mark{stroke:var(--axis);stroke-width:1}
.cursor{stroke:var(--soft);stroke-width:1;visibility:hidden;pointer-events:none}
text{fill:var(--soft);font-size:12px}.label{font-size:12.5px}.middle{text-anchor:middle}.end{text-anchor:end}
.tip{position:absolute;z-index:1;pointer-events:none;background:var(--card);border:1px solid var(--axis);border-radius:6px;padding:6px 9px;font-size:12.5px;line-height:1.4;box-shadow:0 2px 10px #0003}
.tip div{display:flex;gap:8px;align-items:baseline;white-space:nowrap;font-variant-numeric:tabular-nums}
.tip i{width:9px;height:9px;border-radius:50%;background:var(--s);flex:none}.tip b{margin-left:auto;padding-left:12px}
.note{color:var(--soft);font-size:13px;margin:4px 0 0}
.table{overflow-x:auto}
table{border-collapse:collapse;font-size:14px}
th,td{padding:5px 14px 5px 0;text-align:left;vertical-align:top;border-bottom:1px solid var(--rule)}
tr:last-child td{border-bottom:0}
th{color:var(--soft);font-weight:600}
.n{text-align:right;font-variant-numeric:tabular-nums}
.picture div{overflow-x:auto}
.picture img{display:block;image-rendering:pixelated;border-radius:4px}
)css";

inline constexpr const char* kPageScript = R"js(
for (const fig of document.querySelectorAll('figure.chart')) {
  const source = fig.querySelector('script'), svg = fig.querySelector(':scope > svg');
  if (!source || !svg) continue;
  const data = JSON.parse(source.textContent), cursor = svg.querySelector('.cursor');
  const names = [...fig.querySelectorAll('.legend li')];
  const tip = document.createElement('div');
  tip.className = 'tip'; tip.hidden = true; fig.append(tip);
  const nearest = (xs, x) => {
    let best = -1;
    for (let i = 0; i < xs.length; ++i) if (best < 0 || Math.abs(xs[i] - x) < Math.abs(xs[best] - x)) best = i;
    return best;
  };
  const row = (kind, name, value) => {
    const line = document.createElement('div');
    if (kind) { const dot = document.createElement('i'); dot.className = kind; line.append(dot); }
    line.append(name);
    const number = document.createElement('b'); number.textContent = value; line.append(number);
    return line;
  };
  const hide = () => { tip.hidden = true; cursor.style.visibility = 'hidden'; };
  svg.addEventListener('pointerleave', hide);
  svg.addEventListener('pointermove', event => {
    const box = svg.getBoundingClientRect(), outer = fig.getBoundingClientRect();
    const place = ((event.clientX - box.left) * data.total / box.width - data.left) / data.width;
    if (place < 0 || place > 1) return hide();
    const x = data.x0 + place * (data.x1 - data.x0);
    let shown = x, closest = Infinity;
    const rows = data.series.map((s, i) => {
      const k = nearest(s.xs, x);
      if (k < 0) return null;
      if (Math.abs(s.xs[k] - x) < closest) { closest = Math.abs(s.xs[k] - x); shown = s.xs[k]; }
      return row(names[i].className, names[i].textContent, s.ys[k]);
    }).filter(Boolean);
    tip.replaceChildren(row('', svg.dataset.x, Number(shown.toPrecision(6))), ...rows);
    tip.hidden = false;
    const left = event.clientX - outer.left;
    tip.style.left = Math.max(0, left + 16 + tip.offsetWidth > outer.width ? left - 16 - tip.offsetWidth : left + 16) + 'px';
    tip.style.top = event.clientY - outer.top + 12 + 'px';
    cursor.setAttribute('transform', `translate(${data.left + (shown - data.x0) / (data.x1 - data.x0) * data.width} 0)`);
    cursor.style.visibility = 'visible';
  });
}
)js";

}  // namespace wam::train
