// Places the cells of the map. Pure.

const HEADER = 16; // names of rails, or of a column's first node
const GAP = 10; // between two columns of nodes
const HEIGHT_MAX = 480; // so that 1,000 nodes fit on a screen
const LABELS_MAX = 64; // nodes that have their name next to them
const LABEL_CHAR = 7;

// The largest cells by which all nodes fit into the width and HEIGHT_MAX; with very many nodes the map is longer. Nodes go down one column
// after the other, so that a rail that is lost on all of them is a stripe.
export function layoutOf(model, width) {
  const nodes = model.order.length,
    rails = Math.max(1, model.rails.length);
  const labelled = nodes <= LABELS_MAX;
  const longest = Math.min(24, Math.max(4, ...(labelled ? model.order.map((name) => name.length) : [4])));
  const label = labelled ? longest * LABEL_CHAR + 8 : 0;
  for (let cell = labelled ? 18 : 14; ; --cell) {
    const columnWidth = label + rails * (cell + 1) + GAP;
    const fitting = Math.max(1, Math.floor((width + GAP) / columnWidth));
    // A few nodes are one column: two would part what belongs together.
    const columns = nodes <= 12 ? 1 : Math.min(fitting, Math.max(1, Math.ceil(nodes / 8)));
    const rows = Math.max(1, Math.ceil(nodes / columns));
    const height = HEADER + rows * (cell + 1);
    if (height <= HEIGHT_MAX || cell <= 6)
      return {
        cell,
        label,
        columnWidth,
        columns: Math.ceil(nodes / rows) || 1,
        rows,
        rails,
        nodes,
        labelled,
        header: HEADER,
        height,
        width: Math.min(width, (Math.ceil(nodes / rows) || 1) * columnWidth - GAP),
      };
  }
}

// The upper left corner of a cell; column -1 is the node's label.
export function placeOf(layout, node, rail) {
  return {
    x: Math.floor(node / layout.rows) * layout.columnWidth + layout.label + rail * (layout.cell + 1),
    y: layout.header + (node % layout.rows) * (layout.cell + 1),
  };
}

// The cell at a point, or null.
export function cellAt(layout, x, y) {
  const column = Math.floor(x / layout.columnWidth);
  const row = Math.floor((y - layout.header) / (layout.cell + 1));
  if (column < 0 || column >= layout.columns || row < 0 || row >= layout.rows) return null;
  const rail = Math.floor((x - column * layout.columnWidth - layout.label) / (layout.cell + 1));
  const node = column * layout.rows + row;
  return rail < 0 || rail >= layout.rails || node >= layout.nodes ? null : {node, rail};
}

// The cell to which a key leads from `at`; null: the key moves nothing.
export function moved(layout, at, key) {
  const last = {node: layout.nodes - 1, rail: layout.rails - 1};
  const to = {...at};
  if (key === 'ArrowDown') ++to.node;
  else if (key === 'ArrowUp') --to.node;
  else if (key === 'ArrowRight') ++to.rail;
  else if (key === 'ArrowLeft') --to.rail;
  else if (key === 'PageDown') to.node += 10;
  else if (key === 'PageUp') to.node -= 10;
  else if (key === 'Home') to.rail = 0;
  else if (key === 'End') to.rail = last.rail;
  else return null;
  // From the last rail on, the next column of nodes.
  if (to.rail > last.rail && to.node + layout.rows <= last.node) return {node: to.node + layout.rows, rail: 0};
  if (to.rail < 0 && to.node >= layout.rows) return {node: to.node - layout.rows, rail: last.rail};
  return {node: Math.max(0, Math.min(last.node, to.node)), rail: Math.max(0, Math.min(last.rail, to.rail))};
}

// The next cell, in the direction `step`, that is not well; null: there is none.
export function nextBad(model, at, step) {
  const cells = model.order.length * model.rails.length;
  for (let i = 1, place = at.node * model.rails.length + at.rail; i <= cells; ++i) {
    place = (place + step + cells) % cells;
    const cell = {node: Math.floor(place / model.rails.length), rail: place % model.rails.length};
    const nic = model.nodes.get(model.order[cell.node]).cells[cell.rail];
    if (nic !== null && nic.kind !== 'healthy') return cell;
  }
  return null;
}
