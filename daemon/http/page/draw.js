// Draws the map on a canvas.
import {glyphOf} from './states.js';
import {placeOf} from './layout.js';

// The colours of colours.css.
export function coloursOf(element) {
  const style = getComputedStyle(element);
  const colour = (name) => style.getPropertyValue(`--${name}`).trim();
  const colours = {};
  for (const name of [
    'failed',
    'unreachable',
    'suspect',
    'degraded',
    'proving',
    'drained',
    'weighted',
    'uncabled',
    'unknown',
    'healthy',
    'glyph',
    'text',
    'muted',
    'focus',
  ])
    colours[name] = colour(name);
  return colours;
}

function drawGlyph(paint, kind, x, y, size) {
  for (const stroke of glyphOf(kind)) {
    paint.beginPath();
    if (stroke.length === 3) {
      paint.arc(x + stroke[0] * size, y + stroke[1] * size, Math.max(1, stroke[2] * size), 0, 2 * Math.PI);
    } else {
      paint.moveTo(x + stroke[0] * size, y + stroke[1] * size);
      paint.lineTo(x + stroke[2] * size, y + stroke[3] * size);
    }
    paint.stroke();
  }
}

function fitted(paint, text, width) {
  let shown = text;
  while (shown.length > 1 && paint.measureText(shown).width > width) shown = shown.slice(0, -2) + '…';
  return shown;
}

function drawTexts(paint, model, layout, colours) {
  paint.font = '11px ui-monospace, "DejaVu Sans Mono", monospace';
  paint.textBaseline = 'middle';
  paint.fillStyle = colours.muted;
  const railWidth = layout.cell + 1;
  for (let column = 0; column < layout.columns; ++column) {
    const left = column * layout.columnWidth;
    // The rails by the end of their name ("7" of "rail7"), or else the first node of the column.
    if (layout.labelled && layout.cell >= 12)
      model.rails.forEach((rail, i) => {
        const number = rail.match(/\d+$/)?.[0] ?? rail[0];
        paint.fillText(number, left + layout.label + i * railWidth + Math.max(0, (layout.cell - number.length * 6.6) / 2), 7);
      });
    else if (column * layout.rows < model.order.length)
      paint.fillText(fitted(paint, model.order[column * layout.rows], layout.columnWidth - 6), left, 7);
  }
  if (!layout.labelled) return;
  paint.fillStyle = colours.text;
  model.order.forEach((name, i) => {
    const at = placeOf(layout, i, 0);
    paint.fillText(fitted(paint, name, layout.label - 8), at.x - layout.label, at.y + layout.cell / 2);
  });
}

export function drawMap(canvas, model, layout, colours, at, selected) {
  const scale = globalThis.devicePixelRatio || 1;
  canvas.width = Math.ceil(layout.width * scale);
  canvas.height = Math.ceil((layout.height + 2) * scale);
  canvas.style.width = `${layout.width}px`;
  canvas.style.height = `${layout.height + 2}px`;
  const paint = canvas.getContext('2d');
  paint.scale(scale, scale);
  drawTexts(paint, model, layout, colours);
  paint.strokeStyle = colours.glyph;
  paint.lineWidth = Math.max(1.2, layout.cell / 8);
  const {cell} = layout;
  // The healthy ones, thousands mostly, as one shape.
  paint.fillStyle = colours.healthy;
  paint.beginPath();
  const others = [];
  model.order.forEach((name, i) => {
    const cells = model.nodes.get(name).cells;
    for (let rail = 0; rail < cells.length; ++rail) {
      const nic = cells[rail];
      if (nic === null) continue;
      const {x, y} = placeOf(layout, i, rail);
      if (nic.kind === 'healthy') paint.rect(x, y, cell, cell);
      if (nic.kind !== 'healthy' || nic.key === selected) others.push({nic, x, y});
    }
  });
  paint.fill();
  for (const {nic, x, y} of others) {
    if (nic.kind !== 'healthy') {
      paint.fillStyle = colours[nic.kind];
      paint.fillRect(x, y, cell, cell);
      drawGlyph(paint, nic.kind, x, y, cell);
    }
    if (nic.key === selected) outline(paint, colours.text, x, y, cell, 2);
  }
  if (at !== null) {
    const {x, y} = placeOf(layout, at.node, at.rail);
    outline(paint, colours.focus, x, y, cell, 2);
  }
}

function outline(paint, colour, x, y, cell, width) {
  paint.save();
  paint.strokeStyle = colour;
  paint.lineWidth = width;
  paint.strokeRect(x - 1, y - 1, cell + 2, cell + 2);
  paint.restore();
}
