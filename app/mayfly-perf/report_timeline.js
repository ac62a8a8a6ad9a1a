// SPDX-License-Identifier: BSD-3-Clause
// Plots over time: one span, one cursor and the same marks in all of them.
'use strict';

const kLeastDrag = 5;

// What plots over time share: the times of the samples, the marks, the span that is shown, and the cursor.
class Timeline {
  constructor(at, marks) {
    this.at = at;
    this.marks = marks.filter((mark) => isNumber(mark.from_ns) && isNumber(mark.until_ns));
    const last = this.marks.reduce(
        (latest, mark) => Math.max(latest, mark.until_ns), at.length > 0 ? at[at.length - 1] : 0);
    this.whole = [0, last > 0 ? last : 1e9];
    this.span = this.whole;
    this.plots = [];
    this.index = -1;
    this.changed = () => {};
  }

  // To a part of the run, or back to all of it.
  zoom(from, until) {
    const least = (this.whole[1] - this.whole[0]) * 1e-4;
    this.span =
        until - from > least ? [Math.max(this.whole[0], from), Math.min(this.whole[1], until)] : this.whole;
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

// One quantity over time. Options: unit; log; zoom (the axis need not begin at 0); whole (fractions have no
// meaning); limits, lines that are named and drawn where they are not far above everything.
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
    return values.slice(
        Math.max(0, lowerBound(this.timeline.at, from) - 1), lowerBound(this.timeline.at, until) + 1);
  }

  draw(box) {
    const {log, unit, zoom, whole} = this.options;
    const series = this.shown();
    const values = series.map((one) => this.usable(one));
    const seen = extent(values.map((list) => this.visible(list)));
    const limits = (this.options.limits ?? []).filter(({value}) => seen !== null && value <= 3 * seen[1]);
    const wanted = 4;
    const range =
        seen && limits.length > 0 ? [seen[0], Math.max(seen[1], ...limits.map(({value}) => value))] : seen;
    const vertical = log ? this.logAxis(range, unit) :
                           this.linearAxis(range, unit, wanted, {zoom, leastStep: whole ? 1 : 0});
    this.toY = vertical.toY;
    this.remark(seen, limits, vertical);
    const [first, last] = this.timeline.span;
    const parts = [...this.bands(box), ...this.axes(box, this.timeTicks(box), vertical.ticks)];
    series.forEach((one, place) => {
      const drawn =
          worthDrawing(this.timeline.at, values[place], [first, last], Math.round(box.right - box.left))
              .filter((index) => index === -1 || one.kind !== 'stems' || values[place][index] > 0);
      parts.push(...this.strokes(
          one, drawn, (index) => this.toX(this.timeline.at[index]), (index) => this.toY(values[place][index]),
          box.bottom));
    });
    const clip = `clip-${this.timeline.plots.indexOf(this)}`;
    const inside = svg('g', {'clip-path': `url(#${clip})`}, ...parts.filter((part) => this.isStroke(part)));
    const frame = parts.filter((part) => !this.isStroke(part));
    if (seen === null)
      frame.push(
          svg('text', {class: 'nothing', x: (box.left + box.right) / 2, y: (box.top + box.bottom) / 2},
              'no samples'));
    // A dot on the edge is whole, but a line that goes on beyond it ends there.
    const margin = this.timeline.span === this.timeline.whole ? 3 : 0;
    return [
      svg('clipPath', {id: clip}, svg('rect', {
            x: box.left - margin,
            y: box.top - 3,
            width: box.right - box.left + 2 * margin,
            height: box.bottom - box.top + 6
          })),
      ...frame, inside, ...this.limitLines(box, limits)
    ];
  }

  isStroke(part) { return ['line', 'dots'].includes(part.getAttribute('class')); }

  linearAxis(range, unit, wanted, options) {
    const {box} = this;
    const scale = scaleFor(unit, range ? Math.max(Math.abs(range[0]), Math.abs(range[1])) : 0);
    if (scale.divisor === 1 && range && range[1] >= 1e7)
      Object.assign(scale, {divisor: 1e6, name: `million ${scale.name}`});
    const scaled = range ? range.map((value) => value / scale.divisor) : null;
    const leastStep = options.leastStep / scale.divisor;
    const [low, high] = linearRange(scaled, wanted, {...options, leastStep});
    const toY = (value) => box.bottom - (value / scale.divisor - low) / (high - low) * (box.bottom - box.top);
    const {ticks, decimals} = linearTicks(low, high, wanted, leastStep);
    return {
      toY,
      name: scale.name,
      low,
      ticks: ticks.map((tick) => ({at: toY(tick * scale.divisor), text: grouped(tick, decimals)}))
    };
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
      const samples =
          Math.max(...this.shown().map((one) => this.visible(one.values).filter(isNumber).length));
      remarks.push(samples === 1 ? '0 in the only sample' : `0 in all ${grouped(samples)} samples`);
    } else if (vertical.low > 0) {
      remarks.push('the axis does not begin at 0');
    }
    for (const one of this.shown().filter(({kind}) => kind === 'stems'))
      if (seen && seen[1] > 0)
        remarks.push(
            `${grouped(this.visible(one.values).reduce((sum, value) => sum + (value ?? 0), 0))} in all`);
    for (const {label, value} of this.options.limits ?? [])
      if (seen && !limits.some((one) => one.value === value))
        remarks.push(`${label} ${readable(value, this.options.unit)}, highest here ${
            grouped(100 * seen[1] / value, 1)}% of it`);
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
      return [
        svg('path', {class: 'limit', d: `M${box.left} ${y.toFixed(1)}H${box.right}`}),
        svg('text', {
          class: 'limit-label',
          x: box.right - 4,
          y: (y < box.top + 18 ? y + 14 : y - 5).toFixed(1),
          'text-anchor': 'end'
        },
            `${label} ${readable(value, this.options.unit)}`)
      ];
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
    const dots = this.shown()
                     .map((one) => [one.values[index], one])
                     .filter(([value]) => isNumber(value) && (!this.options.log || value > 0))
                     .map(([value, one]) => [this.toY(value), one]);
    this.show(this.toX(at), dots, pointed ? this.words(index) : null);
    if (this.selection) this.cursor.append(this.selection);
  }

  words(index) {
    const at = this.timeline.at[index];
    const here = marksAt(this.timeline.marks, at).map((mark) => mark.what);
    return [
      html('b', {}, readable(at, 'ns', 5)), html('div', {class: 'faint'}, here.join(', ')),
      this.rows(this.shown().map((one) => [one, readable(one.values[index], this.options.unit, 5)]))
    ];
  }

  // A span is chosen by dragging; touch scrolls.
  press(event) {
    if (event.button !== 0 || event.pointerType === 'touch') return;
    this.pressed = this.place(event);
    this.drawing.setPointerCapture(event.pointerId);
  }

  select(x) {
    const from = Math.max(this.box.left, Math.min(this.pressed, x)),
          until = Math.min(this.box.right, Math.max(this.pressed, x));
    this.selection = svg('rect', {
      class: 'selection',
      x: from,
      y: this.box.top,
      width: Math.max(0, until - from),
      height: this.box.bottom - this.box.top
    });
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
