// The page "Try it": the law over the runs, and the plan for a budget, drawn as SVG from the page's own numbers.
const { cells, laws, compute } = JSON.parse(document.getElementById("explore-data").textContent);
const COLOURS = ["#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#7f7f7f", "#8C510A"];
const BOX = { left: 56, right: 560, top: 14, bottom: 332 };
const get = (id) => document.getElementById(id);
const value = (id) => Number(get(id).value);
const mean = (list) => list.reduce((sum, each) => sum + each, 0) / list.length;
const ends = (list) => [Math.min(...list), Math.max(...list)];
const geometric = (low, high, count) =>
  Array.from({ length: count }, (_, i) => low * (high / low) ** (i / (count - 1)));
const short = (number) => {
  for (const [limit, unit] of [[1e12, "T"], [1e9, "G"], [1e6, "M"], [1e4, "k"]])
    if (number >= limit) return `${Number((number / limit * (unit === "k" ? 10 : 1)).toPrecision(3))}${unit}`;
  return String(Number(number.toPrecision(3)));
};
const models = [...new Map(cells.map((cell) => [cell.model, cell.n]))].map(([name, n]) => ({ name, n }));
const [nLow, nHigh] = ends(cells.map((cell) => cell.n));
const [dLow, dHigh] = ends(cells.map((cell) => cell.d));
const [lossLow, lossHigh] = ends(cells.map((cell) => cell.mael));

// The law of the sliders; its level is the one that leaves no mean residual (in logarithms).
function law() {
  const [alpha, beta, head] = [value("alpha"), value("beta"), value("head")];
  const bare = (n, d) => n ** -alpha * (d + head) ** -beta;
  const level = Math.exp(mean(cells.map((cell) => Math.log(cell.mael / bare(cell.n, cell.d)))));
  return (n, d) => level * bare(n, d);
}

function svg(tag, attributes, text = "") {
  const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, each] of Object.entries(attributes)) element.setAttribute(name, each);
  element.textContent = text;
  return element;
}

// A log-log frame with ticks; returns how to place a point and what to add marks to.
function frame(plot, xs, ys, xLabel) {
  plot.replaceChildren();
  const at = (v, [low, high], from, to) => from + (to - from) * Math.log(v / low) / Math.log(high / low);
  const x = (v) => at(v, xs, BOX.left, BOX.right), y = (v) => at(v, ys, BOX.bottom, BOX.top);
  const add = (tag, attributes, text) => plot.appendChild(svg(tag, attributes, text));
  const ticks = ([low, high], steps) => {
    const found = [];
    for (let k = Math.floor(Math.log10(low)); k <= Math.ceil(Math.log10(high)); k++)
      for (const step of steps) {
        const tick = step * 10 ** k;
        if (tick >= low * 0.999 && tick <= high * 1.001) found.push(tick);
      }
    return found;
  };
  const wide = Math.log10(xs[1] / xs[0]) > 2.5;
  for (const tick of ticks(xs, wide ? [1] : [1, 2, 5])) {
    add("line", { class: "grid", x1: x(tick), x2: x(tick), y1: BOX.top, y2: BOX.bottom });
    add("text", { x: x(tick), y: BOX.bottom + 18, "text-anchor": "middle" }, short(tick));
  }
  for (const tick of ticks(ys, [1, 1.25, 1.5, 2, 2.5, 3, 4, 5, 7])) {
    add("line", { class: "grid", x1: BOX.left, x2: BOX.right, y1: y(tick), y2: y(tick) });
    add("text", { x: BOX.left - 6, y: y(tick) + 4, "text-anchor": "end" }, Number(tick.toPrecision(3)));
  }
  add("text", { x: (BOX.left + BOX.right) / 2, y: 372, "text-anchor": "middle" }, xLabel);
  add("text", { x: 14, y: 170, "text-anchor": "middle", transform: "rotate(-90 14 170)" }, "MAEL (nats), lower is better");
  const inside = (v) => Math.min(Math.max(v, BOX.top), BOX.bottom);
  const line = (points, attributes) =>
    points.length > 1 && add("polyline", { fill: "none", points: points.map(([a, b]) => `${x(a)},${inside(y(b))}`).join(" "), ...attributes });
  return { x, y, add, line, inside };
}

// Labels at the ends of lines, pushed apart.
function endLabels({ add, y, inside }, labels) {
  let last = Infinity;
  for (const { loss, text } of labels.sort((a, b) => a.loss - b.loss)) {
    last = Math.min(inside(y(loss)), last - 15);
    add("text", { x: BOX.right + 8, y: last + 4 }, text);
  }
}

function drawLaw() {
  const loss = law();
  const drawing = frame(get("law-plot"), [dLow * 0.85, dHigh * 1.15], [lossLow * 0.9, lossHigh * 1.1], "labelled pairs D");
  models.forEach(({ name, n }, i) => {
    const colour = COLOURS[i % COLOURS.length];
    drawing.line(geometric(dLow, dHigh, 40).map((d) => [d, loss(n, d)]), { stroke: colour, "stroke-width": 2 });
    for (const cell of cells.filter((each) => each.model === name))
      drawing.add("circle", { cx: drawing.x(cell.d), cy: drawing.y(cell.mael), r: 4.5, fill: colour });
  });
  endLabels(drawing, models.map(({ name, n }) => ({ loss: loss(n, dHigh), text: name })));
  const error = 100 * mean(cells.map((cell) => Math.abs(loss(cell.n, cell.d) / cell.mael - 1)));
  const said = `Mean error on ${cells.length} cells: ${error.toFixed(1)} %. Twice the pairs beyond D = ${short(dHigh)} change the loss by ` +
    `${(100 * (loss(nHigh, 2 * dHigh) / loss(nHigh, dHigh) - 1)).toFixed(1)} %, twice the parameters by ${(100 * (2 ** -value("alpha") - 1)).toFixed(1)} %.`;
  get("law-said").textContent = said;
  get("law-plot").setAttribute("aria-label", `MAEL against labelled pairs, a line a model. ${said}`);
}

function drawPlan() {
  const loss = law(), labels = 10 ** value("labels"), budget = 10 ** value("budget");
  const pairs = (flop, n) => Math.min((flop / (Math.exp(compute.u) * n ** compute.p)) ** (1 / compute.q), labels);
  const sizes = geometric(nLow / 3, nHigh * 30, 120);
  const along = (flop) => sizes.map((n) => ({ n, d: pairs(flop, n) })).filter(({ d }) => d >= dLow / 3)
    .map((point) => ({ ...point, loss: loss(point.n, point.d) }));
  const lines = [budget / 10, budget, budget * 10].map((flop) => ({ flop, points: along(flop) }));
  const drawn = lines.flatMap(({ points }) => points.map((point) => point.loss));
  const said = get("plan-said"), [low, high] = drawn.length ? ends(drawn) : [1, 2];
  const drawing = frame(get("plan-plot"), ends(sizes), [low * 0.95, high * 1.05], "parameters N of the encoder");
  const known = ({ n, d }) => n >= nLow && n <= nHigh && d >= dLow && d <= dHigh;
  lines.forEach(({ points }, i) => {
    const look = { stroke: COLOURS[[5, 0, 2][i]], "stroke-width": i === 1 ? 3 : 1.5 };
    points.slice(1).forEach((point, k) => {
      if (k % 2 && !(known(point) && known(points[k]))) return; // dashed
      drawing.line([points[k], point].map((each) => [each.n, each.loss]), look);
    });
  });
  endLabels(drawing, lines.filter(({ points }) => points.length)
    .map(({ flop, points }) => ({ loss: points.at(-1).loss, text: `${flop.toExponential(0)}` })));
  const best = lines[1].points.reduce((a, b) => (b.loss < a.loss ? b : a), { loss: Infinity });
  if (!Number.isFinite(best.loss)) {
    said.textContent = "This budget pays for no model here.";
  } else {
    drawing.add("circle", { class: "best", cx: drawing.x(best.n), cy: drawing.y(best.loss), r: 7 });
    const edge = best.n === sizes.at(-1) ? ", the largest drawn" : best.n === sizes[0] ? ", the smallest drawn" : "";
    said.textContent = `${budget.toExponential(1)} FLOP: best N ${short(best.n)}${edge}, D ${short(best.d)}` +
      `${best.d >= labels * 0.999 ? " (all the labels)" : ""}, MAEL ${best.loss.toFixed(2)} nats` +
      `${known(best) ? "" : "; beyond the runs: an extrapolation"}.`;
  }
  get("plan-plot").setAttribute("aria-label", `MAEL against model size on lines of equal compute. ${said.textContent}`);
}

function draw() {
  const shown = { alpha: (v) => v.toFixed(3), beta: (v) => v.toFixed(3), head: short, budget: (v) => (10 ** v).toExponential(1), labels: (v) => short(10 ** v) };
  for (const [id, say] of Object.entries(shown)) {
    get(`${id}-shown`).textContent = say(value(id));
    get(id).setAttribute("aria-valuetext", say(value(id)));
  }
  drawLaw();
  drawPlan();
}

for (const input of document.querySelectorAll(".explore input")) input.addEventListener("input", draw);
for (const button of document.querySelectorAll("[data-law]"))
  button.addEventListener("click", () => {
    const { alpha, beta, D0 = 0 } = laws[button.dataset.law];
    [get("alpha").value, get("beta").value, get("head").value] = [alpha, beta, D0];
    draw();
  });
draw();
