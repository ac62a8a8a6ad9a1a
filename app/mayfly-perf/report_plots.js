// SPDX-License-Identifier: BSD-3-Clause
// Plots of the report page: SVG that is drawn again when the width, the time span or a line's visibility changes. Its
// colours are the style sheet's, so light, dark and paper need no drawing.
'use strict';

const kSvg = 'http://www.w3.org/2000/svg';
const kHeight = 196;
const kMargin = {left: 76, right: 14, top: 24, bottom: 26};
const kPrintWidth = 700;
const kLeastDrag = 5;
const kLeastTickGap = 13;

function fill(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
  node.append(...children.filter((child) => child !== null));
  return node;
}
const html = (name, attributes = {}, ...children) => fill(document.createElement(name), attributes, children);
const svg = (name, attributes = {}, ...children) => fill(document.createElementNS(kSvg, name), attributes, children);

const colour = (series) => `var(--colour-${series.colour})`;

function textWidth(text) {
  return text.length * 6.6;
}

// What a line looks like, for legends and readouts.
function swatch(series) {
  const line = svg('line', {x1: 1, x2: 21, y1: 5, y2: 5, style: `stroke: ${colour(series)}`, 'stroke-width': series.width ?? 2});
  if (series.dash) line.setAttribute('stroke-dasharray', series.dash);
  return svg('svg', {width: 22, height: 10, 'aria-hidden': 'true'}, line);
}

// A figure with a caption (title, note, legend), the drawing and the readout that follows the pointer. `draw(box)`
// fills `this.layers`; `moved(x, box)` returns what the readout says at a place, or null.
class Plot {
  constructor(title, series) {
    this.title = title;
    this.series = series;
    this.hidden = new Set();
    this.width = 0;
    this.heading = html('span', {class: 'title'}, title);
    this.note = html('span', {class: 'note'});
    this.legend = html('span', {class: 'legend'}, ...series.map((one) => this.legendEntry(one)));
    this.drawing = svg('svg', {role: 'img', tabindex: 0, 'aria-label': title});
    this.readout = html('div', {class: 'readout', hidden: ''});
    this.area = html('div', {class: 'plot'}, this.drawing, this.readout);
    this.figure = html('figure', {}, html('figcaption', {}, this.heading, this.note, this.legend), this.area);
    this.drawing.addEventListener('pointermove', (event) => this.point(this.place(event)));
    this.drawing.addEventListener('pointerleave', () => this.leave());
  }

  legendEntry(series) {
    const button = html('button', {type: 'button', 'aria-pressed': 'true', title: 'show or hide'}, swatch(series), series.label);
    button.addEventListener('click', () => {
      if (!this.hidden.delete(series)) this.hidden.add(series);
      button.setAttribute('aria-pressed', String(!this.hidden.has(series)));
      this.redraw();
    });
    return button;
  }

  shown() {
    return this.series.filter((one) => !this.hidden.has(one));
  }

  place(event) {
    return event.clientX - this.drawing.getBoundingClientRect().left;
  }

  resize(width) {
    if (width === this.width || width <= 0) return;
    this.width = width;
    this.redraw();
  }

  redraw() {
    if (this.width <= 0) return;
    const box = {left: kMargin.left, right: Math.max(kMargin.left + 40, this.width - kMargin.right), top: kMargin.top,
      bottom: kHeight - kMargin.bottom};
    this.box = box;
    this.drawing.setAttribute('viewBox', `0 0 ${this.width} ${kHeight}`);
    this.drawing.setAttribute('height', kHeight);
    this.cursor = svg('g', {});
    this.drawing.replaceChildren(...this.draw(box), this.cursor);
  }

  // Grid lines, tick labels and the frame's two axes.
  axes(box, horizontal, vertical) {
    const parts = [];
    for (const {at, text} of vertical)
      parts.push(svg('path', {class: 'grid', d: `M${box.left} ${at.toFixed(1)}H${box.right}`}),
        svg('text', {x: box.left - 7, y: (at + 4).toFixed(1), 'text-anchor': 'end'}, text));
    for (const {at, text} of horizontal)
      parts.push(svg('path', {class: 'axis', d: `M${at.toFixed(1)} ${box.bottom}v4`}),
        svg('text', {x: Math.min(at, this.width - textWidth(text) / 2).toFixed(1), y: box.bottom + 17, 'text-anchor': 'middle'}, text));
    parts.push(svg('path', {class: 'axis', d: `M${box.left} ${box.top}V${box.bottom}H${box.right}`}));
    return parts;
  }

  strokes(series, drawn, x, y, base) {
    const {line, dots} = paths(drawn, x, y, series.kind ?? 'line', base);
    const parts = [];
    if (line) {
      // Several samples a pixel make a dash pattern noise.
      const dense = drawn.length > this.box.right - this.box.left;
      const path = svg('path', {class: 'line', d: line, style: `stroke: ${colour(series)}`, 'stroke-width': dense ? 1.2 : series.width ?? 2});
      if (series.dash && !dense) path.setAttribute('stroke-dasharray', series.dash);
      parts.push(path);
    }
    if (dots) parts.push(svg('path', {class: 'dots', d: dots, style: `stroke: ${colour(series)}`, 'stroke-width': 6}));
    return parts;
  }

  // The cursor at x with a dot on each [y, series], and, in the plot that is pointed at, the readout beside it.
  show(x, dots, lines) {
    const {box} = this;
    this.cursor.replaceChildren(svg('path', {class: 'cursor', d: `M${x.toFixed(1)} ${box.top}V${box.bottom}`}),
      ...dots.map(([y, series]) => svg('circle', {class: 'cursor-dot', cx: x.toFixed(1), cy: y.toFixed(1), r: 4,
        style: `fill: ${colour(series)}`})));
    if (!lines) {
      this.readout.hidden = true;
      return;
    }
    this.readout.replaceChildren(...lines);
    this.readout.hidden = false;
    const left = x < (box.left + box.right) / 2;
    this.readout.style.left = left ? `${x + 14}px` : 'auto';
    this.readout.style.right = left ? 'auto' : `${this.width - x + 14}px`;
    this.readout.style.top = `${box.top + 4}px`;
  }

  clear() {
    if (this.cursor) this.cursor.replaceChildren();
    this.readout.hidden = true;
  }

  rows(entries) {
    return html('table', {}, ...entries.map(([series, text]) =>
      html('tr', {}, html('td', {}, swatch(series), series.label), html('td', {}, text))));
  }
}

// What plots over time share: the times of the samples, the marks, the span that is shown, and the cursor.
class Timeline {
  constructor(at, marks) {
    this.at = at;
    this.marks = marks.filter((mark) => isNumber(mark.from_ns) && isNumber(mark.until_ns));
    const last = this.marks.reduce((latest, mark) => Math.max(latest, mark.until_ns), at.length > 0 ? at[at.length - 1] : 0);
    this.whole = [0, last > 0 ? last : 1e9];
    this.span = this.whole;
    this.plots = [];
    this.index = -1;
    this.changed = () => {};
  }

  // To a part of the run, or back to all of it.
  zoom(from, until) {
    const least = (this.whole[1] - this.whole[0]) * 1e-4;
    this.span = until - from > least ? [Math.max(this.whole[0], from), Math.min(this.whole[1], until)] : this.whole;
    for (const plot of this.plots) plot.redraw();
    this.changed(this.span !== this.whole);
  }

  follow(index, pointed) {
    this.index = index;
    for (const plot of this.plots) plot.follow(index, plot === pointed);
  }

  unfollow() {
    this.index = -1;
    for (const plot of this.plots) plot.clear();
  }

  // The index after `steps` samples that are inside the span.
  step(steps) {
    const from = lowerBound(this.at, this.span[0]), until = lowerBound(this.at, this.span[1] + 1) - 1;
    const start = this.index === -1 ? (steps > 0 ? from - 1 : until + 1) : this.index;
    return Math.min(until, Math.max(from, start + steps));
  }
}

// One quantity over time. Options: unit; log; zoom (the axis need not begin at 0); whole (fractions have no meaning);
// limits, lines that are named and drawn where they are not far above everything.
class TimePlot extends Plot {
  constructor(timeline, title, series, options) {
    super(title, series);
    this.timeline = timeline;
    this.options = options;
    timeline.plots.push(this);
    this.drawing.addEventListener('pointerdown', (event) => this.press(event));
    this.drawing.addEventListener('pointerup', (event) => this.release(event));
    this.drawing.addEventListener('dblclick', () => this.timeline.zoom(0, 0));
    this.drawing.addEventListener('keydown', (event) => this.key(event));
    this.drawing.addEventListener('blur', () => this.leave());
  }

  toX(at) {
    const [from, until] = this.timeline.span;
    return this.box.left + (at - from) / (until - from) * (this.box.right - this.box.left);
  }

  toTime(x) {
    const [from, until] = this.timeline.span;
    return from + (x - this.box.left) / (this.box.right - this.box.left) * (until - from);
  }

  // Of a log axis: 0 and below have no place on it.
  usable(series) {
    return this.options.log ? series.values.map((value) => (value > 0 ? value : null)) : series.values;
  }

  visible(values) {
    const [from, until] = this.timeline.span;
    return values.slice(Math.max(0, lowerBound(this.timeline.at, from) - 1), lowerBound(this.timeline.at, until) + 1);
  }

  draw(box) {
    const {log, unit, zoom, whole} = this.options;
    const series = this.shown();
    const values = series.map((one) => this.usable(one));
    const seen = extent(values.map((list) => this.visible(list)));
    const limits = (this.options.limits ?? []).filter(({value}) => seen !== null && value <= 3 * seen[1]);
    const wanted = 4;
    const range = seen && limits.length > 0 ? [seen[0], Math.max(seen[1], ...limits.map(({value}) => value))] : seen;
    const vertical = log ? this.logAxis(range, unit) : this.linearAxis(range, unit, wanted, {zoom, leastStep: whole ? 1 : 0});
    this.toY = vertical.toY;
    this.remark(seen, limits, vertical);
    const [first, last] = this.timeline.span;
    const parts = [...this.bands(box), ...this.axes(box, this.timeTicks(box), vertical.ticks)];
    series.forEach((one, place) => {
      const drawn = worthDrawing(this.timeline.at, values[place], [first, last], Math.round(box.right - box.left))
        .filter((index) => index === -1 || one.kind !== 'stems' || values[place][index] > 0);
      parts.push(...this.strokes(one, drawn, (index) => this.toX(this.timeline.at[index]),
        (index) => this.toY(values[place][index]), box.bottom));
    });
    const clip = `clip-${this.timeline.plots.indexOf(this)}`;
    const inside = svg('g', {'clip-path': `url(#${clip})`}, ...parts.filter((part) => this.isStroke(part)));
    const frame = parts.filter((part) => !this.isStroke(part));
    if (seen === null)
      frame.push(svg('text', {class: 'nothing', x: (box.left + box.right) / 2, y: (box.top + box.bottom) / 2}, 'no samples'));
    // A dot on the edge is whole, but a line that goes on beyond it ends there.
    const margin = this.timeline.span === this.timeline.whole ? 3 : 0;
    return [svg('clipPath', {id: clip}, svg('rect', {x: box.left - margin, y: box.top - 3, width: box.right - box.left + 2 * margin,
      height: box.bottom - box.top + 6})), ...frame, inside, ...this.limitLines(box, limits)];
  }

  isStroke(part) {
    return ['line', 'dots'].includes(part.getAttribute('class'));
  }

  linearAxis(range, unit, wanted, options) {
    const {box} = this;
    const scale = scaleFor(unit, range ? Math.max(Math.abs(range[0]), Math.abs(range[1])) : 0);
    if (scale.divisor === 1 && range && range[1] >= 1e7) Object.assign(scale, {divisor: 1e6, name: `million ${scale.name}`});
    const scaled = range ? range.map((value) => value / scale.divisor) : null;
    const leastStep = options.leastStep / scale.divisor;
    const [low, high] = linearRange(scaled, wanted, {...options, leastStep});
    const toY = (value) => box.bottom - (value / scale.divisor - low) / (high - low) * (box.bottom - box.top);
    const {ticks, decimals} = linearTicks(low, high, wanted, leastStep);
    return {toY, name: scale.name, low, ticks: ticks.map((tick) => ({at: toY(tick * scale.divisor), text: grouped(tick, decimals)}))};
  }

  logAxis(range, unit) {
    const {box} = this;
    const [low, high] = logRange(range);
    const toY = (value) => box.bottom - Math.log(value / low) / Math.log(high / low) * (box.bottom - box.top);
    const ticks = range ? logTicks(low, high, 7) : [];
    return {toY, name: '', low: 0, ticks: ticks.map((tick) => ({at: toY(tick), text: readable(tick, unit)}))};
  }

  timeTicks(box) {
    const [from, until] = this.timeline.span;
    const {divisor, name} = scaleFor('ns', (until - from) / 2);
    const wanted = Math.max(2, Math.floor((box.right - box.left) / 90));
    const {ticks, decimals} = linearTicks(from / divisor, until / divisor, wanted);
    return ticks.map((tick) => ({at: this.toX(tick * divisor), text: `${grouped(tick, decimals)} ${name}`}));
  }

  // The unit and what a plot does not show by itself.
  remark(seen, limits, vertical) {
    const said = this.title.toLowerCase().includes(vertical.name);
    this.heading.textContent = said ? this.title : `${this.title}, ${vertical.name}`;
    const remarks = [];
    if (seen && seen[0] === 0 && seen[1] === 0) {
      const samples = Math.max(...this.shown().map((one) => this.visible(one.values).filter(isNumber).length));
      remarks.push(samples === 1 ? '0 in the only sample' : `0 in all ${grouped(samples)} samples`);
    } else if (vertical.low > 0) {
      remarks.push('the axis does not begin at 0');
    }
    for (const one of this.shown().filter(({kind}) => kind === 'stems'))
      if (seen && seen[1] > 0) remarks.push(`${grouped(this.visible(one.values).reduce((sum, value) => sum + (value ?? 0), 0))} in all`);
    for (const {label, value} of this.options.limits ?? [])
      if (seen && !limits.some((one) => one.value === value))
        remarks.push(`${label} ${readable(value, this.options.unit)}, highest here ${grouped(100 * seen[1] / value, 1)}% of it`);
    this.note.textContent = remarks.join('; ');
  }

  bands(box) {
    const {marks} = this.timeline;
    const toX = (at) => this.toX(at);
    const sides = [box.left, box.right];
    const parts = [];
    for (const [kind, d] of Object.entries(bandPaths(marks, toX, sides, box.top, box.bottom)))
      parts.push(svg('path', {class: `band-${kind}`, d}));
    for (const [kind, d] of Object.entries(bandPaths(marks, toX, sides, box.top - 5, box.top - 1)))
      parts.push(svg('path', {class: `strip-${kind}`, d}));
    for (const {x, text} of markLabels(marks, toX, [box.left, box.right + kMargin.right], textWidth))
      parts.push(svg('text', {class: 'mark-label', x: x.toFixed(1), y: box.top - 9}, text));
    return parts;
  }

  limitLines(box, limits) {
    return limits.flatMap(({label, value}) => {
      const y = this.toY(value);
      return [svg('path', {class: 'limit', d: `M${box.left} ${y.toFixed(1)}H${box.right}`}),
        svg('text', {class: 'limit-label', x: box.right - 4, y: (y < box.top + 18 ? y + 14 : y - 5).toFixed(1), 'text-anchor': 'end'},
          `${label} ${readable(value, this.options.unit)}`)];
    });
  }

  point(x) {
    if (this.pressed !== undefined) this.select(x);
    const {at} = this.timeline;
    if (at.length === 0 || !this.box) return;
    this.timeline.follow(nearest(at, this.toTime(x)), this);
  }

  leave() {
    this.pressed = undefined;
    this.timeline.unfollow();
  }

  follow(index, pointed) {
    if (!this.box) return;
    const at = this.timeline.at[index];
    if (at === undefined || at < this.timeline.span[0] || at > this.timeline.span[1]) {
      this.clear();
      return;
    }
    const dots = this.shown().map((one) => [one.values[index], one])
      .filter(([value]) => isNumber(value) && (!this.options.log || value > 0)).map(([value, one]) => [this.toY(value), one]);
    this.show(this.toX(at), dots, pointed ? this.words(index) : null);
    if (this.selection) this.cursor.append(this.selection);
  }

  words(index) {
    const at = this.timeline.at[index];
    const here = marksAt(this.timeline.marks, at).map((mark) => mark.what);
    return [html('b', {}, readable(at, 'ns', 5)), html('div', {class: 'faint'}, here.join(', ')),
      this.rows(this.shown().map((one) => [one, readable(one.values[index], this.options.unit, 5)]))];
  }

  // A span is chosen by dragging; touch scrolls.
  press(event) {
    if (event.button !== 0 || event.pointerType === 'touch') return;
    this.pressed = this.place(event);
    this.drawing.setPointerCapture(event.pointerId);
  }

  select(x) {
    const from = Math.max(this.box.left, Math.min(this.pressed, x)), until = Math.min(this.box.right, Math.max(this.pressed, x));
    this.selection = svg('rect', {class: 'selection', x: from, y: this.box.top, width: Math.max(0, until - from),
      height: this.box.bottom - this.box.top});
  }

  release(event) {
    const from = this.pressed, until = this.place(event);
    this.pressed = undefined;
    this.selection = undefined;
    if (from === undefined || Math.abs(until - from) < kLeastDrag) return;
    this.timeline.zoom(this.toTime(Math.min(from, until)), this.toTime(Math.max(from, until)));
  }

  key(event) {
    const steps = {ArrowLeft: -1, ArrowRight: 1, PageUp: -10, PageDown: 10}[event.key];
    if (event.key === 'Escape') this.timeline.zoom(0, 0);
    if (!steps || this.timeline.at.length === 0) return;
    event.preventDefault();
    this.timeline.follow(this.timeline.step(steps), this);
  }
}

// Histograms that share a log axis of values. Subclasses say what stands on the other.
class ValuePlot extends Plot {
  constructor(title, histograms, unit) {
    super(title, histograms.map(({label}, place) => ({label, colour: place % 8, dash: place % 2 ? '6 3' : undefined})));
    this.histograms = histograms;
    this.unit = unit;
    this.bins = logBins(histograms);
  }

  toX(value) {
    const {low, width, count} = this.bins;
    return this.box.left + (Math.log10(value) - low) / (width * count) * (this.box.right - this.box.left);
  }

  toValue(x) {
    const {low, width, count} = this.bins;
    return 10 ** (low + (x - this.box.left) / (this.box.right - this.box.left) * width * count);
  }

  valueTicks(box) {
    const {low, width, count} = this.bins;
    const wanted = Math.max(2, Math.floor((box.right - box.left) / 62));
    return logTicks(10 ** low, 10 ** (low + width * count), wanted).map((tick) => ({at: this.toX(tick), text: readable(tick, this.unit)}));
  }

  shownPlaces() {
    return this.series.map((one, place) => place).filter((place) => !this.hidden.has(this.series[place]));
  }

  point(x) {
    if (!this.box || x < this.box.left || x > this.box.right) {
      this.clear();
      return;
    }
    const {title, at, entries} = this.words(this.toValue(x));
    this.show(at, entries.map(([series, , y]) => [y, series]).filter(([y]) => isNumber(y)),
      [html('b', {}, title), this.rows(entries.map(([series, text]) => [series, text]))]);
  }

  leave() {
    this.clear();
  }
}

// How many of a phase's samples are as large as that.
class DistributionPlot extends ValuePlot {
  constructor(title, histograms, unit) {
    super(title, histograms, unit);
    this.shares = histograms.map(({buckets}) => binned(buckets, this.bins));
  }

  draw(box) {
    const places = this.shownPlaces();
    const high = Math.max(0, ...places.flatMap((place) => this.shares[place])) * 100;
    const [low, top] = linearRange([0, high], 4);
    this.toY = (share) => box.bottom - (share * 100 - low) / (top - low) * (box.bottom - box.top);
    const {ticks, decimals} = linearTicks(low, top, 4);
    const {low: first, width} = this.bins;
    const edge = (bin) => this.toX(10 ** (first + bin * width));
    const parts = this.axes(box, this.valueTicks(box), ticks.map((tick) => ({at: this.toY(tick / 100), text: `${grouped(tick, decimals)}%`})));
    for (const place of places) {
      const shares = this.shares[place];
      let d = `M${edge(0).toFixed(1)} ${box.bottom}`;
      shares.forEach((share, bin) => { d += `V${this.toY(share).toFixed(1)}H${edge(bin + 1).toFixed(1)}`; });
      d += `V${box.bottom}`;
      const line = svg('path', {class: 'line', d, 'stroke-width': 1.5, style: `stroke: ${colour(this.series[place])}`});
      if (this.series[place].dash) line.setAttribute('stroke-dasharray', this.series[place].dash);
      parts.push(svg('path', {d, style: `fill: ${colour(this.series[place])}`, 'fill-opacity': 0.14}), line);
    }
    this.note.textContent = `share of the samples in each bar, ${grouped(100 * (10 ** width - 1), width < 0.02 ? 1 : 0)}% wide`;
    return parts;
  }

  words(value) {
    const {low, width, count} = this.bins;
    const bin = Math.min(count - 1, Math.max(0, Math.floor((Math.log10(value) - low) / width)));
    const from = 10 ** (low + bin * width), until = 10 ** (low + (bin + 1) * width);
    return {
      title: `${readable(from, this.unit, 3)} \u2013 ${readable(until, this.unit, 3)}`,
      at: this.toX(Math.sqrt(from * until)),
      entries: this.shownPlaces().map((place) => {
        const share = this.shares[place][bin];
        return [this.series[place], `${readable(share * 100, '', 3)}%`, this.toY(share)];
      }),
    };
  }
}

// The value that a share of the samples does not exceed, on an axis of nines: what happens to one in a million is as
// tall as what happens to one in ten.
class PercentilePlot extends ValuePlot {
  constructor(title, histograms, unit) {
    super(title, histograms, unit);
    this.steps = histograms.map(({buckets}) => cumulative(buckets));
    this.nines = Math.max(1, Math.log10(Math.max(...histograms.map(({buckets}) => totalOf(buckets)))));
  }

  draw(box) {
    this.toY = (share) => box.bottom - Math.min(this.nines, -Math.log10(Math.max(1e-300, 1 - share))) / this.nines * (box.bottom - box.top);
    const shares = [0, 0.5, ...Array.from({length: Math.floor(this.nines)}, (_, nines) => 1 - 10 ** -(nines + 1))];
    const texts = ['0%', '50%', ...Array.from({length: Math.floor(this.nines)}, (_, nines) =>
      (nines === 0 ? '90%' : `99${nines > 1 ? '.' : ''}${'9'.repeat(nines - 1)}%`))];
    const all = shares.map((share, place) => ({at: this.toY(share), text: texts[place]}));
    const ticks = all.reduce((kept, tick) => (kept.length === 0 || kept[kept.length - 1].at - tick.at >= kLeastTickGap ? [...kept, tick] : kept), []);
    const parts = this.axes(box, this.valueTicks(box), ticks);
    for (const place of this.shownPlaces()) {
      let d = `M${box.left} ${box.bottom}`;
      for (const [upper, share] of this.steps[place]) d += `H${this.toX(Math.max(1, upper)).toFixed(1)}V${this.toY(share).toFixed(1)}`;
      const line = svg('path', {class: 'line', d, 'stroke-width': 2, style: `stroke: ${colour(this.series[place])}`});
      if (this.series[place].dash) line.setAttribute('stroke-dasharray', this.series[place].dash);
      parts.push(line);
    }
    this.note.textContent = 'share of the samples that are not above a value';
    return parts;
  }

  words(value) {
    return {
      title: `up to ${readable(value, this.unit, 3)}`,
      at: this.toX(value),
      entries: this.shownPlaces().map((place) => {
        let share = 0;
        for (const [upper, reached] of this.steps[place]) {
          if (upper > value) break;
          share = reached;
        }
        const nines = share >= 1 ? 0 : Math.min(9, Math.max(1, Math.ceil(-Math.log10(1 - share))));
        return [this.series[place], `${grouped(100 * share, nines)}%`, this.toY(share)];
      }),
    };
  }
}
