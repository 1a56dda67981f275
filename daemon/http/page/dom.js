// Makes elements. A text is always a text node: no markup is ever made of what comes from the daemon.
import {glyphOf} from './states.js';

const SVG = 'http://www.w3.org/2000/svg';

function filled(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith('on')) element.addEventListener(name.slice(2), value);
    else if (value === true) element.setAttribute(name, '');
    else if (value !== false && value !== null) element.setAttribute(name, value);
  }
  element.append(...children.flat(Infinity).filter((child) => child !== null));
  return element;
}

export const h = (tag, attributes = {}, ...children) => filled(document.createElement(tag), attributes, children);
export const s = (tag, attributes = {}, ...children) => filled(document.createElementNS(SVG, tag), attributes, children);
export const find = (id) => document.getElementById(id);

// Bidirectional and other control characters of a text are shown, so that they cannot turn the line around.
export const clean = (text) => text.replace(/[\u0000-\u001f\u007f-\u009f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff]/g, '\ufffd');

export function glyph(kind) {
  const strokes = glyphOf(kind).map((stroke) =>
    stroke.length === 3
      ? s('circle', {cx: stroke[0] * 14, cy: stroke[1] * 14, r: Math.max(1, stroke[2] * 14)})
      : s('path', {d: `M${stroke[0] * 14} ${stroke[1] * 14}L${stroke[2] * 14} ${stroke[3] * 14}`}),
  );
  return s(
    'svg',
    {class: 'glyph', viewBox: '0 0 14 14', 'data-kind': kind, 'aria-hidden': 'true'},
    s('rect', {width: 14, height: 14}),
    strokes,
  );
}

// Replaces what is in `element` and keeps the focus on what has the same data-focus.
export function replace(element, ...children) {
  const focused = element.contains(document.activeElement) ? document.activeElement.getAttribute('data-focus') : null;
  element.replaceChildren(...children.flat(Infinity).filter((child) => child !== null));
  if (focused !== null) [...element.querySelectorAll('[data-focus]')].find((one) => one.getAttribute('data-focus') === focused)?.focus();
}
