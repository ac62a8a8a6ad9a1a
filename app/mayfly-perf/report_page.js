// SPDX-License-Identifier: BSD-3-Clause
// The report page from top to bottom: what the JSON in it says (docs/perf-report.schema.json), section by
// section.
'use strict';

const kMarkKinds = {
  create: 'mass create',
  delete: 'mass delete',
  quiet: 'quiet',
  other: 'other'
};

const kTimePlots = [
  {
    title: 'Throughput',
    unit: 'pps',
    series: [
      {column: 'rx_pps', label: 'received', colour: 0},
      {column: 'tx_pps', label: 'sent', colour: 1, dash: '6 3'}
    ]
  },
  {
    title: 'Latency',
    unit: 'ns',
    log: true,
    series: [
      {column: 'latency_p50_ns', label: 'median', colour: 0},
      {column: 'latency_p99_ns', label: 'p99', colour: 2, dash: '8 3'},
      {column: 'latency_p999_ns', label: 'p99.9', colour: 1, dash: '3 3'},
      {column: 'latency_max_ns', label: 'max', colour: 3, width: 1.5}
    ]
  },
  {
    title: 'Packets lost',
    unit: 'packets',
    whole: true,
    series: [{column: 'lost', label: 'since the sample before', colour: 1, kind: 'stems'}]
  },
  {title: 'Drops with a reason', unit: 'pps', series: [{column: 'drops_pps', label: 'dropped', colour: 1}]},
  {
    title: 'Grace period',
    unit: 'ns',
    log: true,
    series: [
      {column: 'grace_p50_ns', label: 'median', colour: 0},
      {column: 'grace_p99_ns', label: 'p99', colour: 2, dash: '8 3'}
    ]
  },
  {
    title: 'Teardown backlog',
    unit: 'objects',
    whole: true,
    limit: 'backlog_objects',
    series: [{column: 'backlog_objects', label: 'retired, not reclaimed', colour: 3}]
  },
  {
    title: 'Teardown backlog',
    unit: 'B',
    limit: 'backlog_bytes',
    series: [{column: 'backlog_bytes', label: 'retired, not reclaimed', colour: 3}]
  },
  {
    title: 'Memory (RSS)',
    unit: 'B',
    zoom: true,
    series: [{column: 'rss_bytes', label: 'resident', colour: 2}]
  },
  {
    title: 'Interfaces',
    unit: 'interfaces',
    whole: true,
    series: [{column: 'interfaces', label: 'existing', colour: 0, kind: 'step'}]
  },
];

function cell(text, kind) { return html('td', kind ? {class: kind} : {}, text); }

function table(heads, rows) {
  return html(
      'div', {class: 'wide'},
      html(
          'table', {},
          html(
              'thead', {},
              html(
                  'tr', {},
                  ...heads.map(
                      ([text, kind]) =>
                          html('th', kind ? {class: kind, scope: 'col'} : {scope: 'col'}, text)))),
          html('tbody', {}, ...rows)));
}

function section(title, ...children) { return html('section', {}, html('h2', {}, title), ...children); }

function header(report) {
  const when = (report.started ?? '').replace('T', ' ').replace(/Z$/, ' UTC');
  const parts = [
    html('h1', {}, `mayfly-perf ${report.run ?? ''}`),
    html(
        'p', {class: 'faint'},
        [when, report.version ? `Mayfly ${report.version}` : '', machineLine(report.machine ?? {})]
            .filter((text) => text)
            .join(' \u00b7 '))
  ];
  if (report.command) parts.push(html('code', {class: 'command'}, report.command));
  if (report.facts?.length > 0)
    parts.push(html(
        'dl', {class: 'facts'},
        ...report.facts.map(
            (fact) => html('div', {class: 'fact'}, html('dt', {}, fact.label), factValue(fact)))));
  return html('header', {}, ...parts);
}

function factValue({label, value, unit}) {
  const [text, name] = readable(value, unit).split(kFixedSpace);
  return html('dd', {}, text, name && !label.includes(name) ? html('small', {}, ` ${name}`) : '');
}

function machineLine(machine) {
  return [
    isNumber(machine.cpus) ? `${grouped(machine.cpus)} CPUs` : '', machine.model,
    machine.kernel ? `Linux ${machine.kernel}` : ''
  ].filter((text) => text)
      .join(', ');
}

function results(report) {
  const rows = report.results ?? [];
  if (rows.length === 0) return null;
  const phases = rows.some((row) => row.phase);
  const heads = [
    ['', 'text'], ...(phases ? [['phase', 'text']] : []), ['unit', 'text'], ['count'], ['min'], ['median'],
    ['p99'], ['p99.9'], ['max']
  ];
  return section('Summary', table(heads, rows.map((row) => {
                   const measured = row.count !== 0;
                   const values = [row.min, row.median, row.p99, row.p999, row.max].map(
                       (value) => (measured ? value : null));
                   const {name, texts} = comparable(values, row.unit, values[1]);
                   return html(
                       'tr', {}, cell(row.label, 'text'), ...(phases ? [cell(row.phase ?? '', 'text')] : []),
                       cell(name, 'text'), cell(isNumber(row.count) ? grouped(row.count) : kNone),
                       ...texts.map((text, place) => cell(text, place === 1 ? 'median' : '')));
                 })));
}

// Ports have columns of their own beside those for all of them: rx_pps:NAME, tx_pps:NAME.
function portPlot(columns) {
  const ports = [...new Set(
      columns.map((name) => /^[rt]x_pps:(.+)$/s.exec(name)?.[1]).filter((port) => port !== undefined))];
  if (ports.length === 0) return [];
  return [{
    title: 'Throughput by port',
    unit: 'pps',
    series: ports.flatMap(
        (port, place) =>
            [{column: `rx_pps:${port}`, label: `${port} received`, colour: place % 8},
             {column: `tx_pps:${port}`, label: `${port} sent`, colour: place % 8, dash: '6 3'}])
  }];
}

function timePlots(report, timeline, rows) {
  const columns = report.series?.columns ?? [];
  const place = new Map(columns.map((name, index) => [name, index]));
  const plots = [];
  const [first, ...rest] = kTimePlots;
  for (const spec of [first, ...portPlot(columns), ...rest]) {
    const series =
        spec.series.filter(({column}) => place.has(column))
            .map((one) => ({...one, values: rows.map((row) => row[place.get(one.column)] ?? null)}));
    if (series.length === 0) continue;
    const limits = [[spec.limit, 'mark'], [`${spec.limit}_low`, 'low mark']]
                       .map(([key, label]) => ({label, value: spec.limit ? report.limits?.[key] : undefined}))
                       .filter(({value}) => isNumber(value) && value > 0);
    plots.push(new TimePlot(timeline, spec.title, series, {...spec, limits}));
  }
  return plots;
}

function bandKey(timeline, reset) {
  const kinds = Object.keys(kMarkKinds)
                    .filter(
                        (kind) => timeline.marks.some(
                            (mark) => (kMarkKinds[mark.kind] ? mark.kind : 'other') === kind));
  return html(
      'p', {class: 'key'},
      ...kinds.map(
          (kind) => html(
              'span', {},
              svg('svg', {width: 22, height: 14, 'aria-hidden': 'true'},
                  svg('rect', {class: `band-${kind}`, width: 22, height: 14}),
                  svg('rect', {class: `strip-${kind}`, width: 22, height: 4})),
              kMarkKinds[kind])),
      html('span', {class: 'screen-only'}, 'drag across a plot for a closer look'), reset);
}

function overTime(report, plots) {
  const place = (report.series?.columns ?? []).indexOf('at_ns');
  const rows = (report.series?.rows ?? [])
                   .filter((row) => place >= 0 && isNumber(row[place]))
                   .sort((a, b) => a[place] - b[place]);
  const timeline = new Timeline(rows.map((row) => row[place]), report.marks ?? []);
  const drawn = timePlots(report, timeline, rows);
  if (drawn.length === 0) return null;
  plots.push(...drawn);
  const reset = html('button', {type: 'button', class: 'screen-only', hidden: ''}, 'whole run');
  reset.addEventListener('click', () => timeline.zoom(0, 0));
  timeline.changed = (zoomed) => {
    reset.hidden = !zoomed;
  };
  return section('Over time', bandKey(timeline, reset), ...drawn.map((plot) => plot.figure));
}

// Histograms of one name share a pair of plots.
function distributions(report, plots) {
  const groups = new Map();
  for (const histogram of report.histograms ?? []) {
    const buckets = (histogram.buckets ?? [])
                        .filter(([upper, count]) => isNumber(upper) && count > 0)
                        .sort((a, b) => a[0] - b[0]);
    if (buckets.length === 0) continue;
    const key = JSON.stringify([histogram.name, histogram.unit]);
    groups.set(key, [...(groups.get(key) ?? []), {...histogram, buckets}]);
  }
  if (groups.size === 0) return null;
  const figures = [...groups.values()].map((histograms) => {
    const {name, unit} = histograms[0];
    const title = name.charAt(0).toUpperCase() + name.slice(1).replaceAll('_', ' ');
    const pair = [
      new DistributionPlot(title, histograms, unit),
      new PercentilePlot(`${title}, percentiles`, histograms, unit)
    ];
    plots.push(...pair);
    return html('div', {class: 'pair'}, ...pair.map((plot) => plot.figure));
  });
  return section('Distribution', ...figures);
}

function stages(report) {
  if (!(report.stages?.length > 0)) return null;
  const {rows, perPacket, widest} = stageRows(report.stages);
  const number = (value) => (value === null ? kNone : grouped(value, 1));
  const heads = [
    ['stage', 'text'], ['clocks per packet', 'text'], [''], ['share'], ['packets per vector'], ['packets'],
    ['vectors']
  ];
  return section(
      'Clocks per packet',
      table(
          heads,
          [
            ...rows.map((row) => {
              const bar = html('div', {
                class: 'bar',
                style: `width: ${widest > 0 ? (100 * (row.perPacket ?? 0) / widest).toFixed(1) : 0}%`
              });
              return html(
                  'tr', {}, cell(row.stage, 'text'), html('td', {class: 'barred'}, bar),
                  cell(number(row.perPacket), 'median'),
                  cell(row.share === null ? kNone : `${grouped(100 * row.share, 1)}%`),
                  cell(number(row.perVector)), cell(grouped(row.packets)), cell(grouped(row.vectors)));
            }),
            html(
                'tr', {class: 'total'}, cell('all', 'text'), cell(''), cell(number(perPacket)), cell(''),
                cell(''), cell(''), cell(''))
          ]),
      html(
          'p', {class: 'faint'},
          'All: the clocks of all stages over the packets of the stage that saw most.'));
}

function setting(value) {
  if (typeof value === 'boolean') return value ? 'yes' : 'no';
  if (isNumber(value)) return grouped(value, Number.isInteger(value) ? 0 : decimalsFor(value, 4));
  return value === null || value === undefined ? kNone : String(value);
}

function list(title, entries) {
  if (entries.length === 0) return null;
  return html(
      'div', {}, html('h3', {}, title),
      html(
          'table', {},
          html(
              'tbody', {},
              ...entries.map(
                  ([key, value]) => html('tr', {}, cell(key.replaceAll('_', ' ')), cell(setting(value)))))));
}

function settings(report, save) {
  const {notes, ...machine} = report.machine ?? {};
  if (machine.tsc_hz === 0)
    delete machine.tsc_hz;
  else if (isNumber(machine.tsc_hz))
    machine.tsc_hz = readable(machine.tsc_hz, 'Hz');
  const names = {cpus: 'CPUs', tsc_hz: 'TSC'};
  const parts = [html(
      'div', {class: 'settings'}, list('Settings', Object.entries(report.settings ?? {})),
      list('Machine', Object.entries(machine).map(([key, value]) => [names[key] ?? key, value])))];
  if (notes?.length > 0)
    parts.push(
        html('h3', {style: 'margin-top: 20px'}, 'Notes'),
        html('ul', {}, ...notes.map((note) => html('li', {}, note))));
  return section(
      'Settings and machine', ...parts, html('p', {class: 'screen-only', style: 'margin-top: 20px'}, save));
}

// The figures leave the page as they came.
function saveButton(text, run) {
  const button = html('button', {type: 'button'}, 'save the figures as JSON');
  button.addEventListener('click', () => {
    const link = html('a', {
      href: URL.createObjectURL(new Blob([text], {type: 'application/json'})),
      download: `mayfly-perf-${run ?? 'run'}.json`
    });
    link.click();
    URL.revokeObjectURL(link.href);
  });
  return button;
}

// A plot is as wide as its column; paper has a width of its own.
const kPrintWidth = 700;

function keepSized(plots) {
  const fit = () => plots.forEach((plot) => plot.resize(plot.area.clientWidth));
  fit();
  new ResizeObserver(fit).observe(document.getElementById('page'));
  window.addEventListener(
      'beforeprint',
      () => plots.forEach((plot) => plot.resize(Math.min(kPrintWidth, plot.area.clientWidth))));
  window.addEventListener('afterprint', fit);
}

function build() {
  const page = document.getElementById('page');
  const text = document.getElementById('report').textContent;
  let report;
  try {
    report = JSON.parse(text);
  } catch (error) {
    page.replaceChildren(
        html('p', {class: 'failure'}, `The figures in this page are not JSON: ${error.message}`));
    return;
  }
  document.title = `mayfly-perf ${report.run ?? ''} ${report.started ?? ''}`.trim();
  const plots = [];
  const measured = [
    results(report), overTime(report, plots), distributions(report, plots), stages(report)
  ].filter((part) => part !== null);
  if (measured.length === 0) measured.push(html('p', {}, 'This run measured nothing.'));
  page.replaceChildren(header(report), ...measured, settings(report, saveButton(text, report.run)));
  keepSized(plots);
}

if (typeof document !== 'undefined') build();
