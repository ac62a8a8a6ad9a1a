// SPDX-License-Identifier: BSD-3-Clause
// What the report page computes before it draws: numbers as text, axes, which samples are worth a pixel,
// histograms, and where marks have room for their labels. Nothing here knows a document, so tests run it
// without a browser.
'use strict';

const kNone = '\u2013';
const kFixedSpace = '\u00a0';
const kFamilies = {
  ns: [[1e9, 's'], [1e6, 'ms'], [1e3, '\u00b5s'], [1, 'ns']],
  B: [[2 ** 40, 'TiB'], [2 ** 30, 'GiB'], [2 ** 20, 'MiB'], [2 ** 10, 'KiB'], [1, 'B']],
  pps: [[1e9, 'Gpps'], [1e6, 'Mpps'], [1e3, 'kpps'], [1, 'pps']],
  Hz: [[1e9, 'GHz'], [1e6, 'MHz'], [1e3, 'kHz'], [1, 'Hz']],
};
const kSynonyms = {
  bytes: 'B',
  'packets/s': 'pps'
};

function isNumber(value) { return typeof value === 'number' && Number.isFinite(value); }

// 1234567.891, 1 -> "1,234,567.9", whatever the locale.
function grouped(value, decimals = 0) {
  const text = Math.abs(value).toFixed(decimals);
  const [whole, fraction] = text.split('.');
  return (value < 0 && Number(text) !== 0 ? '\u2212' : '') + whole.replace(/\B(?=(\d{3})+$)/g, ',') +
      (fraction ? '.' + fraction : '');
}

// The decimals that leave so many significant digits.
function decimalsFor(value, digits) {
  if (value === 0) return 0;
  return Math.min(9, Math.max(0, digits - 1 - Math.floor(Math.log10(Math.abs(value)))));
}

// The multiple of a unit in which a value of this size is read: {divisor, name}. Other units than those of
// kFamilies have no prefixes.
function scaleFor(unit, magnitude) {
  const family = kFamilies[kSynonyms[unit] ?? unit];
  if (!family) return {divisor: 1, name: unit ?? ''};
  const [divisor, name] = family.find(([size]) => magnitude >= size) ?? family[family.length - 1];
  return {divisor, name};
}

// 12345.6, "ns" -> "12.35 us": a number and its unit, for one value that stands alone.
function readable(value, unit, digits = 4) {
  if (!isNumber(value)) return kNone;
  const {divisor, name} = scaleFor(unit, Math.abs(value));
  const scaled = value / divisor;
  const text = grouped(scaled, Number.isInteger(scaled) ? 0 : decimalsFor(scaled, digits))
                   .replace(/(\.\d*?)0+$/, '$1')
                   .replace(/\.$/, '');
  return name ? text + kFixedSpace + name : text;
}

// Values that are compared with each other get one unit and one number of decimals: {name, texts}.
function comparable(values, unit, leading) {
  const known = values.filter(isNumber);
  const lead = isNumber(leading) && leading !== 0 ? leading : Math.max(0, ...known.map(Math.abs));
  const {divisor, name} = scaleFor(unit, Math.abs(lead));
  const whole = known.every((value) => Number.isInteger(value / divisor));
  const decimals = whole ? 0 : decimalsFor(lead / divisor, 4);
  const texts = values.map((value) => {
    if (!isNumber(value)) return kNone;
    const scaled = value / divisor;
    // A small value among large ones must not read as 0.
    const lost = scaled !== 0 && Math.abs(scaled) < 0.5 * 10 ** -decimals;
    return grouped(scaled, lost ? decimalsFor(scaled, 2) : decimals);
  });
  return {name, texts};
}

// Axes

function niceStep(rough) {
  const power = 10 ** Math.floor(Math.log10(rough) + 1e-9);
  const factor = [1, 2, 5, 10].find((candidate) => candidate * power >= rough * (1 - 1e-9));
  return factor * power;
}

// At most about `wanted` round numbers between low and high, and the decimals that tell them apart.
function linearTicks(low, high, wanted, leastStep = 0) {
  const step = Math.max(leastStep, niceStep((high - low) / Math.max(1, wanted)));
  const ticks = [];
  for (let i = Math.ceil(low / step - 1e-9); i <= Math.floor(high / step + 1e-9); ++i) ticks.push(i * step);
  return {ticks, step, decimals: Math.max(0, -Math.floor(Math.log10(step) + 1e-9))};
}

// Round numbers between low and high (> 0): of all nine in a decade, or 1, 2, 5, or decades only.
function logTicks(low, high, wanted) {
  const first = Math.floor(Math.log10(low)), last = Math.ceil(Math.log10(high));
  const between = (factors, every) => {
    const ticks = [];
    for (let decade = first; decade <= last; ++decade) {
      if (decade % every !== 0) continue;
      for (const factor of factors) {
        const tick = decade < 0 ? factor / 10 ** -decade : factor * 10 ** decade;
        if (tick >= low * (1 - 1e-9) && tick <= high * (1 + 1e-9)) ticks.push(tick);
      }
    }
    return ticks;
  };
  for (const factors of [[1, 2, 3, 4, 5, 6, 7, 8, 9], [1, 2, 5], [1, 3], [1]]) {
    const ticks = between(factors, 1);
    if (ticks.length >= 2 && ticks.length <= wanted) return ticks;
    if (ticks.length < 2 && factors.length === 9) return linearTicks(low, high, wanted).ticks;
  }
  for (let every = 2; every <= last - first; ++every) {
    const ticks = between([1], every);
    if (ticks.length <= wanted) return ticks;
  }
  return between([1], 1).slice(0, 1);
}

function extent(lists) {
  let low = Infinity, high = -Infinity;
  for (const values of lists) {
    for (const value of values) {
      if (!isNumber(value)) continue;
      if (value < low) low = value;
      if (value > high) high = value;
    }
  }
  return low <= high ? [low, high] : null;
}

// From 0, or for what hardly moves (memory) from near its lowest value, up to a round number.
function linearRange(values, wanted, {zoom = false, leastStep = 0} = {}) {
  let [low, high] = values ?? [0, 0];
  const flat = high - low < 0.25 * Math.abs(high);
  if (!(zoom && flat && low > 0)) low = Math.min(0, low);
  if (high <= low) high = low + Math.max(leastStep, Math.abs(low) * 0.1, values && low !== 0 ? 0 : 1);
  // A line along the upper edge would be taken for the frame.
  high += 0.02 * (high - low) * (values && high === values[1] ? 1 : 0);
  const step = Math.max(leastStep, niceStep((high - low) / wanted));
  return [Math.floor(low / step + 1e-9) * step, Math.ceil(high / step - 1e-9) * step];
}

function logRange(values) {
  const [low, high] = values ?? [1, 10];
  const room = high / low < 3 ? 2 : 1.25;
  return [low / room, high * room];
}

// Samples

// The first index whose value is not below x.
function lowerBound(sorted, x) {
  let from = 0, until = sorted.length;
  while (from < until) {
    const middle = (from + until) >> 1;
    if (sorted[middle] < x)
      from = middle + 1;
    else
      until = middle;
  }
  return from;
}

function nearest(sorted, x) {
  if (sorted.length === 0) return -1;
  const after = lowerBound(sorted, x);
  if (after === 0) return 0;
  if (after === sorted.length) return after - 1;
  return x - sorted[after - 1] <= sorted[after] - x ? after - 1 : after;
}

// Indices of the samples to draw between two times, -1 where the line breaks. Where there are many more than
// columns, only the first, lowest, highest and last of a column: the picture is the same and no peak is
// missing. One sample on either side is included, so that a line that is zoomed into reaches the edges.
function worthDrawing(at, values, [from, until], columns) {
  const first = Math.max(0, lowerBound(at, from) - 1);
  const last = Math.min(at.length - 1, lowerBound(at, until));
  const drawn = [];
  const all = last - first < 4 * columns;
  let column = null, kept = null;
  const flush = () => {
    if (kept)
      drawn.push(...new Set([kept.first, ...[kept.lowest, kept.highest].sort((a, b) => a - b), kept.last]));
    kept = null;
  };
  for (let i = first; i <= last; ++i) {
    if (!isNumber(values[i])) {
      flush();
      if (drawn.length > 0 && drawn[drawn.length - 1] !== -1) drawn.push(-1);
      continue;
    }
    if (all) {
      drawn.push(i);
      continue;
    }
    const here = Math.floor((at[i] - from) / (until - from) * columns);
    if (here !== column) flush();
    column = here;
    if (!kept) kept = {first: i, lowest: i, highest: i, last: i};
    if (values[i] < values[kept.lowest]) kept.lowest = i;
    if (values[i] > values[kept.highest]) kept.highest = i;
    kept.last = i;
  }
  flush();
  if (drawn[drawn.length - 1] === -1) drawn.pop();
  return drawn;
}

// Path data of those samples: a line (or steps, or stems from the base), and dots for samples without
// neighbours.
function paths(drawn, x, y, kind, base) {
  const coordinate = (value) => String(Math.round(value * 10) / 10);
  let line = '', dots = '', open = false;
  drawn.forEach((index, place) => {
    if (index === -1) {
      open = false;
      return;
    }
    const here = coordinate(x(index)), there = coordinate(y(index));
    if (kind === 'stems') {
      line += `M${here} ${coordinate(base)}V${there}`;
      return;
    }
    const alone = !open && (drawn[place + 1] ?? -1) === -1;
    if (alone)
      dots += `M${here} ${there}h0`;
    else if (!open)
      line += `M${here} ${there}`;
    else
      line += kind === 'step' ? `H${here}V${there}` : `L${here} ${there}`;
    open = true;
  });
  return {line, dots};
}

// Marks

function marksAt(marks, at) { return marks.filter((mark) => mark.from_ns <= at && at <= mark.until_ns); }

// Which marks have room for a label: [{x, text}]. A label stays clear of the label before it and of the next
// mark that begins within it, unless it fits into its own band; where what it says does not fit, its kind
// may.
function markLabels(marks, toX, [left, right], textWidth) {
  const placed = [];
  let free = left;
  const shown = marks.filter((mark) => toX(mark.until_ns) >= left && toX(mark.from_ns) <= right)
                    .sort((a, b) => a.from_ns - b.from_ns);
  shown.forEach((mark, place) => {
    const from = Math.max(left, toX(mark.from_ns)) + 3;
    if (from < free) return;
    const next = shown.find((other, later) => later > place && toX(other.from_ns) > from);
    const room = Math.max(Math.min(right, toX(mark.until_ns)), next ? toX(next.from_ns) : right) - from;
    const text = [mark.what, mark.kind].find((words) => words && textWidth(words) <= room);
    if (!text) return;
    placed.push({x: from, text});
    free = from + textWidth(text) + 8;
  });
  return placed;
}

// One path per kind of band, however many there are; each is at least a pixel wide.
function bandPaths(marks, toX, [left, right], top, bottom) {
  const found = {};
  for (const mark of marks) {
    const from = Math.max(left, toX(mark.from_ns)), until = Math.min(right, toX(mark.until_ns));
    if (until < left || from > right) continue;
    const kind = ['create', 'delete', 'quiet'].includes(mark.kind) ? mark.kind : 'other';
    const width = Math.max(1, until - from);
    found[kind] = (found[kind] ?? '') +
        `M${from.toFixed(1)} ${top}h${width.toFixed(1)}V${bottom}h${(-width).toFixed(1)}Z`;
  }
  return found;
}

// Histograms: buckets are [largest value, count], rising; empty ones may be left out.

function totalOf(buckets) { return buckets.reduce((sum, [, count]) => sum + count, 0); }

// [largest value, share of all samples that are not above it].
function cumulative(buckets) {
  const total = totalOf(buckets);
  let sum = 0;
  return buckets.map(([upper, count]) => [upper, (sum += count) / total]);
}

// How much wider a bucket's end is than the one before, where they are densest.
function bucketRatio(histograms) {
  let least = Infinity;
  for (const {buckets} of histograms)
    for (let i = 1; i < buckets.length; ++i)
      if (buckets[i - 1][0] > 0) least = Math.min(least, buckets[i][0] / buckets[i - 1][0]);
  return Math.max(1.005, least < Infinity ? least : 1.03);
}

// Bins on a log axis which all histograms of a plot share: {low, width, count}, in decades. Never so fine
// that a bin shows the buckets' own widths.
function logBins(histograms) {
  const ends = histograms.flatMap(
      ({buckets}) => buckets.filter(([, count]) => count > 0).map(([upper]) => Math.max(1, upper)));
  const ratio = bucketRatio(histograms);
  const low = Math.log10(Math.min(...ends) / ratio), high = Math.log10(Math.max(...ends));
  const width = Math.max((high - low) / 80, Math.log10(ratio) * (ratio < 1.1 ? 3 : 1));
  return {low, width, count: Math.max(1, Math.ceil((high - low) / width - 1e-9)), ratio};
}

// Share of the samples in each bin. A bucket across several bins gives each its part.
function binned(buckets, {low, width, count, ratio}) {
  const shares = new Array(count).fill(0);
  const total = totalOf(buckets);
  const clamped = (place) => Math.min(count - 1, Math.max(0, place));
  let before = 0;
  for (const [upper, samples] of buckets) {
    const end = Math.log10(Math.max(1, upper));
    const begin = Math.max(end - Math.log10(ratio), before > 0 ? Math.log10(before) : -Infinity);
    before = upper;
    const from = (begin - low) / width, until = (end - low) / width;
    if (until - from < 1e-9) {
      shares[clamped(Math.ceil(until - 1e-9) - 1)] += samples / total;
      continue;
    }
    for (let bin = clamped(Math.floor(from + 1e-9)); bin <= clamped(Math.ceil(until - 1e-9) - 1); ++bin) {
      const lower = bin === 0 ? -Infinity : bin, higher = bin === count - 1 ? Infinity : bin + 1;
      shares[bin] +=
          samples / total * Math.max(0, Math.min(until, higher) - Math.max(from, lower)) / (until - from);
    }
  }
  return shares;
}

// Stages

// What the bar chart shows: clocks per packet and packets per vector of each, and of all over the packets of
// the stage that saw most.
function stageRows(stages) {
  const clocks = stages.reduce((sum, stage) => sum + stage.clocks, 0);
  const most = Math.max(0, ...stages.map((stage) => stage.packets));
  const ratio = (a, b) => (b > 0 ? a / b : null);
  const rows = stages.map((stage) => ({
                            ...stage,
                            perPacket: ratio(stage.clocks, stage.packets),
                            perVector: ratio(stage.packets, stage.vectors),
                            share: ratio(stage.clocks, clocks)
                          }));
  return {
    rows,
    perPacket: ratio(clocks, most),
    widest: Math.max(0, ...rows.map((row) => row.perPacket ?? 0))
  };
}
