// SPDX-License-Identifier: BSD-3-Clause
// What all plots of the report page are made of: SVG that is drawn again when the width or a line's
// visibility changes. Its colours are the style sheet's, so light, dark and paper need no drawing.
'use strict';

const kSvg = 'http://www.w3.org/2000/svg';
const kHeight = 196;
const kMargin = {
  left: 76,
  right: 14,
  top: 24,
  bottom: 26
};

function fill(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
  node.append(...children.filter((child) => child !== null));
  return node;
}
const html = (name, attributes = {}, ...children) => fill(document.createElement(name), attributes, children);
const svg = (name, attributes = {}, ...children) =>
    fill(document.createElementNS(kSvg, name), attributes, children);

const colour = (series) => `var(--colour-${series.colour})`;

function textWidth(text) { return text.length * 6.6; }

// What a line looks like, for legends and readouts.
function swatch(series) {
  const line = svg(
      'line',
      {x1: 1, x2: 21, y1: 5, y2: 5, style: `stroke: ${colour(series)}`, 'stroke-width': series.width ?? 2});
  if (series.dash) line.setAttribute('stroke-dasharray', series.dash);
  return svg('svg', {width: 22, height: 10, 'aria-hidden': 'true'}, line);
}

// A figure with a caption (title, note, legend), the drawing and the readout that follows the pointer. A
// subclass has draw(box), which returns what the drawing holds, point(x), which answers the pointer, and
// leave().
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
    const button = html(
        'button', {type: 'button', 'aria-pressed': 'true', title: 'show or hide'}, swatch(series),
        series.label);
    button.addEventListener('click', () => {
      if (!this.hidden.delete(series)) this.hidden.add(series);
      button.setAttribute('aria-pressed', String(!this.hidden.has(series)));
      this.redraw();
    });
    return button;
  }

  shown() { return this.series.filter((one) => !this.hidden.has(one)); }

  place(event) { return event.clientX - this.drawing.getBoundingClientRect().left; }

  resize(width) {
    if (width === this.width || width <= 0) return;
    this.width = width;
    this.redraw();
  }

  redraw() {
    if (this.width <= 0) return;
    const box = {
      left: kMargin.left,
      right: Math.max(kMargin.left + 40, this.width - kMargin.right),
      top: kMargin.top,
      bottom: kHeight - kMargin.bottom
    };
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
      parts.push(
          svg('path', {class: 'grid', d: `M${box.left} ${at.toFixed(1)}H${box.right}`}),
          svg('text', {x: box.left - 7, y: (at + 4).toFixed(1), 'text-anchor': 'end'}, text));
    for (const {at, text} of horizontal)
      parts.push(
          svg('path', {class: 'axis', d: `M${at.toFixed(1)} ${box.bottom}v4`}),
          svg('text', {
            x: Math.min(at, this.width - textWidth(text) / 2).toFixed(1),
            y: box.bottom + 17,
            'text-anchor': 'middle'
          },
              text));
    parts.push(svg('path', {class: 'axis', d: `M${box.left} ${box.top}V${box.bottom}H${box.right}`}));
    return parts;
  }

  strokes(series, drawn, x, y, base) {
    const {line, dots} = paths(drawn, x, y, series.kind ?? 'line', base);
    const parts = [];
    if (line) {
      // Several samples a pixel make a dash pattern noise.
      const dense = drawn.length > this.box.right - this.box.left;
      const path = svg('path', {
        class: 'line',
        d: line,
        style: `stroke: ${colour(series)}`,
        'stroke-width': dense ? 1.2 : series.width ?? 2
      });
      if (series.dash && !dense) path.setAttribute('stroke-dasharray', series.dash);
      parts.push(path);
    }
    if (dots)
      parts.push(
          svg('path', {class: 'dots', d: dots, style: `stroke: ${colour(series)}`, 'stroke-width': 6}));
    return parts;
  }

  // The cursor at x with a dot on each [y, series], and, in the plot that is pointed at, the readout beside
  // it.
  show(x, dots, lines) {
    const {box} = this;
    this.cursor.replaceChildren(
        svg('path', {class: 'cursor', d: `M${x.toFixed(1)} ${box.top}V${box.bottom}`}),
        ...dots.map(([y, series]) => svg('circle', {
                      class: 'cursor-dot',
                      cx: x.toFixed(1),
                      cy: y.toFixed(1),
                      r: 4,
                      style: `fill: ${colour(series)}`
                    })));
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
    return html(
        'table', {},
        ...entries.map(
            ([series, text]) =>
                html('tr', {}, html('td', {}, swatch(series), series.label), html('td', {}, text))));
  }
}
