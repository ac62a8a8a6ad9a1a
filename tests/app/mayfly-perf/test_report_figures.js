// SPDX-License-Identifier: BSD-3-Clause
// The report page's scripts without a browser: its numbers, axes and samples, and the page drawn into a
// document that only remembers. Run by node; prints a line for each test that fails.
'use strict';

const assert = require('node:assert');
const fs = require('node:fs');
const path = require('node:path');
const vm = require('node:vm');
const {fakeBrowser, FakeElement} = require('./fake_document.js');

const kSources = path.join(__dirname, '../../../app/mayfly-perf');
const source = (name) => fs.readFileSync(path.join(kSources, name), 'utf8');
// In the page's order.
const kScripts = [...source('report_page.html').matchAll(/@(report_\w+\.js)@/g)].map(
    ([, name]) => new vm.Script(source(name), {filename: name}));

// The functions of the page. What they return is of another realm, whose arrays equal none of ours: plain()
// copies.
const figures = vm.createContext({});
kScripts[0].runInContext(figures);
const plain = (value) => JSON.parse(JSON.stringify(value));
const space = '\u00a0';

const tests = {
  'thousands are separated, whatever the sign'() {
    const expected = {
      '0': 0,
      '999': 999,
      '1,000': 1000,
      '1,234,567': 1234567,
      '\u22121,000': -1000,
      '18,446,744,073,709,551,616': 2 ** 64
    };
    for (const [text, value] of Object.entries(expected)) assert.equal(figures.grouped(value), text);
    assert.equal(figures.grouped(1234.5678, 2), '1,234.57');
    assert.equal(figures.grouped(0.1234, 3), '0.123');
    assert.equal(figures.grouped(-0.0001, 2), '0.00', 'nothing is -0');
  },

  'a value alone has the prefix that fits'() {
    const cases = [
      [12_345_678, 'pps', '12.35 Mpps'], [999, 'packets/s', '999 pps'], [0, 'pps', '0 pps'],
      [1_500, 'ns', '1.5 \u00b5s'], [2e9, 'ns', '2 s'], [0.25, 'ns', '0.25 ns'], [1536, 'B', '1.5 KiB'],
      [3 * 2 ** 30, 'bytes', '3 GiB'], [1_000_000, 'packets', '1,000,000 packets'], [97.1, '%', '97.1 %'],
      [2_100_000_000, 'Hz', '2.1 GHz'], [281.5, '', '281.5'], [100, undefined, '100'],
      [1e15, 'ns', '1,000,000 s']
    ];
    for (const [value, unit, text] of cases)
      assert.equal(figures.readable(value, unit), text.replace(/ (?=\S+$)/, space));
    for (const nothing of [null, undefined, NaN, Infinity, '1'])
      assert.equal(figures.readable(nothing, 'ns'), '\u2013');
  },

  'values of a row share a unit, and none that is not 0 reads as 0'() {
    assert.deepEqual(
        plain(figures.comparable([812, 9_021, 240_123], 'ns', 9_021)),
        {name: '\u00b5s', texts: ['0.812', '9.021', '240.123']});
    assert.deepEqual(
        plain(figures.comparable([1, 5_000_000], 'ns', 5_000_000)),
        {name: 'ms', texts: ['0.0000010', '5.000']});
    assert.deepEqual(
        plain(figures.comparable([812_345, 1_282_912], 'interfaces/s', 1_282_912)),
        {name: 'interfaces/s', texts: ['812,345', '1,282,912']});
    assert.deepEqual(
        plain(figures.comparable([null, null], 'ns', null)), {name: 'ns', texts: ['\u2013', '\u2013']});
    assert.deepEqual(plain(figures.comparable([0, 0, 0], 'B', 0)), {name: 'B', texts: ['0', '0', '0']});
  },

  'linear ticks are round, inside, even and few'() {
    for (let power = -9; power <= 15; ++power) {
      for (const [low, high] of [[0, 1], [0, 5.2], [0.3, 0.97], [-2, 7], [180, 211]]) {
        const [from, until] = [low * 10 ** power, high * 10 ** power];
        const {ticks, step, decimals} = figures.linearTicks(from, until, 5);
        assert(ticks.length >= 1 && ticks.length <= 7, `${from} .. ${until}: ${ticks}`);
        assert(ticks.every((tick) => tick >= from - step * 1e-6 && tick <= until + step * 1e-6));
        assert.match((step / 10 ** Math.floor(Math.log10(step) + 1e-9)).toFixed(6), /^[125]\.000000$/);
        assert.equal(
            new Set(ticks.map((tick) => figures.grouped(tick, decimals))).size, ticks.length,
            'labels differ');
      }
    }
    assert.deepEqual(plain(figures.linearTicks(0, 1, 5, 1).ticks), [0, 1], 'there is no half packet');
  },

  'log ticks are inside, rise, and are never more than asked for'() {
    for (const [low, high] of [
             [1, 10], [1e3, 1.2e3], [5, 5.5e6], [1, 1e12], [900, 1100], [7e3, 6e4], [0.01, 0.5], [2, 4]]) {
      for (const wanted of [3, 7, 12]) {
        const ticks = plain(figures.logTicks(low, high, wanted));
        assert(ticks.length >= 1 && ticks.length <= wanted + 1, `${low} .. ${high}, ${wanted}: ${ticks}`);
        ticks.forEach((tick, place) => {
          assert(tick >= low * 0.999999 && tick <= high * 1.000001, `${low} .. ${high}: ${tick}`);
          if (place > 0) assert(tick > ticks[place - 1]);
        });
      }
    }
    assert.deepEqual(plain(figures.logTicks(1, 100, 7)), [1, 2, 5, 10, 20, 50, 100]);
    assert.deepEqual(plain(figures.logTicks(1, 1e6, 7)), [1, 10, 100, 1e3, 1e4, 1e5, 1e6]);
  },

  'ranges hold all values and have a height'() {
    for (const values of [null, [0, 0], [5, 5], [-3, -3], [0, 1e9], [185e6, 206e6], [-1, 4], [1e-6, 1e-6]]) {
      for (const options of [{}, {zoom: true}, {leastStep: 1}]) {
        const [low, high] = figures.linearRange(values, 4, options);
        assert(high > low, `${values}`);
        if (values) assert(low <= values[0] && high >= values[1], `${values}: ${low} .. ${high}`);
        if (!options.zoom) assert(low <= 0, 'an axis begins at 0 unless it may not');
      }
    }
    assert(figures.linearRange([185, 206], 4, {zoom: true})[0] > 100);
    for (const values of [null, [5, 5], [1, 1e9]]) {
      const [low, high] = figures.logRange(values);
      assert(low > 0 && high > low);
    }
  },

  'the nearest sample is the nearest'() {
    const at = [0, 10, 11, 50];
    for (let x = -20; x < 80; ++x) {
      const away = at.map((time) => Math.abs(time - x));
      assert.equal(away[figures.nearest(at, x)], Math.min(...away));
    }
    assert.equal(figures.nearest([], 5), -1);
    assert.equal(figures.nearest([7], 5), 0);
  },

  'few samples are all drawn, with gaps where there are none'() {
    const at = [0, 1, 2, 3, 4, 5, 6];
    const draw = (values, span = [0, 6]) => plain(figures.worthDrawing(at, values, span, 100));
    assert.deepEqual(draw([1, 2, 3, 4, 5, 6, 7]), [0, 1, 2, 3, 4, 5, 6]);
    assert.deepEqual(draw([null, 2, null, null, 5, 6, null]), [1, -1, 4, 5]);
    assert.deepEqual(draw([null, null, null, null, null, null, null]), []);
    assert.deepEqual(draw([1, 2, 3, 4, 5, 6, 7], [2.5, 3.5]), [2, 3, 4], 'one more on either side');
    assert.deepEqual(plain(figures.worthDrawing([], [], [0, 1], 100)), []);
  },

  'of many samples every peak and every gap is drawn'() {
    const count = 10_000, columns = 200;
    const at = Array.from({length: count}, (_, i) => i);
    const values = at.map((i) => (i * 7919) % 101);
    values[1234] = 5000;
    values[8765] = -5000;
    for (let i = 4000; i < 4500; ++i) values[i] = null;
    const drawn = plain(figures.worthDrawing(at, values, [0, count - 1], columns));
    assert(drawn.length <= 4 * (columns + 2), `${drawn.length} drawn`);
    assert(drawn.includes(1234) && drawn.includes(8765));
    assert(drawn[0] === 0 && drawn[drawn.length - 1] === count - 1);
    assert.equal(drawn.filter((index) => index === -1).length, 1);
    const real = drawn.filter((index) => index !== -1);
    assert(
        real.every((index, place) => place === 0 || index > real[place - 1]), 'in their order, none twice');
    for (let column = 0; column < columns; ++column) {
      const inside = at.filter((i) => Math.floor(i / (count - 1) * columns) === column && values[i] !== null);
      if (inside.length === 0) continue;
      const shown = inside.filter((i) => real.includes(i)).map((i) => values[i]);
      assert.equal(Math.max(...shown), Math.max(...inside.map((i) => values[i])));
      assert.equal(Math.min(...shown), Math.min(...inside.map((i) => values[i])));
    }
  },

  'a sample without neighbours is a dot'() {
    const path = (drawn, kind) => plain(figures.paths(drawn, (i) => i * 10, (i) => i, kind, 99));
    assert.deepEqual(path([3]), {line: '', dots: 'M30 3h0'});
    assert.deepEqual(path([0, -1, 2, 3]), {line: 'M20 2L30 3', dots: 'M0 0h0'});
    assert.deepEqual(path([0, 1], 'step'), {line: 'M0 0H10V1', dots: ''});
    assert.deepEqual(path([0, 1], 'stems'), {line: 'M0 99V0M10 99V1', dots: ''});
    assert.deepEqual(path([]), {line: '', dots: ''});
  },

  'labels of marks keep out of each other and of the next band'() {
    const width = (text) => text.length * 6;
    const label = (marks) => plain(figures.markLabels(
        marks.map(([from_ns, until_ns, what, kind]) => ({from_ns, until_ns, what, kind})), (at) => at,
        [0, 1000], width));
    assert.deepEqual(
        label([
          [0, 200, 'quiet', 'quiet'], [200, 210, 'create 50,000', 'create'],
          [400, 500, 'delete 50,000', 'delete']
        ]),
        [{x: 3, text: 'quiet'}, {x: 203, text: 'create 50,000'}, {x: 403, text: 'delete 50,000'}]);
    assert.deepEqual(
        label([[0, 10, 'create 50,000', 'create'], [50, 60, 'delete 50,000', 'delete']]),
        [{x: 3, text: 'create'}, {x: 53, text: 'delete 50,000'}]);
    assert.deepEqual(
        label([[0, 5, 'create 50,000', 'create'], [10, 15, 'delete 50,000', 'delete']]),
        [{x: 13, text: 'delete 50,000'}]);
    assert.deepEqual(
        label([[-50, 300, 'churn', 'other'], [1100, 1200, 'later', 'other']]), [{x: 3, text: 'churn'}],
        'only what is in sight');
    const many = label(Array.from({length: 300}, (_, i) => [i * 3, i * 3 + 1, 'create 50,000', 'create']));
    many.forEach(
        ({x, text}, place) =>
            assert(place === 0 || x >= many[place - 1].x + width(many[place - 1].text), `${x} ${text}`));
  },

  'bands are one path a kind and never thinner than a pixel'() {
    const marks = [
      {from_ns: 10, until_ns: 20, kind: 'create'}, {from_ns: 30, until_ns: 30, kind: 'create'},
      {from_ns: 90, until_ns: 300, kind: 'strange'}, {from_ns: 500, until_ns: 600, kind: 'delete'}
    ];
    const found = plain(figures.bandPaths(marks, (at) => at, [0, 100], 5, 50));
    assert.deepEqual(
        found, {create: 'M10.0 5h10.0V50h-10.0ZM30.0 5h1.0V50h-1.0Z', other: 'M90.0 5h10.0V50h-10.0Z'});
  },

  'shares of a histogram'() {
    const buckets = [[10, 50], [20, 40], [40, 9], [1000, 1]];
    assert.equal(figures.totalOf(buckets), 100);
    assert.deepEqual(plain(figures.cumulative(buckets)), [[10, 0.5], [20, 0.9], [40, 0.99], [1000, 1]]);
  },

  'bins lose no sample, whatever the buckets are'() {
    const fine = Array.from({length: 400}, (_, i) => [Math.round(1000 * 1.02 ** i), 1 + (i * 31) % 17]);
    const sparse = fine.filter((_, i) => i % 7 === 0);
    const coarse = Array.from({length: 20}, (_, i) => [2 ** i, i + 1]);
    for (const sets
             of [[fine], [sparse], [coarse], [fine, sparse], [fine, coarse], [[[5, 3]]], [[[0, 1], [1, 1]]],
                 [[[7, 1], [7e9, 1]]]]) {
      const bins = figures.logBins(sets.map((buckets) => ({buckets})));
      assert(bins.count >= 1 && bins.count <= 90 && bins.width > 0, JSON.stringify(bins));
      for (const buckets of sets) {
        const shares = plain(figures.binned(buckets, bins));
        assert.equal(shares.length, bins.count);
        assert(shares.every((share) => share >= 0));
        assert(
            Math.abs(shares.reduce((sum, share) => sum + share, 0) - 1) < 1e-9,
            `${JSON.stringify(bins)}: ${shares}`);
      }
    }
  },

  'a bin has the samples of its values'() {
    const buckets = [[15, 30], [150, 60], [1500, 10]];
    const shares = plain(figures.binned(buckets, {low: 1, width: 1, count: 3, ratio: 1.05}));
    assert.deepEqual(shares.map((share) => Math.round(share * 100)), [30, 60, 10]);
  },

  'stages: clocks per packet, packets per vector, and what never ran'() {
    const {rows, perPacket, widest} = plain(figures.stageRows([
      {stage: 'rx', packets: 100, vectors: 4, clocks: 3000},
      {stage: 'route', packets: 50, vectors: 2, clocks: 1000},
      {stage: 'veth', packets: 0, vectors: 0, clocks: 0}
    ]));
    assert.deepEqual(
        rows.map((row) => [row.perPacket, row.perVector, row.share]),
        [[30, 25, 0.75], [20, 25, 0.25], [null, null, 0]]);
    assert.equal(perPacket, 40);
    assert.equal(widest, 30);
  },
};

// The page as a whole

const kSecond = 1e9;

function emptyReport() {
  return {
    run: 'churn',
    version: '0.1.0',
    started: '2026-01-02T03:04:05Z',
    command: 'mayfly-perf churn',
    machine: {cpus: 2, model: 'made up', kernel: '6.18', hugepages: false, tsc_hz: 0, notes: []},
    settings: {},
    results: [],
    facts: [],
    series: {columns: ['at_ns'], rows: []},
    marks: [],
    histograms: [],
    stages: []
  };
}

// Every column and section; `samples` rows a tenth of a second apart.
function fullReport(samples) {
  const columns = [
    'at_ns', 'rx_pps', 'tx_pps', 'rx_pps:port0', 'drops_pps', 'lost', 'latency_p50_ns', 'latency_p99_ns',
    'latency_p999_ns', 'latency_max_ns', 'grace_p50_ns', 'grace_p99_ns', 'backlog_objects', 'backlog_bytes',
    'rss_bytes', 'interfaces'
  ];
  const rows = Array.from(
      {length: samples},
      (_, i) =>
          [(i + 1) * kSecond / 10, 5e6 + i % 100, 5e6 - i % 7, 2.5e6, 0, i % 10 === 3 ? 2 : 0, 9000 + i % 11,
           20000, 0, 70000 + 1000 * (i % 5), i % 3 ? null : 15000, null, i % 50 * 1000, i % 50 * 400000,
           190e6 + i % 100, 100000]);
  return {
    ...emptyReport(),
    run: 'survive',
    series: {columns, rows},
    limits: {backlog_objects: 60000, backlog_bytes: 2 ** 40},
    marks: [
      {from_ns: 0, until_ns: 2 * kSecond, what: 'quiet', kind: 'quiet'},
      {from_ns: 2 * kSecond, until_ns: 3 * kSecond, what: 'create 50,000', kind: 'create'}
    ],
    results: [
      {
        name: 'rate',
        label: 'created',
        unit: 'interfaces/s',
        phase: 'bulk',
        count: 3,
        min: 1000,
        median: 1234567,
        p99: 2e6,
        p999: 2e6,
        max: 2e6
      },
      {name: 'first', label: 'first create', unit: 'ns', count: 0, min: 0, median: 0, p99: 0, p999: 0, max: 0}
    ],
    facts: [{name: 'lost', label: 'packets lost', value: 0, unit: 'packets'}],
    histograms: [
      {name: 'latency', label: 'quiet', unit: 'ns', buckets: [[8000, 5], [9000, 100], [20000, 1]]},
      {name: 'latency', label: 'churn', unit: 'ns', buckets: [[9500, 10]]},
      {name: 'latency', label: 'never', unit: 'ns', buckets: []}
    ],
    stages: [
      {stage: 'rx', packets: 640, vectors: 10, clocks: 19200},
      {stage: 'idle', packets: 0, vectors: 0, clocks: 0}
    ]
  };
}

const kFullPlots = 10 + 2;  // over time, and two of the histograms

function open(report, width = 1200) {
  const browser = fakeBrowser(typeof report === 'string' ? report : JSON.stringify(report), width);
  const context = vm.createContext(
      {document: browser.document, window: browser.window, ResizeObserver: browser.ResizeObserver});
  for (const script of kScripts) script.runInContext(context);
  return browser;
}

const drawings = (page) => page.withClass('plot').map((plot) => plot.children[0]);

function checkDrawn(page) {
  for (const node of page.all()) {
    for (const [name, value] of Object.entries(node.attributes))
      assert(!/NaN|Infinity|undefined|null/.test(value), `<${node.name} ${name}="${value}">`);
    if (node.children.length === 0)
      assert(!/NaN|Infinity|undefined|null/.test(node.text), `<${node.name}>${node.text}`);
    for (const child of node.children)
      if (typeof child === 'string')
        assert(!/NaN|Infinity|undefined|null/.test(child), `<${node.name}>${child}`);
  }
}

Object.assign(tests, {
  'a report of nothing is a page that says so'() {
    const {page, document} = open(emptyReport());
    checkDrawn(page);
    assert.equal(drawings(page).length, 0);
    assert.match(page.textContent, /mayfly-perf churn.*This run measured nothing/s);
    assert.equal(document.title, 'mayfly-perf churn 2026-01-02T03:04:05Z');
    checkDrawn(open({}).page);
  },

  'every section of a full report is drawn, for any count of samples and any width'() {
    for (const samples of [0, 1, 2, 3, 50, 10_000]) {
      for (const width of [240, 390, 1200]) {
        const {page} = open(fullReport(samples), width);
        checkDrawn(page);
        assert.equal(drawings(page).length, kFullPlots);
        assert.deepEqual(
            page.named('h2').map((title) => title.textContent),
            ['Summary', 'Over time', 'Distribution', 'Clocks per packet', 'Settings and machine']);
        const drawn = drawings(page).map(
            (drawing) => drawing.withClass('line').length + drawing.withClass('dots').length);
        if (samples > 3) assert(drawn.filter((lines) => lines === 0).length === 0, `${samples}: ${drawn}`);
        const data = drawings(page)
                         .flatMap((drawing) => drawing.named('path'))
                         .reduce((sum, node) => sum + node.attributes.d.length, 0);
        assert(data < 700_000, `${data} bytes of paths for ${samples} samples`);
      }
    }
  },

  'a report that is no JSON is a page that says so'() {
    for (const text of ['', '{', 'undefined']) assert.match(open(text).page.textContent, /not JSON/);
  },

  'what has no sample says so, what is 0 throughout too'() {
    const report = fullReport(20);
    const {columns, rows} = report.series;
    for (const row of rows) {
      row[columns.indexOf('rss_bytes')] = null;
      row[columns.indexOf('lost')] = 0;
    }
    const {page} = open(report);
    const figure = (title) =>
        page.named('figure').find((one) => one.withClass('title')[0].textContent.startsWith(title));
    assert.match(figure('Memory').textContent, /no samples/);
    assert.match(figure('Packets lost').textContent, /0 in all 20 samples/);
    assert.match(figure('Teardown backlog, objects').textContent, /mark 60,000/);
    assert.match(figure('Teardown backlog, MiB').textContent, /mark 1.TiB, highest here 0\.0% of it/);
    assert.equal(figure('Throughput').withClass('band-create').length, 1);
    assert.match(figure('Throughput').textContent, /create 50,000/);
  },

  'a column that is absent has no plot'() {
    const report = fullReport(20);
    report.series = {columns: ['rss_bytes', 'at_ns'], rows: [[1e6, 0], [null, 5], [2e6, kSecond]]};
    report.histograms = [];
    delete report.limits;
    const {page} = open(report);
    checkDrawn(page);
    assert.deepEqual(page.withClass('title').map((title) => title.textContent), ['Memory (RSS), MiB']);
  },

  'the table has the numbers of the report'() {
    const {page} = open(fullReport(3));
    const rows =
        page.named('tbody')[0].named('tr').map((row) => row.named('td').map((cell) => cell.textContent));
    assert.deepEqual(rows, [
      ['created', 'bulk', 'interfaces/s', '3', '1,000', '1,234,567', '2,000,000', '2,000,000', '2,000,000'],
      ['first create', '', 'ns', '0', '\u2013', '\u2013', '\u2013', '\u2013', '\u2013']
    ]);
    assert.equal(page.withClass('fact')[0].textContent, 'packets lost0');
    assert.match(page.textContent, /idle\u2013/, 'a stage that never ran has no clocks per packet');
  },

  'the readout follows the pointer, in the plot that is pointed at'() {
    const {page} = open(fullReport(50));
    const [throughput] = drawings(page);
    throughput.send('pointermove', {clientX: 76});
    const readouts = page.withClass('readout');
    assert.equal(readouts.filter((readout) => !readout.hidden).length, 1);
    assert.match(readouts[0].textContent, /^100.msquietreceived5.Mppssent5.Mpps$/);
    assert.equal(page.withClass('cursor').length, kFullPlots - 2, 'the cursor is in all plots over time');
    throughput.send('pointerleave');
    assert.equal(page.withClass('cursor').length, 0);
    for (const drawing of drawings(page))
      for (const x of [0, 76, 300, 700, 1199, 5000]) drawing.send('pointermove', {clientX: x});
    checkDrawn(page);
    throughput.send('keydown', {key: 'ArrowLeft'});
    throughput.send('keydown', {key: 'PageUp'});
    checkDrawn(page);
  },

  'dragging chooses a span, and a double click gives the whole run back'() {
    const {page} = open(fullReport(50));
    const [throughput, , latency] = drawings(page);
    const ticks = () =>
        latency.named('text').map((text) => text.textContent).filter((text) => / m?s$/.test(text)).join();
    const whole = ticks();
    throughput.send('pointerdown', {clientX: 300});
    throughput.send('pointermove', {clientX: 400});
    assert.equal(throughput.withClass('selection').length, 1);
    throughput.send('pointerup', {clientX: 400});
    assert.notEqual(ticks(), whole);
    checkDrawn(page);
    const reset = page.named('button').find((button) => button.textContent === 'whole run');
    assert(!reset.hidden);
    latency.send('dblclick');
    assert.equal(ticks(), whole);
    assert(reset.hidden);
    throughput.send('pointerdown', {clientX: 300});
    throughput.send('pointerup', {clientX: 301});
    assert.equal(ticks(), whole, 'a click is no span');
  },

  'a line can be hidden, and all of them'() {
    const {page} = open(fullReport(50));
    for (const figure of page.named('figure')) {
      const before = figure.withClass('line').length + figure.withClass('dots').length;
      const buttons = figure.withClass('legend')[0].named('button');
      for (const button of buttons) button.send('click');
      assert.equal(figure.withClass('line').length + figure.withClass('dots').length, 0);
      checkDrawn(page);
      for (const button of buttons) button.send('click');
      assert.equal(figure.withClass('line').length + figure.withClass('dots').length, before);
    }
  },

  'plots take the width they get, on paper too'() {
    const {page, window} = open(fullReport(50), 1200);
    const box = () => drawings(page)[0].attributes.viewBox;
    const wide = box();
    FakeElement.windowWidth = 390;
    window.resized();
    assert.equal(box(), '0 0 390 196');
    FakeElement.windowWidth = 1200;
    window.resized();
    assert.equal(box(), wide);
    window.send('beforeprint');
    assert.equal(box(), '0 0 700 196');
    window.send('afterprint');
    assert.equal(box(), wide);
  },

  'text of a report is never markup'() {
    const report = fullReport(5);
    const text = '</script><img src=x onerror=alert(1)>';
    report.command = report.machine.model = report.marks[1].what = report.results[0].label =
        report.stages[0].stage = text;
    report.settings = {[text]: text};
    const {page} = open(report);
    assert.equal(page.named('img').length, 0);
    assert.equal(page.withClass('command')[0].textContent, text);
  },
});

let failed = 0;
for (const [name, run] of Object.entries(tests)) {
  try {
    run();
  } catch (error) {
    ++failed;
    console.log(`failed: ${name}\n${error.stack}`);
  }
}
console.log(`${Object.keys(tests).length - failed} passed, ${failed} failed`);
process.exitCode = failed ? 1 : 0;
