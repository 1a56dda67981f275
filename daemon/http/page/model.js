// The cluster as the page holds it, made of /api/v1/map. Pure.
import {KINDS, carries, kindOf} from './states.js';

// More rails than this are columns by their place, not by their name.
const COLUMNS_MAX = 16;
const naturally = new Intl.Collator('en', {numeric: true}).compare;

const WELL = {
  state: 'HEALTHY',
  reason: '',
  since_ns: '0',
  operator_weight_permille: 1000,
  drained: false,
  drill_failed: false,
  drill_ends_ns: '0',
  drained_jobs: [],
};

function nodeOf(entry) {
  const nics = [...entry.healthy.map((name) => ({...WELL, name})), ...entry.nics].map((nic) => ({
    name: nic.name,
    key: `${entry.node}/${nic.name}`,
    node: entry.node,
    kind: kindOf(nic, entry.word),
    reason: nic.reason,
    sinceMs: Number(nic.since_ns) / 1e6,
    share: nic.share_permille,
    isDrill: nic.drill_failed,
    drillEndsMs: Number(nic.drill_ends_ns) / 1e6,
    weight: nic.operator_weight_permille,
  }));
  nics.sort((a, b) => naturally(a.name, b.name));
  return {name: entry.node, word: entry.word, nics};
}

function withColumns(model) {
  const names = new Set();
  let most = 0;
  for (const node of model.nodes.values()) {
    most = Math.max(most, node.nics.length);
    for (const nic of node.nics) names.add(nic.name);
  }
  model.byName = names.size <= COLUMNS_MAX;
  model.rails = model.byName ? [...names].sort(naturally) : Array.from({length: most}, (_, i) => `NIC ${i + 1}`);
  const columnOf = new Map(model.rails.map((name, i) => [name, i]));
  for (const node of model.nodes.values()) {
    node.cells = new Array(model.rails.length).fill(null);
    node.nics.forEach((nic, i) => {
      node.cells[model.byName ? columnOf.get(nic.name) : i] = nic;
    });
  }
  model.order = [...model.nodes.keys()].sort(naturally);
  return model;
}

export function modelOf(map) {
  return withColumns({own: map.node, release: map.release, nodes: new Map(map.nodes.map((node) => [node.node, nodeOf(node)]))});
}

// The model with what `map` has of the node `name`; without that node, if the map has none of this name.
export function withNode(model, name, map) {
  const nodes = new Map(model.nodes);
  const entry = map.nodes.find((node) => node.node === name);
  if (entry) nodes.set(name, nodeOf(entry));
  else nodes.delete(name);
  return withColumns({...model, nodes});
}

export function nicOf(model, key) {
  const at = key.indexOf('/');
  return model.nodes.get(key.slice(0, at))?.nics.find((nic) => nic.key === key) ?? null;
}

// How many NICs there are of each kind, and what part of all capacity carries traffic.
export function countsOf(model) {
  const kinds = Object.fromEntries(Object.keys(KINDS).map((kind) => [kind, 0]));
  let nics = 0,
    capacity = 0,
    healthyNodes = 0,
    silentNodes = 0,
    drills = 0;
  for (const node of model.nodes.values()) {
    if (node.word === 'NODE_HEALTHY') ++healthyNodes;
    if (node.word === 'NODE_UNREACHABLE') ++silentNodes;
    for (const nic of node.nics) {
      ++nics;
      ++kinds[nic.kind];
      if (nic.isDrill) ++drills;
      if (nic.kind === 'degraded') capacity += Math.min(1000, nic.share ?? 500);
      else if (carries(nic.kind)) capacity += Math.min(1000, nic.weight);
    }
  }
  return {kinds, nics, nodes: model.nodes.size, healthyNodes, silentNodes, drills, capacity: nics === 0 ? 1 : capacity / nics / 1000};
}

// The node with the fewest rails that carry traffic, and how many nodes have at most one of several; null: no node has lost any.
export function fewestRails(model) {
  let worst = null,
    last = 0;
  for (const node of model.nodes.values()) {
    const rails = node.nics.filter((nic) => nic.kind !== 'uncabled').length;
    // A node whose daemon alone is away still carries traffic.
    const left = node.nics.filter((nic) => carries(nic.kind) || nic.kind === 'unreachable').length;
    if (left === rails) continue;
    if (rails > 1 && left <= 1) ++last;
    if (worst === null || left < worst.left || (left === worst.left && rails > worst.rails)) worst = {node: node.name, left, rails};
  }
  return worst === null ? null : {...worst, last};
}

// The rows of the list, red first: NICs that are not healthy, or with `find` all NICs whose NODE/NIC or reason holds the text.
export function rowsOf(model, find, kind) {
  const text = find.toLowerCase();
  const rows = [];
  for (const name of model.order)
    for (const nic of model.nodes.get(name).nics) {
      if (kind ? nic.kind !== kind : text === '' && nic.kind === 'healthy') continue;
      if (text !== '' && !nic.key.toLowerCase().includes(text) && !nic.reason.toLowerCase().includes(text)) continue;
      rows.push(nic);
    }
  return grouped(rows.sort((a, b) => KINDS[a.kind].rank - KINDS[b.kind].rank));
}

// NICs of one node in one state, for one reason, are one row: a dead rack has some, and not a hundred.
function grouped(rows) {
  const groups = [];
  for (const nic of rows) {
    const before = groups.at(-1);
    if (before?.nic.node === nic.node && before.nic.kind === nic.kind && before.nic.reason === nic.reason) ++before.count;
    else groups.push({nic, count: 1});
  }
  return groups;
}
