// The states of a NIC as the page shows them: a name, a glyph and a rank, the worst first. The colour is in colours.css.

// `loss`: it carries less than it should, so a person may have to act.
export const KINDS = {
  failed: {rank: 0, word: 'failed', loss: true},
  unreachable: {rank: 1, word: 'node does not answer', loss: true},
  suspect: {rank: 2, word: 'suspect', loss: true},
  degraded: {rank: 3, word: 'degraded', loss: true},
  proving: {rank: 4, word: 'proving itself', loss: true},
  drained: {rank: 5, word: 'drained', loss: false},
  weighted: {rank: 6, word: 'weight changed', loss: false},
  uncabled: {rank: 7, word: 'no cable', loss: false},
  unknown: {rank: 8, word: 'not known', loss: false},
  healthy: {rank: 9, word: 'healthy', loss: false},
};

const OF_STATE = {
  HEALTHY: 'healthy',
  DEGRADED: 'degraded',
  SUSPECT: 'suspect',
  FAILED: 'failed',
  PROVING: 'proving',
  DRAINED: 'drained',
  UNCABLED: 'uncabled',
};

// `nic`: of the map. `word`: of its node.
export function kindOf(nic, word) {
  const kind = OF_STATE[nic.state] ?? 'unknown';
  if (word === 'NODE_UNREACHABLE' && kind !== 'failed') return 'unreachable';
  if (kind === 'healthy' && nic.drained) return 'drained';
  if (kind === 'healthy' && (nic.operator_weight_permille !== 1000 || nic.drained_jobs.length > 0)) return 'weighted';
  return kind;
}

// Traffic may pass it.
export const carries = (kind) => ['healthy', 'degraded', 'suspect', 'weighted'].includes(kind);

// The strokes of a glyph in a square from (0, 0) to (1, 1): lines [x1, y1, x2, y2], or a circle [x, y, radius].
const GLYPHS = {
  failed: [
    [0.2, 0.2, 0.8, 0.8],
    [0.2, 0.8, 0.8, 0.2],
  ],
  unreachable: [
    [0.1, 0.5, 0.5, 0.1],
    [0.1, 0.9, 0.9, 0.1],
    [0.5, 0.9, 0.9, 0.5],
  ],
  suspect: [[0.5, 0.15, 0.5, 0.85]],
  degraded: [[0.2, 0.8, 0.8, 0.2]],
  proving: [[0.5, 0.5, 0.28]],
  drained: [[0.15, 0.5, 0.85, 0.5]],
  weighted: [[0.2, 0.75, 0.8, 0.75]],
  uncabled: [[0.5, 0.5, 0.08]],
  unknown: [[0.35, 0.5, 0.65, 0.5]],
  healthy: [],
};
export const glyphOf = (kind) => GLYPHS[kind];
