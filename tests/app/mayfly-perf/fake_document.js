// SPDX-License-Identifier: BSD-3-Clause
// As much of a browser's document as the report page uses, so that the page can be drawn where there is no
// browser. What it cannot know (layout) is given: every element is as wide as the window.
'use strict';

class FakeElement {
  constructor(name) {
    this.name = name;
    this.attributes = {};
    this.children = [];
    this.listeners = {};
    this.style = {};
    this.text = '';
  }

  get textContent() {
    return this.text +
        this.children.map((child) => (typeof child === 'string' ? child : child.textContent)).join('');
  }

  set textContent(text) {
    this.children = [];
    this.text = String(text);
  }

  get clientWidth() { return FakeElement.windowWidth; }

  set hidden(hidden) {
    if (hidden)
      this.attributes.hidden = '';
    else
      delete this.attributes.hidden;
  }

  get hidden() { return 'hidden' in this.attributes; }

  setAttribute(name, value) { this.attributes[name] = String(value); }

  getAttribute(name) { return this.attributes[name] ?? null; }

  append(...children) {
    for (const child of children)
      if (typeof child !== 'string' && !(child instanceof FakeElement))
        throw new TypeError(`${this.name}: cannot hold ${child}`);
    this.children.push(...children);
  }

  replaceChildren(...children) {
    this.children = [];
    this.append(...children);
  }

  addEventListener(type, listener) { (this.listeners[type] ??= []).push(listener); }

  // What a browser does when the user acts on this element.
  send(type, event = {}) {
    for (const listener of this.listeners[type] ?? [])
      listener({type, button: 0, pointerId: 1, pointerType: 'mouse', preventDefault() {}, ...event});
  }

  getBoundingClientRect() { return {left: 0, top: 0, width: FakeElement.windowWidth}; }

  setPointerCapture() {}

  // This element and all below it, in their order.
  * all(wanted = () => true) {
    if (wanted(this)) yield this;
    for (const child of this.children)
      if (child instanceof FakeElement) yield* child.all(wanted);
  }

  withClass(name) { return [...this.all((node) => (node.attributes.class ?? '').split(' ').includes(name))]; }

  named(name) { return [...this.all((node) => node.name === name)]; }
}

// A document with the elements that report_page.html has, and the window around it.
function fakeBrowser(report, windowWidth) {
  FakeElement.windowWidth = windowWidth;
  const page = new FakeElement('main');
  const script = new FakeElement('script');
  script.textContent = report;
  const window = new FakeElement('window');
  return {
    page,
    window,
    document: {
      title: '',
      createElement: (name) => new FakeElement(name),
      createElementNS: (space, name) => new FakeElement(name),
      getElementById: (id) => ({page, report: script})[id] ?? null,
    },
    ResizeObserver: class {
      constructor(changed) { this.changed = changed; }

      observe() { window.resized = this.changed; }
    },
  };
}

module.exports = {
  fakeBrowser,
  FakeElement
};
