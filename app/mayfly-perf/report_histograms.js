// SPDX-License-Identifier: BSD-3-Clause
// Plots of histograms: how often which value was measured, and percentiles.
'use strict';

const kLeastTickGap = 13;

// Histograms that share a log axis of values. Subclasses say what stands on the other.
class ValuePlot extends Plot {
  constructor(title, histograms, unit) {
    super(
        title,
        histograms.map(
            ({label}, place) => ({label, colour: place % 8, dash: place % 2 ? '6 3' : undefined})));
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
    return logTicks(10 ** low, 10 ** (low + width * count), wanted)
        .map((tick) => ({at: this.toX(tick), text: readable(tick, this.unit)}));
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
    this.show(
        at, entries.map(([series, , y]) => [y, series]).filter(([y]) => isNumber(y)),
        [html('b', {}, title), this.rows(entries.map(([series, text]) => [series, text]))]);
  }

  leave() { this.clear(); }
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
    const parts = this.axes(
        box, this.valueTicks(box),
        ticks.map((tick) => ({at: this.toY(tick / 100), text: `${grouped(tick, decimals)}%`})));
    for (const place of places) {
      const shares = this.shares[place];
      let d = `M${edge(0).toFixed(1)} ${box.bottom}`;
      shares.forEach((share, bin) => {
        d += `V${this.toY(share).toFixed(1)}H${edge(bin + 1).toFixed(1)}`;
      });
      d += `V${box.bottom}`;
      const line = svg(
          'path', {class: 'line', d, 'stroke-width': 1.5, style: `stroke: ${colour(this.series[place])}`});
      if (this.series[place].dash) line.setAttribute('stroke-dasharray', this.series[place].dash);
      parts.push(svg('path', {d, style: `fill: ${colour(this.series[place])}`, 'fill-opacity': 0.14}), line);
    }
    this.note.textContent =
        `share of the samples in each bar, ${grouped(100 * (10 ** width - 1), width < 0.02 ? 1 : 0)}% wide`;
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

// The value that a share of the samples does not exceed, on an axis of nines: what happens to one in a
// million is as tall as what happens to one in ten.
class PercentilePlot extends ValuePlot {
  constructor(title, histograms, unit) {
    super(title, histograms, unit);
    this.steps = histograms.map(({buckets}) => cumulative(buckets));
    this.nines = Math.max(1, Math.log10(Math.max(...histograms.map(({buckets}) => totalOf(buckets)))));
  }

  draw(box) {
    this.toY = (share) => box.bottom -
        Math.min(this.nines, -Math.log10(Math.max(1e-300, 1 - share))) / this.nines * (box.bottom - box.top);
    const shares =
        [0, 0.5, ...Array.from({length: Math.floor(this.nines)}, (_, nines) => 1 - 10 ** -(nines + 1))];
    const texts = [
      '0%', '50%',
      ...Array.from(
          {length: Math.floor(this.nines)},
          (_, nines) => (nines === 0 ? '90%' : `99${nines > 1 ? '.' : ''}${'9'.repeat(nines - 1)}%`))
    ];
    const all = shares.map((share, place) => ({at: this.toY(share), text: texts[place]}));
    const ticks = all.reduce(
        (kept, tick) =>
            (kept.length === 0 || kept[kept.length - 1].at - tick.at >= kLeastTickGap ? [...kept, tick] :
                                                                                        kept),
        []);
    const parts = this.axes(box, this.valueTicks(box), ticks);
    for (const place of this.shownPlaces()) {
      let d = `M${box.left} ${box.bottom}`;
      for (const [upper, share] of this.steps[place])
        d += `H${this.toX(Math.max(1, upper)).toFixed(1)}V${this.toY(share).toFixed(1)}`;
      const line =
          svg('path', {class: 'line', d, 'stroke-width': 2, style: `stroke: ${colour(this.series[place])}`});
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
